package reservation

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
)

// C31: one of five, by the rule that was frozen; then the others one by one, and never more than was paid.
func TestCancelTickets_OneOfAGroup(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set group_from = 5, group_percent = 20, cancel_fee_percent = 10 where id = 1`)
	r, key := b.bought("A1", "A2", "A3", "A4", "A5")
	b.stands("bought", r, Confirmed, 8000, 0, 0)
	b.exec(`update event set group_from = null, group_percent = null, cancel_fee_percent = 90 where id = 1`) // later rules are later's
	foreseen, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{2}, Preview: true})
	b.must(err)
	b.equal("foreseen", fmt.Sprint(foreseen[0].Price.Minor, " ", foreseen[0].Fee.Minor, " ", foreseen[0].Refund.Minor), "1600 160 1440")
	b.stands("after looking", r, Confirmed, 8000, 0, 0)
	for range 2 { // the second time changes nothing
		_, err = CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{2}, Reason: "ill"})
		b.must(err)
		b.stands("one", r, Confirmed, 6560, 1440, 0)
	}
	b.equal("the fee that is kept", b.read(r).FeeMinor(b.moneyOf(r)), 160)
	b.equal("seats that stay", b.read(r).seats(), []string{"A1", "A3", "A4", "A5"})
	b.freeSeat("A2")
	b.refundAll()
	b.refundAll()
	b.stands("given back", r, Confirmed, 6560, 0, 1440)
	for _, ticket := range []int{1, 3, 4, 5} {
		_, err = CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{ticket}, Reason: "ill"})
		b.must(err)
	}
	b.refundAll()
	b.stands("all", r, Refunded, 800, 0, 7200)
	b.equal("at Stripe", b.stripe.GivenBack(key), 7200)
	b.equal("told of one", b.count(`select count(*) from timeline where kind = 'tickets_cancelled' and reservation_id = $1`, r.ID), 5)
}

// C14: five seats are sold, and each is freed on another way out: once, also where the step is repeated; nothing is said of it twice, and
// whoever had it has no ticket. A performance that moves frees nothing: everybody keeps their seat.
func TestSeatsAreFree_AfterEveryWayOut(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	free := func() int {
		return 30 - b.count(`select count(*) from claim where sitting_id = 1 and released_at is null and (expires_at is null or expires_at > clock())`)
	}
	cancel := func(c Cancelling) func(r Reservation, key string) {
		return func(r Reservation, _ string) {
			_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, c)
			b.must(err)
		}
	}
	var back []byte
	for i, way := range []struct {
		name   string
		seats  []string
		out    func(r Reservation, key string)
		left   State
		remain []string
	}{
		{"cancelled by its buyer", []string{"A1"}, cancel(Cancelling{Reason: "by its buyer"}), Refunded, nil},
		{"one of two, by staff", []string{"A2", "A3"}, cancel(Cancelling{Tickets: []int{1}, Reason: "by staff", WithoutFee: true}), Confirmed, []string{"A3"}},
		{"in Stripe's own screen", []string{"A4"}, func(_ Reservation, key string) {
			if back == nil {
				back = b.stripe.GiveBack(key, 2000)
			}
			b.tell(back)
		}, Refunded, nil},
		{"its event cancelled", []string{"A5"}, func(Reservation, string) {
			_, err := CancelEvent(t.Context(), b.db, b.admin, "play", "strike")
			b.must(err)
		}, Refunded, nil},
	} {
		r, key := b.bought(way.seats...)
		before := free()
		moved, err := MoveSitting(t.Context(), b.db, b.admin, "play", "S1", seating.EventSittingMove{
			StartsAt: time.Date(2026, 6, 1, 15+i, 0, 0, 0, time.UTC),
		})
		b.must(err)
		b.equal(way.name+": moved", fmt.Sprint(moved.Changed, free()), fmt.Sprint(true, before))
		notices := b.count(`select count(*) from notice where reservation_id = $1`, r.ID)
		others := b.count(`select count(*) from claim k where released_at is null and reservation_id <> $1`, r.ID)
		for range 2 {
			way.out(r, key)
			b.equal(way.name+": state", b.read(r).State, way.left)
			b.equal(way.name+": its seats", fmt.Sprint(b.read(r).seats()), fmt.Sprint(way.remain))
			b.equal(way.name+": claims released", b.count(`select count(*) from claim where reservation_id = $1 and released_at is not null`, r.ID), 1)
			if way.name != "its event cancelled" {
				b.equal(way.name+": free", free(), before+1)
				b.equal(way.name+": others", b.count(`select count(*) from claim k where released_at is null and reservation_id <> $1`, r.ID), others)
			}
			b.equal(way.name+": told", b.count(`select count(*) from notice where reservation_id = $1`, r.ID)-notices, 1)
		}
		b.balanced()
	}
	b.equal("free in the end", free(), 30)
}

// C16: a hall of twenty places, eighteen of them seated and one held, is to have sixteen: refused, with how many are in use, and what is
// free is never below none. Somebody who asks for a seat at the same instant comes before or after, never between.
func TestCapacity_BelowWhoIsSeated(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`delete from seat; update sitting set places = 20 where id = 1; update room set capacity = 20 where id = 1`)
	seats := func(from, to int) Request {
		request := chosen()
		for n := from; n <= to; n++ {
			request.Parts[0].Seats = append(request.Parts[0].Seats, Ticket{Seat: fmt.Sprintf("%03d", n), Kind: "full"})
		}
		return request
	}
	sold := b.hold(seats(1, 18))
	b.pay(sold, "money")
	b.bridged(moved("paid", "op1", "reference", b.checkout(sold), "amount_minor", 36000))
	b.stands("sold", sold, Confirmed, 36000, 0, 0)
	held := b.hold(seats(19, 19))
	set := func(places int) error {
		_, err := seating.SetVenueCapacities(t.Context(), b.db, b.admin, b.org, seating.VenueCapacity{Centre: "Centre", Room: "Hall", Capacity: &places})
		return err
	}
	places := func() int { return b.count(`select places from sitting where id = 1`) }
	p, _ := problem.Of(set(16))
	b.equal("sixteen", fmt.Sprint(p.Code, " ", p.Facts["people"], " ", places()), "places_in_use 19 20")
	b.must(set(19))
	for range 5 {
		b.must(set(20))
		errs := together(2, func(i int) error {
			if i == 0 {
				return set(19)
			}
			_, err := b.desk.Hold(t.Context(), Buyer, seats(20, 20))
			return err
		})
		b.equal("one of the two is refused", (errs[0] == nil) != (errs[1] == nil), true)
		taken := b.count(`select count(*) from claim where sitting_id = 1 and released_at is null`)
		if taken > places() {
			t.Errorf("%d of %d places are taken", taken, places())
		}
		if errs[1] == nil {
			b.refusedWith(errs[0], "places_in_use")
			b.must(b.giveUpSeat("020"))
		}
	}
	_, err := GiveUp(t.Context(), b.db, Buyer, held.Reference)
	b.must(err)
	b.must(set(18))
}

// giveUpSeat gives the cart up that has a seat.
func (b *boxOffice) giveUpSeat(label string) error {
	var reference string
	b.must(b.owner.QueryRow(b.Context(), `
select r.reference from claim k join reservation r on r.id = k.reservation_id where k.seat_label = $1 and k.released_at is null`, label).Scan(&reference))
	_, err := GiveUp(b.Context(), b.db, Buyer, reference)
	return err
}

// A part that somebody gave back in Stripe's own screen: a person says for which ticket it was, or that it was for none.
func TestRefundedOutside_InPart(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1", "A2")
	b.tell(b.stripe.GiveBack(key, 500))
	b.stands("a part", r, Confirmed, 3500, 0, 500)
	b.equal("open", b.open(), []string{"exception exception refund_part 500 EUR"})
	b.must(Settle(t.Context(), b.db, b.admin, b.org, b.openNumber(), Settlement{Keep: true}))
	b.tell(b.stripe.GiveBack(key, 2000))
	number := b.openNumber()
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Ticket: 9}), "line_unknown")
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{GiveBack: true}), "money_settled_otherwise")
	b.must(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Ticket: 2}))
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Ticket: 1}), "money_settled")
	b.stands("a ticket", r, Confirmed, 1500, 0, 2500)
	b.equal("seats", b.read(r).seats(), []string{"A1"})
	b.tell(b.stripe.GiveBack(key, 1500)) // the rest
	b.stands("whole", r, Refunded, 0, 0, 4000)
}

// What is due is given back in Stripe's own screen instead: it is not given back twice.
func TestRefundedOutside_WhatWasDue(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1", "A2")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.tell(b.stripe.GiveBack(key, 2000))
	b.refundAll()
	b.stands("once", r, Confirmed, 2000, 0, 2000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 2000)
}

// Of a payment of which nothing stands any more, what goes back in Stripe's own screen is a part of what is due; beyond that it is the fee.
func TestRefundedOutside_PartOfWhatIsDue(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set cancel_fee_percent = 10 where id = 1`)
	r, key := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.tell(b.stripe.GiveBack(key, 500))
	b.stands("a part of what is due", r, Refunded, 200, 1300, 500)
	b.tell(b.stripe.GiveBack(key, 1500))
	b.stands("the fee too", r, Refunded, 0, 0, 2000)
}

// The rest of a payment goes back outside, and with it the fee of a ticket that was cancelled before.
func TestRefundedOutside_TheFeeOfATicketBefore(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set cancel_fee_percent = 10 where id = 1`)
	r, key := b.bought("A1", "A2")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.refundAll()
	b.tell(b.stripe.GiveBack(key, 2200))
	b.stands("whole", r, Refunded, 0, 0, 4000)
}

// A part of what was paid twice, and is due, goes back outside: it is for no ticket, and nobody is asked for which.
func TestRefundedOutside_PartOfWhatWasPaidTwice(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	reference := b.checkout(r)
	for _, id := range []string{"op1", "op2"} {
		b.bridged(map[string]any{"type": "paid", "id": id, "reference": reference, "amount_minor": 2000, "currency": "EUR"})
	}
	b.bridged(map[string]any{"type": "refunded", "id": "bk1", "payment": "op2", "amount_minor": 500, "currency": "EUR"})
	b.stands("a part", r, Confirmed, 2000, 1500, 500)
	b.equal("open", b.open(), []string{"refund due paid_twice 1500 EUR"})
}

// Asked again and again under one key, whatever is lost on the way, it goes back once; the pauses grow.
func TestAskRefunds_OnceWhateverIsLost(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusServiceUnavailable}, stripetest.Fault{Status: http.StatusInternalServerError, Done: true})
	ask := func(want int) {
		t.Helper()
		asked, err := AskRefunds(t.Context(), b.db, 10)
		b.must(err)
		b.equal("asked", asked.Refunds, want)
	}
	ask(1)
	ask(0) // not before its pause is over
	b.clock(time.Minute)
	ask(1) // it is done, and nobody hears of it
	b.stands("not known", r, Refunded, 0, 2000, 0)
	b.clock(2 * time.Minute)
	ask(0)
	b.clock(48 * time.Hour)
	b.stripe.ForgetKeys()
	ask(1)
	b.stands("known", r, Refunded, 0, 0, 2000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 2000)
	ask(0)
}

// Many processes ask at once, and the notice comes at the same time.
func TestAskRefunds_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.must(errors.Join(together(6, func(int) error {
		asked, err := AskRefunds(b.Context(), b.db, 10)
		return errors.Join(append(asked.Errors, err)...)
	})...))
	b.stands("given back", r, Refunded, 0, 0, 2000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 2000)
	b.equal("asked for", len(b.stripe.Received("/v1/refunds")), 1)
}

// Refused for good it stands in the list, and a person pays it out, once.
func TestAskRefunds_RefusedIsForAPerson(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusPaymentRequired, Words: "the card is gone"})
	asked, err := AskRefunds(t.Context(), b.db, 10)
	b.must(err)
	b.equal("errors", len(asked.Errors), 1)
	b.equal("open", b.open(), []string{"refund failed ticket_cancelled 2000 EUR"})
	number := b.openNumber()
	for range 2 {
		_, err = PaidOut(t.Context(), b.db, b.admin, b.org, number, "R-1")
		b.must(err)
		b.stands("paid out", r, Refunded, 0, 0, 2000)
	}
	b.equal("rows of it", b.count(`select count(*) from payment where kind = 'refunded'`), 1)
}

// Pending at a bank, then done; or said to be done and then refused: the money is there again, and due.
func TestRefund_ByABankThatTakesItsDays(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.stripe.HoldRefunds()
	r, _ := b.bought("A1")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.refundAll()
	b.stands("pending", r, Refunded, 0, 2000, 0)
	id := b.stripe.Refunds()[0]
	done := b.stripe.Settle(id)
	b.tell(done)
	b.stands("done", r, Refunded, 0, 0, 2000)
	failed := b.stripe.FailRefund(id)
	b.tell(failed)
	b.tell(failed)
	b.tell(done)
	b.stands("not done after all", r, Refunded, 0, 2000, 0)
	b.equal("open", b.open(), []string{"refund failed ticket_cancelled 2000 EUR"})
	_, err = AskAgain(t.Context(), b.db, b.admin, b.org, b.openNumber())
	b.must(err)
}

// The bridge and the counter give nothing back by themselves: a person does, and records it.
func TestPaidOut_ByHand(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	taken, err := TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "7"})
	b.must(err)
	b.equal("at the counter", taken.Reservation.State, Confirmed)
	_, err = TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "7"})
	b.must(err)
	_, err = TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "7", AmountMinor: 1})
	b.refusedWith(err, "payment_key_used")
	_, err = TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "8", AmountMinor: 100})
	b.refusedWith(err, "reservation_not_open")
	b.stands("paid", r, Confirmed, 2000, 0, 0)
	_, err = CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.refundAll()
	b.stands("due", r, Refunded, 0, 2000, 0)
	_, err = AskAgain(t.Context(), b.db, b.admin, b.org, b.openNumber())
	b.refusedWith(err, "refund_by_hand")
	_, err = PaidOut(t.Context(), b.db, b.admin, b.org, b.openNumber(), "12")
	b.must(err)
	b.stands("back", r, Refunded, 0, 0, 2000)
}

// Money of nobody is given back, or put to an order, once.
func TestSettle_MoneyOfNobody(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	b.bridged(map[string]any{"type": "paid", "id": "1", "reference": "typed wrong", "amount_minor": 2000, "currency": "EUR"})
	number := b.openNumber()
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Keep: true}), "money_settled_otherwise")
	b.must(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Reservation: r.Reference}))
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{GiveBack: true}), "money_settled")
	b.stands("put to it", r, Confirmed, 2000, 0, 0)
	b.bridged(map[string]any{"type": "paid", "id": "2", "reference": "", "amount_minor": 70, "currency": "XOF"})
	number = b.openNumber()
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{Reservation: r.Reference}), "money_other_currency")
	b.must(Settle(t.Context(), b.db, b.admin, b.org, number, Settlement{GiveBack: true}))
	b.equal("open", b.open(), []string{"refund due nobodys_money 70 XOF"})
	_, err := PaidOut(t.Context(), b.db, b.admin, b.org, b.openNumber(), "")
	b.must(err)
	b.balanced()
	b.equal("open", len(b.open()), 0)
}

// The database refuses to promise back more than a payment brought; without its trigger it would not.
func TestRefund_NeverMoreThanWasPaid(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1")
	owe := `insert into refund (organisation_id, payment_id, reservation_id, amount_minor, currency, reason, key)
select 1, id, $1, 1500, 'EUR', 'cancelled', $2 from payment where reservation_id = $1`
	b.exec(owe, r.ID, "one")
	_, err := b.owner.Exec(t.Context(), owe, r.ID, "two")
	if err == nil {
		t.Error("3000 of 2000 are promised back")
	}
	b.exec(`drop trigger refund_within_payment on refund`)
	b.exec(owe, r.ID, "two")
}

// C32: an event is cancelled in a cart of two; the run is made twice, and by two at once.
func TestCancelEvent_OneOfTwo(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`insert into event (organisation_id, id, slug, name, state, currency, time_zone, cancel_fee_percent) values (1, 5, 'rock', 'Rock', 'on_sale', 'EUR', 'Europe/Paris', 50)`)
	b.exec(`insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 9, 5, 'full', 'Full')`)
	b.exec(`insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 5, 9, 5000)`)
	b.exec(`insert into room (organisation_id, id, centre_id, name) values (1, 9, 1, 'Barn')`)
	b.exec(`insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 9, 5, 9, 'R1', '2026-06-01 20:00Z', '2026-06-01 22:00Z', 30, 'room')`)
	request := chosen("A1")
	request.Parts = append(request.Parts, Part{Event: "rock", Sitting: "R1", Seats: []Ticket{{Seat: "1", Kind: "full"}}})
	r := b.hold(request)
	b.pay(r, "stripe")
	paid, key := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	held := b.hold(Request{Key: "held", Locale: "fr", Parts: []Part{{Event: "rock", Sitting: "R1", Seats: []Ticket{{Seat: "2", Kind: "full"}}}}})
	b.pay(held, "stripe")
	late, _ := b.stripe.Pay(b.lastPage())
	b.stands("both", r, Confirmed, 7000, 0, 0)
	var tickets [3]int
	b.must(errors.Join(together(3, func(i int) error {
		done, err := CancelEvent(b.Context(), b.db, b.admin, "rock", "the band is ill")
		tickets[i] = done.Tickets
		return err
	})...))
	b.equal("tickets ended", tickets[0]+tickets[1]+tickets[2], 2)
	b.stands("one is left", r, Confirmed, 2000, 5000, 0)
	b.refundAll()
	b.stands("given back", r, Confirmed, 2000, 0, 5000)
	b.equal("at Stripe", b.stripe.GivenBack(key), 5000)
	b.equal("seats", b.read(r).seats(), []string{"A1"})
	b.stands("a cart of it", held, Cancelled, 0, 0, 0)
	b.tell(late)
	b.stands("paid all the same", held, Cancelled, 0, 5000, 0)
	again, err := CancelEvent(t.Context(), b.db, b.admin, "rock", "the band is ill")
	b.must(err)
	b.equal("again", fmt.Sprint(again.Already, again.Tickets), "true 0")

	// The room is free for somebody else, what is cancelled stands on its page as before, and what had ended is as it was.
	b.exec(`insert into event (organisation_id, id, slug, name, currency, time_zone, state) values (1, 6, 'jazz', 'Jazz', 'EUR', 'Europe/Paris', 'draft')`)
	b.exec(`insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 90, 6, 9, 'J1', '2026-06-01 20:00Z', '2026-06-01 23:00Z', 30, 'room')`)
	sold, err := seating.SoldSittings(t.Context(), b.db, b.admin, "rock")
	b.must(err)
	if len(sold) != 1 || sold[0].Reference != "R1" {
		t.Errorf("the sittings of what is cancelled: %+v", sold)
	}
}

// C33: a dispute that is won leaves no line of money; one that is lost leaves two, once, at the instant at which it happened.
func TestDispute(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	won, key := b.bought("A1")
	opened := b.stripe.Dispute("dp_1", key, "needs_response", 2000, 1500)
	b.tell(opened)
	b.stands("opened", won, Disputed, 2000, 0, 0)
	b.equal("seats", b.read(won).seats(), []string{"A1"})
	_, err := CancelTickets(t.Context(), b.db, b.admin, won.Reference, Cancelling{Reason: "ill"})
	b.refusedWith(err, "reservation_disputed")
	b.tell(b.stripe.Dispute("dp_1", key, "won", 2000, 0))
	b.tell(opened)
	b.stands("won", won, Confirmed, 2000, 0, 0)
	b.equal("rows of money", b.count(`select count(*) from payment`), 1)

	lost, key := b.bought("B7")
	b.tell(b.stripe.Dispute("dp_2", key, "needs_response", 2000, 1500))
	b.clock(60 * 24 * time.Hour) // after the event
	closed := b.stripe.Dispute("dp_2", key, "lost", 2000, 1500)
	b.tell(closed)
	b.tell(closed)
	b.stands("lost", lost, ChargedBack, 0, 0, 2000)
	b.equal("lines", b.count(`select count(*) from payment where kind in ('charged_back', 'dispute_fee') and received_at = clock()`), 2)
	b.equal("the fee", b.count(`select sum(amount_minor)::int from payment where kind = 'dispute_fee'`), 1500)
	b.equal("the seat is kept", b.count(`select count(*) from claim where seat_label = 'B7' and released_at is null`), 1)
	for _, want := range []int{1, 0} {
		freed, err := FreeSeats(t.Context(), b.db, b.admin, lost.Reference)
		b.must(err)
		b.equal("freed", freed, want)
	}
	_, err = FreeSeats(t.Context(), b.db, b.admin, won.Reference)
	b.refusedWith(err, "reservation_not_charged_back")
}

// Told in the wrong order, and of a payment in which some was due back and some stayed as a fee.
func TestDispute_LateAndAfterACancelling(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set cancel_fee_percent = 10 where id = 1`)
	r, key := b.bought("A1", "A2")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.stands("one cancelled", r, Confirmed, 2200, 1800, 0)
	b.tell(b.stripe.Dispute("dp_1", key, "lost", 4000, 0))
	b.tell(b.stripe.Dispute("dp_1", key, "needs_response", 4000, 0))
	b.stands("lost", r, ChargedBack, 0, 0, 4000)
	b.refundAll()
	b.equal("asked for", len(b.stripe.Received("/v1/refunds")), 0)
	b.equal("open", len(b.open()), 0)
}

// A cart that was paid in part keeps its tickets when the bank takes that part back: it costs so much more again.
func TestDispute_OfACartPaidInPart(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	reference := b.checkout(r)
	b.bridged(map[string]any{"type": "paid", "id": "op1", "reference": reference, "amount_minor": 500, "currency": "EUR"})
	b.bridged(map[string]any{"type": "dispute_lost", "id": "dp1", "payment": "op1", "amount_minor": 500, "currency": "EUR"})
	b.stands("lost", r, PaymentStarted, 0, 0, 500)
	b.equal("seats", b.read(r).seats(), []string{"A1"})
	b.bridged(map[string]any{"type": "paid", "id": "op2", "reference": reference, "amount_minor": 2000, "currency": "EUR"})
	b.stands("paid", r, Confirmed, 2000, 0, 500)
}

// The bank takes a fee back that stayed of one ticket; another was given up before it was paid, and costs nothing whatever goes back.
func TestDispute_AfterATicketWasGivenUp(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set cancel_fee_percent = 10 where id = 1`)
	r := b.hold(chosen("A1", "A2"))
	_, err := GiveUp(t.Context(), b.db, Buyer, r.Reference, 1)
	b.must(err)
	b.pay(r, "stripe")
	paid, key := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	_, err = CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Reason: "ill"})
	b.must(err)
	b.stands("cancelled", r, Refunded, 200, 1800, 0)
	b.tell(b.stripe.Dispute("dp_1", key, "lost", 2000, 0))
	b.stands("lost", r, Refunded, 0, 0, 2000)
}

// At the counter money is refused for seats that are gone: its owner stands there. Nothing of it is recorded.
func TestTakeCash_SeatGone(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1", "A2"))
	b.clock(time.Hour)
	b.hold(chosen("A2"))
	_, err := TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "7"})
	b.refusedWith(err, "reservation_not_open")
	b.stands("refused", r, Lapsed, 0, 0, 0)
	b.equal("rows of money", b.count(`select (select count(*) from payment) + (select count(*) from gateway_notice)`), 0)
}

// In the gateway's own screen more goes back of a payment than was due of it, and less than all that the tickets stand on: a person says
// for which ticket the rest was, and the part that was due is for none. Where the bank does not take it, both are there again.
func TestRefundedOutside_PartlyDue(t *testing.T) {
	t.Parallel()
	for _, how := range []Settlement{{Keep: true}, {Ticket: 1}} {
		b := newBoxOffice(t)
		r := b.hold(chosen("A1", "A2"))
		b.pay(r, "money")
		reference := b.checkout(r)
		b.bridged(moved("paid", "op1", "reference", reference, "amount_minor", 3500))
		b.bridged(moved("paid", "op2", "reference", reference, "amount_minor", 1500))
		b.stands("paid too much", r, Confirmed, 4000, 1000, 0) // of op2: 500 are what the tickets stand on
		b.bridged(moved("refunded", "bk1", "payment", "op2", "amount_minor", 1200))
		b.stands("partly due", r, Confirmed, 3500, 300, 1200)
		b.equal("open", b.open(), []string{"exception exception refund_part 500 EUR", "refund due paid_too_much 300 EUR"})
		items, _, err := payment.Open(t.Context(), b.db, b.admin, b.org, false, 10)
		b.must(err)
		b.must(Settle(t.Context(), b.db, b.admin, b.org, items[0].Number, how))
		b.stands("settled", r, Confirmed, 3500, 300, 1200)
		b.bridged(moved("refund_failed", "bk1", "payment", "op2", "amount_minor", 1200))
		b.bridged(moved("refund_failed", "bk1", "payment", "op2", "amount_minor", 1200))
		kept := int64(4000)
		if how.Ticket != 0 {
			kept = 3500
		}
		b.stands("not taken", r, Confirmed, kept, 5000-kept, 0)
	}
}
