package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// things is a task over a table of the test: each item is done once, and counts how often it was changed.
type things struct {
	testing.TB
	db    *pg.DB
	url   string
	actor timeline.Actor
	orgs  []int64
	made  []Ready // jobs that were made
	task  Task
}

func newThings(t testing.TB, perOrganisation, organisations int) *things {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	return newThingsIn(t, db, url, perOrganisation, organisations)
}

func newThingsIn(t testing.TB, db *pg.DB, url string, perOrganisation, organisations int) *things {
	t.Helper()
	s := &things{TB: t, db: db, url: url, actor: timeline.Actor{Name: "test", Installation: true}}
	for i := range organisations {
		org, err := account.AddOrganisation(t.Context(), db, s.actor, account.Organisation{
			Slug: fmt.Sprint("ecole-", i), Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		s.must(err)
		s.orgs = append(s.orgs, org.ID)
	}
	s.owner(`create table thing (
  organisation_id bigint not null, id bigint not null, done boolean not null default false, changes int not null default 0,
  broken boolean not null default false, primary key (organisation_id, id))`,
		`call fence_tenant('thing')`, `grant select, update on thing to usher_app`,
		fmt.Sprintf(`insert into thing select o.id, i from organisation o, generate_series(1, %d) i where o.id > 0`, perOrganisation),
		`create function fail_for_broken() returns trigger language plpgsql as $$
begin if new.broken then raise exception 'a scratch' using errcode = 'data_exception'; end if; return new; end $$`,
		`create trigger thing_fails before update of done on thing for each row execute function fail_for_broken()`)
	s.task = thingTask()
	return s
}

// thingTask is due each day at one o'clock.
func thingTask() Task {
	return Task{
		Name:        "do-things",
		Schedule:    Schedule{Cron: "0 1 * * *", Zone: "UTC", Period: DayBefore, CatchUp: CatchUpAll, Most: 10},
		Idempotency: "a thing is done once", Constraint: "run_window_key", Over: "run (organisation_id, task, window_key)", Reads: []string{"thing"}, Writes: []string{"thing"},
		Overdue: time.Hour,
		Work: Work{
			Chunk: 10, Patience: time.Millisecond,
			Count: func(ctx context.Context, tx pgx.Tx, _ Window, organisations []int64) (n int64, err error) {
				return n, tx.QueryRow(ctx, `select count(*) from thing where organisation_id = any($1)`, organisations).Scan(&n)
			},
			Next: func(ctx context.Context, tx pgx.Tx, _ Window, organisations []int64, after Key, most int) ([]Item, error) {
				rows, err := tx.Query(ctx, `
select organisation_id, id, 'T' || id, 'thing ' || id from thing
 where organisation_id = any($1) and (organisation_id, id) > ($2, $3) order by organisation_id, id limit $4`,
					organisations, after.OrganisationID, after.ID, most)
				if err != nil {
					return nil, err
				}
				return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i Item, err error) {
					return i, row.Scan(&i.OrganisationID, &i.ID, &i.Reference, &i.Name)
				})
			},
			Do: doThings,
		},
	}
}

func doThings(ctx context.Context, tx pgx.Tx, _ Window, items []Item) (outcome Outcome, err error) {
	organisations, ids := make([]int64, len(items)), make([]int64, len(items))
	for i, item := range items {
		organisations[i], ids[i] = item.OrganisationID, item.ID
	}
	rows, err := tx.Query(ctx, `
with free as (
  select t.organisation_id, t.id, t.done from thing t join unnest($1::bigint[], $2::bigint[]) w(organisation_id, id) using (organisation_id, id)
   order by t.organisation_id, t.id for update of t skip locked),
done as (
  update thing t set done = true, changes = changes + 1 from free
   where t.organisation_id = free.organisation_id and t.id = free.id and not free.done returning t.organisation_id, t.id)
select free.organisation_id, free.id, done.id is not null from free left join done using (organisation_id, id)`, organisations, ids)
	if err != nil {
		return outcome, err
	}
	free := map[Key]bool{}
	var key Key
	var changed bool
	if _, err = pgx.ForEachRow(rows, []any{&key.OrganisationID, &key.ID, &changed}, func() error {
		if free[key] = true; changed {
			outcome.Changed++
		}
		return nil
	}); err != nil {
		return outcome, err
	}
	for _, item := range items {
		if !free[item.Key] {
			outcome.Held = append(outcome.Held, item)
		}
	}
	return outcome, nil
}

func (s *things) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *things) owner(statements ...string) {
	s.Helper()
	s.asOwner(func(conn *pgx.Conn) {
		for _, statement := range statements {
			_, err := conn.Exec(s.Context(), statement)
			s.must(err)
		}
	})
}

func (s *things) number(statement string) (n int) {
	s.Helper()
	s.asOwner(func(conn *pgx.Conn) { s.must(conn.QueryRow(s.Context(), statement).Scan(&n)) })
	return n
}

// asOwner does something in a session of the owner that ends at once: the tests look often.
func (s *things) asOwner(fn func(*pgx.Conn)) {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.url)
	s.must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(s.Context())) }()
	fn(conn)
}

func (s *things) executor() Executor {
	return Executor{
		Catalogue: Catalogue{s.task}, Holder: "test/1",
		Enqueue: func(_ context.Context, _ pgx.Tx, ready []Ready) error { s.made = append(s.made, ready...); return nil },
	}
}

const yesterday = "2026-11-28"

func (s *things) run(again bool) Result {
	s.Helper()
	results, err := s.executor().Run(s.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday, Again: again})
	s.must(err)
	if len(results) != 1 {
		s.Fatalf("%d windows, want 1", len(results))
	}
	return results[0]
}

func (s *things) refused(id int64) (names []string) {
	s.Helper()
	s.must(s.db.Read(s.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		refusals, err := Refusals(s.Context(), tx, account.System, id, ListRefused, 0, 1000)
		for _, r := range refusals {
			names = append(names, r.Name+": "+r.Reason)
		}
		return err
	}))
	return names
}

func TestRun_DoesEachItemOnceAndSaysSoWhenRepeated(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 3)
	first := s.run(false)
	if want := (Progress{Expected: 75, Done: 75, Changed: 75}); first.State != StateDone || first.Progress != want || first.Ended.How != EndedDone {
		t.Errorf("the first run: %+v, want %+v", first, want)
	}
	second := s.run(false)
	if !second.Already || second.RunID != first.RunID || second.Ended.How != "" {
		t.Errorf("the second run: %+v", second)
	}
	again := s.run(true)
	if want := (Progress{Expected: 75, Done: 75}); again.State != StateDone || again.Progress != want || again.Already {
		t.Errorf("from the beginning: %+v, want %+v", again, want)
	}
	if n := s.number(`select count(*) from thing where changes = 1`); n != 75 {
		t.Errorf("%d things were changed once, want 75", n)
	}
}

func TestRun_AnItemThatFailsIsSetAsideByName(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.owner(`update thing set broken = true where id in (3, 17, 18)`)
	r := s.run(false)
	if want := (Progress{Expected: 25, Done: 22, Changed: 22, Refused: 3}); r.State != StateDone || r.Progress != want {
		t.Errorf("the run: %+v, want %+v", r, want)
	}
	want := []string{"thing 3: item_failed", "thing 17: item_failed", "thing 18: item_failed"}
	if got := s.refused(r.RunID); !slices.Equal(got, want) {
		t.Errorf("refused: %q, want %q", got, want)
	}
	s.owner(`update thing set broken = false`)
	again := s.run(true)
	if again.Progress.Changed != 3 || again.Progress.Refused != 0 || len(s.refused(again.RunID)) != 0 {
		t.Errorf("after the repair: %+v, refused %q", again, s.refused(again.RunID))
	}
}

func TestRun_TooManyRefusalsFailIt(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.task.Work.MostRefused = 4
	s.owner(`update thing set broken = true where id > 10`)
	r := s.run(false)
	if r.State != StateFailed || r.Progress.Done != 10 || r.Error == "" || r.Ended.How != EndedFailed {
		t.Errorf("the run: %+v", r)
	}
	s.owner(`update thing set broken = false`)
	if again := s.run(false); again.State != StateDone || again.Progress.Done != 25 || again.Progress.Changed != 15 {
		t.Errorf("after the repair: %+v", again)
	}
}

// What is locked is come back to; what stays locked is named, and the run ends.
func TestRun_WhatSomebodyElseHasLockedIsComeBackToOrNamed(t *testing.T) {
	t.Parallel()
	for _, freed := range []bool{true, false} {
		t.Run(fmt.Sprint("freed ", freed), func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 25, 1)
			other := testdb.Owner(t, s.url)
			_, err := other.Exec(t.Context(), `begin; select from thing where id in (2, 13) for update`)
			s.must(err)
			e := s.executor()
			passes := 0
			e.wait = func(context.Context, time.Duration) error {
				if passes++; passes == 2 && freed {
					_, err := other.Exec(t.Context(), `commit`)
					return err
				}
				return nil
			}
			results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
			s.must(err)
			r := results[0]
			want, named := Progress{Expected: 25, Done: 25, Changed: 25}, []string(nil)
			if !freed {
				want = Progress{Expected: 25, Done: 23, Changed: 23, Refused: 2}
				named = []string{"thing 2: held_elsewhere", "thing 13: held_elsewhere"}
			}
			if r.State != StateDone || r.Progress != want {
				t.Errorf("the run: %+v, want %+v", r, want)
			}
			if got := s.refused(r.RunID); !slices.Equal(got, named) {
				t.Errorf("refused: %q, want %q", got, named)
			}
			if left := s.number(`select count(*) from refusal where list = 'left'`); left != 0 {
				t.Errorf("%d items are neither done nor named", left)
			}
		})
	}
}

func TestRun_HeldElsewhereNotOneStatementOfTheTaskRuns(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	var inside Result
	e := s.executor()
	e.Progress = func(p Progress) {
		if p.Done == 10 {
			untouched := s.executor()
			untouched.Catalogue[0].Work.Next = func(context.Context, pgx.Tx, Window, []int64, Key, int) ([]Item, error) {
				t.Error("a statement of the task ran while somebody else held the run")
				return nil, nil
			}
			untouched.Catalogue[0].Work.Count = func(context.Context, pgx.Tx, Window, []int64) (int64, error) {
				t.Error("the items were counted while somebody else held the run")
				return 0, nil
			}
			results, err := untouched.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
			s.must(err)
			inside = results[0]
		}
	}
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if inside.Ended.How != EndedBusy || inside.Ended.Held.Holder != "test/1" || inside.Ended.Held.Overdue {
		t.Errorf("the second: %+v", inside.Ended)
	}
	if results[0].State != StateDone || results[0].Progress.Changed != 25 {
		t.Errorf("the first: %+v", results[0])
	}
	if skips := s.number(`select skips from run where task = 'do-things'`); skips != 1 {
		t.Errorf("%d skips were counted, want 1", skips)
	}
}

// Who has a run done that the schedule planned, and that nobody had taken yet, is written down as well.
func TestRun_ByHandOfWhatWasPlannedSaysWho(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	s.must(s.db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		window, err := s.task.Parse(yesterday)
		if err != nil {
			return err
		}
		now, err := pg.Now(t.Context(), tx)
		if err != nil {
			return err
		}
		_, err = insertWindows(t.Context(), tx, []windowOf{{task: s.task.Name, window: window}}, Scheduler, now)
		return err
	}))
	results, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if len(results) != 1 || results[0].State != StateDone {
		t.Fatalf("%+v", results)
	}
	asked := fmt.Sprintf(`select count(*) from timeline where organisation_id = 0 and kind = 'window_asked' and actor = '%s' and run_id = %d`,
		s.actor.Name, results[0].RunID)
	if n := s.number(asked); n != 1 {
		t.Errorf("who asked stands there %d times, want once", n)
	}
	_, err = s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if n := s.number(asked); n != 1 {
		t.Errorf("who asked for what was done stands there as well: %d", n)
	}
}

func TestRun_StoppedItFinishesTheChunkAndHandsOver(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	e := s.executor()
	stop := make(chan struct{})
	e.Stop = stop
	e.Progress = func(p Progress) {
		if p.Done == 10 {
			close(stop)
		}
	}
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if r := results[0]; r.Ended.How != EndedOver || r.Progress.Done != 10 || len(s.made) != 1 {
		t.Fatalf("stopped: %+v, jobs %v", r, s.made)
	}
	ended, err := s.executor().Execute(t.Context(), s.db, s.made[0])
	s.must(err)
	if ended.How != EndedDone || s.number(`select count(*) from thing where changes = 1`) != 25 {
		t.Errorf("the next one: %+v", ended)
	}
	stale, err := s.executor().Execute(t.Context(), s.db, s.made[0])
	s.must(err)
	if stale.How != EndedStale {
		t.Errorf("the same job once more: %+v", stale)
	}
}

func TestRun_RefusesWhatIsNoWindowYet(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	for key, code := range map[string]string{"2999-01-01": "window_not_due", "yesterday": "window_invalid", "2026-11-28@UTC": "window_invalid"} {
		_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key})
		if !problem.Has(err, code) {
			t.Errorf("%s: %v, want %s", key, err, code)
		}
	}
	_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: "fly"})
	if !problem.Has(err, "task_unknown") {
		t.Errorf("an unknown task: %v", err)
	}
	manager := timeline.Actor{Name: "awa", OrganisationID: s.orgs[0], Role: account.Manager}
	if _, err := s.executor().Run(t.Context(), s.db, manager, Wanted{Task: s.task.Name}); !problem.Has(err, "role_forbids") {
		t.Errorf("a manager: %v", err)
	}
	if n := s.number(`select count(*) from run`); n != 0 {
		t.Errorf("%d runs were written", n)
	}
}

// A window that is over and not yet due is left to the schedule: run by hand then, it would be done before all of it has settled.
func TestRun_AWindowIsLeftToTheScheduleUntilItIsDue(t *testing.T) {
	t.Parallel()
	task := thingTask()
	end := time.Date(2026, time.November, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		now  time.Time
		code string
	}{
		{"before its end", end.Add(-time.Minute), "window_not_due"},
		{"five minutes after its end", end.Add(5 * time.Minute), "window_not_due"},
		{"a minute before it is due", end.Add(59 * time.Minute), "window_not_due"},
		{"when it is due", end.Add(time.Hour), ""},
		{"a year later", end.AddDate(1, 0, 0), ""},
	} {
		if _, err := task.window(yesterday, time.UTC, c.now); (err == nil) != (c.code == "") || err != nil && !problem.Has(err, c.code) {
			t.Errorf("%s: %v, want %q", c.name, err, c.code)
		}
	}
	task.Schedule = Schedule{Cron: "0 5 2 * *", PerZone: true, Period: MonthBefore, CatchUp: CatchUpAll, Most: 3}
	bamako, err := time.LoadLocation("Africa/Bamako")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.window("2026-10", bamako, time.Date(2026, time.November, 2, 4, 59, 0, 0, time.UTC)); !problem.Has(err, "window_not_due") {
		t.Errorf("a month before the second of the next: %v", err)
	}
	if _, err := task.window("2026-10", bamako, time.Date(2026, time.November, 2, 5, 0, 0, 0, time.UTC)); err != nil {
		t.Errorf("a month on the second of the next: %v", err)
	}
}

// An item whose statement is ended by the server, or whose row is damaged, is named like any other that fails: the others are done.
func TestRun_AnItemThatTheServerEndsIsSetAsideByName(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"57014", "XX001"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 25, 1)
			s.owner(`create or replace function fail_for_broken() returns trigger language plpgsql as $$
begin if new.broken then raise exception 'ended' using errcode = '`+code+`'; end if; return new; end $$`,
				`update thing set broken = true where id = 13`)
			r := s.run(false)
			if want := (Progress{Expected: 25, Done: 24, Changed: 24, Refused: 1}); r.State != StateDone || r.Progress != want {
				t.Errorf("the run: %+v, want %+v", r, want)
			}
			if got := s.refused(r.RunID); !slices.Equal(got, []string{"thing 13: item_failed"}) {
				t.Errorf("refused: %q", got)
			}
		})
	}
}
