package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// BuiltBeside is the first migration that must add uniqueness to a table of an earlier one through pg.UniqueMigration. Those before it
// are applied everywhere, and are as they are.
const BuiltBeside = 54

// Unique is a key that somebody wants a table of the schema to have.
type Unique struct {
	Key    pg.UniqueKey
	Repair *pg.UniqueRepair
	DryRun bool // only look for what stands against it; a repair is executed and rolled back
}

// AddUnique gives a table the key as the owner of the URL, or tells what stands against it (pg.AddUnique). A key of a tenant table
// is led by the organisation, as all of them are: another one would refuse to one organisation what another has, and say so.
func AddUnique(ctx context.Context, ownerURL string, wanted Unique, tell func(pg.UniqueStep)) (pg.UniqueResult, error) {
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return pg.UniqueResult{}, problem.Invalid("database_url_wrong", nil)
	}
	if err := checkLead(ctx, config, wanted.Key); err != nil {
		return pg.UniqueResult{}, err
	}
	if wanted.DryRun && wanted.Repair != nil {
		return pg.TryRepair(ctx, config, wanted.Key, *wanted.Repair)
	}
	if wanted.DryRun {
		return pg.LookForDuplicates(ctx, config, wanted.Key)
	}
	return pg.AddUnique(ctx, config, wanted.Key, wanted.Repair, pg.UniqueLimits{}, tell)
}

const tenantColumn = "organisation_id"

func checkLead(ctx context.Context, config *pgx.ConnConfig, key pg.UniqueKey) error {
	if len(key.Columns) > 0 && key.Columns[0] == tenantColumn {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var tenant bool
	err = conn.QueryRow(ctx, `
select exists (select from pg_attribute a join pg_class c on c.oid = a.attrelid
                where c.relname = $1 and c.relnamespace = 'public'::regnamespace and a.attname = $2 and not a.attisdropped)`, key.Table, tenantColumn).
		Scan(&tenant)
	if err != nil {
		return fmt.Errorf("look whether the table belongs to organisations: %w", err)
	}
	if tenant {
		return problem.Invalid("unique_not_led", problem.Facts{"table": key.Table})
	}
	return nil
}
