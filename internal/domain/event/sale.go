package event

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// PutOnSale lets people buy, within the windows. What lacks for it is refused in words: a sitting to come, a kind of ticket, a
// price, a window that is not over. One that is on sale already is left as it is.
func PutOnSale(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (after Event, changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return after, false, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		if after = e; e.State == OnSale {
			return nil
		}
		if err := e.checkSellable(ctx, tx); err != nil {
			return err
		}
		after, changed, err = e.take(ctx, tx, actor, StepSell, KindOnSale)
		return err
	})
	return after, changed, err
}

// Close ends the sale of an event; what is held may still be paid, and what was sold stays.
func Close(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (after Event, changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return after, false, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		if after = e; e.State == Closed {
			return nil
		}
		after, changed, err = e.take(ctx, tx, actor, StepClose, KindClosed)
		return err
	})
	return after, changed, err
}

// Cancel writes down that an event does not take place; the second time it changes nothing. What becomes of its tickets and their
// money is decided in reservation, in the same transaction.
func Cancel(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID, eventID int64) (after Event, changed bool, err error) {
	e, err := Lock(ctx, tx, organisationID, eventID)
	if err != nil || e.State == Cancelled {
		return e, false, err
	}
	return e.take(ctx, tx, actor, StepCancel, KindCancelled)
}

// take makes a legal move of an event whose row is held.
func (e Event) take(ctx context.Context, tx pgx.Tx, actor timeline.Actor, step Step, kind timeline.Kind) (Event, bool, error) {
	to, ok := Move(e.State, step)
	if !ok {
		return e, false, problem.Refused("event_not_moved", problem.Facts{"event": e.Name})
	}
	e.State = to
	if _, err := tx.Exec(ctx, `update event set state = $3, cancelled_at = case when $3 = 'cancelled' then clock() end
 where organisation_id = $1 and id = $2`, e.OrganisationID, e.ID, to); err != nil {
		return e, false, fmt.Errorf("move the event: %w", err)
	}
	return e, true, e.record(ctx, tx, actor, kind, map[string]any{"event": e.Slug, "name": e.Name})
}

// checkSellable says what an event lacks to be sold.
func (e Event) checkSellable(ctx context.Context, tx pgx.Tx) error {
	var over, sitting, kind, price bool
	err := tx.QueryRow(ctx, `
select coalesce(e.closes_at <= clock(), false),
       exists (select from sitting s where s.organisation_id = $1 and s.event_id = e.id and s.cancelled_at is null
                and case when e.late_sale then s.ends_at else s.starts_at end > clock()),
       exists (select from ticket_kind k where k.organisation_id = $1 and k.event_id = e.id and k.withdrawn_at is null
                and (k.closes_at > clock()) is not false),
       exists (select from ticket_kind k join price p on p.organisation_id = $1 and p.kind_id = k.id
                where k.organisation_id = $1 and k.event_id = e.id and k.withdrawn_at is null and (k.closes_at > clock()) is not false)
  from event e where e.organisation_id = $1 and e.id = $2`, e.OrganisationID, e.ID).Scan(&over, &sitting, &kind, &price)
	if err != nil {
		return fmt.Errorf("look whether the event can be sold: %w", err)
	}
	switch facts := (problem.Facts{"event": e.Name, "slug": e.Slug}); {
	case !sitting:
		return problem.Refused("event_without_sitting", facts)
	case !kind:
		return problem.Refused("event_without_kind", facts)
	case !price:
		return problem.Refused("event_without_price", facts)
	case over:
		facts["at"] = e.Shown(*e.ClosesAt)
		return problem.Refused("event_window_over", facts)
	}
	return nil
}
