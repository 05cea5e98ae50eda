package seating

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
)

// AddSitting adds one sitting by hand, under the campaign's lock, and gives it the next reference. A room that is busy then
// is refused in words.
func AddSitting(ctx context.Context, tx pgx.Tx, c admission.Campaign, s Planned) (added Sized, err error) {
	next, err := NextReference(ctx, tx, c)
	if err != nil {
		return added, err
	}
	s.Reference = Reference(next)
	if err := (Sitting{Reference: s.Reference}).refuseHours(s.StartsAt, s.EndsAt); err != nil {
		return added, err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return added, err
	}
	if !s.StartsAt.After(now) {
		return added, problem.Refused("sitting_added_past", nil)
	}
	if err := LockRooms(ctx, tx, c.OrganisationID, s.RoomID); err != nil {
		return added, err
	}
	if err := checkRoomFree(ctx, tx, c.OrganisationID, Sitting{Reference: s.Reference}, s.RoomID, s.StartsAt, s.EndsAt); err != nil {
		return added, err
	}
	err = AddSittings(ctx, tx, c, []*Planned{&s})
	if pg.Violates(err, "sitting_room_free") {
		return added, problem.Refused("room_busy", problem.Facts{"sitting": s.Reference}).Because(err)
	}
	if err != nil {
		return added, err
	}
	if added.Sitting, err = SittingByID(ctx, tx, c, s.ID); err != nil {
		return added, err
	}
	return sized(ctx, tx, c.OrganisationID, added.Sitting)
}
