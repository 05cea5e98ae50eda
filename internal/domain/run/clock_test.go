package run

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
)

// The clock is set back while a window is under way, at any step: its holder keeps nothing from there on, gives the run up, nobody
// works on the window before it is due again, and then all of it is done, by a run of its own.
func TestLook_AClockSetBackStopsWhoIsAtWork(t *testing.T) {
	t.Parallel()
	for step, kept := range map[string]int{"taken": 0, "listed": 0, "done": 0, "committed": 2} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 5, 1, 1)
			s.due()
			s.look()
			holder := s.node()
			holder.executor.step = func(at string) {
				if at == step {
					holder.executor.step = nil
					s.clock(morning)
				}
			}
			if _, err := holder.turn(t.Context()); !errors.Is(err, ErrLost) {
				t.Errorf("the holder says %v, want %v", err, ErrLost)
			}
			if n := s.number(`select count(*) from mark`); n != kept {
				t.Errorf("%d items are marked, want the %d of before", n, kept)
			}
			if planned := s.look(); planned.Released != 1 || planned.Driven != 0 || len(planned.TurnedBack) != 1 {
				t.Errorf("looked: %+v", planned)
			}
			equal(t, "what stays of it", s.texts(`select earlier_of || ' ' || state || ' ' || error from run`), []string{marked + " failed " + stoppedAhead})
			s.must(s.node().work(t.Context()))
			if n := s.number(`select count(*) from mark`); n != kept {
				t.Errorf("%d items are marked before the window is due, want %d", n, kept)
			}
			s.pass(time.Hour)
			s.must(s.node().work(t.Context()))
			equal(t, "when it is due again", s.texts(`select window_key || ' ' || state || ' ' || (counters->>'done') from run where window_start is not null`),
				[]string{marked + " done 5"})
			if n := s.number(`select count(*) from mark`); n != kept+5 || s.lost() != 0 {
				t.Errorf("%d items are marked, want %d; %d are lost", n, kept+5, s.lost())
			}
		})
	}
}

// A window that is planned and not begun waits: nobody makes a job of it, a job that was made takes nothing, and it stays the same run.
func TestLook_AWindowThatIsNotDueWaits(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 5, 1, 1)
	s.due()
	s.look()
	s.clock(morning)
	s.owner(`update run set driven_at = clock() + interval '1 hour', lease_until = clock() + interval '1 hour'`)
	if planned := s.look(); planned.Driven != 0 || planned.Released != 0 {
		t.Errorf("looked: %+v", planned)
	}
	ended, err := s.node().executor.Execute(t.Context(), s.db, Ready{RunID: int64(s.number(`select id from run`))})
	s.must(err)
	if ended.How != EndedStale || s.number(`select count(*) from mark`) != 0 || s.number(`select epoch from run`) != 0 {
		t.Errorf("its job ended %+v", ended)
	}
	s.pass(time.Hour + time.Minute)
	s.must(s.node().work(t.Context()))
	equal(t, "when it is due", s.texts(`select window_key || ' ' || state || ' ' || epoch from run`), []string{marked + " done 1"})
}

// More windows ahead of the clock than one transaction releases, and one that somebody has locked: the looks that follow find them, though
// the line of the schedule was set back by the first.
func TestLook_ReleasesAllThatRanAhead(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	s.due()
	s.look()
	const many = mostReleased + 7
	s.owner(fmt.Sprintf(`
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at, state, epoch, finished_at, lease_until, counters)
select 0, 'mark-1', 'w' || i, '{}', 'schedule', 'UTC', w, w, w, 'done', 1, w, w, '{"done":1,"changed":1,"refused":0}'
  from (select i, clock() + i * interval '1 day' as w from generate_series(1, %d) i) g`, many),
		`update schedule set planned_until = clock() + interval '3 years'`)
	other, err := pgx.Connect(t.Context(), s.url)
	s.must(err)
	t.Cleanup(func() { _ = other.Close(t.Context()) })
	_, err = other.Exec(t.Context(), `begin; select from run where window_key = 'w1' for update`)
	s.must(err)
	first, second := s.look(), s.look()
	if first.Released != mostReleased || len(first.TurnedBack) != 1 || second.Released != many-mostReleased-1 || len(second.TurnedBack) != 0 {
		t.Errorf("the first look: %+v, the second: %+v", first, second)
	}
	_, err = other.Exec(t.Context(), `rollback`)
	s.must(err)
	if third := s.look(); third.Released != 1 {
		t.Errorf("the third look: %+v", third)
	}
	equal(t, "windows", s.windows(), []string{"mark-1 " + marked})
}

// A job of an earlier holding takes nothing, although nobody holds the run: it was handed over since, with a job of its own.
func TestRun_AJobOfAnEarlierHoldingDoesNothing(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	ready := s.ready()
	s.owner(`update run set epoch = 3`)
	for epoch, want := range map[int]string{0: EndedStale, 2: EndedStale, 4: EndedStale} {
		ended, err := s.executor().Execute(t.Context(), s.db, Ready{RunID: ready.RunID, Epoch: epoch})
		s.must(err)
		if ended.How != want || s.number(`select count(*) from thing where done`) != 0 || s.number(`select epoch from run`) != 3 {
			t.Errorf("the job of epoch %d: %+v, want %s and nothing done", epoch, ended, want)
		}
	}
	ended, err := s.executor().Execute(t.Context(), s.db, Ready{RunID: ready.RunID, Epoch: 3})
	s.must(err)
	if ended.How != EndedDone {
		t.Errorf("the job of its own epoch: %+v", ended)
	}
}

// Somebody else takes the run between the question and its execution, and leaves it: nothing was done here, and that is said.
func TestRun_PassedByIsSaid(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	e := s.executor()
	e.step = func(step string) {
		if step == "asked" {
			s.owner(`update run set epoch = epoch + 1, holder = '', lease_until = null where task = 'do-things'`)
		}
	}
	results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: yesterday})
	if !problem.Has(err, "run_passed") || len(results) != 1 || results[0].State != StateRunning {
		t.Errorf("%+v, %v", results, err)
	}
	if n := s.number(`select count(*) from thing where done`); n != 0 {
		t.Errorf("%d things were done", n)
	}
}

// Its holder died while the clock was a year ahead: the overview shows that nobody holds the run.
func TestOverview_ALeaseOfAClockThatWasAheadHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	ready := s.ready()
	now := time.Now().Truncate(time.Second)
	db := s.at(now) // a clock that stands: no lease lapses while the machine is busy
	for lease, want := range map[string]State{"5 seconds": StateRunning, "1 year": StateWaiting, "-1 second": StateWaiting} {
		s.owner(`update run set epoch = 1, fruitless = 3, holder = 'dead/1', lease_until = '` + now.Format(time.RFC3339) + `'::timestamptz + interval '` + lease + `'`)
		runs, err := Windows(t.Context(), db, s.actor, s.task)
		s.must(err)
		fruitless := 3
		if want == StateRunning { // the one that is under way may still keep something
			fruitless = 2
		}
		if len(runs) != 1 || runs[0].ID != ready.RunID || runs[0].State != want || runs[0].Fruitless != fruitless {
			t.Errorf("a lease of %s: %+v, want %s", lease, runs, want)
		}
	}
}
