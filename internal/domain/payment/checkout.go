package payment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// CheckoutState is where an attempt to be paid stands.
type CheckoutState string

// The states.
const (
	CheckoutStarting CheckoutState = "starting" // written down; whether the gateway made the page is not known
	CheckoutOpen     CheckoutState = "open"     // the buyer was sent there
	CheckoutPaid     CheckoutState = "paid"
	CheckoutFailed   CheckoutState = "failed"
	CheckoutExpired  CheckoutState = "expired"
)

// Bounds of looking at a checkout.
const (
	lookLongest = 30 * time.Minute    // between two looks
	lookNoMore  = 31 * 24 * time.Hour // after its start: no page and no bank takes longer
)

// checkoutPrefix begins our name of each checkout.
const checkoutPrefix = "pay_"

// Checkout is one attempt to be paid.
type Checkout struct {
	OrganisationID int64
	ID             int64
	ReservationID  int64
	GatewayID      int64
	AmountMinor    int64
	Currency       string
	Key            string
	GatewayKey     string
	URL            string
	State          CheckoutState
	StartedAt      time.Time
}

const checkoutColumns = `organisation_id, id, reservation_id, gateway_id, amount_minor, currency, key, gateway_key, url, state, started_at`

// Live tells whether it may still be paid.
func (c Checkout) Live() bool { return c.State == CheckoutStarting || c.State == CheckoutOpen }

// BeginCheckout writes down that a gateway is about to be asked. It is looked at soon, for whoever dies before they know more.
func BeginCheckout(ctx context.Context, tx pgx.Tx, s Setup, reservationID, amountMinor int64, currency string) (Checkout, error) {
	rows, err := tx.Query(ctx, `
insert into checkout (organisation_id, reservation_id, gateway_id, amount_minor, currency, key, look_at)
values ($1, $2, $3, $4, $5, $6, clock() + $7::interval) returning `+checkoutColumns,
		s.OrganisationID, reservationID, s.ID, amountMinor, currency, checkoutPrefix+strings.ToLower(rand.Text()), firstLookIn)
	if err != nil {
		return Checkout{}, fmt.Errorf("begin the checkout: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Checkout])
	if err != nil {
		return c, fmt.Errorf("begin the checkout: %w", err)
	}
	return c, nil
}

// LiveCheckouts are those of a reservation that may still be paid, the latest first.
func LiveCheckouts(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]Checkout, error) {
	rows, err := tx.Query(ctx, `
select `+checkoutColumns+` from checkout
 where reservation_id = $2 and organisation_id = $1 and state in ('starting', 'open') order by id desc`, organisationID, reservationID)
	if err != nil {
		return nil, fmt.Errorf("read the checkouts: %w", err)
	}
	live, err := pgx.CollectRows(rows, pgx.RowToStructByName[Checkout])
	if err != nil {
		return nil, fmt.Errorf("read the checkouts: %w", err)
	}
	return live, nil
}

// FindCheckout finds the checkout that a gateway speaks of, by our name of it. One of another gateway is none of its.
func FindCheckout(ctx context.Context, tx pgx.Tx, s Setup, n GatewayNotice) (Checkout, bool, error) {
	rows, err := tx.Query(ctx, `
select `+checkoutColumns+` from checkout
 where organisation_id = $1 and key = $2 and gateway_id = $3 and ($4 = '' or gateway_key in ('', $4))`, s.OrganisationID, n.CheckoutKey, s.ID, n.PageKey)
	if err != nil {
		return Checkout{}, false, fmt.Errorf("find the checkout: %w", err)
	}
	c, err := pgx.CollectOneRow(rows, pgx.RowToStructByName[Checkout])
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("find the checkout: %w", err)
	}
	return c, true, nil
}

// KeepPage keeps where the buyer pays, unless the checkout has ended meanwhile.
func KeepPage(ctx context.Context, tx pgx.Tx, c *Checkout, p Page) error {
	err := tx.QueryRow(ctx, `
update checkout set url = $3, gateway_key = $4, look_at = coalesce($5, look_at), state = case when state = 'starting' then 'open' else state end
 where organisation_id = $1 and id = $2 returning url, gateway_key, state`,
		c.OrganisationID, c.ID, p.URL, p.GatewayKey, instant(p.LookAt)).Scan(&c.URL, &c.GatewayKey, &c.State)
	if err != nil {
		return fmt.Errorf("keep the page: %w", err)
	}
	return nil
}

// EndCheckout writes down how a checkout ended. One that was paid stays so, and one that had ended otherwise can be paid still:
// it is the gateway that knows.
func EndCheckout(ctx context.Context, tx pgx.Tx, c Checkout, state CheckoutState, reason string) error {
	_, err := tx.Exec(ctx, `
update checkout set state = $3, ended_at = clock(), look_at = null, reason = $4
 where organisation_id = $1 and id = $2 and state <> 'paid' and (state in ('starting', 'open') or $3 = 'paid')`, c.OrganisationID, c.ID, state, reason)
	if err != nil {
		return fmt.Errorf("end the checkout: %w", err)
	}
	return nil
}

// Keyed is a row of some organisation, found over the fence.
type Keyed struct {
	OrganisationID int64
	ID             int64
}

// CheckoutsToLookAt are those that are due to be looked at, of all organisations.
func CheckoutsToLookAt(ctx context.Context, tx pgx.Tx, most int) ([]Keyed, error) {
	return dueKeys(ctx, tx, `select organisation_id, checkout_id as id from checkouts_to_look_at($1)`, most)
}

func dueKeys(ctx context.Context, tx pgx.Tx, query string, most int) ([]Keyed, error) {
	rows, err := tx.Query(ctx, query, most)
	if err != nil {
		return nil, fmt.Errorf("find what is due: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByName[Keyed])
	if err != nil {
		return nil, fmt.Errorf("find what is due: %w", err)
	}
	return due, nil
}

// TakeLook takes a checkout to look at: of several that would, one gets it, and the next look is set before the gateway is asked, so
// that it comes whatever happens to this one. Each pause is longer than the one before.
func TakeLook(ctx context.Context, tx pgx.Tx, due Keyed) (c Checkout, now time.Time, taken bool, err error) {
	err = tx.QueryRow(ctx, `
update checkout set looks = looks + 1,
       look_at = case when started_at + $4::interval < clock() then null
                      else clock() + least($3::interval, interval '1 minute' * power(2, least(looks, 10))) end
 where organisation_id = $1 and id = $2 and look_at <= clock() and state in ('starting', 'open')
returning `+checkoutColumns+`, clock()`, due.OrganisationID, due.ID, lookLongest, lookNoMore).Scan(
		&c.OrganisationID, &c.ID, &c.ReservationID, &c.GatewayID, &c.AmountMinor, &c.Currency, &c.Key, &c.GatewayKey, &c.URL, &c.State, &c.StartedAt, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, now, false, nil
	}
	if err != nil {
		return c, now, false, fmt.Errorf("take the checkout to look at: %w", err)
	}
	return c, now, true, nil
}

// LookSoon has the open checkouts of reservations looked at now, because nobody is to pay there any more.
func LookSoon(ctx context.Context, tx pgx.Tx, organisationID int64, reservations ...int64) error {
	_, err := tx.Exec(ctx, `
update checkout set look_at = clock() where reservation_id = any($2) and organisation_id = $1 and state = 'open'`, organisationID, reservations)
	if err != nil {
		return fmt.Errorf("have the checkouts looked at: %w", err)
	}
	return nil
}
