package convocation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"usher/internal/domain/run"
)

// crowd is a school whose every list is longer than a part of three.
func crowd(t *testing.T) *school {
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.sit(hall{day: 1, capacity: places(1)})
	s.fileMany(9, person{silent: true, accessible: true})
	s.fileMany(8, person{status: "filed"})
	s.fileMany(11, person{})
	return s
}

// A run has one connection at a time: as many as there may be connections, and twice as many, come to
// their end.
func TestConvoke_MoreRunsThanConnectionsComeToTheirEnd(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	runs := 2 * int(s.db.Pool().Config().MaxConns)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed := make([]error, runs)
	var wait sync.WaitGroup
	for i := range runs {
		wait.Go(func() { _, failed[i] = Convoke(ctx, s.db, s.actor, s.target(), Options{part: 3}) })
	}
	wait.Wait()
	s.must(errors.Join(failed...))
	if done := s.number(`select count(*) from run where state = 'done'`); done != runs {
		t.Errorf("%d of %d runs are done", done, runs)
	}
}

func TestReport_ListsAreWholeWhateverTheirParts(t *testing.T) {
	t.Parallel()
	want, got := crowd(t), crowd(t)
	whole, parts := want.convoke(), got.convokeWith(got.target(), Options{part: 3, chunk: 4})
	for list, people := range map[run.List]int{run.ListRefused: 10, run.ListNotCalled: 8, run.ListNotReachable: 9, run.ListAttention: 9} {
		inParts := got.list(parts, list)
		got.equal(string(list), inParts, want.list(whole, list))
		if len(inParts) != people {
			t.Errorf("%s names %d, want %d", list, len(inParts), people)
		}
	}
	for i, refusal := range got.refusals(parts, run.ListRefused) {
		if rank := refusal.Facts["rank"]; rank != float64(11+i) {
			t.Errorf("%s is ranked %v, want %d", refusal.Reference, rank, 11+i)
		}
	}
}

// A run that failed says so, but does not wait for its row as long as a statement may.
func TestExecute_SaysThatItFailedWithinABound(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.fileMany(2, person{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := s.request(s.target(), nil)
	holder := s.ownerConn()
	defer func() { _ = holder.Close(context.Background()) }()
	err := Execute(ctx, s.db, s.actor, s.org.ID, asked.RunID, Options{ending: 50 * time.Millisecond, step: func(step string) {
		if step == "locked" {
			_, err := holder.Exec(t.Context(), `begin; select from run for update`)
			s.must(err)
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v, want what stopped it and that it could not say so in time", err)
	}
}
