package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/internal/base/problem"
)

// UniqueKey says of which rows of a table there may be only one. PostgreSQL has no UNIQUE … NOT VALID: what makes a table that is in
// use unique is an index that is built beside the writers and then attached, which AddUnique does.
type UniqueKey struct {
	Table   string   // in the schema public
	Columns []string // in the order of the index
	// Expressions come behind the columns, and Where says which rows are meant; both are SQL of the program and never of a person.
	// With either of them the result is a unique index and no constraint, because a constraint has columns alone.
	Expressions      []string
	Where            string
	NullsNotDistinct bool   // two rows without a value are alike too
	Name             string // of the constraint or index; empty: from the table and the columns
}

// UniqueRepair is what becomes of duplicates: of each group the first row in the order of Keep stays, and Statement does with the
// others what the caller means by repairing. It is one insert, update or delete that reads them from “surplus”, which has the
// columns of the table and “kept”, the row that stays. It runs in parts, on rows that nobody else can change meanwhile.
type UniqueRepair struct {
	Keep      string // as behind “order by”: “recorded_at, id”
	Statement string
}

// UniqueLimits bound how long AddUnique makes others wait, and how long it waits itself.
type UniqueLimits struct {
	Lock     time.Duration // for the lock that attaches the index, each time: no write waits behind it for longer
	Tries    int           // to get that lock
	Pause    time.Duration // between them, when writers go on
	Patience time.Duration // for transactions that began before, while the index is built
}

// UsualUniqueLimits are for a table that people work on. A transaction of the program itself ends well within Patience.
var UsualUniqueLimits = UniqueLimits{Lock: time.Second, Tries: 60, Pause: 2 * time.Second, Patience: 10 * time.Minute}

func (l UniqueLimits) withDefaults() UniqueLimits {
	usual := UsualUniqueLimits
	for _, d := range []struct{ given, usual *time.Duration }{{&l.Lock, &usual.Lock}, {&l.Pause, &usual.Pause}, {&l.Patience, &usual.Patience}} {
		if *d.given <= 0 {
			*d.given = *d.usual
		}
	}
	if l.Tries < 1 {
		l.Tries = usual.Tries
	}
	return l
}

const (
	mostUniqueColumns = 32 // PostgreSQL's own bound for an index
	mostDuplicates    = 20 // groups that are listed
	mostNamed         = 5  // that a refusal names
	mostRepairs       = 3  // passes over the table: writers may add duplicates behind the first
	mostName          = 63 // bytes of a name
	watchedEvery      = 500 * time.Millisecond
	tidiedWithin      = time.Minute // what is left when the caller gave up
)

// UniqueAt is what AddUnique is at.
type UniqueAt string

// What AddUnique does, in this order.
const (
	UniqueLooks    UniqueAt = "looks"    // for duplicates
	UniqueRepairs  UniqueAt = "repairs"  // duplicates
	UniqueRemoves  UniqueAt = "removes"  // what an earlier attempt left
	UniqueBuilds   UniqueAt = "builds"   // the index
	UniqueWaits    UniqueAt = "waits"    // for transactions that are older than the index
	UniqueBuilt    UniqueAt = "built"    // and valid, but nothing relies on it yet
	UniqueAttaches UniqueAt = "attaches" // the index, under its name
	UniqueEvaded   UniqueAt = "evaded"   // somebody has the table locked: writers go first
)

// UniqueStep tells how far AddUnique is.
type UniqueStep struct {
	At      UniqueAt
	PID     uint32    // of the session that works
	Try     int       // to attach, from 1
	Waits   []Blocker // for these
	Surplus int64     // rows that are to be repaired
}

// Blocker is a session that somebody waits for.
type Blocker struct {
	PID     int32     `json:"pid"`
	User    string    `json:"user"`
	Program string    `json:"program"`
	State   string    `json:"state"` // active, idle in transaction
	Since   time.Time `json:"since"` // its transaction began
}

func (b Blocker) String() string {
	return fmt.Sprintf("%d (%s, %s, %s)", b.PID, b.User, b.Program, b.Since.UTC().Format("2006-01-02 15:04:05Z"))
}

// DuplicateGroups are rows that are alike in the columns of a key.
type DuplicateGroups struct {
	Groups  int64            `json:"groups"`
	Surplus int64            `json:"surplus"` // rows, without the first of each group
	Largest []DuplicateGroup `json:"largest"` // at most twenty groups
}

// DuplicateGroup is one group of rows that are alike.
type DuplicateGroup struct {
	Values []*string `json:"values"` // of the columns, as text
	Rows   int64     `json:"rows"`
}

// Texts are the values as they are shown.
func (d DuplicateGroup) Texts() []string {
	texts := make([]string, len(d.Values))
	for i, value := range d.Values {
		if texts[i] = "NULL"; value != nil {
			texts[i] = *value
		}
	}
	return texts
}

func (d DuplicateGroup) String() string {
	return fmt.Sprintf("%s (%d)", strings.Join(d.Texts(), ", "), d.Rows)
}

// UniqueResult is what came of AddUnique or LookForDuplicates.
type UniqueResult struct {
	Name       string          // of the constraint or index that keeps the rows apart
	Already    bool            // it was there before, and nothing was changed
	Duplicates DuplicateGroups // as they were found first
	Repaired   int64           // rows too many that the repair changed or removed
	Others     int64           // rows of other tables that it wrote with them
	Resumed    bool            // an index was attached that an earlier attempt had built
	Removed    bool            // an invalid index that an earlier attempt had left
	Tries      int             // to attach it
	Strangers  []string        // unique indexes of the table that are invalid, forbid nothing for certain, and are somebody else's
	Leftover   string          // an index of an earlier attempt, which the next one removes, or attaches where Resumed says so; of a look
	Left       int64           // rows that a repair would leave alike; of a trial
	Untold     bool            // the trial could not tell in time whether there are more of them
}

// UniqueBuilding is how the name of an index ends until it is valid and attached.
const UniqueBuilding = "_usher_building"

// IndexHolds is the condition under which a row x of pg_index is relied on: it has read the whole table, each writer keeps it, and
// nobody is removing it.
const IndexHolds = "x.indisvalid and x.indisready and x.indislive"

// AddUnique makes rows unique in a table that is in use: reads and writes go on all the while. Duplicates are refused with the largest
// groups named, or repaired when a repair is given; the index is built concurrently; it is looked at whether it is valid; it is
// attached under a lock that is given up after Lock and tried again. It connects as the user of config, who owns the table, and may
// be ended at any point: called again, it goes on, or begins again where it must. There is never an index under the name of
// the key that is not valid: until then it has another. Where the key is there already, nothing is changed. What it is at it tells one
// after the other, and waits for whoever is told.
func AddUnique(ctx context.Context, config *pgx.ConnConfig, key UniqueKey, repair *UniqueRepair, limits UniqueLimits, tell func(UniqueStep)) (UniqueResult, error) {
	b, err := connectUnique(ctx, config, key, limits, tell)
	if err != nil {
		return UniqueResult{}, err
	}
	defer b.close(ctx)
	err = b.work(ctx, repair)
	return b.result, b.inWords(ctx, err)
}

// work makes the key, from wherever an earlier attempt came to.
func (b *builder) work(ctx context.Context, repair *UniqueRepair) error {
	if err := b.alone(ctx); err != nil {
		return err
	}
	if err := b.look(ctx); err != nil || b.result.Already {
		return err
	}
	if !b.result.Resumed {
		if err := b.removeLeftover(ctx); err != nil {
			return err
		}
		if err := b.settleDuplicates(ctx, repair); err != nil {
			return err
		}
		if err := b.build(ctx); err != nil {
			return err
		}
	}
	b.tell(UniqueStep{At: UniqueBuilt})
	return b.attach(ctx)
}

// inWords says of a session that somebody else ended what is to be done, and of every refusal what was repaired before it.
func (b *builder) inWords(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	refused, told := problem.Of(err)
	if !told {
		if code := codeOf(err); !b.conn.IsClosed() && !strings.HasPrefix(code, "57P") && code != "25P03" {
			return err
		}
		refused = problem.Unavailable("unique_interrupted", problem.Facts{"table": b.key.Table}).Because(err)
		err = refused
	}
	if b.result.Repaired > 0 {
		refused.Facts["repaired"], refused.Facts["others"] = b.result.Repaired, b.result.Others
	}
	return err
}

// LookForDuplicates tells what AddUnique would find, and changes nothing.
func LookForDuplicates(ctx context.Context, config *pgx.ConnConfig, key UniqueKey) (UniqueResult, error) {
	b, err := connectUnique(ctx, config, key, UniqueLimits{}, nil)
	if err != nil {
		return UniqueResult{}, err
	}
	defer b.close(ctx)
	if err := b.lookOnly(ctx); err != nil || b.result.Already {
		return b.result, b.inWords(ctx, err)
	}
	b.result.Duplicates, err = b.duplicates(ctx)
	return b.result, b.inWords(ctx, err)
}

// lookOnly finds out what is there already, and names what an earlier attempt left, unless one is at work.
func (b *builder) lookOnly(ctx context.Context) error {
	if err := b.look(ctx); err != nil || !b.left {
		return err
	}
	who, err := b.builders(ctx)
	if err == nil && len(who) == 0 {
		b.result.Leftover = b.key.buildingName()
	}
	return err
}

// DuplicatesRefused is how rows that are alike are refused: with their number, and the largest groups named.
func DuplicatesRefused(key UniqueKey, found DuplicateGroups) *problem.Problem {
	return key.refuseNamed("unique_duplicates", found)
}

// UniqueMigration is how a migration adds uniqueness to a table of an earlier one: as a step, since an index is not built
// concurrently inside a transaction. With duplicates and no repair it ends the migration, in words.
type UniqueMigration struct {
	Key    UniqueKey
	Repair *UniqueRepair // nil: none
}

func (m UniqueMigration) step(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := AddUnique(ctx, pool.Config().ConnConfig, m.Key, m.Repair, UniqueLimits{}, nil)
	return err
}

// builder makes one key.
type builder struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn // that works; it carries no transaction between two steps
	key    UniqueKey
	limits UniqueLimits
	tell   func(UniqueStep)
	oid    uint32 // of the table
	result UniqueResult
	named  bool // by the caller: the same key under another name is not what was asked for
	trying bool // repairs are rolled back
	left   bool // an index is there under the name of those that are being built
}

func connectUnique(ctx context.Context, config *pgx.ConnConfig, key UniqueKey, limits UniqueLimits, tell func(UniqueStep)) (*builder, error) {
	given := key.Name != ""
	if !given {
		key.Name = clip(key.Table+"_"+strings.Join(key.Columns, "_"), "_key")
	}
	b := &builder{config: config.Copy(), key: key, named: given, limits: limits.withDefaults(), result: UniqueResult{Name: key.Name}}
	bound(b.config)
	for name, value := range map[string]string{
		"statement_timeout": "0", // building takes as long as the table is long
		"lock_timeout":      millis(b.limits.Patience),
	} {
		b.config.RuntimeParams[name] = value
	}
	// Who gives up has the statement ended on the server, so that what is left of it can be removed over the same session.
	b.config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: 0, DeadlineDelay: tidiedWithin}
	}
	conn, err := pgx.ConnectConfig(ctx, b.config)
	if err != nil {
		return nil, unreachable(err)
	}
	b.conn = conn
	var one sync.Mutex // what is waited for is seen by another goroutine
	b.tell = func(step UniqueStep) {
		one.Lock()
		defer one.Unlock()
		if step.PID = conn.PgConn().PID(); tell != nil {
			tell(step)
		}
	}
	if err := b.checkTable(ctx); err != nil {
		b.close(ctx)
		return nil, err
	}
	return b, nil
}

// close ends the session, and with it the lock of alone.
func (b *builder) close(ctx context.Context) { _ = b.conn.Close(context.WithoutCancel(ctx)) }

// clip makes a name of at most as many bytes as PostgreSQL keeps, with its ending.
func clip(name, ending string) string {
	most := mostName - len(ending)
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return name + ending
}

// buildingName is the name of the index until it is valid and attached: by it an earlier attempt is known.
func (k UniqueKey) buildingName() string { return clip(k.Name, UniqueBuilding) }

// isIndex tells whether the key cannot be a constraint.
func (k UniqueKey) isIndex() bool { return k.Where != "" || len(k.Expressions) > 0 }

func (k UniqueKey) table() string { return pgx.Identifier{"public", k.Table}.Sanitize() }

// parts are the columns and expressions, as they stand in a statement.
func (k UniqueKey) parts() []string {
	var parts []string
	for _, column := range k.Columns {
		parts = append(parts, pgx.Identifier{column}.Sanitize())
	}
	for _, expression := range k.Expressions {
		parts = append(parts, "("+expression+")")
	}
	return parts
}

// definition is the index without its name. It is also what is kept beside an index, so that a later attempt knows it for its own.
func (k UniqueKey) definition() string {
	text := "on " + k.table() + " (" + strings.Join(k.parts(), ", ") + ")"
	if k.NullsNotDistinct {
		text += " nulls not distinct"
	}
	if k.Where != "" {
		text += " where " + k.Where
	}
	return text
}

// rows says which rows the key is about: without a value a row is like no other.
func (k UniqueKey) rows() string {
	conditions := []string{"true"}
	if k.Where != "" {
		conditions = append(conditions, "("+k.Where+")")
	}
	if !k.NullsNotDistinct {
		for _, part := range k.parts() {
			conditions = append(conditions, part+" is not null")
		}
	}
	return strings.Join(conditions, " and ")
}

func (b *builder) checkTable(ctx context.Context) error {
	var kind string
	var owns bool
	var columns []string
	err := b.conn.QueryRow(ctx, `
select c.oid, c.relkind::text, pg_has_role(current_user, c.relowner, 'member'),
       array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum)
  from pg_class c where c.relname = $1 and c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')`, b.key.Table).
		Scan(&b.oid, &kind, &owns, &columns)
	facts := problem.Facts{"table": b.key.Table}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return problem.NotFound("unique_table_unknown", facts)
	case err != nil:
		return fmt.Errorf("look at the table: %w", err)
	case kind == "p":
		return problem.Refused("unique_table_partitioned", facts)
	case kind != "r":
		return problem.Refused("unique_no_table", facts)
	case !owns:
		return problem.Refused("unique_not_owner", problem.Facts{"table": b.key.Table, "user": named(b.config.User)})
	}
	return b.key.checkColumns(columns)
}

func (k UniqueKey) checkColumns(known []string) error {
	if n := len(k.Columns) + len(k.Expressions); n == 0 || n > mostUniqueColumns {
		return problem.Invalid("unique_columns_many", problem.Facts{"most": mostUniqueColumns})
	}
	for i, column := range k.Columns {
		if !slices.Contains(known, column) {
			return problem.NotFound("unique_column_unknown", problem.Facts{"table": k.Table, "column": column, "known": known})
		}
		if slices.Contains(k.Columns[:i], column) {
			return problem.Invalid("unique_column_twice", problem.Facts{"column": column})
		}
	}
	if len(k.Name) > mostName {
		return problem.Invalid("unique_name_long", problem.Facts{"name": k.Name, "most": mostName})
	}
	return nil
}

// alone keeps two from making keys of one table at once: the second would take the first's index for something that was left. The
// server gives the lock back with the session, and so not before a statement has ended whose client died.
func (b *builder) alone(ctx context.Context) error {
	var got bool
	if err := b.conn.QueryRow(ctx, `select pg_try_advisory_lock('pg_class'::regclass::oid::int, $1::oid::int)`, b.oid).Scan(&got); err != nil {
		return fmt.Errorf("keep others from the table: %w", err)
	}
	if got {
		return nil
	}
	who, err := b.builders(ctx)
	if err != nil {
		return err
	}
	var behind []Blocker // whom they wait for: it is those that somebody has to end
	for _, one := range who {
		waits, err := blockersOf(ctx, b.conn, one.PID)
		if err != nil {
			return err
		}
		behind = append(behind, waits...)
	}
	facts := problem.Facts{"table": b.key.Table, "who": written(who), "behind": ""}
	if len(behind) > 0 {
		facts["behind"] = strings.Join(written(behind), "; ")
	}
	return problem.Refused("unique_busy", facts)
}

// builders are the sessions that make a key of the table at this moment.
func (b *builder) builders(ctx context.Context) ([]Blocker, error) {
	rows, err := b.conn.Query(ctx, blockers+`
 where a.pid in (select l.pid from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 2
                    and l.classid = 'pg_class'::regclass and l.objid = $1
                    and l.database = (select oid from pg_database where datname = current_database()))`, b.oid)
	if err != nil {
		return nil, fmt.Errorf("look who is at the table: %w", err)
	}
	who, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Blocker])
	if err != nil {
		return nil, fmt.Errorf("look who is at the table: %w", err)
	}
	return who, nil
}

// blockers reads sessions; a condition on a follows.
const blockers = `
select a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(a.state, ''), coalesce(a.xact_start, a.backend_start, '-infinity')
  from pg_stat_activity a`

func written[T fmt.Stringer](all []T) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return texts
}

// standing is a unique index that the table has.
type standing struct {
	Name       string
	Constraint bool
	Holds      bool // it is valid, and kept by every writer
	Same       bool // it has the columns of the key, in any order, and nothing else, and is not deferrable
	Comment    string
}

// look finds out what is there already.
func (b *builder) look(ctx context.Context) error {
	rows, err := b.conn.Query(ctx, `
select i.relname::text, exists (select from pg_constraint k where k.conindid = i.oid and k.conrelid = x.indrelid and k.contype in ('u', 'p')),
       `+IndexHolds+`,
       x.indpred is null and x.indexprs is null and x.indimmediate and (x.indnullsnotdistinct = $3 or x.indisprimary)
         and array(select a.attname::text from unnest(x.indkey[0:x.indnkeyatts - 1]) n join pg_attribute a on a.attrelid = x.indrelid and a.attnum = n order by 1)
             = array(select unnest($2::text[]) order by 1),
       coalesce(obj_description(i.oid, 'pg_class'), '')
  from pg_index x join pg_class i on i.oid = x.indexrelid
 where x.indrelid = $1 and x.indisunique order by i.relname`, b.oid, b.key.Columns, b.key.NullsNotDistinct)
	if err != nil {
		return fmt.Errorf("look at the indexes of the table: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowToStructByPos[standing])
	if err != nil {
		return fmt.Errorf("look at the indexes of the table: %w", err)
	}
	for _, index := range there {
		b.judge(index)
	}
	if b.result.Already {
		return nil
	}
	return b.checkName(ctx)
}

// judge says what an index that is there means for the key.
func (b *builder) judge(index standing) {
	ours := index.Comment == b.key.definition()
	switch {
	case index.Name == b.key.buildingName():
		b.left, b.result.Resumed = true, index.Holds && ours
	case !index.Holds:
		b.result.Strangers = append(b.result.Strangers, index.Name)
	case (!b.named || index.Name == b.key.Name) && (b.key.isIndex() && ours || !b.key.isIndex() && index.Same):
		b.result.Already, b.result.Name = true, index.Name
	}
}

// checkName refuses a name that something else has, which would only be found out once the index is built.
func (b *builder) checkName(ctx context.Context) error {
	var taken bool
	err := b.conn.QueryRow(ctx, `
select exists (select from pg_class where relname = $2 and relnamespace = 'public'::regnamespace)
    or exists (select from pg_constraint where conname = $2 and conrelid = $1)`, b.oid, b.key.Name).Scan(&taken)
	if err != nil {
		return fmt.Errorf("look for the name of the key: %w", err)
	}
	if taken {
		return problem.Refused("unique_name_taken", problem.Facts{"name": b.key.Name, "table": b.key.Table})
	}
	if b.left {
		return nil
	}
	// The index has another name until it is attached. Somebody else's under that one is not ours to remove.
	err = b.conn.QueryRow(ctx, `select exists (select from pg_class where relname = $1 and relnamespace = 'public'::regnamespace)`, b.key.buildingName()).Scan(&taken)
	if err != nil {
		return fmt.Errorf("look for the name of the index: %w", err)
	}
	if taken {
		return b.buildingTaken()
	}
	return nil
}

func (b *builder) buildingTaken() *problem.Problem {
	return problem.Refused("unique_name_taken", problem.Facts{"name": b.key.buildingName(), "table": b.key.Table})
}

// removeLeftover removes what an earlier attempt left under the name of those that are being built: an invalid index, which writers
// keep up and nobody can rely on, or a valid one of another definition.
func (b *builder) removeLeftover(ctx context.Context) error {
	if !b.left {
		return nil
	}
	b.tell(UniqueStep{At: UniqueRemoves})
	if err := b.drop(ctx); err != nil {
		return err
	}
	b.left, b.result.Removed = false, true
	return nil
}

// drop removes the index under the name of those that are being built, if it is one of the table.
func (b *builder) drop(ctx context.Context) error {
	name := b.key.buildingName()
	var ours bool
	err := b.conn.QueryRow(ctx, `
select exists (select from pg_index x join pg_class i on i.oid = x.indexrelid
                where x.indrelid = $1 and i.relname = $2 and i.relnamespace = 'public'::regnamespace)`, b.oid, name).Scan(&ours)
	if err != nil || !ours {
		return err
	}
	if _, err := b.conn.Exec(ctx, "drop index concurrently if exists "+pgx.Identifier{"public", name}.Sanitize()); err != nil {
		return problem.Refused("unique_leftover", problem.Facts{"index": name, "table": b.key.Table}).Because(err)
	}
	return nil
}

// duplicates lists the rows that are alike, the largest groups first.
func (b *builder) duplicates(ctx context.Context) (DuplicateGroups, error) {
	b.tell(UniqueStep{At: UniqueLooks})
	parts := b.key.parts()
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part + "::text"
	}
	found := DuplicateGroups{Largest: []DuplicateGroup{}}
	rows, err := b.conn.Query(ctx, `
with found as (
  select array[`+strings.Join(texts, ", ")+`] as values, count(*) as rows from `+b.key.table()+`
   where `+b.key.rows()+` group by `+strings.Join(parts, ", ")+` having count(*) > 1
)
select values, rows, count(*) over (), (sum(rows - 1) over ())::bigint from found order by rows desc, values limit $1`, mostDuplicates)
	if err != nil {
		return found, b.explain(err, "look for duplicates")
	}
	var one DuplicateGroup
	_, err = pgx.ForEachRow(rows, []any{&one.Values, &one.Rows, &found.Groups, &found.Surplus}, func() error {
		found.Largest = append(found.Largest, DuplicateGroup{Values: slices.Clone(one.Values), Rows: one.Rows})
		return nil
	})
	if err != nil {
		return found, b.explain(err, "look for duplicates")
	}
	return found, nil
}

// settleDuplicates ends with no duplicates in sight, or with a refusal that names them.
func (b *builder) settleDuplicates(ctx context.Context, repair *UniqueRepair) error {
	code, stuck := "unique_duplicates", false
	if repair != nil {
		code = "unique_repair_leaves"
	}
	for pass := 1; ; pass++ {
		found, err := b.duplicates(ctx)
		if err != nil {
			return err
		}
		if pass == 1 {
			b.result.Duplicates = found
		}
		if found.Groups == 0 {
			return nil
		}
		if repair == nil || pass > mostRepairs || stuck {
			return b.key.refuseNamed(code, found)
		}
		done, err := b.repair(ctx, *repair, found)
		b.result.Repaired, b.result.Others = b.result.Repaired+done.repaired, b.result.Others+done.others
		if errors.Is(err, errIdle) {
			return b.key.refuseNamed(code, found)
		}
		if err != nil {
			return err
		}
		// What is alike after the rule went over it stays so; the next pass is for what came meanwhile.
		if stuck, err = b.leavesAlike(ctx, done); err != nil {
			return err
		}
	}
}

func (k UniqueKey) refuseNamed(code string, found DuplicateGroups) *problem.Problem {
	named := found.Largest[:min(mostNamed, len(found.Largest))]
	return problem.Refused(code, problem.Facts{
		"table": k.Table, "columns": append(slices.Clone(k.Columns), k.Expressions...), "groups": found.Groups, "surplus": found.Surplus,
		"largest": strings.Join(written(named), "; "), "more": found.Groups > int64(len(named)),
	})
}

// build builds the index beside the writers, and leaves none that is not valid.
func (b *builder) build(ctx context.Context) error {
	b.tell(UniqueStep{At: UniqueBuilds})
	waited, stop := b.watch(ctx)
	_, err := b.conn.Exec(ctx, "create unique index concurrently "+pgx.Identifier{b.key.buildingName()}.Sanitize()+" "+b.key.definition())
	stop()
	if err == nil {
		err = b.checkValid(ctx)
	}
	if err == nil {
		return nil
	}
	if b.conn.IsClosed() { // the next attempt removes what is left
		return fmt.Errorf("build the index: %w", err)
	}
	if codeOf(err) == "42P07" { // what has the name is not what was built
		return b.buildingTaken().Because(err)
	}
	left := b.tidy(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch codeOf(err) {
	case "23505":
		found, looked := b.duplicates(ctx)
		if looked != nil || left != nil {
			return errors.Join(looked, left)
		}
		return b.key.refuseNamed("unique_duplicate_arrived", found)
	case "55P03": // and so the removing waits for the same transactions, most likely in vain
		facts := problem.Facts{"table": b.key.Table, "minutes": int(b.limits.Patience.Minutes()), "who": written(waited()), "left": ""}
		if left != nil {
			facts["left"] = b.key.buildingName()
		}
		return problem.Refused("unique_waited", facts).Because(err)
	}
	if left != nil {
		return errors.Join(left, err)
	}
	return b.explain(err, "build the index")
}

// tidy removes what a build left that came to no end, also for a caller who gave up.
func (b *builder) tidy(ctx context.Context) error {
	tidying, end := context.WithTimeout(context.WithoutCancel(ctx), min(tidiedWithin, b.limits.Patience))
	defer end()
	return b.drop(tidying)
}

// checkValid looks whether the index can be relied on, and writes beside it what it is: from then on another attempt can go on.
func (b *builder) checkValid(ctx context.Context) error {
	index := pgx.Identifier{"public", b.key.buildingName()}.Sanitize()
	var valid bool
	err := b.conn.QueryRow(ctx, "select "+IndexHolds+" from pg_index x where x.indexrelid = $1::text::regclass", index).Scan(&valid)
	if err != nil {
		return fmt.Errorf("look at the index that was built: %w", err)
	}
	if !valid {
		return problem.Refused("unique_invalid", problem.Facts{"table": b.key.Table})
	}
	_, err = b.conn.Exec(ctx, "comment on index "+index+" is '"+strings.ReplaceAll(b.key.definition(), "'", "''")+"'")
	return err
}

// watch tells whom the building waits for, over a session of its own, until it is stopped. What it cannot find out, nobody needs to
// go on.
func (b *builder) watch(ctx context.Context) (last func() []Blocker, stop func()) {
	watching, end := context.WithCancel(ctx)
	done := make(chan []Blocker, 1)
	worker := int32(b.conn.PgConn().PID()) //nolint:gosec // an id of a process
	go func() {
		var seen []Blocker
		defer func() { done <- seen }()
		conn, err := pgx.ConnectConfig(watching, b.config)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close(context.WithoutCancel(watching)) }()
		ticks := time.NewTicker(watchedEvery)
		defer ticks.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-ticks.C:
			}
			if who, err := blockersOf(watching, conn, worker); err == nil && len(who) > 0 {
				seen = who
				b.tell(UniqueStep{At: UniqueWaits, Waits: who})
			}
		}
	}()
	var whom []Blocker
	return func() []Blocker { return whom }, func() { end(); whom = <-done }
}

func blockersOf(ctx context.Context, conn *pgx.Conn, worker int32) ([]Blocker, error) {
	rows, err := conn.Query(ctx, blockers+` where a.pid = any(pg_blocking_pids($1))`, worker)
	if err != nil {
		return nil, fmt.Errorf("look who is waited for: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Blocker])
}

// attach makes the index what the key is called. The lock that a constraint needs stops everybody, and whoever comes behind it in the
// queue waits as well: it is given up soon, writers go on, and it is tried again.
func (b *builder) attach(ctx context.Context) error {
	name, building := pgx.Identifier{b.key.Name}.Sanitize(), pgx.Identifier{b.key.buildingName()}.Sanitize()
	statement := "alter table " + b.key.table() + " add constraint " + name + " unique using index " + building
	if b.key.isIndex() {
		statement = "alter index public." + building + " rename to " + name
	}
	for b.result.Tries = 1; ; b.result.Tries++ {
		b.tell(UniqueStep{At: UniqueAttaches, Try: b.result.Tries})
		err := pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "set local lock_timeout = "+millis(b.limits.Lock)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, statement)
			return err
		})
		if !MayRepeat(err) {
			return b.explain(err, "attach the index")
		}
		who, looked := b.holders(ctx)
		if looked != nil {
			return looked
		}
		b.tell(UniqueStep{At: UniqueEvaded, Try: b.result.Tries, Waits: who})
		if b.result.Tries == b.limits.Tries {
			return problem.Refused("unique_not_attached", problem.Facts{"table": b.key.Table, "tries": b.result.Tries, "who": written(who)}).Because(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.limits.Pause):
		}
	}
}

// holders are those who have the table locked, the oldest transactions first.
func (b *builder) holders(ctx context.Context) ([]Blocker, error) {
	rows, err := b.conn.Query(ctx, blockers+`
 where a.pid <> pg_backend_pid() and a.pid in (select l.pid from pg_locks l where l.relation = $1 and l.granted)
 order by a.xact_start limit $2`, b.oid, mostDuplicates)
	if err != nil {
		return nil, fmt.Errorf("look who has the table: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Blocker])
}

// explain turns what the server refuses into words, where a person can do something about it.
func (b *builder) explain(err error, act string) error {
	if err == nil {
		return nil
	}
	if _, told := problem.Of(err); told {
		return err
	}
	facts := problem.Facts{"table": b.key.Table, "columns": b.key.Columns}
	switch codeOf(err) {
	case "42704", "42883": // a type that has no order
		return problem.Refused("unique_type", facts).Because(err)
	case "54000": // a value of more bytes than fit into an index
		return problem.Refused("unique_value_long", facts).Because(err)
	case "42P07", "42710":
		return problem.Refused("unique_name_taken", problem.Facts{"name": b.key.Name, "table": b.key.Table}).Because(err)
	}
	return fmt.Errorf("%s: %w", act, err)
}

func codeOf(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}
