package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/schema"
)

// marks are things of which each window makes a mark. What a chunk does is not idempotent on purpose: done twice, a thing has
// two marks, and nothing but the checkpoint and its fence forbids it.
type marks struct {
	*things
	tasks int
}

func newMarks(t testing.TB, perOrganisation, organisations, tasks int) *marks {
	t.Helper()
	return markingOf(newThings(t, perOrganisation, organisations), tasks)
}

func markingOf(things *things, tasks int) *marks {
	s := &marks{things: things, tasks: tasks}
	s.owner(
		`create table mark (id bigint generated always as identity, task text, window_key text, organisation_id bigint, thing_id bigint)`,
		`create table job (id bigint generated always as identity, run_id bigint, epoch int)`,
		// The clock of every session at once: it stands, or goes on since an instant of the real one; no row: the real one.
		`create table test_clock (at timestamptz, since timestamptz)`,
		`create or replace function clock() returns timestamptz language sql volatile
  as $$ select coalesce((select at + coalesce(clock_timestamp() - since, '0') from public.test_clock), clock_timestamp()) $$`,
		`call fence_tenant('mark')`, `grant select, insert, delete, update on mark, job, test_clock to usher_app`,
		`create function fail_for_broken_mark() returns trigger language plpgsql as $$
begin
  if (select broken from thing t where t.organisation_id = new.organisation_id and t.id = new.thing_id) then
    raise exception 'a scratch' using errcode = 'data_exception';
  end if;
  return new;
end $$`,
		`create trigger mark_fails before insert on mark for each row execute function fail_for_broken_mark()`)
	return s
}

// morning is shortly before the tasks are due: each marks the day before.
var morning = time.Date(2026, time.November, 29, 0, 30, 0, 0, time.UTC)

const marked = "2026-11-28"

func (s *marks) clock(at time.Time) {
	s.Helper()
	s.owner(`delete from test_clock`, `insert into test_clock values ('`+at.Format(time.RFC3339Nano)+`')`)
}

// runs has the clock go on, as the real one does, for tests that wait for a lease: what is due stays what was due.
func (s *marks) runs() {
	s.Helper()
	s.owner(`update test_clock set since = clock_timestamp()`)
}

func (s *marks) pass(d time.Duration) {
	s.Helper()
	s.owner(fmt.Sprintf(`update test_clock set at = at + interval '%d milliseconds'`, d.Milliseconds()))
}

// due has the schedule begin in the morning, and sets the clock behind the hour at which the tasks are due.
func (s *marks) due() {
	s.Helper()
	s.clock(morning)
	n := s.node()
	_, err := n.planner.Look(s.Context(), s.db)
	s.must(err)
	s.pass(time.Hour)
}

func (s *marks) node() *node { return newNode(s.db, s.url, "parent", markTasks(s.tasks), nil) }

func markTasks(n int) Catalogue {
	catalogue := make(Catalogue, n)
	for i := range n {
		catalogue[i] = markTask(fmt.Sprint("mark-", i+1), 2)
	}
	return catalogue
}

func markTask(name string, chunk int) Task {
	task := thingTask()
	task.Name, task.Work.Chunk = name, chunk
	task.Work.Do = func(ctx context.Context, tx pgx.Tx, window Window, items []Item) (outcome Outcome, err error) {
		organisations, ids := make([]int64, len(items)), make([]int64, len(items))
		for i, item := range items {
			organisations[i], ids[i] = item.OrganisationID, item.ID
		}
		rows, err := tx.Query(ctx, `
with free as (
  select t.organisation_id, t.id from thing t join unnest($1::bigint[], $2::bigint[]) w(organisation_id, id) using (organisation_id, id)
   order by t.organisation_id, t.id for no key update of t skip locked)
insert into mark (task, window_key, organisation_id, thing_id)
select $3, $4, organisation_id, id from free returning organisation_id, thing_id`, organisations, ids, name, window.Key)
		if err != nil {
			return outcome, err
		}
		free, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
		if err != nil {
			return outcome, err
		}
		outcome.Changed = len(free)
		for _, item := range items {
			if !slices.Contains(free, item.Key) {
				outcome.Held = append(outcome.Held, item)
			}
		}
		return outcome, nil
	}
	return task
}

// remains is what the schedule leaves: its runs, what they marked, whom they named, how far it is planned.
func (s *marks) remains() []string {
	s.Helper()
	return slices.Concat(
		s.texts(`select 'run ' || task || ' ' || window_key || ' ' || state || ' ' || counters::text || ' ' || error || ' due ' || due_at
  from run where window_start is not null order by 1`),
		s.texts(`select 'mark ' || task || ' ' || window_key || ' ' || organisation_id || '/' || thing_id || ' ' || count(*)
  from mark group by task, window_key, organisation_id, thing_id order by 1`),
		s.texts(`select r.task || ' ' || r.window_key || ' ' || f.list || ' ' || f.item || ' ' || f.name || ' ' || f.reason
  from refusal f join run r on r.organisation_id = f.organisation_id and r.id = f.run_id order by 1`),
		s.texts(`select 'planned ' || task || ' ' || zone || ' ' || date_trunc('hour', planned_until) || ' ' || missed from schedule order by 1`))
}

func (s *marks) texts(statement string) (texts []string) {
	s.Helper()
	s.asOwner(func(conn *pgx.Conn) {
		rows, err := conn.Query(s.Context(), statement)
		s.must(err)
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		s.must(err)
	})
	return texts
}

// doubled and lost count what must not be: items that a window marked more than once, and those that it neither marked nor named
// though its run is done.
func (s *marks) doubled() int {
	s.Helper()
	return s.number(`select count(*) from (
  select from mark group by task, window_key, organisation_id, thing_id having count(*) > 1) d`)
}

func (s *marks) lost() int {
	s.Helper()
	return s.number(`
select count(*) from run r cross join thing t
 where r.window_start is not null and r.state = 'done' and not t.broken
   and not exists (select from mark m where m.task = r.task and m.window_key = r.window_key
                    and m.organisation_id = t.organisation_id and m.thing_id = t.id)
   and not exists (select from refusal f where f.organisation_id = r.organisation_id and f.run_id = r.id
                    and f.list = 'refused' and f.item = t.organisation_id || '/' || t.id)`)
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// node is what a process does for the schedule: it plans, and executes what its queue holds. The queue is a table; a job is
// taken from it before it is executed, so that the jobs of a node that dies are lost.
type node struct {
	db       *pg.DB
	url      string
	planner  Planner
	executor Executor
	every    time.Duration // between two looks, while there is nothing to do
	copies   int           // how often each job is made: a queue may hand a job over more than once
	locks    bool          // a thing is locked by somebody else until the run has nothing else to do
	tolerant func(error)   // called for a broken session; nil: that ends the node
	ended    map[string]int
	planned  Planned
}

func newNode(db *pg.DB, url, name string, catalogue Catalogue, step func(string)) *node {
	n := &node{db: db, url: url, every: 20 * time.Millisecond, copies: 1, ended: map[string]int{}}
	n.planner = Planner{Catalogue: catalogue, Enqueue: n.enqueue, step: step}
	n.executor = Executor{Catalogue: catalogue, Enqueue: n.enqueue, Holder: name, step: step}
	return n
}

func (n *node) enqueue(ctx context.Context, tx pgx.Tx, ready []Ready) error {
	for _, r := range ready {
		if _, err := tx.Exec(ctx, `insert into job (run_id, epoch) select $1, $2 from generate_series(1, $3)`, r.RunID, r.Epoch, n.copies); err != nil {
			return err
		}
	}
	return nil
}

// work plans and executes until no run is unfinished; not for ever.
func (n *node) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	if n.locks {
		other, err := pgx.Connect(ctx, n.url)
		if err != nil {
			return err
		}
		defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
		if _, err := other.Exec(ctx, `begin; select from thing where id = 1 order by organisation_id limit 1 for update`); err != nil {
			return err
		}
		n.executor.wait = func(ctx context.Context, _ time.Duration) error { _, err := other.Exec(ctx, `rollback`); return err }
	}
	ticks := time.NewTicker(n.every)
	defer ticks.Stop()
	for {
		finished, err := n.turn(ctx)
		switch {
		case err != nil && n.tolerant != nil && ctx.Err() == nil && (pg.Interrupted(err) || errors.Is(err, ErrLost)):
			n.tolerant(err)
		case err != nil:
			return err
		case finished:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
	}
}

// turn looks what is due and executes what waits, until there is no job; finished: no run is unfinished.
func (n *node) turn(ctx context.Context) (finished bool, err error) {
	planned, err := n.planner.Look(ctx, n.db)
	if err != nil {
		return false, err
	}
	n.planned.Runs, n.planned.Missed, n.planned.Driven = n.planned.Runs+planned.Runs, n.planned.Missed+planned.Missed, n.planned.Driven+planned.Driven
	for {
		ready, found, err := n.job(ctx)
		if err != nil {
			return false, err
		}
		if !found {
			break
		}
		ended, err := n.executor.Execute(ctx, n.db, ready)
		if err != nil {
			return false, err
		}
		n.ended[ended.How]++
	}
	err = n.db.Read(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select not exists (select from run where state = 'running' and window_start is not null)`).Scan(&finished)
	})
	return finished, err
}

func (n *node) job(ctx context.Context) (ready Ready, found bool, err error) {
	err = n.db.Pool().QueryRow(ctx, `
delete from job where id = (select id from job order by id limit 1 for update skip locked) returning run_id, epoch`).Scan(&ready.RunID, &ready.Epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return ready, false, nil
	}
	return ready, err == nil, err
}

// A node that is to die or to be stopped is this program again, told by its environment what to do.
const childEnvironment = "USHER_TEST_NODE"

type orders struct {
	URL    string
	Name   string
	Tasks  int
	Step   string         // at this step; empty: at any
	Nth    int            // when it is passed for the nth time, from 1; 0: never
	Signal syscall.Signal // the process is sent this signal
	Budget time.Duration
	Copies int
	Locks  bool
	Once   bool // it looks once, and executes one job
	Asks   bool // it runs the window by hand instead
}

// report is what a child says at its end.
type report struct {
	Error string
	Lost  bool // the run was held no more
	Cut   bool // the session was ended
	Ended map[string]int
}

// ChildOrders tells what this process is to do when it is a child; empty: it is none.
func ChildOrders() string { return os.Getenv(childEnvironment) }

// BeChild does what the orders say, and ends the process.
func BeChild() {
	said, err := obey()
	if err != nil {
		said = report{Error: err.Error(), Lost: errors.Is(err, ErrLost), Cut: !errors.Is(err, ErrLost) && pg.Interrupted(err), Ended: said.Ended}
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		os.Exit(3)
	}
	os.Exit(0)
}

func obey() (report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*hangs) // it may be stopped while another node works
	defer cancel()
	var o orders
	if err := json.Unmarshal([]byte(ChildOrders()), &o); err != nil {
		return report{}, err
	}
	db, err := pg.Open(ctx, o.URL, schema.Migrations())
	if err != nil {
		return report{}, err
	}
	passed := 0
	n := newNode(db, o.URL, o.Name, markTasks(o.Tasks), func(step string) {
		if o.Step != "" && o.Step != step || o.Nth == 0 {
			return
		}
		if passed++; passed == o.Nth {
			_ = syscall.Kill(os.Getpid(), o.Signal)
			_, _ = os.Stdin.Read(make([]byte, 1)) // the signal may take a moment: it goes on when it is woken up
		}
	})
	n.executor.Budget, n.locks, n.copies = o.Budget, o.Locks, max(o.Copies, 1)
	switch {
	case o.Asks:
		_, err = n.executor.Run(ctx, db, account.Administrator(), Wanted{Task: "mark-1", Key: marked})
	case o.Once:
		_, err = n.turn(ctx)
	default:
		err = n.work(ctx)
	}
	return report{Ended: n.ended}, err
}

// child is a node in a process of its own.
type child struct {
	testing.TB
	*exec.Cmd
	output io.ReadCloser
	input  io.WriteCloser
}

func (s *marks) child(o orders) *child {
	s.Helper()
	if o.URL == "" {
		o.URL = s.url
	}
	o.Tasks = s.tasks
	if o.Name == "" {
		o.Name = "child"
	}
	text, err := json.Marshal(o)
	s.must(err)
	program, err := os.Executable()
	s.must(err)
	c := &child{TB: s, Cmd: exec.CommandContext(s.Context(), program)}
	c.Env = append(os.Environ(), childEnvironment+"="+string(text))
	c.Stderr = os.Stderr
	c.output, err = c.StdoutPipe()
	s.must(err)
	c.input, err = c.StdinPipe()
	s.must(err)
	s.must(c.Start())
	s.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c
}

// killed waits until the child was killed.
func (c *child) killed() {
	c.Helper()
	said, err := io.ReadAll(c.output)
	if err != nil {
		c.Fatal(err)
	}
	err = c.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.Fatalf("the child was not killed: %v\n%s", err, said)
	}
}

// stopped waits until the child is stopped.
func (c *child) stopped() {
	c.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		c.Fatalf("the child was not stopped: %v, %v", status, err)
	}
}

func (c *child) wake() {
	c.Helper()
	if err := errors.Join(c.Process.Signal(syscall.SIGCONT), c.input.Close()); err != nil {
		c.Fatal(err)
	}
}

// said waits for the end of the child.
func (c *child) said() (r report) {
	c.Helper()
	text, err := io.ReadAll(c.output)
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &r), c.Wait())
	}
	if err != nil {
		c.Fatalf("the child: %v\n%s", err, text)
	}
	return r
}
