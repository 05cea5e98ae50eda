package event

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind is a kind of ticket: full price, reduced, child …
type Kind struct {
	ID           int64
	Code         string // unique in its event, without regard to case
	Name         string
	OpensAt      *time.Time // narrower than the event's; nil: as the event's
	ClosesAt     *time.Time // not included
	MostPerBuyer *int       // tickets of the kind; nil: no limit of its own
	Withdrawn    bool       // sold no more; what is held or sold stays
}

// Offer is what is sold of an event, and for how much, at one instant.
type Offer struct {
	Event  Event
	Kinds  []Kind // in the order in which they are shown, withdrawn ones too
	prices map[priceKey]int64
	zones  map[string]int
}

type priceKey struct {
	kindID int64
	zone   string
}

// Price is what a kind of ticket costs in a zone, in minor units of the event's currency. A zone without a price of its own has
// that of the empty zone; a kind without either is not sold there.
func (o Offer) Price(kindID int64, zone string) (minor int64, sold bool) {
	if minor, sold = o.prices[priceKey{kindID, zone}]; !sold {
		minor, sold = o.prices[priceKey{kindID, ""}]
	}
	return minor, sold
}

// PricedZones are the zones that have prices of their own, in order; the empty one stands for every other, and comes last.
func (o Offer) PricedZones() (zones []string) {
	seen := map[string]bool{}
	for key := range o.prices {
		if !seen[key.zone] {
			seen[key.zone], zones = true, append(zones, key.zone)
		}
	}
	slices.SortFunc(zones, func(a, b string) int {
		if (a == "") != (b == "") {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	return zones
}

// ZoneLimit is how many tickets in a zone one buyer may have, where that is limited.
func (o Offer) ZoneLimit(zone string) (most int, limited bool) {
	most, limited = o.zones[zone]
	return most, limited
}

// Kind finds a kind of ticket by its key.
func (o Offer) Kind(id int64) (Kind, bool) {
	if i := slices.IndexFunc(o.Kinds, func(k Kind) bool { return k.ID == id }); i >= 0 {
		return o.Kinds[i], true
	}
	return Kind{}, false
}

// Kinds are looked up event by event, and prices kind by kind, whatever the statistics say. The latest price that has begun
// counts.
const (
	kindColumns = `
select k.event_id, k.id, k.code, k.name, k.opens_at, k.closes_at, k.most_per_buyer, k.withdrawn_at is not null as withdrawn
  from unnest($2::bigint[]) e(id)
 cross join lateral (select * from ticket_kind where organisation_id = $1 and event_id = e.id offset 0) k
 order by k.position, k.id`
	pricesNow = `
select k.event_id, k.id, p.zone, p.amount_minor
  from unnest($2::bigint[]) e(id)
 cross join lateral (select id, event_id from ticket_kind where organisation_id = $1 and event_id = e.id offset 0) k
 cross join lateral (
   select distinct on (zone) zone, amount_minor from price
    where organisation_id = $1 and kind_id = k.id and from_at <= (select clock()) order by zone, from_at desc) p`
	zoneLimits = `select event_id, zone, most_per_buyer from event_zone where organisation_id = $1 and event_id = any($2)`
)

// Offers reads, by event, what is sold at this instant by the database's clock, in one exchange with it. Events of other
// organisations are left out, as are those that do not exist.
func Offers(ctx context.Context, tx pgx.Tx, organisationID int64, eventIDs ...int64) (map[int64]Offer, error) {
	offers := map[int64]Offer{}
	eventIDs = slices.Compact(slices.Sorted(slices.Values(eventIDs)))
	asked := &pgx.Batch{}
	asked.Queue(eventColumns+` where organisation_id = $1 and id = any($2)`, organisationID, eventIDs)
	for _, statement := range []string{kindColumns, pricesNow, zoneLimits} {
		asked.Queue(statement, organisationID, eventIDs)
	}
	answers := tx.SendBatch(ctx, asked)
	err := readOffers(answers, offers)
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("read what is sold: %w", err)
	}
	return offers, nil
}

func readOffers(answers pgx.BatchResults, offers map[int64]Offer) error {
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[Event])
	if err != nil {
		return err
	}
	for _, e := range events {
		offers[e.ID] = Offer{Event: e, prices: map[priceKey]int64{}, zones: map[string]int{}}
	}
	if rows, err = answers.Query(); err != nil {
		return err
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		EventID int64
		Kind
	}])
	if err != nil {
		return err
	}
	for _, k := range kinds {
		offer := offers[k.EventID]
		offer.Kinds = append(offer.Kinds, k.Kind)
		offers[k.EventID] = offer
	}
	var eventID, minor int64
	var price priceKey
	if rows, err = answers.Query(); err != nil {
		return err
	}
	if _, err = pgx.ForEachRow(rows, []any{&eventID, &price.kindID, &price.zone, &minor}, func() error {
		offers[eventID].prices[price] = minor
		return nil
	}); err != nil {
		return err
	}
	var zone string
	var most int
	if rows, err = answers.Query(); err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&eventID, &zone, &most}, func() error { offers[eventID].zones[zone] = most; return nil })
	return err
}
