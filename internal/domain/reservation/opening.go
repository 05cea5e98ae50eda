package reservation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Opening is a sitting under its lock, of which free places are offered to people one after the other, in one transaction.
type Opening struct {
	Sitting seating.HeldSitting
	Sale    event.Offer
	Now     time.Time

	actor          timeline.Actor
	organisationID int64
	moment         *moment
	floors         map[int64]*seating.Floor
	held           []*asked
}

// Wish is what somebody waits for.
type Wish struct {
	Key     string // what makes the hold one
	Contact Contact
	KindID  int64
	Zone    *string // nil: any in which the kind is sold
	Places  int
	Kept    func(zone string) bool // zones that others are to have first; nil: none
	Until   time.Time              // the end of the hold: no renewal goes past it
}

// Open takes the row of a sitting and reads what decides there. Reservations that the transaction changes are locked before.
func Open(ctx context.Context, tx pgx.Tx, actor timeline.Actor, at At) (*Opening, error) {
	organisationID, sittingID := at.OrganisationID, at.SittingID
	asks := &asked{organisationID: organisationID, parts: []askedPart{{eventID: at.EventID, sittingID: sittingID}}}
	m, err := readMoment(ctx, tx, asks)
	if err != nil {
		return nil, err
	}
	o := &Opening{Sitting: m.sittings[sittingID], Sale: m.offers[at.EventID], Now: m.now, actor: actor, organisationID: organisationID, moment: m}
	if o.Sitting.ID == 0 {
		return nil, fmt.Errorf("sitting %d is not there", sittingID)
	}
	// What it believes is its own: nothing of it outlives the transaction.
	o.floors, _, err = (&Desk{}).openFloors(ctx, tx, organisationID, m)
	if err != nil {
		return nil, err
	}
	return o, o.floors[sittingID].Reread(ctx, tx, organisationID, m.now)
}

// Ends is until when places of a kind that are offered now stay somebody's: as long as the event says, and never past the instant at which
// they are sold no more. In too short a time nobody reads of it and pays: nothing is offered.
func (o *Opening) Ends(kindID int64) (time.Time, error) {
	kind, _ := o.Sale.Kind(kindID)
	return offerEnds(o.Sale, kind, o.Sitting, o.Now)
}

func offerEnds(sale event.Offer, kind event.Kind, sitting seating.HeldSitting, now time.Time) (until time.Time, err error) {
	if err := checkOpen(sale, sitting); err != nil {
		return until, err
	}
	times := event.SittingTimes{Reference: sitting.Reference, StartsAt: sitting.StartsAt, EndsAt: sitting.EndsAt}
	if err := sale.CheckWindow(kind, times, now); err != nil {
		return until, err
	}
	_, until = sale.Window(kind, times)
	if end := now.Add(sale.Event.OfferFor); end.Before(until) {
		until = end
	}
	if until.Before(now.Add(event.ShortestOffer)) {
		return until, problem.Refused("offer_late", problem.Facts{"event": sale.Event.Name, "minutes": int(event.ShortestOffer.Minutes())})
	}
	return until, nil
}

// Check refuses a wish that no place that comes free would fulfil: of a kind that is not sold there, for more than a buyer may have, or more than
// there are.
func (o *Opening) Check(w Wish) error {
	a := o.ask(w)
	if a.prepare(o.moment); a.err != nil {
		return a.err
	}
	fits, seats := a.zones(a.parts[0]), 0
	for zone, n := range o.floors[o.Sitting.ID].Seats() {
		if fits(zone) {
			seats += n
		}
	}
	kind := a.parts[0].kinds[0]
	of := newTally()
	of.add(o.Sitting.EventID, kind.ID, "", w.Places)
	if w.Zone != nil {
		if _, sold := o.Sale.Price(kind.ID, *w.Zone); !sold {
			return problem.Refused("waiting_zone", problem.Facts{"event": o.Sale.Event.Name, "kind": kind.Name, "zone": *w.Zone})
		}
		of.zones = map[zoneOf]int{{o.Sitting.EventID, *w.Zone}: w.Places}
	}
	if err := checkLimits(a.offers, of, newTally()); err != nil {
		return err
	}
	if seats < w.Places {
		return problem.Refused("waiting_never", problem.Facts{"count": w.Places, "seats": seats})
	}
	return nil
}

// Free tells whether whoever does not wait could hold what is wished for now: nobody has to wait for it.
func (o *Opening) Free(ctx context.Context, tx pgx.Tx, w Wish) (bool, error) {
	a := o.ask(w)
	a.actor = Buyer
	err := o.propose(ctx, tx, a)
	if problem.Has(err, "seats_too_few") || problem.Has(err, "places_awaited") {
		return false, nil
	}
	for i, seats := range a.chosen() {
		o.floors[a.parts[i].sittingID].Spared(seats)
	}
	return err == nil, err
}

// Give proposes places for a wish. The refusal seats_too_few says how many there are; others say why it cannot be fulfilled at all. Nothing is
// written yet.
func (o *Opening) Give(ctx context.Context, tx pgx.Tx, w Wish) error {
	a := o.ask(w)
	if err := o.propose(ctx, tx, a); err != nil {
		return err
	}
	o.held = append(o.held, a)
	return nil
}

func (o *Opening) ask(w Wish) *asked {
	kind, _ := o.Sale.Kind(w.KindID)
	part := Part{
		Event: o.Sale.Event.Slug, Sitting: o.Sitting.Reference,
		Best: &Best{Kinds: slices.Repeat([]string{kind.Code}, w.Places), Zone: w.Zone},
	}
	return &asked{
		actor: o.actor, organisationID: o.organisationID, waited: &w,
		request: Request{Key: w.Key, Locale: w.Contact.Locale, Email: w.Contact.Email, Parts: []Part{part}},
		parts:   []askedPart{{Part: part, eventID: o.Sitting.EventID, sittingID: o.Sitting.ID}},
	}
}

func (o *Opening) propose(ctx context.Context, tx pgx.Tx, a *asked) (err error) {
	if a.digest, err = a.request.digest(); err != nil {
		return err
	}
	if err := propose(ctx, tx, o.organisationID, []*asked{a}, o.floors, o.moment); err != nil {
		return err
	}
	return a.err
}

func (a *asked) chosen() [][]seating.Proposed {
	if a.cart == nil {
		return nil
	}
	return a.cart.Chosen
}

// Write holds what was given, each as a reservation of its own in the name of whoever waited, and gives them by the keys of the wishes.
func (o *Opening) Write(ctx context.Context, tx pgx.Tx) (byKey map[string]Reservation, err error) {
	held, err := write(ctx, tx, o.organisationID, o.held, o.moment)
	if err != nil {
		return nil, err
	}
	byKey = map[string]Reservation{}
	var ids []int64
	var names, phones []string
	for _, a := range held {
		byKey[a.request.Key] = a.result
		ids, names, phones = append(ids, a.result.ID), append(names, a.waited.Contact.Name), append(phones, a.waited.Contact.Phone)
	}
	_, err = tx.Exec(ctx, `
update reservation r set name = w.name, phone = w.phone from unnest($2::bigint[], $3::text[], $4::text[]) w(id, name, phone)
 where r.organisation_id = $1 and r.id = w.id`, o.organisationID, ids, names, phones)
	if err != nil {
		return nil, fmt.Errorf("keep who waited: %w", err)
	}
	return byKey, nil
}

// At names a sitting by its keys.
type At struct{ OrganisationID, EventID, SittingID int64 }

// Locate finds a sitting for somebody who may hold seats there.
func Locate(ctx context.Context, db *pg.DB, actor timeline.Actor, event, sitting string) (at At, err error) {
	organisationID, parts, err := NewDesk(db).find(ctx, actor, []Part{{Event: event, Sitting: sitting}})
	if err != nil {
		return at, err
	}
	return At{organisationID, parts[0].eventID, parts[0].sittingID}, nil
}

// Again repeats a transaction in which others were faster with what it depends on, a bounded number of times.
func Again(act func() error) error { return again(act) }
