package event

import (
	"time"

	"usher/internal/base/problem"
)

// SittingTimes is what the sale of a sitting depends on.
type SittingTimes struct {
	Reference        string
	StartsAt, EndsAt time.Time
}

// edge is where a window begins or ends, and what sets it; neither: the event.
type edge struct {
	at            time.Time
	kind, sitting string
}

// CheckWindow refuses what is not sold at an instant: an event that is not on sale, a kind that was withdrawn, and whatever lies
// outside the windows. Of the event's window, the kind's and the sitting's beginning (its end, where LateSale) the narrowest
// counts, its beginning included and its end not; the refusal says which it was and when. Whether the kind has a price in the
// seat's zone is said by Price.
func (o Offer) CheckWindow(kind Kind, sitting SittingTimes, now time.Time) error {
	switch o.Event.State {
	case OnSale:
	case Cancelled:
		return problem.Refused("event_cancelled", problem.Facts{"event": o.Event.Name})
	case Closed:
		return problem.Refused("event_closed", problem.Facts{"event": o.Event.Name})
	default:
		return problem.Refused("event_not_on_sale", problem.Facts{"event": o.Event.Name})
	}
	if kind.Withdrawn {
		return problem.Refused("kind_withdrawn", problem.Facts{"event": o.Event.Name, "kind": kind.Name})
	}
	opens, closes := o.window(kind, sitting)
	if !now.Before(closes.at) {
		return problem.Refused("sale_over", o.facts(closes))
	}
	if now.Before(opens.at) {
		return problem.Refused("sale_not_begun", o.facts(opens))
	}
	return nil
}

// CheckSale says why nothing is sold for a sitting at an instant; nil: a kind of ticket is. Of several reasons, that the sale begins
// later is said first, with the earliest hour.
func (o Offer) CheckSale(sitting SittingTimes, now time.Time) (refusal error) {
	var begins time.Time
	for _, kind := range o.Kinds {
		err := o.CheckWindow(kind, sitting, now)
		if err == nil {
			return nil
		}
		opens, _ := o.Window(kind, sitting)
		later := problem.Has(err, "sale_not_begun")
		if refusal == nil || later && (begins.IsZero() || opens.Before(begins)) {
			refusal = err
			if later {
				begins = opens
			}
		}
	}
	if refusal == nil {
		refusal = problem.Refused("event_not_on_sale", problem.Facts{"event": o.Event.Name})
	}
	return refusal
}

// Window is when a kind of ticket is sold for a sitting: from opens (zero: from ever) until closes, which is not included.
func (o Offer) Window(kind Kind, sitting SittingTimes) (opens, closes time.Time) {
	first, last := o.window(kind, sitting)
	return first.at, last.at
}

func (o Offer) window(kind Kind, sitting SittingTimes) (opens, closes edge) {
	closes = edge{at: sitting.StartsAt, sitting: sitting.Reference}
	if o.Event.LateSale {
		closes.at = sitting.EndsAt
	}
	for _, limit := range []struct {
		opens, closes *time.Time
		kind          string
	}{{kind.OpensAt, kind.ClosesAt, kind.Name}, {o.Event.OpensAt, o.Event.ClosesAt, ""}} { // of two at one instant the wider is named
		if limit.opens != nil && !limit.opens.Before(opens.at) {
			opens = edge{at: *limit.opens, kind: limit.kind}
		}
		if limit.closes != nil && !limit.closes.After(closes.at) {
			closes = edge{at: *limit.closes, kind: limit.kind}
		}
	}
	return opens, closes
}

func (o Offer) facts(e edge) problem.Facts {
	return problem.Facts{"event": o.Event.Name, "kind": e.kind, "sitting": e.sitting, "late": o.Event.LateSale, "at": o.Event.Shown(e.at)}
}
