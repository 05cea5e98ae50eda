package intake_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
)

// Looking a few people up, as an import does for each of its parts, reads about as many rows as people are found, whatever
// the size of the campaign: under the policies, and before the table was ever analysed.
func TestLookUp_ReadsNoMoreThanItFinds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const candidates, wanted = 3000, 10
	if _, err := testdb.Owner(t, b.url).Exec(t.Context(), `
insert into candidate (organisation_id, campaign_id, reference, family_name, given_name, status_id, locale, filed_at)
select organisation_id, campaign_id, 'K-' || n, 'Keita ' || n, 'Awa', min(id), 'fr', clock() from status, generate_series(1, $1) n
 where campaign_id = $2 group by organisation_id, campaign_id, n`, candidates, b.campaign.ID); err != nil {
		t.Fatal(err)
	}
	var written, other []string
	for n := range wanted {
		written, other = append(written, fmt.Sprintf("K-%d", 7+n*100)), append(other, fmt.Sprintf("k-%d", 7+n*100))
	}
	for what, look := range map[string]func(tx pgx.Tx) (int, error){
		"as written": func(tx pgx.Tx) (int, error) {
			filed, err := admission.FiledUnder(t.Context(), tx, b.campaign, written, nil)
			return len(filed), err
		},
		"in other capitals": func(tx pgx.Tx) (int, error) {
			filed, err := admission.FiledAs(t.Context(), tx, b.campaign, other)
			return len(filed), err
		},
		"what they paid": func(tx pgx.Tx) (int, error) {
			_, err := payment.RecordedWithoutReceipt(t.Context(), tx, b.campaign, other)
			return wanted, err
		},
		"at the counter": func(tx pgx.Tx) (found int, err error) {
			for _, reference := range other {
				if _, err = admission.FindCandidate(t.Context(), tx, b.campaign, reference); err == nil {
					found++
				}
			}
			return found, err
		},
	} {
		b.tx(func(tx pgx.Tx) error {
			found, err := look(tx)
			if err != nil || found != wanted {
				t.Errorf("%s: found %d of %d, %v", what, found, wanted, err)
			}
			var read int
			err = tx.QueryRow(t.Context(), `select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) from pg_stat_xact_user_tables where relname = 'candidate'`).Scan(&read)
			if read > 10*wanted {
				t.Errorf("%s: %d rows of %d were read for %d", what, read, candidates, wanted)
			}
			return err
		})
	}
}
