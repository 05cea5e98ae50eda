package reservation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Expire writes down which holds of the organisations are over, at most so many reservations of each call: what was so by the clock already.
// It tells how many it wrote down, and whether there may be more. What somebody else is changing is passed over: they see themselves that it is
// over. A second run changes nothing.
func Expire(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisations []int64, most int) (expired int, more bool, err error) {
	over, err := lockOver(ctx, tx, organisations, most)
	if err != nil {
		return 0, false, err
	}
	found := 0
	for _, organisationID := range slices.Sorted(maps.Keys(over)) {
		written, err := expire(ctx, tx, actor, organisationID, over[organisationID])
		if err != nil {
			return 0, false, err
		}
		expired, found = expired+written, found+len(over[organisationID])
	}
	return expired, found == most, nil
}

// lockOver takes the rows of reservations none of whose claims holds any more, by organisation: found by a claim that has lapsed, or, where others
// took all of their seats, by the instant after which none of them can hold. As many claims are looked at as so many reservations may have.
func lockOver(ctx context.Context, tx pgx.Tx, organisations []int64, most int) (map[int64][]int64, error) {
	rows, err := tx.Query(ctx, `
with lapsed as (
  (select organisation_id, reservation_id as id from claim
    where released_at is null and expires_at <= (select clock()) and organisation_id = any($1) order by expires_at limit $2::int * $4::int)
  union
  (select organisation_id, id from reservation
    where state in ('held', 'payment_started') and hold_most_at <= (select clock()) and organisation_id = any($1) order by hold_most_at limit $2))
select r.organisation_id, r.id from lapsed l join reservation r on (r.organisation_id, r.id) = (l.organisation_id, l.id)
 where r.state = any($3)
 order by r.organisation_id, r.id limit $2 for no key update of r skip locked`, organisations, most, From(Lapse), MostTickets)
	if err != nil {
		return nil, fmt.Errorf("find the holds that are over: %w", err)
	}
	over := map[int64][]int64{}
	var organisationID, id int64
	if _, err = pgx.ForEachRow(rows, []any{&organisationID, &id}, func() error {
		over[organisationID] = append(over[organisationID], id)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find the holds that are over: %w", err)
	}
	return over, nil
}

func expire(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, ids []int64) (written int, err error) {
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
		if r.State != Lapsed || r.Written == Lapsed { // prolonged before its row was locked
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
		events = append(events, outbox.Event{Kind: outbox.ReservationLapsed, Subject: outbox.ReservationSubject(r.Reference), Data: facts})
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
