package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/testdb"
	"usher/internal/edge/cli"
)

// desk is an installation with one school, as whoever administers it sees it from a shell.
type desk struct {
	*testing.T
	url   string
	owner *pgx.Conn
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, url: url, owner: owner(t, url)}
	d.usher(0, "organisation", "add", "ecole", "--name", "École", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF")
	return d
}

func (d *desk) usher(code int, args ...string) string {
	d.Helper()
	var out, errs bytes.Buffer
	if got := cli.Main(append([]string{"--database", d.url, "--lang", "en"}, args...), &out, &errs); got != code {
		d.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, &out, &errs)
	}
	return out.String() + errs.String()
}

func (d *desk) set(statement string) {
	d.Helper()
	if _, err := d.owner.Exec(d.Context(), statement); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) number(statement string) (n int) {
	d.Helper()
	if err := d.owner.QueryRow(d.Context(), statement).Scan(&n); err != nil {
		d.Fatal(err)
	}
	return n
}

func (d *desk) wants(said string, texts ...string) {
	d.Helper()
	for _, text := range texts {
		if !strings.Contains(said, text) {
			d.Errorf("it lacks %q:\n%s", text, said)
		}
	}
}

// How far a window is, how fast, and how long it will take, by whom; for people and programs.
func TestSchedule_TellsSpeedAndRemainingTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.usher(0, "run", "seal-timeline")
	d.set(`update run set state = 'running', finished_at = null, holder = 'node-1/17', lease_until = clock() + interval '1 minute', taken_at = clock(),
  begun_at = '2026-11-29 01:00:00Z', kept_at = '2026-11-29 01:10:00Z', counters = '{"expected": 4800, "done": 1196, "changed": 9, "refused": 4}'`)
	d.set(`update run set lease_until = clock() + interval '9 seconds'`)
	d.wants(strings.Join(strings.Fields(strings.ReplaceAll(d.usher(0, "schedule", "seal-timeline"), "│", " ")), " "), "node-1/17", "1,200 of 4,800", "2 a second", "about 30m0s left")
	d.wants(d.usher(0, "schedule", "--json"), `"per_second": 2`, `"remaining_seconds": 1800`, `"holder": "node-1/17"`, `"held_since": `)
}

// A window that somebody else holds is skipped: one line, no error; and a second one on the other channel when they hold it for too long.
func TestRun_SkipsWhatIsHeldElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.set(`create or replace function clock() returns timestamptz language sql volatile as $$ select timestamptz '2026-11-29 10:00Z' $$`) // no lease lapses
	d.set(`insert into run (organisation_id, id, task, window_key, request, actor, zone, window_start, window_end, due_at, started_at, taken_at, begun_at, epoch, holder, lease_until)
values (0, 7, 'seal-timeline', '2026-11-28', '{}', 'schedule', 'UTC', '2026-11-28Z', '2026-11-29Z', '2026-11-29 01:00Z', '2026-11-29 01:00Z',
  '2026-11-29 09:30Z', '2026-11-29 01:00Z', 1, 'elsewhere/1', '2026-11-29 10:00:05Z')`)
	run := func(args ...string) (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"--database", d.url, "--lang", "en"}, append(args, "run", "seal-timeline", "--window", "2026-11-28")...)
		if code := cli.Main(args, &stdout, &stderr); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	out, errs := run()
	if !strings.HasPrefix(out, "skip: seal-timeline, 2026-11-28, is held by elsewhere/1 since ") || strings.Count(out, "\n") != 1 || errs != "" {
		t.Errorf("it says %q and %q", out, errs)
	}
	out, errs = run("--json")
	d.wants(out, `"state": "running"`, `"holder": "elsewhere/1"`, `"held_since": "2026-11-29T09:30:00Z"`, `"run": 7`)
	if errs != "" || strings.Contains(out, "overdue") {
		t.Errorf("it says %q and %q", out, errs)
	}
	d.set(`update run set taken_at = '2026-11-29 07:00Z'`)
	out, errs = run()
	if !strings.HasPrefix(out, "skip: ") || strings.Count(out, "\n") != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "elsewhere/1 has held it for longer than it should take") {
		t.Errorf("held for too long, it says %q and %q", out, errs)
	}
	out, _ = run("--json")
	d.wants(out, `"overdue": true`)
	if n := d.number(`select skips from run where id = 7`); n != 4 {
		t.Errorf("%d skips are counted, want 4", n)
	}
	if n := d.number(`select count(*) from timeline_seal`); n != 0 {
		t.Errorf("%d seals were made", n)
	}
}

// On what a task relies is said where its windows are listed.
func TestSchedule_SaysOnWhatATaskRelies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.wants(d.usher(0, "schedule", "seal-timeline"), "Seal the timeline (seal-timeline).", "Each day at 01:00 (UTC).", "at most 31 windows at once",
		"Twice is once: one seal an organisation and day, by “timeline_seal_pkey” over timeline_seal (organisation_id, day).",
		"Reads organisation, timeline, timeline_seal, endpoint; writes timeline_seal, timeline_seal_aside, timeline, ", "has had no window yet")
}

// A row that somebody made unreadable is named with what to do, in the list and in its report, and blinds nobody.
func TestSchedule_NamesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.usher(0, "run", "seal-timeline")
	d.set(`alter table run drop constraint run_counters_whole`)
	d.set(`update run set counters = '"much"'`)
	d.wants(d.usher(0, "schedule"), "somebody changed the row of run 1 by hand, and its counters cannot be read. Repeat it", "--again.")
	d.wants(d.usher(0, "schedule", "--json"), `"unreadable": [`)
	d.wants(d.usher(0, "schedule", "seal-timeline"), "done; its counters cannot be read")
	d.wants(d.usher(0, "report", "1"), "Its counters cannot be read", "Once that is mended", "--again")
	d.wants(d.usher(0, "report", "1", "--json"), `"unreadable": true`)
	d.usher(0, "run", "seal-timeline", "--again")
	if said := d.usher(0, "schedule"); strings.Contains(said, "cannot be read") {
		t.Errorf("repeated, it is still said:\n%s", said)
	}
	again := fmt.Sprint(d.number(`select max(id)::int from run`))
	d.wants(d.usher(0, "report", again), "Earlier executions of this window, the latest first: 1.")
	d.wants(d.usher(0, "report", again, "--json"), `"earlier": false`, `"earlier_runs": [`)
	said := d.usher(0, "report", "1")
	d.wants(said, "An earlier execution of this window")
	if strings.Contains(said, "Once that is mended") {
		t.Errorf("an earlier execution asks to be repeated:\n%s", said)
	}
}

// Seals that are taken away from the end are missed, because the runs say that they were made.
func TestTimelineCheck_MissesTheLatestSeal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.set(`update organisation set created_at = clock() - interval '9 days' where id > 0`)
	d.usher(0, "run", "seal-timeline")
	d.wants(d.usher(0, "timeline", "check"), "the timeline is as it was sealed. 1 seal")
	d.set(`delete from timeline_seal`)
	d.wants(d.usher(1, "timeline", "check"), "The schedule says that the day", "and there is no seal of it")
	d.wants(d.usher(1, "timeline", "check", "--json"), `"what": "seals_gone"`, `"ok": false`)
}

// A server that is told to stop while a window is under way finishes its chunk, hands the window over and ends; another goes on from there,
// and nothing is done twice.
func TestServe_ToldToStopHandsItsWindowOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.set(`insert into organisation (slug, name, country, time_zone, locale, currency)
select 'ecole-' || i, 'École', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1, 119) i`) // three chunks of 50, 50 and 20
	d.set(`update organisation set created_at = clock() - interval '9 days' where id > 0`)
	d.set(`create function waits() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return new; end $$`)
	d.set(`create trigger waits before insert on timeline_seal for each row when (new.organisation_id = ` +
		fmt.Sprint(d.number(`select id::int from organisation where id > 0 order by id offset 60 limit 1`)) + `) execute function waits()`)
	d.set(`insert into schedule (task, zone, planned_until)
values ('seal-timeline', 'UTC', date_trunc('day', clock() - interval '1 hour', 'UTC') + interval '30 minutes')`)
	d.set(`select pg_advisory_lock(4711)`)
	serve := func() (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		command := program(t, []string{"USHER_DATABASE_URL=" + d.url}, "serve", "--listen", "127.0.0.1:0")
		var said bytes.Buffer
		command.Stdout, command.Stderr = &said, &said
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return command, &said
	}
	first, said := serve()
	awaitBlocked(t, d.url)
	if n := d.number(`select count(*) from timeline_seal`); n != 50 {
		t.Errorf("%d organisations are sealed before the second chunk, want 50", n)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.set(`select pg_advisory_unlock(4711)`)
	if code := exitCode(t, first.Wait()); code != 0 {
		t.Errorf("exit code %d\n%s", code, said)
	}
	if n := d.number(`select (counters->>'done')::int from run where task = 'seal-timeline' and state = 'running' and (lease_until is null or lease_until < clock())`); n != 50 && n != 100 {
		t.Errorf("handed over after %d organisations, want 50 or 100", n)
	}
	d.set(`create function says_done() returns trigger language plpgsql as $$ begin perform pg_notify('done', new.task); return new; end $$`)
	d.set(`create trigger says_done after update of state on run for each row when (new.task = 'seal-timeline' and new.state = 'done') execute function says_done()`)
	d.set(`listen done`)
	second, said := serve()
	within, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := d.owner.WaitForNotification(within); err != nil {
		t.Fatalf("nobody went on: %v\n%s", err, said)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	for statement, want := range map[string]int{
		`select count(*) from timeline_seal`: 120, `select count(distinct organisation_id) from timeline_seal`: 120,
		`select (counters->>'done')::int from run where task = 'seal-timeline'`:    120,
		`select (counters->>'changed')::int from run where task = 'seal-timeline'`: 120,
		`select count(*) from run where task = 'seal-timeline' and epoch >= 2`:     1,
	} {
		if got := d.number(statement); got != want {
			t.Errorf("%s: %d, want %d", statement, got, want)
		}
	}
}

// A window that somebody interrupts is not done, whatever was: the command fails, says how it goes on, and does the rest when it is given
// again.
func TestRun_InterruptedIsNotDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.set(`insert into organisation (slug, name, country, time_zone, locale, currency)
select 'ecole-' || i, 'École', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1, 119) i`) // three chunks of 50, 50 and 20
	d.set(`update organisation set created_at = clock() - interval '9 days' where id > 0`)
	d.set(`create function waits() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(4711); return new; end $$`)
	d.set(`create trigger waits before insert on timeline_seal for each row when (new.organisation_id = ` +
		fmt.Sprint(d.number(`select id::int from organisation where id > 0 order by id offset 60 limit 1`)) + `) execute function waits()`)
	d.set(`select pg_advisory_lock(4711)`)
	command := program(t, []string{"USHER_DATABASE_URL=" + d.url}, "run", "seal-timeline")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	awaitBlocked(t, d.url)
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	d.set(`select pg_advisory_unlock(4711)`)
	if code := exitCode(t, command.Wait()); code != 1 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	d.wants(errs.String(), "stopped after", "and not done; whoever serves goes on from there, or the same command.")
	if n := d.number(`select count(*) from run where task = 'seal-timeline' and state = 'running' and lease_until is null`); n != 1 {
		t.Errorf("%d runs were handed over, want 1", n)
	}
	d.wants(d.usher(0, "run", "seal-timeline"), "done (run 1): 120 items")
}
