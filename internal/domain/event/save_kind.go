package event

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"

	"usher/internal/base/pg"
)

// Saved tells what saving did; neither: it was so already.
type Saved struct {
	Added, Changed bool
}

// SaveKind adds a kind of ticket, or changes the one of this code. One that is withdrawn is sold no more; what is held or sold of it
// stays, and it can be taken back.
func SaveKind(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, code string, change func(*Kind)) (after Kind, saved Saved, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return after, saved, err
	}
	if code, err = account.ReadName(code); err != nil {
		return after, saved, err
	}
	if code == "" {
		return after, saved, problem.Invalid("kind_code_missing", nil)
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		before, known, err := e.findKind(ctx, tx, code)
		if err != nil {
			return err
		}
		after = before
		if !known {
			after = Kind{Code: code, Name: code}
		}
		change(&after)
		if after, err = after.check(e, before); err != nil {
			return err
		}
		if known {
			saved.Changed, err = after.update(ctx, tx, e)
		} else {
			saved.Added = true
			after.ID, err = after.insert(ctx, tx, e)
		}
		if err != nil || saved == (Saved{}) {
			return err
		}
		return e.record(ctx, tx, actor, KindKindSaved, map[string]any{"event": e.Slug, "before": before, "after": after})
	})
	return after, saved, err
}

func (e Event) findKind(ctx context.Context, tx pgx.Tx, code string) (Kind, bool, error) {
	rows, err := tx.Query(ctx, `select id, code, name, opens_at, closes_at, most_per_buyer, withdrawn_at is not null as withdrawn
  from ticket_kind where organisation_id = $1 and event_id = $2 and name_key(code) = name_key($3)`, e.OrganisationID, e.ID, code)
	if err != nil {
		return Kind{}, false, fmt.Errorf("find the kind of ticket: %w", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Kind])
	if errors.Is(err, pgx.ErrNoRows) {
		return Kind{}, false, nil
	}
	if err != nil {
		return Kind{}, false, fmt.Errorf("read the kind of ticket: %w", err)
	}
	return k, true, nil
}

// knownKind is the kind of this code.
func (e Event) knownKind(ctx context.Context, tx pgx.Tx, code string) (Kind, error) {
	k, known, err := e.findKind(ctx, tx, code)
	if err == nil && !known {
		err = problem.NotFound("kind_unknown", problem.Facts{"kind": code, "event": e.Name})
	}
	return k, err
}

func (k Kind) check(e Event, before Kind) (_ Kind, err error) {
	if before.ID != 0 {
		k.ID, k.Code = before.ID, before.Code
	}
	if k.Name, err = account.ReadName(k.Name); err != nil {
		return k, err
	}
	if k.Name == "" {
		return k, problem.Invalid("kind_name_missing", nil)
	}
	if err := checkWindow(k.OpensAt, k.ClosesAt); err != nil {
		return k, err
	}
	if k.OpensAt != nil && e.ClosesAt != nil && !k.OpensAt.Before(*e.ClosesAt) || k.ClosesAt != nil && e.OpensAt != nil && !k.ClosesAt.After(*e.OpensAt) {
		return k, problem.Invalid("kind_window_outside", problem.Facts{"kind": k.Name, "event": e.Name})
	}
	return k, checkMost(k.MostPerBuyer)
}

func (k Kind) insert(ctx context.Context, tx pgx.Tx, e Event) (id int64, err error) {
	err = tx.QueryRow(ctx, `
insert into ticket_kind (organisation_id, event_id, code, name, position, opens_at, closes_at, most_per_buyer, withdrawn_at)
select $1, $2, $3, $4, coalesce(max(position), 0) + 1, $5, $6, $7, case when $8 then clock() end
  from ticket_kind where organisation_id = $1 and event_id = $2
having count(*) < $9
returning id`, e.OrganisationID, e.ID, k.Code, k.Name, k.OpensAt, k.ClosesAt, k.MostPerBuyer, k.Withdrawn, mostKinds).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, problem.Refused("kinds_many", problem.Facts{"event": e.Name, "most": mostKinds})
	}
	if err != nil {
		return 0, fmt.Errorf("add the kind of ticket: %w", err)
	}
	return id, nil
}

func (k Kind) update(ctx context.Context, tx pgx.Tx, e Event) (changed bool, err error) {
	tag, err := tx.Exec(ctx, `
update ticket_kind set name = $3, opens_at = $4, closes_at = $5, most_per_buyer = $6, withdrawn_at = case when $7 then coalesce(withdrawn_at, clock()) end
 where organisation_id = $1 and id = $2
   and (name, opens_at, closes_at, most_per_buyer, withdrawn_at is not null) is distinct from ($3, $4, $5, $6, $7)`,
		e.OrganisationID, k.ID, k.Name, k.OpensAt, k.ClosesAt, k.MostPerBuyer, k.Withdrawn)
	if err != nil {
		return false, fmt.Errorf("change the kind of ticket: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}
