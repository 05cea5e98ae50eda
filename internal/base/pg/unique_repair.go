package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/problem"
)

// repair applies the caller's rule to every group that is there now, in parts, and returns how many rows it changed.
func (b *builder) repair(ctx context.Context, rule UniqueRepair, found DuplicateGroups) (int64, error) {
	b.tell(UniqueStep{At: UniqueRepairs, Surplus: found.Surplus})
	keys := make([]string, len(b.key.parts()))
	for i, part := range b.key.parts() {
		keys[i] = part + " as usher_key_" + strconv.Itoa(i)
	}
	var groups int64
	_, err := b.conn.Exec(ctx, `drop table if exists pg_temp.usher_alike`)
	if err == nil {
		var tag pgconn.CommandTag
		tag, err = b.conn.Exec(ctx, `
create temp table usher_alike as
select row_number() over () as usher_nth, g.* from (
  select `+strings.Join(keys, ", ")+` from `+b.key.table()+`
   where `+b.key.rows()+` group by `+strings.Join(b.key.parts(), ", ")+` having count(*) > 1) g`)
		groups = tag.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("list the groups of duplicates: %w", err)
	}
	var changed int64
	for from := int64(0); from < groups; from += repairedAtOnce {
		n, err := b.repairPart(ctx, rule, from)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// repairPart repairs some groups in one transaction. Their rows are locked first and judged afterwards: else somebody could take the
// row away that was to stay, and the group would be lost with it.
func (b *builder) repairPart(ctx context.Context, rule UniqueRepair, from int64) (changed int64, err error) {
	alike := " from " + b.key.table() + " t join pg_temp.usher_alike k on " + b.key.alike() + " where k.usher_nth > $1 and k.usher_nth <= $2"
	if b.key.Where != "" {
		alike += " and (" + b.key.Where + ")"
	}
	part := []any{pgx.QueryExecModeExec, from, from + repairedAtOnce} // with arguments a text is one statement and no more
	for try := 1; ; try++ {
		err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "set local lock_timeout = "+millis(b.limits.Lock)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "select 1"+alike+" order by t.ctid for update of t", part...); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `
with ranked as (
  select t.*, row_number() over (partition by k.usher_nth order by `+rule.Keep+`, t.ctid) as usher_rank,
         first_value(t) over (partition by k.usher_nth order by `+rule.Keep+`, t.ctid) as kept`+alike+`
), surplus as (select * from ranked where usher_rank > 1)
`+rule.Statement, part...)
			changed = tag.RowsAffected()
			return err
		})
		if !MayRepeat(err) || try == b.limits.Tries {
			return changed, b.explainRepair(ctx, err)
		}
	}
}

// alike joins rows with the groups that they belong to. Only equality is fast on a large table; where rows without a value are alike
// too, it is that of their texts, for which nothing equals nothing.
func (k UniqueKey) alike() string {
	var conditions, texts, keys []string
	for i, part := range k.Columns {
		column, key := "t."+pgx.Identifier{part}.Sanitize(), "k.usher_key_"+strconv.Itoa(i)
		conditions = append(conditions, column+" = "+key)
		texts, keys = append(texts, column+"::text"), append(keys, key+"::text")
	}
	for i, expression := range k.Expressions { // names of the table alone: the groups have none of them
		key := "k.usher_key_" + strconv.Itoa(len(k.Columns)+i)
		conditions = append(conditions, "("+expression+") = "+key)
		texts, keys = append(texts, "("+expression+")::text"), append(keys, key+"::text")
	}
	if k.NullsNotDistinct {
		return "array[" + strings.Join(texts, ", ") + "] = array[" + strings.Join(keys, ", ") + "]"
	}
	return strings.Join(conditions, " and ")
}

// explainRepair passes on what the server says of the caller's own statement: whoever wrote it is the one who can mend it.
func (b *builder) explainRepair(ctx context.Context, err error) error {
	var pgErr *pgconn.PgError
	if err == nil || ctx.Err() != nil || Interrupted(err) || !errors.As(err, &pgErr) {
		return err
	}
	return problem.Refused("unique_repair_failed", problem.Facts{"table": b.key.Table, "why": pgErr.Message}).Because(err)
}
