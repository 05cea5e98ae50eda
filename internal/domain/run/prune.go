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

// How long the schedule keeps what has ended. The runs that a person started (convoking, importing) are not the schedule's: they are
// kept, with whom they refused, for as long as their campaign.
const (
	// KeptIdle is for windows of minutes and quarters of an hour that found nothing to do: there are 1,440 a day of each such task.
	KeptIdle = 30 * 24 * time.Hour
	// KeptRuns is for every other window that ended, for what an earlier execution of a window reported, and for those that came too late to be run: more than a year, so that this year's
	// can be laid beside the last's.
	KeptRuns = 400 * 24 * time.Hour
)

// ListOld lists at most so many runs of the schedule and missed windows that are kept no longer at that moment, in the order of their
// ids, after one of them. It locks nothing. Left out are runs that have not ended, the latest of a task in its zone, which is shown as
// its last, the latest that is done, by which others judge, and those by which somebody made up for a window that is still named as missed.
func ListOld(ctx context.Context, tx pgx.Tx, now time.Time, after int64, most int) ([]Item, error) {
	if err := pg.WalkIndexes(ctx, tx); err != nil {
		return nil, err
	}
	runs, err := listOld(ctx, tx, selectOldRuns, account.System, after, now.Add(-KeptIdle), now.Add(-KeptRuns), most)
	if err != nil {
		return nil, fmt.Errorf("list old runs: %w", err)
	}
	missed, err := listOld(ctx, tx, `
select id, task, window_key from missed_window where id > $1 and due_at < $2 order by id limit $3`, after, now.Add(-KeptRuns), most)
	if err != nil {
		return nil, fmt.Errorf("list windows that were missed long ago: %w", err)
	}
	// Both draw their ids from one sequence.
	items := append(runs, missed...)
	slices.SortFunc(items, func(a, b Item) int { return int(a.ID - b.ID) })
	return items[:min(len(items), most)], nil
}

// Of an hour at most are minutes and quarters of an hour; a civil day may have 23 of them.
const selectOldRuns = `
select r.id, r.task, coalesce(nullif(r.earlier_of, ''), r.window_key) from run r
 where r.organisation_id = $1 and r.id > $2 and (r.window_start is not null or r.earlier_of <> '') and r.state <> 'running'
   and r.finished_at < case when r.state = 'done' and r.window_end - r.window_start <= interval '1 hour'
                             and coalesce(r.counters->>'changed', '0') = '0' and coalesce(r.counters->>'refused', '0') = '0'
                            then $3::timestamptz else $4::timestamptz end
   and (r.earlier_of <> '' or (select true from run l
         where l.organisation_id = $1 and l.task = r.task and l.zone = r.zone and l.window_start is not null and (l.state = 'done' or l.state = 'failed' and r.state = 'failed')
           and l.window_end > r.window_end limit 1))
   and (select true from missed_window m where m.task = r.task and m.window_key = r.window_key limit 1) is null
 order by r.id limit $5`

func listOld(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]Item, error) {
	rows, err := tx.Query(ctx, statement, append([]any{pg.PlanAnew}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Item, error) {
		i := Item{Key: Key{OrganisationID: account.System}}
		return i, row.Scan(&i.ID, &i.Reference, &i.Name)
	})
}

// Prune takes away what ListOld listed in the same transaction: runs with what they refused, and missed windows, which are then counted
// no more. What somebody has locked, as who repeats a window does, is given back as held.
func Prune(ctx context.Context, tx pgx.Tx, now time.Time, items []Item) (Outcome, error) {
	ids := make([]int64, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	missed, err := pruneMissed(ctx, tx, now, ids)
	if err != nil {
		return Outcome{}, err
	}
	taken, held, err := pruneRuns(ctx, tx, now, ids)
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Changed: missed + taken}
	for _, item := range items {
		if slices.Contains(held, item.ID) {
			outcome.Held = append(outcome.Held, item)
		}
	}
	return outcome, nil
}

// pruneMissed holds the lines of the schedule first, as the planner does that names windows. Where the latest was missed as long ago as
// that, nothing is counted any more, named or not.
func pruneMissed(ctx context.Context, tx pgx.Tx, now time.Time, ids []int64) (taken int, err error) {
	_, err = tx.Exec(ctx, `
select from schedule s where exists (select from missed_window m where m.id = any($1) and m.task = s.task and m.zone = s.zone)
 order by s.task, s.zone for no key update of s`, ids)
	if err != nil {
		return 0, fmt.Errorf("hold the schedule: %w", err)
	}
	err = tx.QueryRow(ctx, `
with gone as (delete from missed_window where id = any($1) returning task, zone),
     counted as (
  update schedule s set missed = case when s.missed_at < $2 then 0 else greatest(s.missed - g.windows, 0) end
    from (select task, zone, count(*) as windows from gone group by task, zone) g where s.task = g.task and s.zone = g.zone)
select count(*)::int from gone`, ids, now.Add(-KeptRuns)).Scan(&taken)
	if err != nil {
		return 0, fmt.Errorf("take windows away that were missed long ago: %w", err)
	}
	return taken, nil
}

func pruneRuns(ctx context.Context, tx pgx.Tx, now time.Time, ids []int64) (taken int, held []int64, err error) {
	const old = ` from run where organisation_id = $1 and id = any($2) and (window_start is not null or earlier_of <> '') and state <> 'running' and finished_at < $3 `
	var free []int64
	for _, each := range []struct {
		locking string
		into    *[]int64
	}{{`order by id for update skip locked`, &free}, {`order by id`, &held}} {
		rows, err := tx.Query(ctx, `select id`+old+each.locking, account.System, ids, now.Add(-KeptIdle))
		if err != nil {
			return 0, nil, fmt.Errorf("hold old runs: %w", err)
		}
		if *each.into, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return 0, nil, fmt.Errorf("hold old runs: %w", err)
		}
	}
	held = slices.DeleteFunc(held, func(id int64) bool { return slices.Contains(free, id) })
	for _, statement := range []string{
		`delete from refusal where organisation_id = $1 and run_id = any($2)`, `delete from run where organisation_id = $1 and id = any($2)`,
	} {
		if _, err := tx.Exec(ctx, statement, account.System, free); err != nil {
			return 0, nil, fmt.Errorf("take old runs away: %w", err)
		}
	}
	return len(free), held, nil
}
