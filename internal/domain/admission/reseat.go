package admission

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Reseat says, under the lock, that seats were given, taken back or exchanged, and that nobody else
// may sit elsewhere because of it. A run that is under way then looks whether a place came free for
// somebody whom it refused, and whether somebody whom it passed seated waits by now; see Revise for everything else.
func Reseat(ctx context.Context, tx pgx.Tx, c Campaign) error {
	if _, err := tx.Exec(ctx, `update campaign set reseated = reseated + 1 where organisation_id = $1 and id = $2`,
		c.OrganisationID, c.ID); err != nil {
		return fmt.Errorf("say that seats were changed: %w", err)
	}
	return nil
}

// Reseated counts, under the lock, how often Reseat was said.
func Reseated(ctx context.Context, tx pgx.Tx, c Campaign) (times int64, err error) {
	if err := tx.QueryRow(ctx, `select reseated from campaign where organisation_id = $1 and id = $2`, c.OrganisationID, c.ID).Scan(&times); err != nil {
		return 0, fmt.Errorf("read whether seats were changed: %w", err)
	}
	return times, nil
}
