package convocation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Forecast is what a run would do at most, told before it begins, since an SMS costs.
type Forecast struct {
	Eligible int // called and without a seat
	Emails   int
	SMS      int
}

// Foresee counts who is eligible for the target and how many messages they would be sent.
func Foresee(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target) (Forecast, error) {
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return Forecast{}, err
	}
	exams, err := targetExams(ctx, db, c, target)
	if err != nil {
		return Forecast{}, err
	}
	return forecast(ctx, db, c, exams)
}

func forecast(ctx context.Context, db *pg.DB, c admission.Campaign, exams []seating.Exam) (f Forecast, err error) {
	ids := make([]int64, len(exams))
	for i, exam := range exams {
		ids[i] = exam.ID
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
select count(*), count(*) filter (where has_email), count(*) filter (where has_phone)
  from standing($1, $2)
 where exam_id = any($3) and opens_payment and paid and claim_id is null`,
			c.OrganisationID, c.ID, ids).Scan(&f.Eligible, &f.Emails, &f.SMS)
	})
	if err != nil {
		return f, fmt.Errorf("count who is eligible: %w", err)
	}
	return f, nil
}
