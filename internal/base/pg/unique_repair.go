package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/problem"
)

const (
	repairedAtOnce = 1000                  // rows of one transaction, which are locked until it ends
	repairedWithin = 2 * time.Second       // the statement of one transaction, else it is tried with half of the rows
	repairPause    = 20 * time.Millisecond // between two, for those who waited
)

// TryRepair executes what AddUnique would do about duplicates, in the same parts, and rolls each of them back: Repaired is the number
// of rows that would change, Left that of those which would be alike all the same. Parts that belong to each other are tried apart, so
// what a later one would find changed it does not see.
func TryRepair(ctx context.Context, config *pgx.ConnConfig, key UniqueKey, rule UniqueRepair) (UniqueResult, error) {
	b, err := connectUnique(ctx, config, key, UniqueLimits{}, nil)
	if err != nil {
		return UniqueResult{}, err
	}
	defer b.close(ctx)
	b.trying = true
	if err := b.lookOnly(ctx); err != nil || b.result.Already {
		return b.result, b.inWords(ctx, err)
	}
	if b.result.Duplicates, err = b.duplicates(ctx); err != nil || b.result.Duplicates.Groups == 0 {
		return b.result, b.inWords(ctx, err)
	}
	would, err := b.repair(ctx, rule, b.result.Duplicates)
	err = b.inWords(ctx, err) // before anything counts as repaired
	b.result.Repaired = would
	return b.result, err
}

// repair applies the caller's rule to the rows that are alike now, in parts, and returns how many it changed. A row that somebody
// changes before its part comes is left to the next pass.
func (b *builder) repair(ctx context.Context, rule UniqueRepair, found DuplicateGroups) (int64, error) {
	b.tell(UniqueStep{At: UniqueRepairs, Surplus: found.Surplus})
	parts := strings.Join(b.key.parts(), ", ")
	keys := make([]string, len(b.key.parts()))
	for i, part := range b.key.parts() {
		keys[i] = part + " as usher_key_" + strconv.Itoa(i)
	}
	if _, err := b.conn.Exec(ctx, `drop table if exists pg_temp.usher_alike`); err != nil {
		return 0, fmt.Errorf("list the rows that are alike: %w", err)
	}
	tag, err := b.conn.Exec(ctx, `
create temp table usher_alike as
select row_number() over (order by usher_nth, usher_rank) as usher_row, g.* from (
  select `+strings.Join(keys, ", ")+`, t.ctid as usher_at, dense_rank() over (order by `+parts+`) as usher_nth,
         row_number() over (partition by `+parts+` order by `+rule.Keep+`, t.ctid) as usher_rank, count(*) over (partition by `+parts+`) as usher_rows
    from `+b.key.table()+` t where `+b.key.rows()+`) g
 where usher_rows > $1`, pgx.QueryExecModeExec, 1) // with an argument a text is one statement and no more
	if err != nil {
		return 0, b.explainRepair(ctx, err)
	}
	var changed int64
	size := int64(repairedAtOnce)
	for from := int64(0); from < tag.RowsAffected(); {
		n, err := b.repairPart(ctx, rule, from, from+size)
		if codeOf(err) == "57014" && ctx.Err() == nil && size > 1 {
			size /= 2
			continue
		}
		if err != nil {
			return changed, b.explainRepair(ctx, err)
		}
		changed, from = changed+n, from+size
		select {
		case <-ctx.Done():
			return changed, ctx.Err()
		case <-time.After(repairPause):
		}
	}
	return changed, nil
}

// errTried rolls back a part that was only to be tried.
var errTried = errors.New("tried")

// repairPart repairs some rows in one transaction. They and those that stay are locked first, in the order of the key, and judged
// afterwards: else somebody could take the row away that was to stay, and the group would be lost with it.
func (b *builder) repairPart(ctx context.Context, rule UniqueRepair, from, to int64) (changed int64, err error) {
	alike := " from " + b.key.table() + " t join pg_temp.usher_alike k on t.ctid = k.usher_at and " + b.key.alike() + `
 where (k.usher_row > $1 and k.usher_row <= $2
        or k.usher_rank = 1 and k.usher_nth in (select o.usher_nth from pg_temp.usher_alike o where o.usher_row > $1 and o.usher_row <= $2))`
	if b.key.Where != "" {
		alike += " and (" + b.key.Where + ")"
	}
	for try := 1; ; try++ {
		err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "set local lock_timeout = "+millis(b.limits.Lock)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "select 1"+alike+" order by k.usher_row for update of t", pgx.QueryExecModeExec, from, to); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "set local statement_timeout = "+millis(repairedWithin)); err != nil {
				return err
			}
			if changed, err = b.applyRule(ctx, tx, rule, alike, from, to); err != nil || !b.trying {
				return err
			}
			if err := b.leftAlike(ctx, tx); codeOf(err) == "57014" && ctx.Err() == nil {
				b.result.Untold = true
			} else if err != nil {
				return err
			}
			return errTried
		})
		if errors.Is(err, errTried) {
			return changed, nil
		}
		if !MayRepeat(err) || try == b.limits.Tries {
			return changed, err
		}
	}
}

// applyRule has the caller's statement change the rows too many among those that are locked, and refuses one that reaches further.
func (b *builder) applyRule(ctx context.Context, tx pgx.Tx, rule UniqueRepair, alike string, from, to int64) (int64, error) {
	if _, err := tx.Exec(ctx, `
create temp table usher_locked on commit drop as
select t.ctid as usher_now, k.usher_nth, row_number() over (partition by k.usher_nth order by `+rule.Keep+`, t.ctid) as usher_rank`+alike,
		pgx.QueryExecModeExec, from, to); err != nil {
		return 0, err
	}
	var surplus int64
	if err := tx.QueryRow(ctx, `select count(*) from pg_temp.usher_locked where usher_rank > $1`, pgx.QueryExecModeExec, 1).Scan(&surplus); err != nil || surplus == 0 {
		return 0, err
	}
	before, err := b.changes(ctx, tx)
	if err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, `
with ranked as (
  select t.*, l.usher_rank, first_value(t) over (partition by l.usher_nth order by l.usher_rank) as kept
    from `+b.key.table()+` t join pg_temp.usher_locked l on t.ctid = l.usher_now
), surplus as (select * from ranked where usher_rank > $1)
`+rule.Statement, pgx.QueryExecModeExec, 1)
	if err != nil {
		return 0, err
	}
	after, err := b.changes(ctx, tx)
	if err != nil {
		return 0, err
	}
	// A row that was changed or is gone is no longer where it was.
	var touched int64
	if err := tx.QueryRow(ctx, `
select count(*) from pg_temp.usher_locked l
 where l.usher_rank = $1 and not exists (select from `+b.key.table()+` t where t.ctid = l.usher_now)`, pgx.QueryExecModeExec, 1).Scan(&touched); err != nil {
		return 0, err
	}
	if changed := after - before; changed > surplus || touched > 0 {
		return 0, problem.Refused("unique_repair_wide", problem.Facts{"table": b.key.Table, "changed": changed, "surplus": surplus, "kept": touched})
	}
	return tag.RowsAffected(), nil
}

// leftAlike adds up, inside a part that is tried, the rows too many that the rule left as they were, and those that it changed into
// something that is like others.
func (b *builder) leftAlike(ctx context.Context, tx pgx.Tx) error {
	var untouched, changed int64
	if err := tx.QueryRow(ctx, `
select count(*) from pg_temp.usher_locked l
 where l.usher_rank > $1 and exists (select from `+b.key.table()+` t where t.ctid = l.usher_now)`, pgx.QueryExecModeExec, 1).Scan(&untouched); err != nil {
		return fmt.Errorf("look what the repair leaves: %w", err)
	}
	b.result.Left += untouched
	parts := strings.Join(b.key.parts(), ", ")
	mine := b.key.rows() + " and t.xmin = pg_current_xact_id()::xid"
	from := b.key.table() + " t where " + b.key.rows()
	if !b.key.NullsNotDistinct { // few rows to compare with; nothing is in a list because it is nothing, and then all are compared
		from += " and (" + parts + ") in (select " + parts + " from " + b.key.table() + " t where " + mine + ")"
	}
	if err := tx.QueryRow(ctx, `
select coalesce(sum(mine), 0)::bigint from (
  select count(*) filter (where t.xmin = pg_current_xact_id()::xid) as mine from `+from+` group by `+parts+` having count(*) > $1) g`, pgx.QueryExecModeExec, 1).
		Scan(&changed); err != nil {
		return fmt.Errorf("look what the repair leaves: %w", err)
	}
	b.result.Left += changed
	return nil
}

// changes counts the rows of the table that this transaction changed or removed, by whichever part of a statement; rows of other tables
// that it points elsewhere are the caller's affair. The server's own counts may begin before the transaction: only differences tell.
func (b *builder) changes(ctx context.Context, tx pgx.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `select pg_stat_get_xact_tuples_updated($1) + pg_stat_get_xact_tuples_deleted($1)`, pgx.QueryExecModeExec, b.oid).Scan(&n)
	return n, err
}

// alike tells of a row where one of a group stood that it still is of it, as the key compares: 1.0 and 1.00 are one number.
func (k UniqueKey) alike() string {
	equal := " = "
	if k.NullsNotDistinct {
		equal = " is not distinct from "
	}
	var conditions []string
	for i, part := range k.Columns {
		conditions = append(conditions, "t."+pgx.Identifier{part}.Sanitize()+equal+"k.usher_key_"+strconv.Itoa(i))
	}
	for i, expression := range k.Expressions { // names of the table alone: the groups have none of them
		conditions = append(conditions, "("+expression+")"+equal+"k.usher_key_"+strconv.Itoa(len(k.Columns)+i))
	}
	return strings.Join(conditions, " and ")
}

// explainRepair passes on what the server says of the caller's own statement: whoever wrote it is the one who can mend it.
func (b *builder) explainRepair(ctx context.Context, err error) error {
	var pgErr *pgconn.PgError
	if codeOf(err) == "57014" && ctx.Err() == nil {
		return problem.Refused("unique_repair_slow", problem.Facts{"table": b.key.Table, "seconds": int(repairedWithin.Seconds())}).Because(err)
	}
	if err == nil || ctx.Err() != nil || Interrupted(err) || !errors.As(err, &pgErr) {
		return err
	}
	return problem.Refused("unique_repair_failed", problem.Facts{"table": b.key.Table, "why": pgErr.Message}).Because(err)
}
