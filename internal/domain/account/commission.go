package account

import (
	"context"
	"fmt"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Commission is what Usher is owed of each ticket that an organisation sells in a currency, from an instant on.
type Commission struct {
	Currency  string     `json:"currency"`
	FromAt    *time.Time `json:"from_at"`    // nil: from the beginning
	Permyriad int        `json:"permyriad"`  // hundredths of a percent of the price
	MostMinor *int64     `json:"most_minor"` // a ticket; nil: no bound
}

// SetCommission says what an organisation owes of the tickets that are held from now on; the first of a currency counts for what was sold in
// it before, too. What was sold under another stays under that. The same again changes nothing. It is for whoever administers the
// installation: nobody says what they owe themselves.
func SetCommission(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation, c Commission) (changed bool, err error) {
	if !actor.MayActFor(org.ID) {
		return false, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := Allow(actor, Charge); err != nil {
		return false, err
	}
	switch {
	case !currency.IsValid(c.Currency):
		return false, problem.Invalid("currency_unknown", problem.Facts{"currency": c.Currency})
	case c.Permyriad < 0 || c.Permyriad > 10_000 || c.MostMinor != nil && *c.MostMinor < 0:
		return false, problem.Invalid("commission_impossible", nil)
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		for range 2 { // of two that are the first at once, one is asked again, and is the second
			set, err := tx.Exec(ctx, `
with latest as (select permyriad, most_minor from commission_rate where organisation_id = $1 and currency = $2 order by from_at desc limit 1)
insert into commission_rate (organisation_id, currency, from_at, permyriad, most_minor, actor)
select $1, $2, case when exists (select from latest) then clock() else '-infinity' end, $3, $4, $5
 where not exists (select from latest where permyriad = $3 and most_minor is not distinct from $4)
    on conflict do nothing`, org.ID, c.Currency, c.Permyriad, c.MostMinor, actor.Name)
			if err != nil {
				return fmt.Errorf("keep the commission: %w", err)
			}
			if changed = set.RowsAffected() == 1; changed {
				return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{Kind: "commission_set", Facts: c})
			}
		}
		return nil
	})
	return changed, err
}

// Commissions are the commissions of an organisation, by currency, the latest first. They are for whoever manages it.
func Commissions(ctx context.Context, db *pg.DB, actor timeline.Actor, org Organisation) (all []Commission, err error) {
	if !actor.MayActFor(org.ID) {
		return nil, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := Allow(actor, Manage); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select currency, case when isfinite(from_at) then from_at end as from_at, permyriad, most_minor
  from commission_rate c where organisation_id = $1 order by currency, c.from_at desc`, org.ID)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByName[Commission])
		}
		if err != nil {
			return fmt.Errorf("list the commissions: %w", err)
		}
		return nil
	})
	return all, err
}
