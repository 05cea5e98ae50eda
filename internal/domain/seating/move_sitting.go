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

// MoveSitting moves a whole sitting to another room or time, under the campaign's lock, and raises
// its revision. Everybody keeps their seat; what makes that impossible is refused in words: a room
// that is busy, too small, or lacks one of the seats, and a time at which somebody sits elsewhere.
func MoveSitting(ctx context.Context, tx pgx.Tx, c admission.Campaign, s Sitting, roomID int64, startsAt, endsAt time.Time) (Sitting, error) {
	if !endsAt.After(startsAt) {
		return s, problem.Invalid("sitting_ends_before_start", problem.Facts{"sitting": s.Reference})
	}
	if err := lockRooms(ctx, tx, c.OrganisationID, roomID); err != nil {
		return s, err
	}
	if err := checkRoomFree(ctx, tx, c.OrganisationID, s, roomID, startsAt, endsAt); err != nil {
		return s, err
	}
	_, err := tx.Exec(ctx, `update sitting set room_id = $3, starts_at = $4, ends_at = $5, revision = revision + 1
 where organisation_id = $1 and id = $2`, c.OrganisationID, s.ID, roomID, startsAt, endsAt)
	if pg.Violates(err, "sitting_room_free") {
		return s, problem.Refused("room_busy", problem.Facts{"sitting": s.Reference})
	}
	if err != nil {
		return s, fmt.Errorf("move the sitting: %w", err)
	}
	if _, err := RefreshPlaces(ctx, tx, c.OrganisationID, []int64{roomID}); err != nil {
		return s, err
	}
	moved, err := SittingByID(ctx, tx, c, s.ID)
	if err != nil {
		return s, err
	}
	if err := checkSeatsThere(ctx, tx, c.OrganisationID, moved); err != nil {
		return s, err
	}
	if err := checkClashes(ctx, tx, c.OrganisationID, moved); err != nil {
		return s, err
	}
	return moved, relabel(ctx, tx, c.OrganisationID, moved)
}

// lockRooms lets one transaction at a time change when rooms are taken. The campaign's lock does not:
// a room may host several campaigns, and two that write to one room at once would each wait for the
// other inside the constraint that keeps sittings apart.
func lockRooms(ctx context.Context, tx pgx.Tx, organisationID int64, roomIDs ...int64) error {
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
   and (p.number is null or p.blocked)
   and exists (select from seat a where a.organisation_id = $1 and a.room_id = $3)
 order by k.seat_number`, organisationID, s.ID, s.RoomID)
}

// checkClashes refuses a time at which somebody of the sitting has another one.
func checkClashes(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting) error {
	return refuseNamed(ctx, tx, "sitting_clashes", problem.Facts{"sitting": s.Reference}, `
select concat_ws(' ', c.family_name, c.given_name, '(' || c.reference || ')')
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
