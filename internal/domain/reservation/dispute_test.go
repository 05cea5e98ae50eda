package reservation

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/payment"
)

// Of what was paid twice, the payment that was due back is disputed and lost: the money goes, and the tickets stand on the other.
func TestDispute_OfWhatWasPaidTwice(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.paidTwice()
	b.bridged(moved("dispute_opened", "dp1", "payment", "op2"))
	b.stands("opened", r, Disputed, 2000, 2000, 0)
	b.bridged(moved("dispute_lost", "dp1", "payment", "op2"))
	b.stands("lost", r, Confirmed, 2000, 0, 2000)
	b.equal("seats", b.read(r).seats(), []string{"A1"})
	b.equal("open", b.open(), []string{})
	// The other as well: now nothing is kept for them.
	b.bridged(moved("dispute_lost", "dp2", "payment", "op1"))
	b.stands("both", r, ChargedBack, 0, 0, 4000)
}

// While a dispute is open nothing of the payment is given back, by nobody: the event is cancelled, and it is due, and waits.
func TestDispute_NothingGoesBackMeanwhile(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"lost", "won"} {
		b := newBoxOffice(t)
		r, key := b.bought("A1")
		b.tell(b.stripe.Dispute("dp_1", key, "needs_response", 2000, 0))
		_, err := CancelEvent(t.Context(), b.db, b.admin, "play", "strike")
		b.must(err)
		b.refundAll()
		b.stands("due", r, Refunded, 0, 2000, 0)
		b.equal("at Stripe", b.stripe.GivenBack(key), 0)
		b.equal("open", b.open(), []string{"refund disputed event_cancelled 2000 EUR"})
		_, err = PaidOut(t.Context(), b.db, b.admin, b.org, b.openNumber(), "7")
		b.refusedWith(err, "refund_disputed")
		_, err = AskAgain(t.Context(), b.db, b.admin, b.org, b.openNumber())
		b.refusedWith(err, "refund_disputed")
		b.tell(b.stripe.Dispute("dp_1", key, end, 2000, 0))
		if end == "won" {
			b.refundAll()
		}
		b.stands(end, r, Refunded, 0, 0, 2000)
		b.equal("at Stripe", b.stripe.GivenBack(key), map[string]int64{"won": 2000, "lost": 0}[end])
	}
}

// A refund that is due already is held when the dispute opens, and asked for when that is won.
func TestDispute_OfWhatIsDue(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1", "A2")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.tell(b.stripe.Dispute("dp_1", key, "needs_response", 4000, 0))
	b.refundAll()
	b.stands("opened", r, Disputed, 2000, 2000, 0)
	b.tell(b.stripe.Dispute("dp_1", key, "won", 4000, 0))
	b.refundAll()
	b.stands("won", r, Confirmed, 2000, 0, 2000)
}

// Two payments of one order are disputed: its tickets are flagged as long as any dispute is open.
func TestDispute_TwoAtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	reference := b.checkout(r)
	for _, id := range []string{"op1", "op2"} {
		b.bridged(moved("paid", id, "reference", reference, "amount_minor", 1000))
	}
	for _, at := range []struct {
		kind, n string
		want    State
	}{
		{"dispute_opened", "1", Disputed},
		{"dispute_opened", "2", Disputed},
		{"dispute_won", "1", Disputed},
		{"dispute_won", "2", Confirmed},
		{"dispute_opened", "2", Confirmed}, // a repeat
	} {
		b.bridged(moved(at.kind, "dp"+at.n, "payment", "op"+at.n, "amount_minor", 1000))
		b.stands(at.kind+at.n, r, at.want, 2000, 0, 0)
		b.equal("open", b.open(), []string{})
	}
}

// A part that is disputed before the rest is paid flags the tickets when they are confirmed.
func TestDispute_OfAPartBeforeTheRest(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	reference := b.checkout(r)
	b.bridged(moved("paid", "op1", "reference", reference, "amount_minor", 1000))
	b.bridged(moved("dispute_opened", "dp1", "payment", "op1", "amount_minor", 1000))
	b.bridged(moved("paid", "op2", "reference", reference, "amount_minor", 1000))
	b.stands("confirmed", r, Disputed, 2000, 0, 0)
	b.bridged(moved("dispute_won", "dp1", "payment", "op1", "amount_minor", 1000))
	b.stands("won", r, Confirmed, 2000, 0, 0)
}

// A bank takes back the whole of a payment of which a part went back before: what is there is gone, and the rest is for a person.
func TestDispute_OfMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1", "A2")
	_, err := CancelTickets(t.Context(), b.db, b.admin, r.Reference, Cancelling{Tickets: []int{1}, Reason: "ill"})
	b.must(err)
	b.refundAll()
	b.stands("a part went back", r, Confirmed, 2000, 0, 2000)
	b.tell(b.stripe.Dispute("dp_1", key, "lost", 4000, 1500))
	b.stands("lost", r, ChargedBack, 0, 0, 4000)
	b.equal("open", b.open(), []string{"exception exception more_than_left 4000 EUR"})
	b.must(Settle(t.Context(), b.db, b.admin, b.org, b.openNumber(), Settlement{Keep: true}))
	b.balanced()
}

// What became of a dispute can be written down by hand, where the gateway never says it. Its own word is then a repeat.
func TestCloseDispute_ByHand(t *testing.T) {
	t.Parallel()
	for _, won := range []bool{true, false} {
		b := newBoxOffice(t)
		r, key := b.bought("A1")
		b.refusedWith(CloseDispute(t.Context(), b.db, b.admin, r.Reference, won), "reservation_not_disputed")
		b.tell(b.stripe.Dispute("dp_1", key, "needs_response", 2000, 0))
		b.must(CloseDispute(t.Context(), b.db, b.admin, r.Reference, won))
		state, back := Confirmed, int64(0)
		if !won {
			state, back = ChargedBack, 2000
		}
		b.stands("by hand", r, state, 2000-back, 0, back)
		b.refusedWith(CloseDispute(t.Context(), b.db, b.admin, r.Reference, won), "reservation_not_disputed")
		b.tell(b.stripe.Dispute("dp_1", key, map[bool]string{true: "won", false: "lost"}[won], 2000, 0))
		b.stands("and the gateway", r, state, 2000-back, 0, back)
		b.equal("open", b.open(), []string{})
	}
}

// The check names what is wrong: money without an owner, and tickets that are paid and have no seat.
func TestCheck(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1")
	check := func() (faults Faults) {
		faults, err := Check(t.Context(), b.db, b.admin, b.org)
		b.must(err)
		return faults
	}
	b.equal("nothing", check().None(), true)
	b.exec(`update claim set released_at = clock(), release_reason = 'lapsed' where reservation_id = $1`, r.ID)
	b.exec(`update line set price_minor = 1500, list_minor = 1500, cancel_fee_minor = 0 where reservation_id = $1`, r.ID)
	faults := check()
	b.equal("without a seat", faults.Unseated, []Unseated{{r.Reference, 1, "play", "S1", "A1"}})
	b.equal("money", len(faults.Money), 1)
	if faults.Money[0].Reference != r.Reference || faults.None() {
		t.Errorf("got %+v", faults)
	}
	b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		wrong, err := payment.Imbalances(t.Context(), tx, 1, 10)
		b.equal("the same money", wrong, faults.Money)
		return err
	}))
}

// Money at the counter makes a reservation theirs although a dispute about an earlier part is open: the tickets are flagged, and the money
// is not refused.
func TestTakeCash_BesideADispute(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	b.bridged(moved("paid", "op1", "reference", b.checkout(r), "amount_minor", 500))
	b.clock(time.Hour)
	b.sweep()
	b.stands("lapsed", r, Lapsed, 0, 500, 0)
	b.bridged(moved("dispute_opened", "dp1", "payment", "op1", "amount_minor", 500))
	_, err := TakeCash(t.Context(), b.db, b.admin, r.Reference, Cash{Gateway: "counter", Receipt: "7"})
	b.must(err)
	b.stands("paid", r, Disputed, 2000, 500, 0)
}
