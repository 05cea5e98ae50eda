package run

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"usher/internal/base/pg"
	"usher/internal/domain/schema"
)

// hangs is after how long a test gives up what does not come. A machine that is busy takes long, and that is no fault; how soon somebody
// else goes on is measured by usher bench batch, and the tests log what they saw.
const hangs = 3 * time.Minute

// atOnce runs subtests that mostly wait for a lease to lapse: they take one place among those that run in parallel.
type atOnce struct {
	*testing.T
	wg sync.WaitGroup
}

func (a *atOnce) run(name string, test func(t *testing.T)) { a.wg.Go(func() { a.Run(name, test) }) }

func (a *atOnce) wait() { a.wg.Wait() }

// untilTaken has a node look each second, as a process does, until it has kept a chunk, and tells how long that took.
func (s *marks) untilTaken(since time.Time, name string) (n *node, took time.Duration) {
	s.Helper()
	n = newNode(s.db, s.url, name, markTasks(s.tasks), nil)
	n.every = time.Second
	step := func(step string) {
		if took == 0 && (step == "committed" || step == "ended") {
			took = time.Since(since)
		}
	}
	n.executor.step = step
	s.must(n.work(s.Context()))
	return n, took
}

// frozen is all that a holder writes, and by which transaction it was written.
func (s *marks) frozen() []string {
	s.Helper()
	return append(s.remains(), s.texts(`select 'run ' || id || ' epoch ' || epoch || ' by ' || xmin || ' ' || cursor || ' ' || holder from run
 union all select 'mark ' || id || ' by ' || xmin from mark
 union all select 'refusal ' || id || ' by ' || xmin from refusal
 union all select 'schedule ' || task || ' by ' || xmin from schedule order by 1`)...)
}

// A holder that was stopped past its lease, wherever, is replaced within seconds; when it wakes up it keeps nothing, says that
// it holds the run no more, and changes not one row.
func TestRun_StoppedPastItsLeaseItKeepsNothing(t *testing.T) {
	t.Parallel()
	waiting := atOnce{T: t}
	defer waiting.wait()
	for _, c := range []struct {
		step string
		nth  int
	}{
		{"taking", 1}, {"taken", 1}, {"listed", 2}, {"done", 2}, {"kept", 2}, {"committed", 2}, {"ending", 1}, {"closing", 1},
	} {
		waiting.run(c.step, func(t *testing.T) {
			s := newMarks(t, 3, 2, 1)
			s.due()
			s.runs() // the lease lapses by the real clock
			_, err := s.node().planner.Look(t.Context(), s.db)
			s.must(err)
			zombie := s.child(orders{Step: c.step, Nth: c.nth, Signal: syscall.SIGSTOP, Once: true, Name: "zombie"})
			zombie.stopped()
			_, took := s.untilTaken(time.Now(), "successor")
			t.Logf("stopped at %s: the next chunk was kept after %v", c.step, took.Round(10*time.Millisecond))
			if s.doubled() != 0 || s.lost() != 0 {
				t.Errorf("%d items are doubled, %d lost", s.doubled(), s.lost())
			}
			before := s.frozen()
			zombie.wake()
			said := zombie.said()
			if !said.Lost && !said.Cut {
				t.Errorf("the zombie does not notice: %+v", said)
			}
			t.Logf("the zombie says: %s", said.Error)
			equal(t, "after the zombie woke up", s.frozen(), before)
		})
	}
}

// The planner that was stopped while it planned keeps the windows from nobody.
func TestLook_StoppedInTheMiddleOthersPlan(t *testing.T) {
	t.Parallel()
	waiting := atOnce{T: t}
	defer waiting.wait()
	for _, step := range []string{"moved", "inserted", "enqueued"} {
		waiting.run(step, func(t *testing.T) {
			s := newMarks(t, 1, 1, 1)
			s.due()
			zombie := s.child(orders{Step: step, Nth: 1, Signal: syscall.SIGSTOP, Once: true})
			zombie.stopped()
			stopped := time.Now()
			// Which waits until the server has ended the session of the one that was stopped.
			s.owner(fmt.Sprintf(`set lock_timeout = %d`, hangs.Milliseconds()), `select from schedule for update`)
			if planned := s.look(); planned.Runs != 1 {
				t.Errorf("planned: %+v", planned)
			}
			took := time.Since(stopped)
			t.Logf("stopped at %s: planned by another after %v", step, took.Round(10*time.Millisecond))
			before := s.frozen()
			zombie.wake()
			if said := zombie.said(); !said.Cut {
				t.Errorf("the zombie does not notice: %+v", said)
			}
			equal(t, "after the zombie woke up", s.frozen(), before)
		})
	}
}

// Without the fence the zombie's next chunk is kept, and what the other tests look at shows it: first its epoch and its cursor
// are given back to it, as if neither were compared, then only one of them, which the other one still makes good.
func TestRun_StoppedPastItsLeaseWithoutTheFenceDoubles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		undo    string
		doubles int
	}{
		"neither is compared":       {`update run set (epoch, cursor) = (select epoch, cursor from stopped)`, 2 + 2},
		"the epoch is not compared": {`update run set epoch = (select epoch from stopped)`, 0},
		"the cursor is not":         {`update run set cursor = (select cursor from stopped)`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 3, 2, 1)
			s.due()
			zombie := s.child(orders{Step: "committed", Nth: 1, Signal: syscall.SIGSTOP, Once: true})
			zombie.stopped()
			s.owner(`create table stopped as select epoch, cursor from run`)
			s.pass(time.Minute)
			s.must(s.node().work(t.Context()))
			if s.doubled() != 0 {
				t.Fatalf("%d items are doubled before the zombie woke up", s.doubled())
			}
			s.owner(c.undo, `update run set state = 'running', finished_at = null`)
			zombie.wake()
			said := zombie.said()
			if got := s.doubled(); got != c.doubles {
				t.Errorf("%d items are doubled, want %d (the zombie: %+v)", got, c.doubles, said)
			}
		})
	}
}

// A holder that is killed, or cut off from the database without a word, is replaced within seconds as well.
func TestRun_HolderKilledOrCutOffIsReplaced(t *testing.T) {
	t.Parallel()
	waiting := atOnce{T: t}
	defer waiting.wait()
	for _, how := range []string{"killed", "cut off"} {
		for _, step := range []string{"kept", "committed"} {
			waiting.run(how+" at "+step, func(t *testing.T) {
				s := newMarks(t, 3, 2, 1)
				s.due()
				s.runs()
				var took time.Duration
				if how == "killed" {
					s.child(orders{Step: step, Nth: 2, Signal: syscall.SIGKILL}).killed()
					_, took = s.untilTaken(time.Now(), "successor")
				} else {
					took = s.cutOff(step)
				}
				t.Logf("%s at %s: the next chunk was kept after %v", how, step, took.Round(10*time.Millisecond))
				if s.doubled() != 0 || s.lost() != 0 || s.number(`select count(*) from run where state = 'done'`) != 1 {
					t.Errorf("%d items are doubled, %d lost", s.doubled(), s.lost())
				}
			})
		}
	}
}

// cutOff executes on a line that goes dead at a step, and has another node take over.
func (s *marks) cutOff(step string) time.Duration {
	s.Helper()
	wire := newWire(s, s.url)
	db, err := pg.Open(s.Context(), wire.url, schema.Migrations())
	s.must(err)
	dead := make(chan time.Time, 1)
	passed := 0
	n := newNode(db, wire.url, "cut off", markTasks(s.tasks), func(at string) {
		if at != step {
			return
		}
		if passed++; passed == 2 {
			wire.dead.Store(true)
			dead <- time.Now()
		}
	})
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { _, err := n.turn(ctx); ended <- err }()
	since := <-dead
	_, took := s.untilTaken(since, "successor")
	before := s.frozen()
	cancel() // its process would wait for the end of the line for longer than this test
	wire.close()
	if err := <-ended; err == nil {
		s.Error("the node that was cut off ended in peace")
	}
	db.Close()
	equal(s, "after the end of the line", s.frozen(), before)
	return took
}
