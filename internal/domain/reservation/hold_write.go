package reservation

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// The kinds of timeline rows that holds leave.
const (
	kindHeld      timeline.Kind = "reservation_held"
	kindAdded     timeline.Kind = "reservation_seats_added"
	kindRenewed   timeline.Kind = "reservation_renewed"
	kindGivenUp   timeline.Kind = "reservation_seats_given_up"
	kindCancelled timeline.Kind = "reservation_cancelled"
	kindLapsed    timeline.Kind = "reservation_lapsed"
)

// write adds the reservations, lines, claims and rows of the timeline of carts that were accepted, one statement a table, and tells which were
// held: all but those whose key was used before.
func write(ctx context.Context, tx pgx.Tx, organisationID int64, all []*asked, m *moment) (held []*asked, err error) {
	accepted := slices.DeleteFunc(slices.Clone(all), func(a *asked) bool { return a.err != nil })
	if len(accepted) == 0 {
		return nil, nil
	}
	if err := addReservations(ctx, tx, organisationID, accepted, m); err != nil {
		return nil, err
	}
	if held = slices.DeleteFunc(accepted, func(a *asked) bool { return a.repeat }); len(held) == 0 {
		return nil, nil
	}
	asking := &pgx.Batch{}
	addLines(asking, organisationID, held, m.zone)
	byID, holds := map[int64]*asked{}, []seating.Hold{}
	for _, a := range held {
		byID[a.result.ID] = a
		for _, line := range a.lines {
			holds = append(holds, seating.Hold{ReservationID: a.result.ID, Line: line.number, Sitting: line.sitting, Seat: line.seat, Until: a.until})
		}
	}
	seating.QueueHolds(asking, organisationID, holds, func(reservationID int64, line int, claimID int64) {
		byID[reservationID].claimed(line, claimID)
	})
	if err := record(asking, organisationID, held); err != nil {
		return nil, err
	}
	if err := tx.SendBatch(ctx, asking).Close(); err != nil {
		return nil, fmt.Errorf("write the holds: %w", err)
	}
	return held, nil
}

// referenceLength is in characters of five bits each: nobody guesses one of them.
const referenceLength = 16

// addReservations adds those that are new, and numbers the lines of all.
func addReservations(ctx context.Context, tx pgx.Tx, organisationID int64, accepted []*asked, m *moment) error {
	made := slices.DeleteFunc(slices.Clone(accepted), func(a *asked) bool { return a.to != nil })
	// Keys are taken in their order: of two transactions with the same keys one waits for the other, and not each for the other.
	slices.SortFunc(made, func(a, b *asked) int { return strings.Compare(a.request.Key, b.request.Key) })
	n := len(made)
	references, keys, digests := make([]string, n), make([]string, n), make([][]byte, n)
	currencies, buyers, emails, locales := make([]string, n), make([]int64, n), make([]string, n), make([]string, n)
	most, actors, byKey := make([]time.Time, n), make([]string, n), make(map[string]*asked, n)
	for i, a := range made {
		a.draw(m)
		references[i], keys[i], digests[i] = a.result.Reference, a.request.Key, a.digest
		currencies[i], buyers[i], emails[i], locales[i] = a.result.Currency, a.buyerID, a.request.Email, a.request.Locale
		most[i], actors[i], byKey[a.request.Key], a.repeat = a.result.MostAt, a.actor.Name, a, true
	}
	if n > 0 {
		rows, err := tx.Query(ctx, `
insert into reservation (organisation_id, reference, request_key, request_digest, currency, buyer_id, email, locale, held_at, hold_most_at, actor)
select $1, r.reference, r.key, r.digest, r.currency, nullif(r.buyer_id, 0), r.email, r.locale, $2, r.most_at, r.actor
  from unnest($3::text[], $4::text[], $5::bytea[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::timestamptz[], $11::text[])
       with ordinality r(reference, key, digest, currency, buyer_id, email, locale, most_at, actor, nth)
 order by r.nth
on conflict (organisation_id, request_key) where request_key <> '' do nothing
returning request_key, id`, organisationID, m.now, references, keys, digests, currencies, buyers, emails, locales, most, actors)
		if err != nil {
			return fmt.Errorf("write the reservations: %w", err)
		}
		var key string
		var id int64
		if _, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error {
			byKey[key].result.ID, byKey[key].repeat = id, false
			return nil
		}); err != nil {
			return fmt.Errorf("write the reservations: %w", err)
		}
	}
	for _, a := range accepted {
		a.number()
	}
	return nil
}

// draw is the new reservation as it will be read.
func (a *asked) draw(m *moment) {
	a.result = Reservation{
		OrganisationID: a.organisationID, Reference: rand.Text()[:referenceLength], State: Held, Written: Held, Currency: a.lines[0].currency,
		Email: a.request.Email, Locale: a.request.Locale, HeldAt: m.now, MostAt: a.mostAt(m.now), ReadAt: m.now,
	}
	if a.buyerID != 0 {
		a.result.BuyerID = &a.buyerID
	}
}

// number gives the lines their numbers, and adds them to the result.
func (a *asked) number() {
	next := 1
	if a.to != nil {
		a.result = *a.to
		a.result.Lines = slices.Clone(a.to.Lines)
		for _, line := range a.to.Lines {
			next = max(next, line.Number+1)
		}
	}
	a.result.EndsAt = &a.until
	for i := range a.lines {
		line := &a.lines[i]
		line.number = next + i
		sold := a.offers[line.sitting.EventID].Event
		a.result.Lines = append(a.result.Lines, Line{
			Number: line.number, EventID: sold.ID, Event: sold.Slug, EventName: sold.Name, KindID: line.kind.ID, Kind: line.kind.Code,
			KindName: line.kind.Name, Zone: line.seat.Zone, ListMinor: line.list, PriceMinor: line.price,
			CancelFeeMinor: line.fee, SittingID: line.sitting.ID, Sitting: line.sitting.Reference, StartsAt: line.sitting.StartsAt,
			SittingZone: line.sitting.Zone, Place: line.sitting.Place(), SeatNumber: line.seat.Number, Seat: line.seat.Label,
			ExpiresAt: &a.until, Live: true,
		})
	}
}

// claimed says which claim a line has.
func (a *asked) claimed(line int, claimID int64) {
	for i := range a.result.Lines {
		if a.result.Lines[i].Number == line {
			a.result.Lines[i].ClaimID = claimID
		}
	}
}

// addLines writes the lines, each under the commission that counts when it is held. Where its currency has none yet, that is said: a person
// has to say it before the month is settled, and nobody's purchase waits for that.
func addLines(asking *pgx.Batch, organisationID int64, held []*asked, zone string) {
	var reservations, events, kinds, lists, prices, fees []int64
	var numbers []int
	var zones, currencies []string
	for _, a := range held {
		for _, line := range a.lines {
			reservations, numbers = append(reservations, a.result.ID), append(numbers, line.number)
			events, kinds, zones = append(events, line.sitting.EventID), append(kinds, line.kind.ID), append(zones, line.seat.Zone)
			lists, prices = append(lists, line.list), append(prices, line.price)
			fees, currencies = append(fees, line.fee), append(currencies, line.currency)
		}
	}
	asking.Queue(`
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, commission_missing,
  cancel_fee_minor, currency, time_zone)
select $1, l.reservation_id, l.number, l.event_id, l.kind_id, l.zone, l.list, l.price, coalesce(commission_of(l.price, c.permyriad, c.most_minor), 0),
       c.permyriad is null, l.fee, l.currency, $2
  from unnest($3::bigint[], $4::int[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[])
       l(reservation_id, number, event_id, kind_id, zone, list, price, fee, currency)
  left join lateral (select permyriad, most_minor from commission_rate where organisation_id = $1 and currency = l.currency and from_at <= clock()
                      order by from_at desc limit 1) c on true`,
		organisationID, zone, reservations, numbers, events, kinds, zones, lists, prices, fees, currencies)
}

// heldFacts are what the timeline keeps of seats that were held.
type heldFacts struct {
	Reservation string   `json:"reservation"`
	Sitting     string   `json:"sitting"`
	Seats       []string `json:"seats"`
	AmountMinor int64    `json:"amount_minor"`
	Currency    string   `json:"currency"`
	EndsAt      string   `json:"ends_at"`
}

// record asks for a row of the timeline for each reservation and sitting, one statement for each actor.
func record(asking *pgx.Batch, organisationID int64, held []*asked) error {
	entries := map[timeline.Actor][]timeline.Entry{}
	var actors []timeline.Actor
	for _, a := range held {
		if entries[a.actor] == nil {
			actors = append(actors, a.actor)
		}
		entries[a.actor] = append(entries[a.actor], a.entries()...)
	}
	for _, actor := range actors {
		if err := timeline.Queue(asking, organisationID, actor, entries[actor]...); err != nil {
			return err
		}
	}
	return nil
}

func (a *asked) entries() (entries []timeline.Entry) {
	kind := kindHeld
	if a.to != nil {
		kind = kindAdded
	}
	facts := map[int64]*heldFacts{}
	for _, line := range a.lines {
		of := facts[line.sitting.ID]
		if of == nil {
			of = &heldFacts{Reservation: a.result.Reference, Sitting: line.sitting.Reference, Currency: line.currency, EndsAt: a.until.UTC().Format(instantForm)}
			facts[line.sitting.ID] = of
			entries = append(entries, timeline.Entry{Kind: kind, Facts: of, Subject: timeline.Subject{
				EventID: line.sitting.EventID, SittingID: line.sitting.ID, ReservationID: a.result.ID,
			}})
		}
		of.Seats, of.AmountMinor = append(of.Seats, line.seat.Label), of.AmountMinor+line.price
	}
	return entries
}
