package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
)

// unguarded takes away what keeps a hand from writing anything into the rows of runs and of the schedule.
func (s *things) unguarded() {
	s.Helper()
	s.owner(`alter table run drop constraint run_cursor_whole, drop constraint run_counters_whole, drop constraint run_instants_finite`,
		`alter table schedule drop constraint schedule_instants_real`)
}

// What could not be read is refused by the database, whoever writes it.
func TestRows_ThatCouldNotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.run(false)
	s.owner(`insert into schedule (task, zone, planned_until) values ('do-things', 'UTC', clock())`)
	for _, statement := range []string{
		`update run set counters = '"much"'`, `update run set counters = '[]'`, `update run set counters = '{"done": "x"}'`,
		`update run set counters = '{"done": 1.5}'`, `update run set counters = '{"refused": -1}'`, `update run set counters = '{"changed": null}'`,
		`update run set counters = '{"expected": 9223372036854775808}'`,
		`update run set cursor = 'x'`, `update run set cursor = '{}'`, `update run set cursor = '{"after":{"OrganisationID":1,"ID":"x"}}'`,
		`update run set due_at = 'infinity'`, `update run set kept_at = '-infinity'`, `update run set finished_at = 'infinity'`,
		`update run set epoch = -1`, `update run set fruitless = -1`, `update run set earlier_of = 'x'`,
		`update schedule set planned_until = 'infinity'`, `update schedule set planned_until = '-infinity'`,
		`update schedule set planned_until = '0001-01-01Z'`, `update schedule set missed_at = 'infinity'`, `update schedule set missed = -1`,
	} {
		s.asOwner(func(conn *pgx.Conn) {
			if _, err := conn.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "23514") {
				t.Errorf("%s: %v, want that a check refuses it", statement, err)
			}
		})
	}
	// What the program writes is not: the longest checkpoint that there can be, and each of its fields.
	s.owner(`update run set cursor = '{"after":{"OrganisationID":9223372036854775807,"ID":9223372036854775807},"left":1,"pass":2,"row":3,"fruitful":true,"fruitless":1,"alone":50,"most":25}'`,
		`update run set counters = '{"expected":9223372036854775807,"done":1,"changed":0,"refused":0}'`)
}

// A row that somebody made unreadable is named, and blinds nobody who looks at the others; repeated, it is as any other.
func TestOverview_NamesRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"counters that are no object": `counters = '"much"'`,
		"counters that are no number": `counters = '{"done": "x", "changed": 0, "refused": 1}'`,
		"a negative number":           `counters = '{"done": -5, "changed": 0, "refused": 1}'`,
		"no end in time":              `counters = '[]', due_at = 'infinity', finished_at = 'infinity', kept_at = '-infinity', taken_at = 'infinity'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 5, 1)
			s.unguarded()
			run := func(key string, again bool) Result {
				t.Helper()
				results, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key, Again: again})
				s.must(err)
				return results[0]
			}
			run("2026-11-26", false)
			run("2026-11-27", false)
			s.owner(`update run set ` + set + ` where window_key = '2026-11-26'`)
			if r := run("2026-11-26", false); !r.Already || !r.Unreadable {
				t.Errorf("asked for, it is %+v", r)
			}
			l := s.line(time.Now())
			if len(l.Unreadable) != 1 || l.Unreadable[0].Key != "2026-11-26" || l.Last.Key != "2026-11-27" || l.Last.Unreadable || l.Last.Progress.Done != 5 {
				t.Errorf("the line: %+v", l)
			}
			windows, err := Windows(t.Context(), s.db, s.actor, s.task)
			s.must(err)
			if len(windows) != 2 || windows[0].Unreadable || !windows[1].Unreadable {
				t.Errorf("the windows: %+v", windows)
			}
			_, err = Late(t.Context(), s.db, Catalogue{s.task})
			s.must(err)
			if r := run("2026-11-26", true); r.State != StateDone || r.Progress.Done != 5 || r.Unreadable {
				t.Errorf("repeated, it is %+v", r)
			}
			if l := s.line(time.Now()); len(l.Unreadable) != 0 {
				t.Errorf("after that: %+v", l)
			}
		})
	}
}

// A run whose checkpoint or counters somebody made unreadable would stop each of its holders: it ends as failed, says why, and is
// repeated like any other.
func TestRun_WhoseRowCannotBeReadEndsAsFailed(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		`cursor = 'x'`: "its checkpoint cannot be read",
		`cursor = '{"after":{"OrganisationID":99999999999999999999,"ID":1}}'`:                    "its checkpoint cannot be read",
		`cursor = '{"after":{"OrganisationID":1,"ID":1}}', counters = '{"done": "x"}'`:           "its counters cannot be read",
		`cursor = '{"after":{"OrganisationID":1,"ID":1}}', counters = '{"done": -1}', epoch = 0`: "its counters cannot be read",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 5, 1)
			s.unguarded()
			ready := s.plan()
			s.owner(`update run set ` + set)
			ended, err := s.executor().Execute(t.Context(), s.db, ready)
			s.must(err)
			if ended.How != EndedFailed {
				t.Errorf("it ended %+v", ended)
			}
			l := s.line(time.Now())
			if l.Failed != 1 || len(l.Failures) != 1 || !strings.HasPrefix(l.Failures[0].Error, want) {
				t.Errorf("the line: %+v", l)
			}
			if r := s.run(false); r.State != StateDone || r.Progress.Changed != 5 {
				t.Errorf("repeated, it is %+v", r)
			}
		})
	}
}

// A line that is planned until no real time neither stops the planner nor has it walk through all time: it goes on from now, and
// that is said.
func TestLook_ALinePlannedUntilNoRealTimeGoesOnFromNow(t *testing.T) {
	t.Parallel()
	for _, until := range []string{"infinity", "-infinity", "0001-01-01 00:00:00+00"} {
		t.Run(until, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 1, 1, 2)
			s.unguarded()
			s.due()
			s.owner(`update schedule set planned_until = '` + until + `' where task = 'mark-1'`)
			began := time.Now()
			planned := s.look()
			if time.Since(began) > 20*time.Second {
				t.Errorf("the look took %v", time.Since(began))
			}
			equal(t, "windows of the other task", s.windows(), []string{"mark-2 2026-11-28"})
			if len(planned.TurnedBack) != 1 || planned.TurnedBack[0].Task != "mark-1" || planned.TurnedBack[0].Until == "" || planned.Missed != 0 {
				t.Errorf("planned: %+v", planned)
			}
			s.line(time.Now())
			s.clock(morning.AddDate(0, 0, 1).Add(time.Hour))
			if planned := s.look(); planned.Runs != 2 || len(planned.TurnedBack) != 0 {
				t.Errorf("on the next day: %+v", planned)
			}
		})
	}
}

// Who runs a window by hand and loses it is told what happened and where to look.
func TestRun_ThatIsLostIsSaidInASentence(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	e := s.executor()
	e.step = func(name string) {
		if name == "done" {
			s.owner(`update run set epoch = epoch + 1, holder = 'another'`)
		}
	}
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	said, ok := problem.Of(err)
	if !ok || said.Code != "run_lost" || said.Facts["window"] != yesterday || said.Facts["task"] != s.task.Name || !errors.Is(err, ErrLost) {
		t.Errorf("it says %v", err)
	}
	if len(results) != 1 || results[0].State == StateDone || s.number(`select count(*) from thing where done`) != 0 {
		t.Errorf("it did %+v", results)
	}
}

// What an earlier execution reported stays when the window is begun anew, by name and with its counters, and the timeline says who
// asked.
func TestRun_AgainKeepsTheEarlierReport(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.owner(`update thing set broken = true where id in (3, 17)`)
	first := s.run(false)
	s.owner(`update thing set broken = false`)
	awa := s.actor
	awa.Name = "Awa"
	results, err := s.executor().Run(t.Context(), s.db, awa, Wanted{Task: s.task.Name, Key: yesterday, Again: true})
	s.must(err)
	second := results[0]
	if second.RunID == first.RunID || second.Progress.Changed != 2 {
		t.Errorf("begun anew: %+v after %+v", second, first)
	}
	equal(t, "what the first refused", s.refused(first.RunID), []string{"thing 3: item_failed", "thing 17: item_failed"})
	equal(t, "what the second refused", s.refused(second.RunID), nil)
	s.must(See(t.Context(), s.db, s.actor, first.RunID, func(_ pgx.Tx, r Run) error {
		p, whole := ReadProgress(r.Counters)
		if !r.Earlier || r.Window != yesterday || r.State != StateDone || r.Actor != "test" || !whole || p != first.Progress || r.FinishedAt == nil {
			t.Errorf("the first is %+v", r)
		}
		return nil
	}))
	s.must(See(t.Context(), s.db, s.actor, second.RunID, func(tx pgx.Tx, r Run) error {
		earlier, err := Earlier(t.Context(), tx, r)
		if r.Earlier || r.Window != yesterday || r.Actor != "Awa" || !slices.Equal(earlier, []int64{first.RunID}) {
			t.Errorf("the second is %+v, after %v", r, earlier)
		}
		return err
	}))
	windows, err := Windows(t.Context(), s.db, s.actor, s.task)
	s.must(err)
	if len(windows) != 1 || windows[0].ID != second.RunID || windows[0].AskedAt == nil {
		t.Errorf("the windows: %+v", windows)
	}
	var said []string
	s.asOwner(func(conn *pgx.Conn) {
		rows, err := conn.Query(t.Context(), `
select actor || ' ' || run_id || ' ' || coalesce(facts->'earlier'->>'run', 'new') || ' ' || (facts->>'window') from timeline
 where organisation_id = 0 and kind = 'window_asked' order by id`)
		s.must(err)
		said, err = pgx.CollectRows(rows, pgx.RowTo[string])
		s.must(err)
	})
	equal(t, "the timeline", said, []string{
		fmt.Sprintf("test %d new %s", first.RunID, yesterday), fmt.Sprintf("Awa %d %d %s", second.RunID, first.RunID, yesterday),
	})
	s.run(false) // it is done: nobody asked for anything
	if n := s.number(`select count(*) from timeline where kind = 'window_asked'`); n != 2 {
		t.Errorf("%d windows were asked for, want 2", n)
	}
}

// What ran to its end while the clock was ahead did its work too early: it is run again when it is due, and its report stays.
func TestLook_WhatEndedAheadOfTheClockIsRunAgainWhenItIsDue(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	s.due()
	s.must(s.node().work(t.Context())) // 2026-11-28
	s.clock(morning.AddDate(0, 0, 2).Add(time.Hour))
	s.must(s.node().work(t.Context())) // 2026-11-29 and 30, too early
	equal(t, "windows ahead", s.windows(), []string{"mark-1 2026-11-28", "mark-1 2026-11-29", "mark-1 2026-11-30"})
	s.clock(morning.Add(2 * time.Hour))
	if planned := s.look(); len(planned.TurnedBack) != 1 || planned.Released != 2 {
		t.Errorf("planned: %+v", planned)
	}
	equal(t, "windows after it was set back", s.texts(`select task || ' ' || window_key from run where window_start is not null order by 1`), []string{"mark-1 2026-11-28"})
	equal(t, "and what stays of them", s.texts(`select earlier_of || ' ' || state from run where window_start is null order by 1`),
		[]string{"2026-11-29 done", "2026-11-30 done"})
	s.clock(morning.AddDate(0, 0, 1).Add(time.Hour))
	s.must(s.node().work(t.Context()))
	equal(t, "the day after", s.texts(`select window_key || ' ' || state from run where window_start is not null order by 1`),
		[]string{"2026-11-28 done", "2026-11-29 done"})
	if planned := s.look(); planned.Runs != 0 || len(planned.TurnedBack) != 0 {
		t.Errorf("looked again: %+v", planned)
	}
}

// A chunk is followed by the pause of its task, and the last one by nothing.
func TestRun_PausesBetweenChunks(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.task.Work.Pause = 7 * time.Second
	e := s.executor()
	var waits []time.Duration
	e.wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	_, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if want := []time.Duration{7 * time.Second, 7 * time.Second, 7 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("it waited %v, want %v: after each chunk of three", waits, want)
	}
}

// Who comes while somebody holds a run is told whether that lasts for longer than it ever should.
func TestRun_HeldForTooLongIsSaid(t *testing.T) {
	t.Parallel()
	for held, overdue := range map[string]bool{"59 minutes": false, "61 minutes": true} {
		s := newThings(t, 5, 1)
		ready := s.plan()
		now := time.Now().Truncate(time.Second) // a clock that stands: no lease lapses while the machine is busy
		s.owner(`update run set epoch = 1, holder = 'elsewhere/1', lease_until = n.at + interval '5 seconds', due_at = n.at - interval '3 hours',
  taken_at = n.at - interval '` + held + `' from (select '` + now.Format(time.RFC3339) + `'::timestamptz) n(at)`)
		ended, err := s.executor().Execute(t.Context(), s.at(now), ready)
		s.must(err)
		if ended.How != EndedBusy || ended.Held.Holder != "elsewhere/1" || ended.Held.Overdue != overdue {
			t.Errorf("held for %s: %+v", held, ended)
		}
		if s.number(`select skips from run`) != 1 || s.number(`select count(*) from thing where done`) != 0 {
			t.Error("whoever came too late is not counted, or did something")
		}
	}
}

// No transaction of a run names more organisations than it may: not to count, not on the first way, and not on the way back to what
// others had locked.
func TestRun_NamesABoundedNumberOfOrganisationsAtOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.owner(`insert into organisation (slug, name, country, time_zone, locale, currency)
select 'many-' || i, 'Many', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1, 1100) i`,
		`insert into thing select id, 1 from organisation where slug like 'many-%'`)
	other, err := pgx.Connect(t.Context(), s.url)
	s.must(err)
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	_, err = other.Exec(t.Context(), `begin; select from thing for update`)
	s.must(err)
	most := 0
	named := func(ctx context.Context, tx pgx.Tx) {
		var n int
		s.must(tx.QueryRow(ctx, `select cardinality(string_to_array(current_setting('app.organisations'), ','))`).Scan(&n))
		most = max(most, n)
	}
	count, do := s.task.Work.Count, s.task.Work.Do
	s.task.Work.Chunk = 2000
	s.task.Work.Count = func(ctx context.Context, tx pgx.Tx, w Window, organisations []int64) (int64, error) {
		named(ctx, tx)
		return count(ctx, tx, w, organisations)
	}
	s.task.Work.Do = func(ctx context.Context, tx pgx.Tx, w Window, items []Item) (Outcome, error) {
		named(ctx, tx)
		return do(ctx, tx, w, items)
	}
	e := s.executor()
	e.wait = func(ctx context.Context, _ time.Duration) error { _, err := other.Exec(ctx, `rollback`); return err }
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if want := (Progress{Expected: 1101, Done: 1101, Changed: 1101}); results[0].Progress != want {
		t.Errorf("the run: %+v, want %+v", results[0].Progress, want)
	}
	if most > organisationsOf+1 || most < organisationsOf {
		t.Errorf("%d organisations were named at once, want at most %d and the installation", most, organisationsOf)
	}
}

// What a run did for an organisation: its latest window that is over, begun when there was the organisation, done, and not refused.
func TestDoneFor_IsWhatTheRunsSay(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 2)
	s.owner(`update organisation set created_at = '2026-11-01Z'`)
	run := func(key, state, begun string) {
		t.Helper()
		s.owner(fmt.Sprintf(`
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at, begun_at, lease_until, state, finished_at)
values (0, 'do-things', '%[1]s', '{}', 'a', 'UTC', '%[1]sZ', '%[1]sZ'::timestamptz + interval '1 day', '%[1]sZ', '%[3]sZ', '2026-11-30Z', '%[2]s',
  case '%[2]s' when 'running' then null else '2026-11-30Z'::timestamptz end)`, key, state, begun))
	}
	at := s.at(time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC))
	wants := func(organisation int64, want string) {
		t.Helper()
		start, err := DoneFor(t.Context(), at, s.actor, s.task.Name, organisation)
		s.must(err)
		got := ""
		if !start.IsZero() {
			got = start.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("organisation %d: done for %q, want %q", organisation, got, want)
		}
	}
	wants(s.orgs[0], "")
	run("2026-11-24", "done", "2026-11-25")
	run("2026-11-25", "done", "2026-11-26")
	run("2026-11-26", "failed", "2026-11-27")
	run("2026-11-27", "running", "2026-11-28")
	run("2026-11-29", "done", "2026-11-29") // the clock was ahead
	s.owner(fmt.Sprintf(`insert into refusal (organisation_id, run_id, list, item, reason)
select 0, id, 'refused', '%d/0', 'item_failed' from run where window_key = '2026-11-25'`, s.orgs[1]))
	wants(s.orgs[0], "2026-11-25")
	wants(s.orgs[1], "2026-11-24")
	s.owner(fmt.Sprintf(`update organisation set created_at = '2026-11-27 12:00Z' where id = %d`, s.orgs[0]))
	wants(s.orgs[0], "")
	stranger := s.actor
	stranger.Installation, stranger.OrganisationID = false, s.orgs[1]
	if _, err := DoneFor(t.Context(), at, stranger, s.task.Name, s.orgs[0]); !problem.Has(err, "organisation_unknown") {
		t.Errorf("a stranger is told: %v", err)
	}
}

// The latest windows are read from the end of an index, without statistics: not all of them, to be sorted.
func TestOverview_ReadsTheLatestWindowsFromTheEndOfAnIndex(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.many(20_000)
	for want, which := range map[string]string{
		"run_of_zone":  `and zone = $3 and state <> 'running' order by window_end desc, id desc limit 1`,
		"run_of_task":  `and $3 <> '' order by window_end desc, id desc limit 50`,
		"run_unmended": `and zone = $3 and ` + failed + latestFirst,
	} {
		s.must(s.db.Read(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
			if err := inOrder(t.Context(), tx); err != nil {
				return err
			}
			rows, err := tx.Query(t.Context(), `explain `+selectWindowRuns+which, pg.PlanAnew, account.System, s.task.Name, "UTC")
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Scan Backward using "+want) || strings.Contains(plan, "Sort  ") {
				t.Errorf("%s is not read from its end:\n%s", want, plan)
			}
			return err
		}))
	}
}

// What a chunk writes of its run stands in no index, nor in the condition of one: else each chunk would write the row into all of
// the table's indexes anew.
func TestChunk_KeepsTheRunsRowInPlace(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	var touched, counted []string
	s.must(s.db.Read(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `
with of as (
  select distinct i.indexrelid::regclass::text as index, a.attname
    from pg_index i join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = i.indexrelid and d.refobjid = i.indrelid
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = d.refobjsubid
   where i.indrelid = 'run'::regclass)
select array(select index || ': ' || attname from of where attname in ('cursor', 'counters', 'lease_until', 'kept_at', 'fruitless', 'error')),
       array(select index from of where attname = 'unmended')`).Scan(&touched, &counted)
	}))
	if len(touched) > 0 {
		t.Errorf("each chunk writes into: %v", touched)
	}
	if !slices.Equal(counted, []string{"run_unmended"}) {
		t.Errorf("the conditions of indexes are not seen: %v", counted)
	}
}

// many are as many windows of a minute, of which each two thousandth failed, and others refused something.
func (s *things) many(windows int) {
	s.Helper()
	s.owner(fmt.Sprintf(`
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at, state, finished_at, lease_until, counters)
select 0, 'do-things', 'w' || i, '{}', 'a', 'UTC', w, w + interval '1 minute', w, case when i %% 2000 = 0 then 'failed' else 'done' end, w, w,
       case when i %% 1500 = 0 then '{"done":1,"changed":1,"refused":1}' else '{"done":1,"changed":1,"refused":0}'::jsonb end
  from (select i, clock() - i * interval '1 minute' as w from generate_series(1, %d) i) g`, windows))
}

// BenchmarkOverview looks at a task with a million windows, right after they were written: there are no statistics.
func BenchmarkOverview(b *testing.B) {
	s := newThings(b, 1, 1)
	s.many(1_000_000)
	for name, look := range map[string]func() error{
		"overview": func() error { _, _, err := Overview(b.Context(), s.db, s.actor, Catalogue{s.task}); return err },
		"windows":  func() error { _, err := Windows(b.Context(), s.db, s.actor, s.task); return err },
		"late":     func() error { _, err := Late(b.Context(), s.db, Catalogue{s.task}); return err },
		"done for": func() error { _, err := DoneFor(b.Context(), s.db, s.actor, s.task.Name, s.orgs[0]); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.must(look())
			}
		})
	}
}
