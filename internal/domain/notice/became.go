package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Became tells, exam by exam, how far one candidate knows and what became of their messages on each channel.
func Became(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (all []Untold, err error) {
	if err := account.Allow(actor, account.Reach); err != nil {
		return nil, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		of, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		known, err := KnownBy(ctx, tx, c.OrganisationID, c.ID, of.ID)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select id, code from exam where organisation_id = $1 and campaign_id = $2 order by code, id`, c.OrganisationID, c.ID)
		if err != nil {
			return fmt.Errorf("read the exams: %w", err)
		}
		var id int64
		var code string
		_, err = pgx.ForEachRow(rows, []any{&id, &code}, func() error {
			if k, told := known[id]; told {
				all = append(all, Untold{
					Reference: of.Reference, FamilyName: of.FamilyName, GivenName: of.GivenName, Kind: k.Kind, Email: of.Email, Phone: of.Phone,
					EmailState: k.Email.State, SMSState: k.SMS.State, EmailWhy: k.Email.Why, SMSWhy: k.SMS.Why, Stage: k.Stage, Exam: code,
				})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read the exams: %w", err)
		}
		return nil
	})
	return all, err
}
