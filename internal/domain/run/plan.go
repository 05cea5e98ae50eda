package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
)

// Enqueue hands a run over to whoever works next, in the transaction that makes it ready. The epoch is the one of its last
// holder: a job for an epoch that has passed does nothing.
type Enqueue func(ctx context.Context, tx pgx.Tx, runs []Ready) error

// Ready is a run that waits to be taken.
type Ready struct {
	RunID int64
	Epoch int
}

// How long a job may be under way before another is made for the same run: at first little, because its node may have died,
// then longer, because it waits its turn behind others. And how that grows with each holding that kept nothing.
const (
	driveAgain     = 8 * time.Second
	driveSeldom    = time.Minute
	fruitlessPause = 2 * time.Second
	mostFruitless  = 12 // holdings without a chunk that was kept: then the run ends as failed
	mostDriven     = 1000
	mostReleased   = 1000 // windows in one transaction
)

// Planned is what one look at the schedule did.
type Planned struct {
	Runs   int // windows that became runs
	Missed int // windows that came too late to be run
	Driven int // runs without a live holder for which a job was made
	// Windows that were begun or had ended before they were due, by a clock that was ahead: they are run again when they are.
	Released int
	// What came too late to be run, by task and zone.
	TooLate []TooLate
	// Lines of the schedule that were planned ahead of the clock, which was set back since, or until no real time: they go on from
	// now. What was due in between is found by its key, or was not run.
	TurnedBack []TurnedBack
	// Zones of organisations that this program does not know: nothing was planned for them.
	ZonesUnknown []string
}

// TooLate is what came too late to be run of a task in a zone.
type TooLate struct {
	Task, Zone  string
	Count       int
	First, Last string // keys of windows; where there are more than are named, First is the first that is
}

// TurnedBack is a line of the schedule that was planned ahead of the clock.
type TurnedBack struct {
	Task, Zone string
	Until      string // as it stood there
}

// Planner looks what is due. Every node has one, and none of them leads: the rows decide.
type Planner struct {
	Catalogue Catalogue
	Enqueue   Enqueue
	step      func(name string) // called at each named step, where a test may end the process
}

func (p Planner) at(step string) {
	if p.step != nil {
		p.step(step)
	}
}

// Look writes the runs of the windows that became due since the last look of any node, and then releases those that are not due
// any more and makes jobs for the runs that nobody holds. One transaction each: what fails is found again by the next look.
func (p Planner) Look(ctx context.Context, db *pg.DB) (Planned, error) {
	var planned Planned
	err := bounded(ctx, db, []int64{account.System}, func(tx pgx.Tx) error { return p.plan(ctx, tx, &planned) })
	if err != nil {
		return Planned{}, fmt.Errorf("plan what is due: %w", err)
	}
	p.at("planned")
	err = bounded(ctx, db, []int64{account.System}, func(tx pgx.Tx) (err error) {
		if planned.Released, err = p.release(ctx, tx); err == nil {
			planned.Driven, err = p.drive(ctx, tx)
		}
		return err
	})
	if err != nil {
		return planned, fmt.Errorf("find runs that nobody holds: %w", err)
	}
	p.at("driven")
	return planned, nil
}

// line is how far a task is planned in a zone, and what became due since.
type line struct {
	task  Task
	zone  string
	until time.Time
	due   []Window
	late  int      // windows that came too late
	named []Window // the latest of those
}

func (p Planner) plan(ctx context.Context, tx pgx.Tx, planned *Planned) error {
	now, lines, err := p.lines(ctx, tx, planned)
	if err != nil {
		return err
	}
	var moved []line
	for _, l := range lines {
		location, err := time.LoadLocation(l.zone)
		if err != nil { // the other zones are planned; what is due in this one waits for a program that knows it
			planned.ZonesUnknown = append(planned.ZonesUnknown, l.zone)
			continue
		}
		l.due, l.late, l.named = l.task.due(location, l.until, now)
		if l.task.CatchUp == CatchUpLatest && len(l.due) > 0 { // it does the work of the others: nobody misses them
			l.late, l.named = 0, nil
		}
		// When the clock was set back, the line goes back with it: what is planned already is found by its key.
		if len(l.due) > 0 || l.late > 0 || l.until.After(now) {
			moved = append(moved, l)
		}
	}
	p.at("read")
	if moved, err = moveLines(ctx, tx, moved, now); err != nil || len(moved) == 0 {
		return err
	}
	p.at("moved")
	if err := keepMissed(ctx, tx, moved, now); err != nil {
		return err
	}
	var due []windowOf
	for _, l := range moved {
		if l.until.After(now) {
			planned.TurnedBack = append(planned.TurnedBack, TurnedBack{l.task.Name, l.zone, l.until.UTC().Format(time.RFC3339)})
		}
		planned.Missed += l.late
		if n := len(l.named); n > 0 && l.late > 0 {
			planned.TooLate = append(planned.TooLate, TooLate{l.task.Name, l.zone, l.late, l.named[0].Key, l.named[n-1].Key})
		}
		for _, w := range l.due {
			due = append(due, windowOf{task: l.task.Name, window: w})
		}
	}
	ready, err := insertWindows(ctx, tx, due, Scheduler, now)
	if err != nil {
		return err
	}
	planned.Runs = len(ready)
	p.at("inserted")
	if len(ready) > 0 {
		err = p.Enqueue(ctx, tx, ready)
		p.at("enqueued")
	}
	return err
}

// stoppedAhead is the error of a run that was under way before it was due.
const stoppedAhead = "it was begun by a clock that was ahead: its window is run again when it is due"

// release sees to what was done while the clock was ahead: a window that is not due, and that somebody worked on or ended, did its
// work too early. It gives its window up, with its report, to the run that is planned when it is due; who holds it is fenced out by
// that. What was planned and not begun waits. It hangs on no line of the schedule: what is locked, or too much for one
// transaction, is found by the next look.
func (p Planner) release(ctx context.Context, tx pgx.Tx) (int, error) {
	tag, err := tx.Exec(ctx, `
with ahead as (
  select id from run
   where organisation_id + 0 = $1 and window_start is not null and due_at > (select clock()) and (state <> 'running' or epoch > 0)
   order by due_at desc limit $2 for no key update skip locked)
update run r set `+givesUpWindow+`, lease_until = coalesce(r.lease_until, clock()), finished_at = coalesce(r.finished_at, clock()),
       state = case r.state when 'running' then 'failed' else r.state end, error = case r.state when 'running' then $3 else r.error end
  from ahead where r.organisation_id = $1 and r.id = ahead.id`, account.System, mostReleased, stoppedAhead)
	if err != nil {
		return 0, fmt.Errorf("release what ran ahead of the clock: %w", err)
	}
	p.at("released")
	return int(tag.RowsAffected()), nil
}

// plannedSanely is the condition of a line that speaks of a time at which anything can have been planned, as the check
// schedule_instants_real demands.
const plannedSanely = `isfinite(s.planned_until) and s.planned_until >= '2000-01-01 00:00Z'`

// lines reads how far each task is planned. A task that is new begins now: nothing is done for the time before it existed.
// One that is planned until no real time begins now, too.
func (p Planner) lines(ctx context.Context, tx pgx.Tx, planned *Planned) (now time.Time, lines []line, err error) {
	inUse, err := zonesInUse(ctx, tx)
	if err != nil {
		return now, nil, err
	}
	rows, err := tx.Query(ctx, `select s.task, s.zone, case when `+plannedSanely+` then s.planned_until end, s.planned_until::text from schedule s`)
	if err != nil {
		return now, nil, err
	}
	until := map[[2]string]time.Time{}
	var name, zone, said string
	var at *time.Time
	var unreal []TurnedBack
	if _, err = pgx.ForEachRow(rows, []any{&name, &zone, &at, &said}, func() error {
		if at == nil {
			unreal = append(unreal, TurnedBack{Task: name, Zone: zone, Until: said})
			return nil
		}
		until[[2]string{name, zone}] = *at
		return nil
	}); err != nil {
		return now, nil, fmt.Errorf("read how far the schedule is planned: %w", err)
	}
	// After the lines, so that one which is ahead of it was planned by a clock that has been set back since.
	if now, err = pg.Now(ctx, tx); err != nil {
		return now, nil, err
	}
	if err := restart(ctx, tx, unreal, now); err != nil {
		return now, nil, err
	}
	planned.TurnedBack = append(planned.TurnedBack, unreal...)
	var tasks, zones []string
	for _, task := range p.Catalogue {
		for _, zone := range task.zones(inUse) {
			at, known := until[[2]string{task.Name, zone}]
			if known {
				lines = append(lines, line{task: task, zone: zone, until: at})
				continue
			}
			tasks, zones = append(tasks, task.Name), append(zones, zone)
		}
	}
	if len(tasks) == 0 {
		return now, lines, nil
	}
	_, err = tx.Exec(ctx, `
insert into schedule (task, zone, planned_until)
select w.task, w.zone, $3 from unnest($1::text[], $2::text[]) w(task, zone) order by w.task, w.zone
    on conflict do nothing`, tasks, zones, now)
	if err != nil {
		return now, nil, fmt.Errorf("begin the schedule of new tasks: %w", err)
	}
	return now, lines, nil
}

// restart has lines that are planned until no real time begin now.
func restart(ctx context.Context, tx pgx.Tx, unreal []TurnedBack, now time.Time) error {
	if len(unreal) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `update schedule s set planned_until = $1 where not (`+plannedSanely+`)`, now)
	if err != nil {
		return fmt.Errorf("restart the schedule: %w", err)
	}
	return nil
}

// moveLines keeps that the lines are planned until now, and gives back those that it moved: another node that plans at the
// same time has the others.
func moveLines(ctx context.Context, tx pgx.Tx, lines []line, now time.Time) ([]line, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	n := len(lines)
	tasks, zones, until := make([]string, n), make([]string, n), make([]time.Time, n)
	for i, l := range lines {
		tasks[i], zones[i], until[i] = l.task.Name, l.zone, l.until
	}
	rows, err := tx.Query(ctx, `
with mine as (
  select s.task, s.zone, w.nth
    from schedule s join unnest($1::text[], $2::text[], $3::timestamptz[]) with ordinality w(task, zone, until, nth)
      on s.task = w.task and s.zone = w.zone and s.planned_until = w.until
   order by s.task, s.zone for no key update of s skip locked)
update schedule s set planned_until = $4 from mine where s.task = mine.task and s.zone = mine.zone
returning mine.nth::int - 1`, tasks, zones, until, now)
	if err != nil {
		return nil, fmt.Errorf("keep how far the schedule is planned: %w", err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("keep how far the schedule is planned: %w", err)
	}
	slices.Sort(places)
	moved := make([]line, len(places))
	for i, place := range places {
		moved[i] = lines[place]
	}
	return moved, nil
}

// windowOf is a window of a task.
type windowOf struct {
	task   string
	window Window
}

// keepMissed keeps by name what came too late, so that somebody can run it by hand, and counts it once: what a clock that went back
// and forth finds again is known by its key, and is no longer late by the lines. What lies beyond the names is counted each time.
func keepMissed(ctx context.Context, tx pgx.Tx, lines []line, now time.Time) error {
	var of []int
	var tasks, keys, zones []string
	var dues []time.Time
	for i, l := range lines {
		for _, w := range l.named {
			of, tasks, keys, zones, dues = append(of, i), append(tasks, l.task.Name), append(keys, w.Key), append(zones, w.Zone), append(dues, w.DueAt)
		}
	}
	if len(of) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
with named as (
  select * from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) w(nth, task, key, zone, due_at)),
added as (
  insert into missed_window (task, window_key, zone, due_at)
  select task, key, zone, due_at from named order by task, key
      on conflict do nothing
  returning task, window_key)
select n.nth, (count(*) - count(a.task))::int from named n left join added a on a.task = n.task and a.window_key = n.key group by n.nth`,
		of, tasks, keys, zones, dues)
	if err != nil {
		return fmt.Errorf("name the windows that came too late: %w", err)
	}
	var nth, known int
	if _, err = pgx.ForEachRow(rows, []any{&nth, &known}, func() error { lines[nth].late -= known; return nil }); err != nil {
		return fmt.Errorf("name the windows that came too late: %w", err)
	}
	late := make([]int, len(lines))
	tasks, zones = make([]string, len(lines)), make([]string, len(lines))
	for i, l := range lines {
		tasks[i], zones[i], late[i] = l.task.Name, l.zone, l.late
	}
	_, err = tx.Exec(ctx, `
update schedule s set missed = s.missed + w.late, missed_at = $4
  from unnest($1::text[], $2::text[], $3::int[]) w(task, zone, late) where s.task = w.task and s.zone = w.zone and w.late > 0`, tasks, zones, late, now)
	if err != nil {
		return fmt.Errorf("count the windows that came too late: %w", err)
	}
	return nil
}

// Scheduler is who starts what nobody asked for.
const Scheduler = "schedule"

// insertWindows writes a run for each window that has none, whoever planned it.
func insertWindows(ctx context.Context, tx pgx.Tx, due []windowOf, actor string, now time.Time) ([]Ready, error) {
	if len(due) == 0 {
		return nil, nil
	}
	n := len(due)
	tasks, keys, zones := make([]string, n), make([]string, n), make([]string, n)
	starts, ends, dues := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, d := range due {
		tasks[i], keys[i], zones[i] = d.task, d.window.Key, d.window.Zone
		starts[i], ends[i], dues[i] = d.window.Start, d.window.End, d.window.DueAt
		if dues[i].IsZero() {
			dues[i] = now
		}
	}
	rows, err := tx.Query(ctx, `
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at, driven_at, driven_epoch)
select $1, w.task, w.key, '{}', $2, w.zone, w.window_start, w.window_end, w.due_at, $9, 0
  from unnest($3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[])
       with ordinality w(task, key, zone, window_start, window_end, due_at, nth)
 order by w.nth
    on conflict do nothing
returning id, epoch`, account.System, actor, tasks, keys, zones, starts, ends, dues, now)
	if err != nil {
		return nil, fmt.Errorf("write the runs of windows: %w", err)
	}
	ready, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Ready])
	if err != nil {
		return nil, fmt.Errorf("write the runs of windows: %w", err)
	}
	return ready, nil
}

// drive makes a job for every run that nobody holds: its holder died, or its own job was lost. The job of a run that was not
// taken is believed to be under way for a while; a run whose holders keep nothing is driven less and less often. One that is not due,
// because the clock was set back, waits until it is.
func (p Planner) drive(ctx context.Context, tx pgx.Tx) (int, error) {
	tasks := make([]string, len(p.Catalogue))
	for i, task := range p.Catalogue {
		tasks[i] = task.Name
	}
	rows, err := tx.Query(ctx, `
with lost as (
  select organisation_id, id from run
   where organisation_id = $1 and task in (select unnest($2::text[])) and state = 'running' and window_start is not null
     and due_at <= clock() and `+lapsed+`
     and (driven_epoch < epoch and (fruitless < 2 or lease_until is null or lease_until > clock() or lease_until < clock() - fruitless * $3::interval)
          or driven_at > clock() or driven_at < clock() - least($5::interval, greatest($4::interval, (driven_at - greatest(started_at, taken_at, lease_until)) / 2)))
   order by due_at, id limit $6 for no key update skip locked)
update run r set driven_at = clock(), driven_epoch = r.epoch from lost
 where r.organisation_id = lost.organisation_id and r.id = lost.id
returning r.id, r.epoch`, account.System, tasks, fruitlessPause, driveAgain, driveSeldom, mostDriven)
	if err != nil {
		return 0, err
	}
	ready, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Ready])
	if err != nil || len(ready) == 0 {
		return 0, err
	}
	err = p.Enqueue(ctx, tx, ready)
	p.at("driving")
	return len(ready), err
}
