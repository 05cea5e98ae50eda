package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// LookEvery is how often a process that serves asks which checkouts and refunds are due.
const LookEvery = 5 * time.Second

// Looked is what came of looking at checkouts.
type Looked struct {
	Checkouts int
	Errors    []error // of those that are looked at again
}

// LookAtCheckouts asks the gateways what became of the checkouts whose end is not known and that are due, at most so many. What they
// say is applied as if they had said it by themselves. Whoever took money and died, and whose notice was lost, is found here. Two
// processes look at one checkout once.
func LookAtCheckouts(ctx context.Context, db *pg.DB, most int) (looked Looked, err error) {
	var due []payment.Keyed
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		due, err = payment.CheckoutsToLookAt(ctx, tx, most)
		return err
	})
	if err != nil {
		return looked, err
	}
	for _, one := range due {
		if ctx.Err() != nil {
			return looked, ctx.Err()
		}
		taken, err := lookAt(ctx, db, one)
		if taken {
			looked.Checkouts++
		}
		if err != nil {
			looked.Errors = append(looked.Errors, fmt.Errorf("look at the checkout %d: %w", one.ID, err))
		}
	}
	return looked, nil
}

func lookAt(ctx context.Context, db *pg.DB, due payment.Keyed) (taken bool, err error) {
	var c payment.Checkout
	var setup payment.Setup
	attempt := payment.Attempt{}
	err = db.Tx(ctx, []int64{due.OrganisationID}, func(tx pgx.Tx) error {
		if c, attempt.Now, taken, err = payment.TakeLook(ctx, tx, due); err != nil || !taken {
			return err
		}
		if attempt.Unwanted, err = unwanted(ctx, tx, c); err != nil {
			return err
		}
		setup, err = payment.ReadSetup(ctx, tx, c.OrganisationID, c.GatewayID)
		return err
	})
	if err != nil || !taken {
		return false, err
	}
	attempt.Key, attempt.GatewayKey, attempt.StartedAt = c.Key, c.GatewayKey, c.StartedAt
	fate, err := setup.Open().Look(ctx, attempt)
	if err != nil {
		return true, err
	}
	return true, learn(ctx, db, setup, c, fate, attempt.Unwanted)
}

// unwanted tells that nobody is to pay at a checkout any more: the hold is over, another sum is left, or the buyer went elsewhere.
func unwanted(ctx context.Context, tx pgx.Tx, c payment.Checkout) (bool, error) {
	r, err := ReadByID(ctx, tx, c.OrganisationID, c.ReservationID)
	if err != nil {
		return false, err
	}
	money, err := payment.MoneyOf(ctx, tx, c.OrganisationID, c.ReservationID)
	if err != nil {
		return false, err
	}
	live, err := payment.LiveCheckouts(ctx, tx, c.OrganisationID, c.ReservationID)
	elsewhere := len(live) > 0 && live[0].ID != c.ID
	return r.State != Held && r.State != PaymentStarted || money.Left() != c.AmountMinor || elsewhere, err
}

// learn writes down what a gateway said of a checkout.
func learn(ctx context.Context, db *pg.DB, setup payment.Setup, c payment.Checkout, fate payment.Fate, unwanted bool) error {
	for _, n := range fate.Notices {
		if _, err := take(ctx, db, setup, n); err != nil {
			return err
		}
	}
	return db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		switch {
		case fate.Unknown:
			return endUnpaid(ctx, tx, gatewayActor(setup), c, payment.CheckoutFailed, "never_started")
		case fate.Open && c.State == payment.CheckoutStarting && !unwanted:
			return payment.KeepPage(ctx, tx, &c, payment.Page{URL: fate.URL, GatewayKey: fate.GatewayKey})
		}
		return nil
	})
}

// Asked is what came of asking for refunds.
type Asked struct {
	Refunds int
	Errors  []error // of those that are asked again, or that a person must look at
}

// AskRefunds asks the gateways for what is to go back and is due, at most so many. Each is asked under its own key, however often,
// and done once. Two processes ask for one once at a time.
func AskRefunds(ctx context.Context, db *pg.DB, most int) (asked Asked, err error) {
	var due []payment.Keyed
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		due, err = payment.RefundsToAsk(ctx, tx, most)
		return err
	})
	if err != nil {
		return asked, err
	}
	for _, one := range due {
		if ctx.Err() != nil {
			return asked, ctx.Err()
		}
		taken, err := ask(ctx, db, one)
		if taken {
			asked.Refunds++
		}
		if err != nil {
			asked.Errors = append(asked.Errors, fmt.Errorf("ask for the refund %d: %w", one.ID, err))
		}
	}
	return asked, nil
}

func ask(ctx context.Context, db *pg.DB, due payment.Keyed) (taken bool, err error) {
	var f payment.Refund
	var setup payment.Setup
	err = db.Tx(ctx, []int64{due.OrganisationID}, func(tx pgx.Tx) error {
		if f, taken, err = payment.TakeRefund(ctx, tx, due); err != nil || !taken {
			return err
		}
		setup, err = payment.ReadSetup(ctx, tx, f.OrganisationID, f.GatewayID)
		return err
	})
	if err != nil || !taken {
		return false, err
	}
	returned, err := setup.Open().Refund(ctx, payment.Return{
		Key: f.RequestKey(), PaymentKey: f.PaymentKey, AmountMinor: f.AmountMinor, Currency: f.Currency, Again: f.Attempts > 1,
	})
	if err != nil {
		return true, errors.Join(err, notReturned(ctx, db, f, err))
	}
	for _, n := range returned.Notices {
		if _, err := take(ctx, db, setup, n); err != nil {
			return true, err
		}
		if n.Kind == payment.NoticeRefundFailed { // also where that was said before, of this request
			return true, notReturned(ctx, db, f, &payment.GatewayFailure{Final: true, Words: n.Words})
		}
	}
	return true, db.Tx(ctx, []int64{f.OrganisationID}, func(tx pgx.Tx) error {
		return payment.Asked(ctx, tx, f, returned.GatewayKey, "")
	})
}

// notReturned writes down why a refund was not made. What a gateway refuses for good, or was asked for too often, a person looks at.
func notReturned(ctx context.Context, db *pg.DB, f payment.Refund, cause error) error {
	failure := &payment.GatewayFailure{Words: "unanswered"}
	errors.As(cause, &failure)
	return inTurns(ctx, db, f.OrganisationID, func(tx pgx.Tx) error {
		if !failure.Final && !f.AskedEnough() {
			return payment.Asked(ctx, tx, f, "", failure.Words)
		}
		now, setup, err := lockRefund(ctx, tx, f.OrganisationID, f.ID)
		if err != nil || now.State != payment.RefundAsked || now.Request != f.Request { // a notice was faster
			return err
		}
		h := &hearing{setup: setup, actor: gatewayActor(setup)}
		r, err := h.lockOf(ctx, tx, now.ReservationID)
		if err != nil {
			return err
		}
		if !failure.Final {
			return unanswered(ctx, tx, now, failure.Words)
		}
		return failed(ctx, tx, h.actor, r, now, failure.Words)
	})
}

// unanswered writes down that a gateway was asked too often for a refund and never said what became of it.
func unanswered(ctx context.Context, tx pgx.Tx, f payment.Refund, words string) error {
	if _, err := payment.Fail(ctx, tx, f, words, false); err != nil {
		return err
	}
	return tellFailed(ctx, tx, f)
}

// failed writes down that money did not go back, and tells the organiser. Of what went another way while the gateway was asked, nothing
// is due any more.
func failed(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, f payment.Refund, words string) error {
	if _, err := payment.Fail(ctx, tx, f, words, true); err != nil {
		return err
	}
	of, err := payment.ReceivedOf(ctx, tx, f)
	if err != nil {
		return err
	}
	if over := of.DueMinor - of.LeftMinor(); over > 0 {
		return oweLess(ctx, tx, actor, r, of, over)
	}
	return tellFailed(ctx, tx, f)
}
