package letter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// OfCandidate reads the letters of one candidate, one for each seat that they have now, to print them at a counter: they are those
// that a message takes along, and no version of a bundle.
func OfCandidate(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (letters []Letter, err error) {
	if err := account.Allow(actor, account.Print); err != nil {
		return nil, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return nil, err
	}
	if err := Prepare(ctx, db, c.OrganisationID); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
select l.id from claim l join sitting s on s.organisation_id = $1 and s.id = l.sitting_id
 where l.organisation_id = $1 and l.candidate_id = $2 and l.released_at is null order by s.starts_at, l.id`, c.OrganisationID, candidate.ID)
		if err != nil {
			return fmt.Errorf("read the seats of a candidate: %w", err)
		}
		claims, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return fmt.Errorf("read the seats of a candidate: %w", err)
		}
		if len(claims) == 0 {
			return problem.Refused("letter_without_seat", problem.Facts{"candidate": candidate.Name()})
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		letters, err = Read(ctx, tx, c.OrganisationID, claims)
		letters = Issued(letters, now)
		return err
	})
	return letters, err
}
