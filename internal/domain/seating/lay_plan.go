package seating

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// KindPlanLaid is the timeline row of a room that got another plan.
const KindPlanLaid timeline.Kind = "plan_laid"

// NewPlan is the plan that a room is to have.
type NewPlan struct {
	Seats   []venue.Seat
	Drawing *venue.Drawing // nil: what was drawn stays

	Rehearsed bool // it is laid, checked and taken up again
}

// LayPlan gives a room its plan and checks that everybody who will sit there still can.
func LayPlan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, roomName string, seats []venue.Seat) error {
	return ChangePlan(ctx, db, actor, org, centreName, roomName, func(context.Context, pgx.Tx, int64) (NewPlan, bool, error) {
		return NewPlan{Seats: seats}, true, nil
	})
}

// ChangePlan gives a room the plan that is decided under the locks, from what stands then; without
// a change nothing is written. No seat that somebody holds at a coming sitting is taken away, blocked or called otherwise than
// they were told; a hold that has lapsed keeps none.
func ChangePlan(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, centreName, roomName string,
	decide func(ctx context.Context, tx pgx.Tx, roomID int64) (plan NewPlan, change bool, err error),
) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return err
	}
	return db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		campaigns, err := lockAll(ctx, tx, org.ID)
		if err != nil {
			return err
		}
		centre, roomID, err := venue.FindRoomOf(ctx, tx, org.ID, centreName, roomName)
		if err != nil {
			return err
		}
		if err := lockSittingsIn(ctx, tx, org.ID, roomID); err != nil {
			return err
		}
		plan, change, err := decide(ctx, tx, roomID)
		if err != nil || !change {
			return err
		}
		if err := layPlan(ctx, tx, org.ID, roomID, plan); err != nil {
			return err
		}
		for _, c := range campaigns {
			if err := admission.Revise(ctx, tx, c); err != nil {
				return err
			}
		}
		if plan.Rehearsed {
			return errRehearsed
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: KindPlanLaid, Facts: map[string]any{"centre": centre.Name, "room": roomName, "seats": len(plan.Seats)},
		})
	})
}

// lockSittingsIn holds a room and, in key order, the sittings of events there: whoever holds seats of one locks it, and so sees
// either plan whole. Those of exams are under their campaigns' locks.
func lockSittingsIn(ctx context.Context, tx pgx.Tx, organisationID, roomID int64) error {
	if err := LockRooms(ctx, tx, organisationID, roomID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select from sitting where organisation_id = $1 and room_id = $2 and event_id is not null and cancelled_at is null
   and ends_at > clock() order by id for no key update`, organisationID, roomID)
	if err != nil {
		return fmt.Errorf("lock the sittings of the room: %w", err)
	}
	return nil
}

func layPlan(ctx context.Context, tx pgx.Tx, organisationID, roomID int64, plan NewPlan) error {
	if err := venue.LayPlan(ctx, tx, organisationID, roomID, plan.Seats); err != nil {
		return err
	}
	if plan.Drawing != nil {
		if err := venue.KeepDrawing(ctx, tx, organisationID, roomID, *plan.Drawing); err != nil {
			return err
		}
	}
	if err := checkHeldSeats(ctx, tx, organisationID, roomID); err != nil {
		return err
	}
	_, err := RefreshPlaces(ctx, tx, organisationID, []int64{roomID})
	return err
}

// heldSeats are the seats that somebody holds at the coming sittings of a room, beside those of its plan.
const heldSeats = `
  from sitting s
  join claim k on k.organisation_id = $1 and k.sitting_id = s.id and k.released_at is null and k.seat_number is not null
   and (k.expires_at is null or k.expires_at > clock())
  left join seat p on p.organisation_id = $1 and p.room_id = s.room_id and p.number = k.seat_number
 where s.organisation_id = $1 and s.room_id = $2 and s.cancelled_at is null and s.ends_at > clock()`

// checkHeldSeats refuses a plan without a seat that somebody holds, or under another label than they were told: 007 and 7 are one.
func checkHeldSeats(ctx context.Context, tx pgx.Tx, organisationID, roomID int64) error {
	err := refuseNamed(ctx, tx, "plan_takes_seats", problem.Facts{}, `select k.seat_label || ' (' || s.reference || ')'`+heldSeats+`
   and (p.number is null or p.blocked) and exists (select from seat a where a.organisation_id = $1 and a.room_id = $2)
 order by k.seat_number, s.starts_at`, organisationID, roomID)
	if err != nil {
		return err
	}
	return refuseNamed(ctx, tx, "plan_renames_seats", problem.Facts{}, `select k.seat_label || ' → ' || p.label || ' (' || s.reference || ')'`+heldSeats+`
   and name_key(ltrim(p.label, '0')) <> name_key(ltrim(k.seat_label, '0'))
 order by k.seat_number, s.starts_at`, organisationID, roomID)
}
