package seating

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// SetCapacity says how many places one sitting has; nil takes its own number back, so that the
// room's, the centre's or the bound counts again. A number below the people seated is refused.
func SetCapacity(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, capacity *int) (Sitting, error) {
	var after Sitting
	if err := venue.CheckCapacity(capacity); err != nil {
		return after, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return after, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := admission.Lock(ctx, tx, c); err != nil {
			return err
		}
		before, err := FindSitting(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update sitting set capacity = $3 where organisation_id = $1 and id = $2`, c.OrganisationID, before.ID, capacity)
		if err != nil {
			return fmt.Errorf("set the capacity: %w", err)
		}
		changed, err := RefreshPlaces(ctx, tx, c.OrganisationID, []int64{before.RoomID})
		if err != nil {
			return err
		}
		if after, err = FindSitting(ctx, tx, c, reference); err != nil || changed == 0 {
			return err
		}
		if err := admission.Revise(ctx, tx, c); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "capacity_changed", Subject: timeline.Subject{CampaignID: c.ID, SittingID: after.ID},
			Facts: map[string]any{"sitting": after.Reference, "before": before.Places, "after": after.Places},
		})
	})
	return after, err
}

// VenueCapacity is a number of places of a room, or, without a room, of each room of a centre that
// says nothing itself.
type VenueCapacity struct {
	Centre   string
	Room     string
	Capacity *int // nil: nothing is said any more
}

// SetVenueCapacities changes capacities of rooms and centres and what follows for the coming
// sittings, all or nothing. It locks every campaign that may have sittings there.
func SetVenueCapacities(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, capacities ...VenueCapacity) (changed int, err error) {
	if !actor.MayActFor(org.ID) {
		return 0, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		campaigns, err := lockAll(ctx, tx, org.ID)
		if err != nil {
			return err
		}
		for _, v := range capacities {
			if err := setVenueCapacity(ctx, tx, org.ID, v); err != nil {
				return err
			}
		}
		if changed, err = RefreshPlaces(ctx, tx, org.ID, nil); err != nil || changed == 0 {
			return err
		}
		for _, c := range campaigns {
			if err := admission.Revise(ctx, tx, c); err != nil {
				return err
			}
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "venue_capacity_changed", Facts: capacities})
	})
	return changed, err
}

// AddRoom adds a room, and its centre if it is new, so that a sitting can be moved there.
func AddRoom(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, v VenueCapacity) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if strings.TrimSpace(v.Centre) == "" || strings.TrimSpace(v.Room) == "" {
		return problem.Invalid("room_name_missing", nil)
	}
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if _, err := lockAll(ctx, tx, org.ID); err != nil {
			return err
		}
		centre, err := venue.EnsureCentre(ctx, tx, org.ID, v.Centre, org.TimeZone)
		if err != nil {
			return err
		}
		roomID, err := venue.EnsureRoom(ctx, tx, org.ID, centre.ID, v.Room)
		if err != nil {
			return err
		}
		if v.Capacity != nil {
			if err := venue.SetCapacity(ctx, tx, org.ID, centre.ID, roomID, v.Capacity); err != nil {
				return err
			}
			if _, err := RefreshPlaces(ctx, tx, org.ID, []int64{roomID}); err != nil { // the room may have been there
				return err
			}
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "room_added", Facts: v})
	})
}

func setVenueCapacity(ctx context.Context, tx pgx.Tx, organisationID int64, v VenueCapacity) error {
	centre, found, err := venue.FindCentre(ctx, tx, organisationID, v.Centre)
	if err != nil {
		return err
	}
	if !found {
		return problem.NotFound("centre_unknown", problem.Facts{"centre": v.Centre})
	}
	roomID := int64(0)
	if v.Room != "" {
		if roomID, err = venue.FindRoom(ctx, tx, organisationID, centre, v.Room); err != nil {
			return err
		}
	}
	return venue.SetCapacity(ctx, tx, organisationID, centre.ID, roomID, v.Capacity)
}

// lockAll takes the campaigns of an organisation in key order.
func lockAll(ctx context.Context, tx pgx.Tx, organisationID int64) ([]admission.Campaign, error) {
	rows, err := tx.Query(ctx, `select id from campaign where organisation_id = $1 order by id for no key update`, organisationID)
	if err != nil {
		return nil, fmt.Errorf("lock the campaigns: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("lock the campaigns: %w", err)
	}
	campaigns := make([]admission.Campaign, len(ids))
	for i, id := range ids {
		campaigns[i] = admission.Campaign{OrganisationID: organisationID, ID: id}
	}
	return campaigns, nil
}

// LayPlan gives a room its plan and checks that everybody who will sit there still can.
func LayPlan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, roomName string, seats []venue.Seat) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		campaigns, err := lockAll(ctx, tx, org.ID)
		if err != nil {
			return err
		}
		centre, found, err := venue.FindCentre(ctx, tx, org.ID, centreName)
		if err != nil {
			return err
		}
		if !found {
			return problem.NotFound("centre_unknown", problem.Facts{"centre": centreName})
		}
		roomID, err := venue.FindRoom(ctx, tx, org.ID, centre, roomName)
		if err != nil {
			return err
		}
		if err := venue.LayPlan(ctx, tx, org.ID, roomID, seats); err != nil {
			return err
		}
		for _, c := range campaigns {
			if err := checkPlan(ctx, tx, c, roomID); err != nil {
				return err
			}
			if err := admission.Revise(ctx, tx, c); err != nil {
				return err
			}
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: "plan_laid", Facts: map[string]any{"centre": centre.Name, "room": roomName, "seats": len(seats)},
		})
	})
}

func checkPlan(ctx context.Context, tx pgx.Tx, c admission.Campaign, roomID int64) error {
	sittings, err := Sittings(ctx, tx, c)
	if err != nil {
		return err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	for _, s := range sittings {
		if s.RoomID == roomID && s.EndsAt.After(now) {
			if err := checkSeatsThere(ctx, tx, c.OrganisationID, s); err != nil {
				return err
			}
		}
	}
	return nil
}
