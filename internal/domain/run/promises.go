package run

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/promise"
)

// Promises are what holds of runs at any moment: each window that was due is there, once, and none stays open for too long.
func Promises(c Catalogue) []promise.Promise {
	guards, _ := c.guards()
	return []promise.Promise{
		{Name: "windows_once", Once: true, Look: c.lookAtWindows, Guards: guards},
		{Name: "runs_end", Statement: runsEnd},
	}
}

// runsEnd names the runs that somebody started and whose process died: they can be repeated, until the same was asked for again and done.
var runsEnd = `
select false, 'run_interrupted', r.organisation_id,
       jsonb_build_object('run', r.id::text, 'task', r.task, 'campaign', coalesce(g.slug, ''), 'at', jsonb_build_object('at', r.started_at, 'zone', o.time_zone))
  from run r join organisation o on o.id = r.organisation_id
  left join campaign g on (g.organisation_id, g.id) = (r.organisation_id, r.campaign_id)
 where r.organisation_id = any($1) and r.window_start is null and r.state = 'running'
   and case when r.lease_until is null then r.started_at < clock() - interval '1 hour' else not ` + alive + ` end
   and not ` + doneSince

// windowsLookedBack is how far back windows are looked for: what is older may have been pruned.
const windowsLookedBack = 300 * 24 * time.Hour

func (c Catalogue) lookAtWindows(ctx context.Context, tx pgx.Tx, _ []int64, most int) (found promise.Found, err error) {
	if err := lookForDoubles(ctx, tx, &found, most); err != nil {
		return found, err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return found, err
	}
	inUse, err := zonesInUse(ctx, tx)
	if err != nil {
		return found, err
	}
	for _, task := range c {
		for _, zone := range task.zones(inUse) {
			line := Line{Task: task, Zone: zone}
			err := line.read(ctx, tx, now)
			if err == nil {
				line.attention(&found, most)
				err = line.lookForMissing(ctx, tx, now, &found, most)
			}
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

func lookForDoubles(ctx context.Context, tx pgx.Tx, found *promise.Found, most int) error {
	rows, err := tx.Query(ctx, `
select task, window_key, count(*) from run where organisation_id = any($1) group by task, window_key having count(*) > 1 order by 1, 2`,
		[]int64{account.System})
	if err != nil {
		return err
	}
	var task, key string
	var times int64
	_, err = pgx.ForEachRow(rows, []any{&task, &key, &times}, func() error {
		found.Name(promise.Example{Code: "window_twice", Broken: true, Facts: problem.Facts{"task": task, "window": key, "times": times}}, most)
		return nil
	})
	return err
}

// attention is what stays in view of a task until somebody looks after it.
func (l *Line) attention(found *promise.Found, most int) {
	name := func(code, key, why string, due *time.Time) {
		facts := problem.Facts{"task": l.Task.Name, "window": key, "why": why}
		if due != nil {
			facts["at"] = i18n.Instant{At: *due, Zone: "UTC"}
		}
		found.Name(promise.Example{Code: code, Facts: facts}, most)
	}
	for _, r := range l.Underway {
		if r.Overdue {
			name("window_open", r.Key, r.Error, &r.DueAt)
		}
	}
	for _, r := range l.Failures {
		name("window_failed", r.Key, r.Error, &r.DueAt)
	}
	for _, r := range l.Partials {
		name("window_partial", r.Key, "", &r.DueAt)
	}
	for _, key := range l.MissedKeys {
		name("window_missed", key, "", nil)
	}
	// Of each of these at most so many were read.
	found.Attention += int64(l.Failed-len(l.Failures)) + int64(l.Partial-len(l.Partials)) + l.Missed - int64(len(l.MissedKeys))
	if l.Unplanned > 0 {
		found.Name(promise.Example{Code: "windows_unplanned", Facts: problem.Facts{"task": l.Task.Name, "zone": l.Zone, "windows": l.Unplanned}}, most)
	}
}

// lookForMissing names the windows that were planned once, by what the schedule says, and that are not there: neither as a run nor as missed. Only
// of tasks each of whose windows is run; where the latest does the work of the others, they are not there.
func (l *Line) lookForMissing(ctx context.Context, tx pgx.Tx, now time.Time, found *promise.Found, most int) error {
	location, err := time.LoadLocation(l.Zone)
	if l.Task.CatchUp != CatchUpAll || err != nil {
		return nil
	}
	var first, until *time.Time
	err = tx.QueryRow(ctx, `
select (select min(r.due_at) from run r where r.organisation_id = $3 and r.task = $1 and r.zone = $2 and r.window_start is not null and r.actor = $5 and r.due_at >= $4),
       (select max(s.planned_until) from schedule s where s.task = $1 and s.zone = $2)`,
		l.Task.Name, l.Zone, account.System, now.Add(-windowsLookedBack), Scheduler).Scan(&first, &until)
	if err != nil {
		return fmt.Errorf("read which windows of %s there are: %w", l.Task.Name, err)
	}
	if first == nil || until == nil {
		return nil
	}
	if until.After(now) {
		until = &now
	}
	due, _ := l.Task.Due(location, first.Add(-time.Second), *until)
	keys := make([]string, len(due))
	for i, w := range due {
		keys[i] = w.Key
	}
	rows, err := tx.Query(ctx, `
select k from unnest($3::text[]) k
 where not exists (select from run r where r.organisation_id = $2 and r.task = $1 and r.window_key = k)
   and not exists (select from missed_window m where m.task = $1 and m.window_key = k)`, l.Task.Name, account.System, keys)
	if err != nil {
		return fmt.Errorf("look for windows of %s: %w", l.Task.Name, err)
	}
	var key string
	_, err = pgx.ForEachRow(rows, []any{&key}, func() error {
		found.Name(promise.Example{Code: "window_missing", Broken: true, Facts: problem.Facts{"task": l.Task.Name, "window": key}}, most)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for windows of %s: %w", l.Task.Name, err)
	}
	return nil
}
