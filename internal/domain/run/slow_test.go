package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/testdb"
)

// sleepy has a thing that is broken keep the server busy for longer than any statement may last.
func (s *things) sleepy(ids ...int) {
	s.Helper()
	s.owner(`create or replace function fail_for_broken() returns trigger language plpgsql as $$
begin if new.broken then perform pg_sleep(600); end if; return new; end $$`)
	for _, id := range ids {
		s.owner(fmt.Sprintf(`update thing set broken = true where id = %d`, id))
	}
}

// throughout executes a run as River does: by jobs that each have a deadline, until it has ended; and tells how many that took.
func (s *things) throughout(e Executor, ready Ready) (ended Ended, holdings int) {
	s.Helper()
	e.Enqueue = func(_ context.Context, _ pgx.Tx, handed []Ready) error { ready = handed[0]; return nil }
	for holdings = 1; holdings <= 60; holdings++ {
		within, cancel := context.WithTimeout(s.Context(), e.Longest())
		ended, err := e.Execute(within, s.db, ready)
		cancel()
		s.must(err)
		if ended.How != EndedOver {
			return ended, holdings
		}
	}
	s.Fatal("the run does not end")
	return ended, holdings
}

func (s *things) planned() Ready {
	s.Helper()
	s.owner(`insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at)
values (0, 'do-things', '` + yesterday + `', '{}', 'schedule', 'UTC', '2026-11-28Z', '2026-11-29Z', '2026-11-29 01:00Z')`)
	return Ready{RunID: int64(s.number(`select id::int from run`))}
}

// An item whose statement never ends is named, within the deadline of the jobs that do it, though each has its turn for a moment only;
// the others are done, and nobody waits for a transaction that holds those while it is tried.
func TestRun_ASlowItemIsSetAsideWithinTheDeadlineOfAJob(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.sleepy(13)
	e := s.executor()
	e.Statement, e.Budget = 500*time.Millisecond, time.Nanosecond
	watched := 0
	e.step = func(step string) {
		if step == "narrowed" {
			// What went before is kept: nobody has its rows.
			s.owner(`begin; set local lock_timeout = '1s'; select from thing where id < 11 for update; rollback`)
			watched++
		}
	}
	ended, holdings := s.throughout(e, s.planned())
	if ended.How != EndedDone || watched != 1 {
		t.Errorf("%+v after %d holdings, narrowed %d times", ended, holdings, watched)
	}
	if done := s.number(`select count(*) from thing where done and changes = 1`); done != 24 {
		t.Errorf("%d things were done once, want 24", done)
	}
	if got := s.refused(int64(s.number(`select id::int from run`))); !slices.Equal(got, []string{"thing 13: item_failed"}) {
		t.Errorf("refused: %q", got)
	}
	if n := s.number(`select fruitless from run`); n != 1 {
		t.Errorf("%d holdings kept nothing, want none but the last, which ended it", n-1)
	}
}

// No item is at fault where they are only too many for the time: they are done in smaller chunks, and nobody is named. So it is when one
// statement does them all, and when each has one of its own.
func TestRun_AChunkThatIsTooMuchIsDoneInSmallerOnes(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]bool{"one statement": false, "a statement each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 40, 1)
			s.task.Work.Chunk = 20
			s.owner(`create or replace function fail_for_broken() returns trigger language plpgsql as $$
begin perform pg_sleep(0.05); return new; end $$`)
			if each {
				s.task.Work.Do = func(ctx context.Context, tx pgx.Tx, window Window, items []Item) (all Outcome, err error) {
					for _, item := range items {
						one, err := doThings(ctx, tx, window, []Item{item})
						if err != nil {
							return all, err
						}
						all.Changed += one.Changed
					}
					return all, nil
				}
			}
			e := s.executor()
			e.Statement = 600 * time.Millisecond
			if each {
				e.Statement = 500 * time.Millisecond // of all of them: three quarters of a second
			}
			narrowed := 0
			e.step = func(step string) {
				if step == "narrowed" {
					narrowed++
				}
			}
			ended, _ := s.throughout(e, s.planned())
			if ended.How != EndedDone || narrowed == 0 || narrowed > 3 {
				t.Errorf("%+v, narrowed %d times", ended, narrowed)
			}
			if done := s.number(`select count(*) from thing where done and changes = 1`); done != 40 {
				t.Errorf("%d things were done once, want 40", done)
			}
			if refused := s.number(`select count(*) from refusal`); refused != 0 {
				t.Errorf("%d things were named", refused)
			}
		})
	}
}

// What takes too long to be counted is done all the same: only how much there is stays unknown.
func TestRun_WhatTakesTooLongToCountIsDone(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.task.Work.Count = func(ctx context.Context, tx pgx.Tx, _ Window, _ []int64) (int64, error) {
		_, err := tx.Exec(ctx, `select pg_sleep(600)`)
		return 0, err
	}
	e := s.executor()
	e.Statement = 300 * time.Millisecond
	ended, _ := s.throughout(e, s.planned())
	if ended.How != EndedDone || s.number(`select count(*) from thing where done`) != 25 {
		t.Errorf("%+v", ended)
	}
}

// One item that somebody else's lock keeps from being done, while the task waits for it, is come back to like any other.
func TestRun_AnItemThatWaitsForALockIsComeBackTo(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	s.task.Work.Do = func(ctx context.Context, tx pgx.Tx, window Window, items []Item) (Outcome, error) {
		ids := make([]int64, len(items))
		for i, item := range items {
			ids[i] = item.ID
		}
		_, err := tx.Exec(ctx, `set local lock_timeout = '50ms'`)
		if err == nil {
			_, err = tx.Exec(ctx, `select from thing where id = any($1) for update`, ids)
		}
		if err != nil {
			return Outcome{}, err
		}
		return doThings(ctx, tx, window, items)
	}
	other := testdb.Owner(t, s.url)
	_, err := other.Exec(t.Context(), `begin; select from thing where id = 3 for update`)
	s.must(err)
	e := s.executor()
	e.wait = func(ctx context.Context, _ time.Duration) error { _, err := other.Exec(ctx, `rollback`); return err }
	ended, _ := s.throughout(e, s.planned())
	if ended.How != EndedDone || s.number(`select count(*) from thing where changes = 1`) != 5 || s.number(`select count(*) from refusal`) != 0 {
		t.Errorf("%+v", ended)
	}
}
