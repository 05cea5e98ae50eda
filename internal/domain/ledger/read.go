package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// MostListed is how many statements are listed: twenty years of one currency.
const MostListed = 240

// allow lets whoever manages the organisation read and correct its statements; for others there is none.
func allow(actor timeline.Actor, org account.Organisation) error {
	if !actor.MayActFor(org.ID) {
		return problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	return account.Allow(actor, account.Manage)
}

const statementColumns = `
select month, currency, time_zone, case when isfinite(from_at) then from_at end as from_at, until_at, settled_at, carried_minor, net_minor,
       payable_minor, carried_on_minor
  from statement s where organisation_id = $1`

// List gives the statements of an organisation, the latest month first, at most MostListed, without their entries.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation) (all []Statement, err error) {
	if err := allow(actor, org); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		all, err = collect(ctx, tx, statementColumns+` order by month desc, currency limit $2`, org.ID, MostListed)
		return err
	})
	return all, err
}

// Show gives the statements of a month (2026-10), one for each currency, or only that of one. A month that is not over is refused, and so is
// one that is not settled.
func Show(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, month, currency string) (all []Statement, err error) {
	if err := allow(actor, org); err != nil {
		return nil, err
	}
	err = db.Moment(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		all, err = show(ctx, tx, org, month, currency)
		return err
	})
	return all, err
}

func show(ctx context.Context, tx pgx.Tx, org account.Organisation, month, currency string) ([]Statement, error) {
	month = strings.TrimSpace(month)
	first, err := time.Parse(keyOfMonth, month)
	if err != nil {
		return nil, problem.Invalid("month_unreadable", problem.Facts{"value": month})
	}
	all, err := collect(ctx, tx, statementColumns+` and month = $2 and (currency = $3 or $3 = '') order by currency`,
		org.ID, first, strings.ToUpper(strings.TrimSpace(currency)))
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, noStatement(ctx, tx, org, month, first)
	}
	for i := range all {
		if all[i].Entries, err = entriesOf(ctx, tx, org.ID, all[i]); err != nil {
			return nil, err
		}
		if err := all[i].explain(ctx, tx, org.ID); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// noStatement says why there is none.
func noStatement(ctx context.Context, tx pgx.Tx, org account.Organisation, month string, first time.Time) error {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(org.TimeZone)
	if err != nil {
		return fmt.Errorf("find the time zone: %w", err)
	}
	if local := now.In(zone); !firstOf(local).After(first) {
		return problem.Refused("month_not_over", problem.Facts{"month": month, "zone": org.TimeZone})
	}
	return problem.NotFound("statement_none", problem.Facts{"month": month, "organisation": org.Slug})
}

func collect(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]Statement, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the statements: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Statement])
	if err != nil {
		return nil, fmt.Errorf("read the statements: %w", err)
	}
	return all, nil
}

// kindNames are the kinds in the order in which a statement has them.
func kindNames() []string {
	names := make([]string, len(Kinds))
	for i, kind := range Kinds {
		names[i] = string(kind)
	}
	return names
}

func entriesOf(ctx context.Context, tx pgx.Tx, organisationID int64, s Statement) ([]Entry, error) {
	rows, err := tx.Query(ctx, `
select e.kind, coalesce(v.slug, '') as event, coalesce(v.name, '') as event_name, e.amount_minor, e.pieces, e.debit, e.credit
  from entry e left join event v on v.organisation_id = e.organisation_id and v.id = e.event_id
 where e.organisation_id = $1 and e.month = $2 and e.currency = $3
 order by array_position($4::text[], e.kind), v.name, v.id`, organisationID, s.Month, s.Currency, kindNames())
	if err != nil {
		return nil, fmt.Errorf("read the entries: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByName[Entry])
	if err != nil {
		return nil, fmt.Errorf("read the entries: %w", err)
	}
	return entries, nil
}

// explain reads what a statement is explained by: each correction, and the commissions under which its tickets can have been held.
func (s *Statement) explain(ctx context.Context, tx pgx.Tx, organisationID int64) error {
	rows, err := tx.Query(ctx, `
select month, amount_minor, reason, at from correction
 where organisation_id = $1 and currency = $2 and at >= coalesce($3::timestamptz, '-infinity') and at < $4 order by at, id limit $5`,
		organisationID, s.Currency, s.FromAt, s.UntilAt, MostExplained)
	if err == nil {
		s.Corrections, err = pgx.CollectRows(rows, pgx.RowToStructByName[Corrected])
	}
	if err != nil {
		return fmt.Errorf("read the corrections: %w", err)
	}
	rows, err = tx.Query(ctx, `
select currency, case when isfinite(from_at) then from_at end as from_at, permyriad, most_minor
  from commission_rate c where organisation_id = $1 and currency = $2 and c.from_at < $3 order by c.from_at desc limit $4`,
		organisationID, s.Currency, s.UntilAt, MostExplained)
	if err == nil {
		s.Rates, err = pgx.CollectRows(rows, pgx.RowToStructByName[account.Commission])
	}
	if err != nil {
		return fmt.Errorf("read the commissions: %w", err)
	}
	return nil
}
