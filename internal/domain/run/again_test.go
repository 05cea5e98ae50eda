package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
)

// Again, by two people at once, on a window that failed and on one that is done: it is begun anew by one of them, the other one
// is told who holds it or finds it done, and no thing is changed twice.
func TestRun_AgainByTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, before := range []State{StateDone, StateFailed} {
		t.Run(string(before), func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 40, 2)
			s.task.Work.MostRefused = 1
			if before == StateFailed {
				s.owner(`update thing set broken = true where id in (31, 32)`)
			}
			first := s.run(false)
			if first.State != before {
				t.Fatalf("the first run: %+v", first)
			}
			s.owner(`update thing set broken = false`)
			var working sync.WaitGroup
			results := make([]Result, 2)
			for i := range results {
				working.Go(func() {
					e := s.executor()
					e.Enqueue = nil
					all, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday, Again: true})
					if err != nil {
						t.Error(err)
						return
					}
					results[i] = all[0]
				})
			}
			working.Wait()
			done := 0
			for _, r := range results {
				switch {
				case r.Ended.How == EndedDone:
					done++
				case r.Ended.How == EndedBusy, r.Ended.How == EndedStale:
				case r.Already: // it was running when this one wanted it, and done when this one read it
				default:
					t.Errorf("ended: %+v", r)
				}
			}
			if done == 0 {
				t.Errorf("nobody began it anew: %+v", results)
			}
			last := s.run(false)
			if !last.Already || last.Progress.Done != 80 || last.Progress.Refused != 0 || len(s.refused(last.RunID)) != 0 {
				t.Errorf("in the end: %+v, refused %v", last, s.refused(last.RunID))
			}
			if n := s.number(`select count(*) from thing where changes = 1`); n != 80 {
				t.Errorf("%d things were changed once, want 80", n)
			}
			if n := s.number(`select count(*) from run where window_start is not null`); n != 1 {
				t.Errorf("%d runs of the window, want 1", n)
			}
		})
	}
}

// Whoever holds the run when it is wanted again keeps it: it is begun anew only when it has ended.
func TestRun_AgainWhileItIsHeldLeavesItToItsHolder(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	var inside Result
	e := s.executor()
	e.Progress = func(p Progress) {
		if p.Done == 10 {
			inside = s.run(true)
		}
	}
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	s.must(err)
	if inside.Ended.How != EndedBusy || inside.Progress.Done != 10 || results[0].State != StateDone || results[0].Progress.Changed != 25 {
		t.Errorf("the second: %+v, the first: %+v", inside, results[0])
	}
}

type ofTest struct{}

// A run that nobody can keep a chunk of is taken again, less and less often, and ends as failed after a number of holdings: it
// does not take down whoever takes it for ever. What stopped it is told.
func TestRun_WhoseHoldersKeepNothingEndsAsFailed(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(ctx context.Context, tx pgx.Tx, _ Window, items []Item) (Outcome, error){
		"session lost": func(ctx context.Context, tx pgx.Tx, _ Window, _ []Item) (Outcome, error) {
			s := ctx.Value(ofTest{}).(*marks)
			s.owner(fmt.Sprintf(`select pg_terminate_backend(%d)`, tx.Conn().PgConn().PID()))
			_, err := tx.Exec(ctx, `select 1`)
			return Outcome{}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 25, 1, 1)
			s.due()
			catalogue := markTasks(1)
			catalogue[0].Work.Do = do
			n := newNode(s.db, s.url, "parent", catalogue, nil)
			s.clock(morning.Add(time.Hour))
			var waits []time.Duration
			var waited time.Duration
			for range 1000 {
				finished, err := n.turn(context.WithValue(t.Context(), ofTest{}, s))
				if err != nil {
					waits, waited = append(waits, waited), 0
				}
				if finished {
					break
				}
				s.pass(time.Second)
				waited += time.Second
			}
			if len(waits) != mostFruitless || n.ended[EndedFailed] != 1 {
				t.Fatalf("%d holdings (%v), ended %v", len(waits), waits, n.ended)
			}
			t.Logf("taken after %v", waits)
			if !slices.IsSorted(waits) || waits[len(waits)-1] < 5*time.Second {
				t.Errorf("taken after %v: not less and less often", waits)
			}
			got := s.texts(`select state || ': ' || error from run`)
			if len(got) != 1 || !strings.HasPrefix(got[0], "failed: it was taken 12 times") || !strings.Contains(got[0], ": do items of mark-1: ") {
				t.Errorf("the run: %q", got)
			}
			if n := s.number(`select count(*) from mark`); n != 0 {
				t.Errorf("%d marks", n)
			}
		})
	}
}

// What a task does wrong itself would go wrong again: the run ends at once, and says so.
func TestRun_ATaskThatListsOutOfOrderEndsAsFailed(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	next := s.task.Work.Next
	s.task.Work.Next = func(ctx context.Context, tx pgx.Tx, w Window, organisations []int64, after Key, most int) ([]Item, error) {
		items, err := next(ctx, tx, w, organisations, after, most)
		slices.Reverse(items)
		return items, err
	}
	results, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	if err == nil || len(results) != 1 || results[0].State != StateFailed || !strings.Contains(results[0].Error, "out of order") {
		t.Errorf("the run: %+v, %v", results, err)
	}
}

// An error that no database told, of one item, sets aside that item and costs the others nothing.
func TestRun_AnItemThatGoCannotDoIsSetAsideByName(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.task.Work.Do = func(ctx context.Context, tx pgx.Tx, w Window, items []Item) (Outcome, error) {
		for _, item := range items {
			switch item.ID {
			case 7:
				return Outcome{}, errors.New("a scratch")
			case 8:
				return Outcome{}, problem.Refused("seat_taken", nil)
			}
		}
		return doThings(ctx, tx, w, items)
	}
	r := s.run(false)
	if r.State != StateDone || r.Progress.Done != 23 || r.Progress.Refused != 2 || len(s.refused(r.RunID)) != 2 {
		t.Errorf("the run: %+v, refused %q", r, s.refused(r.RunID))
	}
}

// A constraint that is deferred to the commit names no item: the run fails with what it said, and keeps nothing of the chunk.
func TestRun_ATaskThatIsRefusedAtTheCommitEndsAsFailed(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.owner(`drop trigger thing_fails on thing`,
		`create constraint trigger thing_fails after update on thing deferrable initially deferred for each row execute function fail_for_broken()`,
		`update thing set changes = 0`)
	s.owner(`alter table thing disable trigger thing_fails`, `update thing set broken = true where id = 17`, `alter table thing enable trigger thing_fails`)
	results, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	if r := results[0]; err == nil || r.State != StateFailed || !strings.Contains(r.Error, "a scratch") || r.Progress.Done != 10 {
		t.Errorf("the run: %+v, %v", r, err)
	}
	if n := s.number(`select count(*) from thing where changes = 1`); n != 10 {
		t.Errorf("%d things were done, want the ten of the first chunk", n)
	}
}

// Items are found in each organisation, also where there are more than are listed at once, and where most have none.
func TestRun_GoesThroughAllOrganisations(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 0)
	const many = 2*organisationsOf + 3
	s.owner(fmt.Sprintf(`
insert into organisation (id, slug, name, country, time_zone, locale, currency)
select i, 'o-' || i, 'O', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1000, %d) i`, 1000+many-1),
		`insert into thing select id, 7 from organisation where id > 0 and (id % 100 = 0 or id = (select max(id) from organisation))`)
	want := s.number(`select count(*) from thing`)
	if r := s.run(false); r.State != StateDone || r.Progress.Changed != int64(want) || want < 11 {
		t.Errorf("the run: %+v, want %d things done", r, want)
	}
}

// A person asks for the window that the planner finds due at the same moment: it is run once.
func TestRun_AskedForWhileItIsPlannedIsRunOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"asked", "moved", "inserted", "enqueued", "planned", "driven"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 5, 2, 1)
			s.due()
			person, planner := s.node(), s.node()
			ask := func() {
				// While the planner has the row and has not committed, the person waits for it.
				_, err := person.executor.Run(t.Context(), s.db, s.actor, Wanted{Task: "mark-1", Key: marked})
				s.must(err)
			}
			var asking sync.WaitGroup
			if at == "asked" {
				person.executor.step = func(step string) {
					if step == at {
						_, err := planner.turn(t.Context())
						s.must(err)
					}
				}
				ask()
			} else {
				planner.planner.step = func(step string) {
					if step == at {
						planner.planner.step = nil
						asking.Go(ask)
					}
				}
			}
			s.must(planner.work(t.Context()))
			asking.Wait()
			s.must(planner.work(t.Context()))
			if s.number(`select count(*) from run`) != 1 || s.doubled() != 0 || s.lost() != 0 || s.number(`select count(*) from run where state = 'done'`) != 1 {
				t.Errorf("%q: %d doubled, %d lost", s.windows(), s.doubled(), s.lost())
			}
		})
	}
}
