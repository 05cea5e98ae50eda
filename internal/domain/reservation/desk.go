package reservation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Bounds of a desk.
const (
	mostTogether = 64    // holds that share a transaction
	mostWaiting  = 1_000 // holds of one sitting that wait for their turn
	mostTries    = 5     // of one hold that others are faster than, alone
	mostKnown    = 10_000
	turnTimeout  = 30 * time.Second // of a transaction that several share, whoever of them goes away
)

// Desk is where a process holds seats. Holds of one sitting that wait while a transaction is under way go together in the next: one of
// those who wait leads it for the others. It has no goroutine of its own. Safe for use by several at once.
type Desk struct {
	db     *pg.DB
	floors seating.Floors

	mu     sync.Mutex
	queues map[int64]*queue // by sitting, while somebody is there
	known  map[partName]address

	step func(string) // for tests: where a hold is
}

// NewDesk opens a desk; a process needs one.
func NewDesk(db *pg.DB) *Desk {
	return &Desk{db: db, queues: map[int64]*queue{}, known: map[partName]address{}, step: func(string) {}}
}

// queue are the holds of a sitting that wait while another is led.
type queue struct{ waiting []*turn }

// turn is one hold that waits. Its caller is told once what comes: the result, or that it leads.
type turn struct {
	ctx  context.Context
	hold *asked
	told chan verdict
}

// verdict is what a turn is told.
type verdict struct {
	lead  bool  // it leads the next transaction
	alone bool  // the transaction that it was taken along in failed as a whole: it tries for itself
	err   error // its caller went away
}

// Hold holds what is asked for, all of it or nothing, until the end that the answer says. The refusal names the seats that are
// lost and offers others. Asked again under the same key it answers with the same reservation, as it stands by now.
func (d *Desk) Hold(ctx context.Context, actor timeline.Actor, request Request) (Reservation, error) {
	if err := request.check(); err != nil {
		return Reservation{}, err
	}
	digest, err := request.digest()
	if err != nil {
		return Reservation{}, err
	}
	a := &asked{actor: actor, request: request, digest: digest}
	if a.organisationID, a.parts, err = d.find(ctx, actor, request.Parts); err != nil {
		return Reservation{}, err
	}
	if sittings := sittingsOf(a); request.Email == "" && len(sittings) == 1 {
		err = d.queueUp(ctx, sittings[0], a)
	} else {
		err = d.alone(ctx, a)
	}
	if err == nil {
		err = a.err
	}
	return a.result, err
}

func sittingsOf(a *asked) (ids []int64) {
	seen := map[int64]bool{}
	for _, part := range a.parts {
		if !seen[part.sittingID] {
			seen[part.sittingID], ids = true, append(ids, part.sittingID)
		}
	}
	return ids
}

// queueUp waits for the transaction under way, and then leads the next one, or is taken along by who does.
func (d *Desk) queueUp(ctx context.Context, sittingID int64, a *asked) error {
	mine := &turn{ctx: ctx, hold: a, told: make(chan verdict, 1)}
	d.mu.Lock()
	q := d.queues[sittingID]
	switch {
	case q == nil: // nobody is there: lead at once
		d.queues[sittingID] = &queue{}
		d.mu.Unlock()
		return d.lead(ctx, sittingID, mine)
	case len(q.waiting) >= mostWaiting:
		d.mu.Unlock()
		return problem.Unavailable("desk_full", nil)
	}
	q.waiting = append(q.waiting, mine)
	d.mu.Unlock()
	d.step("waits")
	select {
	case told := <-mine.told:
		return d.follow(ctx, sittingID, mine, told)
	case <-ctx.Done():
	}
	if !d.leave(sittingID, mine) {
		// It was taken along or told to lead meanwhile. What was taken along may be held; the same key says so.
		if told := <-mine.told; told.lead {
			d.passOn(sittingID)
		}
	}
	return context.Cause(ctx)
}

// follow does what a turn was told.
func (d *Desk) follow(ctx context.Context, sittingID int64, mine *turn, told verdict) error {
	switch {
	case told.lead:
		return d.lead(ctx, sittingID, mine)
	case told.alone:
		return d.alone(ctx, mine.hold)
	}
	return told.err
}

// leave takes a turn out of the queue; it tells whether it was still there.
func (d *Desk) leave(sittingID int64, mine *turn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[sittingID]
	if q == nil {
		return false
	}
	for i, t := range q.waiting {
		if t == mine {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// lead holds its own cart and those of all who wait, in one transaction, and passes the lead on. Where that fails as a whole, each tries
// alone: one that cannot be written does not cost the others their seats.
func (d *Desk) lead(ctx context.Context, sittingID int64, mine *turn) error {
	defer d.passOn(sittingID)
	// The others' holds do not end with whoever leads.
	shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnTimeout)
	defer cancel()
	var along []*turn
	err := d.within(shared, mine.hold, nobodyBefore, func() (others []*asked) {
		along = d.takeAlong(sittingID, mine)
		for _, t := range along {
			t.hold.forget()
			others = append(others, t.hold)
		}
		return others
	})
	for _, t := range along {
		t.told <- verdict{alone: err != nil}
	}
	if err != nil {
		return d.alone(ctx, mine.hold)
	}
	return nil
}

// takeAlong takes those who wait, up to a bound. Who went away is dropped; a repeat of a request that goes along waits for what becomes of
// it.
func (d *Desk) takeAlong(sittingID int64, mine *turn) (along []*turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[sittingID]
	keys := map[string]bool{mine.hold.request.Key: true}
	var left []*turn
	for _, next := range q.waiting {
		switch {
		case next.ctx.Err() != nil:
			next.told <- verdict{err: context.Cause(next.ctx)}
		case keys[next.hold.request.Key] || len(along) == mostTogether-1:
			left = append(left, next)
		default:
			keys[next.hold.request.Key] = true
			along = append(along, next)
		}
	}
	q.waiting = left
	return along
}

// passOn lets the first of those who wait lead, or closes the queue.
func (d *Desk) passOn(sittingID int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[sittingID]
	if len(q.waiting) == 0 {
		delete(d.queues, sittingID)
		return
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	next.told <- verdict{lead: true}
}

// errNothingHeld takes back a transaction in which every cart was refused.
var errNothingHeld = errors.New("nothing was held")

// nobodyBefore is for a cart of which nothing is locked before its sitting, and nobodyAlong for one that goes alone.
func nobodyBefore(context.Context, pgx.Tx) error { return nil }
func nobodyAlong() []*asked                      { return nil }

// lockBuyer takes the row of a cart's buyer, where their address is known.
func (a *asked) lockBuyer(ctx context.Context, tx pgx.Tx) (err error) {
	if a.request.Email != "" {
		a.buyerID, err = LockBuyer(ctx, tx, a.organisationID, a.request.Email)
	}
	return err
}

// within holds a cart in one transaction, after what has to be locked before its sittings, and with the carts of the same sitting that
// go along: they are asked for when the sitting is locked, so that whoever came meanwhile need not wait for another transaction. What
// each was refused for stands in it; the error is of the whole.
func (d *Desk) within(ctx context.Context, mine *asked, before func(context.Context, pgx.Tx) error, along func() []*asked) error {
	mine.forget()
	closeFloors := func(bool) {}
	err := d.db.Tx(ctx, []int64{mine.organisationID}, func(tx pgx.Tx) error {
		if err := before(ctx, tx); err != nil {
			return err
		}
		written, opened, err := d.hold(ctx, tx, mine, along)
		closeFloors = opened
		if err != nil {
			return err
		}
		if d.step("written"); !written {
			return errNothingHeld
		}
		return nil
	})
	if errors.Is(err, errNothingHeld) {
		err = nil
	}
	closeFloors(err == nil)
	return err
}

// forget takes back what an attempt left.
func (a *asked) forget() {
	a.repeat, a.offers, a.cart, a.lines, a.result, a.err = false, nil, nil, nil, Reservation{}, nil
}

// alone holds one cart, again when others were faster with what it depends on.
func (d *Desk) alone(ctx context.Context, a *asked) error {
	return again(func() error { return d.within(ctx, a, a.lockBuyer, nobodyAlong) })
}

// again repeats a transaction a bounded number of times.
func again(act func() error) (err error) {
	for range mostTries {
		if err = act(); err == nil || !conflicts(err) {
			return err
		}
	}
	return problem.Refused("hold_contested", nil).Because(err)
}

// partName is how a sitting of an event is named, and address what that is. Neither changes any more once the event is public.
type partName struct{ event, sitting string }

type address struct {
	organisationID, eventID, sittingID int64
}

// find finds the sittings of a request, which belong to one organisation.
func (d *Desk) find(ctx context.Context, actor timeline.Actor, parts []Part) (organisationID int64, found []askedPart, err error) {
	for _, part := range parts {
		at, err := d.address(ctx, actor, part)
		if err != nil {
			return 0, nil, err
		}
		if err := allow(actor, at.organisationID, unknownEvent(part.Event)); err != nil {
			return 0, nil, err
		}
		if organisationID != 0 && at.organisationID != organisationID {
			return 0, nil, problem.Invalid("cart_organisations", nil)
		}
		organisationID = at.organisationID
		found = append(found, askedPart{Part: part, eventID: at.eventID, sittingID: at.sittingID})
	}
	return organisationID, found, nil
}

func (d *Desk) address(ctx context.Context, actor timeline.Actor, part Part) (address, error) {
	name := partName{part.Event, strings.ToUpper(strings.TrimSpace(part.Sitting))}
	d.mu.Lock()
	at, known := d.known[name]
	d.mu.Unlock()
	if known {
		return at, nil
	}
	at, state, err := lookUp(ctx, d.db, name)
	switch {
	case err != nil:
		return at, err
	case at.eventID == 0, !state.Public() && actor == Buyer, at.organisationID != 0 && actor != Buyer && !actor.MayActFor(at.organisationID):
		return at, unknownEvent(part.Event)
	case at.sittingID == 0:
		return at, unknownSitting(part)
	case !state.Public():
		return at, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= mostKnown {
		d.known = map[partName]address{}
	}
	d.known[name] = at
	return at, nil
}

// lookUp finds a sitting by its names; what is not there is zero.
func lookUp(ctx context.Context, db *pg.DB, name partName) (at address, state event.State, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, event_id from find_event($1)`, name.event).Scan(&at.organisationID, &at.eventID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := pg.See(ctx, tx, at.organisationID); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
select e.state, coalesce((select s.id from sitting s where s.organisation_id = $1 and s.event_id = $2 and upper(s.reference) = $3), 0)
  from event e where e.organisation_id = $1 and e.id = $2`, at.organisationID, at.eventID, name.sitting).Scan(&state, &at.sittingID)
	})
	if err != nil {
		return at, state, fmt.Errorf("find the sitting: %w", err)
	}
	return at, state, nil
}

func unknownEvent(slug string) error {
	return problem.NotFound("event_unknown", problem.Facts{"event": slug})
}
