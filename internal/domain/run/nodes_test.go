package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/pg/cluster"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/schema"
)

// together has nodes with pools of their own, some of them processes, plan and work the same minute, and persons ask for the
// same windows; and gives how the executions ended.
func (s *marks) together(nodes, processes, persons int) (ended map[string]int) {
	s.Helper()
	ended = map[string]int{}
	var mu sync.Mutex
	add := func(more map[string]int) {
		mu.Lock()
		defer mu.Unlock()
		for how, n := range more {
			ended[how] += n
		}
	}
	start := make(chan struct{})
	var working sync.WaitGroup
	open := func() *pg.DB {
		db, err := pg.Open(s.Context(), s.url, schema.Migrations())
		s.must(err)
		s.Cleanup(db.Close)
		return db
	}
	for i := range nodes - processes {
		n := newNode(open(), s.url, fmt.Sprint("node ", i), markTasks(s.tasks), nil)
		n.copies = 2
		working.Go(func() {
			<-start
			if err := n.work(s.Context()); err != nil {
				s.Errorf("node %d: %v", i, err)
			}
			add(n.ended)
		})
	}
	for i := range persons {
		n := newNode(open(), s.url, fmt.Sprint("person ", i), markTasks(s.tasks), nil)
		working.Go(func() {
			<-start
			for _, task := range n.executor.Catalogue {
				results, err := n.executor.Run(s.Context(), n.db, s.actor, Wanted{Task: task.Name, Key: marked})
				if err != nil {
					s.Errorf("person %d: %v", i, err)
					continue
				}
				add(map[string]int{results[0].Ended.How: 1})
			}
		})
	}
	children := make([]*child, processes)
	for i := range children {
		children[i] = s.child(orders{Name: fmt.Sprint("process ", i), Copies: 2})
	}
	close(start)
	working.Wait()
	for i, c := range children {
		said := c.said()
		if said.Error != "" {
			s.Errorf("process %d: %s", i, said.Error)
		}
		add(said.Ended)
	}
	return ended
}

// Two, four, eight nodes plan and work the same minute, and two people ask for the same windows: one run of each window, each
// item once, and who comes too late is sent away politely.
func TestRun_ManyNodesAreAsOne(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 4, 8} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 10, 2, 5)
			s.due()
			ended := s.together(nodes, nodes/4, 2)
			t.Logf("ended: %v", ended)
			if runs := s.number(`select count(*) from run`); runs != s.tasks {
				t.Errorf("%d runs, want one of each of %d windows", runs, s.tasks)
			}
			if done := s.number(`select count(*) from run where state = 'done' and epoch = 1`); done != s.tasks || ended[EndedDone] != s.tasks {
				t.Errorf("%d runs were taken once and done, %d executions say so, want %d", done, ended[EndedDone], s.tasks)
			}
			// The tasks stand in each other's way: an item that stayed locked through all passes of a run is named by it.
			named := s.number(`select count(*) from refusal where list = 'refused' and reason = 'held_elsewhere'`)
			if s.doubled() != 0 || s.lost() != 0 || s.number(`select count(*) from mark`)+named != s.tasks*20 {
				t.Errorf("%d items are doubled, %d lost:\n%s", s.doubled(), s.lost(), strings.Join(s.remains(), "\n"))
			}
			if busy := s.number(`select sum(skips) from run`); busy != ended[EndedBusy] {
				t.Errorf("%d skips are counted, %d were answered", busy, ended[EndedBusy])
			}
			for how := range ended {
				if !slices.Contains([]string{EndedDone, EndedBusy, EndedStale, ""}, how) {
					t.Errorf("an execution ended as %q", how)
				}
			}
			// Alone, each window again names nothing, and does each item once: these tasks mark anew what is marked, so that a double shows.
			before, last := s.number(`select count(*) from mark`), s.node()
			for _, task := range last.executor.Catalogue {
				results, err := last.executor.Run(t.Context(), s.db, s.actor, Wanted{Task: task.Name, Key: marked, Again: true})
				s.must(err)
				if p := results[0].Progress; p.Refused != 0 || p.Done != 20 {
					t.Errorf("%s, again: %+v", task.Name, p)
				}
			}
			items := s.number(`select count(*) from (select distinct task, window_key, organisation_id, thing_id from mark) m`)
			if marks := s.number(`select count(*) from mark`); items != s.tasks*20 || marks != before+s.tasks*20 || s.doubled() != before {
				t.Errorf("once each window was run again %d items have %d marks, %d of them more than one; before there were %d", items, marks, s.doubled(), before)
			}
		})
	}
}

// Without the unique key a window is planned by each who finds it due, and what the test of many nodes looks at shows it. The
// line of the schedule alone would not forbid it: who asks by hand, or a clock that was set back, passes it by.
func TestRun_WithoutTheKeyAWindowIsDoubled(t *testing.T) {
	t.Parallel()
	for _, key := range []bool{true, false} {
		t.Run(fmt.Sprint("with the key ", key), func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 10, 2, 5)
			s.due()
			want := s.tasks
			if !key {
				s.owner(`alter table run drop constraint run_window_key`)
				want = 2 * s.tasks
			}
			s.look()
			s.owner(`update schedule set planned_until = planned_until - interval '1 hour'`) // as when the clock was set back
			s.together(2, 0, 0)
			if runs := s.number(`select count(*) from run`); runs != want {
				t.Errorf("%d runs, want %d", runs, want)
			}
			// Two runs of one window may find an item locked by the other and leave it: not all of them are doubled.
			if doubled := s.doubled(); (doubled > 0) == key {
				t.Errorf("%d items are doubled", doubled)
			}
		})
	}
}

// The program finds out before it plans anything.
func TestCheckConstraints_NamesTheOneThatIsMissing(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 2)
	s.must(markTasks(2).CheckConstraints(t.Context(), s.db))
	s.owner(`alter table run drop constraint run_window_key`)
	err := markTasks(2).CheckConstraints(t.Context(), s.db)
	if err == nil || !problem.Has(err, "schedule_constraint_missing") {
		t.Errorf("without the key: %v", err)
	}
	// An index that could not be built forbids nothing, and so does one that is not unique.
	s.owner(`insert into run (organisation_id, task, window_key, request, actor) values (0, 't', 'k', '{}', 'a'), (0, 't', 'k', '{}', 'a')`)
	owner, err := pgx.Connect(t.Context(), s.url)
	s.must(err)
	defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
	if _, err := owner.Exec(t.Context(), `create unique index concurrently run_window_key on run (organisation_id, task, window_key)`); err == nil {
		t.Fatal("a unique index was built over doubles")
	}
	if err := markTasks(2).CheckConstraints(t.Context(), s.db); err == nil || !problem.Has(err, "schedule_constraint_missing") {
		t.Errorf("with an invalid index: %v", err)
	}
	s.owner(`drop index run_window_key`, `create index run_window_key on run (organisation_id, task, window_key)`)
	if err := markTasks(2).CheckConstraints(t.Context(), s.db); err == nil || !problem.Has(err, "schedule_constraint_missing") {
		t.Errorf("with an index that is not unique: %v", err)
	}
	// One of the same name that covers other columns, or some rows only, is another.
	s.owner(`delete from run`)
	for _, other := range []string{`(organisation_id, window_key)`, `(organisation_id, task, window_key) where state = 'done'`} {
		s.owner(`drop index run_window_key`, `create unique index run_window_key on run `+other)
		if err := markTasks(2).CheckConstraints(t.Context(), s.db); err == nil || !problem.Has(err, "schedule_constraint_missing") {
			t.Errorf("with a key over %s: %v", other, err)
		}
	}
	s.owner(`drop index run_window_key`, `create unique index run_window_key on run (organisation_id, task, window_key)`)
	s.must(markTasks(2).CheckConstraints(t.Context(), s.db))
	// A check that was added without looking at the rows that are there forbids nothing of them.
	s.owner(`alter table run add constraint checked check (skips >= 0) not valid`)
	checked := markTasks(1)
	checked[0].Constraint, checked[0].Over = "checked", "run CHECK ((skips >= 0))"
	if err := checked.CheckConstraints(t.Context(), s.db); err == nil || !problem.Has(err, "schedule_constraint_missing") {
		t.Errorf("with a check that is not valid: %v", err)
	}
	s.owner(`alter table run validate constraint checked`)
	s.must(checked.CheckConstraints(t.Context(), s.db))
	// The engine's own key is looked for whatever the tasks rely on.
	s.owner(`drop index run_window_key`, `create unique index thing_key on thing (organisation_id, id)`)
	other := markTasks(1)
	other[0].Constraint, other[0].Over = "thing_key", "thing (organisation_id, id)"
	if err := other.CheckConstraints(t.Context(), s.db); err == nil || !problem.Has(err, "schedule_constraint_missing") {
		t.Errorf("without the engine's key: %v", err)
	}
}

// Back-ends are terminated, or the server is restarted, in the middle of chunks: each run ends as if nothing had happened.
func TestRun_SessionsAndServersThatDieChangeNothing(t *testing.T) {
	t.Parallel()
	undisturbed := newMarks(t, 4, 2, 1)
	undisturbed.due()
	undisturbed.must(undisturbed.node().work(t.Context()))
	want := undisturbed.remains()

	t.Run("terminated", func(t *testing.T) {
		t.Parallel()
		for _, step := range []string{"inserted", "taking", "listed", "done", "kept", "committed", "closing"} {
			t.Run(step, func(t *testing.T) {
				t.Parallel()
				s := newMarks(t, 4, 2, 1)
				s.due()
				broke := s.disturbed(t, s.db, step, func() {
					s.owner(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
				})
				if broke == 0 {
					t.Error("nothing broke: the sessions were not terminated")
				}
				equal(t, "the end", s.remains(), want)
			})
		}
	})
	t.Run("restarted", func(t *testing.T) {
		t.Parallel()
		parent := os.TempDir()
		if _, err := os.Stat("/dev/shm"); err == nil {
			parent = "/dev/shm"
		}
		dir, err := os.MkdirTemp(parent, "usher-test-")
		if err == nil {
			err = os.Chmod(dir, 0o755) // the server may run as another user
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		start := func() *cluster.Server {
			server, err := cluster.Start(context.WithoutCancel(t.Context()), filepath.Join(dir, "pg"), "fsync=off")
			if err != nil {
				t.Fatal(err)
			}
			return server
		}
		server := start()
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		db, err := pg.Open(t.Context(), server.URL("postgres"), schema.Migrations())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		s := markingOf(newThingsIn(t, db, server.URL("postgres"), 4, 2), 1)
		s.due()
		broke := s.disturbed(t, db, "done", func() {
			s.must(server.Stop())
			server = start()
			if server.URL("postgres") != s.url {
				t.Fatalf("the server is at %s, and was at %s", server.URL("postgres"), s.url)
			}
		})
		if broke == 0 {
			t.Error("nothing broke: the server was not restarted")
		}
		equal(t, "the end", s.remains(), want)
	})
}

// disturbed works through what is due, and has something happen the first two times that a step is passed.
func (s *marks) disturbed(t *testing.T, db *pg.DB, step string, happens func()) (broke int) {
	t.Helper()
	passed := 0
	at := func(name string) {
		if name != step {
			return
		}
		if passed++; passed <= 2 {
			happens()
		}
	}
	n := newNode(db, s.url, "disturbed", markTasks(s.tasks), at)
	n.tolerant = func(err error) {
		t.Logf("broken: %v", err)
		if broke++; broke > 20 {
			t.Fatalf("it breaks again and again: %v", err)
		}
		s.pass(20 * time.Second)
	}
	s.must(n.work(t.Context()))
	return broke
}

// The checkpoint set back to the start, in the middle or before the end: the run ends the same, with the same counters.
func TestRun_CursorSetBackToTheStartEndsTheSame(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) *things {
		s := newThings(t, 25, 1)
		s.owner(`update thing set broken = true where id in (3, 17)`)
		return s
	}
	for step, nth := range map[string]int{"listed": 4, "done": 4, "committed": 2, "ending": 1, "ended": 1} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			other, err := pgx.Connect(t.Context(), s.url)
			s.must(err)
			_, err = other.Exec(t.Context(), `begin; select from thing where id = 5 for update`)
			s.must(err)
			defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
			e := s.executor()
			e.wait = func(ctx context.Context, _ time.Duration) error { _, err := other.Exec(ctx, `rollback`); return err }
			passed := 0
			e.step = func(name string) {
				if name != step {
					return
				}
				if passed++; passed == nth {
					s.owner(`update run set cursor = ''`)
				}
			}
			ready := s.plan()
			_, err = e.Execute(t.Context(), s.db, ready)
			if step == "ending" || step == "ended" {
				s.must(err)
				s.owner(`update run set state = 'running', finished_at = null`)
			} else if !errors.Is(err, ErrLost) {
				t.Fatalf("the holder says %v, want that it lost the run", err)
			}
			s.owner(`update run set lease_until = clock() - interval '1 second'`)
			ready.Epoch = 1
			e.step = nil
			ended, err := e.Execute(t.Context(), s.db, ready)
			s.must(err)
			if ended.How != EndedDone {
				t.Errorf("ended: %+v", ended)
			}
			r := s.run(false)
			if p := r.Progress; p.Done != 23 || p.Refused != 2 || p.Expected != 25 || r.State != StateDone {
				t.Errorf("the run: %+v", r)
			}
			if got := s.refused(r.RunID); !slices.Equal(got, []string{"thing 3: item_failed", "thing 17: item_failed"}) {
				t.Errorf("refused: %q", got)
			}
			if n := s.number(`select count(*) from thing where changes = 1`); n != 23 {
				t.Errorf("%d things were changed once, want 23", n)
			}
			if n := s.number(`select count(*) from refusal where list = 'left'`); n != 0 {
				t.Errorf("%d items are neither done nor named", n)
			}
		})
	}
}

// plan writes the run of yesterday, as a planner does.
func (s *things) plan() (ready Ready) {
	s.Helper()
	window, err := s.task.Parse(yesterday)
	s.must(err)
	s.must(s.db.Tx(s.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		written, err := insertWindows(s.Context(), tx, []windowOf{{task: s.task.Name, window: window}}, Scheduler, time.Now())
		if err == nil {
			ready = written[0]
		}
		return err
	}))
	return ready
}
