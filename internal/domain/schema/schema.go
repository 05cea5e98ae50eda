// Package schema holds the tables of every noun, as forward-only migrations. It decides what the
// database itself guarantees (keys, checks, the fence between organisations, what the program's
// role may do); which package writes which table stands in docs/ARCHITECTURE.md.
package schema

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"usher/internal/base/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the steps from an empty database to the tables of this release.
func Migrations() pg.Migrations {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(fmt.Sprintf("embedded migrations: %v", err))
	}
	return pg.Migrations{
		Files: sub,
		Steps: map[int64]pg.Step{4: riverTables},
	}
}

// riverTables lays River's own tables. River adds an enum value in one migration and uses it in a
// later one, so its migrations cannot share a transaction: they run by its own migrator.
func riverTables(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("prepare the job tables: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("lay the job tables: %w", err)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
do $$
declare job_table regclass;
begin
  for job_table in select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where n.nspname = 'public' and c.relkind = 'r' and c.relname like 'river\_%'
  loop
    execute format('grant select, insert, update, delete on %s to usher_app', job_table);
  end loop;
end $$;
grant usage on all sequences in schema public to usher_app;`)
		if err != nil {
			return fmt.Errorf("grant the job tables: %w", err)
		}
		return nil
	})
}
