package convocation

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// lockAt takes the campaign's lock; from the nth transaction on it is the instant given.
func (s *school) lockAt(nth int, instant time.Time) func(context.Context, pgx.Tx, admission.Campaign) (admission.Revision, error) {
	locks := 0
	return func(ctx context.Context, tx pgx.Tx, c admission.Campaign) (admission.Revision, error) {
		if locks++; locks >= nth {
			if _, err := tx.Exec(ctx, `select set_config('app.clock', $1, true)`, instant.Format(time.RFC3339)); err != nil {
				return 0, err
			}
		}
		return admission.Lock(ctx, tx, c)
	}
}

// The morning of the sitting comes while a run goes on.
func TestConvoke_ASittingThatHasBegunMeanwhileTakesNobody(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"a minute before":  {-time.Minute, []string{"C0001 S001/001", "C0002 S001/002", "C0003 S001/003", "C0004 S001/004"}},
		"at its beginning": {0, []string{"C0001 S001/001", "C0002 S001/002", "C0003 S002/001", "C0004 S002/002"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(9)})
			s.sit(hall{day: 1, capacity: places(9)})
			s.fileMany(4, person{})
			report := s.convokeWith(s.target(), Options{chunk: 2, lock: s.lockAt(2, s.opening.Add(begins.after))})
			s.equal("seats", s.seats(), begins.want)
			if report.State != run.StateDone {
				t.Errorf("the run is %s", report.State)
			}
		})
	}
}
