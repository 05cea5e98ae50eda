package job

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"usher/internal/base/queue"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
)

// One organisation whose seal never ends holds up no other: River's workers do the window, and it ends as done, with the one named.
func TestWindowWorker_ASlowItemIsNamedAndTheOthersAreDone(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	for i := range 3 {
		_, err := account.AddOrganisation(t.Context(), db, account.Administrator(), account.Organisation{
			Slug: fmt.Sprint("ecole-", i), Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`update organisation set created_at = clock() - interval '9 days' where id > 0`,
		`create function waits() returns trigger language plpgsql as $$ begin perform pg_sleep(600); return new; end $$`,
		`create function slow() returns bigint language sql stable as $$ select id from organisation where slug = 'ecole-1' $$`,
		`create trigger waits before insert on timeline_seal for each row when (new.organisation_id = slow()) execute function waits()`,
		`grant execute on function slow() to usher_app`,
		`insert into schedule (task, zone, planned_until) values ('seal-timeline', 'UTC', date_trunc('day', clock() - interval '1 hour', 'UTC') + interval '30 minutes')`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	executor := Executor(nil)
	executor.Statement, executor.Budget = time.Second, time.Second
	worker := &windowWorker{db: db, executor: executor, log: slog.Default()}
	work := queue.Work{Workers: river.NewWorkers(), Queues: map[string]int{RunWindow{}.Queue(): 1}}
	river.AddWorker(work.Workers, worker)
	working, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- queue.Run(working, db.Pool(), work) }()
	go func() { ended <- plan(working, db, run.Catalogue{sealTimeline()}) }()
	deadline := time.Now().Add(2 * time.Minute)
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for state := ""; state != "done"; <-ticks.C {
		var counters string
		err := owner.QueryRow(t.Context(), `select coalesce(max(state), ''), coalesce(max(counters::text || ' ' || error), '') from run where task = 'seal-timeline'`).
			Scan(&state, &counters)
		if err != nil {
			t.Fatal(err)
		}
		if state == "failed" || time.Now().After(deadline) {
			t.Fatalf("the run is %q: %s", state, counters)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	rows, err := owner.Query(t.Context(), `select reference || ' ' || reason from refusal
union all select 'sealed ' || slug from timeline_seal s join organisation o on o.id = s.organisation_id order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := "[ecole-1 item_failed sealed ecole-0 sealed ecole-2]"; fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// River's deadline is behind the end of the longest execution, whose last chunk begins just within its budget and meets an item that the
// server ends.
func TestWindowWorker_WaitsForTheLongestExecution(t *testing.T) {
	t.Parallel()
	executor := Executor(nil)
	executor.Budget = windowBudget
	worker := &windowWorker{executor: executor}
	if got, least := worker.Timeout(nil), windowBudget+2*time.Minute; got <= least {
		t.Errorf("a job ends after %v: a statement of a minute may begin within %v, and one more after it", got, windowBudget)
	}
}
