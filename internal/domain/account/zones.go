package account

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/timeline"
)

// TimeZones are the zones of the organisations for which the actor acts, by key: what happened in
// one of them is shown at its own hour.
func TimeZones(ctx context.Context, db *pg.DB, actor timeline.Actor) (map[int64]string, error) {
	organisations, err := Organisations(ctx, db, actor)
	if err != nil {
		return nil, err
	}
	zones := map[int64]string{}
	err = db.Read(ctx, organisations, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select id, time_zone from organisation`)
		if err != nil {
			return err
		}
		var id int64
		var zone string
		_, err = pgx.ForEachRow(rows, []any{&id, &zone}, func() error { zones[id] = zone; return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the zones of the organisations: %w", err)
	}
	return zones, nil
}
