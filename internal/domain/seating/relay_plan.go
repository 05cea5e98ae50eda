package seating

import (
	"context"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// Laid counts the seats of a plan that was laid, beside those of the plan before.
type Laid struct {
	Seats     int // of the plan
	Created   int
	Updated   int
	Unchanged int
	Removed   int
	Changed   bool // something is otherwise than before, be it what is drawn beside the seats
}

// errRehearsed takes back what a rehearsal did.
var errRehearsed = errors.New("rehearsed")

// RelayPlan gives a room the seats of another plan. A seat that stays, by its guid or else by its label, keeps its number, and that it
// is blocked or accessible (venue.Renumber). The same plan again changes nothing. A rehearsal does all of it, and takes it back.
func RelayPlan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, roomName string,
	seats []venue.Seat, drawing venue.Drawing, rehearse bool,
) (laid Laid, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return laid, err
	}
	err = ChangePlan(ctx, db, actor, org, centreName, roomName, func(ctx context.Context, tx pgx.Tx, roomID int64) (NewPlan, bool, error) {
		stored, err := venue.Plan(ctx, tx, org.ID, roomID)
		if err != nil {
			return NewPlan{}, false, err
		}
		drawn, err := venue.ReadDrawing(ctx, tx, org.ID, roomID)
		if err != nil {
			return NewPlan{}, false, err
		}
		after := venue.Renumber(stored, seats)
		laid = compare(stored, after)
		laid.Changed = laid.Changed || !reflect.DeepEqual(drawn, drawing)
		return NewPlan{Seats: after, Drawing: &drawing, Rehearsed: rehearse}, laid.Changed, nil
	})
	if errors.Is(err, errRehearsed) {
		err = nil
	}
	return laid, err
}

func compare(before, after []venue.Seat) Laid {
	stood := make(map[int]venue.Seat, len(before))
	for _, s := range before {
		stood[s.Number] = s
	}
	laid := Laid{Seats: len(after), Removed: len(before)}
	for _, s := range after {
		old, stays := stood[s.Number]
		switch {
		case !stays:
			laid.Created++
			continue
		case old == s:
			laid.Unchanged++
		default:
			laid.Updated++
		}
		laid.Removed--
	}
	laid.Changed = laid.Created+laid.Updated+laid.Removed > 0
	return laid
}

// ReadPlan reads the plan of a room, to be written as a file.
func ReadPlan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, roomName string) (seats []venue.Seat, drawing venue.Drawing, err error) {
	if !actor.MayActFor(org.ID) {
		return nil, drawing, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		_, roomID, err := venue.FindRoomOf(ctx, tx, org.ID, centreName, roomName)
		if err != nil {
			return err
		}
		if seats, err = venue.Plan(ctx, tx, org.ID, roomID); err != nil {
			return err
		}
		if len(seats) == 0 {
			return problem.Refused("room_without_plan", problem.Facts{"room": roomName, "centre": centreName})
		}
		drawing, err = venue.ReadDrawing(ctx, tx, org.ID, roomID)
		return err
	})
	return seats, drawing, err
}
