package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
)

// whyGivenBack is what the timeline keeps of tickets that their buyer gave back by themselves.
const whyGivenBack = "given back by the buyer"

// GiveBack gives one ticket of a paid reservation back, for its buyer, who knows the reference: where the event allows that, until so many hours
// before its sitting, and as long as nobody went in by it. The others stay as they are and keep their prices. The same again changes nothing.
func GiveBack(ctx context.Context, db *pg.DB, reference string, number int) ([]CancelledTicket, error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return nil, err
	}
	return cancelTickets(ctx, db, Buyer, organisationID, id, Cancelling{Tickets: []int{number}, Reason: whyGivenBack}, mayGiveBack)
}

// mayGiveBack refuses what buyers do not give back by themselves. A door holds the reservation's row while it lets somebody in: that nobody went in stays
// so.
func mayGiveBack(ctx context.Context, tx pgx.Tx, r Reservation, lines []Line) error {
	var events []int64
	for _, line := range lines {
		events = append(events, line.EventID)
	}
	offers, err := event.Offers(ctx, tx, r.OrganisationID, events...)
	if err != nil {
		return err
	}
	for _, line := range lines {
		until, allowed := GiveBackUntil(offers[line.EventID].Event, line)
		facts := problem.Facts{"event": line.EventName, "seat": line.Seat}
		if !allowed {
			return problem.Refused("give_back_not_allowed", facts)
		}
		if facts["until"] = (i18n.Instant{At: until, Zone: line.SittingZone}); !r.ReadAt.Before(until) {
			return problem.Refused("give_back_late", facts)
		}
	}
	var used bool
	err = tx.QueryRow(ctx, `
select exists (select from scan where organisation_id = $1 and reservation_id = $2 and line_number = any($3) and let_in and undone_at is null)`,
		r.OrganisationID, r.ID, numbers(lines)).Scan(&used)
	if err != nil {
		return fmt.Errorf("look whether somebody went in: %w", err)
	}
	if used {
		return problem.Refused("give_back_used", problem.Facts{"seat": lines[0].Seat})
	}
	return nil
}

// GiveBackUntil is the instant before which a buyer gives a ticket back by themselves, where the event allows that.
func GiveBackUntil(e event.Event, line Line) (until time.Time, allowed bool) {
	if e.SelfCancelHours == nil {
		return until, false
	}
	return line.StartsAt.Add(-time.Duration(*e.SelfCancelHours) * time.Hour), true
}
