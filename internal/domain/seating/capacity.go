package seating

import (
	"context"
	"errors"
	"fmt"

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
func SetCapacity(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, capacity *int) (after Sized, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return after, err
	}
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
		if after, err = sized(ctx, tx, c.OrganisationID, before); err != nil {
			return err
		}
		own, changed, err := setOwnCapacity(ctx, tx, before, c.OrganisationID, capacity)
		if err != nil || !changed {
			return err
		}
		if _, err := RefreshPlaces(ctx, tx, c.OrganisationID, []int64{before.RoomID}); err != nil {
			return err
		}
		resized, err := SittingByID(ctx, tx, c, before.ID)
		if err != nil {
			return err
		}
		if after, err = sized(ctx, tx, c.OrganisationID, resized); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "capacity_changed", Subject: timeline.Subject{CampaignID: c.ID, SittingID: after.ID},
			Facts: map[string]any{
				"sitting": after.Reference, "before": before.Places, "after": after.Places, "own_before": own, "own_after": capacity,
			},
		})
	})
	return after, err
}

// setOwnCapacity writes a sitting's own number, unless it is that already, and tells which it was.
func setOwnCapacity(ctx context.Context, tx pgx.Tx, s Sitting, organisationID int64, capacity *int) (before *int, changed bool, err error) {
	err = tx.QueryRow(ctx, `
with known as (select capacity from sitting where organisation_id = $1 and id = $2)
update sitting s set capacity = $3 where s.organisation_id = $1 and s.id = $2 and s.capacity is distinct from $3
returning (select capacity from known)`, organisationID, s.ID, capacity).Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("set the capacity: %w", err)
	}
	return before, true, nil
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
	if err := account.Allow(actor, account.Manage); err != nil {
		return 0, err
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if _, err := lockAll(ctx, tx, org.ID); err != nil {
			return err
		}
		var said []VenueCapacity
		for _, v := range capacities {
			news, err := setVenueCapacity(ctx, tx, org.ID, v)
			if err != nil {
				return err
			}
			if news {
				said = append(said, v)
			}
		}
		if len(said) == 0 {
			return nil
		}
		if changed, err = RefreshPlaces(ctx, tx, org.ID, nil); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: KindVenueCapacityChanged, Facts: said})
	})
	return changed, err
}

// The kinds of timeline rows that rooms and their places leave.
const (
	KindRoomAdded            timeline.Kind = "room_added"
	KindVenueCapacityChanged timeline.Kind = "venue_capacity_changed"
)

// AddedRoom is what adding a room did: one that was there already may have other places now.
type AddedRoom struct {
	Added           bool
	CapacityChanged bool
	Sittings        int // to come, that have other places by it
}

// AddRoom adds a room, and its centre if it is new, so that a sitting can be moved there.
func AddRoom(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, v VenueCapacity) (done AddedRoom, err error) {
	if !actor.MayActFor(org.ID) {
		return done, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return done, err
	}
	if v.Centre, err = account.ReadName(v.Centre); err != nil {
		return done, err
	}
	if v.Room, err = account.ReadName(v.Room); err != nil {
		return done, err
	}
	if v.Centre == "" || v.Room == "" {
		return done, problem.Invalid("room_name_missing", nil)
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if _, err := lockAll(ctx, tx, org.ID); err != nil {
			return err
		}
		if done, err = addRoom(ctx, tx, org, v); err != nil {
			return err
		}
		switch {
		case done.Added:
			return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: KindRoomAdded, Facts: v})
		case done.CapacityChanged:
			return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: KindVenueCapacityChanged, Facts: []VenueCapacity{v}})
		}
		return nil
	})
	return done, err
}

func addRoom(ctx context.Context, tx pgx.Tx, org account.Organisation, v VenueCapacity) (done AddedRoom, err error) {
	centre, err := venue.EnsureCentre(ctx, tx, org.ID, v.Centre, org.TimeZone)
	if err != nil {
		return done, err
	}
	var roomID int64
	if roomID, done.Added, err = venue.EnsureRoom(ctx, tx, org.ID, centre.ID, v.Room); err != nil || v.Capacity == nil {
		return done, err
	}
	if done.CapacityChanged, err = venue.SetCapacity(ctx, tx, org.ID, centre.ID, roomID, v.Capacity); err != nil || !done.CapacityChanged {
		return done, err
	}
	done.Sittings, err = RefreshPlaces(ctx, tx, org.ID, []int64{roomID})
	return done, err
}

func setVenueCapacity(ctx context.Context, tx pgx.Tx, organisationID int64, v VenueCapacity) (changed bool, err error) {
	centre, found, err := venue.FindCentre(ctx, tx, organisationID, v.Centre)
	if err != nil {
		return false, err
	}
	if !found {
		return false, problem.NotFound("centre_unknown", problem.Facts{"centre": v.Centre})
	}
	roomID := int64(0)
	if v.Room != "" {
		if roomID, err = venue.FindRoom(ctx, tx, organisationID, centre, v.Room); err != nil {
			return false, err
		}
	}
	return venue.SetCapacity(ctx, tx, organisationID, centre.ID, roomID, v.Capacity)
}

// lockAll takes the campaigns of an organisation in key order.
func lockAll(ctx context.Context, tx pgx.Tx, organisationID int64) ([]admission.Campaign, error) {
	rows, err := tx.Query(ctx, `select id, slug from campaign where organisation_id = $1 order by id for no key update`, organisationID)
	if err != nil {
		return nil, fmt.Errorf("lock the campaigns: %w", err)
	}
	var campaigns []admission.Campaign
	c := admission.Campaign{OrganisationID: organisationID}
	if _, err := pgx.ForEachRow(rows, []any{&c.ID, &c.Slug}, func() error { campaigns = append(campaigns, c); return nil }); err != nil {
		return nil, fmt.Errorf("lock the campaigns: %w", err)
	}
	return campaigns, nil
}
