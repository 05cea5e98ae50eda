package reservation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/event"
)

// tally counts tickets by everything that may limit them.
type tally struct {
	events map[int64]int
	kinds  map[int64]int
	zones  map[zoneOf]int
}

type zoneOf struct {
	eventID int64
	zone    string
}

func newTally() tally {
	return tally{map[int64]int{}, map[int64]int{}, map[zoneOf]int{}}
}

func (t tally) add(eventID, kindID int64, zone string, n int) {
	t.events[eventID] += n
	t.kinds[kindID] += n
	t.zones[zoneOf{eventID, zone}] += n
}

// checkLimits refuses tickets beyond what a buyer may have of an event, of a kind or in a zone: those of the whole cart, and those
// that they have already elsewhere.
func checkLimits(offers map[int64]event.Offer, cart, elsewhere tally) error {
	for id, offer := range offers {
		if n := cart.events[id]; n > 0 {
			if err := checkLimit("limit_event", offer.Event.MostPerBuyer, n, elsewhere.events[id], problem.Facts{"event": offer.Event.Name}); err != nil {
				return err
			}
		}
		for _, kind := range offer.Kinds {
			if n := cart.kinds[kind.ID]; n > 0 {
				facts := problem.Facts{"event": offer.Event.Name, "kind": kind.Name}
				if err := checkLimit("limit_kind", kind.MostPerBuyer, n, elsewhere.kinds[kind.ID], facts); err != nil {
					return err
				}
			}
		}
	}
	for of, n := range cart.zones {
		if most, limited := offers[of.eventID].ZoneLimit(of.zone); limited {
			facts := problem.Facts{"event": offers[of.eventID].Event.Name, "zone": of.zone}
			if err := checkLimit("limit_zone", &most, n, elsewhere.zones[of], facts); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkLimit(code string, most *int, cart, elsewhere int, facts problem.Facts) error {
	if most == nil || cart+elsewhere <= *most {
		return nil
	}
	facts["most"], facts["cart"], facts["elsewhere"] = *most, cart, elsewhere
	return &problem.Problem{Kind: problem.KindRefused, Code: code, Facts: facts}
}

// LockBuyer finds the buyer with an e-mail address, or adds them, and takes their row: what they have is counted by one transaction
// after the other. After reservations and before sittings.
func LockBuyer(ctx context.Context, tx pgx.Tx, organisationID int64, email string) (buyerID int64, err error) {
	if _, err = tx.Exec(ctx, `insert into buyer (organisation_id, email_key) values ($1, name_key($2)) on conflict do nothing`,
		organisationID, email); err != nil {
		return 0, fmt.Errorf("add the buyer: %w", err)
	}
	err = tx.QueryRow(ctx, `select id from buyer where organisation_id = $1 and email_key = name_key($2) for no key update`,
		organisationID, email).Scan(&buyerID)
	if err != nil {
		return 0, fmt.Errorf("lock the buyer: %w", err)
	}
	return buyerID, nil
}

// CheckBuyer refuses a reservation with which a buyer, whose row is locked, would have more tickets than they may: those of the
// reservation and those that they hold or have paid elsewhere.
func CheckBuyer(ctx context.Context, tx pgx.Tx, r Reservation, buyerID int64) error {
	cart := newTally()
	var events []int64
	for _, line := range r.Lines {
		if !line.Cancelled {
			cart.add(line.EventID, line.KindID, line.Zone, 1)
			events = append(events, line.EventID)
		}
	}
	offers, err := event.Offers(ctx, tx, r.OrganisationID, events...)
	if err != nil {
		return err
	}
	elsewhere, err := elsewhereOf(ctx, tx, r.OrganisationID, buyerID, r.ID)
	if err != nil {
		return err
	}
	return checkLimits(offers, cart, elsewhere)
}

// elsewhereOf counts the tickets that a buyer holds or has paid in other reservations.
func elsewhereOf(ctx context.Context, tx pgx.Tx, organisationID, buyerID, reservationID int64) (tally, error) {
	t := newTally()
	rows, err := tx.Query(ctx, `
select l.event_id, l.kind_id, l.zone, count(*)::int
  from reservation r
  join line l on (l.organisation_id, l.reservation_id) = (r.organisation_id, r.id) and l.cancelled_at is null
  join claim k on (k.organisation_id, k.reservation_id, k.line_number) = (l.organisation_id, l.reservation_id, l.number)
   and k.released_at is null and (k.expires_at is null or k.expires_at > clock())
 where r.organisation_id = $1 and r.buyer_id = $2 and r.id <> $3
 group by 1, 2, 3`, organisationID, buyerID, reservationID)
	if err != nil {
		return t, fmt.Errorf("count what the buyer has: %w", err)
	}
	var eventID, kindID int64
	var zone string
	var n int
	if _, err = pgx.ForEachRow(rows, []any{&eventID, &kindID, &zone, &n}, func() error { t.add(eventID, kindID, zone, n); return nil }); err != nil {
		return t, fmt.Errorf("count what the buyer has: %w", err)
	}
	return t, nil
}
