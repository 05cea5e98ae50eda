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
	defaultPoolSize      = 8
	connectTimeout       = 10 * time.Second
	connectionCheckEvery = 10 * time.Second
)

// DB is a pool of sessions that work as Role.
type DB struct {
	pool *pgxpool.Pool
}

// Open migrates the database if the URL's user owns it, and returns sessions that work as Role.
// It refuses, in a sentence, a server older than PostgreSQL 15, a schema of another release and
// a session for which row-level security is off.
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

// checkFence refuses to work where the database would not keep organisations apart.
func (db *DB) checkFence(ctx context.Context) error {
	var user string
	var fenced, owns bool
	err := db.pool.QueryRow(ctx, `
select current_user, row_security_active('claim'),
       pg_has_role(current_user, (select relowner from pg_class where oid = 'claim'::regclass), 'member')`).
		Scan(&user, &fenced, &owns)
	if err != nil {
		return fmt.Errorf("check the role of the program: %w", err)
	}
	if user != Role || owns || !fenced {
		return problem.Unavailable("database_not_fenced", problem.Facts{"user": user, "role": Role})
	}
	return nil
}

// Close ends the pool; sessions in use are waited for.
func (db *DB) Close() { db.pool.Close() }

// Pool gives machinery that brings its own statements (River, probes) the sessions themselves.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Tx runs fn in one transaction that sees the given organisations and no other; with none given
// every tenant table is empty. It commits when fn returns nil.
func (db *DB) Tx(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, pgx.TxOptions{}, organisations, fn)
}

// Read runs fn on one consistent, read-only moment of the given organisations.
func (db *DB) Read(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return db.begin(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, organisations, fn)
}

func (db *DB) begin(ctx context.Context, options pgx.TxOptions, organisations []int64, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, options, func(tx pgx.Tx) error {
		if err := See(ctx, tx, organisations...); err != nil {
			return err
		}
		return fn(tx)
	})
}

// See lets the rest of the transaction see these organisations instead of those before.
func See(ctx context.Context, tx pgx.Tx, organisations ...int64) error {
	ids := make([]string, len(organisations))
	for i, id := range organisations {
		ids[i] = strconv.FormatInt(id, 10)
	}
	if _, err := tx.Exec(ctx, `select set_config('app.organisations', $1, true)`, strings.Join(ids, ",")); err != nil {
		return fmt.Errorf("name the organisations of the transaction: %w", err)
	}
	return nil
}

// PlanAnew is given to a query as its first argument, to have it planned at each call and for its arguments: a
// plan that was made while a table was empty is ruinous when the same transaction's run has filled
// it. (The setting plan_cache_mode would do the same to every check of a foreign key.)
const PlanAnew = pgx.QueryExecModeCacheDescribe

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
	switch pgErr.Code[:2] {
	case "08", "53", "57", "58", "XX": // connection, resources, operator, system, internal
		return true
	}
	return false
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
