package event

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Listed is an event in a list.
type Listed struct {
	Event
	Organisation string     // slug
	Sittings     int        // that take place
	NextAt       *time.Time // the next one to come
}

// mostListed is how many events a list has.
const mostListed = 1000

// List lists the events of the organisations for which the actor acts, those that come next first, then those that are over.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor) (listed []Listed, err error) {
	organisations, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, organisations, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select e.*, o.slug as organisation, s.sittings, s.next_at
  from (`+eventColumns+` where organisation_id = any($1)) e
  join organisation o on o.id = e.organisation_id
 cross join lateral (select count(*)::int as sittings, min(starts_at) filter (where ends_at > clock()) as next_at
                       from sitting where organisation_id = e.organisation_id and event_id = e.id and cancelled_at is null) s
 order by s.next_at nulls last, e.id desc limit $2`, organisations, mostListed)
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		if listed, err = pgx.CollectRows(rows, pgx.RowToStructByName[Listed]); err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
		return nil
	})
	return listed, err
}

// DatedPrice is what a kind of ticket costs in a zone from an instant on.
type DatedPrice struct {
	Kind        string // code
	Zone        string
	From        *time.Time `db:"from_at"` // nil: from ever
	AmountMinor int64
	Counts      bool // now
}

// Sold is everything that is said of what an event sells.
type Sold struct {
	Offer
	Prices []DatedPrice // by kind and zone, past and to come
	Limits []ZoneLimit
	// Unpriced are the zones of the plans of its rooms for which no kind of ticket has a price now: nobody can buy there.
	Unpriced []string
}

// ZoneLimit is how many tickets in a zone one buyer may have.
type ZoneLimit struct {
	Zone         string
	MostPerBuyer int
}

// Show reads everything that is said of what an event sells.
func Show(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (sold Sold, err error) {
	e, err := Find(ctx, db, actor, slug)
	if err != nil {
		return sold, err
	}
	err = db.Read(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		offers, err := Offers(ctx, tx, e.OrganisationID, e.ID)
		if err != nil {
			return err
		}
		sold.Offer = offers[e.ID]
		return sold.read(ctx, tx)
	})
	return sold, err
}

func (s *Sold) read(ctx context.Context, tx pgx.Tx) error {
	e := s.Event
	rows, err := tx.Query(ctx, `
select k.code as kind, p.zone, nullif(p.from_at, '-infinity') as from_at, p.amount_minor,
       p.from_at <= clock() and coalesce(lead(p.from_at) over (partition by k.id, p.zone order by p.from_at) > clock(), true) as counts
  from ticket_kind k join price p on p.organisation_id = $1 and p.kind_id = k.id
 where k.organisation_id = $1 and k.event_id = $2
 order by k.position, k.id, p.zone collate natural_order, p.zone collate "C", p.from_at`, e.OrganisationID, e.ID)
	if err != nil {
		return fmt.Errorf("list the prices: %w", err)
	}
	if s.Prices, err = pgx.CollectRows(rows, pgx.RowToStructByName[DatedPrice]); err != nil {
		return fmt.Errorf("read the prices: %w", err)
	}
	if rows, err = tx.Query(ctx, `select zone, most_per_buyer from event_zone where organisation_id = $1 and event_id = $2
 order by zone collate natural_order, zone collate "C"`, e.OrganisationID, e.ID); err != nil {
		return fmt.Errorf("list the limits of zones: %w", err)
	}
	if s.Limits, err = pgx.CollectRows(rows, pgx.RowToStructByName[ZoneLimit]); err != nil {
		return fmt.Errorf("read the limits of zones: %w", err)
	}
	return s.findUnpriced(ctx, tx)
}

func (s *Sold) findUnpriced(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
select zone from (select distinct p.zone from sitting s join seat p on p.organisation_id = $1 and p.room_id = s.room_id
                   where s.organisation_id = $1 and s.event_id = $2 and s.cancelled_at is null and s.ends_at > clock() and not p.blocked) z
 order by zone collate natural_order, zone collate "C"`, s.Event.OrganisationID, s.Event.ID)
	if err != nil {
		return fmt.Errorf("list the zones of the plans: %w", err)
	}
	zones, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the zones of the plans: %w", err)
	}
	for _, zone := range zones {
		sold := false
		for _, k := range s.Kinds {
			_, priced := s.Price(k.ID, zone)
			sold = sold || priced && !k.Withdrawn
		}
		if !sold {
			s.Unpriced = append(s.Unpriced, zone)
		}
	}
	return nil
}
