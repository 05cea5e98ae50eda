package reservation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// owe writes down that money of a reservation is to go back, the latest that came first, and tells its buyer, the organiser, the timeline
// and other systems.
func owe(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, amountMinor int64, reason payment.RefundReason) error {
	received, err := payment.ReceivedFor(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	owed, err := oweOf(ctx, tx, actor, r, received, amountMinor, reason)
	if err != nil {
		return err
	}
	return tellOwed(ctx, tx, r, reason, owed)
}

// oweOf is owe for the payments that are given, without telling the buyer or the organiser.
func oweOf(
	ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, received []payment.Received, amountMinor int64, reason payment.RefundReason,
) (owed []payment.Refund, err error) {
	owed, err = payment.Owe(ctx, tx, r.OrganisationID, received, amountMinor, reason)
	if err != nil {
		return nil, err
	}
	for _, one := range owed {
		err := timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
			Kind: "refund_due", Subject: r.subject(),
			Facts: map[string]any{"reservation": r.Reference, "amount": one.Money(), "reason": string(reason), "refund": one.Key},
		})
		if err != nil {
			return nil, err
		}
		if err := publishRefund(ctx, tx, outbox.RefundDue, r, one); err != nil {
			return nil, err
		}
	}
	return owed, nil
}

// refundFacts are what other systems are told of money that is to go back, or went back.
type refundFacts struct {
	Reservation string `json:"reservation"` // empty: it belonged to none
	Refund      string `json:"refund"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Reason      string `json:"reason"`
}

func publishRefund(ctx context.Context, tx pgx.Tx, kind outbox.Kind, r Reservation, f payment.Refund) error {
	subject := outbox.ReservationSubject(r.Reference)
	if r.Reference == "" {
		subject = outbox.ReservationSubject(f.Key)
	}
	return outbox.Publish(ctx, tx, f.OrganisationID, outbox.Event{
		Kind: kind, Subject: subject, Data: refundFacts{r.Reference, f.Key, f.AmountMinor, f.Currency, string(f.Reason)},
	})
}

// Cancelling says which tickets are given back, and how.
type Cancelling struct {
	Tickets    []int // numbers; none: all of the reservation
	Reason     string
	WithoutFee bool // the organiser gives the whole price back
	Preview    bool // say what would be done, and do nothing
}

// CancelledTicket is a ticket that was given back, or would be.
type CancelledTicket struct {
	Number int
	Event  string
	Seat   string
	Price  i18n.Money
	Fee    i18n.Money // what stays with the organiser
	Refund i18n.Money
}

// CancelTickets gives tickets of a paid reservation back by the rule that was frozen when they were held: the price of each less its
// fee is due back, its seat is free. Those that were given back before are passed over, so that a repeat changes nothing and gives
// none. Before it is paid, a cart is given up instead: GiveUp.
func CancelTickets(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, c Cancelling) (done []CancelledTicket, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return nil, err
	}
	organisationID, id, err := findFor(ctx, db, actor, reference)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(c.Reason) == "" && !c.Preview {
		return nil, problem.Invalid("reason_missing", nil)
	}
	return cancelTickets(ctx, db, actor, organisationID, id, c, func(context.Context, pgx.Tx, Reservation, []Line) error { return nil })
}

// cancelTickets gives back the tickets that may be.
func cancelTickets(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID, id int64, c Cancelling,
	may func(context.Context, pgx.Tx, Reservation, []Line) error,
) (done []CancelledTicket, err error) {
	err = inTurns(ctx, db, organisationID, func(tx pgx.Tx) error {
		done = nil
		r, s, err := lockStanding(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		lines, err := toCancel(r, c.Tickets)
		if err != nil || len(lines) == 0 {
			return err
		}
		if err := may(ctx, tx, r, lines); err != nil {
			return err
		}
		refunds := refundsOf(lines, c.WithoutFee, s.keptMinor)
		for i, line := range lines {
			done = append(done, CancelledTicket{
				line.Number, line.EventName, line.Seat, r.money(line.PriceMinor), r.money(line.PriceMinor - refunds[i]), r.money(refunds[i]),
			})
		}
		if c.Preview {
			return nil
		}
		return cancel(ctx, tx, actor, r, lines, refunds, payment.TicketCancelled, c.Reason)
	})
	return done, err
}

// findFor finds a reservation for somebody who works for its organisation.
func findFor(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (organisationID, id int64, err error) {
	organisationID, id, err = find(ctx, db, reference)
	if err == nil && !actor.MayActFor(organisationID) {
		err = unknown(reference)
	}
	return organisationID, id, err
}

func (r Reservation) money(minor int64) i18n.Money {
	return i18n.Money{Minor: minor, Currency: r.Currency}
}

// toCancel are the tickets that are given back now; none: that was done before.
func toCancel(r Reservation, wanted []int) (lines []Line, err error) {
	for _, number := range wanted {
		if !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Number == number }) {
			return nil, problem.NotFound("line_unknown", problem.Facts{"line": number, "reservation": r.Reference})
		}
	}
	for _, line := range r.open() {
		if len(wanted) == 0 || slices.Contains(wanted, line.Number) {
			lines = append(lines, line)
		}
	}
	switch {
	case len(lines) == 0:
		return nil, nil
	case r.State == Disputed:
		return nil, problem.Refused("reservation_disputed", problem.Facts{"reservation": r.Reference})
	case r.State != Confirmed:
		return nil, problem.Refused("reservation_not_confirmed", problem.Facts{"reservation": r.Reference})
	}
	return lines, nil
}

// refundsOf are what each ticket gives back: its price less the fee that was frozen with it, and altogether no more than is there.
func refundsOf(lines []Line, withoutFee bool, keptMinor int64) []int64 {
	refunds := make([]int64, len(lines))
	for i, line := range lines {
		refunds[i] = line.PriceMinor
		if !withoutFee {
			refunds[i] -= line.CancelFeeMinor
		}
		refunds[i] = min(refunds[i], keptMinor)
		keptMinor -= refunds[i]
	}
	return refunds
}

// cancel ends tickets and writes down what is to go back for them.
func cancel(
	ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, lines []Line, refunds []int64, why payment.RefundReason, words string,
) error {
	err := endTickets(ctx, tx, actor, r, lines, ending{reason: string(why), refunds: refunds, words: words, release: true})
	if err != nil {
		return err
	}
	var sum int64
	for _, refund := range refunds {
		sum += refund
	}
	if sum == 0 {
		return nil
	}
	return owe(ctx, tx, actor, r, sum, why)
}

// ending is how tickets end.
type ending struct {
	reason  string  // is kept with the lines and the claims
	refunds []int64 // of each; nil: the whole price
	words   string  // of a person
	release bool    // the seats are free
	ended   bool    // the reservation's own end is written already
}

// endTickets ends tickets of a reservation whose row is locked: its lines are cancelled, and, where the ending says so, the seats are
// free. With the last one the reservation ends. The buyer and other systems are told.
func endTickets(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, lines []Line, e ending) error {
	if len(lines) == 0 {
		return nil
	}
	refunds := e.refunds
	if refunds == nil {
		for _, line := range lines {
			refunds = append(refunds, line.PriceMinor)
		}
	}
	_, err := tx.Exec(ctx, `
update line l set cancelled_at = clock(), cancel_reason = $3, refund_minor = e.refund
  from unnest($4::int[], $5::bigint[]) e(number, refund)
 where l.organisation_id = $1 and l.reservation_id = $2 and l.number = e.number and l.cancelled_at is null`,
		r.OrganisationID, r.ID, e.reason, numbers(lines), refunds)
	if err != nil {
		return fmt.Errorf("cancel the tickets: %w", err)
	}
	if e.release {
		if _, err := seating.ReleaseLines(ctx, tx, r.OrganisationID, r.ID, numbers(lines), e.reason); err != nil {
			return err
		}
	}
	left := len(r.open()) - len(lines)
	if left == 0 && !e.ended {
		if err := move(ctx, tx, r.OrganisationID, lastStep(r.Written), r.ID); err != nil {
			return err
		}
		if err := payment.LookSoon(ctx, tx, r.OrganisationID, r.ID); err != nil {
			return err
		}
	}
	if err := tellEnded(ctx, tx, r, lines, e); err != nil {
		return err
	}
	err = timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
		Kind: "tickets_cancelled", Subject: r.subject(),
		Facts: map[string]any{"reservation": r.Reference, "tickets": ticketsOf(lines), "left": left, "reason": e.reason, "why": e.words},
	})
	if err != nil {
		return err
	}
	return outbox.Publish(ctx, tx, r.OrganisationID, outbox.Event{
		Kind: outbox.ReservationCancelled, Subject: outbox.ReservationSubject(r.Reference),
		Data: cancelledFacts{r.Reference, ticketsOf(lines), left, e.reason},
	})
}

// lastStep is what the end of its last ticket is for a reservation.
func lastStep(written State) Step {
	if _, paid := Move(written, Refund); paid {
		return Refund
	}
	return Cancel
}

// cancelledFacts are what other systems are told of tickets that ended.
type cancelledFacts struct {
	Reservation string       `json:"reservation"`
	Tickets     []ticketFact `json:"tickets"` // that ended
	Left        int          `json:"left"`    // tickets that it still has
	Reason      string       `json:"reason"`
}

// refunded applies money that a gateway gave back, whether it was asked or somebody did it in its own screen.
func (h *hearing) refunded(ctx context.Context, tx pgx.Tx) error {
	movement := strings.TrimPrefix(h.n.Key, string(payment.NoticeRefunded)+" ")
	f, ours, err := payment.FindRefund(ctx, tx, h.setup, h.n, movement)
	if err != nil {
		return err
	}
	ours = ours && f.AmountMinor == h.n.AmountMinor && f.Currency == h.n.Currency
	switch {
	case ours && f.State != payment.RefundDone:
		return h.done(ctx, tx, f, movement, "", "")
	case ours && f.DoneBy != "" && f.GatewayKey == "" && h.setup.Kind.ByHand(): // somebody did it there, and wrote it down already
		if err := payment.Name(ctx, tx, f, movement); err != nil {
			return err
		}
		return payment.Mark(ctx, tx, h.setup.OrganisationID, h.n.ID, payment.NoticeApplied, "refund_known")
	}
	p, found, err := payment.FindReceived(ctx, tx, h.setup, h.n.GatewayKey)
	if err != nil {
		return err
	}
	switch {
	case !found:
		return h.wait(ctx, tx)
	case p.Currency != h.n.Currency:
		return h.except(ctx, tx, "refund_currency")
	case h.n.AmountMinor > p.LeftMinor(): // it was given back twice, or the gateway errs: nothing ends because of it
		return h.except(ctx, tx, "more_than_left")
	}
	return h.outside(ctx, tx, p)
}

// done writes down that money which was due is back; by is who paid it out by hand.
func (h *hearing) done(ctx context.Context, tx pgx.Tx, f payment.Refund, movement, by, receipt string) error {
	r, err := h.lockOf(ctx, tx, f.ReservationID)
	if err != nil {
		return err
	}
	_, err = payment.Move(ctx, tx, h.setup, h.n, payment.Movement{
		Kind: "refunded", ReservationID: f.ReservationID, RefundsID: f.PaymentID, AmountMinor: f.AmountMinor, Actor: h.actor.Name, Receipt: receipt,
	})
	if err != nil {
		return err
	}
	if err := payment.Finish(ctx, tx, f, movement, by); err != nil {
		return err
	}
	if err := h.note(ctx, tx, r, "refund_done", map[string]any{"amount": f.Money(), "refund": f.Key, "receipt": receipt}); err != nil {
		return err
	}
	return publishRefund(ctx, tx, outbox.ReservationRefunded, r, f)
}

// lockOf takes the row of a reservation, where there is one.
func (h *hearing) lockOf(ctx context.Context, tx pgx.Tx, reservationID int64) (Reservation, error) {
	if reservationID == 0 {
		return Reservation{OrganisationID: h.setup.OrganisationID, State: Refunded, Written: Refunded}, nil
	}
	return lock(ctx, tx, h.setup.OrganisationID, reservationID)
}

// outside applies money that went back without being due: somebody did it in the gateway's own screen. When nothing is left of what
// the reservation stands on, its tickets end; of a part a person says for which ticket it was.
func (h *hearing) outside(ctx context.Context, tx pgx.Tx, p payment.Received) error {
	r, err := h.lockOf(ctx, tx, p.ReservationID)
	if err != nil {
		return err
	}
	if err := h.note(ctx, tx, r, "refund_outside", map[string]any{"amount": h.n.Money(), "gateway": h.setup.Name}); err != nil {
		return err
	}
	went := h.n.AmountMinor
	if err := h.moveOutside(ctx, tx, r, p); err != nil {
		return err
	}
	if err := h.overtaken(ctx, tx, r, p, went); err != nil || p.ReservationID == 0 {
		return err
	}
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	switch decideOutside(r.State, money.Kept(), missingOf(money)) {
	case outsidePart:
		return h.except(ctx, tx, "refund_part")
	case outsideEnds:
		err := endTickets(ctx, tx, h.actor, r, r.open(), ending{reason: "refunded_outside", release: true, refunds: sharesOf(r.open(), money)})
		if err != nil {
			return err
		}
	}
	return raiseRefunds(ctx, tx, r)
}

// moveOutside records what went back outside. Where a part of it was due and the rest is what tickets stand on, each is a row of its
// own, and from here on the notice is about the rest alone: a person says for which ticket that was.
func (h *hearing) moveOutside(ctx context.Context, tx pgx.Tx, r Reservation, p payment.Received) error {
	move := func(n payment.GatewayNotice) error {
		_, err := payment.Move(ctx, tx, h.setup, n, payment.Movement{
			Kind: "refunded", ReservationID: p.ReservationID, RefundsID: p.ID, AmountMinor: n.AmountMinor, Actor: h.actor.Name,
		})
		return err
	}
	beside := p.LeftMinor() - p.DueMinor
	if (r.State == Confirmed || r.State == Disputed) && beside > 0 && beside < h.n.AmountMinor {
		due := h.n
		due.Key, due.AmountMinor = duePart(h.n.Key), h.n.AmountMinor-beside
		if _, err := payment.KeepNotice(ctx, tx, h.setup, &due); err != nil {
			return err
		}
		if err := move(due); err != nil {
			return err
		}
		h.n.AmountMinor = beside
	}
	return move(h.n)
}

// duePart is the name of the part of a movement that was due. No gateway's own name begins like that.
func duePart(key string) string { return "due " + key }

// What money that went back outside means for a reservation.
type outsideRuling int

const (
	outsideNothing outsideRuling = iota // the tickets are over, or not paid yet
	outsideEnds                         // nothing is left: the tickets end
	outsidePart                         // a person says for which ticket it was
)

// decideOutside is the rule; kept is what is left of the reservation's money, missing what its tickets cost beyond that. Where nothing
// is missing, what went back was due.
func decideOutside(state State, keptMinor, missingMinor int64) outsideRuling {
	switch {
	case state != Confirmed && state != Disputed, missingMinor <= 0:
		return outsideNothing
	case keptMinor <= 0:
		return outsideEnds
	}
	return outsidePart
}

// missingOf is what tickets cost beyond what is kept for them and what went back for none.
func missingOf(m payment.Money) int64 { return m.CostMinor - m.SparedMinor - m.Kept() }

// sharesOf says of tickets for which nothing is kept any more what each gave back, so that the sum is what went back for them: what
// went back before for no ticket stays said of none.
func sharesOf(lines []Line, m payment.Money) []int64 {
	left := missingOf(m)
	shares := make([]int64, len(lines))
	for i, line := range lines {
		shares[i] = max(0, min(line.PriceMinor, left))
		left -= shares[i]
	}
	return shares
}

// overtaken sets anew what is due of a payment of which so much went another way. While tickets stand, what went is no more of what is
// due than did not fit beside it; when none does, all of it is.
func (h *hearing) overtaken(ctx context.Context, tx pgx.Tx, r Reservation, before payment.Received, wentMinor int64) error {
	over := before.BackMinor + before.DueMinor + wentMinor - before.AmountMinor
	if r.State != Confirmed && r.State != Disputed {
		over = wentMinor
	}
	now := before
	now.BackMinor += wentMinor
	return oweLess(ctx, tx, h.actor, r, now, over)
}

// oweLess has so much less go back of a payment than is due of it, as far as no gateway was asked for it.
func oweLess(ctx context.Context, tx pgx.Tx, actor timeline.Actor, r Reservation, of payment.Received, lessMinor int64) error {
	if lessMinor <= 0 || of.DueMinor == 0 {
		return nil
	}
	reason, withdrawn, err := payment.Withdraw(ctx, tx, r.OrganisationID, of.ID)
	if err != nil || withdrawn <= lessMinor {
		return err
	}
	of.DueMinor -= withdrawn
	_, err = oweOf(ctx, tx, actor, r, []payment.Received{of}, withdrawn-lessMinor, reason) // of which they were told when it became due
	return err
}

// refundFailed applies that money did not go back, though it was asked for or even said to be back.
func (h *hearing) refundFailed(ctx context.Context, tx pgx.Tx) error {
	movement := strings.TrimPrefix(h.n.Key, string(payment.NoticeRefundFailed)+" ")
	f, ours, err := payment.FindRefund(ctx, tx, h.setup, h.n, movement)
	if err != nil {
		return err
	}
	reservationID := f.ReservationID
	if !ours {
		p, found, err := payment.FindReceived(ctx, tx, h.setup, h.n.GatewayKey)
		if err != nil {
			return err
		}
		if !found {
			return h.wait(ctx, tx)
		}
		reservationID = p.ReservationID
	}
	r, err := h.lockOf(ctx, tx, reservationID)
	if err != nil {
		return err
	}
	key := string(payment.NoticeRefunded) + " " + movement
	keys := []string{key, duePart(key)}
	if ours && f.DoneBy != "" && f.GatewayKey == movement && h.setup.Kind.ByHand() { // it was written down before the gateway named it
		keys = append(keys, string(payment.NoticeRefunded)+" "+f.RequestKey())
	}
	undone, err := payment.Undo(ctx, tx, h.setup, h.actor.Name, keys...)
	if err != nil {
		return err
	}
	if err := h.note(ctx, tx, r, "refund_failed", map[string]any{"amount": h.n.Money(), "refund": f.Key, "why": h.n.Words}); err != nil {
		return err
	}
	switch {
	case ours && undone == 0 && (f.State == payment.RefundDone || f.Former(h.n.CheckoutKey)):
		return nil // it went back otherwise, or is asked for anew by now
	case ours:
		return failed(ctx, tx, h.actor, r, f, h.n.Words)
	case undone == 0: // it never was back: nothing changed
		return nil
	}
	return h.again(ctx, tx, r)
}

// again writes down that money which had gone back outside is there again: of tickets that ended it is due, and a person looks.
func (h *hearing) again(ctx context.Context, tx pgx.Tx, r Reservation) error {
	if r.ID == 0 {
		return h.except(ctx, tx, "refund_failed")
	}
	money, err := payment.MoneyOf(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	if over := money.Kept() + money.SparedMinor - money.CostMinor; over > 0 {
		if err := owe(ctx, tx, h.actor, r, over, payment.TicketCancelled); err != nil {
			return err
		}
	}
	return h.except(ctx, tx, "refund_failed")
}
