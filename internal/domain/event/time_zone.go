package event

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// Keep is what stays when an event gets another time zone.
type Keep string

// What may stay.
const (
	KeepHour    Keep = "hour"    // 15:00 stays 15:00, at another instant: the zone was wrong
	KeepInstant Keep = "instant" // the instant stays, and is shown at another hour: the hours were wrong
)

// CheckKeep wants one of the two.
func CheckKeep(k Keep) error {
	if k != KeepHour && k != KeepInstant {
		return problem.Invalid("keep_unknown", problem.Facts{"value": string(k)})
	}
	return nil
}

// SetTimeZone gives an event whose row is held another zone (an IANA name that is known to be one), with the instants of its windows
// and prices. What becomes of its sittings is decided in seating, in the same transaction.
func SetTimeZone(ctx context.Context, tx pgx.Tx, e Event, zone string, keep Keep) error {
	if keep == KeepHour {
		if err := e.keepHours(ctx, tx, zone); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, `update event set time_zone = $3 where organisation_id = $1 and id = $2`, e.OrganisationID, e.ID, zone); err != nil {
		return fmt.Errorf("set the time zone: %w", err)
	}
	return nil
}

// SameHour is the instant at which the clocks of another zone show what those of the event's zone show at an instant. One that they
// skip is refused.
func (e Event) SameHour(at time.Time, zone string) (time.Time, error) {
	from, err := time.LoadLocation(e.TimeZone)
	if err != nil {
		return at, fmt.Errorf("load the zone of the event: %w", err)
	}
	to, err := time.LoadLocation(zone)
	if err != nil {
		return at, fmt.Errorf("load the zone: %w", err)
	}
	moved, _, err := sheet.DayFirst.Instant(at.In(from).Format("2006-01-02 15:04:05.999999"), to)
	if err != nil {
		return at, problem.Refused("event_zone_skips", problem.Facts{"at": e.Shown(at), "zone": zone}).Because(err)
	}
	return moved, nil
}

// keepHours moves every instant of the sale.
func (e Event) keepHours(ctx context.Context, tx pgx.Tx, zone string) error {
	rows, err := tx.Query(ctx, `
select distinct at from (
  select unnest(array[opens_at, closes_at]) as at from event where organisation_id = $1 and id = $2
  union all select unnest(array[opens_at, closes_at]) from ticket_kind where organisation_id = $1 and event_id = $2
  union all select p.from_at from ticket_kind k join price p on p.organisation_id = $1 and p.kind_id = k.id
             where k.organisation_id = $1 and k.event_id = $2 and isfinite(p.from_at)) instants
 where at is not null order by at`, e.OrganisationID, e.ID)
	if err != nil {
		return fmt.Errorf("list the instants of the sale: %w", err)
	}
	before, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return fmt.Errorf("read the instants of the sale: %w", err)
	}
	after := make([]time.Time, len(before))
	for i := range before {
		if after[i], err = e.SameHour(before[i], zone); err != nil {
			return err
		}
	}
	return e.moveInstants(ctx, tx, before, after)
}

// moveInstants writes the instants anew. Prices have theirs in their key, so that they are taken out and put back: one could meet its
// neighbour on the way.
func (e Event) moveInstants(ctx context.Context, tx pgx.Tx, before, after []time.Time) error {
	const to = `(select w.after from unnest($3::timestamptz[], $4::timestamptz[]) w(before, after) where w.before = `
	for _, statement := range []string{
		`update event set opens_at = ` + to + `opens_at), closes_at = ` + to + `closes_at) where organisation_id = $1 and id = $2`,
		`update ticket_kind set opens_at = ` + to + `opens_at), closes_at = ` + to + `closes_at) where organisation_id = $1 and event_id = $2`,
	} {
		_, err := tx.Exec(ctx, statement, e.OrganisationID, e.ID, before, after)
		if pg.Violates(err, "event_window_in_order") || pg.Violates(err, "ticket_kind_window_in_order") {
			return problem.Refused("event_zone_window", problem.Facts{"event": e.Name}).Because(err)
		}
		if err != nil {
			return fmt.Errorf("move the instants of the sale: %w", err)
		}
	}
	rows, err := tx.Query(ctx, `delete from price where organisation_id = $1 and event_id = $2 and isfinite(from_at)
   and kind_id in (select id from ticket_kind where organisation_id = $1 and event_id = $2) returning kind_id, zone, from_at, amount_minor`, e.OrganisationID, e.ID)
	if err != nil {
		return fmt.Errorf("take out the prices: %w", err)
	}
	var kindID, minor int64
	var zone string
	var from time.Time
	var kinds, minors []int64
	var zones []string
	var froms []time.Time
	if _, err := pgx.ForEachRow(rows, []any{&kindID, &zone, &from, &minor}, func() error {
		kinds, zones, froms, minors = append(kinds, kindID), append(zones, zone), append(froms, from), append(minors, minor)
		return nil
	}); err != nil {
		return fmt.Errorf("take out the prices: %w", err)
	}
	// Where two instants become one hour, because the clocks show it twice, the later price counts.
	_, err = tx.Exec(ctx, `
insert into price (organisation_id, event_id, kind_id, zone, from_at, amount_minor)
select distinct on (p.kind_id, p.zone, w.after) $1, $2, p.kind_id, p.zone, w.after, p.minor
  from unnest($5::bigint[], $6::text[], $7::timestamptz[], $8::bigint[]) p(kind_id, zone, before, minor)
  join unnest($3::timestamptz[], $4::timestamptz[]) w(before, after) on w.before = p.before
 order by p.kind_id, p.zone, w.after, p.before desc`, e.OrganisationID, e.ID, before, after, kinds, zones, froms, minors)
	if err != nil {
		return fmt.Errorf("put back the prices: %w", err)
	}
	return nil
}
