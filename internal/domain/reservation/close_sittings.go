package reservation

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/event"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// ListEnded lists sittings that have ended and are not closed, in the order of their keys, behind one. A cancelled event has none: nothing of it took
// place. It is Work.Next of a task, and locks nothing.
func ListEnded(ctx context.Context, tx pgx.Tx, _ run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
	return run.CollectItems(tx.Query(ctx, `
select s.organisation_id, s.id, s.reference, coalesce(e.name, x.code) from sitting s
  left join event e on (e.organisation_id, e.id) = (s.organisation_id, s.event_id)
  left join exam x on (x.organisation_id, x.id) = (s.organisation_id, s.exam_id)
 where `+seating.Ended+` and s.organisation_id = any($1) and (s.organisation_id, s.id) > ($2, $3) and e.state is distinct from 'cancelled'
 order by s.organisation_id, s.id limit $4`, organisations, after.OrganisationID, after.ID, most))
}

// CloseSittings closes sittings that have ended. Holds of seats there end, each with its whole cart, under the reservation's row: one that is being
// paid at the moment is waited for with its sitting, and stays paid. With its last sitting an event is closed. Sittings that somebody holds are
// given back as held.
func CloseSittings(ctx context.Context, tx pgx.Tx, actor timeline.Actor, sittings []run.Item) (outcome run.Outcome, err error) {
	for from := 0; from < len(sittings); {
		organisationID, to := sittings[from].OrganisationID, from+1
		for to < len(sittings) && sittings[to].OrganisationID == organisationID {
			to++
		}
		ids := make([]int64, 0, to-from)
		for _, sitting := range sittings[from:to] {
			ids = append(ids, sitting.ID)
		}
		closed, err := closeSittings(ctx, tx, actor, organisationID, ids)
		if err != nil {
			return outcome, err
		}
		left, err := idsOf(ctx, tx, `select s.id from sitting s where s.organisation_id = $1 and s.id = any($2) and `+seating.Ended, organisationID, ids)
		if err != nil {
			return outcome, err
		}
		for _, sitting := range sittings[from:to] {
			if slices.Contains(left, sitting.ID) {
				outcome.Held = append(outcome.Held, sitting)
			}
		}
		outcome.Changed += closed
		from = to
	}
	return outcome, nil
}

// closeSittings takes rows in the order that everybody keeps: events, reservations, sittings, claims.
func closeSittings(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, ids []int64) (closed int, err error) {
	_, err = tx.Exec(ctx, `
select from event where organisation_id = $1 and id in (select event_id from sitting where organisation_id = $1 and id = any($2))
 order by id for no key update`, organisationID, ids)
	if err != nil {
		return 0, fmt.Errorf("lock the events of what is over: %w", err)
	}
	holds, err := idsOf(ctx, tx, `
select r.id from reservation r
 where r.organisation_id = $1 and r.state in ('held', 'payment_started')
   and r.id in (select reservation_id from claim where organisation_id = $1 and sitting_id = any($2) and released_at is null and expires_at is not null)
 order by r.id for no key update skip locked`, organisationID, ids)
	if err != nil {
		return 0, err
	}
	if ids, err = seating.LockEnded(ctx, tx, organisationID, ids); err != nil || len(ids) == 0 {
		return 0, err
	}
	over := func(r Reservation) bool { // some may have a seat at a sitting alone that is not closed now
		return r.State == Lapsed || slices.ContainsFunc(r.open(), func(l Line) bool { return slices.Contains(ids, l.SittingID) })
	}
	if _, err := expire(ctx, tx, actor, organisationID, holds, over); err != nil {
		return 0, err
	}
	held, err := idsOf(ctx, tx, `
select distinct sitting_id from claim where organisation_id = $1 and sitting_id = any($2) and released_at is null and expires_at is not null`, organisationID, ids)
	if err != nil {
		return 0, err
	}
	ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(held, id) })
	closed, events, err := seating.Close(ctx, tx, actor, organisationID, ids)
	if err != nil {
		return 0, err
	}
	return closed, event.CloseOver(ctx, tx, actor, organisationID, events)
}

func idsOf(ctx context.Context, tx pgx.Tx, statement string, organisationID int64, of []int64) ([]int64, error) {
	rows, err := tx.Query(ctx, statement, pg.PlanAnew, organisationID, of)
	if err != nil {
		return nil, fmt.Errorf("look what is over: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("look what is over: %w", err)
	}
	return ids, nil
}
