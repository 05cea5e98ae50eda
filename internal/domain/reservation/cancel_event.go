package reservation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// cancelChunk is how many reservations of a cancelled event are ended in one transaction.
const cancelChunk = 100

// EventCancellation is what a cancelled event came to.
type EventCancellation struct {
	Already      bool // it was cancelled before
	Reservations int  // of which tickets ended by this call
	Tickets      int
	Due          i18n.Money // that is to go back because of this call
}

// CancelEvent says that an event does not take place. All its tickets end, their seats and the rooms of what had not ended are free; what was paid for them is due
// back, whole and without a fee. What else is in the same carts stays. It goes chunk by chunk, each in its own transaction: called
// again, after a crash or by mistake, it does what is left and nothing twice.
func CancelEvent(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reason string) (done EventCancellation, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return done, err
	}
	e, err := event.Find(ctx, db, actor, slug)
	if err != nil {
		return done, err
	}
	if strings.TrimSpace(reason) == "" {
		return done, problem.Invalid("reason_missing", nil)
	}
	err = db.Tx(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		_, changed, err := event.Cancel(ctx, tx, actor, e.OrganisationID, e.ID)
		if err != nil {
			return err
		}
		done.Already = !changed
		return seating.CancelSittingsOf(ctx, tx, e.OrganisationID, e.ID)
	})
	if err != nil {
		return done, err
	}
	done.Due.Currency = e.Currency
	for last := int64(0); ; {
		var ids []int64
		var ended EventCancellation
		err := inTurns(ctx, db, e.OrganisationID, func(tx pgx.Tx) error {
			ended = done
			if ids, err = reservationsOf(ctx, tx, e, last); err != nil {
				return err
			}
			return endEventIn(ctx, tx, actor, e, ids, reason, &ended)
		})
		if err != nil {
			return done, err
		}
		done = ended
		if len(ids) < cancelChunk {
			return done, nil
		}
		last = ids[len(ids)-1]
	}
}

// reservationsOf takes the rows of the next reservations that have tickets of the event, in key order.
func reservationsOf(ctx context.Context, tx pgx.Tx, e event.Event, after int64) ([]int64, error) {
	rows, err := tx.Query(ctx, `
select r.id from reservation r
 where r.organisation_id = $1 and r.id > $3
   and exists (select from line l where l.organisation_id = r.organisation_id and l.reservation_id = r.id and l.event_id = $2 and l.cancelled_at is null)
 order by r.id limit $4 for no key update`, e.OrganisationID, e.ID, after, cancelChunk)
	if err != nil {
		return nil, fmt.Errorf("find the reservations of the event: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("find the reservations of the event: %w", err)
	}
	return ids, nil
}

// endEventIn ends the tickets of the event in some reservations, whose rows are locked. Their seats are freed first, in one order over all
// of them: reservation by reservation, somebody who holds lapsed seats of two again could meet it in a deadlock.
func endEventIn(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, ids []int64, reason string, done *EventCancellation) error {
	if err := seating.ReleaseOfEvent(ctx, tx, e.OrganisationID, e.ID, ids, string(payment.EventCancelled)); err != nil {
		return err
	}
	for _, id := range ids {
		if err := endEvent(ctx, tx, actor, e, id, reason, done); err != nil {
			return err
		}
	}
	return nil
}

// endEvent ends the tickets of the event in one reservation.
func endEvent(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, id int64, reason string, done *EventCancellation) error {
	r, s, err := lockStanding(ctx, tx, e.OrganisationID, id)
	if err != nil {
		return err
	}
	var lines []Line
	for _, line := range r.open() {
		if line.EventID == e.ID {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	done.Reservations, done.Tickets = done.Reservations+1, done.Tickets+len(lines)
	switch r.Written {
	case Confirmed, Disputed:
		refunds := refundsOf(lines, true, s.keptMinor)
		for _, refund := range refunds {
			done.Due.Minor += refund
		}
		return cancel(ctx, tx, actor, r, lines, refunds, payment.EventCancelled, reason)
	}
	// Not paid: it costs so much less. What was paid in part goes back when the cart ends.
	err = endTickets(ctx, tx, actor, r, lines, ending{reason: string(payment.EventCancelled), words: reason, release: true, ended: r.Written == Lapsed})
	if err != nil || len(lines) < len(r.open()) {
		return err
	}
	return giveBackKept(ctx, tx, actor, payment.EventCancelled, r)
}

// giveBackKept has what was paid in part for reservations of one organisation that are over go back, and nobody pay for them any more.
func giveBackKept(ctx context.Context, tx pgx.Tx, actor timeline.Actor, reason payment.RefundReason, over ...Reservation) error {
	ids := make([]int64, len(over))
	for i, r := range over {
		ids[i] = r.ID
	}
	if err := payment.LookSoon(ctx, tx, over[0].OrganisationID, ids...); err != nil {
		return err
	}
	kept, err := payment.KeptOf(ctx, tx, over[0].OrganisationID, ids)
	if err != nil {
		return err
	}
	for _, r := range over {
		if minor := kept[r.ID]; minor > 0 {
			if err := owe(ctx, tx, actor, r, minor, reason); err != nil {
				return err
			}
		}
	}
	return nil
}
