package payment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
)

// NoticeKind is what a gateway says of money.
type NoticeKind string

// The kinds.
const (
	NoticePaid          NoticeKind = "paid"
	NoticeFailed        NoticeKind = "failed"  // of a checkout: nothing was paid
	NoticeExpired       NoticeKind = "expired" // of a checkout: nothing can be paid there any more
	NoticeRefunded      NoticeKind = "refunded"
	NoticeRefundFailed  NoticeKind = "refund_failed" // what was to go back, or was said to be back, is not
	NoticeDisputeOpened NoticeKind = "dispute_opened"
	NoticeDisputeWon    NoticeKind = "dispute_won"
	NoticeDisputeLost   NoticeKind = "dispute_lost"
)

// NoticeKinds are all of them.
var NoticeKinds = []NoticeKind{
	NoticePaid, NoticeFailed, NoticeExpired, NoticeRefunded, NoticeRefundFailed, NoticeDisputeOpened, NoticeDisputeWon, NoticeDisputeLost,
}

// Moves tells whether money moves with it.
func (k NoticeKind) Moves() bool {
	return k == NoticePaid || k == NoticeRefunded || k == NoticeRefundFailed || k == NoticeDisputeLost
}

// GatewayNotice is one thing that a gateway says, whether it came by itself or was asked for.
type GatewayNotice struct {
	ID          int64 // 0 until it is kept
	Key         string
	Kind        NoticeKind
	CheckoutKey string // ours, of the checkout or of the refund, as the gateway gave it back
	GatewayKey  string // its name of the payment; of a checkout without one, that of its page
	PageKey     string // its name of the page, where it says so; not kept
	AmountMinor int64
	FeeMinor    int64 // of a dispute that was lost, in the same currency
	Currency    string
	OccurredAt  time.Time
	Words       string // why something failed
	Body        string // as it came
}

// Money is its amount.
func (n GatewayNotice) Money() i18n.Money {
	return i18n.Money{Minor: n.AmountMinor, Currency: n.Currency}
}

// NoticeState is what was done about a notice.
type NoticeState string

// The states.
const (
	NoticeApplied   NoticeState = "applied"
	NoticeWaiting   NoticeState = "waiting"   // for the payment that it speaks of
	NoticeException NoticeState = "exception" // a person must look
)

// bodyMost bounds what is kept of a notice, in bytes; the edge takes no longer ones.
const bodyMost = 64 << 10

// Alone waits until nobody else applies or decides what is about a payment of a gateway, whether its row is there yet or not, and keeps
// others waiting until the transaction ends. It is taken before any row is: before that of a reservation, too.
func Alone(ctx context.Context, tx pgx.Tx, gatewayID int64, paymentKey string) error {
	if paymentKey == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1::bigint || ' ' || $2::text, 0))`, gatewayID, paymentKey)
	if err != nil {
		return fmt.Errorf("wait for who is at the payment: %w", err)
	}
	return nil
}

// AloneWithNotice is Alone for the payment of which a notice speaks.
func AloneWithNotice(ctx context.Context, tx pgx.Tx, organisationID, noticeID int64) error {
	return aloneWith(ctx, tx, `select gateway_id, gateway_key from gateway_notice where organisation_id = $1 and id = $2`, organisationID, noticeID)
}

// AloneWithRefund is Alone for the payment of which money is to go back.
func AloneWithRefund(ctx context.Context, tx pgx.Tx, organisationID, refundID int64) error {
	return aloneWith(ctx, tx, `
select p.gateway_id, p.gateway_key from refund f join payment p on (p.organisation_id, p.id) = (f.organisation_id, f.payment_id)
 where f.organisation_id = $1 and f.id = $2`, organisationID, refundID)
}

func aloneWith(ctx context.Context, tx pgx.Tx, query string, organisationID, id int64) error {
	var gatewayID int64
	var key string
	err := tx.QueryRow(ctx, query, organisationID, id).Scan(&gatewayID, &key)
	if errors.Is(err, pgx.ErrNoRows) { // whoever locks it says so
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the payment: %w", err)
	}
	return Alone(ctx, tx, gatewayID, key)
}

// KeepNotice keeps a notice under the gateway's own name of the movement, as applied. A repeat is not fresh: it waits for the first
// to commit, and changes nothing. What one gateway says of one payment is kept and applied one after the other.
func KeepNotice(ctx context.Context, tx pgx.Tx, s Setup, n *GatewayNotice) (fresh bool, err error) {
	if err := Alone(ctx, tx, s.ID, n.GatewayKey); err != nil {
		return false, err
	}
	body := n.Body[:min(len(n.Body), bodyMost)]
	err = tx.QueryRow(ctx, `
insert into gateway_notice (organisation_id, gateway_id, key, kind, checkout_key, gateway_key, amount_minor, fee_minor, currency, occurred_at, body, words, state)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'applied') on conflict (organisation_id, gateway_id, key) do nothing returning id`,
		s.OrganisationID, s.ID, n.Key, n.Kind, n.CheckoutKey, n.GatewayKey, n.AmountMinor, n.FeeMinor, n.Currency, n.OccurredAt, body, n.Words).Scan(&n.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("keep the notice: %w", err)
	}
	return true, nil
}

// Mark says what was done about a notice. A reason is needed unless it was applied; of an applied one it may say how. One that is left to
// a person is open again, whatever was settled before.
func Mark(ctx context.Context, tx pgx.Tx, organisationID, noticeID int64, state NoticeState, reason string) error {
	_, err := tx.Exec(ctx, `update gateway_notice set state = $3, reason = $4, settled_at = case when $3 = 'applied' then settled_at end,
       settled_by = case when $3 = 'applied' then settled_by end
 where organisation_id = $1 and id = $2`, organisationID, noticeID, state, reason)
	if err != nil {
		return fmt.Errorf("mark the notice: %w", err)
	}
	return nil
}

const noticeColumns = `id, key, kind, checkout_key, gateway_key, amount_minor, fee_minor, currency, occurred_at, words`

func scanNotice(row pgx.CollectableRow) (n GatewayNotice, err error) {
	err = row.Scan(&n.ID, &n.Key, &n.Kind, &n.CheckoutKey, &n.GatewayKey, &n.AmountMinor, &n.FeeMinor, &n.Currency, &n.OccurredAt, &n.Words)
	return n, err
}

// Waiting are the notices that came before the payment of which they speak, in the order in which it happened.
func Waiting(ctx context.Context, tx pgx.Tx, s Setup, paymentKey string) ([]GatewayNotice, error) {
	rows, err := tx.Query(ctx, `
select `+noticeColumns+` from gateway_notice
 where gateway_id = $2 and organisation_id = $1 and gateway_key = $3 and state = 'waiting' order by occurred_at, id`,
		s.OrganisationID, s.ID, paymentKey)
	if err != nil {
		return nil, fmt.Errorf("find the notices that wait: %w", err)
	}
	waiting, err := pgx.CollectRows(rows, scanNotice)
	if err != nil {
		return nil, fmt.Errorf("find the notices that wait: %w", err)
	}
	return waiting, nil
}

// Said tells whether a gateway said something already.
func Said(ctx context.Context, tx pgx.Tx, s Setup, keys ...string) (said bool, err error) {
	err = tx.QueryRow(ctx, `select exists (select from gateway_notice where organisation_id = $1 and gateway_id = $2 and key = any($3))`,
		s.OrganisationID, s.ID, keys).Scan(&said)
	if err != nil {
		return false, fmt.Errorf("ask what the gateway said: %w", err)
	}
	return said, nil
}

// Movement is money of a gateway, as a row of payment.
type Movement struct {
	Kind          string // received, refunded, charged_back, dispute_fee
	ReservationID int64  // 0: it belongs to nobody yet
	RefundsID     int64  // the payment of which it goes back; 0: it came in
	AmountMinor   int64
	Actor         string
	Receipt       string
}

// Move records money that a notice speaks of. The notice's name is its identity.
func Move(ctx context.Context, tx pgx.Tx, s Setup, n GatewayNotice, m Movement) (id int64, err error) {
	err = tx.QueryRow(ctx, `
insert into payment (organisation_id, kind, reservation_id, gateway_id, gateway_notice_id, gateway_key, refunds_id, amount_minor, currency, method,
                     received_at, receipt, idempotency_key, actor)
values ($1, $2, nullif($3, 0), $4, $5, $6, nullif($7, 0), $8, $9, $10, $11, $12, $13, $14) returning id`,
		s.OrganisationID, m.Kind, m.ReservationID, s.ID, n.ID, n.GatewayKey, m.RefundsID, m.AmountMinor, n.Currency, s.Name,
		n.OccurredAt, m.Receipt, fmt.Sprintf("gateway %d %s %s", s.ID, m.Kind, n.Key), m.Actor).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("record the money: %w", err)
	}
	return id, nil
}

// Received is money that came in through a gateway.
type Received struct {
	ID            int64
	ReservationID int64 // 0: nobody's yet
	AmountMinor   int64
	Currency      string
	BackMinor     int64 // of it, that went back or was charged back
	DueMinor      int64 // of it, that is to go back
}

// LeftMinor is what of it did not go back.
func (r Received) LeftMinor() int64 { return r.AmountMinor - r.BackMinor }

const receivedQuery = `
select p.id, coalesce(p.reservation_id, 0), p.amount_minor, p.currency,
       coalesce((select sum(b.amount_minor) from payment b
                  where b.refunds_id = p.id and b.organisation_id = p.organisation_id and b.kind in ('refunded', 'charged_back')
                    and not exists (select from payment u where u.organisation_id = b.organisation_id and u.reverses_id = b.id)), 0)::bigint,
       coalesce((select sum(f.amount_minor) from refund f
                  where f.payment_id = p.id and f.organisation_id = p.organisation_id and f.state <> 'done'), 0)::bigint
  from payment p
 where p.organisation_id = $1 and p.kind = 'received' and p.gateway_id is not null
   and not exists (select from payment u where u.organisation_id = p.organisation_id and u.reverses_id = p.id)`

func scanReceived(row pgx.CollectableRow) (r Received, err error) {
	err = row.Scan(&r.ID, &r.ReservationID, &r.AmountMinor, &r.Currency, &r.BackMinor, &r.DueMinor)
	return r, err
}

// FindReceived finds the payment of a gateway's name.
func FindReceived(ctx context.Context, tx pgx.Tx, s Setup, paymentKey string) (Received, bool, error) {
	rows, err := tx.Query(ctx, receivedQuery+` and p.gateway_id = $2 and p.gateway_key = $3 and p.gateway_key <> '' order by p.id limit 1`,
		s.OrganisationID, s.ID, paymentKey)
	if err != nil {
		return Received{}, false, fmt.Errorf("find the payment: %w", err)
	}
	found, err := pgx.CollectOneRow(rows, scanReceived)
	if errors.Is(err, pgx.ErrNoRows) {
		return Received{}, false, nil
	}
	if err != nil {
		return Received{}, false, fmt.Errorf("find the payment: %w", err)
	}
	return found, true, nil
}

// ReceivedOf is the payment of which money is to go back.
func ReceivedOf(ctx context.Context, tx pgx.Tx, r Refund) (Received, error) {
	rows, err := tx.Query(ctx, receivedQuery+` and p.id = $2`, r.OrganisationID, r.PaymentID)
	if err != nil {
		return Received{}, fmt.Errorf("read the payment: %w", err)
	}
	of, err := pgx.CollectExactlyOneRow(rows, scanReceived)
	if err != nil {
		return Received{}, fmt.Errorf("read the payment: %w", err)
	}
	return of, nil
}

// ReceivedFor are the payments of a reservation, the latest first.
func ReceivedFor(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]Received, error) {
	rows, err := tx.Query(ctx, receivedQuery+` and p.reservation_id = $2 order by p.id desc`, organisationID, reservationID)
	if err != nil {
		return nil, fmt.Errorf("read the payments: %w", err)
	}
	received, err := pgx.CollectRows(rows, scanReceived)
	if err != nil {
		return nil, fmt.Errorf("read the payments: %w", err)
	}
	return received, nil
}

// ReceivedBy is the payment that a notice brought, which belongs to nobody yet.
func ReceivedBy(ctx context.Context, tx pgx.Tx, organisationID, noticeID int64) (Received, bool, error) {
	rows, err := tx.Query(ctx, receivedQuery+` and p.gateway_notice_id = $2 and p.reservation_id is null`, organisationID, noticeID)
	if err != nil {
		return Received{}, false, fmt.Errorf("find the money of the notice: %w", err)
	}
	found, err := pgx.CollectOneRow(rows, scanReceived)
	if errors.Is(err, pgx.ErrNoRows) {
		return Received{}, false, nil
	}
	if err != nil {
		return Received{}, false, fmt.Errorf("find the money of the notice: %w", err)
	}
	return found, true, nil
}

// PutTo puts money that belonged to nobody to a reservation: it is taken from nowhere and recorded there, under the same name of
// the gateway.
func PutTo(ctx context.Context, tx pgx.Tx, organisationID int64, r Received, reservationID int64, actor string) error {
	for _, statement := range []string{`
insert into payment (organisation_id, kind, gateway_id, gateway_notice_id, amount_minor, currency, method, received_at, idempotency_key, reverses_id, reason, actor)
select organisation_id, 'reversed', gateway_id, gateway_notice_id, amount_minor, currency, method, clock(), 'taken from nobody ' || id, id, 'put_to_order', $3
  from payment where organisation_id = $1 and id = $2 and $4::bigint > 0`, `
insert into payment (organisation_id, kind, reservation_id, gateway_id, gateway_notice_id, gateway_key, amount_minor, currency, method, received_at,
                     receipt, idempotency_key, reason, actor)
select organisation_id, kind, $4, gateway_id, gateway_notice_id, gateway_key, amount_minor, currency, method, received_at, receipt,
       'put to an order ' || id, 'put_to_order', $3
  from payment where organisation_id = $1 and id = $2`} {
		if _, err := tx.Exec(ctx, statement, organisationID, r.ID, actor, reservationID); err != nil {
			return fmt.Errorf("put the money to the order: %w", err)
		}
	}
	return nil
}

// Undo takes back what was recorded as gone under one of the keys, because it is not: the bank did not take it. It tells how much came
// to be there again.
func Undo(ctx context.Context, tx pgx.Tx, s Setup, actor string, refundedKeys ...string) (minor int64, err error) {
	err = tx.QueryRow(ctx, `
with undone as (
  insert into payment (organisation_id, kind, reservation_id, gateway_id, gateway_notice_id, amount_minor, currency, method, received_at, idempotency_key,
                       reverses_id, reason, actor)
  select p.organisation_id, 'reversed', p.reservation_id, p.gateway_id, p.gateway_notice_id, p.amount_minor, p.currency, p.method, clock(),
         'not gone ' || p.id, p.id, 'refund_failed', $4
    from payment p join gateway_notice n on (n.organisation_id, n.id) = (p.organisation_id, p.gateway_notice_id)
   where p.organisation_id = $1 and p.gateway_id = $2 and p.kind = 'refunded' and n.key = any($3)
  on conflict (organisation_id, idempotency_key) do nothing
  returning amount_minor)
select coalesce(sum(amount_minor), 0)::bigint from undone`, s.OrganisationID, s.ID, refundedKeys, actor).Scan(&minor)
	if err != nil {
		return 0, fmt.Errorf("take the refund back: %w", err)
	}
	return minor, nil
}

// ReadNotices verifies what was posted to a gateway's hook, and reads it. What is genuine and cannot be understood, or cannot be kept as it
// stands, is Unreadable: its sender reads why, and would send the same for ever if it were told of a fault.
func ReadNotices(s Setup, header http.Header, body []byte, now time.Time) ([]GatewayNotice, error) {
	notices, err := s.Open().Read(header, body, now)
	if err != nil {
		return nil, err
	}
	if len(notices) > 0 && !keepable(string(body)) {
		return nil, unreadable("it is not UTF-8, or holds a zero byte")
	}
	for _, n := range notices {
		switch {
		case !keepable(n.Key) || !keepable(n.CheckoutKey) || !keepable(n.GatewayKey) || !keepable(n.PageKey) || !keepable(n.Currency) || !keepable(n.Words):
			return nil, unreadable("a name in it holds a zero byte")
		case n.AmountMinor < 0 || n.AmountMinor > MostMinor || n.FeeMinor < 0 || n.FeeMinor > MostMinor:
			return nil, unreadable("an amount in it is negative, or beyond all money")
		case n.OccurredAt.Year() < firstYear || n.OccurredAt.Year() > lastYear:
			return nil, unreadable("its instant is none of our time")
		}
	}
	return notices, nil
}

// The years in which money moves.
const (
	firstYear = 1970
	lastYear  = 9999
)

// keepable tells whether the database takes a text as it stands.
func keepable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
