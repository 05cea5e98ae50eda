package doorlist

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Selection chooses sittings of a campaign, in the order in which they are filled.
type Selection struct {
	Campaign string
	Day      time.Time // civil day at the centre; zero: every day
	Centre   string    // name; empty: every centre
}

// Sittings lists for printing those that a selection chooses, also those where nobody sits: Print refuses them by
// name.
func Sittings(ctx context.Context, db *pg.DB, actor timeline.Actor, by Selection) (chosen []seating.Sitting, err error) {
	if err := account.Allow(actor, account.Print); err != nil {
		return nil, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, by.Campaign)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		all, err := seating.Sittings(ctx, tx, c)
		for _, s := range all {
			if by.chooses(s) {
				chosen = append(chosen, s)
			}
		}
		return err
	})
	if err == nil && len(chosen) == 0 {
		facts := problem.Facts{"campaign": c.Slug, "centre": by.Centre, "day": ""}
		if !by.Day.IsZero() {
			facts["day"] = by.Day.Format(time.DateOnly)
		}
		err = problem.NotFound("no_sitting_chosen", facts)
	}
	return chosen, err
}

func (by Selection) chooses(s seating.Sitting) bool {
	if !by.Day.IsZero() && !s.Day().Equal(by.Day) {
		return false
	}
	return by.Centre == "" || strings.EqualFold(sheet.Clean(by.Centre), sheet.Clean(s.Centre))
}
