package convocation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// Forecast is what a run would do, at most, told before it begins, since an SMS costs.
type Forecast struct {
	Seats  int // that it would give: one to each who is called and has none (Foresee), or for whom there is one (Rehearse)
	Emails int
	SMS    int
}

// Nothing tells that the run would change nothing: it has nobody to seat, and nobody to tell.
func (f Forecast) Nothing() bool { return f == Forecast{} }

// Foresee counts who is eligible for the target and how many messages a run would send at most:
// to them, and to those who could not be told before and have an address now.
func Foresee(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target) (f Forecast, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return f, err
	}
	within, err := scopeOf(ctx, db, c, target)
	if err != nil {
		return f, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if err := pg.JoinSets(ctx, tx); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
select count(*), count(*) filter (where c.has_email), count(*) filter (where c.has_phone)`+eligibleInSets,
			c.OrganisationID, c.ID, within.examIDs(), within.centres()).Scan(&f.Seats, &f.Emails, &f.SMS)
		if err != nil {
			return fmt.Errorf("count who is eligible: %w", err)
		}
		if err := pg.PlanFreely(ctx, tx); err != nil {
			return err
		}
		return f.addRetries(ctx, tx, c)
	})
	return f, err
}

// addRetries adds the messages to those who were seated before and can be told now.
func (f *Forecast) addRetries(ctx context.Context, tx pgx.Tx, c admission.Campaign) error {
	emails, sms, err := notice.Retriable(ctx, tx, c.OrganisationID, c.ID)
	f.Emails += emails
	f.SMS += sms
	return err
}
