package convocation

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// NewSitting is a sitting that somebody adds by hand. Exam, centre and room are there already: a slip of the pen adds none.
type NewSitting struct {
	Exam     string // code
	Centre   string
	Room     string
	StartsAt time.Time
	EndsAt   time.Time // zero: the start and the exam's duration
	Capacity *int      // its own places; nil: the room's, else the centre's, else the bound
}

// AddSitting adds one sitting, also in a place where files had another one: what a file says of that place still means the
// sitting that files had there, unless it was cancelled. A room that is busy then, and a start that is past, are refused.
// Asked for twice, the first is in the way of the second.
func AddSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, wanted NewSitting) (added seating.Sized, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return added, err
	}
	if err := venue.CheckCapacity(wanted.Capacity); err != nil {
		return added, err
	}
	err = byHand(ctx, db, actor, campaign, func(h hand) (effect, error) {
		planned, err := h.plan(ctx, wanted)
		if err != nil {
			return unchanged, err
		}
		if added, err = seating.AddSitting(ctx, h.tx, h.c, planned); err != nil {
			return unchanged, err
		}
		return revised, timeline.Record(ctx, h.tx, h.c.OrganisationID, h.actor, timeline.Entry{
			Kind: KindSittingAdded, Subject: timeline.Subject{CampaignID: h.c.ID, SittingID: added.ID}, Facts: sittingFacts(&added.Sitting),
		})
	})
	return added, err
}

func (h hand) plan(ctx context.Context, wanted NewSitting) (planned seating.Planned, err error) {
	if wanted.Exam == "" { // which would list them all
		return planned, problem.NotFound("exam_unknown", problem.Facts{"exam": "", "campaign": h.c.Slug})
	}
	exams, err := seating.Exams(ctx, h.tx, h.c, wanted.Exam)
	if err != nil {
		return planned, err
	}
	centre, err := knownCentre(ctx, h.tx, h.c, wanted.Centre)
	if err != nil {
		return planned, err
	}
	planned = seating.Planned{ExamID: exams[0].ID, StartsAt: wanted.StartsAt, EndsAt: wanted.EndsAt, Capacity: wanted.Capacity}
	if planned.RoomID, err = venue.FindRoom(ctx, h.tx, h.c.OrganisationID, centre, wanted.Room); err != nil || !wanted.EndsAt.IsZero() {
		return planned, err
	}
	durations, err := admission.ExamDurations(ctx, h.tx, h.c)
	if err != nil {
		return planned, err
	}
	minutes, known := durations[planned.ExamID]
	if !known {
		return planned, problem.Invalid("sitting_ends_missing", problem.Facts{"exam": exams[0].Code})
	}
	planned.EndsAt = wanted.StartsAt.Add(time.Duration(minutes) * time.Minute)
	return planned, nil
}

// ZoneOfCentre tells in which zone the hours of a sitting that is added at a centre are meant.
func ZoneOfCentre(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, centre string) (zone string, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return "", err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return "", err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		known, err := knownCentre(ctx, tx, c, centre)
		zone = known.TimeZone
		return err
	})
	return zone, err
}
