package seating

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// LostSeat is a seat of a line that is somebody else's by now, or that nobody may have any more.
type LostSeat struct {
	Line    int
	Sitting string // reference
	Seat    string // label
}

// errLapsed says that a hold is over, judged after its claims were locked, or that its event is cancelled.
var errLapsed = errors.New("a hold is over")

// Finalise makes the seats of a reservation theirs for good while its hold holds: of all its lines that were not cancelled, or of
// none. The caller holds the reservation's row; the claims become final where they are, and no sitting is locked. held is false when
// the hold is over: at its instant, by the clock after the claims were locked. Then nothing is done, and Retake is next.
func Finalise(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) (held bool, err error) {
	// Within a savepoint: claims are locked after buyers and sittings, so those that were locked for nothing are let go.
	err = pg.Within(ctx, tx, func(tx pgx.Tx) error { return finaliseHeld(ctx, tx, organisationID, reservationID) })
	if errors.Is(err, errLapsed) {
		return false, nil
	}
	return err == nil, err
}

// finaliseHeld locks the claims in the order of their seats, and judges them then.
func finaliseHeld(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) error {
	rows, err := tx.Query(ctx, `
select k.id from claim k
 where k.organisation_id = $1 and k.reservation_id = $2 and k.released_at is null
 order by k.sitting_id, k.seat_number for no key update`, organisationID, reservationID)
	if err != nil {
		return fmt.Errorf("lock the holds: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("lock the holds: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update claim set expires_at = null where organisation_id = $1 and id = any($2) and released_at is null and (expires_at is null or expires_at > clock())`,
		organisationID, ids)
	if err != nil {
		return fmt.Errorf("make the holds final: %w", err)
	}
	var lines int64
	var off bool // a hold may have slipped in while its event was cancelled
	err = tx.QueryRow(ctx, `
select count(*), coalesce(bool_or(e.state = 'cancelled'), false) from line l join event e on (e.organisation_id, e.id) = (l.organisation_id, l.event_id)
 where l.organisation_id = $1 and l.reservation_id = $2 and l.cancelled_at is null`, organisationID, reservationID).Scan(&lines, &off)
	if err != nil {
		return fmt.Errorf("count the tickets: %w", err)
	}
	if tag.RowsAffected() != lines || off {
		return errLapsed
	}
	return nil
}

// overdue is a seat of a line whose hold is over.
type overdue struct {
	LostSeat
	ClaimID   int64 // the line's latest
	SittingID int64
	Released  bool  // it was taken back: the seat is claimed anew
	InTheWay  int64 // somebody's claim on it that has lapsed as well; 0: none
	Gone      bool
}

// Retake takes the seats of a reservation whose hold is over again, for good, under the lock of their sittings: all of them, or, where
// one is gone, none, and those that are gone are named.
func Retake(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]LostSeat, error) {
	sittings, err := sittingsOfLines(ctx, tx, organisationID, reservationID)
	if err != nil {
		return nil, err
	}
	if _, _, err := LockSittings(ctx, tx, organisationID, sittings); err != nil {
		return nil, err
	}
	seats, err := readOverdue(ctx, tx, organisationID, reservationID)
	if err != nil {
		return nil, err
	}
	var lost []LostSeat
	for _, seat := range seats {
		if seat.Gone {
			lost = append(lost, seat.LostSeat)
		}
	}
	if len(lost) > 0 {
		return lost, nil
	}
	return nil, takeAgain(ctx, tx, organisationID, seats)
}

func sittingsOfLines(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]int64, error) {
	rows, err := tx.Query(ctx, `select distinct sitting_id from claim where organisation_id = $1 and reservation_id = $2 order by 1`,
		organisationID, reservationID)
	if err != nil {
		return nil, fmt.Errorf("find the sittings of the reservation: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("find the sittings of the reservation: %w", err)
	}
	return ids, nil
}

// readOverdue reads, under the sittings' lock, what became of each line's seat. One is gone when somebody has it, for good or by a
// hold that holds, when it is blocked or beyond the places by now, and when its sitting is over or does not take place.
func readOverdue(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]overdue, error) {
	rows, err := tx.Query(ctx, `
select l.number as line, s.reference as sitting, k.seat_label as seat, k.id as claim_id, k.sitting_id, k.released_at is not null as released,
       case when o.expires_at <= clock() then o.id else 0 end as in_the_way,
       o.id is not null and (o.expires_at is null or o.expires_at > clock())
       or s.cancelled_at is not null or s.ends_at <= clock() or k.seat_number > s.places or e.state = 'cancelled'
       or exists (select from seat p where p.organisation_id = s.organisation_id and p.room_id = s.room_id and p.number = k.seat_number and p.blocked)
         as gone
  from line l
 cross join lateral (select * from claim c where c.organisation_id = l.organisation_id and c.reservation_id = l.reservation_id
                        and c.line_number = l.number order by c.id desc limit 1) k
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  join event e on (e.organisation_id, e.id) = (l.organisation_id, l.event_id)
  left join claim o on o.organisation_id = k.organisation_id and o.sitting_id = k.sitting_id and o.seat_number = k.seat_number
                   and o.released_at is null and o.id <> k.id
 where l.organisation_id = $1 and l.reservation_id = $2 and l.cancelled_at is null
 order by k.sitting_id, k.seat_number`, organisationID, reservationID)
	if err != nil {
		return nil, fmt.Errorf("read what became of the seats: %w", err)
	}
	seats, err := pgx.CollectRows(rows, pgx.RowToStructByName[overdue])
	if err != nil {
		return nil, fmt.Errorf("read what became of the seats: %w", err)
	}
	return seats, nil
}

// takeAgain releases lapsed claims in the way, makes those final that nobody took back, and claims the others anew, in the order of
// their seats. The unique key refuses what a forgotten lock let through, and what was paid while its claim was waited for: that needs
// no lock of the sitting.
func takeAgain(ctx context.Context, tx pgx.Tx, organisationID int64, seats []overdue) error {
	var lapsed, kept, anew []int64
	for _, seat := range seats {
		if seat.InTheWay != 0 {
			lapsed = append(lapsed, seat.InTheWay)
		}
		if seat.Released {
			anew = append(anew, seat.ClaimID)
		} else {
			kept = append(kept, seat.ClaimID)
		}
	}
	if len(lapsed) > 0 {
		if _, err := tx.Exec(ctx, takeBackLapsed, organisationID, lapsed); err != nil {
			return fmt.Errorf("release the holds that are over: %w", err)
		}
	}
	for _, statement := range []struct {
		sql string
		ids []int64
	}{{`
update claim c set expires_at = null
  from (select id from claim where organisation_id = $1 and id = any($2) order by sitting_id, seat_number for no key update) k
 where c.organisation_id = $1 and c.id = k.id`, kept}, {`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, replaces_id)
select k.organisation_id, k.sitting_id, s.places, k.seat_number, k.seat_label, k.event_id, k.reservation_id, k.line_number, k.id
  from claim k join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where k.organisation_id = $1 and k.id = any($2) order by k.sitting_id, k.seat_number`, anew}} {
		if len(statement.ids) == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, statement.sql, organisationID, statement.ids); err != nil {
			return fmt.Errorf("take the seats again: %w", err)
		}
	}
	return nil
}

// ReleaseOfEvent takes the seats of an event back that some reservations have, whose rows the caller holds.
func ReleaseOfEvent(ctx context.Context, tx pgx.Tx, organisationID, eventID int64, reservationIDs []int64, reason string) error {
	rows, err := tx.Query(ctx, `
select id from claim where reservation_id = any($3) and organisation_id = $1 and event_id = $2 and released_at is null`,
		organisationID, eventID, reservationIDs)
	if err != nil {
		return fmt.Errorf("find the seats of the event: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("find the seats of the event: %w", err)
	}
	_, err = ReleaseInOrder(ctx, tx, organisationID, reason, ids)
	return err
}

// ReleaseLines takes the seats of some lines of a reservation back, whose row the caller holds, and tells how many there were.
func ReleaseLines(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64, lines []int, reason string) (int, error) {
	rows, err := tx.Query(ctx, `
select id from claim where organisation_id = $1 and reservation_id = $2 and line_number = any($3) and released_at is null`,
		organisationID, reservationID, lines)
	if err != nil {
		return 0, fmt.Errorf("find the seats: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("find the seats: %w", err)
	}
	released, err := ReleaseInOrder(ctx, tx, organisationID, reason, slices.Sorted(slices.Values(ids)))
	return len(released), err
}
