package payment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
)

// RefundReason is why money is to go back; its words are refund_why_<reason>.
type RefundReason string

// The reasons.
const (
	PaidLate        RefundReason = "paid_late"        // after the hold, and a seat is gone
	PaidTwice       RefundReason = "paid_twice"       // for what was paid already
	PaidTooMuch     RefundReason = "paid_too_much"    // more than it costs
	PaidInPart      RefundReason = "paid_in_part"     // the hold ended before the rest came
	PaidOverLimit   RefundReason = "paid_over_limit"  // after the hold, when its buyer has as many tickets as they may
	PaidAfterEnd    RefundReason = "paid_after_end"   // for what was cancelled or given back
	TicketCancelled RefundReason = "ticket_cancelled" // its buyer gave it back
	EventCancelled  RefundReason = "event_cancelled"
	NobodysMoney    RefundReason = "nobodys_money" // it belonged to no order
)

// RefundReasons are all of them.
var RefundReasons = []RefundReason{PaidLate, PaidTwice, PaidTooMuch, PaidInPart, PaidOverLimit, PaidAfterEnd, TicketCancelled, EventCancelled, NobodysMoney}

// RefundState is where money that is to go back stands.
type RefundState string

// The states.
const (
	RefundDue    RefundState = "due"
	RefundAsked  RefundState = "asked" // the gateway was asked; it may have done it
	RefundDone   RefundState = "done"
	RefundFailed RefundState = "failed" // a person must look
)

// Bounds of asking a gateway for a refund.
const (
	askLongest = 8 * time.Hour // between two attempts
	askMost    = 24            // attempts: a week with the pauses of askPause; then a person looks
)

// Refund is money that is to go back.
type Refund struct {
	OrganisationID int64
	ID             int64
	PaymentID      int64
	ReservationID  int64 // 0: it belonged to none
	AmountMinor    int64
	Currency       string
	Reason         RefundReason
	Key            string
	GatewayKey     string
	State          RefundState
	Attempts       int
	Request        int    // which it is, or will be: of one that failed for sure, the next
	DoneBy         string // who paid it out by hand; empty: nobody
	GatewayID      int64
	PaymentKey     string // the gateway's name of the payment
	Disputed       bool   // the payer's bank asks the payment back: nothing of it is given back meanwhile
}

// requestMark stands between the key of a refund and the number of its request, in the key that a gateway is given.
const requestMark = "/"

// RequestKey is the idempotency key of its request: a repeat of that uses it again, and another request has another.
func (r Refund) RequestKey() string {
	if r.Request == 1 {
		return r.Key
	}
	return r.Key + requestMark + strconv.Itoa(r.Request)
}

// Former tells whether a gateway speaks of a request that was over before this one.
func (r Refund) Former(requestKey string) bool {
	return strings.HasPrefix(requestKey, r.Key) && requestKey != r.RequestKey()
}

// Money is its amount.
func (r Refund) Money() i18n.Money { return i18n.Money{Minor: r.AmountMinor, Currency: r.Currency} }

const refundQuery = `
select f.organisation_id, f.id, f.payment_id, coalesce(f.reservation_id, 0) as reservation_id, f.amount_minor, f.currency, f.reason, f.key,
       f.gateway_key, f.state, f.attempts, f.request, coalesce(f.done_by, '') as done_by, p.gateway_id, p.gateway_key as payment_key,
       dispute_open(p.organisation_id, p.gateway_id, p.gateway_key) as disputed
  from refund f join payment p on (p.organisation_id, p.id) = (f.organisation_id, f.payment_id)
 where f.organisation_id = $1 `

// ErrTooMuch says that more is to go back than came in and is still there. No rule leads here; where one would, nothing is promised.
var ErrTooMuch = errors.New("more would go back than came in")

// Owe writes down that money is to go back, of the given payments in their order, as much of each as is left of it. What a gateway
// gives back by itself is asked for by a job, once no dispute about the payment is open; the rest a person pays out.
func Owe(ctx context.Context, tx pgx.Tx, organisationID int64, of []Received, amountMinor int64, reason RefundReason) (owed []Refund, err error) {
	for _, from := range of {
		part := min(amountMinor, from.AmountMinor-from.BackMinor-from.DueMinor)
		if part <= 0 {
			continue
		}
		amountMinor -= part
		var id int64
		err := tx.QueryRow(ctx, `
insert into refund (organisation_id, payment_id, reservation_id, amount_minor, currency, reason, key, next_attempt_at)
select p.organisation_id, p.id, p.reservation_id, $3, p.currency, $4, 'rf_' || replace(gen_random_uuid()::text, '-', ''),
       case when g.kind = 'stripe' and not dispute_open(p.organisation_id, p.gateway_id, p.gateway_key) then clock() end
  from payment p join gateway g on (g.organisation_id, g.id) = (p.organisation_id, p.gateway_id)
 where p.organisation_id = $1 and p.id = $2 returning id`, organisationID, from.ID, part, reason).Scan(&id)
		if err != nil {
			return nil, fmt.Errorf("write down what is to go back: %w", err)
		}
		one, err := ReadRefund(ctx, tx, organisationID, id)
		if err != nil {
			return nil, err
		}
		owed = append(owed, one)
	}
	if amountMinor > 0 {
		return nil, ErrTooMuch
	}
	return owed, nil
}

// ReadRefund reads one.
func ReadRefund(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Refund, error) {
	r, found, err := oneRefund(ctx, tx, ` and f.id = $2`, organisationID, id)
	if err == nil && !found {
		err = pgx.ErrNoRows
	}
	return r, err
}

func oneRefund(ctx context.Context, tx pgx.Tx, where string, args ...any) (Refund, bool, error) {
	rows, err := tx.Query(ctx, refundQuery+where, args...)
	if err != nil {
		return Refund{}, false, fmt.Errorf("read the refund: %w", err)
	}
	r, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[Refund])
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read the refund: %w", err)
	}
	return r, true, nil
}

// FindRefund finds the refund of which a notice speaks: by our name of it or by the gateway's. Money that went back without our name
// is the first refund of the same amount of the payment that somebody wrote down as paid out by hand and that the gateway has not named
// yet; else the first that is due and that the gateway was not asked for: it was done there instead.
func FindRefund(ctx context.Context, tx pgx.Tx, s Setup, n GatewayNotice, movement string) (Refund, bool, error) {
	key, _, _ := strings.Cut(n.CheckoutKey, requestMark)
	r, found, err := oneRefund(ctx, tx, ` and p.gateway_id = $2 and f.key = $3`, s.OrganisationID, s.ID, key)
	if found || err != nil {
		return r, found, err
	}
	r, found, err = oneRefund(ctx, tx, ` and p.gateway_id = $2 and f.gateway_key = $3 and $3 <> ''`, s.OrganisationID, s.ID, movement)
	if found || err != nil || n.Kind != NoticeRefunded || n.CheckoutKey != "" {
		return r, found, err
	}
	return oneRefund(ctx, tx, ` and p.gateway_id = $2 and p.gateway_key = $3 and p.gateway_key <> '' and f.amount_minor = $4 and f.currency = $5
   and (f.state = 'failed' or f.state = 'due' and f.attempts = 0 or f.state = 'done' and f.done_by <> '' and f.gateway_key = '' and $6)
 order by f.state = 'done' desc, f.id limit 1`, s.OrganisationID, s.ID, n.GatewayKey, n.AmountMinor, n.Currency, s.Kind.ByHand())
}

// Name keeps the gateway's name of a refund that was written down as paid out by hand, and of which it says the same.
func Name(ctx context.Context, tx pgx.Tx, r Refund, gatewayKey string) error {
	_, err := tx.Exec(ctx, `update refund set gateway_key = $3 where organisation_id = $1 and id = $2 and gateway_key = ''`,
		r.OrganisationID, r.ID, gatewayKey)
	if err != nil {
		return fmt.Errorf("keep the gateway's name of the refund: %w", err)
	}
	return nil
}

// Finish writes down that money is back. by is who paid it out by hand; empty: the gateway.
func Finish(ctx context.Context, tx pgx.Tx, r Refund, gatewayKey, by string) error {
	_, err := tx.Exec(ctx, `
update refund set state = 'done', ended_at = clock(), next_attempt_at = null, failure = '', done_by = nullif($4, ''),
       gateway_key = case when $3 = '' then gateway_key else $3 end
 where organisation_id = $1 and id = $2 and state <> 'done'`, r.OrganisationID, r.ID, gatewayKey, by)
	if err != nil {
		return fmt.Errorf("write down that the money is back: %w", err)
	}
	return nil
}

// Fail writes down that money did not go back: a person must look. Unless nobody answered, its request is over, and the next has another
// key. What became of it meanwhile stays.
func Fail(ctx context.Context, tx pgx.Tx, r Refund, words string, answered bool) (failed bool, err error) {
	tag, err := tx.Exec(ctx, `
update refund set state = 'failed', ended_at = null, next_attempt_at = null, failure = $3, done_by = null, gateway_key = '',
       request = request + case when $4 then 1 else 0 end
 where organisation_id = $1 and id = $2 and state = $5 and request = $6`, r.OrganisationID, r.ID, words, answered, r.State, r.Request)
	if err != nil {
		return false, fmt.Errorf("write down that the money did not go back: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// RefundsToAsk are those that a gateway is to be asked for, of all organisations.
func RefundsToAsk(ctx context.Context, tx pgx.Tx, most int) ([]Keyed, error) {
	return dueKeys(ctx, tx, `select organisation_id, refund_id as id from refunds_to_ask($1)`, most)
}

// askPause is how long after an attempt the next one comes: a minute, and then each twice as long.
const askPause = `least($3::interval, interval '1 minute' * power(2, least(attempts, 12)))`

// TakeRefund takes a refund to ask for: of several that would, one gets it, and the next attempt is set before the gateway is asked.
func TakeRefund(ctx context.Context, tx pgx.Tx, due Keyed) (Refund, bool, error) {
	var id int64
	err := tx.QueryRow(ctx, `
update refund set attempts = attempts + 1, state = 'asked', next_attempt_at = clock() + `+askPause+`
 where organisation_id = $1 and id = $2 and next_attempt_at <= clock() and state in ('due', 'asked') returning id`,
		due.OrganisationID, due.ID, askLongest).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Refund{}, false, nil
	}
	if err != nil {
		return Refund{}, false, fmt.Errorf("take the refund to ask for: %w", err)
	}
	r, err := ReadRefund(ctx, tx, due.OrganisationID, id)
	return r, err == nil, err
}

// AskedEnough tells that a gateway was asked so often that a person must look.
func (r Refund) AskedEnough() bool { return r.Attempts >= askMost }

// Asked writes down what a gateway answered that has neither done nor refused it. It is asked again: without words it is under way there,
// and the notice that follows may be lost.
func Asked(ctx context.Context, tx pgx.Tx, r Refund, gatewayKey, words string) error {
	_, err := tx.Exec(ctx, `
update refund set failure = $3, gateway_key = case when $4 = '' then gateway_key else $4 end
 where organisation_id = $1 and id = $2 and state = 'asked'`, r.OrganisationID, r.ID, words, gatewayKey)
	if err != nil {
		return fmt.Errorf("write down what the gateway answered: %w", err)
	}
	return nil
}

// AskAgain has a gateway asked anew for what failed.
func AskAgain(ctx context.Context, tx pgx.Tx, r Refund) error {
	_, err := tx.Exec(ctx, `
update refund set state = 'due', attempts = 1, failure = '', next_attempt_at = clock() where organisation_id = $1 and id = $2 and state = 'failed'`,
		r.OrganisationID, r.ID)
	if err != nil {
		return fmt.Errorf("have the gateway asked again: %w", err)
	}
	return nil
}

// Withdraw ends the refunds of a payment that no gateway was asked for, because the money went another way. It tells how much they
// were, and why the first was due.
func Withdraw(ctx context.Context, tx pgx.Tx, organisationID, paymentID int64) (reason RefundReason, withdrawnMinor int64, err error) {
	err = tx.QueryRow(ctx, `
with ended as (
  update refund set state = 'done', ended_at = clock(), next_attempt_at = null, failure = 'withdrawn'
   where organisation_id = $1 and payment_id = $2 and (state = 'failed' or state = 'due') returning id, reason, amount_minor)
select coalesce((select reason from ended order by id limit 1), ''), coalesce(sum(amount_minor), 0)::bigint from ended`, organisationID, paymentID).Scan(
		&reason, &withdrawnMinor)
	if err != nil {
		return "", 0, fmt.Errorf("withdraw the refunds: %w", err)
	}
	return reason, withdrawnMinor, nil
}

// PauseRefunds has a gateway not asked for what is due of a payment while a dispute about it is open, and asked when none is any more.
func PauseRefunds(ctx context.Context, tx pgx.Tx, s Setup, paymentKey string) error {
	if s.Kind.ByHand() {
		return nil
	}
	_, err := tx.Exec(ctx, `
update refund f set next_attempt_at = case when d.open then null else clock() end
  from payment p cross join lateral (select dispute_open(p.organisation_id, p.gateway_id, p.gateway_key) as open) d
 where p.gateway_id = $2 and p.gateway_key = $3 and p.gateway_key <> '' and p.organisation_id = $1
   and f.payment_id = p.id and f.organisation_id = p.organisation_id and f.state = 'due' and (f.next_attempt_at is null) <> d.open`,
		s.OrganisationID, s.ID, paymentKey)
	if err != nil {
		return fmt.Errorf("have the refunds wait for the dispute: %w", err)
	}
	return nil
}
