package promise

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// Guard is a unique index, a constraint or a trigger that keeps a promise in the database.
type Guard struct {
	Name string
	Over string // what it covers, as "run (organisation_id, task, window_key)": another of its name guards nothing
}

// Missing are those of the guards that the database lacks, holds invalid, switched off, or has otherwise under their names: their
// places in the list. The transaction may see any organisations or none.
func Missing(ctx context.Context, tx pgx.Tx, guards []Guard) (missing []int, err error) {
	names, covers := make([]string, len(guards)), make([]string, len(guards))
	for i, g := range guards {
		names[i], covers[i] = g.Name, g.Over
	}
	// A unique index that is being built, or whose building found a double, exists and forbids nothing. Where it covers only
	// some rows, its definition goes on after the columns.
	rows, err := tx.Query(ctx, `
select w.nth::int - 1 from unnest($1::text[], $2::text[]) with ordinality w(name, covers, nth)
 where not exists (select from pg_class i join pg_index x on x.indexrelid = i.oid
                    where i.relname = w.name and i.relnamespace = 'public'::regnamespace
                      and x.indisunique and `+pg.IndexHolds+`
                      and replace(pg_get_indexdef(i.oid), ' USING btree', '')
                          = 'CREATE UNIQUE INDEX ' || w.name || ' ON public.' || w.covers)
   and not exists (select from pg_constraint k join pg_class t on t.oid = k.conrelid
                    where k.conname = w.name and k.connamespace = 'public'::regnamespace
                      and k.contype in ('c', 'x', 'f') and k.convalidated
                      and t.relname || ' ' || pg_get_constraintdef(k.oid) = w.covers)
   and not exists (select from pg_trigger g join pg_class t on t.oid = g.tgrelid
                    where g.tgname = w.name and t.relnamespace = 'public'::regnamespace and not g.tgisinternal and g.tgenabled in ('O', 'A')
                      and 'trigger ' || t.relname = w.covers)
 order by w.nth`, names, covers)
	if err == nil {
		missing, err = pgx.CollectRows(rows, pgx.RowTo[int])
	}
	if err != nil {
		return nil, fmt.Errorf("look for what keeps the promises: %w", err)
	}
	return missing, nil
}
