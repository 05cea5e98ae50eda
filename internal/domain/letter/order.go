package letter

import (
	"cmp"
	"context"
	_ "embed" // the statements
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
)

// ReservationPath is where a buyer finds their reservation, under the public address: its reference follows.
const ReservationPath = "/r/"

// order is a reservation with all that its buyer may be told of it.
type order struct {
	ReservationID int64
	Reference     string
	State         string // as it was written down
	WasConfirmed  bool
	Name          string
	Email         string
	Phone         string
	Locale        string
	Currency      string
	Organisation  string
	Contact       string // e-mail address to which the organisation's people turn; empty: none
	Zone          string // of the organisation
	ToldBefore    int    // number of the cause of which the notice before this one spoke
	ToldLater     bool   // a notice after this one speaks of a later cause

	tickets []ticket
	refunds []refund
}

// ticket is one of a reservation, with the seat that it is or was for.
type ticket struct {
	ReservationID int64
	Number        int
	PriceMinor    int64
	CancelledAt   *time.Time
	CancelReason  string
	Unpaid        bool  // it ended before it was paid: given up in the cart, or exchanged there
	RefundMinor   int64 // what its cancelling gave back
	Event         string
	Kind          string
	Zone          string // of the room's plan
	SittingID     int64
	StartsAt      time.Time
	EndsAt        time.Time
	AtZone        string // time zone of the sitting
	Place         string
	Seat          string
	ExpiresAt     *time.Time // of the hold; nil: it is final
}

// refund is money of a reservation that goes back, or went.
type refund struct {
	ReservationID int64
	AmountMinor   int64
	Currency      string
	Reason        payment.RefundReason
	State         payment.RefundState
	Withdrawn     bool // the money went another way
	PaidMinor     int64
	PaidAt        time.Time
	ByItself      bool // the gateway gives it back; else a person does
}

//go:embed orders.sql
var readOrdersSQL string

//go:embed tickets.sql
var readTicketsSQL string

//go:embed refunds.sql
var readRefundsSQL string

// readOrders reads the reservations that notices of one kind speak of, in their order.
func readOrders(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]order, error) {
	ids, revisions := make([]int64, len(due)), make([]int, len(due))
	for i, d := range due {
		ids[i], revisions[i] = d.SubjectID, d.Revision
	}
	orders, err := all[order](ctx, tx, readOrdersSQL, organisationID, ids, revisions, notice.CountedWith(due[0].Kind))
	if err == nil && len(orders) != len(due) {
		err = fmt.Errorf("%d of %d are there", len(orders), len(due))
	}
	if err != nil {
		return nil, fmt.Errorf("read the reservations to tell of: %w", err)
	}
	once := slices.Compact(slices.Sorted(slices.Values(ids)))
	tickets, err := all[ticket](ctx, tx, readTicketsSQL, organisationID, once)
	if err != nil {
		return nil, fmt.Errorf("read the tickets to tell of: %w", err)
	}
	refunds, err := all[refund](ctx, tx, readRefundsSQL, organisationID, once)
	if err != nil {
		return nil, fmt.Errorf("read what goes back: %w", err)
	}
	ticketsOf, refundsOf := map[int64][]ticket{}, map[int64][]refund{}
	for _, one := range tickets {
		ticketsOf[one.ReservationID] = append(ticketsOf[one.ReservationID], one)
	}
	for _, one := range refunds {
		refundsOf[one.ReservationID] = append(refundsOf[one.ReservationID], one)
	}
	for i := range orders {
		orders[i].tickets, orders[i].refunds = ticketsOf[orders[i].ReservationID], refundsOf[orders[i].ReservationID]
	}
	return orders, nil
}

func all[T any](ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, statement, append([]any{pg.PlanAnew}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// story is what one notice tells of a reservation.
type story struct {
	due     notice.Due
	order   order
	voice   i18n.Voice
	link    string // to the reservation; empty: none is known
	what    string // names its sentences
	tickets []ticket
	refunds []refund // of which it tells; of tickets that ended, none: what they give back stands with them
	papers  Tickets  // all of the reservation, for what is attached to an e-mail
}

// composeOrders words notices to buyers. Public is the address under which people reach the pages; empty: they do not.
func composeOrders(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		orders, err := readOrders(ctx, tx, organisationID, due)
		if err != nil {
			return nil, err
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return nil, err
		}
		papers, err := attachable(ctx, tx, organisationID, due, now)
		if err != nil {
			return nil, err
		}
		messages := make([]notice.Message, len(due))
		for i, d := range due {
			told := tell(d, orders[i])
			told.papers = papers[orders[i].ReservationID]
			if public != "" {
				told.link = public + ReservationPath + orders[i].Reference
			}
			if messages[i].Verdict = told.verdict(now); messages[i].Verdict != notice.VerdictSend {
				continue
			}
			if messages[i], err = told.message(); err != nil {
				return nil, err
			}
		}
		return messages, nil
	}
}

// tell says which of the tickets and of the money a notice speaks of: of what came behind the cause of which the one before it spoke,
// up to its own.
func tell(d notice.Due, o order) story {
	s := story{due: d, order: o, voice: i18n.Speak(o.Locale), what: "confirmed"}
	switch d.Kind {
	case notice.KindRefundDue, notice.KindReservationLapsed:
		s.refunds = o.money(d.Revision)
		if s.what = whyBack(s.refunds); s.what != string(payment.PaidAfterEnd) { // which gives no seats
			s.tickets = o.kept()
		}
	case notice.KindTicketsCancelled, notice.KindEventCancelled:
		s.tickets = o.ended(d.Revision)
		s.what = whyEnded(d.Kind, s.tickets)
	case notice.KindTicketsRenamed:
		s.tickets, s.what = o.open(), "renamed"
	case notice.KindTicketsMoved:
		s.tickets, s.what = o.open(), "moved"
	case notice.KindPlacesOffered:
		s.tickets, s.what = o.open(), "offered"
	case notice.KindOfferMissed:
		s.tickets, s.what = o.kept(), "missed"
	default:
		s.tickets = o.open()
	}
	return s
}

// verdict says whether a notice is still true, and in time. Money is never too late to be told of.
func (s story) verdict(now time.Time) notice.Verdict {
	switch s.due.Kind {
	case notice.KindRefundDue, notice.KindReservationLapsed:
		if len(s.refunds) == 0 {
			return notice.VerdictWithdrawn
		}
	case notice.KindTicketsRenamed:
		if !s.order.stands() || len(s.tickets) == 0 || s.papers.transfers() > s.due.Revision { // the last word says all names
			return notice.VerdictWithdrawn
		}
		if !slices.ContainsFunc(s.tickets, func(t ticket) bool { return t.EndsAt.After(now) }) {
			return notice.VerdictTooLate
		}
	case notice.KindPlacesOffered:
		if until := heldUntil(s.tickets); until == nil || !until.After(now) || s.order.State != "held" && s.order.State != "payment_started" {
			return notice.VerdictWithdrawn
		}
	case notice.KindOfferMissed:
		if s.order.stands() || len(s.tickets) == 0 { // they paid late, and the places were still free
			return notice.VerdictWithdrawn
		}
	case notice.KindReservationConfirmed, notice.KindTicketsMoved:
		if !s.order.stands() || len(s.tickets) == 0 || s.due.Kind == notice.KindTicketsMoved && s.order.ToldLater { // what became of it is told by its own notice
			return notice.VerdictWithdrawn
		}
		if !slices.ContainsFunc(s.tickets, func(t ticket) bool { return t.EndsAt.After(now) }) {
			return notice.VerdictTooLate
		}
	default:
		if len(s.tickets) == 0 {
			return notice.VerdictWithdrawn
		}
	}
	return notice.VerdictSend
}

// stands tells whether its tickets are its buyer's for good.
func (o order) stands() bool { return o.State == "confirmed" || o.State == "disputed" }

// open are the tickets that were not cancelled.
func (o order) open() []ticket {
	return slices.DeleteFunc(slices.Clone(o.tickets), func(t ticket) bool { return t.CancelledAt != nil })
}

// kept are the tickets that its buyer wanted: all that they did not give up or exchange in the cart. Where some are left, those.
func (o order) kept() []ticket {
	if open := o.open(); len(open) > 0 {
		return open
	}
	return slices.DeleteFunc(slices.Clone(o.tickets), func(t ticket) bool { return t.Unpaid })
}

// ended are the tickets that ended up to a cause and were not told of before it.
func (o order) ended(upTo int) []ticket {
	over := slices.DeleteFunc(slices.Clone(o.tickets), func(t ticket) bool { return t.CancelledAt == nil || t.Unpaid })
	slices.SortFunc(over, func(a, b ticket) int {
		return cmp.Or(a.CancelledAt.Compare(*b.CancelledAt), cmp.Compare(a.Number, b.Number))
	})
	over = over[min(o.ToldBefore, len(over)):min(upTo, len(over))]
	slices.SortStableFunc(over, func(a, b ticket) int { return a.StartsAt.Compare(b.StartsAt) })
	return over
}

// money is what became due up to a cause and was not told of before it; what goes back because tickets ended is told with them.
func (o order) money(upTo int) []refund {
	due := slices.DeleteFunc(slices.Clone(o.refunds), refund.calledOff)
	due = due[min(o.ToldBefore, len(due)):min(upTo, len(due))]
	return slices.DeleteFunc(due, func(r refund) bool { return r.Withdrawn })
}

// calledOff tells that its buyer is told of it with the tickets that ended, and not by a notice of its own.
func (r refund) calledOff() bool {
	return r.Reason == payment.TicketCancelled || r.Reason == payment.EventCancelled
}

// whyBack names the story of money by the reason for which it goes back.
func whyBack(refunds []refund) string {
	for _, known := range []payment.RefundReason{
		payment.PaidLate, payment.PaidTwice, payment.PaidTooMuch, payment.PaidAfterEnd, payment.PaidInPart, payment.PaidOverLimit,
	} {
		if len(refunds) > 0 && refunds[0].Reason == known {
			return string(known)
		}
	}
	return "money_back"
}

// whyEnded names the story of tickets that ended.
func whyEnded(kind notice.Kind, tickets []ticket) string {
	if kind == notice.KindTicketsCancelled && len(tickets) > 0 && tickets[0].CancelReason == "charged_back" {
		return "charged_back"
	}
	return string(kind)
}

// backMinor is how much goes back, or went.
func (s story) backMinor() (sum int64) {
	if len(s.refunds) > 0 {
		for _, r := range s.refunds {
			sum += r.AmountMinor
		}
		return sum
	}
	if s.order.WasConfirmed {
		for _, t := range s.tickets {
			sum += t.RefundMinor
		}
		return sum
	}
	for _, r := range s.order.refunds { // a cart that was paid in part: what a ticket gave back was never paid
		if r.calledOff() && !r.Withdrawn {
			sum += r.AmountMinor
		}
	}
	return sum
}

// way says how money goes back: done, by itself, or by hand; by the one that takes longest.
func (s story) way() string {
	of := s.refunds
	if len(of) == 0 {
		of = slices.DeleteFunc(slices.Clone(s.order.refunds), func(r refund) bool { return !r.calledOff() })
	}
	way := "done"
	for _, r := range of {
		switch {
		case r.Withdrawn || r.State == payment.RefundDone:
		case !r.ByItself || r.State == payment.RefundFailed:
			return "hand"
		default:
			way = "itself"
		}
	}
	return way
}

// zone is that in which instants are said: of the first sitting.
func (s story) zone() string {
	if len(s.tickets) > 0 {
		return s.tickets[0].AtZone
	}
	return s.order.Zone
}

func (s story) money(minor int64) i18n.Money {
	return i18n.Money{Minor: minor, Currency: s.order.Currency}
}
