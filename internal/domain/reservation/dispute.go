package reservation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// disputed is a dispute as the rule sees it.
type disputed struct {
	state   State // of the reservation
	kind    payment.NoticeKind
	over    bool  // of one that opens: its end was heard of before
	others  bool  // of its payments, or of others of the reservation, another dispute is open
	missing int64 // what the tickets cost beyond what is kept, when the bank has what it took
}

// disputeRuling is what is done about a dispute.
type disputeRuling struct {
	steps     []Step
	ends      bool   // the tickets end
	exception string // a person looks
}

// decideDispute is the rule for what a payer's bank says: the table of decision 0020. Tickets are flagged as long as any dispute is
// open, and stand as long as what is kept is what they cost.
func decideDispute(d disputed) disputeRuling {
	standing := d.state == Confirmed || d.state == Disputed
	switch {
	case d.kind == payment.NoticeDisputeOpened && (d.over || d.state == Disputed):
		return disputeRuling{}
	case d.kind == payment.NoticeDisputeOpened && d.state == Confirmed:
		return disputeRuling{steps: []Step{OpenDispute}}
	case d.kind == payment.NoticeDisputeWon && !standing: // nothing was flagged, or it ended otherwise
		return disputeRuling{}
	case !standing:
		return disputeRuling{exception: "dispute_not_confirmed"}
	case d.kind == payment.NoticeDisputeLost && d.missing > 0 && d.state == Disputed:
		return disputeRuling{steps: []Step{LoseDispute}, ends: true}
	case d.kind == payment.NoticeDisputeLost && d.missing > 0: // its opening is late, or was lost
		return disputeRuling{steps: []Step{OpenDispute, LoseDispute}, ends: true}
	case d.state == Disputed && !d.others: // won, or what it took was nothing that the tickets stand on
		return disputeRuling{steps: []Step{WinDispute}}
	}
	return disputeRuling{}
}

// disputed applies that a payer's bank asks a payment back, or what came of it.
func (h *hearing) disputed(ctx context.Context, tx pgx.Tx) error {
	p, found, err := payment.FindReceived(ctx, tx, h.setup, h.n.GatewayKey)
	if err != nil {
		return err
	}
	if !found {
		return h.wait(ctx, tx)
	}
	r, err := h.lockOf(ctx, tx, p.ReservationID)
	if err != nil {
		return err
	}
	if err := payment.PauseRefunds(ctx, tx, h.setup, h.n.GatewayKey); err != nil {
		return err
	}
	lost := h.n.Kind == payment.NoticeDisputeLost
	if lost && p.Currency != h.n.Currency {
		return h.except(ctx, tx, "refund_currency")
	}
	if err := h.sayDispute(ctx, tx, r); err != nil {
		return err
	}
	if lost {
		if err := h.chargedBack(ctx, tx, r, p); err != nil {
			return err
		}
	}
	what, err := h.ruleOnDispute(ctx, tx, r)
	if err != nil {
		return err
	}
	switch {
	case what.exception != "":
		return h.except(ctx, tx, what.exception)
	case lost && h.n.AmountMinor > p.LeftMinor(): // of what had gone back before
		return h.except(ctx, tx, "more_than_left")
	case lost && h.n.Words != "": // a fee in another currency than the payment
		return h.except(ctx, tx, "dispute_fee")
	}
	return nil
}

// ruleOnDispute does with the tickets what was decided.
func (h *hearing) ruleOnDispute(ctx context.Context, tx pgx.Tx, r Reservation) (what disputeRuling, err error) {
	d := disputed{state: r.State, kind: h.n.Kind}
	_, key, _ := strings.Cut(h.n.Key, " ")
	d.over, err = payment.Said(ctx, tx, h.setup, string(payment.NoticeDisputeWon)+" "+key, string(payment.NoticeDisputeLost)+" "+key)
	if err != nil {
		return what, err
	}
	if r.ID == 0 {
		return decideDispute(d), nil
	}
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return what, err
	}
	open, err := payment.Disputes(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return what, err
	}
	d.missing, d.others = missingOf(money), len(open) > 0
	what = decideDispute(d)
	for _, step := range what.steps {
		if err := move(ctx, tx, r.OrganisationID, step, r.ID); err != nil {
			return what, err
		}
	}
	if what.ends {
		err := endTickets(ctx, tx, h.actor, r, r.open(), ending{reason: "charged_back", ended: true, refunds: sharesOf(r.open(), money)})
		if err != nil {
			return what, err
		}
	}
	if h.n.Kind == payment.NoticeDisputeLost {
		err = raiseRefunds(ctx, tx, r)
	}
	return what, err
}

// flagDisputed flags the tickets of a reservation that is confirmed while a dispute about a part of its money is open.
func flagDisputed(ctx context.Context, tx pgx.Tx, r Reservation) error {
	open, err := payment.Disputes(ctx, tx, r.OrganisationID, r.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	return move(ctx, tx, r.OrganisationID, OpenDispute, r.ID)
}

// disputeFacts are what other systems are told of a dispute.
type disputeFacts struct {
	Reservation string `json:"reservation"`
	Dispute     string `json:"dispute"` // opened, won, lost
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

func (h *hearing) sayDispute(ctx context.Context, tx pgx.Tx, r Reservation) error {
	how := strings.TrimPrefix(string(h.n.Kind), "dispute_")
	if err := h.note(ctx, tx, r, "payment_disputed", map[string]any{"how": how, "amount": h.n.Money()}); err != nil || r.ID == 0 {
		return err
	}
	return outbox.Publish(ctx, tx, r.OrganisationID, outbox.Event{
		Kind: outbox.ReservationDisputed, Subject: outbox.ReservationSubject(r.Reference),
		Data: disputeFacts{r.Reference, how, h.n.AmountMinor, h.n.Currency},
	})
}

// chargedBack records money that the bank took back, as far as it had not gone back before, and what the gateway took for it, each once
// and at the instant at which it happened. What was due back of the payment is due no more. A cart that was paid in part is so much
// further from being paid.
func (h *hearing) chargedBack(ctx context.Context, tx pgx.Tx, r Reservation, p payment.Received) error {
	took := min(h.n.AmountMinor, p.LeftMinor())
	for kind, amount := range map[string]int64{"charged_back": took, "dispute_fee": h.n.FeeMinor} {
		if amount == 0 {
			continue
		}
		_, err := payment.Move(ctx, tx, h.setup, h.n, payment.Movement{
			Kind: kind, ReservationID: p.ReservationID, RefundsID: p.ID, AmountMinor: amount, Actor: h.actor.Name,
		})
		if err != nil {
			return err
		}
	}
	return h.overtaken(ctx, tx, r, p, took)
}

// raiseRefunds says of tickets that were cancelled before with a fee that the fee went back as well, as far as it did: a bank took it,
// or somebody gave it back in the gateway's own screen. Those that were given up before they were paid cost nothing.
func raiseRefunds(ctx context.Context, tx pgx.Tx, r Reservation) error {
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	missing := missingOf(money)
	for _, line := range r.Lines {
		more := min(missing, line.PriceMinor)
		if line.RefundMinor == nil || line.Unpaid || more <= 0 {
			continue
		}
		if more = min(more, line.PriceMinor-*line.RefundMinor); more <= 0 {
			continue
		}
		_, err := tx.Exec(ctx, `
update line set refund_minor = refund_minor + $4 where organisation_id = $1 and reservation_id = $2 and number = $3`,
			r.OrganisationID, r.ID, line.Number, more)
		if err != nil {
			return fmt.Errorf("say what went back of the fees: %w", err)
		}
		missing -= more
	}
	return nil
}

// FreeSeats frees the seats of a reservation that was charged back. A repeat changes nothing.
func FreeSeats(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (freed int, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return 0, err
	}
	organisationID, id, err := findFor(ctx, db, actor, reference)
	if err != nil {
		return 0, err
	}
	err = inTurns(ctx, db, organisationID, func(tx pgx.Tx) error {
		r, err := lock(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		if r.State != ChargedBack {
			return problem.Refused("reservation_not_charged_back", problem.Facts{"reservation": r.Reference})
		}
		freed, err = seating.ReleaseLines(ctx, tx, organisationID, id, numbers(r.Lines), "charged_back")
		if err != nil || freed == 0 {
			return err
		}
		return timeline.Record(ctx, tx, organisationID, actor, timeline.Entry{
			Kind: "seats_freed", Subject: r.subject(), Facts: map[string]any{"reservation": r.Reference, "seats": freed},
		})
	})
	return freed, err
}

// CloseDispute writes down what became of the disputes of a reservation that are open, where their gateway does not say it: as if it had
// said it, so that its own word is a repeat should it come.
func CloseDispute(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, won bool) error {
	if err := account.Allow(actor, account.Pay); err != nil {
		return err
	}
	organisationID, id, err := findFor(ctx, db, actor, reference)
	if err != nil {
		return err
	}
	kind := payment.NoticeDisputeLost
	if won {
		kind = payment.NoticeDisputeWon
	}
	return inTurns(ctx, db, organisationID, func(tx pgx.Tx) error {
		open, err := payment.Disputes(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		closed := 0
		for _, one := range open { // their payments before the reservation
			if err := payment.Alone(ctx, tx, one.GatewayID, one.PaymentKey); err != nil {
				return err
			}
		}
		for _, one := range open {
			fresh, err := closeDispute(ctx, tx, actor, organisationID, one, kind)
			if err != nil {
				return err
			}
			if fresh {
				closed++
			}
		}
		if closed == 0 {
			return problem.Refused("reservation_not_disputed", problem.Facts{"reservation": reference})
		}
		return nil
	})
}

func closeDispute(
	ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, of payment.Dispute, kind payment.NoticeKind,
) (fresh bool, err error) {
	setup, err := payment.ReadSetup(ctx, tx, organisationID, of.GatewayID)
	if err != nil {
		return false, err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return false, err
	}
	h := &hearing{setup: setup, actor: actor, n: payment.GatewayNotice{
		Key: string(kind) + " " + of.Key, Kind: kind, GatewayKey: of.PaymentKey, AmountMinor: of.AmountMinor, Currency: of.Currency, OccurredAt: now, Body: "{}",
	}}
	if fresh, err = payment.KeepNotice(ctx, tx, setup, &h.n); err != nil || !fresh {
		return false, err
	}
	return true, h.apply(ctx, tx)
}
