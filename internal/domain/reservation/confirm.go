package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// standing is what a reservation's money and state are when money comes for it.
type standing struct {
	state     State // by the clock
	currency  string
	costMinor int64 // of its tickets
	keptMinor int64 // received before, neither back nor due
}

// ruling is what is done about money that came in.
type ruling struct {
	exception string               // it belongs to nobody yet: a person decides, for this reason
	dueMinor  int64                // at once, and whatever becomes of the seats
	due       payment.RefundReason // why
	finalise  bool                 // what it costs is there: the seats become theirs, or all of it is due back
}

// decidePaid is the rule for money that comes in for a reservation: the table of decision 0020.
func decidePaid(s standing, amountMinor int64, currency string) ruling {
	total := s.keptMinor + amountMinor
	switch {
	case currency != s.currency:
		return ruling{exception: "other_currency"}
	case s.state == Confirmed || s.state == Disputed:
		return ruling{dueMinor: amountMinor, due: payment.PaidTwice}
	case s.state.Over():
		return ruling{dueMinor: amountMinor, due: payment.PaidAfterEnd}
	case total >= s.costMinor:
		return ruling{finalise: true}
	case s.state == Lapsed:
		return ruling{dueMinor: total, due: payment.PaidInPart}
	}
	return ruling{}
}

// paid applies money that a gateway has.
func (h *hearing) paid(ctx context.Context, tx pgx.Tx) error {
	c, found, err := payment.FindCheckout(ctx, tx, h.setup, h.n)
	if err != nil {
		return err
	}
	if !found {
		return h.nobodys(ctx, tx, "order_unknown")
	}
	r, s, err := lockStanding(ctx, tx, h.setup.OrganisationID, c.ReservationID)
	if err != nil {
		return err
	}
	what := decidePaid(s, h.n.AmountMinor, h.n.Currency)
	if what.exception != "" {
		return h.nobodys(ctx, tx, what.exception)
	}
	if err := payment.EndCheckout(ctx, tx, c, payment.CheckoutPaid, ""); err != nil {
		return err
	}
	return h.into(ctx, tx, r, what, "")
}

// into records money for a reservation, and does what was decided. What the gateway said of this payment before it said that it was
// made is applied with it.
func (h *hearing) into(ctx context.Context, tx pgx.Tx, r Reservation, what ruling, receipt string) error {
	id, err := payment.Move(ctx, tx, h.setup, h.n, payment.Movement{
		Kind: "received", ReservationID: r.ID, AmountMinor: h.n.AmountMinor, Actor: h.actor.Name, Receipt: receipt,
	})
	if err != nil {
		return err
	}
	if err := h.note(ctx, tx, r, "payment_received", map[string]any{"amount": h.n.Money(), "gateway": h.setup.Name, "receipt": receipt}); err != nil {
		return err
	}
	waiting, err := payment.Waiting(ctx, tx, h.setup, h.n.GatewayKey)
	if err != nil {
		return err
	}
	if gone := backBefore(waiting, h.n); gone {
		return h.paidAndBack(ctx, tx, r, id, waiting)
	}
	if err := follow(ctx, tx, h.actor, r, what); err != nil {
		return err
	}
	return h.applyWaiting(ctx, tx, waiting)
}

// backBefore tells whether all of a payment went back before anybody knew that it was made.
func backBefore(waiting []payment.GatewayNotice, paid payment.GatewayNotice) bool {
	var back int64
	for _, n := range waiting {
		if n.Kind == payment.NoticeRefunded && n.Currency == paid.Currency {
			back += n.AmountMinor
		}
	}
	return back > 0 && back >= paid.AmountMinor
}

// applyWaiting applies the notices that waited for a payment, in the order in which it happened.
func (h *hearing) applyWaiting(ctx context.Context, tx pgx.Tx, waiting []payment.GatewayNotice) error {
	for _, n := range waiting {
		if err := payment.Mark(ctx, tx, h.setup.OrganisationID, n.ID, payment.NoticeApplied, ""); err != nil {
			return err
		}
		later := &hearing{setup: h.setup, n: n, actor: h.actor}
		if err := later.apply(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// paidAndBack ends a reservation whose money came and went before it was known: it was paid and given back, its seats are free, and
// nobody is told that they paid. One that stands on other money stays as it is.
func (h *hearing) paidAndBack(ctx context.Context, tx pgx.Tx, r Reservation, paymentID int64, waiting []payment.GatewayNotice) error {
	var others []payment.GatewayNotice
	left := h.n.AmountMinor
	for _, n := range waiting {
		if n.Kind != payment.NoticeRefunded || n.Currency != h.n.Currency || n.AmountMinor > left { // more than there is: a person looks
			others = append(others, n)
			continue
		}
		left -= n.AmountMinor
		if err := payment.Mark(ctx, tx, h.setup.OrganisationID, n.ID, payment.NoticeApplied, ""); err != nil {
			return err
		}
		_, err := payment.Move(ctx, tx, h.setup, n, payment.Movement{
			Kind: "refunded", ReservationID: r.ID, RefundsID: paymentID, AmountMinor: n.AmountMinor, Actor: h.actor.Name,
		})
		if err != nil {
			return err
		}
	}
	if _, open := Move(r.State, Confirm); open {
		money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
		if err != nil {
			return err
		}
		if money.Kept() == 0 {
			if err := endUnseen(ctx, tx, h.actor, r); err != nil {
				return err
			}
		}
	}
	return h.applyWaiting(ctx, tx, others)
}

// unseen is why tickets ended whose money came and went before it was known.
const unseen = "refunded"

// endUnseen takes a reservation through confirmation to its end in one step.
func endUnseen(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation) error {
	_, err := tx.Exec(ctx, `
update reservation set state = 'refunded', confirmed_at = clock(), ended_at = clock() where organisation_id = $1 and id = $2 and state = any($3)`,
		r.OrganisationID, r.ID, From(Confirm))
	if err != nil {
		return fmt.Errorf("end the reservation: %w", err)
	}
	return endTickets(ctx, tx, actor, r, r.open(), ending{reason: unseen, release: true, ended: true})
}

// follow does what was decided about money that was recorded.
func follow(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, what ruling) error {
	if what.dueMinor > 0 {
		return owe(ctx, tx, actor, r, what.dueMinor, what.due)
	}
	if !what.finalise {
		return nil
	}
	_, err := confirm(ctx, tx, actor, r)
	return err
}

// confirm makes a reservation theirs, whose row is locked and for which enough was received: for good, or, where a seat is gone or its
// buyer has as many tickets as they may by now, not at all, and then everything that was received is due back. More than it costs is due
// back.
func confirm(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation) (confirmed bool, err error) {
	held, err := seating.Finalise(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return false, err
	}
	var late lateness
	if !held {
		if late, err = retake(ctx, tx, r); err != nil {
			return false, err
		}
	}
	if err := payment.LookSoon(ctx, tx, r.OrganisationID, r.ID); err != nil { // elsewhere nobody is to pay any more
		return false, err
	}
	if late.why != "" {
		return false, tooLate(ctx, tx, actor, r, late)
	}
	_, err = tx.Exec(ctx, `
update reservation set state = 'confirmed', confirmed_at = clock(), ended_at = null where organisation_id = $1 and id = $2 and state = any($3)`,
		r.OrganisationID, r.ID, From(Confirm))
	if err != nil {
		return false, fmt.Errorf("confirm the reservation: %w", err)
	}
	if err := flagDisputed(ctx, tx, r); err != nil {
		return false, err
	}
	if err := sayConfirmed(ctx, tx, actor, r, !held); err != nil {
		return false, err
	}
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return false, err
	}
	if over := money.Kept() - money.CostMinor; over > 0 {
		err = owe(ctx, tx, actor, r, over, payment.PaidTooMuch)
	}
	return true, err
}

// lateness is why seats are not taken again whose hold was over when their money came.
type lateness struct {
	why  payment.RefundReason // empty: they were
	lost []seating.LostSeat   // that are gone
}

// retake takes the seats again of a reservation whose hold is over. It asks for them anew, and what its buyer has elsewhere by now counts
// as it did when they started to pay: else carts that are paid late, one after the other, would have no limit. The buyer's row comes
// before the sittings'.
func retake(ctx context.Context, tx pgx.Tx, r Reservation) (lateness, error) {
	if r.BuyerID != nil {
		if _, err := LockBuyer(ctx, tx, r.OrganisationID, r.Email); err != nil {
			return lateness{}, err
		}
		var beyond *problem.Problem
		if err := CheckBuyer(ctx, tx, r, *r.BuyerID); errors.As(err, &beyond) && beyond.Kind == problem.KindRefused {
			return lateness{why: payment.PaidOverLimit}, nil
		} else if err != nil {
			return lateness{}, err
		}
	}
	lost, err := seating.Retake(ctx, tx, r.OrganisationID, r.ID)
	if err != nil || len(lost) == 0 {
		return lateness{}, err
	}
	return lateness{payment.PaidLate, lost}, nil
}

// tooLate writes down that the money came too late for the seats: nothing of them is theirs, and all of it is due back.
func tooLate(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, late lateness) error {
	if _, err := seating.ReleaseLines(ctx, tx, r.OrganisationID, r.ID, numbers(r.Lines), "lapsed"); err != nil {
		return err
	}
	if err := move(ctx, tx, r.OrganisationID, Lapse, r.ID); err != nil {
		return err
	}
	seats := make([]string, len(late.lost))
	for i, one := range late.lost {
		seats[i] = one.Seat
	}
	err := timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
		Kind: "payment_late", Subject: r.subject(), Facts: map[string]any{"reservation": r.Reference, "lost": seats, "why": string(late.why)},
	})
	if err != nil {
		return err
	}
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil || money.Kept() == 0 {
		return err
	}
	return owe(ctx, tx, actor, r, money.Kept(), late.why)
}

// sayConfirmed tells the buyer, the timeline and other systems.
func sayConfirmed(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, again bool) error {
	if err := notice.TellBuyers(ctx, tx, r.OrganisationID, notice.KindReservationConfirmed, r.ID); err != nil {
		return err
	}
	tickets := ticketsOf(r.open())
	err := timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
		Kind: "reservation_confirmed", Subject: r.subject(),
		Facts: map[string]any{"reservation": r.Reference, "tickets": tickets, "total": i18n.Money{Minor: r.TotalMinor(), Currency: r.Currency}, "again": again},
	})
	if err != nil {
		return err
	}
	return outbox.Publish(ctx, tx, r.OrganisationID, outbox.Event{
		Kind: outbox.ReservationConfirmed, Subject: outbox.ReservationSubject(r.Reference),
		Data: confirmedFacts{Reservation: r.Reference, Tickets: tickets, AmountMinor: r.TotalMinor(), Currency: r.Currency},
	})
}

// confirmedFacts are what other systems are told of a reservation that is paid.
type confirmedFacts struct {
	Reservation string       `json:"reservation"`
	AmountMinor int64        `json:"amount_minor"`
	Currency    string       `json:"currency"`
	Tickets     []ticketFact `json:"tickets"`
}

// ticketFact is a ticket as the timeline keeps it and other systems read it.
type ticketFact struct {
	Number     int    `json:"number"`
	Event      string `json:"event"`
	Sitting    string `json:"sitting"`
	Seat       string `json:"seat"`
	Kind       string `json:"kind"`
	PriceMinor int64  `json:"price_minor"`
}

func ticketsOf(lines []Line) []ticketFact {
	tickets := make([]ticketFact, len(lines))
	for i, line := range lines {
		tickets[i] = ticketFact{line.Number, line.Event, line.Sitting, line.Seat, line.Kind, line.PriceMinor}
	}
	return tickets
}

// nobodys records money that belongs to nobody yet: a person puts it to an order, or gives it back.
func (h *hearing) nobodys(ctx context.Context, tx pgx.Tx, reason string) error {
	id, err := payment.Move(ctx, tx, h.setup, h.n, payment.Movement{Kind: "received", AmountMinor: h.n.AmountMinor, Actor: h.actor.Name})
	if err != nil {
		return err
	}
	waiting, err := payment.Waiting(ctx, tx, h.setup, h.n.GatewayKey)
	if err != nil {
		return err
	}
	if backBefore(waiting, h.n) { // it came and went: nothing is left to decide
		return h.paidAndBack(ctx, tx, Reservation{OrganisationID: h.setup.OrganisationID, State: Refunded}, id, waiting)
	}
	if err := h.applyWaiting(ctx, tx, waiting); err != nil {
		return err
	}
	return h.except(ctx, tx, reason)
}

// unpaid ends a checkout at which nothing was paid; the buyer may try again while the hold holds.
func (h *hearing) unpaid(ctx context.Context, tx pgx.Tx) error {
	c, found, err := payment.FindCheckout(ctx, tx, h.setup, h.n)
	if err != nil || !found { // no money: nothing for a person to look at
		return err
	}
	state := payment.CheckoutFailed
	if h.n.Kind == payment.NoticeExpired {
		state = payment.CheckoutExpired
	}
	return endUnpaid(ctx, tx, h.actor, c, state, h.n.Words)
}

// endUnpaid ends an attempt. Without another that is open, the reservation is a cart again.
func endUnpaid(ctx context.Context, tx pgx.Tx, actor timeline.Actor, c payment.Checkout, state payment.CheckoutState, words string) error {
	r, err := lock(ctx, tx, c.OrganisationID, c.ReservationID)
	if err != nil {
		return err
	}
	if err := payment.EndCheckout(ctx, tx, c, state, words); err != nil {
		return err
	}
	live, err := payment.LiveCheckouts(ctx, tx, c.OrganisationID, r.ID)
	if err != nil || len(live) > 0 || r.Written != PaymentStarted {
		return err
	}
	if err := move(ctx, tx, c.OrganisationID, FailPayment, r.ID); err != nil {
		return err
	}
	return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
		Kind: "payment_failed", Subject: r.subject(), Facts: map[string]any{"reservation": r.Reference, "how": string(state), "why": words},
	})
}

// lockStanding takes a reservation's row, and reads how it stands.
func lockStanding(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Reservation, standing, error) {
	r, err := lock(ctx, tx, organisationID, id)
	if err != nil {
		return r, standing{}, err
	}
	money, err := payment.MoneyOf(ctx, tx, organisationID, id)
	return r, r.standing(money), err
}

// standing is how it stands for money that comes. A hold that is over and has no ticket any more, because its events were cancelled,
// is over for good: there is nothing to confirm.
func (r Reservation) standing(money payment.Money) standing {
	state := r.State
	if state == Lapsed && len(r.open()) == 0 {
		state = Cancelled
	}
	return standing{state, r.Currency, money.CostMinor, money.Kept()}
}

// note records something about a reservation in the name of the gateway.
func (h *hearing) note(ctx context.Context, tx pgx.Tx, r Reservation, kind timeline.Kind, facts map[string]any) error {
	facts["reservation"] = r.Reference
	return timeline.Record(ctx, tx, h.setup.OrganisationID, h.actor, timeline.Entry{Kind: kind, Subject: r.subject(), Facts: facts})
}

// subject is the reservation as the timeline has it: of its event where it has tickets of one.
func (r Reservation) subject() timeline.Subject {
	s := timeline.Subject{ReservationID: r.ID}
	for i, line := range r.Lines {
		if i > 0 && line.EventID != s.EventID {
			return timeline.Subject{ReservationID: r.ID}
		}
		s.EventID = line.EventID
	}
	return s
}

// open are the tickets that were not cancelled.
func (r Reservation) open() (open []Line) {
	for _, line := range r.Lines {
		if !line.Cancelled {
			open = append(open, line)
		}
	}
	return open
}

func numbers(lines []Line) []int {
	numbers := make([]int, len(lines))
	for i, line := range lines {
		numbers[i] = line.Number
	}
	return numbers
}
