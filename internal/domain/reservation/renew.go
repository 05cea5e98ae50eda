package reservation

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Renew gives a hold that is not over another end: as long as a first hold, and never past the instant that the first hold fixed. A hold
// that is over is not renewed: the same seats are asked for anew, at the prices of now, as another reservation, and may be lost. Asked twice it is
// one.
func (d *Desk) Renew(ctx context.Context, actor timeline.Actor, reference string) (r Reservation, err error) {
	organisationID, id, err := find(ctx, d.db, reference)
	if err != nil {
		return r, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return r, err
	}
	err = d.db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		if r, err = lock(ctx, tx, organisationID, id); err != nil {
			return err
		}
		if r.State == Held || r.State == PaymentStarted {
			r, err = Prolong(ctx, tx, actor, r)
		}
		return err
	})
	if err != nil {
		return r, err
	}
	switch {
	case r.State == Held || r.State == PaymentStarted:
		return r, nil
	case r.State == Lapsed && r.PayingAt != nil:
		return r, problem.Refused("hold_over_paying", problem.Facts{"reservation": r.Reference})
	case r.State == Lapsed:
		return d.Hold(ctx, actor, r.anew())
	}
	return r, problem.Refused("reservation_not_open", problem.Facts{"reservation": r.Reference})
}

// Prolong is the step of Renew for a reservation whose row is locked; without one to gain it changes nothing. What it gives back says whether the
// hold still holds, judged after the sittings were locked.
func Prolong(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation) (Reservation, error) {
	var sittings, events []int64
	for _, line := range r.Lines {
		if line.Live {
			sittings, events = append(sittings, line.SittingID), append(events, line.EventID)
		}
	}
	_, now, err := seating.LockSittings(ctx, tx, r.OrganisationID, slices.Compact(slices.Sorted(slices.Values(sittings))))
	if err != nil {
		return r, err
	}
	offers, err := event.Offers(ctx, tx, r.OrganisationID, events...)
	if err != nil {
		return r, err
	}
	until := r.MostAt
	for _, offer := range offers {
		if offer.Event.State == event.Cancelled {
			return r, problem.Refused("event_cancelled", problem.Facts{"event": offer.Event.Name})
		}
		if end := now.Add(offer.Event.HoldFor); end.Before(until) {
			until = end
		}
	}
	if r.EndsAt != nil && until.After(*r.EndsAt) && r.EndsAt.After(now) {
		prolonged, err := seating.Prolong(ctx, tx, r.OrganisationID, r.ID, until)
		if err != nil {
			return r, err
		}
		if prolonged > 0 {
			err = timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
				Kind: kindRenewed, Subject: timeline.Subject{ReservationID: r.ID, EventID: r.Lines[0].EventID},
				Facts: map[string]any{"reservation": r.Reference, "ends_at": until.UTC().Format(instantForm)},
			})
		}
		if err != nil {
			return r, err
		}
	}
	return ReadByID(ctx, tx, r.OrganisationID, r.ID)
}

// anew asks for the same seats once more, under a key that follows from the reservation.
func (r Reservation) anew() Request {
	request := Request{Key: "renew " + r.Reference, Locale: r.Locale, Email: r.Email}
	lines := slices.DeleteFunc(slices.Clone(r.Lines), func(line Line) bool { return line.Cancelled })
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.SittingID, b.SittingID) })
	for _, line := range lines {
		last := len(request.Parts) - 1
		if last < 0 || request.Parts[last].Event != line.Event || request.Parts[last].Sitting != line.Sitting {
			request.Parts = append(request.Parts, Part{Event: line.Event, Sitting: line.Sitting})
			last++
		}
		request.Parts[last].Seats = append(request.Parts[last].Seats, Ticket{Number: line.SeatNumber, Kind: line.Kind})
	}
	return request
}
