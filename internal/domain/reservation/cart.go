package reservation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
)

// Cart is a reservation as its buyer sees it.
type Cart struct {
	Reservation
	Money     payment.Money
	Organiser string                // name of the organisation
	Contact   string                // its e-mail address; empty: none
	Zone      string                // of the organisation: where an instant belongs to no sitting
	Offers    map[int64]event.Offer // of its events, as they are sold now
	Ways      []payment.Way         // to pay
	PayAt     string                // the page on which its payment is under way; empty: there is none
	Failure   string                // why the latest attempt failed, in the gateway's words; empty: it did not
	Back      []GoingBack           // what goes back, or went
	Failed    bool                  // the latest attempt to pay failed or ended unpaid, and none is under way
}

// GoingBack is money of a reservation that is to go back to who paid it, or went.
type GoingBack struct {
	AmountMinor int64
	Reason      payment.RefundReason
	State       payment.RefundState
}

// Amount is money of the reservation.
func (c Cart) Amount(minor int64) i18n.Money { return i18n.Money{Minor: minor, Currency: c.Currency} }

// Open are its tickets, those that were given back left out.
func (c Cart) Open() []Line { return c.open() }

// Left is how long the hold still lasts; 0: it is over, or for good.
func (c Cart) Left() time.Duration {
	if c.EndsAt == nil {
		return 0
	}
	return max(0, c.EndsAt.Sub(c.ReadAt))
}

// Renewable is whether a renewal would give the hold a later end.
func (c Cart) Renewable() bool { return c.EndsAt != nil && c.EndsAt.Before(c.MostAt) }

// ReadCart reads a reservation for its buyer, who knows its reference.
func ReadCart(ctx context.Context, db *pg.DB, reference string) (c Cart, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return c, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		if c.Reservation, err = ReadByID(ctx, tx, organisationID, id); err != nil {
			return err
		}
		if c.Money, err = payment.MoneyOf(ctx, tx, organisationID, id); err != nil {
			return err
		}
		var events []int64
		for _, line := range c.Lines {
			events = append(events, line.EventID)
		}
		if c.Offers, err = event.Offers(ctx, tx, organisationID, slices.Compact(slices.Sorted(slices.Values(events)))...); err != nil {
			return err
		}
		if c.Ways, err = payment.Ways(ctx, tx, organisationID); err != nil {
			return err
		}
		return c.attempt(ctx, tx)
	})
	return c, err
}

// attempt reads whose reservation it is, and what came of the attempts to pay it.
func (c *Cart) attempt(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, `
select o.name, o.contact_email, o.time_zone, coalesce(a.reason, ''), coalesce(a.state in ('failed', 'expired'), false)
  from organisation o
  left join lateral (select state, reason from checkout where organisation_id = o.id and reservation_id = $2 order by id desc limit 1) a on true
 where o.id = $1`, c.OrganisationID, c.ID).Scan(&c.Organiser, &c.Contact, &c.Zone, &c.Failure, &c.Failed)
	if err != nil {
		return fmt.Errorf("read the attempts to pay: %w", err)
	}
	rows, err := tx.Query(ctx, `select amount_minor, reason, state from refund where organisation_id = $1 and reservation_id = $2 order by id`,
		c.OrganisationID, c.ID)
	if err != nil {
		return fmt.Errorf("read what goes back: %w", err)
	}
	if c.Back, err = pgx.CollectRows(rows, pgx.RowToStructByName[GoingBack]); err != nil {
		return fmt.Errorf("read what goes back: %w", err)
	}
	live, err := payment.LiveCheckouts(ctx, tx, c.OrganisationID, c.ID)
	if err != nil {
		return err
	}
	for _, checkout := range live {
		if checkout.URL != "" && checkout.AmountMinor == c.Money.Left() {
			c.PayAt = checkout.URL
			break
		}
	}
	return nil
}
