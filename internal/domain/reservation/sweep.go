package reservation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// ListOver lists reservations none of whose claims may hold any more, in the order of their keys, behind one: found by a claim that has lapsed, or,
// where others took all of their seats, by the instant after which none of them can hold. It is Work.Next of a task, and locks nothing.
func ListOver(ctx context.Context, tx pgx.Tx, _ run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
	return run.CollectItems(tx.Query(ctx, `
with lapsed as (
  select organisation_id, reservation_id as id from claim
   where released_at is null and expires_at <= (select clock()) and organisation_id = any($1)
  union
  select organisation_id, id from reservation
   where state in ('held', 'payment_started') and hold_most_at <= (select clock()) and organisation_id = any($1))
select r.organisation_id, r.id, r.reference, r.name from lapsed l join reservation r on (r.organisation_id, r.id) = (l.organisation_id, l.id)
 where r.state = any($2) and (r.organisation_id, r.id) > ($3, $4)
 order by r.organisation_id, r.id limit $5`, organisations, From(Lapse), after.OrganisationID, after.ID, most))
}

// Expire writes down of reservations that their holds are over: what was so by the clock already. It tells of how many. One that was paid, prolonged
// or written down meanwhile stays as it is, and one whose row somebody else holds is passed over, and counted as that: they see themselves that it
// is over, or the next call does.
func Expire(ctx context.Context, tx pgx.Tx, actor timeline.Actor, reservations []run.Item) (expired, passed int, err error) {
	organisations, ids := make([]int64, len(reservations)), make([]int64, len(reservations))
	for i, r := range reservations {
		organisations[i], ids[i] = r.OrganisationID, r.ID
	}
	rows, err := tx.Query(ctx, `
with asked as materialized (
  select r.organisation_id, r.id from unnest($1::bigint[], $2::bigint[]) w(organisation_id, id)
    join reservation r on (r.organisation_id, r.id) = (w.organisation_id, w.id)
   where r.state = any($3)),
taken as materialized (
  select r.organisation_id, r.id from asked a join reservation r on (r.organisation_id, r.id) = (a.organisation_id, a.id)
   where r.state = any($3) order by r.organisation_id, r.id for no key update of r skip locked)
select a.organisation_id, a.id, t.id is not null
  from asked a left join taken t on (t.organisation_id, t.id) = (a.organisation_id, a.id) order by a.organisation_id, a.id`,
		pg.PlanAnew, organisations, ids, From(Lapse))
	if err != nil {
		return 0, 0, fmt.Errorf("lock the holds that are over: %w", err)
	}
	over := map[int64][]int64{}
	var organisationID, id int64
	var taken bool
	if _, err = pgx.ForEachRow(rows, []any{&organisationID, &id, &taken}, func() error {
		if !taken {
			passed++
			return nil
		}
		over[organisationID] = append(over[organisationID], id)
		return nil
	}); err != nil {
		return 0, 0, fmt.Errorf("lock the holds that are over: %w", err)
	}
	for _, organisationID := range slices.Sorted(maps.Keys(over)) {
		written, err := expire(ctx, tx, actor, organisationID, over[organisationID], func(r Reservation) bool { return r.State == Lapsed })
		if err != nil {
			return 0, 0, err
		}
		expired += written
	}
	return expired, passed, nil
}

// expire ends holds whose reservations' rows are locked, of those that are over.
func expire(
	ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, ids []int64, isOver func(Reservation) bool,
) (written int, err error) {
	read, err := readMany(ctx, tx, organisationID, ids)
	if err != nil {
		return 0, err
	}
	var over []int64
	var ended []Reservation
	var claims []int64
	var entries []timeline.Entry
	var events []outbox.Event
	for _, id := range ids {
		r := read[id]
		if r.Written == Lapsed || !isOver(r) { // prolonged before its row was locked
			continue
		}
		over, ended = append(over, id), append(ended, r)
		facts := lapsedFacts{Reservation: r.Reference, HeldAt: r.HeldAt.UTC().Format(instantForm)}
		for _, line := range r.Lines {
			if !line.Cancelled {
				claims = append(claims, line.ClaimID)
				facts.Seats = append(facts.Seats, lapsedSeat{line.Event, line.Sitting, line.Seat})
			}
		}
		entry := timeline.Entry{Kind: kindLapsed, Subject: timeline.Subject{ReservationID: id}, Facts: facts}
		if len(r.Lines) > 0 {
			entry.Subject.EventID = r.Lines[0].EventID
		}
		entries = append(entries, entry)
		events = append(events, outbox.Event{Kind: outbox.ReservationExpired, Subject: outbox.ReservationSubject(r.Reference), Data: facts})
	}
	if len(over) == 0 {
		return 0, nil
	}
	if _, err := seating.ReleaseInOrder(ctx, tx, organisationID, "lapsed", claims); err != nil {
		return 0, err
	}
	if err := move(ctx, tx, organisationID, Lapse, over...); err != nil {
		return 0, err
	}
	if err := giveBackKept(ctx, tx, actor, payment.PaidInPart, ended...); err != nil {
		return 0, err
	}
	if err := timeline.Record(ctx, tx, organisationID, actor, entries...); err != nil {
		return 0, err
	}
	return len(over), outbox.Publish(ctx, tx, organisationID, events...)
}

// lapsedFacts are what the timeline and other systems are told of a hold that is over.
type lapsedFacts struct {
	Reservation string       `json:"reservation"`
	HeldAt      string       `json:"held_at"`
	Seats       []lapsedSeat `json:"seats"`
}

type lapsedSeat struct {
	Event   string `json:"event"`
	Sitting string `json:"sitting"`
	Seat    string `json:"seat"`
}
