package notice

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

// AgainBuyer sends to one buyer, once more, what they are to know of their reservation, which must have tickets of the event: whatever
// came of it before. What is on its way already is not doubled, channel by channel.
func AgainBuyer(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string) (r Readied, err error) {
	e, err := toTellBuyers(ctx, db, actor, slug)
	if err != nil {
		return r, err
	}
	err = db.Tx(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		id, err := findBuyer(ctx, tx, e, reference)
		if err != nil {
			return err
		}
		if r, err = readyBuyers(ctx, tx, actor, e, againOne, id); err == nil && r == (Readied{}) {
			err = problem.Refused("tell_buyer_nothing_again", problem.Facts{"reservation": reference})
		}
		return err
	})
	return r, err
}

// findBuyer finds a reservation with tickets of the event whose buyer can be told something: who has an address.
func findBuyer(ctx context.Context, tx pgx.Tx, e event.Event, reference string) (id int64, err error) {
	var reachable bool
	err = tx.QueryRow(ctx, `
select r.id, r.email <> '' or r.phone <> ''
  from find_reservation($3) f join reservation r on (r.organisation_id, r.id) = (f.organisation_id, f.reservation_id)
 where r.organisation_id = $1 and exists (select from line where organisation_id = $1 and reservation_id = r.id and event_id = $2)`,
		e.OrganisationID, e.ID, reference).Scan(&id, &reachable)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, problem.NotFound("reservation_not_of_event", problem.Facts{"reservation": reference, "event": e.Slug})
	}
	if err != nil {
		return 0, fmt.Errorf("find the reservation: %w", err)
	}
	if !reachable {
		return 0, problem.Refused("tell_buyer_no_address", problem.Facts{"reservation": reference})
	}
	return id, nil
}

// AgainUntoldBuyers sends once more to all buyers of an event whom no channel reached and who have an address.
func AgainUntoldBuyers(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (r Readied, err error) {
	e, err := toTellBuyers(ctx, db, actor, slug)
	if err != nil {
		return r, err
	}
	err = db.Tx(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		r, err = readyBuyers(ctx, tx, actor, e, againUntold, 0)
		return err
	})
	return r, err
}

// toTellBuyers finds the event whose buyers the actor may tell.
func toTellBuyers(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (e event.Event, err error) {
	if err := account.Allow(actor, account.Tell); err != nil {
		return e, err
	}
	return event.Find(ctx, db, actor, slug)
}

// Whose notices are sent once more: of one reservation, the third argument, or of all whom none has reached, or whose message is in a folder.
const (
	againOne    = `n.reservation_id = $3`
	againUntold = `(n.told_at is null or 'written' in (n.email_state, n.sms_state)) and $3 = 0`
)

// standingOfBuyers are the notices of each reservation that still say something, locked in key order, with the channels on which they
// can be sent once more. A later one does not say what an earlier one did: the tickets stand in one, money that goes back in another.
const standingOfBuyers = `
of as materialized (select distinct reservation_id from line where organisation_id = $1 and event_id = $2),
stands as materialized (
  select n.id
    from of
   cross join lateral (select state from reservation where organisation_id = $1 and id = of.reservation_id offset 0) r
   cross join lateral (select * from notice where reservation_id = of.reservation_id offset 0) n
   where ` + standing + `),
locked as materialized (select n.* from notice n where n.organisation_id = $1 and n.id in (select id from stands) order by n.id for no key update),
latest as materialized (
  select n.id, n.email_state, n.sms_state, r.email = '' as no_email, r.phone = '' as no_phone,
         r.email <> '' and n.email_state not in ` + underWay + ` as email, r.phone <> '' and n.sms_state not in ` + underWay + ` as sms
    from locked n
   cross join lateral (select email, phone from reservation where organisation_id = $1 and id = n.reservation_id offset 0) r
   where 'too_late' not in (n.email_state, n.sms_state)
     and (r.email <> '' and n.email_state not in ` + underWay + ` or r.phone <> '' and n.sms_state not in ` + underWay + `) and `

// untoldOfBuyers is standingOfBuyers where a channel that told somebody does not tell them once more.
var untoldOfBuyers = exceptTold("r", standingOfBuyers)

// againOf chooses what is sent once more.
func againOf(which string) string {
	if which == againUntold {
		return untoldOfBuyers + which
	}
	return standingOfBuyers + which
}

func readyBuyers(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, which string, reservationID int64) (r Readied, err error) {
	err = tx.QueryRow(ctx, `with`+againOf(which)+`)`+readied, pg.PlanAnew, e.OrganisationID, e.ID, reservationID).Scan(&r.Emails, &r.SMS)
	if err != nil {
		return r, fmt.Errorf("make the messages ready: %w", err)
	}
	if r == (Readied{}) {
		return r, nil
	}
	err = timeline.Record(ctx, tx, e.OrganisationID, actor, timeline.Entry{
		Kind: KindTellingAgain, Subject: timeline.Subject{EventID: e.ID, ReservationID: reservationID},
		Facts: map[string]int{"emails": r.Emails, "sms": r.SMS},
	})
	if err != nil {
		return r, err
	}
	return r, wake(ctx, tx, r.Emails > 0, r.SMS > 0)
}
