package reservation

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
)

// A ticket that was exchanged in the cart costs nothing: neither at the gateway nor in what is kept, and it gives nothing back.
func TestChangeKind_CostsTheNewKindOnly(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	r, err := b.desk.ChangeKind(t.Context(), Buyer, r.Reference, 1, "reduced")
	b.must(err)
	b.pay(r, "stripe")
	b.equal("asked for at the gateway", b.stripe.Received("/v1/checkout/sessions")[0].Form.Get("line_items[0][price_data][unit_amount]"), "1000")
	paid, key := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	b.stands("exchanged and paid", r, Confirmed, 1000, 0, 0)
	b.tell(b.stripe.GiveBack(key, 1000))
	b.stands("back", r, Refunded, 0, 0, 1000)
	b.equal("what the exchanged one gave back", *b.read(r).Lines[0].RefundMinor, 0)
}

// Money that was paid out by hand in the operator's own screen, and written down, is told of by the bridge as well: it went once.
func TestPaidOut_AndThenTheBridgeSaysSo(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.paidTwice()
	number := b.openNumber()
	_, err := PaidOut(t.Context(), b.db, b.admin, b.org, number, "in the operator's screen")
	b.must(err)
	b.stands("paid out", r, Confirmed, 2000, 0, 2000)
	for range 2 { // a repeat changes nothing
		b.bridged(moved("refunded", "bk1", "payment", "op2"))
		b.stands("told of", r, Confirmed, 2000, 0, 2000)
	}
	b.equal("open", b.open(), []string{})
	// A second one of the same payment is more than there is: somebody looks, and nothing ends.
	b.bridged(moved("refunded", "bk2", "payment", "op2"))
	b.stands("once more", r, Confirmed, 2000, 0, 2000)
	b.equal("open", b.open(), []string{"exception exception more_than_left 2000 EUR"})
	b.must(Settle(t.Context(), b.db, b.admin, b.org, b.openNumber(), Settlement{Keep: true}))
	// Its bank did not take it: it is here again, and due.
	b.bridged(moved("refund_failed", "bk1", "payment", "op2"))
	b.stands("not taken", r, Confirmed, 2000, 2000, 0)
	_, err = PaidOut(t.Context(), b.db, b.admin, b.org, number, "in cash")
	b.must(err)
	b.stands("paid out again", r, Confirmed, 2000, 0, 2000)
}

// Told of by the bridge and written down by hand at the same time, it goes once, and the two never meet in a deadlock.
func TestPaidOut_BesideTheBridge(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	for round := range 8 {
		r := b.hold(best(1))
		b.pay(r, "money")
		twice := fmt.Sprint("op2-", round)
		for _, id := range []string{fmt.Sprint("op1-", round), twice} {
			b.bridged(moved("paid", id, "reference", b.checkout(r)))
		}
		number := b.openNumber()
		for _, err := range together(2, func(i int) error {
			if i == 0 {
				return b.bridge(moved("refunded", fmt.Sprint("bk", round), "payment", twice))
			}
			_, err := PaidOut(t.Context(), b.db, b.admin, b.org, number, "x")
			return err
		}) {
			b.must(err)
		}
		b.stands("once", r, Confirmed, 2000, 0, 2000)
	}
	b.equal("deadlocks", b.count(`select deadlocks from pg_stat_database where datname = current_database()`), 0)
	b.logIsQuiet()
}

// However a refund is written, no more goes back of a payment than it brought: the database refuses it.
func TestBack_NeverMoreThanWasPaid(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1")
	write := func(name string) error {
		return b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			of, _, err := payment.FindReceived(t.Context(), tx, b.page, key)
			if err != nil {
				return err
			}
			n := payment.GatewayNotice{Key: name, Kind: payment.NoticeRefunded, GatewayKey: key, AmountMinor: 1500, Currency: "EUR", OccurredAt: b.now, Body: "{}"}
			if _, err := payment.KeepNotice(t.Context(), tx, b.page, &n); err != nil {
				return err
			}
			_, err = payment.Move(t.Context(), tx, b.page, n, payment.Movement{Kind: "refunded", ReservationID: r.ID, RefundsID: of.ID, AmountMinor: 1500, Actor: "test"})
			return err
		})
	}
	b.must(write("refunded one"))
	if err := write("refunded two"); !pg.Violates(err, "back_within_payment") {
		t.Errorf("got %v", err)
	}
	b.exec(`drop trigger back_within_payment on payment`)
	if err := write("refunded three"); err != nil {
		t.Errorf("without the guard: %v", err)
	}
}

// Money that came and went before anybody knew of it, told of as more than came, in another currency too: what is beyond is for a person.
func TestRefundedBeforePaid_MoreThanCame(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	for i, currency := range []string{"EUR", "EUR", "XOF"} {
		b.bridged(moved("refunded", fmt.Sprint("bk", i), "payment", "op1", "amount_minor", 1500+500*i, "currency", currency))
	}
	b.bridged(moved("paid", "op1", "reference", b.checkout(r)))
	b.stands("a part is left by the books", r, PaymentStarted, 500, 0, 1500)
	b.equal("open", b.open(), []string{"exception exception more_than_left 2000 EUR", "exception exception refund_currency 2500 XOF"})
}

// A bank refuses a refund, and a person has it asked for again: it is another request, under a key of its own, and goes back.
func TestAskAgain_AfterTheBankRefused(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.stripe.HoldRefunds()
	r, key := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.refundAll()
	b.tell(b.stripe.FailRefund(b.stripe.Refunds()[0]))
	number := b.openNumber()
	_, err = AskAgain(t.Context(), b.db, b.admin, b.org, number)
	b.must(err)
	_, err = PaidOut(t.Context(), b.db, b.admin, b.org, number, "R-1")
	b.refusedWith(err, "refund_by_gateway") // it is being asked for
	b.refundAll()
	b.equal("refunds at Stripe", len(b.stripe.Refunds()), 2)
	b.tell(b.stripe.Settle(b.stripe.Refunds()[1]))
	b.stands("back", r, Refunded, 0, 0, 2000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 2000)
	asked := b.stripe.Received("/v1/refunds")
	if asked[0].Key == asked[1].Key {
		t.Errorf("both were asked for under %s", asked[0].Key)
	}
}

// A gateway that says of a request, when it is asked again, that it failed, is believed though its notice is lost or was heard before: a
// person may then pay it out. What was refused stays so under its key, and not under the next.
func TestAskAgain_WhatTheGatewayAnswers(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.stripe.HoldRefunds()
	r, _ := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusPaymentRequired, Words: "the card is gone"})
	_, err = AskRefunds(t.Context(), b.db, 10)
	b.must(err)
	number := b.openNumber()
	_, err = AskAgain(t.Context(), b.db, b.admin, b.org, number)
	b.must(err)
	b.refundAll() // pending under its new key
	b.stripe.FailRefund(b.stripe.Refunds()[0])
	b.clock(time.Hour)
	b.exec(`update refund set next_attempt_at = clock()`)
	_, err = AskRefunds(t.Context(), b.db, 10)
	b.must(err)
	b.equal("open", b.open(), []string{"refund failed ticket_cancelled 2000 EUR"})
	for range 2 {
		_, err = PaidOut(t.Context(), b.db, b.admin, b.org, number, "R-1")
		b.must(err)
		b.stands("paid out", r, Refunded, 0, 0, 2000)
	}
}

// Nobody answers for days, a person pays it out, and then the gateway says what became of it: that it failed changes nothing, and that it
// went is more than there was.
func TestPaidOut_AndThenTheGatewaySaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"done", "failed"} {
		b := newBoxOffice(t)
		b.stripe.HoldRefunds()
		r, _ := b.bought("A1")
		_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
		b.must(err)
		b.refundAll()
		number := b.openNumber()
		b.exec(`update refund set state = 'failed', next_attempt_at = null, failure = 'unanswered'`)
		_, err = PaidOut(t.Context(), b.db, b.admin, b.org, number, "R-1")
		b.must(err)
		open := []string{}
		if id := b.stripe.Refunds()[0]; end == "done" {
			b.tell(b.stripe.Settle(id))
			open = []string{"exception exception more_than_left 2000 EUR"}
		} else {
			b.tell(b.stripe.FailRefund(id))
		}
		b.stands(end, r, Refunded, 0, 0, 2000)
		b.equal(end, b.open(), open)
	}
}

// While a gateway is asked for a refund the whole payment goes back in its own screen: the gateway refuses, and nothing is due any more.
func TestRefundedOutside_WhileItIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusServiceUnavailable})
	_, err = AskRefunds(t.Context(), b.db, 10)
	b.must(err)
	b.tell(b.stripe.GiveBack(key, 2000))
	b.clock(time.Hour)
	_, err = AskRefunds(t.Context(), b.db, 10)
	b.must(err)
	b.stands("refused", r, Refunded, 0, 0, 2000)
	b.equal("open", b.open(), []string{})
}

// Money of nobody goes back at its gateway while a person decides what it is for: one comes after the other. Without the lock of the
// payment the person's decision is lost.
func TestSettle_WhileMoneyOfNobodyGoesBack(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"to order", "back"} {
		b := newBoxOffice(t)
		r := b.hold(chosen("A1"))
		b.pay(r, "money")
		b.bridged(moved("paid", "op1", "reference", "unknown"))
		_, id, err := payment.Numbered(b.openNumber())
		b.must(err)
		settlement, to := Settlement{GiveBack: true}, int64(0)
		if how == "to order" {
			settlement, to = Settlement{Reservation: r.Reference}, r.ID
		}
		done := make(chan error, 1)
		b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			b.must(settle(t.Context(), tx, b.admin, 1, id, to, settlement))
			go func() { done <- b.bridge(moved("refunded", "bk1", "payment", "op1")) }()
			b.waiting(1)
			return nil
		}))
		b.must(<-done)
		b.balanced()
		b.equal(how+": open", b.open(), []string{})
		b.equal(how+": back", b.count(`select count(*) from payment where kind = 'refunded'`), 1)
		if how == "to order" {
			b.stands(how, r, Refunded, 0, 0, 2000)
		}
	}
}
