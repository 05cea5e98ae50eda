package run

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
)

func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var pruneAt = time.Date(2026, time.November, 29, 0, 0, 0, 0, time.UTC)

// prune takes away, chunk by chunk, what is old at pruneAt, and gives what that was by name.
func (s *things) prune(chunk int) (taken []string) {
	s.Helper()
	for after := int64(0); ; {
		var items []Item
		s.must(s.db.Tx(s.Context(), []int64{account.System}, func(tx pgx.Tx) (err error) {
			if items, err = ListOld(s.Context(), tx, pruneAt, after, chunk); err != nil {
				return err
			}
			outcome, err := Prune(s.Context(), tx, pruneAt, items)
			if outcome.Changed != len(items) || len(outcome.Held) > 0 {
				s.Errorf("of %d items %d were taken and %d held", len(items), outcome.Changed, len(outcome.Held))
			}
			return err
		}))
		if len(items) == 0 {
			return taken
		}
		for _, item := range items {
			taken = append(taken, item.Reference+" "+item.Name)
		}
		after = items[len(items)-1].ID
	}
}

// ended writes a run of a window of the schedule that ended so many days before pruneAt.
func (s *things) ended(task, key, state string, days int, lasting, counters string) {
	s.Helper()
	s.asOwner(func(conn *pgx.Conn) {
		_, err := conn.Exec(s.Context(), `
insert into run (organisation_id, task, window_key, request, actor, zone, state, counters, window_start, window_end, due_at, lease_until, started_at, finished_at)
select 0, $1, $2, '{}', 'schedule', 'UTC', $3, $4::jsonb, at - $5::text::interval, at, at, at, at, case when $3 <> 'running' then at end
  from (select $6::timestamptz - make_interval(days => $7) as at) w`, task, key, state, counters, lasting, pruneAt, days)
		s.must(err)
	})
}

func TestPrune_WhatIsKept(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	const minute, day = "1 minute", "1 day"
	for _, r := range []struct {
		key, state string
		days       int
		lasting    string
		counters   string
	}{
		{"did-old", "done", 401, minute, `{"done": 3, "changed": 1}`},
		{"did", "done", 399, minute, `{"done": 3, "changed": 1}`},
		{"idle-old", "done", 31, minute, `{"done": 3, "changed": 0, "refused": 0}`},
		{"idle-empty-old", "done", 31, minute, `{}`},
		{"idle", "done", 29, minute, `{"done": 3, "changed": 0}`},
		{"idle-day-old", "done", 401, day, `{"done": 3, "changed": 0}`},
		{"idle-day", "done", 399, day, `{"done": 3, "changed": 0}`},
		{"refused-old", "done", 401, minute, `{"done": 3, "changed": 0, "refused": 2}`},
		{"refused", "done", 399, minute, `{"done": 3, "changed": 0, "refused": 2}`},
		{"failed-old", "failed", 401, minute, `{}`},
		{"failed", "failed", 399, minute, `{}`},
		{"unended", "running", 500, minute, `{}`},
		{"latest", "done", 1, minute, `{}`},
	} {
		s.ended("many", r.key, r.state, r.days, r.lasting, r.counters)
	}
	s.ended("one", "last-of-its-task", "done", 900, day, `{"changed": 1}`)
	s.ended("one", "failed-after", "failed", 800, day, `{}`)
	s.ended("one", "last-that-failed", "failed", 700, day, `{}`)
	// What a person started is not the schedule's, however old and whatever it did.
	s.owner(`insert into campaign (organisation_id, slug, name, fee_minor, currency) select min(id), 'c', 'C', 1, 'XOF' from organisation where id > 0`,
		`insert into run (organisation_id, task, window_key, campaign_id, request, actor, state, lease_until, started_at, finished_at)
select organisation_id, 'convoke', 'request x', id, '{}', 'awa', 'done', '2020-01-01', '2020-01-01', '2020-01-01' from campaign`,
		`insert into refusal (organisation_id, run_id, list, item, reason) select organisation_id, id, 'refused', 'i', 'r' from run where window_key in ('refused-old', 'refused', 'request x')`)
	// What earlier executions of a window reported goes as all others do.
	for _, r := range []struct {
		of   string
		days int
	}{{"did", 401}, {"idle", 399}} {
		s.owner(fmt.Sprintf(`
insert into run (organisation_id, task, window_key, earlier_of, request, actor, zone, state, lease_until, started_at, finished_at)
select 0, 'many', 'earlier of %[1]s', '%[1]s', '{}', 'awa', 'UTC', 'done', at, at, at from (select timestamptz '2026-11-29Z' - interval '%[2]d days' as at) w`, r.of, r.days))
	}
	want := []string{"many did-old", "many idle-old", "many idle-empty-old", "many idle-day-old", "many refused-old", "many failed-old", "one failed-after", "many did"}
	same(t, "taken", s.prune(4), want)
	same(t, "taken again", len(s.prune(4)), 0)
	same(t, "kept", s.names(`select window_key from run order by id`),
		[]string{"did", "idle", "idle-day", "refused", "failed", "unended", "latest", "last-of-its-task", "last-that-failed", "request x", "earlier of idle"})
	same(t, "refusals that are kept", s.number(`select count(*) from refusal`), 2)
}

func (s *things) names(statement string) (names []string) {
	s.Helper()
	s.asOwner(func(conn *pgx.Conn) {
		rows, err := conn.Query(s.Context(), statement)
		s.must(err)
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		s.must(err)
	})
	return names
}

// Windows that were missed long ago are counted no more; those that somebody ran by hand count neither before nor after.
func TestPrune_MissedWindows(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	name := s.task.Name
	s.owner(fmt.Sprintf(`insert into schedule (task, zone, planned_until, missed, missed_at) values ('%s', 'UTC', '2026-11-29Z', 4, '2026-11-20Z')`, name),
		fmt.Sprintf(`insert into missed_window (task, window_key, zone, due_at) values
('%[1]s', '2020-01-01', 'UTC', '2020-01-02Z'), ('%[1]s', '2020-01-05', 'UTC', '2020-01-06Z'),
('%[1]s', '2026-11-18', 'UTC', '2026-11-19Z'), ('%[1]s', '2026-11-19', 'UTC', '2026-11-20Z')`, name))
	s.ended(name, "2020-01-01", "done", 1000, "1 day", `{"changed": 1}`)
	s.ended(name, "2026-11-19", "done", 1000, "1 day", `{"changed": 1}`) // as if it had been run by a clock that was behind
	s.ended(name, "2026-11-27", "done", 1, "1 day", `{"changed": 1}`)
	missed := func() (int64, []string) {
		l := s.line(pruneAt)
		return l.Missed, l.MissedKeys
	}
	before, keys := missed()
	same(t, "missed before", before, int64(2))
	same(t, "their names before", keys, []string{"2026-11-18", "2020-01-05"})
	// The run that made up for a window goes after the window: before, the window would count as missed again.
	same(t, "taken", s.prune(10), []string{name + " 2020-01-01", name + " 2020-01-05", name + " 2020-01-01"})
	after, keys := missed()
	same(t, "missed after", after, int64(1))
	same(t, "their names after", keys, []string{"2026-11-18"})
	same(t, "taken again", len(s.prune(10)), 0)
	same(t, "runs that are kept", s.names(`select window_key from run order by id`), []string{"2026-11-19", "2026-11-27"})

	s.owner(`update schedule set missed = 9, missed_at = '2020-02-01'`, // seven of them counted by a release that named nothing
		fmt.Sprintf(`insert into missed_window (task, window_key, zone, due_at) values ('%s', '2020-01-07', 'UTC', '2020-01-08Z')`, name))
	s.prune(10)
	same(t, "missed, when the latest was seen long ago", s.number(`select missed from schedule`), 0)
}

// A run that somebody is repeating is left to them.
func TestPrune_LeavesWhatIsLocked(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.ended("many", "a", "failed", 500, "1 day", `{}`)
	s.ended("many", "b", "failed", 499, "1 day", `{}`)
	s.ended("many", "c", "done", 1, "1 day", `{}`)
	s.asOwner(func(conn *pgx.Conn) {
		locked, err := conn.Begin(t.Context())
		s.must(err)
		_, err = locked.Exec(t.Context(), `update run set asked_at = clock() where window_key = 'a'`)
		s.must(err)
		s.must(s.db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
			items, err := ListOld(t.Context(), tx, pruneAt, 0, 10)
			s.must(err)
			outcome, err := Prune(t.Context(), tx, pruneAt, items)
			s.must(err)
			same(t, "the outcome", outcome, Outcome{Changed: 1, Held: items[:1]})
			return nil
		}))
		s.must(locked.Rollback(t.Context()))
	})
	same(t, "taken then", s.prune(10), []string{"many a"})
}

// The rows are walked by their key, and neither read nor sorted whole, when nobody has counted them yet.
func TestListOld_WalksTheKeyWithoutStatistics(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.owner(`alter table run set (autovacuum_enabled = false)`, `
insert into run (organisation_id, task, window_key, request, actor, zone, state, window_start, window_end, due_at, lease_until, finished_at)
select 0, 'many', 'w' || n, '{}', 'schedule', 'UTC', 'done', at, at + interval '1 minute', at, at, at
  from (select n, timestamptz '2026-10-01Z' + n * interval '1 minute' as at from generate_series(1, 20000) n) w`)
	var plan []string
	s.must(s.db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		s.must(pg.WalkIndexes(t.Context(), tx))
		rows, err := tx.Query(t.Context(), "explain "+selectOldRuns, pg.PlanAnew, account.System, int64(0), pruneAt.Add(-KeptIdle), pruneAt.Add(-KeptRuns), 500)
		s.must(err)
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	text := strings.Join(plan, "\n")
	for _, wanted := range []string{"using run_pkey on run r", "using run_of_zone on run l", "missed_window_pkey"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("the plan lacks %q:\n%s", wanted, text)
		}
	}
	if strings.Contains(text, "Sort") || strings.Contains(text, "Seq Scan") {
		t.Errorf("the plan reads or sorts everything:\n%s", text)
	}
}

// Two processes that prune at once take each row away once, and none waits for the other for ever.
func TestPrune_TwoAtOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	for i := range 40 {
		s.ended("many", fmt.Sprint(i), "done", 900-i, "1 day", `{"changed": 1}`)
	}
	taken := make(chan int, 2)
	for range 2 {
		go func() {
			sum := 0
			for range 20 { // what the other has locked is come back to
				err := s.db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
					items, err := ListOld(context.WithoutCancel(t.Context()), tx, pruneAt, 0, 7)
					if err != nil {
						return err
					}
					outcome, err := Prune(t.Context(), tx, pruneAt, items)
					sum += outcome.Changed
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			taken <- sum
		}()
	}
	same(t, "taken by both", <-taken+<-taken, 39)
	same(t, "runs that are left", s.number(`select count(*) from run`), 1)
}
