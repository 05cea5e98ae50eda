package seating

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

// EventSitting is one room at one time for an event. Its Zone is the event's: hours are written and shown in it, wherever the room
// is; it has no exam.
type EventSitting struct {
	Sitting
	EventID      int64
	PlanRevision int // of its room
}

// Times are what the sale of the sitting depends on.
func (s EventSitting) Times() event.SittingTimes {
	return event.SittingTimes{Reference: s.Reference, StartsAt: s.StartsAt, EndsAt: s.EndsAt}
}

// Those that were cancelled are none, but for what was cancelled with the event: that is what does not take place.
const eventSittingColumns = `
select s.id, s.reference, 0::bigint as exam_id, '' as exam, r.centre_id, c.name as centre, s.room_id, r.name as room,
       e.time_zone as zone, s.starts_at, s.ends_at, s.places, s.places_from, s.seats_at_door, s.revision, s.event_id, r.plan_revision
  from sitting s
 cross join lateral (select time_zone, state, cancelled_at from event where organisation_id = s.organisation_id and id = s.event_id offset 0) e
 cross join lateral (select centre_id, name, plan_revision from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
 cross join lateral (select name from centre where organisation_id = s.organisation_id and id = r.centre_id offset 0) c
 where s.organisation_id = $1 and s.event_id = $2 and (s.cancelled_at is null or e.state = 'cancelled' and s.cancelled_at >= e.cancelled_at)`

// EventSittings lists the sittings of an event in their order.
func EventSittings(ctx context.Context, tx pgx.Tx, organisationID, eventID int64) ([]EventSitting, error) {
	return collectEventSittings(tx.Query(ctx, eventSittingColumns+sittingOrder, organisationID, eventID))
}

// FindEventSitting finds a sitting of an event by its reference.
func FindEventSitting(ctx context.Context, tx pgx.Tx, e event.Event, reference string) (EventSitting, error) {
	found, err := collectEventSittings(tx.Query(ctx, eventSittingColumns+` and s.reference = upper($3)`, e.OrganisationID, e.ID, reference))
	if err == nil && len(found) == 0 {
		err = problem.NotFound("event_sitting_unknown", problem.Facts{"sitting": reference, "event": e.Name})
	}
	if err != nil {
		return EventSitting{}, err
	}
	return found[0], nil
}

func collectEventSittings(rows pgx.Rows, err error) ([]EventSitting, error) {
	if err != nil {
		return nil, fmt.Errorf("list the sittings: %w", err)
	}
	sittings, err := pgx.CollectRows(rows, pgx.RowToStructByName[EventSitting])
	if err != nil {
		return nil, fmt.Errorf("read the sittings: %w", err)
	}
	return sittings, nil
}

// SoldSitting is a sitting of an event with what is taken of it.
type SoldSitting struct {
	EventSitting
	Usable int // places that can be given
	Sold   int // for good
	Held   int // until an instant that is to come
}

// SoldSittings lists the sittings of an event with what is taken of each.
func SoldSittings(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (sold []SoldSitting, err error) {
	e, err := event.Find(ctx, db, actor, slug)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		sittings, err := EventSittings(ctx, tx, e.OrganisationID, e.ID)
		if err != nil {
			return err
		}
		plain := make([]Sitting, len(sittings))
		for i, s := range sittings {
			plain[i] = s.Sitting
			sold = append(sold, SoldSitting{EventSitting: s})
		}
		usable, err := Usable(ctx, tx, e.OrganisationID, plain)
		if err != nil {
			return err
		}
		for i := range sold {
			sold[i].Usable = usable[sold[i].ID].Count
		}
		return countSold(ctx, tx, e, sold)
	})
	return sold, err
}

func countSold(ctx context.Context, tx pgx.Tx, e event.Event, sold []SoldSitting) error {
	rows, err := tx.Query(ctx, `
select s.id, k.sold, k.held from sitting s
 cross join lateral (select count(*) filter (where expires_at is null)::int as sold, count(*) filter (where expires_at > clock())::int as held
                       from claim where organisation_id = $1 and sitting_id = s.id and released_at is null) k
 where s.organisation_id = $1 and s.event_id = $2`, e.OrganisationID, e.ID)
	if err != nil {
		return fmt.Errorf("count what is taken: %w", err)
	}
	var id int64
	var final, held int
	_, err = pgx.ForEachRow(rows, []any{&id, &final, &held}, func() error {
		for i := range sold {
			if sold[i].ID == id {
				sold[i].Sold, sold[i].Held = final, held
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count what is taken: %w", err)
	}
	return nil
}
