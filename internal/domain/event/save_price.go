package event

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// MostMinor is the highest price that is believed, in minor units.
const MostMinor = 1_000_000_000_000

// PriceChange is what a kind of ticket costs in a zone from an instant on.
type PriceChange struct {
	Kind        string     // code
	Zone        string     // empty: where no price is said for the zone
	AmountMinor int64      // of the event's currency
	From        *time.Time // nil: from now on, and from ever where there is none yet
}

// SetPrice says what a kind of ticket costs. What is held keeps its price. Of an event that was on sale no price is written for
// instants that are over: it would not be what people paid.
func SetPrice(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, p PriceChange) (changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return false, err
	}
	if p.AmountMinor < 0 || p.AmountMinor > MostMinor {
		return false, problem.Invalid("price_impossible", nil)
	}
	if p.Zone, err = readZone(p.Zone); err != nil {
		return false, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		kind, err := e.knownKind(ctx, tx, p.Kind)
		if err != nil {
			return err
		}
		if err := e.checkPrice(ctx, tx, p); err != nil {
			return err
		}
		if changed, err = e.putPrice(ctx, tx, kind, p); err != nil || !changed {
			return err
		}
		return e.record(ctx, tx, actor, KindPriceSet, e.priceFacts(kind, p))
	})
	return changed, err
}

func (e Event) checkPrice(ctx context.Context, tx pgx.Tx, p PriceChange) error {
	var many bool
	err := tx.QueryRow(ctx, `select count(*) >= $3 from ticket_kind k join price p on p.organisation_id = $1 and p.kind_id = k.id
 where k.organisation_id = $1 and k.event_id = $2`, e.OrganisationID, e.ID, mostPrices).Scan(&many)
	if err != nil {
		return fmt.Errorf("count the prices: %w", err)
	}
	if many {
		return problem.Refused("prices_many", problem.Facts{"event": e.Name, "most": mostPrices})
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	if p.From != nil && e.State != Draft && p.From.Before(now) {
		return problem.Refused("price_from_past", problem.Facts{"at": e.Shown(*p.From), "event": e.Name})
	}
	return nil
}

// putPrice writes a price, unless it is what counts at that instant already.
func (e Event) putPrice(ctx context.Context, tx pgx.Tx, kind Kind, p PriceChange) (bool, error) {
	tag, err := tx.Exec(ctx, `
with wanted as (
  select case when $5::timestamptz is not null then $5
              when exists (select from price where organisation_id = $1 and kind_id = $3 and zone = $4) then clock()
              else '-infinity' end as from_at)
insert into price (organisation_id, event_id, kind_id, zone, from_at, amount_minor)
select $1, $2, $3, $4, from_at, $6 from wanted
 where (select amount_minor from price where organisation_id = $1 and kind_id = $3 and zone = $4 and price.from_at <= wanted.from_at
         order by price.from_at desc limit 1) is distinct from $6
on conflict (organisation_id, kind_id, zone, from_at) do update set amount_minor = excluded.amount_minor`,
		e.OrganisationID, e.ID, kind.ID, p.Zone, p.From, p.AmountMinor)
	if err != nil {
		return false, fmt.Errorf("set the price: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// TakePrice takes the prices of a kind of ticket in a zone back: the one that counts from an instant, or, without one, all. In a
// zone without a price of its own that of the empty zone counts, and without that nothing is sold there.
func TakePrice(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, p PriceChange) (taken int, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return 0, err
	}
	if p.Zone, err = readZone(p.Zone); err != nil {
		return 0, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		kind, err := e.knownKind(ctx, tx, p.Kind)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from price where organisation_id = $1 and kind_id = $2 and zone = $3 and ($4::timestamptz is null or from_at = $4)`,
			e.OrganisationID, kind.ID, p.Zone, p.From)
		if err != nil {
			return fmt.Errorf("take the price back: %w", err)
		}
		if taken = int(tag.RowsAffected()); taken == 0 {
			return nil
		}
		facts := e.priceFacts(kind, p)
		delete(facts, "price")
		return e.record(ctx, tx, actor, KindPriceTaken, facts)
	})
	return taken, err
}

func (e Event) priceFacts(kind Kind, p PriceChange) map[string]any {
	facts := map[string]any{"event": e.Slug, "kind": kind.Code, "zone": p.Zone, "price": i18n.Money{Minor: p.AmountMinor, Currency: e.Currency}}
	if p.From != nil {
		facts["from"] = e.Shown(*p.From)
	}
	return facts
}

// SetZoneLimit says how many tickets in a zone one buyer may have; nil: no limit of its own.
func SetZoneLimit(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, zone string, most *int) (changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return false, err
	}
	if err := checkMost(most); err != nil {
		return false, err
	}
	if zone, err = readZone(zone); err != nil {
		return false, err
	}
	err = within(ctx, db, actor, slug, func(tx pgx.Tx, e Event) error {
		statement, args := `delete from event_zone where organisation_id = $1 and event_id = $2 and zone = $3`, []any{e.OrganisationID, e.ID, zone}
		if most != nil {
			statement, args = `insert into event_zone (organisation_id, event_id, zone, most_per_buyer) values ($1, $2, $3, $4)
on conflict (organisation_id, event_id, zone) do update set most_per_buyer = excluded.most_per_buyer
 where event_zone.most_per_buyer <> excluded.most_per_buyer`, append(args, *most)
		}
		tag, err := tx.Exec(ctx, statement, args...)
		if err != nil {
			return fmt.Errorf("limit the zone: %w", err)
		}
		if changed = tag.RowsAffected() > 0; !changed {
			return nil
		}
		return e.record(ctx, tx, actor, KindLimitSet, map[string]any{"event": e.Slug, "zone": zone, "most": most})
	})
	return changed, err
}

// readZone brings the name of a zone into the form in which plans have it.
func readZone(zone string) (string, error) {
	zone = sheet.Clean(zone)
	if len([]rune(zone)) > mostZone {
		return zone, problem.Invalid("zone_name_long", problem.Facts{"most": mostZone})
	}
	return zone, nil
}

const mostZone = 100 // characters, as in plans
