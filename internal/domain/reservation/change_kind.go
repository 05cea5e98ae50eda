package reservation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// mostLines bounds the tickets that a cart ever had, with those that were given up or exchanged.
const mostLines = 10 * MostTickets

// whyExchanged is the reason that the claim and the line keep whose seat is held for another kind of ticket (see
// ended_unpaid in the schema).
const whyExchanged = "exchanged"

// kindExchanged is the row of the timeline that says so.
const kindExchanged timeline.Kind = "reservation_ticket_exchanged"

// ChangeKind has a seat of a cart held for another kind of ticket, at the price of now, until the cart's end. The seat is theirs all the
// while: what is refused leaves the ticket as it was. A ticket of the wanted kind stays as it is, so that a repeat changes nothing.
func (d *Desk) ChangeKind(ctx context.Context, actor timeline.Actor, reference string, line int, kind string) (r Reservation, err error) {
	if r, err = Read(ctx, d.db, reference); err != nil {
		return r, err
	}
	if err := allow(actor, r.OrganisationID, unknown(reference)); err != nil {
		return r, err
	}
	of := slices.IndexFunc(r.Lines, func(l Line) bool { return l.Number == line })
	if of < 0 {
		return r, problem.NotFound("line_unknown", problem.Facts{"line": line, "reservation": r.Reference})
	}
	old := r.Lines[of]
	_, found, err := d.find(ctx, actor, []Part{{Event: old.Event, Sitting: old.Sitting, Seats: []Ticket{{Number: old.SeatNumber, Kind: kind}}}})
	if err != nil {
		return r, err
	}
	a := &asked{actor: actor, organisationID: r.OrganisationID}
	err = again(func() error {
		a.parts = found
		return d.within(ctx, a, func(ctx context.Context, tx pgx.Tx) error { return a.exchange(ctx, tx, r.ID, line, kind) }, nobodyAlong)
	})
	if err == nil {
		err = a.err
	}
	if err != nil || a.result.ID == 0 { // refused, or of that kind already
		return r, err
	}
	return a.result, nil
}

// exchange frees the seat of a ticket within the transaction that holds it again. Sittings are locked before the claim is touched.
func (a *asked) exchange(ctx context.Context, tx pgx.Tx, id int64, number int, kind string) error {
	r, err := lock(ctx, tx, a.organisationID, id)
	if err != nil {
		return err
	}
	a.to = &r
	if err := checkHeld(r); err != nil {
		return err
	}
	of := slices.IndexFunc(r.Lines, func(l Line) bool { return l.Number == number && !l.Cancelled })
	switch {
	case of < 0:
		return problem.NotFound("line_unknown", problem.Facts{"line": number, "reservation": r.Reference})
	case strings.EqualFold(r.Lines[of].Kind, strings.TrimSpace(kind)):
		return errNothingHeld
	case len(r.Lines) >= mostLines:
		return problem.Refused("cart_changed_often", nil)
	}
	if r.BuyerID != nil {
		if a.buyerID, err = LockBuyer(ctx, tx, a.organisationID, r.Email); err != nil {
			return err
		}
	}
	old := r.Lines[of]
	if _, _, err := seating.LockSittings(ctx, tx, a.organisationID, []int64{old.SittingID}); err != nil {
		return err
	}
	if _, err := seating.ReleaseInOrder(ctx, tx, a.organisationID, whyExchanged, []int64{old.ClaimID}); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
update line set cancelled_at = clock(), cancel_reason = $4, refund_minor = 0
 where organisation_id = $1 and reservation_id = $2 and number = $3 and cancelled_at is null`, pg.PlanAnew, a.organisationID, id, number, whyExchanged)
	if err != nil {
		return fmt.Errorf("exchange the ticket: %w", err)
	}
	r.Lines[of].Cancelled, r.Lines[of].Live = true, false
	return timeline.Record(ctx, tx, a.organisationID, a.actor, timeline.Entry{
		Kind: kindExchanged, Subject: timeline.Subject{ReservationID: id, EventID: old.EventID, SittingID: old.SittingID},
		Facts: map[string]any{"reservation": r.Reference, "seats": []string{old.Seat}, "from": old.Kind, "to": strings.TrimSpace(kind)},
	})
}
