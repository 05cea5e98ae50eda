package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Wanted is a window that a person wants run.
type Wanted struct {
	Task  string
	Key   string // empty: the one that became due last; without a zone, of a task that has one for each: those of all zones
	Again bool   // also when it is done: from its beginning, which changes nothing that is as it should be
}

// Result is what became of a window that a person wanted.
type Result struct {
	RunID    int64
	Window   Window
	State    State
	Progress Progress
	Already  bool  // it was done before, and was left as it is
	Ended    Ended // how this execution ended; empty when it was done before
	Error    string

	Unreadable bool // somebody changed the counters of its row into something else

	// Why the window was left: it is not due in its zone yet, or this program does not know the zone. Others of its key were run.
	Left error
}

// Run runs windows by hand until each ends, one after the other. A window that is done is left as it is; one that failed is
// begun anew, and so is one that is done where that is wanted, each in a run of its own: the earlier one's report stays. One that
// somebody holds is left to them. Of the windows of all zones, those are run that can be, and the others named (Result.Left); where none
// can be, the first says why. The timeline of the installation says who asked. Only who administers the installation may. Refusals: task_unknown,
// window_invalid, window_not_due, run_lost, run_passed.
func (e Executor) Run(ctx context.Context, db *pg.DB, actor timeline.Actor, wanted Wanted) ([]Result, error) {
	if err := account.Allow(actor, account.Operate); err != nil {
		return nil, err
	}
	task, err := e.Catalogue.Find(wanted.Task)
	if err != nil {
		return nil, err
	}
	windows, err := windowsOf(ctx, db, task, wanted.Key)
	if err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(windows))
	for _, each := range windows {
		if each.left != nil {
			results = append(results, Result{Window: each.Window, Left: each.left})
			continue
		}
		result, err := e.runWindow(ctx, db, actor, task, each.Window, wanted.Again)
		results = append(results, result)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// named is a window that a key names, or the reason why it cannot be run.
type named struct {
	Window
	left error
}

// windowsOf are the windows that a key names, in the zones that are in use.
func windowsOf(ctx context.Context, db *pg.DB, task Task, key string) (windows []named, err error) {
	err = db.Read(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		inUse, err := zonesInUse(ctx, tx)
		if err != nil {
			return err
		}
		windows, err = task.windows(key, inUse, now)
		return err
	})
	return windows, err
}

func (t Task) windows(key string, inUse []string, now time.Time) (windows []named, err error) {
	zones := t.zones(inUse)
	if _, zone, found := strings.Cut(key, "@"); found && t.PerZone {
		zones = []string{zone}
	}
	var left error
	able := false
	for _, name := range zones {
		window, err := t.windowIn(key, name, now)
		switch {
		case problem.Has(err, "window_not_due"), problem.Has(err, "time_zone_unknown"):
			left = cmp.Or(left, err)
			windows = append(windows, named{Window: Window{Key: window.Key, Zone: name}, left: err})
		case err != nil:
			return nil, err
		case window.Key != "":
			able = true
			windows = append(windows, named{Window: window})
		}
	}
	if !able {
		return nil, left
	}
	return windows, nil
}

func (t Task) windowIn(key, name string, now time.Time) (Window, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return Window{Key: strings.TrimSuffix(key, "@"+name) + "@" + name}, problem.Invalid("time_zone_unknown", problem.Facts{"zone": name}).Because(err)
	}
	return t.window(key, zone, now)
}

// window reads the key of a window in a zone; empty: the one that became due last.
func (t Task) window(key string, zone *time.Location, now time.Time) (Window, error) {
	if key == "" {
		_, fires := t.mustRead(zone)
		return t.last(zone, fires, now), nil
	}
	if t.PerZone && !strings.Contains(key, "@") {
		key += "@" + zone.String()
	}
	window, err := t.Parse(key)
	if err != nil {
		return window, err
	}
	// Run before it is due, it would take the place of the run that the schedule makes when everything of it has settled.
	if due := t.dueAt(window, zone); due.After(now) {
		return window, problem.Refused("window_not_due", problem.Facts{
			"key": window.Key, "due": i18n.Instant{At: due, Zone: window.Zone},
		})
	}
	return window, nil
}

// dueAt is when the schedule makes a run of the window: its end where the cron names it at no time.
func (t Task) dueAt(window Window, zone *time.Location) time.Time {
	from, until := window.End, window.End
	if t.Period.subDaily() {
		from, until = window.Start, window.Start
	}
	if due := t.Next(zone, from.Add(-time.Second)); due.Key == window.Key {
		return due.DueAt
	}
	return until
}

func (e Executor) runWindow(ctx context.Context, db *pg.DB, actor timeline.Actor, task Task, window Window, again bool) (Result, error) {
	result := Result{Window: window}
	var ready Ready
	err := bounded(ctx, db, []int64{account.System}, func(tx pgx.Tx) error {
		begun, err := asked(ctx, tx, actor, task, window, again)
		if err != nil {
			return err
		}
		if err := result.read(ctx, tx, task, &ready); err != nil {
			return err
		}
		result.Already = !begun && result.State == StateDone
		return nil
	})
	if err != nil || result.Already {
		return result, err
	}
	e.at("asked")
	if result.Ended, err = e.Execute(ctx, db, ready); errors.Is(err, ErrLost) {
		err = problem.Refused("run_lost", problem.Facts{"task": task.Name, "window": window.Key, "run": strconv.FormatInt(ready.RunID, 10)}).Because(err)
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingTimeout)
	defer cancel()
	if last := db.Read(reading, []int64{account.System}, func(tx pgx.Tx) error {
		return result.read(reading, tx, task, &ready)
	}); err == nil {
		err = last
	}
	if err == nil && result.Ended.How == EndedStale && result.State == StateRunning {
		err = problem.Refused("run_passed", problem.Facts{"task": task.Name, "window": window.Key, "run": strconv.FormatInt(ready.RunID, 10)})
	}
	return result, err
}

// asked writes the run of a window that a person wants, unless it stands as they want it, and who wanted it.
func asked(ctx context.Context, tx pgx.Tx, actor timeline.Actor, task Task, window Window, again bool) (begun bool, err error) {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return false, err
	}
	written, err := insertWindows(ctx, tx, []windowOf{{task: task.Name, window: window}}, actor.Name, now)
	if err != nil {
		return false, err
	}
	facts := windowAsked{Task: task.Name, Window: window.Key}
	var id int64
	if len(written) > 0 {
		id = written[0].RunID
	} else if id, err = beginAnew(ctx, tx, actor, task, window, again, now, &facts); err != nil {
		return false, err
	} else if id == 0 {
		id, err = untaken(ctx, tx, task, window)
		if err != nil || id == 0 {
			return false, err
		}
	}
	return facts.Earlier != nil, timeline.Record(ctx, tx, account.System, actor, timeline.Entry{
		Kind: KindWindowAsked, Subject: timeline.Subject{RunID: id}, Facts: facts,
	})
}

// untaken finds the run of a window that the schedule wrote and that nobody has taken yet; 0: there is none.
func untaken(ctx context.Context, tx pgx.Tx, task Task, window Window) (id int64, err error) {
	err = tx.QueryRow(ctx, `select coalesce(max(id), 0) from run where organisation_id = $1 and task = $2 and window_key = $3 and state = 'running' and epoch = 0`,
		account.System, task.Name, window.Key).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("look for a run that nobody has taken: %w", err)
	}
	return id, nil
}

// KindWindowAsked is a window of the schedule that a person had run, in the timeline of the installation.
const KindWindowAsked timeline.Kind = "window_asked"

type windowAsked struct {
	Task    string   `json:"task"`
	Window  string   `json:"window"`
	Earlier *earlier `json:"earlier,omitempty"` // what it was before; nil: it had not been run
}

type earlier struct {
	Run   int64 `json:"run"`
	State State `json:"state"`
}

// beginAnew has a window that failed, or that is done and wanted again, begin from its start, in a run of its own: what the
// earlier execution did, refused and met stays in its row, which has the window no more. 0: the window stays as it is.
func beginAnew(ctx context.Context, tx pgx.Tx, actor timeline.Actor, task Task, window Window, again bool, now time.Time, facts *windowAsked) (id int64, err error) {
	states := []State{StateFailed}
	if again {
		states = append(states, StateDone)
	}
	var before earlier
	err = tx.QueryRow(ctx, `
select id, state, case when isfinite(due_at) then due_at else clock() end from run where organisation_id = $1 and task = $2 and window_key = $3 and state = any($4) for no key update`,
		account.System, task.Name, window.Key, states).Scan(&before.Run, &before.State, &window.DueAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err == nil {
		err = standBack(ctx, tx, before.Run)
	}
	if err != nil {
		return 0, fmt.Errorf("begin the window anew: %w", err)
	}
	facts.Earlier = &before
	written, err := insertWindows(ctx, tx, []windowOf{{task: task.Name, window: window}}, actor.Name, now)
	if err != nil {
		return 0, err
	}
	if len(written) != 1 {
		return 0, fmt.Errorf("begin the window anew: %d runs of %s were written", len(written), window.Key)
	}
	id = written[0].RunID
	if _, err = tx.Exec(ctx, `update run set asked_at = clock() where organisation_id = $1 and id = $2`, account.System, id); err != nil {
		return 0, fmt.Errorf("begin the window anew: %w", err)
	}
	return id, nil
}

// givesUpWindow takes its window from a run that has ended, so that another run may have it. It stays with what it reports.
const givesUpWindow = `earlier_of = r.window_key, window_key = 'earlier ' || gen_random_uuid(), window_start = null, window_end = null, due_at = null`

func standBack(ctx context.Context, tx pgx.Tx, id int64) error {
	tag, err := tx.Exec(ctx, `update run r set `+givesUpWindow+` where organisation_id = $1 and id = $2 and state <> 'running'`, account.System, id)
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("the run has not ended")
	}
	return err
}

// mostEarlier is how many earlier executions of a window are named.
const mostEarlier = 20

// Earlier names the runs that were earlier executions of the window of a run, the latest first, at most twenty; see Find.
func Earlier(ctx context.Context, tx pgx.Tx, of Run) ([]int64, error) {
	if of.Window == "" {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
select id from run where organisation_id + 0 = $1 and task = $2 and earlier_of = $3 and earlier_of <> '' and id <> $4 order by id desc limit $5`,
		of.OrganisationID, of.Task, of.Window, of.ID, mostEarlier)
	if err != nil {
		return nil, fmt.Errorf("look for earlier executions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// read reads how the run of the window stands; once it is known, that run, though it gave its window up.
func (r *Result) read(ctx context.Context, tx pgx.Tx, task Task, ready *Ready) error {
	var counters string
	err := tx.QueryRow(ctx, `
select id, epoch, state, counters, error from run
 where organisation_id = $1 and ($4 = 0 and task = $2 and window_key = $3 or id = $4)`,
		account.System, task.Name, r.Window.Key, r.RunID).Scan(&r.RunID, &ready.Epoch, &r.State, &counters, &r.Error)
	if err != nil {
		return fmt.Errorf("read the run of the window: %w", err)
	}
	ready.RunID = r.RunID
	r.Progress, r.Unreadable = readCounters(counters)
	return nil
}
