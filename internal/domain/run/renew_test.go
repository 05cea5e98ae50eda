package run

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A holder whose run somebody else holds by now neither renews their lease, nor hands their run over, nor gives it back.
func TestHolding_LeavesTheLeaseOfItsSuccessorAlone(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(ctx context.Context, h *holding) error{
		"renews":     func(ctx context.Context, h *holding) error { return h.sign(ctx) },
		"hands over": func(ctx context.Context, h *holding) error { return h.handOver(ctx) },
		"gives back": func(ctx context.Context, h *holding) error {
			_, err := h.broken(ctx, context.DeadlineExceeded)
			if errors.Is(err, context.DeadlineExceeded) {
				return ErrLost // it says what broke it; whether it touched the run is looked at below
			}
			return err
		},
		"fails": func(ctx context.Context, h *holding) error {
			_, err := h.broken(ctx, errTask{errors.New("a fault")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newThings(t, 5, 1)
			h := s.holdingOf(s.executor())
			own := h.sign(t.Context())
			s.owner(`update run set epoch = epoch + 1, holder = 'successor', lease_until = '2100-01-01Z' where task = 'do-things'`)
			touched := act(t.Context(), h)
			if own != nil || !errors.Is(touched, ErrLost) {
				t.Errorf("while it held the run: %v; afterwards: %v, want %v", own, touched, ErrLost)
			}
			if n := s.number(`select count(*) from run where holder = 'successor' and lease_until = '2100-01-01Z' and state = 'running' and error = ''`); n != 1 {
				t.Error("the run of its successor is not as it was")
			}
			if len(s.made) != 0 {
				t.Errorf("a job was made: %v", s.made)
			}
		})
	}
}

// The renewal that finds another epoch stops the work, whatever that waits for.
func TestRun_ARenewalThatFindsAnotherEpochStopsTheHolder(t *testing.T) {
	t.Parallel()
	s := newThings(t, 25, 1)
	s.task.Work.Pause = time.Hour
	e := s.executor()
	e.Progress = func(Progress) {
		s.owner(`update run set epoch = epoch + 1, lease_until = clock() + interval '8 seconds' where task = 'do-things'`)
	}
	h := s.ready()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended, err := e.Execute(ctx, s.db, h)
	if !errors.Is(err, ErrLost) || ended.How != "" {
		t.Errorf("it ended %+v, %v; want %v within a renewal", ended, err, ErrLost)
	}
	if n := s.number(`select count(*) from thing where done`); n != 10 {
		t.Errorf("%d things are done, want those of the one chunk", n)
	}
}

// ready is a run of yesterday that nobody has taken.
func (s *things) ready() Ready {
	s.Helper()
	s.owner(`insert into run (organisation_id, task, window_key, request, actor, zone, due_at, window_start, window_end)
values (0, 'do-things', '` + yesterday + `', '{}', 'schedule', 'UTC', '2026-11-29 01:00Z', '2026-11-28Z', '2026-11-29Z')`)
	return Ready{RunID: int64(s.number(`select id from run where task = 'do-things'`))}
}

// holdingOf is a holding that has just taken such a run.
func (s *things) holdingOf(e Executor) *holding {
	s.Helper()
	ready := s.ready()
	e.wait = sleep
	h := &holding{Executor: e, db: s.db}
	ended, err := h.take(s.Context(), ready)
	s.must(err)
	if ended.How != "" {
		s.Fatalf("it was not taken: %+v", ended)
	}
	return h
}
