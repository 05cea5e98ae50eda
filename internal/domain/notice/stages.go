package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// StagesOf tells how far candidates of a campaign know of their seats, of those given or, without any given, of all: for each the
// stage of the seat of which they know least. Whom nobody wrote a notice of is missing.
func StagesOf(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, candidates []int64) (map[int64]Stage, error) {
	narrowed, args := "", []any{pg.PlanAnew, organisationID, campaignID}
	if candidates != nil {
		narrowed, args = "and n.candidate_id = any($3)", append(args, candidates)
	}
	rows, err := tx.Query(ctx, `
with latest as (`+latest(narrowed)+`)
select distinct on (candidate_id) candidate_id, case when half then 'half' else stage end
  from latest order by candidate_id, array_position(array['untold', 'written', 'waiting', 'pending'], stage), half desc`, args...)
	if err != nil {
		return nil, fmt.Errorf("read what candidates were told: %w", err)
	}
	stages := map[int64]Stage{}
	var candidate int64
	var at Stage
	if _, err = pgx.ForEachRow(rows, []any{&candidate, &at}, func() error { stages[candidate] = at; return nil }); err != nil {
		return nil, fmt.Errorf("read what candidates were told: %w", err)
	}
	return stages, nil
}
