package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Correcting says what was wrong in a month that is settled.
type Correcting struct {
	Month       string // 2026-10
	Currency    string // empty: the only one of the month
	AmountMinor int64  // that the organiser gets; less than nothing: owes
	Reason      string
}

// MostMinor bounds a correction: more is a typing mistake.
const MostMinor = 1_000_000_000_000

// Correct puts right what was wrong in a month that is settled: that month stays as it is, and the open one gets the amount. A month that is
// not settled needs none and has none. The same amount with the same reason is the same correction: a repeat changes nothing. It is for
// whoever administers the installation, because it changes what an organisation owes.
func Correct(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, c Correcting) (of Statement, fresh bool, err error) {
	if !actor.MayActFor(org.ID) {
		return of, false, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Charge); err != nil {
		return of, false, err
	}
	c.Reason = account.OneLine(c.Reason)
	switch {
	case c.Reason == "":
		return of, false, problem.Invalid("reason_missing", nil)
	case c.AmountMinor == 0 || max(c.AmountMinor, -c.AmountMinor) > MostMinor:
		return of, false, problem.Invalid("amount_impossible", nil)
	}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		all, err := show(ctx, tx, org, c.Month, c.Currency)
		if err != nil {
			return err
		}
		if len(all) > 1 {
			return problem.Invalid("statement_currency", problem.Facts{"month": c.Month})
		}
		of = all[0]
		added, err := tx.Exec(ctx, `
insert into correction (organisation_id, month, currency, amount_minor, reason, actor) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
			org.ID, of.Month, of.Currency, c.AmountMinor, c.Reason, actor.Name)
		if err != nil {
			return fmt.Errorf("write the correction: %w", err)
		}
		if fresh = added.RowsAffected() == 1; !fresh {
			return nil
		}
		return timeline.Record(ctx, tx, org.ID, actor, timeline.Entry{
			Kind: "statement_corrected", Facts: map[string]any{"month": of.Key(), "amount": of.Money(c.AmountMinor), "reason": c.Reason},
		})
	})
	return of, fresh, err
}
