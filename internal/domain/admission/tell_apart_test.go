package admission_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
)

func TestTellApart_OnceWithWhoSaidIt(t *testing.T) {
	t.Parallel()
	r := open(t)
	r.tx(func(tx pgx.Tx) error {
		status, err := admission.FindStatus(t.Context(), tx, r.campaign, "accepted")
		if err != nil {
			return err
		}
		return admission.AddCandidates(t.Context(), tx, r.campaign, []*admission.Filed{
			{Reference: "B", FamilyName: "Traore", Locale: "fr", StatusID: status.ID, FiledAt: time.Now()},
		})
	})
	for other, code := range map[string]string{"A": "told_apart_of_one", "a": "told_apart_of_one", "Z": "candidate_unknown", "": "candidate_unknown"} {
		_, err := admission.TellApart(t.Context(), r.db, r.actor, "concours", "A", other)
		refused(t, err, code)
	}
	var all sync.WaitGroup
	var changed atomic.Int32
	for i := range 8 { // at once, in both orders
		all.Go(func() {
			one, other := "A", "B"
			if i%2 == 1 {
				one, other = other, one
			}
			pair, err := admission.TellApart(t.Context(), r.db, r.actor, "concours", one, other)
			if err != nil || pair.Two[0].Reference != one || pair.Two[1].Reference != other {
				t.Errorf("%v, %v", pair, err)
			}
			if pair.Changed {
				changed.Add(1)
			}
		})
	}
	all.Wait()
	var by string
	r.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select string_agg(actor, ' ') from told_apart where organisation_id = $1`, r.org.ID).Scan(&by)
	})
	if by != "office" || changed.Load() != 1 || r.entries("candidates_told_apart") != 2 { // one of each of the two
		t.Errorf("kept by %q, changed by %d, in %d entries", by, changed.Load(), r.entries("candidates_told_apart"))
	}
	for i, wanted := range []bool{true, false} {
		pair, err := admission.DoubtAgain(t.Context(), r.db, r.actor, "concours", "B", "A")
		if err != nil || pair.Changed != wanted || pair.Alike {
			t.Errorf("taken back for the %d. time: %+v, %v", i+1, pair, err)
		}
	}
	if r.entries("candidates_doubted_again") != 2 {
		t.Errorf("%d entries of what was taken back", r.entries("candidates_doubted_again"))
	}
}
