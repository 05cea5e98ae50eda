package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// Contact is who buys.
type Contact struct {
	Name   string
	Email  string
	Phone  string // as it is typed; one without a country is read as the organisation's
	Locale string // empty: as it was held
}

// Paying is how a buyer wants to pay.
type Paying struct {
	Gateway string // name; empty: the only one there is
	Contact Contact
	Return  string // address to which the buyer comes back
}

// Started is what came of starting to pay.
type Started struct {
	Reservation Reservation
	Confirmed   bool   // nothing is to be paid any more
	URL         string // where the buyer pays
}

// StartPayment writes down who buys and that they are about to pay, and makes the page on which they do. The hold is renewed within
// its bound, and what the buyer has elsewhere counts towards the limits from now on. The same again gives the same page. With
// nothing to pay it is confirmed at once. Who dies between the two finds the page made by the look that follows.
func StartPayment(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, p Paying) (Started, error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return Started{}, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return Started{}, err
	}
	s := &starting{actor: actor, paying: p}
	err = inTurns(ctx, db, organisationID, func(tx pgx.Tx) error {
		s.done, s.checkout = Started{}, payment.Checkout{}
		return s.begin(ctx, tx, organisationID, id)
	})
	if err != nil || s.done.Confirmed || s.done.URL != "" {
		return s.done, err
	}
	page, err := s.setup.Open().Start(ctx, s.order())
	if err != nil {
		return s.done, s.refused(ctx, db, err)
	}
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error { return payment.KeepPage(ctx, tx, &s.checkout, page) })
	s.done.URL = page.URL
	return s.done, err
}

// starting is one attempt to be paid, on its way.
type starting struct {
	actor    timeline.Actor
	paying   Paying
	setup    payment.Setup
	checkout payment.Checkout
	done     Started
}

// begin writes everything down before the gateway is called.
func (s *starting) begin(ctx context.Context, tx pgx.Tx, organisationID, id int64) error {
	r, err := lock(ctx, tx, organisationID, id)
	if err != nil {
		return err
	}
	s.done.Reservation = r
	switch r.State {
	case Confirmed, Disputed:
		s.done.Confirmed = true
		return nil
	case Held, PaymentStarted:
	default:
		return checkHeld(r)
	}
	if r, err = s.contact(ctx, tx, r); err != nil {
		return err
	}
	money, err := payment.MoneyOf(ctx, tx, organisationID, id)
	if err != nil {
		return err
	}
	if money.Left() == 0 {
		if s.done.Confirmed, err = confirm(ctx, tx, s.actor, r); err == nil && !s.done.Confirmed {
			err = problem.Refused("hold_over", problem.Facts{"reservation": r.Reference})
		}
		return err
	}
	if s.setup, err = payment.FindSetup(ctx, tx, organisationID, s.paying.Gateway); err != nil {
		return err
	}
	switch {
	case s.setup.DisabledAt != nil:
		return problem.Refused("gateway_disabled", problem.Facts{"name": s.setup.Name})
	case s.setup.Kind == payment.Counter:
		return problem.Refused("gateway_has_no_page", nil)
	}
	if r, err = Prolong(ctx, tx, s.actor, r); err != nil {
		return err
	}
	if r.State == Lapsed { // at this instant
		return checkHeld(r)
	}
	s.done.Reservation = r
	return s.checkOut(ctx, tx, r, money.Left())
}

// contact keeps who buys, and counts what they have elsewhere.
func (s *starting) contact(ctx context.Context, tx pgx.Tx, r Reservation) (Reservation, error) {
	c := s.paying.Contact
	if c.Locale == "" {
		c.Locale = r.Locale
	}
	c, err := ReadContact(ctx, tx, r.OrganisationID, c)
	if err != nil {
		return r, err
	}
	buyerID, err := LockBuyer(ctx, tx, r.OrganisationID, c.Email)
	if err != nil {
		return r, err
	}
	if err := CheckBuyer(ctx, tx, r, buyerID); err != nil {
		return r, err
	}
	_, err = tx.Exec(ctx, `
update reservation set buyer_id = $3, name = $4, email = $5, phone = $6, locale = $7 where organisation_id = $1 and id = $2`,
		r.OrganisationID, r.ID, buyerID, c.Name, c.Email, c.Phone, c.Locale)
	if err != nil {
		return r, fmt.Errorf("keep who buys: %w", err)
	}
	r.BuyerID, r.Name, r.Email, r.Phone, r.Locale = &buyerID, c.Name, c.Email, c.Phone, c.Locale
	return r, nil
}

// ReadContact brings what somebody typed of themselves into the form in which it is kept. A name and an address are needed.
func ReadContact(ctx context.Context, tx pgx.Tx, organisationID int64, c Contact) (_ Contact, err error) {
	var country string
	if err := tx.QueryRow(ctx, `select country from organisation where id = $1`, organisationID).Scan(&country); err != nil {
		return c, fmt.Errorf("read the organisation: %w", err)
	}
	if c.Name, err = account.ReadName(c.Name); err != nil {
		return c, err
	}
	if c.Email, err = readEmail(c.Email); err != nil {
		return c, err
	}
	if c.Phone, err = intake.Phone(c.Phone, country); err != nil {
		return c, err
	}
	switch {
	case c.Name == "":
		return c, problem.Invalid("buyer_name_missing", nil)
	case c.Email == "":
		return c, problem.Invalid("buyer_email_missing", nil)
	case !slices.Contains(i18n.Languages, c.Locale):
		return c, problem.Invalid("locale_unknown", problem.Facts{"locale": c.Locale})
	}
	return c, nil
}

// checkOut takes the checkout that there is for the same sum at the same gateway, or begins one; others are ended there, because
// nobody is to pay twice.
func (s *starting) checkOut(ctx context.Context, tx pgx.Tx, r Reservation, left int64) error {
	live, err := payment.LiveCheckouts(ctx, tx, r.OrganisationID, r.ID)
	if err != nil {
		return err
	}
	for _, c := range live {
		if c.GatewayID == s.setup.ID && c.AmountMinor == left {
			s.checkout, s.done.URL = c, c.URL
			return nil
		}
	}
	if err := payment.LookSoon(ctx, tx, r.OrganisationID, r.ID); err != nil {
		return err
	}
	if s.checkout, err = payment.BeginCheckout(ctx, tx, s.setup, r.ID, left, r.Currency); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
update reservation set state = 'payment_started', paying_at = clock() where organisation_id = $1 and id = $2 and state = any($3)`,
		r.OrganisationID, r.ID, From(BeginPayment))
	if err != nil {
		return fmt.Errorf("start the payment: %w", err)
	}
	s.done.Reservation.State, s.done.Reservation.Written = PaymentStarted, PaymentStarted
	return timeline.Record(ctx, tx, r.OrganisationID, s.actor, timeline.Entry{
		Kind: "payment_started", Subject: r.subject(),
		Facts: map[string]any{"reservation": r.Reference, "amount": i18n.Money{Minor: left, Currency: r.Currency}, "gateway": s.setup.Name},
	})
}

// order is what the gateway is told. It is the same at each attempt, as its key is.
func (s *starting) order() payment.Order {
	r := s.done.Reservation
	var titles []string
	for _, line := range r.open() {
		if !slices.Contains(titles, line.EventName) {
			titles = append(titles, line.EventName)
		}
	}
	return payment.Order{
		Key: s.checkout.Key, AmountMinor: s.checkout.AmountMinor, Currency: s.checkout.Currency, Title: strings.Join(titles, ", "),
		Email: r.Email, Locale: r.Locale, StartedAt: s.checkout.StartedAt, Until: r.MostAt, Return: s.paying.Return,
	}
}

// refused judges a gateway that made no page. One that says no ends the attempt, and the buyer pays otherwise; of one that says
// nothing it is not known whether there is a page, and the look finds out.
func (s *starting) refused(ctx context.Context, db *pg.DB, cause error) error {
	var failure *payment.GatewayFailure
	if errors.As(cause, &failure) && !failure.Final {
		return problem.Unavailable("gateway_silent", problem.Facts{"name": s.setup.Name}).Because(cause)
	}
	_, known := problem.Of(cause)
	if failure == nil && !known {
		return fmt.Errorf("start the payment: %w", cause)
	}
	words := "refused"
	if failure != nil {
		words = failure.Words
	}
	err := db.Tx(ctx, []int64{s.setup.OrganisationID}, func(tx pgx.Tx) error {
		return endUnpaid(ctx, tx, s.actor, s.checkout, payment.CheckoutFailed, words)
	})
	switch {
	case err != nil:
		return err
	case known:
		return cause
	}
	return problem.Refused("gateway_refused", problem.Facts{"name": s.setup.Name}).Because(cause)
}
