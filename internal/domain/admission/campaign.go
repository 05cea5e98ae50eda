// Package admission decides what an admission round is: its fee, its exams, its statuses, its
// candidates and who is registered for what. It owns the lock that keeps filing order: whoever
// changes who may sit where takes the campaign's row first. Seats are decided in seating, money
// in payment.
package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Campaign is one admission round.
type Campaign struct {
	OrganisationID int64
	ID             int64
	Slug           string
	Name           string
	FeeMinor       int64 // minor units of Currency
	Currency       string
	NoticesWait    bool // notices are written, and wait until somebody releases them
	AddedAt        time.Time
	Country        string // the organisation's
	TimeZone       string // the organisation's
	Locale         string // the organisation's
}

// Status is a step of a campaign's workflow, as the school wrote it. No code of a status stands
// in the program: OpensPayment says what it means.
type Status struct {
	ID           int64
	Code         string
	Label        string
	Advice       string // what the candidate must do
	OpensPayment bool   // the counter takes money and convocation calls from it
}

// DefaultWorkflow is what a new campaign starts with when it brings no statuses of its own.
func DefaultWorkflow(locale string) []Status {
	switch locale {
	case "fr":
		return []Status{
			{Code: "filed", Label: "Déposé", Advice: "Attendez la décision de la commission."},
			{Code: "accepted", Label: "Admis à concourir", Advice: "Payez les frais au guichet, puis attendez votre convocation.", OpensPayment: true},
			{Code: "rejected", Label: "Rejeté", Advice: "Vous pouvez demander les motifs au secrétariat."},
		}
	case "es":
		return []Status{
			{Code: "filed", Label: "Presentado", Advice: "Espere la decisión de la comisión."},
			{Code: "accepted", Label: "Admitido a examen", Advice: "Pague las tasas en ventanilla y espere su citación.", OpensPayment: true},
			{Code: "rejected", Label: "Rechazado", Advice: "Puede pedir los motivos en la secretaría."},
		}
	}
	return []Status{
		{Code: "filed", Label: "Filed", Advice: "Wait for the committee's decision."},
		{Code: "accepted", Label: "Accepted for the exam", Advice: "Pay the fee at the counter, then wait for your convocation.", OpensPayment: true},
		{Code: "rejected", Label: "Rejected", Advice: "You may ask the office for the reasons."},
	}
}

// AddCampaign adds a round with its workflow; without statuses it gets the default ones.
func AddCampaign(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, c Campaign, statuses []Status) (Campaign, error) {
	if !actor.MayActFor(org.ID) {
		return c, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return c, err
	}
	if err := account.CheckSlug(c.Slug); err != nil {
		return c, err
	}
	var err error
	if c.Name, err = account.ReadName(c.Name); err != nil {
		return c, err
	}
	if c.Name == "" {
		return c, problem.Invalid("campaign_name_missing", nil)
	}
	if c.FeeMinor < 0 {
		return c, problem.Invalid("fee_negative", nil)
	}
	if c.Currency == "" {
		c.Currency = org.Currency
	}
	if !currency.IsValid(c.Currency) {
		return c, problem.Invalid("currency_unknown", problem.Facts{"currency": c.Currency})
	}
	if len(statuses) == 0 {
		statuses = DefaultWorkflow(org.Locale)
	}
	c.OrganisationID, c.Country, c.TimeZone, c.Locale = org.ID, org.Country, org.TimeZone, org.Locale
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `insert into campaign (organisation_id, slug, name, fee_minor, currency, notices_wait)
values ($1, $2, $3, $4, $5, $6) returning id, created_at`, org.ID, c.Slug, c.Name, c.FeeMinor, c.Currency, c.NoticesWait).
			Scan(&c.ID, &c.AddedAt)
		if pg.Violates(err, "campaign_slug_key") {
			return problem.Refused("campaign_exists", problem.Facts{"slug": c.Slug})
		}
		if err != nil {
			return fmt.Errorf("add the campaign: %w", err)
		}
		for _, status := range statuses {
			if _, err := addStatus(ctx, tx, c, status); err != nil {
				return err
			}
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: "campaign_added", Subject: timeline.Subject{CampaignID: c.ID}, Facts: c,
		})
	})
	return c, err
}

// FindCampaign finds a campaign by its slug. One of an organisation for which the actor does not
// act is not found, like one that does not exist.
func FindCampaign(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (Campaign, error) {
	var c Campaign
	unknown := problem.NotFound("campaign_unknown", problem.Facts{"slug": slug})
	err := db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, campaign_id from find_campaign($1)`, slug).Scan(&c.OrganisationID, &c.ID)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !actor.MayActFor(c.OrganisationID) {
			return unknown
		}
		if err != nil {
			return fmt.Errorf("find the campaign: %w", err)
		}
		if err := pg.See(ctx, tx, c.OrganisationID); err != nil {
			return err
		}
		return c.read(ctx, tx)
	})
	return c, err
}

// read fills in the campaign that is named.
func (c *Campaign) read(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, `
select g.slug, g.name, g.fee_minor, g.currency, g.notices_wait, g.created_at, o.country, o.time_zone, o.locale
  from campaign g join organisation o on o.id = g.organisation_id
 where g.organisation_id = $1 and g.id = $2`, c.OrganisationID, c.ID).
		Scan(&c.Slug, &c.Name, &c.FeeMinor, &c.Currency, &c.NoticesWait, &c.AddedAt, &c.Country, &c.TimeZone, &c.Locale)
	if err != nil {
		return fmt.Errorf("read the campaign: %w", err)
	}
	return nil
}

// Revision counts the changes that may free a seat or alter who may sit where.
type Revision int64

// Lock takes the campaign's row, first and alone in its transaction, so that whatever is read
// afterwards stands until the commit. Everything that changes who may sit where takes it;
// recording a payment and reading do not.
func Lock(ctx context.Context, tx pgx.Tx, c Campaign) (Revision, error) {
	var revision Revision
	err := tx.QueryRow(ctx, `select revision from campaign where organisation_id = $1 and id = $2 for no key update`,
		c.OrganisationID, c.ID).Scan(&revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, problem.NotFound("campaign_unknown", problem.Facts{"slug": c.Slug})
	}
	if err != nil {
		return 0, fmt.Errorf("lock the campaign: %w", err)
	}
	return revision, nil
}

// Revise says, under the lock, that a seat may have come free or that somebody may sit elsewhere
// now. A run that is under way then goes back to the first of those whom it passed, unless every
// sitting of their centre is full all the same; see Reseat for acts that only give, take back or exchange seats.
func Revise(ctx context.Context, tx pgx.Tx, c Campaign) error {
	if _, err := tx.Exec(ctx, `update campaign set revision = revision + 1 where organisation_id = $1 and id = $2`,
		c.OrganisationID, c.ID); err != nil {
		return fmt.Errorf("revise the campaign: %w", err)
	}
	return nil
}
