package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"usher/internal/base/problem"
)

// Step is a migration in Go, for what cannot run inside one transaction. It may run twice.
type Step func(ctx context.Context, pool *pgxpool.Pool) error

// Migrations are SQL files named NNNNN_words.sql, steps in Go and keys that are added, by version.
type Migrations struct {
	Files  fs.FS
	Steps  map[int64]Step
	Unique map[int64]UniqueMigration
}

// steps are all that are in Go. Of two for one version goose says that there are two.
func (m Migrations) steps() (versions []int64, steps []Step) {
	for version, step := range m.Steps {
		versions, steps = append(versions, version), append(steps, step)
	}
	for version, key := range m.Unique {
		versions, steps = append(versions, version), append(steps, key.step)
	}
	return versions, steps
}

// How long a node waits for another one that migrates: an index over years of rows is built in one of its steps.
const (
	migrationWaits = 6 * time.Hour
	migrationLooks = 2 * time.Second
)

// Migrate brings the database to the schema of this release, when the user of config may; several
// nodes at once are put in a row by a lock. A lesser user only checks that nothing is missing.
func Migrate(ctx context.Context, config *pgx.ConnConfig, migrations Migrations) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return unreachable(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var version int
	var mayCreate, fresh bool
	err = conn.QueryRow(ctx, `
select current_setting('server_version_num')::int,
       has_schema_privilege(current_user, 'public', 'create'),
       to_regclass('public.goose_db_version') is null`).Scan(&version, &mayCreate, &fresh)
	if err != nil {
		return fmt.Errorf("look at the database: %w", err)
	}
	if version < oldestVersion {
		return problem.Unavailable("database_too_old", problem.Facts{"version": version / 10000})
	}
	if !mayCreate {
		if fresh {
			return problem.Unavailable("database_not_migrated", nil)
		}
		return checkVersion(ctx, conn, config, migrations)
	}
	if err := ensureRole(ctx, conn); err != nil {
		return err
	}
	if !fresh { // every command of an owner opens the database: one question instead of the ten that a migration asks
		if whole, _, _, err := migrated(ctx, conn, migrations); err != nil || whole {
			return err
		}
	}
	provider, done, err := provider(ctx, config, migrations)
	if err != nil {
		return err
	}
	defer done()
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	_, _, _, err = migrated(ctx, conn, migrations)
	return err
}

// migrated tells whether every migration of this release was applied, the newest that was, and the last that is known. A schema of a
// later release is refused. It asks without goose, which would want to create its table.
func migrated(ctx context.Context, conn *pgx.Conn, migrations Migrations) (whole bool, newest, last int64, err error) {
	known, err := migrations.versions()
	if err != nil {
		return false, 0, 0, err
	}
	last = slices.Max(known)
	err = conn.QueryRow(ctx, `
select coalesce(max(version_id), 0), $1::bigint[] <@ coalesce(array_agg(version_id), '{}') from goose_db_version where is_applied`, known).
		Scan(&newest, &whole)
	if err != nil {
		return false, 0, 0, fmt.Errorf("read the schema's version: %w", err)
	}
	if newest > last {
		return false, newest, last, problem.Unavailable("database_newer", problem.Facts{"schema": newest, "known": last})
	}
	return whole, newest, last, nil
}

// unreachable tells a person why the server did not answer; the driver's text names host and user
// but never the password.
func unreachable(err error) error {
	var connErr *pgconn.ConnectError
	if errors.As(err, &connErr) {
		return problem.Unavailable("database_unreachable", problem.Facts{"why": connErr.Error()}).Because(err)
	}
	return fmt.Errorf("reach the database: %w", err)
}

func provider(ctx context.Context, config *pgx.ConnConfig, migrations Migrations) (*goose.Provider, func(), error) {
	poolConfig, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the migration: %w", err)
	}
	poolConfig.ConnConfig = config.Copy()
	// An index over years of rows takes as long as it takes; a migration is not a page.
	poolConfig.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the migration: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(uint64(migrationLooks/time.Second), uint64(migrationWaits/migrationLooks)))
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("prepare the migration: %w", err)
	}
	var steps []*goose.Migration
	versions, inGo := migrations.steps()
	for i, step := range inGo {
		steps = append(steps, goose.NewGoMigration(versions[i], &goose.GoFunc{
			RunDB: func(ctx context.Context, _ *sql.DB) error { return step(ctx, pool) },
		}, nil))
	}
	db := stdlib.OpenDBFromPool(pool)
	made, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithSessionLocker(locker), goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		_ = db.Close()
		pool.Close()
		return nil, nil, fmt.Errorf("prepare the migration: %w", err)
	}
	return made, func() { _ = db.Close(); pool.Close() }, nil
}

// checkVersion looks, as a user who may not migrate, whether there is nothing to.
func checkVersion(ctx context.Context, conn *pgx.Conn, config *pgx.ConnConfig, migrations Migrations) error {
	if _, err := conn.Exec(ctx, "set role "+Role); err != nil {
		return problem.Unavailable("database_role_closed", problem.Facts{"user": named(config.User), "role": Role}).Because(err)
	}
	whole, newest, last, err := migrated(ctx, conn, migrations)
	if err == nil && !whole {
		err = problem.Unavailable("database_older", problem.Facts{"schema": newest, "known": last})
	}
	return err
}

func (m Migrations) versions() ([]int64, error) {
	names, err := fs.Glob(m.Files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	versions, _ := m.steps()
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("read the version of %s: %w", name, err)
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// ensureRole creates the lesser role and lets the current user become it. Roles belong to the
// whole server, so two databases migrating at once may both try: the loser finds it made.
func ensureRole(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
do $$
begin
  if not exists (select from pg_roles where rolname = 'usher_app') then
    begin
      create role usher_app nologin;
    exception when duplicate_object or unique_violation then null;
    end;
  end if;
  if not pg_has_role(session_user, 'usher_app', 'usage')
     or not exists (select from pg_auth_members m where m.roleid = 'usher_app'::regrole
                       and m.member = (select oid from pg_roles where rolname = session_user))
        and not (select rolsuper from pg_roles where rolname = session_user) then
    execute format('grant usher_app to %I', session_user);
  end if;
end $$`)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		code, facts := "database_role_missing", problem.Facts{"user": named(conn.Config().User), "role": Role}
		var there bool
		if asked := conn.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1)`, Role).Scan(&there); asked == nil && there {
			code = "database_role_closed"
		}
		return problem.Unavailable(code, facts).Because(err)
	}
	if err != nil {
		return fmt.Errorf("create the role of the program: %w", err)
	}
	return nil
}

// plainName is how a role is called that needs no quotation marks in a statement.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// named is a role as a person types it in a statement.
func named(user string) string {
	if plainName.MatchString(user) {
		return user
	}
	return pgx.Identifier{user}.Sanitize()
}
