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

// disputeRuling is what is done about a dispute.
type disputeRuling struct {
	steps     []Step
	money     bool   // it is gone
	exception string // a person looks
}

// decideDispute is the rule for what a payer's bank says: the table of decision 0020. over tells, of one that opens, that its end
// was heard of before.
func decideDispute(state State, kind payment.NoticeKind, over bool) disputeRuling {
	switch {
	case kind == payment.NoticeDisputeOpened && over:
		return disputeRuling{}
	case kind == payment.NoticeDisputeOpened && state == Confirmed:
		return disputeRuling{steps: []Step{OpenDispute}}
	case kind == payment.NoticeDisputeWon && state == Disputed:
		return disputeRuling{steps: []Step{WinDispute}}
	case kind == payment.NoticeDisputeWon: // nothing was flagged, or it ended otherwise
		return disputeRuling{}
	case kind == payment.NoticeDisputeLost && state == Disputed:
		return disputeRuling{steps: []Step{LoseDispute}, money: true}
	case kind == payment.NoticeDisputeLost && state == Confirmed: // its opening is late, or was lost
		return disputeRuling{steps: []Step{OpenDispute, LoseDispute}, money: true}
	case kind == payment.NoticeDisputeLost:
		return disputeRuling{money: true, exception: "dispute_not_confirmed"}
	}
	return disputeRuling{exception: "dispute_not_confirmed"}
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
	_, dispute, _ := strings.Cut(h.n.Key, " ")
	over, err := payment.Said(ctx, tx, h.setup, string(payment.NoticeDisputeWon)+" "+dispute, string(payment.NoticeDisputeLost)+" "+dispute)
	if err != nil {
		return err
	}
	what := decideDispute(r.State, h.n.Kind, over)
	for _, step := range what.steps {
		if err := move(ctx, tx, r.OrganisationID, step, r.ID); err != nil {
			return err
		}
	}
	if err := h.sayDispute(ctx, tx, r); err != nil {
		return err
	}
	if what.money {
		if err := h.chargedBack(ctx, tx, r, p, len(what.steps) > 0); err != nil {
			return err
		}
	}
	switch {
	case what.exception != "":
		return h.except(ctx, tx, what.exception)
	case h.n.Kind == payment.NoticeDisputeLost && h.n.Words != "": // a fee in another currency than the payment
		return h.except(ctx, tx, "dispute_fee")
	}
	return nil
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

// chargedBack records money that the bank took back, and what the gateway took for it, each once and at the instant at which it
// happened. What was due back of the payment is due no more. Tickets that stood on it end; their seats are free when staff say so
// (FreeSeats): the event may be over, or somebody sits there. A cart that was paid in part is so much further from being paid.
func (h *hearing) chargedBack(ctx context.Context, tx pgx.Tx, r Reservation, p payment.Received, ends bool) error {
	for kind, amount := range map[string]int64{"charged_back": h.n.AmountMinor, "dispute_fee": h.n.FeeMinor} {
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
	if err := h.overtaken(ctx, tx, r, p); err != nil || r.ID == 0 {
		return err
	}
	if ends {
		money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
		if err != nil {
			return err
		}
		err = endTickets(ctx, tx, h.actor, r, r.open(), ending{reason: "charged_back", ended: true, refunds: sharesOf(r.open(), money)})
		if err != nil {
			return err
		}
	}
	return raiseRefunds(ctx, tx, r)
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
		if line.RefundMinor == nil || more <= 0 {
			continue
		}
		if more = min(more, line.PriceMinor-*line.RefundMinor); more <= 0 {
			continue
		}
		tag, err := tx.Exec(ctx, `
update line set refund_minor = refund_minor + $4 where organisation_id = $1 and reservation_id = $2 and number = $3 and cancel_reason <> $5`,
			r.OrganisationID, r.ID, line.Number, more, whyGivenUp)
		if err != nil {
			return fmt.Errorf("say what went back of the fees: %w", err)
		}
		missing -= more * tag.RowsAffected()
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
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
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
