package admission

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// RenewLink makes the links of a candidate's own page worthless that were given before: it went to somebody else, or was shown around. What a
// telephone kept of the page it keeps, until it asks for the page again.
func RenewLink(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string) (candidate Candidate, err error) {
	if err := account.Allow(actor, account.File); err != nil {
		return candidate, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return candidate, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if candidate, err = FindCandidate(ctx, tx, c, reference); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update candidate set link_epoch = link_epoch + 1 where organisation_id = $1 and id = $2`, c.OrganisationID, candidate.ID)
		if err != nil {
			return fmt.Errorf("renew the link: %w", err)
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "link_renewed", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: candidate.ID},
			Facts: map[string]string{"candidate": candidate.Name()},
		})
	})
	return candidate, err
}
