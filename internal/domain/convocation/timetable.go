package convocation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Timetabled is a sitting and how full it is at this moment.
type Timetabled struct {
	seating.Sitting
	Seated int
	Usable int // places that can be given
}

// Timetable lists the sittings of a campaign in the order in which they are filled.
func Timetable(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string) (timetable []Timetabled, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		timetable, err = timetabled(ctx, tx, c)
		return err
	})
	return timetable, err
}
