package reservation

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
)

// Every row of the table of decision 0020 for money that comes in.
func TestDecidePaid(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		what     string
		state    State
		cost     int64
		kept     int64
		amount   int64
		currency string
		want     ruling
	}{
		{"the order's amount", PaymentStarted, 5000, 0, 5000, "EUR", ruling{finalise: true}},
		{"at a cart that was not sent to pay", Held, 5000, 0, 5000, "EUR", ruling{finalise: true}},
		{"the hold is over", Lapsed, 5000, 0, 5000, "EUR", ruling{finalise: true}},
		{"a cent less", PaymentStarted, 5000, 0, 4999, "EUR", ruling{}},
		{"a part", PaymentStarted, 5000, 0, 500, "EUR", ruling{}},
		{"the rest", PaymentStarted, 5000, 500, 4500, "EUR", ruling{finalise: true}},
		{"more", PaymentStarted, 5000, 0, 6000, "EUR", ruling{finalise: true}},
		{"a part, and the hold is over", Lapsed, 5000, 0, 2000, "EUR", ruling{dueMinor: 2000, due: payment.PaidInPart}},
		{"a second part, and the hold is over", Lapsed, 5000, 1000, 2000, "EUR", ruling{dueMinor: 3000, due: payment.PaidInPart}},
		{"again", Confirmed, 5000, 5000, 5000, "EUR", ruling{dueMinor: 5000, due: payment.PaidTwice}},
		{"again, in dispute", Disputed, 5000, 5000, 10, "EUR", ruling{dueMinor: 10, due: payment.PaidTwice}},
		{"cancelled", Cancelled, 0, 0, 5000, "EUR", ruling{dueMinor: 5000, due: payment.PaidAfterEnd}},
		{"refunded", Refunded, 0, 0, 5000, "EUR", ruling{dueMinor: 5000, due: payment.PaidAfterEnd}},
		{"charged back", ChargedBack, 0, 0, 5000, "EUR", ruling{dueMinor: 5000, due: payment.PaidAfterEnd}},
		{"another currency", PaymentStarted, 5000, 0, 5000, "XOF", ruling{exception: "other_currency"}},
		{"another currency, paid already", Confirmed, 5000, 5000, 5000, "XOF", ruling{exception: "other_currency"}},
	} {
		if got := decidePaid(standing{at.state, "EUR", at.cost, at.kept}, at.amount, at.currency); got != at.want {
			t.Errorf("%s: got %+v, want %+v", at.what, got, at.want)
		}
	}
}

func TestDecideOutside(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		state         State
		kept, missing int64
		want          outsideRuling
	}{
		{Confirmed, 1000, 500, outsidePart},
		{Confirmed, 1000, 0, outsideNothing}, // it was due
		{Confirmed, 0, 0, outsideNothing},    // they cost nothing
		{Confirmed, 0, 1000, outsideEnds},
		{Confirmed, -5, 1000, outsideEnds},
		{Disputed, 0, 1000, outsideEnds},
		{Lapsed, 0, 1000, outsideNothing},
		{Cancelled, 0, 1000, outsideNothing},
		{Refunded, 0, 1000, outsideNothing},
		{PaymentStarted, 10, 1000, outsideNothing},
	} {
		if got := decideOutside(at.state, at.kept, at.missing); got != at.want {
			t.Errorf("%s with %d, %d missing: got %v, want %v", at.state, at.kept, at.missing, got, at.want)
		}
	}
}

func TestDecideDispute(t *testing.T) {
	t.Parallel()
	opened, won, lost := payment.NoticeDisputeOpened, payment.NoticeDisputeWon, payment.NoticeDisputeLost
	for _, at := range []struct {
		of   disputed
		want string
	}{
		{disputed{state: Confirmed, kind: opened}, "[open_dispute] false "},
		{disputed{state: Confirmed, kind: opened, over: true}, "[] false "},
		{disputed{state: Disputed, kind: opened, others: true}, "[] false "}, // of another payment
		{disputed{state: Refunded, kind: opened}, "[] false dispute_not_confirmed"},
		{disputed{state: Disputed, kind: won}, "[win_dispute] false "},
		{disputed{state: Disputed, kind: won, others: true}, "[] false "},
		{disputed{state: Confirmed, kind: won}, "[] false "},
		{disputed{state: Refunded, kind: won}, "[] false "},
		{disputed{state: Disputed, kind: lost, missing: 1}, "[lose_dispute] true "},
		{disputed{state: Disputed, kind: lost, missing: 1, others: true}, "[lose_dispute] true "},
		{disputed{state: Confirmed, kind: lost, missing: 1}, "[open_dispute lose_dispute] true "},
		{disputed{state: Disputed, kind: lost}, "[win_dispute] false "}, // the tickets stand on other money
		{disputed{state: Disputed, kind: lost, others: true}, "[] false "},
		{disputed{state: Confirmed, kind: lost}, "[] false "},
		{disputed{state: Refunded, kind: lost, missing: 1}, "[] false dispute_not_confirmed"},
	} {
		got := decideDispute(at.of)
		if words := fmt.Sprint(got.steps, " ", got.ends, " ", got.exception); words != at.want {
			t.Errorf("%+v: got %q, want %q", at.of, words, at.want)
		}
	}
}

// C06: the seat is somebody else's by then.
func TestPaidLate_SeatGone(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1", "A2"))
	b.pay(r, "stripe")
	page := b.lastPage()
	b.clock(time.Hour)
	other := b.hold(chosen("A2"))
	b.pay(other, "stripe")
	theirs, _ := b.stripe.Pay(b.lastPage())
	b.tell(theirs)
	paid, key := b.stripe.Pay(page)
	b.tell(paid)
	b.stands("late", r, Lapsed, 0, 4000, 0)
	b.stands("the other", other, Confirmed, 2000, 0, 0)
	b.equal("open", b.open(), []string{"refund due paid_late 4000 EUR"})
	b.freeSeat("A1") // and A1 was not taken alone
	b.refundAll()
	b.stands("given back", r, Lapsed, 0, 0, 4000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 4000)
	b.equal("told", b.count(`select count(*) from timeline where reservation_id = $1 and kind in ('payment_late', 'refund_due', 'refund_done')`, r.ID), 3)
}

// C07: the same seats are taken again, swept or not, also when others hold them no more.
func TestPaidLate_SeatsFree(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(b *boxOffice, r Reservation){
		"nobody was there": func(*boxOffice, Reservation) {},
		"swept":            func(b *boxOffice, _ Reservation) { b.sweep() },
		"held meanwhile and given up": func(b *boxOffice, _ Reservation) {
			_, err := GiveUp(b.Context(), b.db, Buyer, b.hold(chosen("A1")).Reference)
			b.must(err)
		},
		"held meanwhile, and that lapsed too": func(b *boxOffice, _ Reservation) { b.hold(chosen("A1")); b.clock(3 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBoxOffice(t)
			r := b.hold(chosen("A1", "A2"))
			b.pay(r, "stripe")
			paid, _ := b.stripe.Pay(b.lastPage())
			b.clock(time.Hour)
			between(b, r)
			b.tell(paid)
			b.stands("paid late", r, Confirmed, 4000, 0, 0)
			b.equal("seats", b.read(r).seats(), []string{"A1", "A2"})
		})
	}
}

func (b *boxOffice) sweep() {
	b.Helper()
	_, _, err := expireSome(b.Context(), b.db, agent, 100)
	b.must(err)
}

// At the instant at which the hold ends it is over; the moment before it is not. Whether seats are free decides either way.
func TestPaid_AtTheInstantOfItsEnd(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	ends := *b.read(r).EndsAt
	paid, _ := b.stripe.Pay(b.lastPage())
	b.clock(ends.Sub(b.begun))
	other := b.hold(chosen("A1"))
	b.tell(paid)
	b.stands("at the instant", r, Lapsed, 0, 2000, 0)
	b.equal("the other's", b.read(other).seats(), []string{"A1"})

	second := b.hold(chosen("B1"))
	b.pay(second, "stripe")
	ends = *b.read(second).EndsAt
	paid, _ = b.stripe.Pay(b.lastPage())
	b.clock(ends.Sub(b.begun) - time.Microsecond)
	b.refused(chosen("B1"), "seats_taken")
	b.tell(paid)
	b.stands("the moment before", second, Confirmed, 2000, 0, 0)
}

// A hold lapses and others want the seat, while it is paid: one of them has it, and the money is where its owner is.
func TestPaid_RaceWithATaker(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	for _, row := range []string{"A", "B", "C"} {
		r := b.hold(chosen(row+"1", row+"2"))
		b.pay(r, "stripe")
		paid, _ := b.stripe.Pay(b.lastPage())
		b.clock(b.now.Sub(b.begun) + time.Hour)
		desks := []*Desk{b.desk, b.another()}
		errs := together(5, func(i int) error {
			if i == 2 {
				return b.deliver(paid)
			}
			_, err := desks[i%2].Hold(b.Context(), Buyer, chosen(row+"2"))
			return err
		})
		b.must(errs[2])
		won := 0
		for i, err := range errs {
			if i != 2 && err == nil {
				won++
			}
		}
		switch state := b.read(r).State; {
		case state == Confirmed && won == 0:
			b.stands("confirmed", r, Confirmed, 4000, 0, 0)
		case state == Lapsed && won == 1:
			b.stands("late", r, Lapsed, 0, 4000, 0)
		default:
			t.Errorf("%s and %d others have the seat", state, won)
		}
	}
}

// C24: five times at once with the return page, and again after an hour and after three days.
func TestPaid_Repeats(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.exec(`update checkout set look_at = clock()`)
	errs := together(7, func(i int) error {
		switch i {
		case 5: // the page to which the buyer comes back
			_, err := StartPayment(b.Context(), b.db, Buyer, r.Reference, Paying{Gateway: "stripe", Contact: awa})
			return err
		case 6:
			looked, err := LookAtCheckouts(b.Context(), b.db, 10)
			return errors.Join(append(looked.Errors, err)...)
		}
		return b.deliver(paid)
	})
	b.must(errors.Join(errs...))
	for _, later := range []time.Duration{0, time.Hour, 72 * time.Hour} {
		b.clock(later)
		b.tell(paid)
		b.stands("repeated", r, Confirmed, 2000, 0, 0)
	}
	b.equal("rows of money", b.count(`select count(*) from payment`), 1)
	b.equal("confirmations", b.count(`select count(*) from timeline where kind = 'reservation_confirmed'`), 1)
}

// The negative control: without the key of notices the repeat is money that came twice.
func TestPaid_RepeatsWithoutTheKey(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.forgetNotices()
	b.tell(paid)
	b.tell(paid)
	b.equal("rows of money without the key", b.count(`select count(*) from payment where reservation_id = $1`, r.ID), 2)
}

// forgetNotices has each notice be a new one, whatever it is called. “On conflict” names the key, which has to be there; one that tells
// every row apart stands in.
func (b *boxOffice) forgetNotices() {
	b.exec(`
alter table gateway_notice drop constraint gateway_notice_key;
alter table payment drop constraint payment_idempotency_key;
create function two_keys() returns trigger language plpgsql as $$ begin new.key = new.key || ' ' || new.id; return new; end $$;
create trigger two_keys before insert on gateway_notice for each row execute function two_keys();
alter table gateway_notice add constraint gateway_notice_key unique (organisation_id, gateway_id, key)`)
}

// C25: what happened later is told first, and is not dropped; also two days before.
func TestRefundedBeforePaid(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"a minute": time.Minute, "two days": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBoxOffice(t)
			r := b.hold(chosen("A1"))
			b.pay(r, "stripe")
			paid, key := b.stripe.Pay(b.lastPage())
			back := b.stripe.GiveBack(key, 2000)
			b.tell(back)
			b.stands("with the refund alone", r, PaymentStarted, 0, 0, 0)
			b.equal("open", b.open(), []string{"waiting waiting payment_unknown 2000 EUR"})
			b.clock(later)
			b.tell(paid)
			b.tell(back)
			b.tell(paid)
			b.stands("with both", r, Refunded, 0, 0, 2000)
			b.equal("rows of money", b.count(`select count(*) from payment`), 2)
			b.equal("open", len(b.open()), 0)
			b.equal("told that they paid", b.count(`select count(*) from timeline where kind = 'reservation_confirmed'`), 0)
			b.freeSeat("A1")
		})
	}
}

// Both at the same time: whichever is first, the end is the same.
func TestRefundedAndPaid_AtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	for n := range 6 {
		r := b.hold(best(1))
		b.pay(r, "stripe")
		paid, key := b.stripe.Pay(b.lastPage())
		events := [][]byte{b.stripe.GiveBack(key, 2000), paid}
		b.must(errors.Join(together(2, func(i int) error { return b.deliver(events[(i+n)%2]) })...))
		b.stands("both", r, Refunded, 0, 0, 2000)
	}
	b.equal("waiting", len(b.open()), 0)
}

// C27: nothing of it confirms; all of it is kept, shown, counted in its own currency, and answered.
func TestPaid_AnotherAmountOrOrder(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1", "A2"))
	b.pay(r, "money")
	reference := b.checkoutKey(r)
	notice := func(id, reference string, minor int64, currency string) {
		b.bridged(map[string]any{"type": "paid", "id": id, "reference": reference, "amount_minor": minor, "currency": currency})
	}
	notice("1", reference, 50, "XOF")
	b.stands("another currency", r, PaymentStarted, 0, 0, 0)
	notice("2", "pay_of_another", 4000, "EUR")
	b.stands("another order", r, PaymentStarted, 0, 0, 0)
	notice("3", "", 4000, "EUR")
	notice("4", reference, 400, "EUR")
	b.stands("a part", r, PaymentStarted, 400, 0, 0)
	notice("5", reference, 3599, "EUR")
	b.stands("a cent short", r, PaymentStarted, 3999, 0, 0)
	b.equal("open", b.open(), []string{
		"exception exception other_currency 50 XOF", "exception exception order_unknown 4000 EUR", "exception exception order_unknown 4000 EUR",
	})
	notice("6", reference, 2, "EUR")
	b.stands("more than all", r, Confirmed, 4000, 1, 0)

	other := b.hold(chosen("B1"))
	b.pay(other, "stripe")
	notice("7", b.checkoutKey(other), 2000, "EUR") // another gateway's
	b.stands("named by another gateway", other, PaymentStarted, 0, 0, 0)
}

func (b *boxOffice) checkoutKey(r Reservation) (key string) {
	b.Helper()
	b.must(b.owner.QueryRow(b.Context(), `select key from checkout where reservation_id = $1 order by id desc limit 1`, r.ID).Scan(&key))
	return key
}

// C28: a part of a lapsed order is due back; what two tabs paid is due back once.
func TestPaid_InPartAndTwice(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1", "A2"))
	b.pay(r, "money")
	b.bridged(map[string]any{"type": "paid", "id": "1", "reference": b.checkoutKey(r), "amount_minor": 2000, "currency": "EUR"})
	b.clock(time.Hour)
	b.sweep()
	b.stands("lapsed", r, Lapsed, 0, 2000, 0)
	b.bridged(map[string]any{"type": "paid", "id": "2", "reference": b.checkoutKey(r), "amount_minor": 100, "currency": "EUR"})
	b.stands("more of it", r, Lapsed, 0, 2100, 0)

	second := b.hold(chosen("B1"))
	b.pay(second, "stripe")
	one := b.lastPage()
	b.pay(second, "money")
	paid, _ := b.stripe.Pay(one)
	b.tell(paid)
	b.bridged(map[string]any{"type": "paid", "id": "3", "reference": b.checkoutKey(second), "amount_minor": 2000, "currency": "EUR"})
	b.stands("two tabs", second, Confirmed, 2000, 2000, 0)
}

// Two gateways say at the same time that it is paid: one of them was too much.
func TestPaid_TwoGatewaysAtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	page := b.lastPage()
	b.pay(r, "money")
	paid, _ := b.stripe.Pay(page)
	key := b.checkoutKey(r)
	b.must(errors.Join(together(2, func(i int) error {
		if i == 0 {
			return b.deliver(paid)
		}
		b.bridged(map[string]any{"type": "paid", "id": "1", "reference": key, "amount_minor": 2000, "currency": "EUR"})
		return nil
	})...))
	b.stands("paid twice", r, Confirmed, 2000, 2000, 0)
}

// C29: the price of the hold stays, whatever the organiser does meanwhile.
func TestPaid_PriceOfTheHold(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.exec(`insert into price (organisation_id, event_id, kind_id, from_at, amount_minor) values (1, 1, 1, clock(), 3500)`)
	b.exec(`update ticket_kind set withdrawn_at = clock() where id = 1`)
	b.clock(5 * time.Minute)
	b.pay(r, "stripe")
	b.equal("asked for", b.stripe.Received("/v1/checkout/sessions")[0].Form.Get("line_items[0][price_data][unit_amount]"), "2000")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	b.stands("paid", r, Confirmed, 2000, 0, 0)
}

// What is cancelled is not confirmed by money that comes after it.
func TestPaid_AfterItWasGivenUp(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	_, err := GiveUp(b.Context(), b.db, Buyer, r.Reference)
	b.must(err)
	b.tell(paid)
	b.stands("given up", r, Cancelled, 0, 2000, 0)
}

// Paid for a hold that had lapsed when its event was cancelled: nothing is confirmed, and the money is due back.
func TestPaid_AfterTheEventOfALapsedHoldWasCancelled(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	b.clock(time.Hour)
	b.sweep()
	_, err := CancelEvent(t.Context(), b.db, b.admin, "play", "strike")
	b.must(err)
	b.bridged(map[string]any{"type": "paid", "id": "op1", "reference": b.checkout(r), "amount_minor": 2000, "currency": "EUR"})
	b.stands("late", r, Lapsed, 0, 2000, 0)
	b.equal("open", b.open(), []string{"refund due paid_after_end 2000 EUR"})
}

func TestReceive_OnlyWhatIsSigned(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	for what, header := range map[string]http.Header{
		"unsigned": {}, "by another": {"Stripe-Signature": {strings.Replace(stripetest.Header(paid, b.now).Get("Stripe-Signature"), "v1=", "v1=00", 1)}},
		"old": stripetest.Header(paid, b.now.Add(-time.Hour)),
	} {
		kept, err := Receive(t.Context(), b.db, b.page.Hook, header, paid)
		if kept || !errors.Is(err, payment.ErrNotGenuine) {
			t.Errorf("%s: %v, %v", what, kept, err)
		}
	}
	_, err := Receive(t.Context(), b.db, "nowhere", stripetest.Header(paid, b.now), paid)
	b.refusedWith(err, "gateway_hook_unknown")
	b.equal("kept", b.count(`select count(*) from gateway_notice`), 0)
	b.stands("untouched", r, PaymentStarted, 0, 0, 0)
}

// A fault of ours loses no money: the notice is kept for a person, and its sender is done.
func TestReceive_FaultIsKeptForAPerson(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.exec(`alter table payment add constraint broken check (kind <> 'received') not valid`)
	kept, err := Receive(t.Context(), b.db, b.page.Hook, stripetest.Header(paid, b.now), paid)
	if !kept || err == nil {
		t.Errorf("kept: %v, fault: %v", kept, err)
	}
	b.equal("open", b.open(), []string{"exception exception fault 2000 EUR"})
	b.exec(`alter table payment drop constraint broken`)
	b.must(Settle(t.Context(), b.db, b.admin, b.org, b.openNumber(), Settlement{Reservation: r.Reference}))
	b.stands("put to its order", r, Confirmed, 2000, 0, 0)
}
