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
	b.result.Repaired, b.result.Others = would.repaired, would.others
	return b.result, err
}

// repaired is what a rule did to some rows too many.
type repaired struct {
	surplus  int64 // of them
	repaired int64 // that were changed or are gone
	others   int64 // rows of other tables that were written with them
	xids     []string
}

func (r *repaired) add(part repaired) {
	r.surplus, r.repaired, r.others, r.xids = r.surplus+part.surplus, r.repaired+part.repaired, r.others+part.others, append(r.xids, part.xids...)
}

// repair applies the caller's rule to the rows that are alike now, in parts, and tells what it did. A row that somebody changes before
// its part comes is left to the next pass.
func (b *builder) repair(ctx context.Context, rule UniqueRepair, found DuplicateGroups) (done repaired, err error) {
	b.tell(UniqueStep{At: UniqueRepairs, Surplus: found.Surplus})
	parts := strings.Join(b.key.parts(), ", ")
	keys := make([]string, len(b.key.parts()))
	for i, part := range b.key.parts() {
		keys[i] = part + " as usher_key_" + strconv.Itoa(i)
	}
	if _, err := b.conn.Exec(ctx, `drop table if exists pg_temp.usher_alike`); err != nil {
		return done, fmt.Errorf("list the rows that are alike: %w", err)
	}
	tag, err := b.conn.Exec(ctx, `
create temp table usher_alike as
select row_number() over (order by usher_nth, usher_rank) as usher_row, g.* from (
  select `+strings.Join(keys, ", ")+`, t.ctid as usher_at, dense_rank() over (order by `+parts+`) as usher_nth,
         row_number() over (partition by `+parts+` order by `+rule.Keep+`, t.ctid) as usher_rank, count(*) over (partition by `+parts+`) as usher_rows
    from `+b.key.table()+` t where `+b.key.rows()+`) g
 where usher_rows > $1`, pgx.QueryExecModeExec, 1) // with an argument a text is one statement and no more
	if err != nil {
		return done, b.explainRepair(ctx, err)
	}
	size := int64(repairedAtOnce)
	for from := int64(0); from < tag.RowsAffected(); {
		part, err := b.repairPart(ctx, rule, from, from+size)
		if codeOf(err) == "57014" && ctx.Err() == nil && size > 1 {
			size /= 2
			continue
		}
		if err != nil {
			return done, b.explainRepair(ctx, err)
		}
		done.add(part)
		from += size
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(repairPause):
		}
	}
	return done, nil
}

var (
	errTried = errors.New("tried")                        // rolls back a part that was only to be tried
	errIdle  = errors.New("leaves all rows as they were") // rolls back one after which each row too many stands where it was
)

// repairPart repairs some rows in one transaction. They and those that stay are locked first, in the order of the key, and judged
// afterwards: else somebody could take the row away that was to stay, and the group would be lost with it.
func (b *builder) repairPart(ctx context.Context, rule UniqueRepair, from, to int64) (part repaired, err error) {
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
			if part, err = b.applyRule(ctx, tx, rule, alike, from, to); err != nil {
				return err
			}
			if !b.trying && part.surplus > 0 && part.repaired == 0 { // whatever else it did, it is no repair of these
				return errIdle
			}
			if !b.trying {
				return nil
			}
			if err := b.leftAlike(ctx, tx); codeOf(err) == "57014" && ctx.Err() == nil {
				b.result.Untold = true
			} else if err != nil {
				return err
			}
			return errTried
		})
		if errors.Is(err, errTried) {
			return part, nil
		}
		if !MayRepeat(err) || try == b.limits.Tries {
			return part, err
		}
	}
}

// applyRule has the caller's statement change the rows too many among those that are locked, and refuses one that reaches further.
func (b *builder) applyRule(ctx context.Context, tx pgx.Tx, rule UniqueRepair, alike string, from, to int64) (part repaired, err error) {
	if _, err := tx.Exec(ctx, `
create temp table usher_locked on commit drop as
select t.ctid as usher_now, k.usher_nth, row_number() over (partition by k.usher_nth order by `+rule.Keep+`, t.ctid) as usher_rank`+alike,
		pgx.QueryExecModeExec, from, to); err != nil {
		return part, err
	}
	if err := tx.QueryRow(ctx, `select count(*) from pg_temp.usher_locked where usher_rank > $1`, pgx.QueryExecModeExec, 1).Scan(&part.surplus); err != nil || part.surplus == 0 {
		return part, err
	}
	before, othersBefore, err := b.changes(ctx, tx)
	if err != nil {
		return part, err
	}
	tag, err := tx.Exec(ctx, `
with ranked as (
  select t.*, l.usher_rank, first_value(t) over (partition by l.usher_nth order by l.usher_rank) as kept
    from `+b.key.table()+` t join pg_temp.usher_locked l on t.ctid = l.usher_now
), surplus as (select * from ranked where usher_rank > $1)
`+rule.Statement, pgx.QueryExecModeExec, 1)
	if err != nil {
		return part, err
	}
	if tag.Select() { // it may change something on its way, and says nothing of that
		return part, problem.Refused("unique_repair_reads", problem.Facts{"table": b.key.Table})
	}
	after, othersAfter, err := b.changes(ctx, tx)
	if err != nil {
		return part, err
	}
	// A row that was changed or is gone is no longer where it was.
	var touched int64
	var xid string
	if err := tx.QueryRow(ctx, `
select count(*) filter (where l.usher_rank > $1), count(*) filter (where l.usher_rank = $1), pg_current_xact_id()::xid::text
  from pg_temp.usher_locked l where not exists (select from `+b.key.table()+` t where t.ctid = l.usher_now)`, pgx.QueryExecModeExec, 1).
		Scan(&part.repaired, &touched, &xid); err != nil {
		return part, err
	}
	if changed := after - before; changed > part.surplus || touched > 0 {
		return repaired{}, problem.Refused("unique_repair_wide", problem.Facts{"table": b.key.Table, "changed": changed, "surplus": part.surplus, "kept": touched})
	}
	part.others, part.xids = othersAfter-othersBefore, []string{xid}
	return part, nil
}

// leavesAlike tells whether rows that the rule changed are alike all the same: it would change them again, and leave them so.
func (b *builder) leavesAlike(ctx context.Context, done repaired) (leaves bool, err error) {
	if done.repaired < done.surplus || len(done.xids) == 0 {
		return done.repaired < done.surplus, nil
	}
	err = b.conn.QueryRow(ctx, `
select exists (select from (select t.xmin::text as usher_by, count(*) over (partition by `+strings.Join(b.key.parts(), ", ")+`) as usher_rows
                              from `+b.key.table()+` t where `+b.key.rows()+`) g
                where usher_rows > 1 and usher_by = any($1))`, pgx.QueryExecModeExec, done.xids).Scan(&leaves)
	if err != nil {
		return false, fmt.Errorf("look what the repair leaves: %w", err)
	}
	return leaves, nil
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

// changes counts the rows of the table that this transaction changed or removed, by whichever part of a statement, and what it wrote of
// other tables: those are the caller's affair, and told. The server's own counts may begin before the transaction: only differences
// tell.
func (b *builder) changes(ctx context.Context, tx pgx.Tx) (own, others int64, err error) {
	err = tx.QueryRow(ctx, `
select pg_stat_get_xact_tuples_updated($1) + pg_stat_get_xact_tuples_deleted($1),
       (select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_xact_user_tables where relid <> $1)`, pgx.QueryExecModeExec, b.oid).
		Scan(&own, &others)
	return own, others, err
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
