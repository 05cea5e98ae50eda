package admission_test

import (
	"sync"
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
	for i := range 8 { // at once, in both orders
		all.Go(func() {
			one, other := "A", "B"
			if i%2 == 1 {
				one, other = other, one
			}
			two, err := admission.TellApart(t.Context(), r.db, r.actor, "concours", one, other)
			if err != nil || two[0].Reference != one || two[1].Reference != other {
				t.Errorf("%v, %v", two, err)
			}
		})
	}
	all.Wait()
	var by string
	r.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select string_agg(actor, ' ') from told_apart where organisation_id = $1`, r.org.ID).Scan(&by)
	})
	if by != "office" || r.entries("candidates_told_apart") != 2 { // one of each of the two
		t.Errorf("kept by %q, in %d entries", by, r.entries("candidates_told_apart"))
	}
}
