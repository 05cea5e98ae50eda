package reservation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/payment"
)

// A hold that ends while its payment waits is judged after the wait (TestPaid_AcrossTheEndOfItsHold). Judged in the statement that waits,
// it becomes final after its end.
func TestPaid_AcrossTheEndOfItsHold_Control(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	ends := r.EndsAt.Sub(b.begun)
	b.clock(ends - time.Millisecond)
	final := make(chan int64, 1)
	errs := make(chan error, 1)
	b.must(pgx.BeginFunc(t.Context(), b.owner, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select from claim where reservation_id = $1 for update`, r.ID)
		b.must(err)
		go func() {
			errs <- b.db.Tx(context.WithoutCancel(t.Context()), []int64{1}, func(other pgx.Tx) error {
				tag, err := other.Exec(context.WithoutCancel(t.Context()), `
update claim set expires_at = null where organisation_id = 1 and reservation_id = $1 and released_at is null and expires_at > clock()`, r.ID)
				final <- tag.RowsAffected()
				return err
			})
		}()
		b.waitingBeside(tx, 1)
		_, err = tx.Exec(t.Context(), fmt.Sprintf(
			`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`,
			b.begun.Add(ends).Format(time.RFC3339Nano)))
		return err
	}))
	b.equal("final after its end", <-final, 1)
	b.must(<-errs)
}

// Two gateways say at once that one half each is paid: whoever comes second waits for the reservation's row, sees that it is whole, and
// confirms. Without the row each sees its own half only, and what is paid in full is nobody's ticket.
func TestPaid_TwoGatewaysAtOnce_Control(t *testing.T) {
	t.Parallel()
	for _, lockless := range []bool{false, true} {
		b := newBoxOffice(t)
		secret := b.secret
		second := b.gateway(payment.Setup{Name: "orange", Kind: payment.Signed, CheckoutURL: "https://orange.example/?ref={reference}"}, payment.Secrets{})
		r := b.hold(chosen("A1"))
		b.pay(r, "money")
		reference := b.checkout(r)
		done := make(chan error, 1)
		half := func() { done <- b.bridge(moved("paid", "op1", "reference", reference, "amount_minor", 1000)) }
		b.secret = secret // of the bridge
		b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			h := &hearing{setup: second, actor: gatewayActor(second), n: payment.GatewayNotice{
				Key: "paid or1", Kind: payment.NoticePaid, GatewayKey: "or1", AmountMinor: 1000, Currency: "EUR", OccurredAt: b.now, Body: "{}",
			}}
			if _, err := payment.KeepNotice(t.Context(), tx, second, &h.n); err != nil {
				return err
			}
			held, s, err := lockStandingOr(b, tx, r, lockless)
			if err != nil {
				return err
			}
			go half()
			if lockless {
				b.must(<-done) // it decides and commits between
			} else {
				b.waiting(1)
			}
			return h.into(t.Context(), tx, held, decidePaid(s, 1000, "EUR"), "")
		}))
		if !lockless {
			b.must(<-done)
			b.stands("both halves", r, Confirmed, 2000, 0, 0)
			continue
		}
		b.equal("paid in full, and no ticket", fmt.Sprint(b.read(r).State, b.moneyOf(r).Left()), fmt.Sprint(PaymentStarted, 0))
	}
}

// lockStandingOr is lockStanding, or, lockless, what it would be without the reservation's row.
func lockStandingOr(b *boxOffice, tx pgx.Tx, r Reservation, lockless bool) (Reservation, standing, error) {
	if !lockless {
		return lockStanding(b.Context(), tx, 1, r.ID)
	}
	read, err := ReadByID(b.Context(), tx, 1, r.ID)
	if err != nil {
		return read, standing{}, err
	}
	money, err := payment.MoneyOf(b.Context(), tx, 1, r.ID)
	return read, read.standing(money), err
}

// A late payer gets no seat that another paid for: the key of seats forbids it, whatever the rule forgets. Without the key it is two people's.
func TestPaidLate_SeatOfAnother_Control(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		b := newBoxOffice(t)
		late := b.hold(chosen("A1"))
		b.clock(time.Hour)
		other, _ := b.bought("A1")
		if keyless {
			b.dropKey()
		}
		// What a retake would do that judged who has the seat before the other had paid.
		_, err := b.owner.Exec(t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number)
select organisation_id, sitting_id, places, seat_number, seat_label, event_id, $1, 1 from claim where reservation_id = $2`, late.ID, other.ID)
		live := b.count(`select count(*) from claim where seat_label = 'A1' and released_at is null`)
		if (err == nil) != keyless || keyless && live != 2 || !keyless && live != 1 {
			t.Errorf("without the key %v: %v, and %d live claims", keyless, err, live)
		}
	}
}

// A refund that a gateway tells of twice went once, by the key of notices. Without it the sum went twice.
func TestRefunded_RepeatsWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		b := newBoxOffice(t)
		r, key := b.bought("A1", "A2")
		if keyless {
			b.forgetNotices()
		}
		back := b.stripe.GiveBack(key, 500)
		b.tell(back)
		b.tell(back)
		want := 500
		if keyless {
			want = 1000
		}
		b.equal(fmt.Sprint("went back, without the key ", keyless), b.moneyOf(r).BackMinor, want)
	}
}
