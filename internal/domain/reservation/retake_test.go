package reservation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
)

// waiting polls until so many sessions wait for a lock, and fails when they do not.
func (h *theatre) waiting(n int) {
	h.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		now := h.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if now >= n {
			return
		}
		if time.Now().After(deadline) {
			h.Fatalf("%d sessions wait for a lock, not %d", now, n)
		}
	}
}

// hearIn applies what Stripe says in a transaction of the caller's.
func (b *boxOffice) hearIn(tx pgx.Tx, event []byte) {
	b.Helper()
	notices, err := b.page.Open().Read(stripetest.Header(event, b.now), event, b.now)
	b.must(err)
	h := &hearing{setup: b.page, n: notices[0], actor: gatewayActor(b.page)}
	h.n.Body = string(event)
	fault, err := h.take(b.Context(), tx)
	b.must(err)
	b.must(fault)
}

// A seat that was paid for while somebody waited for its claim stays who paid for it: that their hold is over is judged after the wait.
func TestPaidLate_WhileItsSeatIsPaid(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	first := b.hold(chosen("A1"))
	b.pay(first, "stripe")
	late, _ := b.stripe.Pay(b.lastPage())
	b.clock(time.Hour)
	second := b.hold(chosen("A1"))
	b.pay(second, "stripe")
	inTime, _ := b.stripe.Pay(b.lastPage())
	ends := b.read(second).EndsAt.Sub(b.begun)
	b.clock(ends - time.Millisecond)
	done := make(chan error, 1)
	b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		b.hearIn(tx, inTime)
		b.clock(ends + time.Millisecond)
		go func() { done <- b.deliver(late) }()
		b.waiting(1)
		return nil
	}))
	b.must(<-done)
	b.stands("in time", second, Confirmed, 2000, 0, 0)
	b.equal("their seat", b.read(second).seats(), []string{"A1"})
	b.stands("late", first, Lapsed, 0, 2000, 0)
}

// A hold that ends while its payment waits for its claims is over: its instant is judged after the wait. Judged before, in the same
// statement that waited, it would still be theirs.
func TestPaid_AcrossTheEndOfItsHold(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	ends := b.read(r).EndsAt.Sub(b.begun)
	b.clock(ends - time.Millisecond)
	done := make(chan error, 1)
	b.must(pgx.BeginFunc(t.Context(), b.owner, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select from claim where reservation_id = $1 for update`, r.ID)
		b.must(err)
		go func() { done <- b.deliver(paid) }()
		b.waitingBeside(tx, 1)
		_, err = tx.Exec(t.Context(), fmt.Sprintf(
			`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`,
			b.begun.Add(ends).Format(time.RFC3339Nano)))
		return err
	}))
	b.must(<-done)
	b.stands("across", r, Confirmed, 2000, 0, 0)
	b.equal("taken again", b.count(`select count(*) from timeline where kind = 'reservation_confirmed' and (facts->>'again')::boolean`), 1)
}

// waitingBeside is waiting where the owner's own transaction is under way.
func (h *theatre) waitingBeside(tx pgx.Tx, n int) {
	h.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var now int
		err := tx.QueryRow(h.Context(), `
select count(*) from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted`).Scan(&now)
		if err != nil {
			h.Fatal(err)
		}
		if now >= n {
			return
		}
		if time.Now().After(deadline) {
			h.Fatalf("%d sessions wait for a lock, not %d", now, n)
		}
	}
}

// Carts that are paid late, one after the other, come to no more than their buyer may have: what is beyond goes back.
func TestPaidLate_BeyondTheLimit(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update event set most_per_buyer = 1 where id = 1`)
	var carts []Reservation
	for i := range 3 {
		b.clock(time.Duration(i) * time.Hour)
		r := b.hold(chosen(fmt.Sprint("A", i+1)))
		b.pay(r, "money")
		carts = append(carts, r)
	}
	b.clock(4 * time.Hour)
	var notices []map[string]any
	for i, r := range carts {
		notices = append(notices, moved("paid", fmt.Sprint("op", i), "reference", b.checkout(r)))
	}
	b.bridged(notices[0])
	b.stands("the first", carts[0], Confirmed, 2000, 0, 0)
	b.must(errors.Join(together(2, func(i int) error { return b.bridge(notices[i+1]) })...))
	for _, r := range carts[1:] {
		b.stands("beyond", r, Lapsed, 0, 2000, 0)
	}
	b.equal("open", b.open(), []string{"refund due paid_over_limit 2000 EUR", "refund due paid_over_limit 2000 EUR"})
	b.freeSeat("A2")
	_, err := TakeCash(t.Context(), b.db, b.admin, carts[2].Reference, Cash{Gateway: "counter", Receipt: "7"})
	b.refusedWith(err, "reservation_not_open")
}

// Two that are paid late at the same instant are counted one after the other, by their buyer's row. Without that row both are taken.
func TestPaidLate_BeyondTheLimit_Control(t *testing.T) {
	t.Parallel()
	for _, lockless := range []bool{false, true} {
		b := newBoxOffice(t)
		b.exec(`update event set most_per_buyer = 1 where id = 1`)
		var carts []Reservation
		for i := range 2 {
			b.clock(time.Duration(i) * time.Hour)
			r := b.hold(chosen(fmt.Sprint("A", i+1)))
			b.pay(r, "money")
			carts = append(carts, b.read(r))
		}
		b.clock(4 * time.Hour)
		done, errs := make(chan lateness, 1), make(chan error, 1)
		b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			late, err := retake(t.Context(), tx, carts[0])
			b.must(err)
			b.equal("the first is late because", late.why, "")
			go func() {
				var late lateness
				err := b.db.Tx(context.WithoutCancel(t.Context()), []int64{1}, func(other pgx.Tx) (err error) {
					late, err = retakeFor(b, other, carts[1], lockless)
					return err
				})
				done <- late
				errs <- err
			}()
			if !lockless {
				b.waiting(1)
				return nil
			}
			b.equal("without the row the other is late because", (<-done).why, "")
			return nil
		}))
		if !lockless {
			b.equal("the other is late because", (<-done).why, payment.PaidOverLimit)
		}
		b.must(<-errs)
	}
}

// retakeFor is retake, or, lockless, what it would be without the buyer's row and in another room.
func retakeFor(b *boxOffice, tx pgx.Tx, r Reservation, lockless bool) (lateness, error) {
	if !lockless {
		return retake(context.WithoutCancel(b.Context()), tx, r)
	}
	if err := CheckBuyer(b.Context(), tx, r, *r.BuyerID); err != nil {
		return lateness{why: payment.PaidOverLimit}, nil
	}
	return lateness{}, nil
}

// Held a second before the sale closes, and paid five minutes later: while the hold holds it is theirs, and when it is over, too, since
// the seat is free.
func TestPaid_AfterTheSaleClosed(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{5 * time.Minute, time.Hour} {
		b := newBoxOffice(t)
		b.exec(`update event set closes_at = $1, hold_seconds = 600, hold_most_seconds = 1800 where id = 1`, b.begun.Add(time.Minute))
		b.clock(59 * time.Second)
		r := b.hold(chosen("A1"))
		b.clock(time.Minute)
		b.refused(chosen("A2"), "sale_over")
		b.pay(r, "stripe")
		paid, _ := b.stripe.Pay(b.lastPage())
		b.clock(59*time.Second + after)
		b.tell(paid)
		b.stands(fmt.Sprint("paid after ", after), r, Confirmed, 2000, 0, 0)
		b.equal("the seat", b.read(r).seats(), []string{"A1"})
	}
}

// Carts take their claims in the order of the seats. Each in its own order, two wait for each other: here until the first gives up, before
// the server calls it a deadlock.
func TestHold_TwoCartsInOppositeOrder_Control(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1", "A2"))
	claims := []int64{r.Lines[0].ClaimID, r.Lines[1].ClaimID}
	first, second := make(chan struct{}), make(chan struct{})
	errs := together(2, func(i int) error {
		return h.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `set local lock_timeout = '300ms'`); err != nil {
				return err
			}
			for n, id := range []int64{claims[i], claims[1-i]} {
				if _, err := tx.Exec(t.Context(), `select from claim where organisation_id = 1 and id = $1 for no key update`, id); err != nil {
					return err
				}
				if n == 0 && i == 0 {
					close(first)
					<-second
				} else if n == 0 {
					close(second)
					<-first
				}
			}
			return nil
		})
	})
	if errs[0] == nil && errs[1] == nil {
		t.Errorf("in opposite orders: %v", errs)
	}
	// In the order of the seats, whichever way they are named, nobody meets anybody.
	for i, err := range together(2, func(i int) error {
		return h.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			_, err := seating.ReleaseInOrder(t.Context(), tx, 1, "lapsed", []int64{claims[i], claims[1-i]})
			return err
		})
	}) {
		if err != nil {
			t.Errorf("in one order, %d: %v", i, err)
		}
	}
}

// An event is cancelled while somebody holds two of its seats whose holds are over: the seats of all carts are freed in one order.
func TestCancelEvent_BesideAHoldOfLapsedSeats(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.hold(chosen("A2"))
	b.hold(chosen("A1"))
	b.clock(time.Hour)
	chose, goOn := make(chan struct{}), make(chan struct{})
	first := true
	b.desk.step = func(name string) {
		if name == "chosen" && first {
			first = false
			close(chose)
			<-goOn
		}
	}
	held := make(chan error, 1)
	go func() { _, err := b.desk.Hold(t.Context(), Buyer, chosen("A1", "A2")); held <- err }()
	<-chose
	cancelled := make(chan error, 1)
	// The claim of A1 is held for a moment: both queue up behind it, whatever each has by then.
	b.must(pgx.BeginFunc(t.Context(), b.owner, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select from claim where seat_label = 'A1' for update`)
		b.must(err)
		go func() { _, err := CancelEvent(t.Context(), b.db, b.admin, "play", "strike"); cancelled <- err }()
		b.waitingBeside(tx, 1)
		close(goOn)
		b.waitingBeside(tx, 2)
		return nil
	}))
	b.must(<-cancelled)
	if err := <-held; err != nil && !problem.Has(err, "event_cancelled") && !problem.Has(err, "seats_taken") && !problem.Has(err, "hold_contested") {
		t.Errorf("held: %v", err)
	}
	b.equal("deadlocks", b.count(`select deadlocks from pg_stat_database where datname = current_database()`), 0)
}
