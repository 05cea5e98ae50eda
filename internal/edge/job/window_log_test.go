package job

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
)

// standing is a database whose clock stands, so that no lease lapses while the machine is busy, and its owner.
func standing(t *testing.T) (*pg.DB, *pgx.Conn) {
	t.Helper()
	_, address := testdb.NewWithURL(t)
	address += "&app.clock=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339))
	db, err := pg.Open(t.Context(), address, schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, testdb.Owner(t, address)
}

// What becomes of a run is told in the log of a server, which holds nothing below LogLevel.
func TestWindowWorker_SaysInTheLogWhatNobodyElseIsTold(t *testing.T) {
	t.Parallel()
	db, owner := standing(t)
	change := func(statement string, arguments ...any) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), statement, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := account.AddOrganisation(t.Context(), db, account.Administrator(), account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	if err != nil {
		t.Fatal(err)
	}
	executor := Executor(nil)
	executor.Enqueue = func(context.Context, pgx.Tx, []run.Ready) error { return nil }
	results, err := executor.Run(t.Context(), db, account.Administrator(), run.Wanted{Task: "seal-timeline"})
	if err != nil || len(results) != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	id := results[0].RunID
	work := func() string {
		t.Helper()
		var said bytes.Buffer
		worker := windowWorker{db: db, executor: executor, log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: LogLevel}))}
		if err := worker.Work(t.Context(), &river.Job[RunWindow]{Args: RunWindow{RunID: id, Epoch: 1}}); err != nil {
			t.Errorf("what is said already is an error, too: %v", err)
		}
		return said.String()
	}
	wants := func(said string, texts ...string) {
		t.Helper()
		if strings.Count(said, "\n") != 1 {
			t.Errorf("it is not one line: %q", said)
		}
		for _, text := range append(texts, fmt.Sprintf("run=%d", id)) {
			if !strings.Contains(said, text) {
				t.Errorf("it lacks %q: %q", text, said)
			}
		}
	}

	change(`update run set state = 'running', finished_at = null, holder = 'elsewhere/1', lease_until = clock() + interval '5 seconds', taken_at = clock(),
	  due_at = clock() where id = $1`, id)
	said := work()
	wants(said, "skip", "holder=elsewhere/1")
	if strings.Contains(said, "ERROR") {
		t.Errorf("a skip is said as an error: %q", said)
	}

	change(`update run set lease_until = null, holder = '', cursor = '' where id = $1`, id)
	change(`create function collides() returns trigger language plpgsql as $$ begin raise exception 'a collision' using errcode = '40001'; end $$`)
	change(`create constraint trigger collides after update of cursor on run deferrable initially deferred for each row execute function collides()`)
	wants(work(), "ERROR", "a collision")
}

// A run that is late, and one that is held for too long, are said as errors, which a server's log always holds.
func TestAlarm_SaysWhatIsLateAndHeldForTooLong(t *testing.T) {
	t.Parallel()
	db, owner := standing(t)
	change := func(statement string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	change(`insert into run (organisation_id, id, task, window_key, request, actor, zone, window_start, window_end, due_at, started_at, taken_at, epoch, holder, lease_until)
values (0, 7, 'seal-timeline', '2026-11-28', '{}', 'schedule', 'UTC', '2026-11-28Z', '2026-11-29Z', clock() - interval '3 hours', clock() - interval '3 hours',
  clock() - interval '119 minutes', 1, 'elsewhere/1', clock() + interval '9 seconds')`)
	log := func(act func(*slog.Logger)) string {
		t.Helper()
		var said bytes.Buffer
		act(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: LogLevel})))
		return said.String()
	}
	var sounding alarm
	sound := func() string {
		return log(func(to *slog.Logger) { sounding.log = to; sounding.look(t.Context(), db, Catalogue()) })
	}
	skip := func() string {
		return log(func(to *slog.Logger) {
			worker := windowWorker{db: db, executor: Executor(nil), log: to}
			if err := worker.Work(t.Context(), &river.Job[RunWindow]{Args: RunWindow{RunID: 7, Epoch: 1}}); err != nil {
				t.Error(err)
			}
		})
	}
	if said := sound(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "a run is late") ||
		!strings.Contains(said, "task=seal-timeline window=2026-11-28 run=7") || !strings.Contains(said, "holder=elsewhere/1") {
		t.Errorf("the alarm says %q", said)
	}
	if said := sound(); said != "" {
		t.Errorf("five minutes later, it says again %q", said)
	}
	sounding.at[7] = time.Now().Add(-alarmAgain)
	if said := sound(); strings.Count(said, "\n") != 1 {
		t.Errorf("an hour later, it says %q", said)
	}
	if said := skip(); !strings.Contains(said, "level=WARN") || !strings.Contains(said, "overdue=false") {
		t.Errorf("held for less than two hours, it says %q", said)
	}
	change(`update run set taken_at = clock() - interval '121 minutes', lease_until = clock() + interval '9 seconds'`)
	if said := skip(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "overdue=true") {
		t.Errorf("held for more than two hours, it says %q", said)
	}
	change(`update run set due_at = clock() - interval '1 hour'`)
	if said := sound(); said != "" {
		t.Errorf("in time, the alarm says %q", said)
	}
	// What failed is said once by each process, whichever ended it, and at once by one that begins.
	change(`update run set state = 'failed', finished_at = clock()`)
	for nth, want := range []int{1, 0, 0} {
		if said := sound(); strings.Count(said, "\n") != want {
			t.Errorf("the look %d after it failed says %q", nth, said)
		}
	}
	sounding = alarm{}
	if said := sound(); strings.Count(said, "\n") != 1 {
		t.Errorf("another process says %q", said)
	}
}

// An alarm that waits for the database lets the planner of its process go on.
func TestAlarm_IsBounded(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	if _, err := owner.Exec(t.Context(), `begin; lock table run`); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	sounding := alarm{log: slog.New(slog.NewTextHandler(&said, nil)), within: 100 * time.Millisecond}
	sounding.look(t.Context(), db, Catalogue())
	if !strings.Contains(said.String(), "nobody knows whether runs are late") {
		t.Errorf("it says %q", said.String())
	}
}
