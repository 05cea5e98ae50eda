package reservation

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// whyGivenUp is the reason that claims and lines keep (see ended_unpaid in the schema).
const whyGivenUp = "given_up"

// GiveUp gives seats of a cart back before they are paid: those of the lines named, by their numbers, or all of them. A cart without a seat left
// is cancelled. Seats that were given back already are passed over, so that a repeat changes nothing.
func GiveUp(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, lines ...int) (r Reservation, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return r, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return r, err
	}
	err = inTurns(ctx, db, organisationID, func(tx pgx.Tx) (err error) {
		if r, err = lock(ctx, tx, organisationID, id); err != nil {
			return err
		}
		given, err := toGiveUp(r, lines)
		if err != nil || len(given) == 0 {
			return err
		}
		if err := giveUp(ctx, tx, actor, r, given); err != nil {
			return err
		}
		r, err = ReadByID(ctx, tx, organisationID, id)
		return err
	})
	return r, err
}

// toGiveUp are the lines that are given up now; none: that was done before.
func toGiveUp(r Reservation, wanted []int) (given []Line, err error) {
	for _, number := range wanted {
		if !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Number == number }) {
			return nil, problem.NotFound("line_unknown", problem.Facts{"line": number, "reservation": r.Reference})
		}
	}
	left := 0
	for _, line := range r.Lines {
		switch {
		case line.Cancelled:
		case len(wanted) == 0 || slices.Contains(wanted, line.Number):
			given = append(given, line)
		default:
			left++
		}
	}
	if r.State == Cancelled || len(given) == 0 {
		return nil, nil
	}
	if r.State == PaymentStarted && left == 0 {
		return given, nil
	}
	return given, checkHeld(r)
}

func giveUp(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, given []Line) error {
	numbers, claims, seats := make([]int, len(given)), make([]int64, len(given)), make([]string, len(given))
	for i, line := range given {
		numbers[i], claims[i], seats[i] = line.Number, line.ClaimID, line.Seat
	}
	left := slices.DeleteFunc(slices.Clone(r.Lines), func(l Line) bool { return l.Cancelled || slices.Contains(numbers, l.Number) })
	kind := kindGivenUp
	if len(left) == 0 {
		kind = kindCancelled
	} else if err := checkGroups(ctx, tx, r, left); err != nil {
		return err
	}
	if _, err := seating.ReleaseInOrder(ctx, tx, r.OrganisationID, whyGivenUp, claims); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
update line set cancelled_at = clock(), cancel_reason = $4, refund_minor = 0
 where organisation_id = $1 and reservation_id = $2 and number = any($3) and cancelled_at is null`, pg.PlanAnew, r.OrganisationID, r.ID, numbers, whyGivenUp)
	if err != nil {
		return fmt.Errorf("give up the tickets: %w", err)
	}
	if len(left) == 0 {
		if err := move(ctx, tx, r.OrganisationID, Cancel, r.ID); err != nil {
			return err
		}
		if err := giveBackKept(ctx, tx, actor, payment.PaidAfterEnd, r); err != nil {
			return err
		}
	}
	return timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
		Kind: kind, Subject: timeline.Subject{ReservationID: r.ID, EventID: given[0].EventID},
		Facts: map[string]any{"reservation": r.Reference, "seats": seats},
	})
}

// checkGroups refuses to leave tickets at a group's price where there is no group any more: prices that were held do not change.
func checkGroups(ctx context.Context, tx pgx.Tx, r Reservation, left []Line) error {
	counts, discounted := map[int64]int{}, []int64{}
	for _, line := range left {
		counts[line.EventID]++
		if line.PriceMinor < line.ListMinor {
			discounted = append(discounted, line.EventID)
		}
	}
	offers, err := event.Offers(ctx, tx, r.OrganisationID, discounted...)
	if err != nil {
		return err
	}
	for id, offer := range offers {
		if from := offer.Event.GroupFrom; from == nil || counts[id] < *from {
			return problem.Refused("group_broken", problem.Facts{"event": offer.Event.Name, "left": counts[id]})
		}
	}
	return nil
}

// move takes a step of reservations whose rows are locked, where it is legal.
func move(ctx context.Context, tx pgx.Tx, organisationID int64, step Step, ids ...int64) error {
	from := From(step)
	to, _ := Move(from[0], step)
	var ended string
	if to == Lapsed || to.Over() {
		ended = ", ended_at = clock()"
	}
	_, err := tx.Exec(ctx, `update reservation set state = $3`+ended+` where organisation_id = $1 and id = any($2) and state = any($4)`,
		pg.PlanAnew, organisationID, ids, to, from)
	if err != nil {
		return fmt.Errorf("write down that a reservation is %s: %w", to, err)
	}
	return nil
}
