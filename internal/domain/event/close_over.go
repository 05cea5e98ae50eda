package event

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
)

// overFacts are what other systems are told of an event that is over.
type overFacts struct {
	Event    string `json:"event"`
	Name     string `json:"name"`
	Sittings int    `json:"sittings"`
}

// CloseOver closes those of the events, whose rows are held, that have no sitting any more which is not closed: the last of them was closed, or
// cancelled, by the same transaction. One that has none but cancelled sittings did not take place, and is not over. Other systems are told. One that was sold no more before is told of all the same; a draft, which nobody saw, is left alone.
func CloseOver(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, eventIDs []int64) error {
	rows, err := tx.Query(ctx, `
select e.id, s.taken_place from event e
 cross join lateral (select count(*)::int as taken_place, bool_and(closed_at is not null) as over
                       from sitting where organisation_id = $1 and event_id = e.id and cancelled_at is null) s
 where e.organisation_id = $1 and e.id = any($2) and e.state in ('on_sale', 'closed') and s.over order by e.id`, organisationID, eventIDs)
	if err != nil {
		return fmt.Errorf("find the events that are over: %w", err)
	}
	var over []int64
	taken := map[int64]int{}
	var id int64
	var sittings int
	if _, err = pgx.ForEachRow(rows, []any{&id, &sittings}, func() error { over, taken[id] = append(over, id), sittings; return nil }); err != nil {
		return fmt.Errorf("find the events that are over: %w", err)
	}
	for _, id := range over {
		e, err := Lock(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		if e.State == OnSale {
			if _, _, err := e.take(ctx, tx, actor, StepClose, KindClosed); err != nil {
				return err
			}
		}
		err = outbox.Publish(ctx, tx, organisationID, outbox.Event{
			Kind: outbox.EventClosed, Subject: outbox.EventSubject(e.Slug), Data: overFacts{e.Slug, e.Name, taken[id]},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
