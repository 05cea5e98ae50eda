// Package venue decides where people can sit at all: centres, their rooms, and the plan of a
// room. How many of these places a sitting may use is decided in seating.
package venue

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
)

// Bound is the number of places of a room about which nobody said anything. It is a bound, not an
// estimate: a run never seats more, and names the sittings that fell back on it.
const Bound = 200

// MostPlaces is the largest capacity that is believed: a stadium; more is a typing mistake.
const MostPlaces = 100_000

// Centre is a place with rooms.
type Centre struct {
	ID       int64
	Name     string
	TimeZone string
	Capacity *int // the places of each of its rooms that says nothing itself
}

// EnsureCentre finds the centre by its name, without regard to case and spacing, or adds it.
func EnsureCentre(ctx context.Context, tx pgx.Tx, organisationID int64, name, timeZone string) (Centre, error) {
	if _, err := tx.Exec(ctx, `insert into centre (organisation_id, name, time_zone) values ($1, $2, $3) on conflict do nothing`,
		organisationID, name, timeZone); err != nil {
		return Centre{}, fmt.Errorf("add the centre: %w", err)
	}
	centre, found, err := FindCentre(ctx, tx, organisationID, name)
	if err == nil && !found {
		err = fmt.Errorf("the centre %q was added and is not there", name)
	}
	return centre, err
}

// FindCentre finds a centre by its name.
func FindCentre(ctx context.Context, tx pgx.Tx, organisationID int64, name string) (Centre, bool, error) {
	rows, err := tx.Query(ctx, `select id, name, time_zone, capacity from centre
 where organisation_id = $1 and name_key(name) = name_key($2)`, organisationID, name)
	if err != nil {
		return Centre{}, false, fmt.Errorf("find the centre: %w", err)
	}
	centres, err := pgx.CollectRows(rows, pgx.RowToStructByName[Centre])
	if err != nil || len(centres) == 0 {
		return Centre{}, false, err
	}
	return centres[0], true, nil
}

// EnsureRoom finds the room of a centre by its name or adds it.
func EnsureRoom(ctx context.Context, tx pgx.Tx, organisationID, centreID int64, name string) (roomID int64, added bool, err error) {
	tag, err := tx.Exec(ctx, `insert into room (organisation_id, centre_id, name) values ($1, $2, $3) on conflict do nothing`,
		organisationID, centreID, name)
	if err != nil {
		return 0, false, fmt.Errorf("add the room: %w", err)
	}
	err = tx.QueryRow(ctx, `select id from room where organisation_id = $1 and centre_id = $2 and name_key(name) = name_key($3)`,
		organisationID, centreID, name).Scan(&roomID)
	if err != nil {
		return 0, false, fmt.Errorf("find the room: %w", err)
	}
	return roomID, tag.RowsAffected() > 0, nil
}

// CheckCapacity refuses what cannot be a number of places. 0 is a capacity: nobody sits there.
func CheckCapacity(capacity *int) error {
	if capacity != nil && (*capacity < 0 || *capacity > MostPlaces) {
		return problem.Invalid("capacity_impossible", problem.Facts{"capacity": *capacity, "most": MostPlaces})
	}
	return nil
}

// SetCapacity says how many places a room has, or, with roomID zero, each room of a centre that
// says nothing itself. Nil takes the number back. It tells whether another number was said before.
func SetCapacity(ctx context.Context, tx pgx.Tx, organisationID, centreID, roomID int64, capacity *int) (changed bool, err error) {
	if err := CheckCapacity(capacity); err != nil {
		return false, err
	}
	statement, id := `update centre set capacity = $3 where organisation_id = $1 and id = $2 and capacity is distinct from $3`, centreID
	if roomID != 0 {
		statement, id = `update room set capacity = $3 where organisation_id = $1 and id = $2 and capacity is distinct from $3`, roomID
	}
	tag, err := tx.Exec(ctx, statement, organisationID, id, capacity)
	if err != nil {
		return false, fmt.Errorf("set the capacity: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// SetTimeZone gives a centre another zone (an IANA name that is known to be one). What becomes of the
// sittings there is decided in seating, in the same transaction.
func SetTimeZone(ctx context.Context, tx pgx.Tx, organisationID, centreID int64, zone string) error {
	if _, err := tx.Exec(ctx, `update centre set time_zone = $3 where organisation_id = $1 and id = $2`, organisationID, centreID, zone); err != nil {
		return fmt.Errorf("set the time zone: %w", err)
	}
	return nil
}

// FindRoomOf finds a room by its name and its centre's.
func FindRoomOf(ctx context.Context, tx pgx.Tx, organisationID int64, centreName, roomName string) (Centre, int64, error) {
	centre, found, err := FindCentre(ctx, tx, organisationID, centreName)
	if err == nil && !found {
		err = problem.NotFound("centre_unknown", problem.Facts{"centre": centreName})
	}
	if err != nil {
		return centre, 0, err
	}
	roomID, err := FindRoom(ctx, tx, organisationID, centre, roomName)
	return centre, roomID, err
}

// FindRoom finds a room of a centre by its name.
func FindRoom(ctx context.Context, tx pgx.Tx, organisationID int64, centre Centre, name string) (roomID int64, err error) {
	err = tx.QueryRow(ctx, `select id from room where organisation_id = $1 and centre_id = $2 and name_key(name) = name_key($3)`,
		organisationID, centre.ID, name).Scan(&roomID)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, problem.NotFound("room_unknown", problem.Facts{"room": name, "centre": centre.Name})
	}
	if err != nil {
		return 0, fmt.Errorf("find the room: %w", err)
	}
	return roomID, nil
}
