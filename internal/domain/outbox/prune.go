package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// KeptDelivered is how long an event is kept after it was delivered: a quarter of a year, in which somebody may ask what a
// receiver was told. What waits and what is dead is kept for as long as its endpoint.
const KeptDelivered = 90 * 24 * time.Hour

// Old is an event that is kept no longer.
type Old struct {
	OrganisationID int64
	ID             int64
	MessageID      string
}

// selectOld walks the key. What was delivered after a dead letter of its subject stays
// for as long as that: a replay says by it that the letter comes out of order.
const selectOld = `
select d.organisation_id, d.id, ` + selectMessageID + ` as message_id from dispatch d
 where (d.organisation_id, d.id) > ($2, $3) and d.organisation_id <= $4 and d.organisation_id + 0 = any($1)
   and d.state = 'delivered' and d.ended_at < $5
   and (select true from dispatch e
         where e.endpoint_id = d.endpoint_id and e.subject = d.subject and e.state = 'dead' and e.id < d.id limit 1) is null
 order by d.organisation_id, d.id limit $6`

// ListOld lists at most so many events of the organisations that are kept no longer at that moment, in the order of organisation and
// id, after one of them. The organisations are in their order. It locks nothing.
func ListOld(ctx context.Context, tx pgx.Tx, organisations []int64, now time.Time, after Old, most int) ([]Old, error) {
	if len(organisations) == 0 {
		return nil, nil
	}
	if err := pg.WalkIndexes(ctx, tx); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, selectOld, pg.PlanAnew, organisations, after.OrganisationID, after.ID, organisations[len(organisations)-1],
		now.Add(-KeptDelivered), most)
	if err != nil {
		return nil, fmt.Errorf("list old events: %w", err)
	}
	old, err := pgx.CollectRows(rows, pgx.RowToStructByName[Old])
	if err != nil {
		return nil, fmt.Errorf("list old events: %w", err)
	}
	return old, nil
}

// Prune takes events away that ListOld listed in the same transaction, and gives the number of those that it took and the ones that
// somebody else has locked, as who removes their endpoint does.
func Prune(ctx context.Context, tx pgx.Tx, old []Old) (taken int, held []Old, err error) {
	if len(old) == 0 {
		return 0, nil, nil
	}
	organisations, ids := make([]int64, len(old)), make([]int64, len(old))
	for i, o := range old {
		organisations[i], ids[i] = o.OrganisationID, o.ID
	}
	tag, err := tx.Exec(ctx, `
with free as (
  select d.organisation_id, d.id from unnest($1::bigint[], $2::bigint[]) w(organisation_id, id)
   cross join lateral (select organisation_id, id from dispatch
                        where organisation_id = w.organisation_id and id = w.id and state = 'delivered' for update skip locked) d)
delete from dispatch d using free where d.organisation_id = free.organisation_id and d.id = free.id`, pg.PlanAnew, organisations, ids)
	if err != nil {
		return 0, nil, fmt.Errorf("take old events away: %w", err)
	}
	taken = int(tag.RowsAffected())
	if taken == len(old) {
		return taken, nil, nil
	}
	rows, err := tx.Query(ctx, `
select d.organisation_id, d.id, d.message_id from unnest($1::bigint[], $2::bigint[]) w(organisation_id, id)
 cross join lateral (select d.organisation_id, d.id, `+selectMessageID+` as message_id from dispatch d
                      where d.organisation_id = w.organisation_id and d.id = w.id and d.state = 'delivered' limit 1) d`,
		pg.PlanAnew, organisations, ids)
	if err != nil {
		return 0, nil, fmt.Errorf("look which old events are locked: %w", err)
	}
	held, err = pgx.CollectRows(rows, pgx.RowToStructByName[Old])
	if err != nil {
		return 0, nil, fmt.Errorf("look which old events are locked: %w", err)
	}
	return taken, held, nil
}
