package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// WindowRun is a run of the schedule, as it is shown.
type WindowRun struct {
	ID         int64
	Task       string
	Key        string
	Zone       string
	Actor      string
	DueAt      time.Time
	AskedAt    *time.Time // when somebody had it begin anew
	State      State      // a run without a live holder is waiting
	Holder     string
	TakenAt    *time.Time // by its present holder, or the last one
	BegunAt    *time.Time
	KeptAt     *time.Time // when its last chunk was kept
	FinishedAt *time.Time
	Skips      int // how often somebody came while it was held
	Fruitless  int // holdings that ended without a chunk that was kept, since the last one that was; Error is what stopped the last
	Error      string
	Progress   Progress
	Speed      float64        // items a second since it was begun, while it is under way; 0: unknown
	Remaining  *time.Duration // nil: unknown
	Unreadable bool           // somebody changed the counters of its row by hand into what nobody can read: Progress is unknown
	Early      bool           // it waits until it is due: a clock that was ahead planned it
	Overdue    bool           // it has not ended, and its task says that it should have by now; or it failed
}

// Line is how a task stands in one of its zones.
type Line struct {
	Task     Task
	Zone     string
	Next     Window
	Last     *WindowRun  // the latest that ended
	Underway []WindowRun // those that are due and have not ended, oldest first, at most mostUnderway
	Failed   int         // windows whose run failed and was not repeated
	Failures []WindowRun // those, latest first, at most mostUnderway
	Partial  int         // windows that are done but for what they refused, and that were not repeated since
	Partials []WindowRun // those, latest first, at most mostUnderway
	// Unplanned windows became due more than a moment ago, and nobody looked: no node does. It is 0 while one works.
	Unplanned  int
	Unreadable []WindowRun // of all those above, whose rows somebody changed into what cannot be read
	Missed     int64       // windows that came too late to be run, and that nobody has run by hand
	MissedKeys []string    // those, latest first, at most mostUnderway; fewer where an earlier release counted and named none
	MissedAt   *time.Time  // when that was seen last
}

// MostWindows is how many windows of a task are listed at once.
const MostWindows = 50

const (
	fewWindows   = 7 // beside those of other tasks: a week
	mostUnderway = 20
	mostLate     = 50          // runs of one task that an alarm names: those that are late for longest
	lookedWithin = time.Minute // each node looks once a second: a window that nobody planned by then shows that none does
)

// Overview tells how everything stands that Usher does on its own, and the instant for which that is true.
func Overview(ctx context.Context, db *pg.DB, actor timeline.Actor, catalogue Catalogue) (lines []Line, now time.Time, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return nil, now, err
	}
	err = db.Read(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		if err := inOrder(ctx, tx); err != nil {
			return err
		}
		if now, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		inUse, err := zonesInUse(ctx, tx)
		if err != nil {
			return err
		}
		for _, task := range catalogue {
			for _, zone := range task.zones(inUse) {
				line := Line{Task: task, Zone: zone}
				if err := line.read(ctx, tx, now); err != nil {
					return err
				}
				lines = append(lines, line)
			}
		}
		return nil
	})
	return lines, now, err
}

// inOrder has the rest of the transaction read the latest windows from the end of an index: without statistics, the planner takes
// all windows of a task for a handful, reads every one of them, and sorts (decision 0011).
func inOrder(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)`)
	return err
}

func (l *Line) read(ctx context.Context, tx pgx.Tx, now time.Time) error {
	location, unknown := time.LoadLocation(l.Zone)
	if unknown == nil { // else nothing comes next, and the log says why
		l.Next = l.Task.Next(location, now)
	}
	var until *time.Time
	err := tx.QueryRow(ctx, `
select greatest(coalesce(sum(s.missed), 0) - (select count(*) from missed_window m where m.task = $1 and m.zone = $2 and `+runByHand+`), 0),
       max(s.missed_at) filter (where isfinite(s.missed_at)), max(s.planned_until) filter (where `+plannedSanely+`),
       (select count(*) from run r where r.organisation_id + 0 = $3 and r.task = $1 and r.zone = $2 and r.window_start is not null and `+failed+`),
       (select count(*) from run r where r.organisation_id + 0 = $3 and r.task = $1 and r.zone = $2 and r.window_start is not null and `+partial+`),
       array(select m.window_key from missed_window m where m.task = $1 and m.zone = $2 and not `+runByHand+` order by m.due_at desc limit $4)
  from schedule s where s.task = $1 and s.zone = $2`, l.Task.Name, l.Zone, account.System, mostUnderway).
		Scan(&l.Missed, &l.MissedAt, &until, &l.Failed, &l.Partial, &l.MissedKeys)
	if err != nil {
		return fmt.Errorf("read what the task %s missed: %w", l.Task.Name, err)
	}
	if until != nil && unknown == nil {
		due, missed := l.Task.Due(location, *until, now.Add(-lookedWithin))
		l.Unplanned = len(due) + missed
	}
	ended, err := l.runs(ctx, tx, now, `and state <> 'running' order by window_end desc, id desc limit 1`)
	if err != nil {
		return err
	}
	if len(ended) > 0 {
		l.Last = &ended[0]
	}
	if l.Failed > 0 {
		if l.Failures, err = l.runs(ctx, tx, now, `and `+failed+latestFirst); err != nil {
			return err
		}
	}
	if l.Partial > 0 {
		if l.Partials, err = l.runs(ctx, tx, now, `and `+partial+latestFirst); err != nil {
			return err
		}
	}
	l.Underway, err = l.runs(ctx, tx, now, fmt.Sprintf(`and state = 'running' and due_at <= clock() order by due_at limit %d`, mostUnderway))
	l.unreadable(ended)
	return err
}

// unreadable gathers, of all that is shown, what cannot be read, each once.
func (l *Line) unreadable(last []WindowRun) {
	seen := map[int64]bool{}
	for _, r := range slices.Concat(l.Underway, l.Failures, l.Partials, last) {
		if r.Unreadable && !seen[r.ID] {
			seen[r.ID], l.Unreadable = true, append(l.Unreadable, r)
		}
	}
}

// The conditions of what stays in view until it is repeated, which the column unmended of a run tells.
const (
	failed      = `unmended = 'failed'`
	partial     = `unmended = 'partial'`
	runByHand   = `exists (select from run r where r.organisation_id = $3 and r.task = m.task and r.window_key = m.window_key)`
	lately      = `and unmended is not null and finished_at > clock() - interval '1 day' and $3::interval is not null`
	unended     = `and state = 'running' and greatest(due_at, asked_at) < clock() - $3::interval`
	latestFirst = ` order by window_end desc, id desc limit 20` // mostUnderway
)

// A holding that is under way may still keep something: it does not count as one that kept nothing. The sum keeps the planner
// from the key of windows, by which it would read all those of a task.
// Instants without an end, which the checks of the table forbid, would blind whoever reads: they are left out.
const selectWindowRuns = `
select id, task, window_key, zone, actor, case when isfinite(due_at) then due_at else started_at end, case when isfinite(asked_at) then asked_at end,
       case when state = 'running' and ` + lapsed + ` then 'waiting' else state end,
       holder, case when isfinite(taken_at) then taken_at end, case when isfinite(begun_at) then begun_at end,
       case when isfinite(kept_at) then kept_at end, case when isfinite(finished_at) then finished_at when state <> 'running' then started_at end,
       skips, error, counters,
       case when state <> 'running' then 0 when ` + lapsed + ` then fruitless else greatest(fruitless - 1, 0) end
  from run where organisation_id + 0 = $1 and task = $2 and window_start is not null `

// Windows lists the latest windows of a task in all its zones, those of the latest days first, at most MostWindows.
func Windows(ctx context.Context, db *pg.DB, actor timeline.Actor, task Task) (runs []WindowRun, err error) {
	if err := account.Allow(actor, account.Operate); err != nil {
		return nil, err
	}
	latest, err := latestWindows(ctx, db, Catalogue{task}, MostWindows)
	return latest[task.Name], err
}

// LastWindows are the latest few windows of each task in all its zones, by the name of the task, for whoever may see the Overview.
func LastWindows(ctx context.Context, db *pg.DB, actor timeline.Actor, catalogue Catalogue) (map[string][]WindowRun, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return nil, err
	}
	return latestWindows(ctx, db, catalogue, fewWindows)
}

func latestWindows(ctx context.Context, db *pg.DB, catalogue Catalogue, most int) (map[string][]WindowRun, error) {
	latest := make(map[string][]WindowRun, len(catalogue))
	err := db.Read(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		if err := inOrder(ctx, tx); err != nil {
			return err
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		for _, task := range catalogue {
			rows, err := tx.Query(ctx, selectWindowRuns+`order by window_end desc, id desc limit $3`, account.System, task.Name, most)
			if err == nil {
				latest[task.Name], err = collectWindows(rows, now, task)
			}
			if err != nil {
				return fmt.Errorf("list the windows of %s: %w", task.Name, err)
			}
		}
		return nil
	})
	return latest, err
}

// DoneFor finds the start of the latest window, of those that are over, which a run of a task says that it did for an organisation: it
// was begun when the organisation was there, is done, and did not refuse it. The items of the task are the organisations. Zero: there is none. It says nothing of other
// organisations: whoever acts for the one may know.
func DoneFor(ctx context.Context, db *pg.DB, actor timeline.Actor, task string, organisationID int64) (start time.Time, err error) {
	if !actor.MayActFor(organisationID) {
		return start, problem.NotFound("organisation_unknown", problem.Facts{"slug": strconv.FormatInt(organisationID, 10)})
	}
	err = db.Read(ctx, []int64{account.System, organisationID}, func(tx pgx.Tx) error {
		if err := inOrder(ctx, tx); err != nil {
			return err
		}
		start, err = DoneIn(ctx, tx, task, organisationID)
		return err
	})
	return start, err
}

// DoneIn is DoneFor in a transaction that sees the organisation and the system's.
func DoneIn(ctx context.Context, tx pgx.Tx, task string, organisationID int64) (start time.Time, err error) {
	err = tx.QueryRow(ctx, `
select r.window_start from run r
 where r.organisation_id + 0 = $1 and r.task = $2 and r.window_start is not null and r.state = 'done'
   and r.window_end <= clock() and r.window_end > (select created_at from organisation where id = $3)
   and r.begun_at >= (select created_at from organisation where id = $3)
   and not exists (select from refusal f where f.organisation_id = $1 and f.run_id = r.id and f.list = $4 and f.item = $5)
 order by r.window_end desc, r.id desc limit 1`,
		account.System, task, organisationID, ListRefused, Item{Key: Key{OrganisationID: organisationID}}.name()).Scan(&start)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return start, fmt.Errorf("ask what %s did for the organisation: %w", task, err)
	}
	return start.UTC(), nil
}

func (l *Line) runs(ctx context.Context, tx pgx.Tx, now time.Time, which string) ([]WindowRun, error) {
	rows, err := tx.Query(ctx, selectWindowRuns+`and zone = $3 `+which, account.System, l.Task.Name, l.Zone)
	if err != nil {
		return nil, fmt.Errorf("read the runs of %s: %w", l.Task.Name, err)
	}
	runs, err := collectWindows(rows, now, l.Task)
	if err != nil {
		return nil, fmt.Errorf("read the runs of %s: %w", l.Task.Name, err)
	}
	return runs, nil
}

func readCounters(text string) (p Progress, unreadable bool) {
	p, whole := ReadProgress([]byte(text))
	return p, !whole
}

func collectWindows(rows pgx.Rows, now time.Time, task Task) ([]WindowRun, error) {
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (WindowRun, error) {
		var r WindowRun
		var counters string
		err := row.Scan(&r.ID, &r.Task, &r.Key, &r.Zone, &r.Actor, &r.DueAt, &r.AskedAt, &r.State, &r.Holder, &r.TakenAt, &r.BegunAt, &r.KeptAt,
			&r.FinishedAt, &r.Skips, &r.Error, &counters, &r.Fruitless)
		if err != nil {
			return r, err
		}
		r.Progress, r.Unreadable = readCounters(counters)
		return r, nil
	})
	for i := range runs {
		runs[i].foresee(now, task)
	}
	return runs, err
}

// foresee tells how fast a run is, and how long it will take from now, as far as its counters say.
func (r *WindowRun) foresee(now time.Time, task Task) {
	since := r.DueAt
	if r.AskedAt != nil && r.AskedAt.After(since) { // before, it was not to be done
		since = *r.AskedAt
	}
	r.Overdue = r.State == StateFailed || r.FinishedAt == nil && now.Sub(since) > task.Overdue
	r.Early = r.State == StateWaiting && r.DueAt.After(now)
	settled := r.Progress.Done + r.Progress.Refused
	if r.FinishedAt != nil || r.BegunAt == nil || r.KeptAt == nil || settled == 0 {
		return
	}
	took := r.KeptAt.Sub(*r.BegunAt)
	if took <= 0 {
		return
	}
	r.Speed = float64(settled) / took.Seconds()
	if left := r.Progress.Expected - settled; left > 0 {
		remaining := time.Duration(float64(left) / r.Speed * float64(time.Second)).Round(time.Second)
		r.Remaining = &remaining
	}
}

// Late lists the runs that should have ended by now, and those that failed or refused something within the last day, for the alarm:
// of each task at most fifty of either, in whatever zone.
func Late(ctx context.Context, db *pg.DB, catalogue Catalogue) (late []WindowRun, err error) {
	err = db.Read(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		for _, task := range catalogue {
			// Each of the two is read from the index that has nothing else.
			for _, which := range []string{lately, unended} {
				rows, err := tx.Query(ctx, selectWindowRuns+which+fmt.Sprintf(` order by due_at limit %d`, mostLate), account.System, task.Name, task.Overdue)
				if err != nil {
					return err
				}
				runs, err := collectWindows(rows, now, task)
				if err != nil {
					return err
				}
				late = append(late, runs...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for runs that are late: %w", err)
	}
	return late, nil
}
