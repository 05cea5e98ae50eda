// Package pg opens the database and says what a transaction is here: it runs as a role that owns
// nothing, sees no row until it has named its organisations, and is retried by nobody but its
// caller. It has never heard of a seat; what the tables mean is decided in the domain.
package pg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/internal/base/problem"
)

// Role is the lesser role that the program works as: it owns nothing and is subject to
// row-level security.
const Role = "usher_app"

// Bounds of a session. A statement that takes longer is ended by the server, so that a lost node
// cannot hold a lock for ever.
const (
	statementTimeout     = 5 * time.Minute
	idleInTransaction    = time.Minute
	lockTimeout          = time.Minute
	oldestVersion        = 150000
	defaultPoolSize      = 16 // four runs at once hold two each, and pages are answered beside them
	connectTimeout       = 10 * time.Second
	connectionCheckEvery = 10 * time.Second
)

// DB is a pool of sessions that work as Role.
type DB struct {
	pool  *pgxpool.Pool
	clock string // what sets the one clock in each transaction; empty: it goes as it goes
}

// At gives the same sessions with the one clock standing still at an instant, in each of their transactions: for a sample whose past has to be made.
func (db *DB) At(instant time.Time) *DB {
	return &DB{pool: db.pool, clock: "; set local app.clock = '" + instant.UTC().Format(time.RFC3339Nano) + "'"}
}

// Open migrates the database if the URL's user owns it, and returns sessions that work as Role.
// It refuses, in a sentence, a server older than PostgreSQL 15, a schema of another release, a session
// for which row-level security is off, and a database with a tenant table that is not fenced.
func Open(ctx context.Context, serverURL string, migrations Migrations) (*DB, error) {
	config, err := pgxpool.ParseConfig(serverURL)
	if err != nil {
		// The error of the parser may repeat the URL, and with it the password.
		return nil, problem.Invalid("database_url_wrong", nil)
	}
	bound(config.ConnConfig)
	if err := Migrate(ctx, config.ConnConfig, migrations); err != nil {
		return nil, err
	}
	if config.MaxConns < defaultPoolSize {
		config.MaxConns = defaultPoolSize
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role "+Role)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db := &DB{pool: pool}
	if err := db.checkFence(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return db, nil
}

// Database is the URL of another database of the same server, for the same user.
func Database(serverURL, name string) string {
	if parsed, err := url.Parse(serverURL); err == nil && parsed.Scheme != "" {
		parsed.Path = "/" + name
		return parsed.String()
	}
	return serverURL + " dbname=" + name // key=value pairs: the last one counts
}

// bound sets what every session of the program carries. JIT is off because it costs a quarter of
// the speed of the statements here, which are many and short.
func bound(config *pgx.ConnConfig) {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		"application_name":                    "usher",
		"jit":                                 "off",
		"timezone":                            "UTC",
		"statement_timeout":                   millis(statementTimeout),
		"lock_timeout":                        millis(lockTimeout),
		"idle_in_transaction_session_timeout": millis(idleInTransaction),
		"client_connection_check_interval":    millis(connectionCheckEvery),
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// policy is what the policy of a tenant table says, as the server writes it: without spaces and brackets, which are not the
// same in all of its versions. KEY is the column that names the organisation.
const policy = `KEY+0=ANYSELECTstring_to_arraycurrent_setting'app.organisations'::text,true,','::text::bigint[]ASstring_to_array::bigint[]`

// unfenced lists the tenant tables, which are those with an organisation_id and organisation itself, where the session has any right:
// a copy that somebody keeps beside is closed to it. It lists those that the session would see more of than its organisations: row-level security is off or passed by, or other policies stand there than the one. Views must
// look with the eyes of who asks. Beside each stands what brings its fence back, for its owner.
const unfenced = `
with tenant as (
  select c.oid, c.relname, c.relkind, c.relowner, c.reloptions, case c.relname when 'organisation' then 'id' else 'organisation_id' end as key
    from pg_class c
   where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
     and (c.relname = 'organisation' or exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organisation_id' and not a.attisdropped))
     and (has_any_column_privilege(c.oid, 'select, insert, update') or has_table_privilege(c.oid, 'delete, truncate'))
), fence as (
  select t.*,
         (select coalesce(string_agg(format('drop policy %I on %I; ', p.polname, t.relname), '' order by p.polname), '') from pg_policy p where p.polrelid = t.oid) as dropping,
         (select count(*) = 1 and bool_and(
                   p.polname = 'tenant' and p.polpermissive and p.polcmd = '*' and p.polroles = '{0}' and p.polwithcheck is null
                   and regexp_replace(pg_get_expr(p.polqual, p.polrelid), '[\s()]', '', 'g') = replace($1, 'KEY', t.key))
            from pg_policy p where p.polrelid = t.oid) as exact
    from tenant t
)
select relname,
       case when pg_has_role(current_user, relowner, 'member')
            then format('alter table %I owner to %s;', relname, (select relowner::regrole from pg_class where oid = 'goose_db_version'::regclass))
            when relkind = 'v' then format('alter view %I set (security_invoker = true);', relname)
            else dropping || format('call fence_tenant(%L, %L);', relname, key) end
  from fence
 where case relkind when 'v' then not coalesce(reloptions && '{security_invoker=true,security_invoker=on}', false)
            else not (row_security_active(oid) and exact and not pg_has_role(current_user, relowner, 'member')) end
 order by relname collate "C"`

const mostTables = 5 // that a refusal names

// checkFence refuses to work where the database would not keep organisations apart.
func (db *DB) checkFence(ctx context.Context) error {
	var user string
	var owns, bypasses bool
	err := db.pool.QueryRow(ctx, `
select current_user, pg_has_role(current_user, (select relowner from pg_class where oid = 'claim'::regclass), 'member'),
       rolsuper or rolbypassrls or not current_setting('row_security')::boolean
  from pg_roles where rolname = current_user`).Scan(&user, &owns, &bypasses)
	if err != nil {
		return fmt.Errorf("check the role of the program: %w", err)
	}
	if user != Role || owns || bypasses {
		return problem.Unavailable("database_not_fenced", problem.Facts{"user": user, "role": Role})
	}
	tables, repairs, err := Unfenced(ctx, db.pool)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return nil
	}
	shown, more := min(mostTables, len(tables)), ""
	if len(tables) > shown {
		more = strconv.Itoa(len(tables) - shown)
	}
	return problem.Unavailable("database_table_not_fenced", problem.Facts{
		"tables": tables[:shown], "more": more, "commands": strings.Join(repairs[:shown], "\n  "),
	})
}

// Unfenced names the tables and views of organisations that the session would see more of than its own, each with what brings its fence
// back, for the owner of the database. A pool is asked, or a transaction.
func Unfenced(ctx context.Context, of interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
},
) (tables, repairs []string, err error) {
	rows, err := of.Query(ctx, unfenced, policy)
	if err != nil {
		return nil, nil, fmt.Errorf("check the fences of the tables: %w", err)
	}
	var table, repair string
	_, err = pgx.ForEachRow(rows, []any{&table, &repair}, func() error {
		tables, repairs = append(tables, table), append(repairs, repair)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("check the fences of the tables: %w", err)
	}
	return tables, repairs, nil
}

// Close ends the pool; sessions in use are waited for.
func (db *DB) Close() { db.pool.Close() }

// Pool gives machinery that brings its own statements (River, probes) the sessions themselves.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Tx runs fn in one transaction that sees the given organisations and no other; with none given
// every tenant table is empty. It commits when fn returns nil.
func (db *DB) Tx(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, "", organisations, fn)
}

// Limits of one transaction, instead of those of the program.
type Limits struct {
	Idle      time.Duration // between two statements: a process that is stopped there loses its locks
	Lock      time.Duration // for one lock that another has
	Statement time.Duration
}

// TxWithin is Tx within limits of its own.
func (db *DB) TxWithin(ctx context.Context, limits Limits, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, "; set local idle_in_transaction_session_timeout = "+millis(limits.Idle)+"; set local lock_timeout = "+millis(limits.Lock)+
		"; set local statement_timeout = "+millis(limits.Statement), organisations, fn)
}

// Read runs fn on one consistent, read-only moment of the given organisations.
func (db *DB) Read(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, "isolation level repeatable read read only", organisations, fn)
}

// Moment runs fn in one transaction that reads one consistent moment of the given organisations and may
// write. Where another transaction changes the same row meanwhile, it fails and may be repeated
// (MayRepeat).
func (db *DB) Moment(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, "isolation level repeatable read", organisations, fn)
}

// begin names the organisations, and whatever else is set, in the message that begins the transaction: a round trip less for each.
func (db *DB) begin(ctx context.Context, how string, organisations []int64, fn func(pgx.Tx) error) error {
	options := pgx.TxOptions{BeginQuery: "begin " + how + "; set local app.organisations = '" + listed(organisations) + "'" + db.clock}
	return pgx.BeginTxFunc(ctx, db.pool, options, fn)
}

// See lets the rest of the transaction see these organisations instead of those before.
func See(ctx context.Context, tx pgx.Tx, organisations ...int64) error {
	if _, err := tx.Exec(ctx, `select set_config('app.organisations', $1, true)`, listed(organisations)); err != nil {
		return fmt.Errorf("name the organisations of the transaction: %w", err)
	}
	return nil
}

// listed writes ids as the setting has them: digits and commas.
func listed(organisations []int64) string {
	ids := make([]string, len(organisations))
	for i, id := range organisations {
		ids[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(ids, ",")
}

// PlanAnew is given to a query as its first argument, to have it planned at each call and for its arguments: a
// plan that was made while a table was empty is ruinous when the same transaction's run has filled
// it. (The setting plan_cache_mode would do the same to every check of a foreign key.)
const PlanAnew = pgx.QueryExecModeCacheDescribe

// WalkIndexes lets the statements of this transaction walk an order by its index and look the rest up row by row, whatever the
// statistics say: after an import, or in a table that grows each day, there may be none, and the planner then believes that a few
// rows are meant, which it reads and sorts whole for every chunk.
func WalkIndexes(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
set local enable_sort = off; set local enable_incremental_sort = off; set local enable_seqscan = off;
set local enable_bitmapscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off;
set local enable_nestloop to default`)
	if err != nil {
		return fmt.Errorf("have the transaction walk indexes: %w", err)
	}
	return nil
}

// JoinSets lets the statements of this transaction join whole sets, whatever the statistics say: for one that goes through
// everybody, where a look-up for each row takes twice as long.
func JoinSets(ctx context.Context, tx pgx.Tx) error {
	if err := PlanFreely(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local enable_nestloop = off`); err != nil {
		return fmt.Errorf("have the transaction join sets: %w", err)
	}
	return nil
}

// PlanFreely takes WalkIndexes or JoinSets back for what follows in the transaction.
func PlanFreely(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
set local enable_sort to default; set local enable_incremental_sort to default; set local enable_seqscan to default;
set local enable_bitmapscan to default; set local enable_hashjoin to default; set local enable_mergejoin to default;
set local enable_nestloop to default`)
	if err != nil {
		return fmt.Errorf("have the transaction plan freely: %w", err)
	}
	return nil
}

// Parts goes through the rows of a statement on the transaction's own connection, at most size of them
// in memory: each is called for a row that was scanned, done after each part, when the connection is
// free for other statements. What those write is not met. One at a time: it has one cursor.
func Parts(ctx context.Context, tx pgx.Tx, size int, statement string, args, into []any, each func(), done func() error) error {
	// The plan is for all rows, not for the first ones.
	if _, err := tx.Exec(ctx, "set local cursor_tuple_fraction = 1"); err != nil {
		return fmt.Errorf("prepare to read in parts: %w", err)
	}
	if _, err := tx.Exec(ctx, "declare in_parts no scroll cursor for "+statement, append([]any{PlanAnew}, args...)...); err != nil {
		return fmt.Errorf("begin to read in parts: %w", err)
	}
	for more := true; more; {
		// Described each time: the next cursor of this name has other columns.
		rows, err := tx.Query(ctx, "fetch "+strconv.Itoa(size)+" from in_parts", pgx.QueryExecModeDescribeExec)
		if err != nil {
			return fmt.Errorf("read a part: %w", err)
		}
		tag, err := pgx.ForEachRow(rows, into, func() error { each(); return nil })
		if err != nil {
			return fmt.Errorf("read a part: %w", err)
		}
		if more = tag.RowsAffected() == int64(size); tag.RowsAffected() > 0 {
			if err := done(); err != nil {
				return err
			}
		}
	}
	if _, err := tx.Exec(ctx, "close in_parts"); err != nil {
		return fmt.Errorf("end reading in parts: %w", err)
	}
	return nil
}

// Now is the instant by the one clock.
func Now(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	var now time.Time
	if err := tx.QueryRow(ctx, `select clock()`).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return now, nil
}

// Violates tells whether err is the database's refusal by the constraint or unique index named.
func Violates(err error, constraint string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.ConstraintName == constraint
}

// Interrupted tells whether err says that the session or the server was lost, so that nothing is
// known about the row at hand, as opposed to the database refusing that row.
func Interrupted(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return true
	}
	if Paused(err) {
		return true
	}
	switch pgErr.Code[:2] {
	case "08", "53", "57", "58", "XX": // connection, resources, operator, system, internal
		return true
	}
	return false
}

// Paused tells whether err says that the server ended the session because the program gave no sign
// for too long, inside a transaction or outside: it was stopped, or its machine slept.
func Paused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "25P03" || pgErr.Code == "57P05")
}

// Duplicates tells whether err is the refusal of a unique key, whichever.
func Duplicates(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "23505"
}

// Within runs fn inside a savepoint of the transaction: when fn fails, what it did is undone and
// the transaction goes on.
func Within(ctx context.Context, tx pgx.Tx, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, fn)
}

// MayRepeat tells whether err is a passing collision of two transactions (deadlock, serialization,
// lock timeout): the same transaction may succeed when it is run again.
func MayRepeat(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	switch pgErr.Code {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}
