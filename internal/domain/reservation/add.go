package reservation

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Add holds more seats for a cart that holds and that nobody pays yet, all of them or none, until the cart's end: what was held before keeps its
// prices and its end. Seats that the cart has already are left as they are, so that a repeat changes nothing. Tickets is how many the cart had when it was asked: for seats that are chosen for the buyer, it
// tells a repeat from a second wish.
func (d *Desk) Add(ctx context.Context, actor timeline.Actor, reference string, tickets int, parts []Part) (r Reservation, err error) {
	if err := checkParts(parts, 0); err != nil {
		return r, err
	}
	organisationID, id, err := find(ctx, d.db, reference)
	if err != nil {
		return r, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return r, err
	}
	of, found, err := d.find(ctx, actor, parts)
	if err != nil {
		return r, err
	}
	if of != organisationID {
		return r, problem.Invalid("cart_organisations", nil)
	}
	a := &asked{actor: actor, organisationID: organisationID}
	err = again(func() error {
		a.parts = found
		return d.within(ctx, a, func(ctx context.Context, tx pgx.Tx) error { return a.join(ctx, tx, id, tickets) }, nobodyAlong)
	})
	if err == nil {
		err = a.err
	}
	if err == nil && len(a.parts) == 0 {
		return *a.to, nil
	}
	return a.result, err
}

// join takes the row of the reservation to which seats are added, and its buyer's.
func (a *asked) join(ctx context.Context, tx pgx.Tx, id int64, tickets int) error {
	r, err := lock(ctx, tx, a.organisationID, id)
	if err != nil {
		return err
	}
	if err := checkHeld(r); err != nil {
		return err
	}
	a.to = &r
	a.parts = a.missing(a.parts)
	have, more := 0, 0
	for _, line := range r.Lines {
		if !line.Cancelled {
			have++
		}
	}
	for _, part := range a.parts {
		more += part.tickets()
	}
	switch {
	case more > 0 && have != tickets:
		return problem.Refused("cart_changed", problem.Facts{"count": have})
	case have+more > MostTickets:
		return problem.Refused("cart_large", problem.Facts{"most": MostTickets})
	}
	if r.BuyerID == nil {
		return nil
	}
	a.buyerID, err = LockBuyer(ctx, tx, a.organisationID, r.Email)
	return err
}

// missing leaves out the seats that the cart has already.
func (a *asked) missing(parts []askedPart) (left []askedPart) {
	for _, part := range parts {
		if part.Best != nil {
			left = append(left, part)
			continue
		}
		var seats []Ticket
		for _, ticket := range part.Seats {
			if !a.has(part.sittingID, ticket) {
				seats = append(seats, ticket)
			}
		}
		if part.Seats = seats; len(seats) > 0 {
			left = append(left, part)
		}
	}
	return left
}

func (a *asked) has(sittingID int64, ticket Ticket) bool {
	for _, line := range a.to.Lines {
		same := ticket.Number == line.SeatNumber || ticket.Number == 0 && strings.EqualFold(strings.TrimSpace(ticket.Seat), line.Seat)
		if line.Live && line.SittingID == sittingID && same {
			return true
		}
	}
	return false
}

// checkHeld refuses what is only done with a cart that holds, and that nobody pays.
func checkHeld(r Reservation) error {
	switch r.State {
	case Held:
		return nil
	case Lapsed:
		return problem.Refused("hold_over", problem.Facts{"reservation": r.Reference})
	case PaymentStarted:
		return problem.Refused("payment_under_way", problem.Facts{"reservation": r.Reference})
	}
	return problem.Refused("reservation_not_open", problem.Facts{"reservation": r.Reference})
}
