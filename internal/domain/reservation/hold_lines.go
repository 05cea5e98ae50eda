package reservation

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
)

// drawn is a line as it is written: one ticket on one seat, at the prices of this moment.
type drawn struct {
	number           int
	sitting          seating.HeldSitting
	seat             seating.Proposed
	kind             event.Kind
	list, price, fee int64
	currency         string
}

// drawLines makes the lines of a cart from its seats, in the order of its parts, and refuses what is not sold: outside its window, a
// kind that was withdrawn, a zone without a price. A group's discount is counted over the tickets of one event in the cart, those
// that it had before too.
func drawLines(parts []askedPart, chosen [][]seating.Proposed, offers map[int64]event.Offer, had tally) ([]drawn, error) {
	var lines []drawn
	for i, part := range parts {
		offer := offers[part.eventID]
		for n, seat := range chosen[i] {
			kind := part.kinds[n]
			list, sold := offer.Price(kind.ID, seat.Zone)
			if !sold {
				return nil, problem.Refused("zone_not_sold", problem.Facts{"event": offer.Event.Name, "kind": kind.Name, "zone": seat.Zone, "seat": seat.Label})
			}
			lines = append(lines, drawn{sitting: part.sitting, seat: seat, kind: kind, list: list, price: list, currency: offer.Event.Currency})
		}
	}
	for id, offer := range offers {
		var of []*drawn
		for i := range lines {
			if lines[i].sitting.EventID == id {
				of = append(of, &lines[i])
			}
		}
		if from, percent := offer.Event.GroupFrom, offer.Event.GroupPercent; from != nil && percent != nil && had.events[id]+len(of) >= *from {
			discount(of, int64(*percent))
		}
		for _, line := range of {
			line.fee = share(line.price, int64(offer.Event.CancelFeePercent), 100)
		}
	}
	return lines, nil
}

// discount takes so many percent off the sum of the lines, rounded once, half up. Each line bears its share; the units that remain go to
// those whose shares were cut most, the first of equals first, so that the lines add up to the sum.
func discount(lines []*drawn, percent int64) {
	type cut struct {
		line *drawn
		rest int64
	}
	var sum, given int64
	cuts := make([]cut, len(lines))
	for i, line := range lines {
		off := line.list * percent
		line.price = line.list - off/100
		sum, given, cuts[i] = sum+line.list, given+off/100, cut{line, off % 100}
	}
	slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(b.rest, a.rest) })
	for _, c := range cuts[:share(sum, percent, 100)-given] {
		c.line.price--
	}
}

// share is so many parts of whole of an amount, rounded half up.
func share(amount, parts, whole int64) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(parts))
	low, carry := bits.Add64(low, uint64(whole/2), 0)
	quotient, _ := bits.Div64(high+carry, low, uint64(whole))
	return int64(quotient)
}

// total counts the lines with those that the cart had before.
func total(lines []drawn, had tally) tally {
	all := newTally()
	for id, n := range had.events {
		all.events[id] = n
	}
	for id, n := range had.kinds {
		all.kinds[id] = n
	}
	for of, n := range had.zones {
		all.zones[of] = n
	}
	for _, line := range lines {
		all.add(line.sitting.EventID, line.kind.ID, line.seat.Zone, 1)
	}
	return all
}

// checkOpen refuses a sitting that is closed or cancelled. That it does not take place because the event does not is the event's
// to say (event.Offer.CheckWindow).
func checkOpen(offer event.Offer, sitting seating.HeldSitting) error {
	facts := problem.Facts{"event": offer.Event.Name, "sitting": sitting.Reference}
	switch {
	case sitting.Closed:
		return problem.Refused("event_sitting_closed", facts)
	case sitting.Cancelled && offer.Event.State != event.Cancelled:
		return problem.Refused("event_sitting_cancelled", facts)
	}
	return nil
}

// kindsOf finds the kinds of a part's tickets, and refuses those that are not sold for its sitting now.
func kindsOf(part *askedPart, offer event.Offer, now time.Time) error {
	if err := checkOpen(offer, part.sitting); err != nil {
		return err
	}
	times := event.SittingTimes{Reference: part.sitting.Reference, StartsAt: part.sitting.StartsAt, EndsAt: part.sitting.EndsAt}
	part.kinds = make([]event.Kind, part.tickets())
	for n := range part.kinds {
		code := strings.TrimSpace(part.kind(n))
		i := slices.IndexFunc(offer.Kinds, func(k event.Kind) bool { return strings.EqualFold(k.Code, code) })
		if i < 0 {
			return problem.NotFound("ticket_kind_unknown", problem.Facts{"kind": code, "event": offer.Event.Name})
		}
		if err := offer.CheckWindow(offer.Kinds[i], times, now); err != nil {
			return err
		}
		part.kinds[n] = offer.Kinds[i]
	}
	return nil
}
