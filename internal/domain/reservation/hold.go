package reservation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// asked is a cart on its way to be held: a request that makes a reservation, or seats that are added to one.
type asked struct {
	actor          timeline.Actor
	request        Request
	digest         []byte
	organisationID int64
	parts          []askedPart
	to             *Reservation // to which the seats are added, its row locked; nil: a new one
	buyerID        int64        // locked; 0: not known
	waited         *Wish        // of whoever waited for it; nil: nobody did

	repeat bool // the key was used before
	offers map[int64]event.Offer
	cart   *seating.Cart
	lines  []drawn
	until  time.Time
	result Reservation
	err    error
}

// askedPart is a part with what was found for it.
type askedPart struct {
	Part
	eventID, sittingID int64
	sitting            seating.HeldSitting
	kinds              []event.Kind // of each ticket
}

// known is a reservation that was made under a request's key.
type known struct {
	ID     int64
	Key    string
	Digest []byte
}

// moment is what holds are decided by, read under the sittings' lock.
type moment struct {
	now      time.Time
	sittings map[int64]seating.HeldSitting
	zone     string // the organisation's
	offers   map[int64]event.Offer
	awaited  map[int64][]awaited // by sitting
}

// hold decides and writes a cart and those of the same sitting that go along: each is held or refused for itself. Their reservations
// and buyers, where they have them, are locked already. It tells whether anything was written; what failed as a whole is the error. Close
// ends the use of what is believed of the sittings.
func (d *Desk) hold(ctx context.Context, tx pgx.Tx, mine *asked, along func() []*asked) (written bool, close func(committed bool), err error) {
	close = func(bool) {}
	organisationID := mine.organisationID
	m, err := readMoment(ctx, tx, mine)
	if err != nil {
		return false, close, err
	}
	floors, close, err := d.openFloors(ctx, tx, organisationID, m)
	if err != nil {
		return false, close, err
	}
	all := append([]*asked{mine}, along()...)
	if err := propose(ctx, tx, organisationID, all, floors, m); err != nil {
		return false, close, err
	}
	d.step("chosen")
	held, err := write(ctx, tx, organisationID, all, m)
	if err != nil {
		return false, close, err
	}
	for _, a := range all {
		if a.cart == nil {
			continue
		}
		for i, seats := range a.cart.Chosen {
			if floor := floors[a.parts[i].sittingID]; a.repeat {
				floor.Spared(seats)
			} else {
				floor.Held(seats, a.until)
			}
		}
	}
	return len(held) > 0, close, repeats(ctx, tx, organisationID, all)
}

// propose finds seats for the carts, or says what each is refused for.
func propose(ctx context.Context, tx pgx.Tx, organisationID int64, all []*asked, floors map[int64]*seating.Floor, m *moment) error {
	var carts []*seating.Cart
	if err := m.count(ctx, tx, organisationID, all, floors); err != nil {
		return err
	}
	for _, a := range all {
		if a.prepare(m); a.err != nil {
			continue
		}
		elsewhere, err := a.elsewhere(ctx, tx)
		if err != nil {
			return err
		}
		a.cart = a.wish(floors, m, elsewhere)
		carts = append(carts, a.cart)
	}
	if err := seating.Propose(ctx, tx, organisationID, m.now, carts); err != nil {
		return err
	}
	for _, a := range all {
		if a.cart == nil {
			continue
		}
		if a.err = a.cart.Err; a.err == nil {
			for i, seat := range slices.Concat(a.cart.Chosen...) {
				a.lines[i].seat = seat // with the claim in its way, which is known since it was looked at
			}
		}
	}
	return nil
}

// repeats answers those whose key was used before: with what was made then, however it stands by now, when they ask for the same.
func repeats(ctx context.Context, tx pgx.Tx, organisationID int64, all []*asked) error {
	byKey := map[string]*asked{}
	for _, a := range all {
		if a.to == nil && (a.err != nil || a.repeat) {
			byKey[a.request.Key] = a
		}
	}
	if len(byKey) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
select r.* from unnest($2::text[]) w(key)
 cross join lateral (select id, request_key as key, request_digest as digest from reservation
    where organisation_id = $1 and request_key = w.key and request_key <> '' offset 0) r`,
		pg.PlanAnew, organisationID, slices.Collect(maps.Keys(byKey)))
	if err != nil {
		return fmt.Errorf("look for what was asked before: %w", err)
	}
	before, err := pgx.CollectRows(rows, pgx.RowToStructByName[known])
	if err != nil {
		return fmt.Errorf("look for what was asked before: %w", err)
	}
	for _, k := range before {
		a := byKey[k.Key]
		if !bytes.Equal(k.Digest, a.digest) {
			a.err = problem.Refused("request_key_used", nil)
			continue
		}
		a.err = nil
		if a.result, err = ReadByID(ctx, tx, organisationID, k.ID); err != nil {
			return err
		}
	}
	return nil
}

// openFloors takes what is believed of the sittings' seats, in key order, and gives it back with close.
func (d *Desk) openFloors(ctx context.Context, tx pgx.Tx, organisationID int64, m *moment) (map[int64]*seating.Floor, func(bool), error) {
	opened := map[int64]*seating.Floor{}
	close := func(committed bool) {
		for _, f := range opened {
			f.Close(committed)
		}
	}
	ids := make([]int64, 0, len(m.sittings))
	for id := range m.sittings {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		f, err := d.floors.Open(ctx, tx, organisationID, m.sittings[id], m.now)
		if err != nil {
			return nil, close, err
		}
		opened[id] = f
	}
	return opened, close, nil
}

// readMoment locks the sittings and reads, after that, what decides.
func readMoment(ctx context.Context, tx pgx.Tx, mine *asked) (m *moment, err error) {
	m = &moment{sittings: map[int64]seating.HeldSitting{}}
	var sittingIDs, eventIDs []int64
	for _, part := range mine.parts {
		sittingIDs, eventIDs = append(sittingIDs, part.sittingID), append(eventIDs, part.eventID)
	}
	organisationID := mine.organisationID
	question := &pgx.Batch{}
	sittingIDs = slices.Compact(slices.Sorted(slices.Values(sittingIDs)))
	seating.QueueLock(question, organisationID, sittingIDs)
	question.Queue(readAwaited, organisationID, sittingIDs)
	question.Queue(`select time_zone from organisation where id = $1`, organisationID)
	answers := tx.SendBatch(ctx, question)
	err = m.read(answers)
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return m, fmt.Errorf("read what the holds depend on: %w", err)
	}
	m.offers, err = event.Offers(ctx, tx, organisationID, eventIDs...)
	return m, err
}

func (m *moment) read(answers pgx.BatchResults) error {
	locked, now, err := seating.ReadLocked(answers)
	if err != nil {
		return err
	}
	m.now = now
	for _, s := range locked {
		m.sittings[s.ID] = s
	}
	if err := m.readAwaited(answers); err != nil {
		return err
	}
	return answers.QueryRow().Scan(&m.zone)
}

// prepare says what a cart is refused for without regard to seats.
func (a *asked) prepare(m *moment) {
	a.offers = map[int64]event.Offer{}
	for i := range a.parts {
		part := &a.parts[i]
		offer, sold := m.offers[part.eventID]
		sitting, there := m.sittings[part.sittingID]
		if !sold || !there {
			a.err = unknownSitting(part.Part)
			return
		}
		part.sitting, a.offers[part.eventID] = sitting, offer
		if a.err = kindsOf(part, offer, m.now); a.err != nil {
			return
		}
	}
	a.until, a.err = a.ends(m.now)
}

// ends is when the hold ends: by the narrowest of its events', and never after what the first hold fixed. A cart is paid in one currency.
func (a *asked) ends(now time.Time) (until time.Time, err error) {
	currency := ""
	for _, offer := range a.offers {
		if end := now.Add(offer.Event.HoldFor); until.IsZero() || end.Before(until) {
			until = end
		}
		if currency != "" && currency != offer.Event.Currency || a.to != nil && a.to.Currency != offer.Event.Currency {
			return until, problem.Refused("cart_currencies", nil)
		}
		currency = offer.Event.Currency
	}
	switch {
	case a.waited != nil:
		until = a.waited.Until
	case a.to != nil:
		until = *a.to.EndsAt
	}
	return until, nil
}

// mostAt is the instant that no renewal passes.
func (a *asked) mostAt(now time.Time) (most time.Time) {
	if a.waited != nil {
		return a.waited.Until
	}
	for _, offer := range a.offers {
		if end := now.Add(offer.Event.HoldMost); most.IsZero() || end.Before(most) {
			most = end
		}
	}
	return most
}

func (a *asked) elsewhere(ctx context.Context, tx pgx.Tx) (tally, error) {
	if a.buyerID == 0 {
		return newTally(), nil
	}
	var own int64
	if a.to != nil {
		own = a.to.ID
	}
	return elsewhereOf(ctx, tx, a.organisationID, a.buyerID, own)
}

// had counts what the reservation has to which seats are added.
func (a *asked) had() tally {
	had := newTally()
	if a.to != nil {
		for _, line := range a.to.Lines {
			if !line.Cancelled {
				had.add(line.EventID, line.KindID, line.Zone, 1)
			}
		}
	}
	return had
}

// wish is the cart as seating knows it. What is proposed is accepted when all of it is sold and within the limits.
func (a *asked) wish(floors map[int64]*seating.Floor, m *moment, elsewhere tally) *seating.Cart {
	cart := &seating.Cart{}
	for _, part := range a.parts {
		wanted := seating.Wanted{Floor: floors[part.sittingID]}
		for _, ticket := range part.Seats {
			wanted.Seats = append(wanted.Seats, seating.Named{Name: ticket.Seat, Number: ticket.Number})
		}
		if part.Best != nil {
			wanted.Best = &seating.Wish{Seats: len(part.kinds), Accessible: part.Best.Accessible, Zone: a.zones(part)}
		}
		cart.Wanted = append(cart.Wanted, wanted)
	}
	had := a.had()
	cart.Accept = func(chosen [][]seating.Proposed) (err error) {
		if a.lines, err = drawLines(a.parts, chosen, a.offers, had); err != nil {
			return err
		}
		if err = checkLimits(a.offers, total(a.lines, had), elsewhere); err != nil || a.actor != Buyer {
			return err
		}
		return m.checkAwaited(a.lines, floors)
	}
	return cart
}

// zones are those that will do for the best seats: the one that was asked for, else those in which all of the kinds are sold and as
// many tickets may be had.
func (a *asked) zones(part askedPart) func(zone string) bool {
	if part.Best.Zone != nil {
		return func(zone string) bool { return zone == *part.Best.Zone }
	}
	kept := func(string) bool { return false }
	if a.waited != nil && a.waited.Kept != nil {
		kept = a.waited.Kept
	}
	offer := a.offers[part.eventID]
	return func(zone string) bool {
		if kept(zone) {
			return false
		}
		if most, limited := offer.ZoneLimit(zone); limited && most < len(part.kinds) {
			return false
		}
		return !slices.ContainsFunc(part.kinds, func(kind event.Kind) bool {
			_, sold := offer.Price(kind.ID, zone)
			return !sold
		})
	}
}

// instantForm is how instants are kept as text: as exactly as the database knows them.
const instantForm = "2006-01-02T15:04:05.999999Z07:00"

// unknownSitting is said of a sitting that is not there, is another organisation's, or is of an event that nobody may see yet.
func unknownSitting(part Part) error {
	return problem.NotFound("event_sitting_unknown", problem.Facts{"event": part.Event, "sitting": part.Sitting})
}

// conflicts tells whether err is the database's refusal of what another transaction was faster with.
func conflicts(err error) bool {
	return pg.Violates(err, "reservation_request_key") || pg.Violates(err, "claim_seat_key") || pg.MayRepeat(err)
}
