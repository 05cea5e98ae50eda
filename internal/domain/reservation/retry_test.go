package reservation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
)

// What the program could not apply stays until it is applied: nobody can say of money that moved that nothing is to be done.
func TestRetry_WhatTheProgramCouldNotApply(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		kind  string
		state State
		event func(b *boxOffice, key string) []byte
	}{
		{"refunded", Refunded, func(b *boxOffice, key string) []byte { return b.stripe.GiveBack(key, 2000) }},
		{"charged_back", ChargedBack, func(b *boxOffice, key string) []byte { return b.stripe.Dispute("dp_1", key, "lost", 2000, 1500) }},
	} {
		b := newBoxOffice(t)
		r, key := b.bought("A1")
		event := at.event(b, key)
		b.exec(fmt.Sprintf(`alter table payment add constraint broken check (kind <> '%s') not valid`, at.kind))
		if err := b.deliver(event); err == nil {
			t.Error("the fault was not told of")
		}
		n := b.openNumber()
		b.equal("applied while it is broken", Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Retry: true}) != nil, true)
		b.exec(`alter table payment drop constraint broken`)
		b.tell(event) // a repeat of the gateway's is none of ours
		b.equal("open", b.open(), []string{"exception exception fault 2000 EUR"})
		b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Keep: true}), "money_settled_otherwise")
		for i := range 2 {
			err := Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Retry: true})
			if i == 0 {
				b.must(err)
			} else {
				b.refusedWith(err, "money_settled")
			}
			b.stands(at.kind, r, at.state, 0, 0, 2000)
			b.equal("open", b.open(), []string{})
		}
	}
}

// One that was put aside by a former release is missed by the check, and can still be applied.
func TestRetry_WhatWasPutAside(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, key := b.bought("A1")
	b.exec(`alter table payment add constraint broken check (kind <> 'refunded') not valid`)
	if err := b.deliver(b.stripe.GiveBack(key, 2000)); err == nil {
		t.Error("the fault was not told of")
	}
	b.exec(`alter table payment drop constraint broken`)
	n := b.openNumber()
	b.exec(`update gateway_notice set state = 'applied', settled_at = clock(), settled_by = 'somebody' where reason = 'fault'`)
	wrong := func() (keys []string) {
		b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			found, err := payment.Imbalances(t.Context(), tx, 1, 10)
			for _, one := range found {
				keys = append(keys, one.Reference)
			}
			return err
		}))
		return keys
	}
	b.equal("missed", len(wrong()), 1)
	b.must(Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Retry: true}))
	b.equal("missed", len(wrong()), 0)
	b.stands("applied", r, Refunded, 0, 0, 2000)
}

// A database that is too slow at the moment is no fault: nothing is kept, and the gateway comes again.
func TestReceive_TooSlowIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.exec(`
create function too_slow() returns trigger language plpgsql as $$
begin raise exception 'canceling statement due to statement timeout' using errcode = 'query_canceled'; end $$;
create trigger too_slow before insert on payment for each row execute function too_slow()`)
	kept, err := Receive(t.Context(), b.db, b.page.Hook, stripetest.Header(paid, b.now), paid)
	if kept || err == nil {
		t.Errorf("kept %v, %v", kept, err)
	}
	b.equal("notices", b.count(`select count(*) from gateway_notice`), 0)
	b.exec(`drop trigger too_slow on payment`)
	b.tell(paid)
	b.stands("again", r, Confirmed, 2000, 0, 0)
}

// What waits for a payment that never comes can be put aside; should it come, it is applied all the same.
func TestSettle_WhatWaitsForAPayment(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "money")
	b.bridged(moved("refunded", "bk1", "payment", "op1"))
	n := b.openNumber()
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{GiveBack: true}), "money_settled_otherwise")
	b.must(Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Keep: true}))
	b.equal("open", b.open(), []string{})
	b.balanced()
	b.refusedWith(Settle(t.Context(), b.db, b.admin, b.org, n, Settlement{Keep: true}), "money_settled")
	b.bridged(moved("paid", "op1", "reference", b.checkout(r)))
	b.stands("it came after all", r, Refunded, 0, 0, 2000)
}

// Pages that something else made with the same account of Stripe's are none of ours.
func TestReceive_PagesOfAnotherShop(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	paid, _ := b.stripe.Pay(b.lastPage())
	b.tell([]byte(strings.Replace(string(paid), `"client_reference_id":"pay_`, `"client_reference_id":"cart_`, 1)))
	b.equal("notices", b.count(`select count(*) from gateway_notice`), 0)
	b.equal("open", b.open(), []string{})
}
