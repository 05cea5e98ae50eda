package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/notice"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// Bounds of a sweep.
const (
	offersTogether = 100 // of one sitting, in one transaction
	sittingsOfPage = 200
)

// System is who offers places when nobody has to ask for it.
var System = timeline.Actor{Name: "system (waiting list)", Installation: true}

// Offers is what a sweep did.
type Offers struct {
	Offered []Entry // to whom places are offered now
	Missed  int     // offers that ended unused
	Over    int     // for whom nothing can come free any more
}

func (o *Offers) add(more Offers) {
	o.Offered = append(o.Offered, more.Offered...)
	o.Missed, o.Over = o.Missed+more.Missed, o.Over+more.Over
}

// Offer goes through the queues of all sittings for which the actor acts, and offers what came free, however it did, to those who waited
// longest. It writes down which offers are over and for whom nothing can come free any more. A second sweep changes nothing. One sitting
// that fails holds up no other.
func Offer(ctx context.Context, db *pg.DB, actor timeline.Actor) (done Offers, err error) {
	if err := account.Allow(actor, account.Sell); err != nil {
		return done, err
	}
	var failed []error
	for after := int64(0); ; {
		page, err := awaited(ctx, db, after)
		if err != nil {
			return done, err
		}
		for _, at := range page {
			after = at.SittingID
			if !actor.MayActFor(at.OrganisationID) {
				continue
			}
			offered, err := offerAt(ctx, db, actor, at)
			if ctx.Err() != nil {
				return done, err
			}
			if done.add(offered); err != nil {
				failed = append(failed, err)
			}
		}
		if len(page) < sittingsOfPage {
			return done, errors.Join(failed...)
		}
	}
}

// awaited are sittings that people wait for, behind one.
func awaited(ctx context.Context, db *pg.DB, after int64) (page []reservation.At, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select organisation_id, event_id, sitting_id from sittings_awaited($1, $2)`, after, sittingsOfPage)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reservation.At])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find what is waited for: %w", err)
	}
	return page, nil
}

// offerAt offers what is free at one sitting, in as many transactions as it takes.
func offerAt(ctx context.Context, db *pg.DB, actor timeline.Actor, at reservation.At) (done Offers, err error) {
	for {
		var once Offers
		var more bool
		err := reservation.Again(func() error {
			return db.Tx(ctx, []int64{at.OrganisationID}, func(tx pgx.Tx) (err error) {
				s := &sweep{actor: actor, at: at}
				more, err = s.run(ctx, tx)
				once = s.done
				return err
			})
		})
		if err != nil {
			return done, fmt.Errorf("offer places of sitting %d: %w", at.SittingID, err)
		}
		if done.add(once); !more {
			return done, nil
		}
	}
}

// ListAwaited lists sittings that people wait for, in the order of their keys, behind one. It is Work.Next of a task, and locks nothing.
func ListAwaited(ctx context.Context, tx pgx.Tx, _ run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
	return run.CollectItems(tx.Query(ctx, `
select distinct w.organisation_id, w.sitting_id, s.reference, e.name
  from waiting w
  join sitting s on (s.organisation_id, s.id) = (w.organisation_id, w.sitting_id)
  join event e on (e.organisation_id, e.id) = (w.organisation_id, w.event_id)
 where w.state in ('waiting', 'offered') and w.organisation_id = any($1) and (w.organisation_id, w.sitting_id) > ($2, $3)
 order by w.organisation_id, w.sitting_id limit $4`, organisations, after.OrganisationID, after.ID, most))
}

// OfferIn is Offer for one sitting, as a step of a transaction.
func OfferIn(ctx context.Context, tx pgx.Tx, actor timeline.Actor, sitting run.Item) (done Offers, err error) {
	at := reservation.At{OrganisationID: sitting.OrganisationID, SittingID: sitting.ID}
	err = tx.QueryRow(ctx, `select event_id from sitting where organisation_id = $1 and id = $2`, at.OrganisationID, at.SittingID).Scan(&at.EventID)
	if err != nil {
		return done, fmt.Errorf("find the event of sitting %d: %w", at.SittingID, err)
	}
	for more := true; more; {
		s := &sweep{actor: actor, at: at}
		if more, err = s.run(ctx, tx); err != nil {
			return done, fmt.Errorf("offer places of sitting %d: %w", at.SittingID, err)
		}
		done.add(s.done)
	}
	return done, nil
}

// sweep is one look through the queue of one sitting.
type sweep struct {
	actor timeline.Actor
	at    reservation.At
	done  Offers

	opening *reservation.Opening
	given   []Entry
	over    []Entry
	entries []timeline.Entry
	full    map[string]bool // zones whose places are kept for somebody who waits for more of them
	stopped bool            // all are
}

// run tells whether there may be more to offer.
func (s *sweep) run(ctx context.Context, tx pgx.Tx) (more bool, err error) {
	ended, err := s.lockEnded(ctx, tx)
	if err != nil {
		return false, err
	}
	if s.opening, err = reservation.Open(ctx, tx, s.actor, s.at); err != nil {
		return false, err
	}
	if err := s.settle(ctx, tx, ended); err != nil {
		return false, err
	}
	queue, err := read(ctx, tx, s.at.OrganisationID, `w.sitting_id = $2 and w.state = 'waiting' order by w.joined_at, w.id limit $3`, s.at.SittingID, mostInQueue)
	if err != nil {
		return false, err
	}
	s.full = map[string]bool{}
	for _, e := range queue {
		if s.stopped || len(s.given) == offersTogether {
			break
		}
		if err := s.offer(ctx, tx, e); err != nil {
			return false, err
		}
	}
	if err := s.write(ctx, tx); err != nil {
		return false, err
	}
	if err := s.end(ctx, tx); err != nil {
		return false, err
	}
	return len(s.given) == offersTogether, timeline.Record(ctx, tx, s.at.OrganisationID, s.actor, s.entries...)
}

// lockEnded takes the reservations of offers that are over, before the sitting; what others hold has its turn with the next sweep.
func (s *sweep) lockEnded(ctx context.Context, tx pgx.Tx) (ids []int64, err error) {
	rows, err := tx.Query(ctx, `
select r.id from waiting w join reservation r on (r.organisation_id, r.id) = (w.organisation_id, w.reservation_id)
 where w.organisation_id = $1 and w.sitting_id = $2 and w.state = 'offered'
   and (r.state not in ('held', 'payment_started') or not exists (
     select from claim k where k.organisation_id = $1 and k.reservation_id = r.id and k.released_at is null and (k.expires_at is null or k.expires_at > clock())))
 order by r.id for no key update of r skip locked`, pg.PlanAnew, s.at.OrganisationID, s.at.SittingID)
	if err != nil {
		return nil, fmt.Errorf("find the offers that are over: %w", err)
	}
	if ids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("find the offers that are over: %w", err)
	}
	return ids, nil
}

// settle writes down what became of offers that are over, as their reservations stand now that they are locked. Who missed theirs is told.
func (s *sweep) settle(ctx context.Context, tx pgx.Tx, reservations []int64) error {
	rows, err := tx.Query(ctx, `
update waiting w set ended_at = clock(), state = case
   when r.state in ('held', 'payment_started', 'lapsed') then 'missed' when r.state = 'cancelled' then 'left' else 'taken' end
  from reservation r
 where w.organisation_id = $1 and w.sitting_id = $2 and w.state = 'offered' and w.reservation_id = any($3)
   and (r.organisation_id, r.id) = ($1, w.reservation_id)
   and (r.state not in ('held', 'payment_started') or not exists (
     select from claim k where k.organisation_id = $1 and k.reservation_id = r.id and k.released_at is null and (k.expires_at is null or k.expires_at > clock())))
returning w.id, case w.state when 'missed' then w.reservation_id end`, pg.PlanAnew, s.at.OrganisationID, s.at.SittingID, reservations)
	if err != nil {
		return fmt.Errorf("write down what became of offers: %w", err)
	}
	var ids, missed []int64
	var id int64
	var reservationID *int64 // of an offer that was missed
	_, err = pgx.ForEachRow(rows, []any{&id, &reservationID}, func() error {
		if ids = append(ids, id); reservationID != nil {
			missed = append(missed, *reservationID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write down what became of offers: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	ended, err := read(ctx, tx, s.at.OrganisationID, `w.id = any($2) order by w.id`, ids)
	if err != nil {
		return err
	}
	for _, e := range ended {
		switch e.State {
		case Missed:
			s.entries = append(s.entries, timeline.Entry{Kind: kindMissed, Subject: e.subject(), Facts: e.facts()})
		case Left:
			s.entries = append(s.entries, timeline.Entry{Kind: kindLeft, Subject: e.subject(), Facts: e.facts()})
		}
	}
	s.done.Missed = len(missed)
	return notice.TellBuyers(ctx, tx, s.at.OrganisationID, notice.KindOfferMissed, missed...)
}

// offer gives somebody what they wait for, or fewer where that will do; else what there is of it is kept for them: whoever comes later and
// wants less does not overtake them.
func (s *sweep) offer(ctx context.Context, tx pgx.Tx, e Entry) error {
	until, err := s.opening.Ends(e.KindID)
	switch {
	case problem.Has(err, "sale_not_begun"): // later
		return nil
	case err != nil:
		return s.lost(e, err)
	}
	wish := reservation.Wish{
		Key: "waiting " + e.Reference, Contact: reservation.Contact{Name: e.Name, Email: e.Email, Phone: e.Phone, Locale: e.Locale},
		KindID: e.KindID, Zone: e.Zone, Places: e.Wanted, Until: until, Kept: func(zone string) bool { return s.full[zone] },
	}
	if e.Zone != nil && s.full[*e.Zone] {
		return nil
	}
	err = s.opening.Give(ctx, tx, wish)
	if p, few := problem.Of(err); few && p.Code == "seats_too_few" {
		if left, _ := p.Facts["left"].(int); left >= e.Fewest {
			wish.Places = left
			err = s.opening.Give(ctx, tx, wish)
		}
	}
	switch {
	case err == nil:
		s.given = append(s.given, e)
	case !problem.Has(err, "seats_too_few"):
		return s.lost(e, err)
	case e.Zone == nil:
		s.stopped = true
	default:
		s.full[*e.Zone] = true
	}
	return nil
}

// lost notes that nothing can be offered to somebody any more, where a rule says so.
func (s *sweep) lost(e Entry, err error) error {
	if _, refused := problem.Of(err); !refused {
		return err
	}
	s.over = append(s.over, e)
	return nil
}

// write holds what was given, and tells those to whom it is offered.
func (s *sweep) write(ctx context.Context, tx pgx.Tx) error {
	if len(s.given) == 0 {
		return nil
	}
	held, err := s.opening.Write(ctx, tx)
	if err != nil {
		return err
	}
	ids, reservations := make([]int64, len(s.given)), make([]int64, len(s.given))
	for i, e := range s.given {
		r, there := held["waiting "+e.Reference]
		if !there {
			return fmt.Errorf("offer to %s: its hold was not written", e.Reference)
		}
		ids[i], reservations[i] = e.ID, r.ID
		s.given[i].State, s.given[i].Reservation = Offered, r.Reference
		facts := e.facts()
		facts["reservation"], facts["places"], facts["ends_at"] = r.Reference, len(r.Lines), r.EndsAt
		subject := e.subject()
		subject.ReservationID = r.ID
		s.entries = append(s.entries, timeline.Entry{Kind: kindOffered, Subject: subject, Facts: facts})
	}
	_, err = tx.Exec(ctx, `
update waiting w set state = 'offered', offered_at = clock(), reservation_id = o.reservation_id
  from unnest($2::bigint[], $3::bigint[]) o(id, reservation_id)
 where w.organisation_id = $1 and w.id = o.id and w.state = 'waiting'`, s.at.OrganisationID, ids, reservations)
	if err != nil {
		return fmt.Errorf("write down what is offered: %w", err)
	}
	s.done.Offered = slices.Clone(s.given)
	return notice.TellBuyers(ctx, tx, s.at.OrganisationID, notice.KindPlacesOffered, reservations...)
}

// end takes those out of the queue for whom nothing can come free any more, and tells them.
func (s *sweep) end(ctx context.Context, tx pgx.Tx) error {
	if len(s.over) == 0 {
		return nil
	}
	ids := make([]int64, len(s.over))
	for i, e := range s.over {
		ids[i] = e.ID
		s.entries = append(s.entries, timeline.Entry{Kind: kindOver, Subject: e.subject(), Facts: e.facts()})
	}
	_, err := tx.Exec(ctx, `
update waiting set state = 'over', ended_at = clock() where organisation_id = $1 and id = any($2) and state = 'waiting'`, s.at.OrganisationID, ids)
	if err != nil {
		return fmt.Errorf("end the queue: %w", err)
	}
	s.done.Over = len(s.over)
	return notice.TellWaiting(ctx, tx, s.at.OrganisationID, notice.KindWaitingOver, ids...)
}
