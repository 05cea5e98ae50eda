package run

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// See finds a run among the organisations for which the actor acts, and gives it to fn on one
// moment of the database. Another organisation's run is not found, like one that does not exist.
func See(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64, fn func(pgx.Tx, Run) error) error {
	organisations, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return err
	}
	return db.Read(ctx, organisations, func(tx pgx.Tx) error {
		r, err := Find(ctx, tx, runID)
		if err != nil {
			return err
		}
		return fn(tx, r)
	})
}

// pageSize is how many refusals are held at once while a whole list is gone through.
const pageSize = 5_000

// EachRefusal gives every row of one list of a run in its order, of one moment, without holding
// them all.
func EachRefusal(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64, list List, each func(Refusal) error) error {
	return See(ctx, db, actor, runID, func(tx pgx.Tx, r Run) error {
		for offset := 0; ; offset += pageSize {
			refusals, err := Refusals(ctx, tx, r.OrganisationID, r.ID, list, offset, pageSize)
			if err != nil {
				return err
			}
			for _, refusal := range refusals {
				if err := each(refusal); err != nil {
					return err
				}
			}
			if len(refusals) < pageSize {
				return nil
			}
		}
	})
}
