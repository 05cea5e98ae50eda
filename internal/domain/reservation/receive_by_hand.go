package reservation

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// Cash is money that an agent took for a reservation.
type Cash struct {
	Gateway     string // name of a counter; empty: the only gateway there is
	AmountMinor int64  // of the reservation's currency; 0: what is left to pay
	Receipt     string // number: the same again changes nothing
}

// Taken is what came of money that was recorded by hand.
type Taken struct {
	Reservation Reservation
	Left        i18n.Money
	Due         i18n.Money // of what was recorded, that is to go back
}

// TakeCash records money at the counter, by the same rules as a gateway's. Without a receipt each call is a payment of its own.
func TakeCash(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, c Cash) (t Taken, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return t, err
	}
	organisationID, id, err := findFor(ctx, db, actor, reference)
	if err != nil {
		return t, err
	}
	err = inTurns(ctx, db, organisationID, func(tx pgx.Tx) error {
		t = Taken{}
		setup, err := payment.FindSetup(ctx, tx, organisationID, c.Gateway)
		if err != nil {
			return err
		}
		if setup.Kind != payment.Counter {
			return problem.Refused("gateway_no_counter", problem.Facts{"name": setup.Name})
		}
		if err := takeCash(ctx, tx, actor, setup, id, c); err != nil {
			return err
		}
		t.Reservation, err = ReadByID(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		money, err := payment.MoneyOf(ctx, tx, organisationID, id)
		t.Left, t.Due = t.Reservation.money(money.Left()), t.Reservation.money(money.DueMinor)
		return err
	})
	return t, err
}

// inTurns runs a transaction again that collided with another.
func inTurns(ctx context.Context, db *pg.DB, organisationID int64, act func(tx pgx.Tx) error) (err error) {
	for range takeMost {
		if err = db.Tx(ctx, []int64{organisationID}, act); !passing(err) {
			return err
		}
	}
	return err
}

func takeCash(ctx context.Context, tx pgx.Tx, actor timeline.Actor, setup payment.Setup, reservationID int64, c Cash) error {
	name := strings.TrimSpace(c.Receipt)
	if name == "" {
		name = strings.ToLower(rand.Text())
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	h := &hearing{setup: setup, actor: actor, n: payment.GatewayNotice{
		Key: "paid " + name, Kind: payment.NoticePaid, GatewayKey: name, AmountMinor: c.AmountMinor, OccurredAt: now, Body: "{}",
	}}
	if err := payment.Alone(ctx, tx, setup.ID, name); err != nil {
		return err
	}
	r, s, err := lockStanding(ctx, tx, setup.OrganisationID, reservationID)
	if err != nil {
		return err
	}
	h.n.Currency = r.Currency
	if known, err := payment.Said(ctx, tx, setup, h.n.Key); err != nil || known {
		if err != nil {
			return err
		}
		return checkSameCash(ctx, tx, h, r, c)
	}
	if c.AmountMinor == 0 {
		h.n.AmountMinor = max(0, s.costMinor-s.keptMinor)
	}
	if h.n.AmountMinor <= 0 || h.n.AmountMinor > payment.MostMinor {
		return problem.Invalid("amount_impossible", nil)
	}
	if _, open := Move(r.State, Confirm); !open { // whoever stands at the counter keeps their money
		return problem.Refused("reservation_not_open", problem.Facts{"reservation": r.Reference})
	}
	fresh, err := payment.KeepNotice(ctx, tx, setup, &h.n)
	if err != nil {
		return err
	}
	if !fresh {
		return checkSameCash(ctx, tx, h, r, c)
	}
	what := decidePaid(s, h.n.AmountMinor, h.n.Currency)
	if what.due != "" {
		return problem.Refused("reservation_not_open", problem.Facts{"reservation": r.Reference})
	}
	if err := h.into(ctx, tx, r, what, strings.TrimSpace(c.Receipt)); err != nil || !what.finalise {
		return err
	}
	after, err := ReadByID(ctx, tx, r.OrganisationID, r.ID)
	if err == nil && after.State != Confirmed && after.State != Disputed { // a seat of it is gone
		err = problem.Refused("reservation_not_open", problem.Facts{"reservation": r.Reference})
	}
	return err
}

// checkSameCash refuses a receipt that was used for other money: nothing is recorded then, and nobody may believe that it was.
func checkSameCash(ctx context.Context, tx pgx.Tx, h *hearing, r Reservation, c Cash) error {
	p, found, err := payment.FindReceived(ctx, tx, h.setup, h.n.GatewayKey)
	if err != nil {
		return err
	}
	if !found || p.ReservationID != r.ID || c.AmountMinor != 0 && c.AmountMinor != p.AmountMinor {
		return problem.Refused("payment_key_used", problem.Facts{"key": c.Receipt})
	}
	return nil
}

// PaidOut records that somebody paid money out by hand that was due back. receipt is what they have of it.
func PaidOut(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, number, receipt string) (f payment.Refund, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return f, err
	}
	err = withRefund(ctx, db, actor, org, number, func(tx pgx.Tx, setup payment.Setup, of payment.Refund) error {
		f = of
		switch {
		case f.State == payment.RefundDone: // a repeat
			return nil
		case f.Disputed: // the bank decides whether it goes back: it would go twice
			return refundDisputed(ctx, tx, f, number)
		case setup.Kind == payment.Stripe && f.State != payment.RefundFailed: // the gateway does it, or has done it
			return problem.Refused("refund_by_gateway", problem.Facts{"number": number, "gateway": setup.Name})
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		h := &hearing{setup: setup, actor: actor, n: payment.GatewayNotice{
			Key: "refunded " + f.RequestKey(), Kind: payment.NoticeRefunded, CheckoutKey: f.Key, GatewayKey: f.PaymentKey,
			AmountMinor: f.AmountMinor, Currency: f.Currency, OccurredAt: now, Body: "{}",
		}}
		fresh, err := payment.KeepNotice(ctx, tx, setup, &h.n)
		if err != nil || !fresh {
			return err
		}
		return h.done(ctx, tx, f, "", actor.Name, strings.TrimSpace(receipt))
	})
	return f, err
}

// AskAgain has the gateway asked anew for a refund that failed.
func AskAgain(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, number string) (f payment.Refund, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return f, err
	}
	err = withRefund(ctx, db, actor, org, number, func(tx pgx.Tx, setup payment.Setup, of payment.Refund) error {
		f = of
		switch {
		case setup.Kind.ByHand():
			return problem.Refused("refund_by_hand", problem.Facts{"number": number})
		case f.Disputed:
			return refundDisputed(ctx, tx, f, number)
		case f.State != payment.RefundFailed:
			return problem.Refused("refund_not_failed", problem.Facts{"number": number})
		}
		if err := payment.AskAgain(ctx, tx, f); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: "refund_asked_again", Subject: timeline.Subject{ReservationID: f.ReservationID}, Facts: map[string]any{"amount": f.Money(), "refund": f.Key},
		})
	})
	return f, err
}

// refundDisputed refuses to give back what a bank asks back. Of a payment that belongs to a reservation a person may say what came of it.
func refundDisputed(ctx context.Context, tx pgx.Tx, f payment.Refund, number string) error {
	facts := problem.Facts{"number": number, "reservation": ""}
	if f.ReservationID != 0 {
		r, err := ReadByID(ctx, tx, f.OrganisationID, f.ReservationID)
		if err != nil {
			return err
		}
		facts["reservation"] = r.Reference
	}
	return problem.Refused("refund_disputed", facts)
}

// withRefund finds what is to go back by its number, for somebody who decides about it, and locks it.
func withRefund(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, number string,
	act func(tx pgx.Tx, setup payment.Setup, f payment.Refund) error,
) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	letter, id, err := payment.Numbered(number)
	if err != nil {
		return err
	}
	if letter != 'R' {
		return problem.Invalid("money_no_refund", problem.Facts{"number": number})
	}
	return inTurns(ctx, db, org.ID, func(tx pgx.Tx) error {
		f, setup, err := lockRefund(ctx, tx, org.ID, id)
		if err != nil {
			return err
		}
		return act(tx, setup, f)
	})
}

// lockRefund takes what is to go back: its payment first, then its reservation, then itself.
func lockRefund(ctx context.Context, tx pgx.Tx, organisationID, id int64) (f payment.Refund, setup payment.Setup, err error) {
	if err := payment.AloneWithRefund(ctx, tx, organisationID, id); err != nil {
		return f, setup, err
	}
	_, err = tx.Exec(ctx, `
select from reservation where organisation_id = $1 and id = (select reservation_id from refund where organisation_id = $1 and id = $2) for no key update`,
		organisationID, id)
	if err != nil {
		return f, setup, fmt.Errorf("lock the reservation: %w", err)
	}
	return payment.LockRefund(ctx, tx, organisationID, id)
}

// Settlement is how a person settles what a gateway said.
type Settlement struct {
	Reservation string // reference: money that belongs to nobody is put to it
	Ticket      int    // number: the part that went back was for this ticket, which ends
	GiveBack    bool   // money that belongs to nobody is due back
	Keep        bool   // seen: nothing is to be done; a part that went back was for no ticket
	Retry       bool   // what the program could not apply is applied again
}

// Settle does what a person decided about an item of the list of what they must look at.
func Settle(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, number string, how Settlement) error {
	if err := account.Allow(actor, account.Pay); err != nil {
		return err
	}
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	letter, id, err := payment.Numbered(number)
	if err != nil {
		return err
	}
	if letter != 'N' {
		return problem.Invalid("money_no_notice", problem.Facts{"number": number})
	}
	var reservationID int64
	if how.Reservation != "" {
		of, found, err := findFor(ctx, db, actor, how.Reservation)
		if err != nil {
			return err
		}
		if reservationID = found; of != org.ID {
			return unknown(how.Reservation)
		}
	}
	return inTurns(ctx, db, org.ID, func(tx pgx.Tx) error { return settle(ctx, tx, actor, org.ID, id, reservationID, how) })
}

// settle holds the payment and the reservation first, as everybody does, and then the notice.
func settle(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID, id, reservationID int64, how Settlement) error {
	if err := payment.AloneWithNotice(ctx, tx, organisationID, id); err != nil {
		return err
	}
	var of int64
	err := tx.QueryRow(ctx, `
select coalesce((select reservation_id from payment where organisation_id = $1 and gateway_notice_id = $2 order by id desc limit 1), 0)`,
		organisationID, id).Scan(&of)
	if err != nil {
		return err
	}
	if of == 0 {
		of = reservationID
	}
	r := Reservation{OrganisationID: organisationID, State: Refunded, Written: Refunded}
	if of != 0 {
		if r, err = lock(ctx, tx, organisationID, of); err != nil {
			return err
		}
	}
	n, setup, reason, err := payment.LockNotice(ctx, tx, organisationID, id)
	if err != nil {
		return err
	}
	h := &hearing{setup: setup, n: n, actor: actor}
	if how.Retry && reason == payment.Fault {
		return h.retry(ctx, tx)
	}
	switch money, found, err := h.nobodysMoney(ctx, tx); {
	case err != nil:
		return err
	case how.Reservation != "" && found:
		return h.putTo(ctx, tx, r, money)
	case how.GiveBack && found:
		if _, err := oweOf(ctx, tx, actor, r, []payment.Received{money}, money.AmountMinor-money.BackMinor-money.DueMinor, payment.NobodysMoney); err != nil {
			return err
		}
		return h.settled(ctx, tx, r, payment.NoticeApplied, "given_back")
	case how.Ticket != 0 && reason == "refund_part":
		return h.forTicket(ctx, tx, r, how.Ticket)
	case how.Keep && reason == "refund_part":
		return h.settled(ctx, tx, r, payment.NoticeApplied, "spared")
	case how.Keep && reason == "payment_unknown": // nobody looks any more; should its payment come, it is applied all the same
		return h.settled(ctx, tx, r, payment.NoticeWaiting, reason)
	case how.Keep && !found && (reason != payment.Fault || !n.Kind.Moves()):
		return h.settled(ctx, tx, r, payment.NoticeApplied, reason)
	}
	return problem.Refused("money_settled_otherwise", problem.Facts{"reason": i18n.Word{ID: "money_why_" + reason}})
}

// retry applies a notice that the program could not apply. What came of it is as if it had come now.
func (h *hearing) retry(ctx context.Context, tx pgx.Tx) error {
	if err := payment.Settle(ctx, tx, h.setup.OrganisationID, h.n.ID, payment.NoticeApplied, "retried", h.actor); err != nil {
		return err
	}
	if err := h.note(ctx, tx, Reservation{}, "money_settled", map[string]any{"amount": h.n.Money(), "how": "retried"}); err != nil {
		return err
	}
	return h.apply(ctx, tx)
}

// nobodysMoney is the money that a notice brought and that belongs to nobody. Where a fault kept it from being recorded, it is now.
func (h *hearing) nobodysMoney(ctx context.Context, tx pgx.Tx) (payment.Received, bool, error) {
	money, found, err := payment.ReceivedBy(ctx, tx, h.setup.OrganisationID, h.n.ID)
	if err != nil || found || h.n.Kind != payment.NoticePaid {
		return money, found && money.AmountMinor > money.BackMinor+money.DueMinor, err
	}
	_, err = payment.Move(ctx, tx, h.setup, h.n, payment.Movement{Kind: "received", AmountMinor: h.n.AmountMinor, Actor: h.actor.Name})
	if err != nil {
		return money, false, err
	}
	return payment.ReceivedBy(ctx, tx, h.setup.OrganisationID, h.n.ID)
}

// putTo puts money to an order, which it confirms when it is enough: by the rule for money that comes in.
func (h *hearing) putTo(ctx context.Context, tx pgx.Tx, r Reservation, money payment.Received) error {
	if money.BackMinor+money.DueMinor > 0 {
		return problem.Refused("money_partly_back", nil)
	}
	if money.Currency != r.Currency {
		return problem.Refused("money_other_currency", problem.Facts{"money": money.Currency, "order": r.Currency})
	}
	all, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	what := decidePaid(r.standing(all), money.AmountMinor, money.Currency)
	if err := payment.PutTo(ctx, tx, r.OrganisationID, money, r.ID, h.actor.Name); err != nil {
		return err
	}
	if err := follow(ctx, tx, h.actor, r, what); err != nil {
		return err
	}
	return h.settled(ctx, tx, r, payment.NoticeApplied, "put_to_order")
}

// forTicket ends the ticket for which a part went back.
func (h *hearing) forTicket(ctx context.Context, tx pgx.Tx, r Reservation, ticket int) error {
	lines, err := toCancel(r, []int{ticket})
	if err != nil {
		return err
	}
	if len(lines) == 0 || lines[0].PriceMinor < h.n.AmountMinor {
		return problem.Refused("money_not_for_ticket", problem.Facts{"ticket": ticket, "amount": h.n.Money()})
	}
	if err := h.settled(ctx, tx, r, payment.NoticeApplied, ""); err != nil {
		return err
	}
	return endTickets(ctx, tx, h.actor, r, lines, ending{reason: "refunded_outside", refunds: []int64{h.n.AmountMinor}, release: true})
}

func (h *hearing) settled(ctx context.Context, tx pgx.Tx, r Reservation, state payment.NoticeState, reason string) error {
	if err := payment.Settle(ctx, tx, h.setup.OrganisationID, h.n.ID, state, reason, h.actor); err != nil {
		return err
	}
	return h.note(ctx, tx, r, "money_settled", map[string]any{"amount": h.n.Money(), "how": reason})
}
