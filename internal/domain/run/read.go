package run

import (
	"context"
	"fmt"

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
	if actor.Installation {
		organisations = append(organisations, account.System)
	}
	return db.Read(ctx, organisations, func(tx pgx.Tx) error {
		r, err := Find(ctx, tx, organisations, runID)
		if err != nil {
			return err
		}
		return fn(tx, r)
	})
}

// EachRefusal gives every row of one list of a run in its order, of one moment, without holding
// them all.
func EachRefusal(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64, list List, each func(Refusal) error) error {
	return See(ctx, db, actor, runID, func(tx pgx.Tx, r Run) error {
		rows, err := tx.Query(ctx, selectRefusals, r.OrganisationID, r.ID, list, 0, nil)
		if err != nil {
			return fmt.Errorf("list the refusals: %w", err)
		}
		var found Refusal
		_, err = pgx.ForEachRow(rows, []any{
			&found.List, &found.Item, &found.CandidateID, &found.ExamID, &found.Reference, &found.Name, &found.Reason, &found.Facts,
		}, func() error {
			one := found
			found.Facts = nil // the next row gets a map of its own
			return each(one)
		})
		return err
	})
}
