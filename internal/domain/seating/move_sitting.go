package seating

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

// mostNamed is how many people or seats a refusal names; the rest are counted.
const mostNamed = 5

// Longest is the longest sitting that is believed: more is a wrong date. The database holds to it too.
const Longest = 24 * time.Hour

// Hours is what is to be said of the hours of a sitting.
type Hours int

// The hours of a sitting are in order, or why not.
const (
	HoursInOrder Hours = iota
	HoursBackwards
	HoursTooLong
)

// CheckHours is the one rule of when a sitting may end.
func CheckHours(startsAt, endsAt time.Time) Hours {
	switch {
	case !endsAt.After(startsAt):
		return HoursBackwards
	case endsAt.Sub(startsAt) > Longest:
		return HoursTooLong
	}
	return HoursInOrder
}

// MoveSitting moves a whole sitting to another room or time, under the campaign's lock, and raises
// its revision. Everybody keeps their seat; what makes that impossible is refused in words: a room
// that is busy, too small, also where the sitting has places of its own, or lacks one of the seats, and a time at which somebody sits elsewhere.
func MoveSitting(ctx context.Context, tx pgx.Tx, c admission.Campaign, s Sitting, roomID int64, startsAt, endsAt time.Time) (Sitting, error) {
	if err := rehouse(ctx, tx, c.OrganisationID, s, roomID, startsAt, endsAt); err != nil {
		return s, err
	}
	moved, err := SittingByID(ctx, tx, c, s.ID)
	if err != nil {
		return s, err
	}
	if err := checkStay(ctx, tx, c.OrganisationID, s, moved); err != nil {
		return s, err
	}
	if err := checkClashes(ctx, tx, c.OrganisationID, moved); err != nil {
		return s, err
	}
	return moved, relabel(ctx, tx, c.OrganisationID, moved)
}

// rehouse gives a sitting, of an exam or of an event, another room and other hours, and what follows for its places.
func rehouse(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, roomID int64, startsAt, endsAt time.Time) error {
	if err := s.refuseHours(startsAt, endsAt); err != nil {
		return err
	}
	if err := LockRooms(ctx, tx, organisationID, roomID); err != nil {
		return err
	}
	if err := checkRoomFree(ctx, tx, organisationID, s, roomID, startsAt, endsAt); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update sitting set room_id = $3, starts_at = $4, ends_at = $5, revision = revision + 1
 where organisation_id = $1 and id = $2`, organisationID, s.ID, roomID, startsAt, endsAt)
	if pg.Violates(err, "sitting_room_free") {
		return problem.Refused("room_busy", problem.Facts{"sitting": s.Reference})
	}
	if err != nil {
		return fmt.Errorf("move the sitting: %w", err)
	}
	_, err = RefreshPlaces(ctx, tx, organisationID, []int64{roomID})
	return err
}

// checkStay refuses a move after which somebody could not keep their seat.
func checkStay(ctx context.Context, tx pgx.Tx, organisationID int64, before, after Sitting) error {
	if err := checkSeatsThere(ctx, tx, organisationID, after); err != nil || after.RoomID == before.RoomID {
		return err
	}
	return checkRoomHolds(ctx, tx, organisationID, after)
}

// refuseHours says what is wrong with hours that a sitting would have.
func (s Sitting) refuseHours(startsAt, endsAt time.Time) error {
	switch CheckHours(startsAt, endsAt) {
	case HoursBackwards:
		return problem.Invalid("sitting_ends_before_start", problem.Facts{"sitting": s.Reference})
	case HoursTooLong:
		return problem.Invalid("sitting_too_long", problem.Facts{"sitting": s.Reference, "hours": int(Longest.Hours())})
	}
	return nil
}

// LockRooms lets one transaction at a time change when rooms are taken. The campaign's lock does not:
// a room may host several campaigns, and two that write to one room at once would each wait for the
// other inside the constraint that keeps sittings apart. A transaction takes all of its rooms at once,
// in key order: taken in two goes, they could each wait for the other here.
func LockRooms(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs ...int64) error {
	_, err := tx.Exec(ctx, `select from room where organisation_id = $1 and id = any($2) order by id for no key update`, organisationID, roomIDs)
	if err != nil {
		return fmt.Errorf("lock the rooms: %w", err)
	}
	return nil
}

// checkRoomFree names the sitting that is in the room; the database refuses the overlap in any case.
func checkRoomFree(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, roomID int64, startsAt, endsAt time.Time) error {
	return refuseNamed(ctx, tx, "room_busy", problem.Facts{"sitting": s.Reference}, `
select o.reference from sitting o
 where o.organisation_id = $1 and o.room_id = $2 and o.id <> $3 and o.cancelled_at is null
   and tstzrange(o.starts_at, o.ends_at) && tstzrange($4, $5) order by o.starts_at`, organisationID, roomID, s.ID, startsAt, endsAt)
}

// CancelSitting takes a sitting out of the timetable, under the campaign's lock. Whoever sits there
// must be moved or released first: nobody loses a seat by it.
func CancelSitting(ctx context.Context, tx pgx.Tx, c admission.Campaign, s Sitting) error {
	claims, err := ClaimsAt(ctx, tx, c.OrganisationID, s.ID)
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		return problem.Refused("sitting_in_use", problem.Facts{"sitting": s.Reference, "people": len(claims)})
	}
	if _, err := tx.Exec(ctx, `update sitting set cancelled_at = clock() where organisation_id = $1 and id = $2`, c.OrganisationID, s.ID); err != nil {
		return fmt.Errorf("cancel the sitting: %w", err)
	}
	return nil
}

// checkSeatsThere refuses a room whose plan lacks or blocks a seat that somebody holds.
func checkSeatsThere(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) error {
	return refuseNamed(ctx, tx, "seats_missing", problem.Facts{"sitting": s.Reference, "place": s.Place()}, `
select k.seat_label from claim k
  left join seat p on (p.organisation_id, p.room_id, p.number) = (k.organisation_id, $3, k.seat_number)
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null and k.seat_number is not null
   and (k.expires_at is null or k.expires_at > clock()) and (p.number is null or p.blocked)
   and exists (select from seat a where a.organisation_id = $1 and a.room_id = $3)
 order by k.seat_number`, organisationID, s.ID, s.RoomID)
}

// RoomPlaces is how many people a room itself holds: its number or, without one, that of its centre, and no more than its
// plan has seats that are not blocked. Nil: nobody has said it. The places of a sitting may be more, when they are its own.
func RoomPlaces(ctx context.Context, tx pgx.Tx, organisationID, roomID int64) (places *int, err error) {
	holds, err := RoomsHold(ctx, tx, organisationID, []int64{roomID})
	if number, known := holds[roomID]; known {
		places = &number
	}
	return places, err
}

// RoomsHold tells the same of several rooms; of those that are missing nobody has said it.
func RoomsHold(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs []int64) (map[int64]int, error) {
	holds := map[int64]int{}
	rows, err := tx.Query(ctx, `
select id, places from (
  select r.id, least(coalesce(r.capacity, c.capacity),
             (select case when count(*) > 0 then count(*) filter (where not p.blocked) end from seat p
               where p.organisation_id = $1 and p.room_id = r.id))::int as places
    from room r join centre c on (c.organisation_id, c.id) = (r.organisation_id, r.centre_id)
   where r.organisation_id = $1 and r.id = any($2)) held
 where places is not null`, organisationID, roomIDs)
	if err != nil {
		return nil, fmt.Errorf("read what the rooms hold: %w", err)
	}
	var id int64
	var places int
	if _, err := pgx.ForEachRow(rows, []any{&id, &places}, func() error { holds[id] = places; return nil }); err != nil {
		return nil, fmt.Errorf("read what the rooms hold: %w", err)
	}
	return holds, nil
}

// checkRoomHolds refuses a room for which the people of a sitting are too many, or that has fewer seats than the number of
// one that somebody holds. A sitting's own places were said for the room where it was, and do not make another one larger.
func checkRoomHolds(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) error {
	holds, err := RoomPlaces(ctx, tx, organisationID, s.RoomID)
	if err != nil || holds == nil {
		return err
	}
	return refuseNamed(ctx, tx, "room_too_small", problem.Facts{
		"sitting": s.Reference, "place": s.Place(), "places": *holds, "room": s.Room, "centre": s.Centre,
	}, `
select case when c.id is null then k.seat_label else concat_ws(' ', c.family_name, nullif(c.given_name, ''), '(' || concat_ws(', ', c.reference, k.seat_label) || ')') end
  from (select candidate_id, seat_number, seat_label, row_number() over (order by seat_number nulls last, id) as nth
          from claim where organisation_id = $1 and sitting_id = $2 and released_at is null and (expires_at is null or expires_at > clock())) k
  left join candidate c on (c.organisation_id, c.id) = ($1, k.candidate_id)
 where k.nth > $4 or k.seat_number > $4 and not exists (select from seat where organisation_id = $1 and room_id = $3)
 order by k.nth`, organisationID, s.ID, s.RoomID, *holds)
}

// checkClashes refuses a time at which somebody of the sitting has another one.
func checkClashes(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) error {
	return refuseNamed(ctx, tx, "sitting_clashes", problem.Facts{"sitting": s.Reference}, `
select concat_ws(' ', c.family_name, nullif(c.given_name, ''), '(' || c.reference || ')')
  from claim k
  join claim o on (o.organisation_id, o.candidate_id) = (k.organisation_id, k.candidate_id) and o.id <> k.id and o.released_at is null
  join sitting s on (s.organisation_id, s.id) = (o.organisation_id, o.sitting_id)
  join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null
   and s.starts_at < $4 and $3 < s.ends_at
 order by c.filed_at, c.id`, organisationID, s.ID, s.StartsAt, s.EndsAt)
}

// refuseNamed refuses when the statement finds anything, and names the first of it.
func refuseNamed(ctx context.Context, tx pgx.Tx, code string, facts problem.Facts, statement string, args ...any) error {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("check the move: %w", err)
	}
	named, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("check the move: %w", err)
	}
	if len(named) == 0 {
		return nil
	}
	facts["count"], facts["named"] = len(named), named[:min(mostNamed, len(named))]
	return problem.Refused(code, facts)
}

// relabel gives the seats of a sitting the labels of its room's plan. Without a plan a label keeps
// the form in which it was told.
func relabel(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) error {
	_, err := tx.Exec(ctx, `
update claim k set seat_label = p.label from seat p
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null
   and (p.organisation_id, p.room_id, p.number) = ($1, $3, k.seat_number) and p.label <> k.seat_label`, organisationID, s.ID, s.RoomID)
	if err != nil {
		return fmt.Errorf("label the seats: %w", err)
	}
	return nil
}

// Span is when a sitting begins and ends, or when it is to; a zero instant is one that nobody said.
type Span struct{ StartsAt, EndsAt time.Time }

// MovedTo gives the instants after a move: a new start keeps how long the sitting lasts, unless a new end is said as well.
func (s Span) MovedTo(to Span) (startsAt, endsAt time.Time) {
	startsAt, endsAt = s.StartsAt, s.EndsAt
	if !to.StartsAt.IsZero() {
		startsAt, endsAt = to.StartsAt, to.StartsAt.Add(s.EndsAt.Sub(s.StartsAt))
	}
	if !to.EndsAt.IsZero() {
		endsAt = to.EndsAt
	}
	return startsAt, endsAt
}
