package seating

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/venue"
)

// tieredPlaces is the cascade of capacity: the sitting's own, else its room's, else, for an event, what the room's plan goes up
// to, else the centre's, else the bound. It speaks of s (capacity), r (room), ce (centre), p (plan) and a parameter $2, the bound.
const tieredPlaces = `
       coalesce(s.capacity, r.capacity, p.highest, ce.capacity, $2::int) as places,
       case when s.capacity is not null then 'sitting' when r.capacity is not null then 'room' when p.highest is not null then 'plan'
            when ce.capacity is not null then 'centre' else 'bound' end as places_from`

// The plan of a room (r) as far as it counts for the places of its sittings: for those of exams it only takes away (UsablePlaces).
const (
	planOfExams  = ` cross join (select null::int as highest) p`
	planOfEvents = ` cross join lateral (select max(number) as highest from seat where organisation_id = r.organisation_id and room_id = r.id) p`
	planOfAny    = `
    cross join lateral (select max(number) as highest from seat
                         where organisation_id = r.organisation_id and room_id = r.id and s.event_id is not null) p`
)

// tiers are the coming sittings of some rooms ($3; null: of all) and what the tiers say of them.
const tiers = `
with tier as (
  select s.organisation_id, s.id, s.reference, r.name || ', ' || ce.name as place,` + tieredPlaces + `
    from sitting s
    join room r on (r.organisation_id, r.id) = (s.organisation_id, s.room_id)
    join centre ce on (ce.organisation_id, ce.id) = (r.organisation_id, r.centre_id)` + planOfAny + `
   where s.organisation_id = $1 and s.cancelled_at is null and s.ends_at > clock()
     and ($3::bigint[] is null or s.room_id = any($3)))`

// RefreshPlaces brings the places of the coming sittings of these rooms (nil: of all rooms of the
// organisation) to what the tiers say now, and revises the campaigns whose sittings changed: a run
// under way may seat whom it refused. It is called, in the same transaction and under the campaigns'
// locks, by whoever changed a capacity. It refuses a number below the people who hold a
// place, and below a seat that somebody holds; the database refuses the latter by itself, however
// the race goes.
//
// Sittings of events are brought up too; holds there that have lapsed stand in nobody's way.
func RefreshPlaces(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs []int64) (changed int, err error) {
	if err := releaseLapsed(ctx, tx, organisationID, roomIDs); err != nil {
		return 0, err
	}
	if err := checkInUse(ctx, tx, organisationID, roomIDs); err != nil {
		return 0, err
	}
	rows, err := tx.Query(ctx, tiers+`
update sitting s set places = t.places, places_from = t.places_from
  from tier t
 where s.organisation_id = t.organisation_id and s.id = t.id
   and (s.places, s.places_from) is distinct from (t.places, t.places_from)
returning coalesce(s.campaign_id, 0)`, organisationID, venue.Bound, roomIDs)
	var campaigns []int64
	if err == nil {
		campaigns, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if pg.Violates(err, "claim_seat_in_room") {
		return 0, problem.Refused("seat_in_use", nil).Because(err)
	}
	if err != nil {
		return 0, fmt.Errorf("refresh the places: %w", err)
	}
	changed = len(campaigns)
	slices.Sort(campaigns)
	for _, id := range slices.Compact(campaigns) {
		if id == 0 { // an event's
			continue
		}
		if err := admission.Revise(ctx, tx, admission.Campaign{OrganisationID: organisationID, ID: id}); err != nil {
			return 0, err
		}
	}
	return changed, nil
}

// releaseLapsed releases the holds of coming sittings of these rooms (nil: of all) that have lapsed, in the order of their seats. The
// sittings are locked first: who holds seats there does the same.
func releaseLapsed(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs []int64) error {
	_, err := tx.Exec(ctx, `
with locked as materialized (
  select id from sitting
   where organisation_id = $1 and event_id is not null and cancelled_at is null and ends_at > clock() and ($2::bigint[] is null or room_id = any($2))
   order by id for no key update)
update claim c set released_at = clock(), release_reason = 'lapsed'
  from (select k.id from locked s join claim k on k.organisation_id = $1 and k.sitting_id = s.id
         where k.released_at is null and k.expires_at <= clock() order by k.sitting_id, k.seat_number for no key update of k) l
 where c.organisation_id = $1 and c.id = l.id`, organisationID, roomIDs)
	if err != nil {
		return fmt.Errorf("release the holds that have lapsed: %w", err)
	}
	return nil
}

// checkInUse refuses, with the names, places that would not do for the people who hold one.
func checkInUse(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs []int64) error {
	rows, err := tx.Query(ctx, tiers+`
select t.reference, t.place, t.places, count(*)::int, coalesce(max(k.seat_number), 0)
  from tier t join claim k on k.sitting_id = t.id and k.released_at is null
 group by t.id, t.reference, t.place, t.places having count(*) > t.places or max(k.seat_number) > t.places
 order by t.id limit 1`, organisationID, venue.Bound, roomIDs)
	if err != nil {
		return fmt.Errorf("count the places in use: %w", err)
	}
	var refused error
	var reference, place string
	var places, people, highest int
	_, err = pgx.ForEachRow(rows, []any{&reference, &place, &places, &people, &highest}, func() error {
		refused = problem.Refused("places_in_use", problem.Facts{
			"sitting": reference, "place": place, "places": places, "people": people, "highest": highest,
		})
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the places in use: %w", err)
	}
	return refused
}

// InUse is what the people of a sitting need of its places.
type InUse struct {
	People  int // who hold a place
	Highest int // seat number that somebody holds; 0: none
}

// PlacesInUse tells, by sitting, what its people need.
func PlacesInUse(ctx context.Context, tx pgx.Tx, organisationID int64, sittingIDs []int64) (map[int64]InUse, error) {
	uses := map[int64]InUse{}
	if len(sittingIDs) == 0 {
		return uses, nil
	}
	rows, err := tx.Query(ctx, `
select sitting_id, count(*)::int, coalesce(max(seat_number), 0) from claim
 where organisation_id = $1 and sitting_id = any($2) and released_at is null group by sitting_id`, organisationID, sittingIDs)
	if err != nil {
		return nil, fmt.Errorf("count the places in use: %w", err)
	}
	var id int64
	var use InUse
	_, err = pgx.ForEachRow(rows, []any{&id, &use.People, &use.Highest}, func() error { uses[id] = use; return nil })
	if err != nil {
		return nil, fmt.Errorf("count the places in use: %w", err)
	}
	return uses, nil
}
