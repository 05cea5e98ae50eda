package event_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/timeline"
)

func (h *theatre) add(e event.Event) event.Event {
	h.Helper()
	e, err := event.Add(h.Context(), h.db, h.actor, h.org, e)
	h.must(err)
	return e
}

// play is an event with a kind of ticket and a sitting in ten years, past the rules of seating.
func (h *theatre) play(slug string) event.Event {
	h.Helper()
	e := h.add(event.Event{Slug: slug, Name: "Phèdre"})
	_, _, err := event.SaveKind(h.Context(), h.db, h.actor, slug, "full", func(k *event.Kind) { k.Name = "Full price" })
	h.must(err)
	h.write(`
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Odéon', 'Europe/Paris') on conflict do nothing;
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Hall') on conflict do nothing;
insert into sitting (organisation_id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select 1, id, 1, 'S001', clock() + make_interval(years => 10 + id::int), clock() + make_interval(years => 10 + id::int, hours => 2), 5, 'room'
  from event where slug = '` + slug + `'`)
	return e
}

func TestAdd_TakesWhatTheOrganisationHas(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.add(event.Event{Slug: "phedre", Name: "  Phèdre ", Description: "One\r\n two  \n"})
	found, err := event.Find(t.Context(), h.db, h.actor, "phedre")
	h.must(err)
	if found.Currency != "EUR" || found.TimeZone != "Europe/Paris" || found.State != event.Draft || found.HoldFor != event.HoldFor || found.HoldMost != event.HoldMost ||
		found.Name != "Phèdre" || found.Description != "One\ntwo" || found.ID != e.ID {
		t.Errorf("the event is %+v", found)
	}
	if _, err := event.Add(t.Context(), h.db, h.actor, h.org, event.Event{Slug: "phedre", Name: "Again"}); !problem.Has(err, "event_exists") {
		t.Errorf("added twice: %v", err)
	}
}

func TestAdd_Refusals(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := time.Now()
	for code, change := range map[string]func(*event.Event){
		"slug_form":               func(e *event.Event) { e.Slug = "Phèdre" },
		"event_name_missing":      func(e *event.Event) { e.Name = " " },
		"event_description_long":  func(e *event.Event) { e.Description = strings.Repeat("x", 4001) },
		"currency_unknown":        func(e *event.Event) { e.Currency = "FRF2" },
		"time_zone_unknown":       func(e *event.Event) { e.TimeZone = "Local" },
		"sale_window_backwards":   func(e *event.Event) { e.OpensAt, e.ClosesAt = &now, &now },
		"event_hold_impossible":   func(e *event.Event) { e.HoldFor, e.HoldMost = time.Hour, time.Minute },
		"event_limit_impossible":  func(e *event.Event) { e.MostPerBuyer = new(0) },
		"event_group_impossible":  func(e *event.Event) { e.GroupFrom = new(10) },
		"event_fee_impossible":    func(e *event.Event) { e.CancelFeePercent = 101 },
		"name_too_long":           func(e *event.Event) { e.Name = strings.Repeat("x", 201) },
		"event_group_impossible ": func(e *event.Event) { e.GroupFrom, e.GroupPercent = new(1), new(10) },
	} {
		e := event.Event{Slug: "x", Name: "X"}
		change(&e)
		if _, err := event.Add(t.Context(), h.db, h.actor, h.org, e); !problem.Has(err, strings.TrimSpace(code)) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if listed, err := event.List(t.Context(), h.db, h.actor); err != nil || len(listed) != 0 {
		t.Errorf("something was added: %+v, %v", listed, err)
	}
}

// What was said once and is said again changes nothing and writes nothing; what cannot be changed by it stays.
func TestEdit_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.add(event.Event{Slug: "phedre", Name: "Phèdre"})
	opens := time.Date(2126, 5, 1, 8, 0, 0, 0, time.UTC)
	for nth, want := range []bool{true, false, false} {
		after, changed, err := event.Edit(t.Context(), h.db, h.actor, "phedre", func(e *event.Event) {
			e.OpensAt, e.MostPerBuyer, e.LateSale, e.HoldFor = &opens, new(6), true, 5*time.Minute
			e.Slug, e.Currency, e.TimeZone, e.State = "other", "XOF", "Asia/Tokyo", event.Cancelled
		})
		h.must(err)
		if changed != want || after.Slug != "phedre" || after.Currency != "EUR" || after.TimeZone != "Europe/Paris" || after.State != event.Draft {
			t.Errorf("edit %d: changed %v, %+v", nth, changed, after)
		}
	}
	found, err := event.Find(t.Context(), h.db, h.actor, "phedre")
	h.must(err)
	if !found.OpensAt.Equal(opens) || *found.MostPerBuyer != 6 || !found.LateSale || found.HoldFor != 5*time.Minute {
		t.Errorf("the event is %+v", found)
	}
	if rows := h.count(`select count(*) from timeline where kind = 'event_edited' and event_id is not null`); rows != 1 {
		t.Errorf("the timeline has %d edits", rows)
	}
}

func (h *theatre) count(query string) (n int) {
	h.Helper()
	h.must(h.db.Tx(h.Context(), []int64{h.org.ID}, func(tx pgx.Tx) error { return tx.QueryRow(h.Context(), query).Scan(&n) }))
	return n
}

// A sale needs a sitting to come, a kind of ticket and a price; each that lacks is named.
func TestPutOnSale_SaysWhatLacks(t *testing.T) {
	t.Parallel()
	h := open(t)
	sell := func() error { _, _, err := event.PutOnSale(t.Context(), h.db, h.actor, "phedre"); return err }
	lacks := func(code string) {
		t.Helper()
		if err := sell(); !problem.Has(err, code) {
			t.Fatalf("got %v, want %s", err, code)
		}
	}
	h.play("phedre")
	h.write(`update ticket_kind set withdrawn_at = clock(); update sitting set cancelled_at = clock()`)
	lacks("event_without_sitting")
	h.write(`update sitting set cancelled_at = null, starts_at = clock() - interval '1 hour', ends_at = clock() - interval '1 minute'`)
	lacks("event_without_sitting")
	h.write(`update sitting set ends_at = clock() + interval '1 hour'; update event set late_sale = true`)
	lacks("event_without_kind") // tickets are sold until the sitting ends
	h.write(`update ticket_kind set withdrawn_at = null`)
	lacks("event_without_price")
	if _, err := event.SetPrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "full", AmountMinor: 0}); err != nil {
		t.Fatal(err)
	}
	h.write(`update event set closes_at = clock()`)
	lacks("event_window_over")
	h.write(`update event set closes_at = null`)
	h.must(sell())
	_, changed, err := event.PutOnSale(t.Context(), h.db, h.actor, "phedre")
	if err != nil || changed {
		t.Errorf("put on sale again: %v, %v", changed, err)
	}
}

func TestClose_AndCancel(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.play("phedre")
	if _, _, err := event.Close(t.Context(), h.db, h.actor, "phedre"); !problem.Has(err, "event_not_moved") {
		t.Errorf("a draft was closed: %v", err)
	}
	_, err := event.SetPrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "FULL", AmountMinor: 2000})
	h.must(err)
	for _, step := range []func(context.Context, *pg.DB, timeline.Actor, string) (event.Event, bool, error){event.PutOnSale, event.Close, event.PutOnSale} {
		_, changed, err := step(t.Context(), h.db, h.actor, "phedre")
		h.must(err)
		if !changed {
			t.Error("a step changed nothing")
		}
	}
	for nth, want := range []bool{true, false} {
		h.must(h.db.Tx(t.Context(), []int64{h.org.ID}, func(tx pgx.Tx) error {
			after, changed, err := event.Cancel(t.Context(), tx, h.actor, h.org.ID, e.ID)
			if changed != want || after.State != event.Cancelled {
				t.Errorf("cancelled, time %d: %v, %+v", nth, changed, after)
			}
			return err
		}))
	}
	if _, _, err := event.PutOnSale(t.Context(), h.db, h.actor, "phedre"); !problem.Has(err, "event_stays_cancelled") {
		t.Errorf("sold after it was cancelled: %v", err)
	}
	if rows := h.count(`select count(*) from timeline where kind in ('event_on_sale', 'event_closed', 'event_cancelled') and event_id is not null`); rows != 4 {
		t.Errorf("the timeline has %d moves, want 4", rows)
	}
}

// C29: an early price until an hour, then another; what is set meanwhile counts from then on, and withdrawing the kind leaves what
// it costs.
func TestSetPrice_FromNowOrFromAnHour(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.play("phedre")
	hour := time.Now().AddDate(1, 0, 0).Truncate(time.Hour)
	price := func(amount int64, from *time.Time) bool {
		t.Helper()
		changed, err := event.SetPrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "full", AmountMinor: amount, From: from})
		h.must(err)
		return changed
	}
	if !price(2000, nil) || price(2000, nil) || !price(3000, &hour) || price(3000, &hour) {
		t.Error("a price that was said again changed something, or one that was not changed nothing")
	}
	kind := h.offer(h.db, e).Kinds[0]
	costs := func(at time.Time) int64 {
		minor, _ := h.offer(h.at(at), e).Price(kind.ID, "Stalls")
		return minor
	}
	if before, at := costs(hour.Add(-2*time.Minute)), costs(hour); before != 2000 || at != 3000 {
		t.Errorf("two minutes before the hour %d, at it %d", before, at)
	}
	later := h.at(hour.Add(time.Minute))
	_, err := event.SetPrice(t.Context(), later, h.actor, "phedre", event.PriceChange{Kind: "full", AmountMinor: 3500})
	h.must(err)
	_, _, err = event.SaveKind(t.Context(), later, h.actor, "phedre", "full", func(k *event.Kind) { k.Withdrawn = true })
	h.must(err)
	if before, after := costs(hour), costs(hour.Add(time.Minute)); before != 3000 || after != 3500 {
		t.Errorf("at the hour %d, after the change %d", before, after)
	}
	offer := h.offer(later, e)
	if minor, sold := offer.Price(kind.ID, ""); minor != 3500 || !sold || !offer.Kinds[0].Withdrawn {
		t.Errorf("the withdrawn kind costs %d, %v", minor, sold)
	}
}

func TestSetPrice_Refusals(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.play("phedre")
	past := time.Now().Add(-time.Hour)
	set := func(p event.PriceChange) error {
		_, err := event.SetPrice(t.Context(), h.db, h.actor, "phedre", p)
		return err
	}
	for code, p := range map[string]event.PriceChange{
		"price_impossible": {Kind: "full", AmountMinor: -1}, "price_impossible ": {Kind: "full", AmountMinor: event.MostMinor + 1},
		"kind_unknown": {Kind: "child"}, "zone_name_long": {Kind: "full", Zone: strings.Repeat("z", 101)},
	} {
		if err := set(p); !problem.Has(err, strings.TrimSpace(code)) {
			t.Errorf("%s: %v", code, err)
		}
	}
	h.must(set(event.PriceChange{Kind: "full", AmountMinor: 100, From: &past})) // of a draft nobody has bought
	_, _, err := event.PutOnSale(t.Context(), h.db, h.actor, "phedre")
	h.must(err)
	if err := set(event.PriceChange{Kind: "full", AmountMinor: 200, From: &past}); !problem.Has(err, "price_from_past") {
		t.Errorf("a price of instants that are over: %v", err)
	}
	taken, err := event.TakePrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "full", Zone: "Balcony"})
	if err != nil || taken != 0 {
		t.Errorf("taken where there is none: %d, %v", taken, err)
	}
	taken, err = event.TakePrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "full", From: &past})
	if err != nil || taken != 1 {
		t.Errorf("taken: %d, %v", taken, err)
	}
}

func TestSaveKind(t *testing.T) {
	t.Parallel()
	h := open(t)
	closes := time.Date(2126, 6, 1, 0, 0, 0, 0, time.UTC)
	e := h.add(event.Event{Slug: "phedre", Name: "Phèdre", ClosesAt: &closes})
	save := func(code string, change func(*event.Kind)) (event.Saved, error) {
		_, saved, err := event.SaveKind(t.Context(), h.db, h.actor, "phedre", code, change)
		return saved, err
	}
	none := func(*event.Kind) {}
	for nth, want := range []event.Saved{{Added: true}, {}, {}} {
		if saved, err := save([]string{"Full", "full", " FULL "}[nth], none); err != nil || saved != want {
			t.Errorf("saved %+v, %v; want %+v", saved, err, want)
		}
	}
	if saved, err := save("full", func(k *event.Kind) { k.Withdrawn, k.Code = true, "x" }); err != nil || !saved.Changed {
		t.Errorf("withdrawn: %+v, %v", saved, err)
	}
	if saved, err := save("full", func(k *event.Kind) { k.Withdrawn = false }); err != nil || !saved.Changed {
		t.Errorf("taken back: %+v, %v", saved, err)
	}
	for code, change := range map[string]func(*event.Kind){
		"kind_name_missing":      func(k *event.Kind) { k.Name = "" },
		"sale_window_backwards":  func(k *event.Kind) { k.OpensAt, k.ClosesAt = &closes, &closes },
		"kind_window_outside":    func(k *event.Kind) { k.OpensAt = &closes },
		"event_limit_impossible": func(k *event.Kind) { k.MostPerBuyer = new(0) },
	} {
		if _, err := save("full", change); !problem.Has(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if _, err := save("  ", none); !problem.Has(err, "kind_code_missing") {
		t.Errorf("without a code: %v", err)
	}
	h.write(`insert into ticket_kind (organisation_id, event_id, code, name) select 1, event_id, 'k' || i, 'K' from ticket_kind, generate_series(1, 49) i`)
	if _, err := save("one more", none); !problem.Has(err, "kinds_many") {
		t.Errorf("the fifty-first: %v", err)
	}
	if kinds := h.offer(h.db, e).Kinds; len(kinds) != 50 {
		t.Errorf("%d kinds", len(kinds))
	}
}

// Two who say the same price at the same time say it once: the event's row lets one go after the other.
func TestSetPrice_AtTheSameTime(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.play("phedre")
	var wg sync.WaitGroup
	changes := make([]bool, 8)
	for i := range changes {
		wg.Go(func() {
			changed, err := event.SetPrice(t.Context(), h.db, h.actor, "phedre", event.PriceChange{Kind: "full", AmountMinor: 2000})
			if err != nil {
				t.Error(err)
			}
			changes[i] = changed
		})
	}
	wg.Wait()
	said := 0
	for _, changed := range changes {
		if changed {
			said++
		}
	}
	if prices := h.count(`select count(*) from price`); prices != 1 || said != 1 {
		t.Errorf("%d prices, said by %d", prices, said)
	}
}

func TestSetZoneLimit_TwiceIsOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.play("phedre")
	for nth, c := range []struct {
		most *int
		want bool
	}{{new(4), true}, {new(4), false}, {new(5), true}, {nil, true}, {nil, false}} {
		changed, err := event.SetZoneLimit(t.Context(), h.db, h.actor, "phedre", " Balcony ", c.most)
		if err != nil || changed != c.want {
			t.Errorf("step %d: %v, %v", nth, changed, err)
		}
		most, limited := h.offer(h.db, e).ZoneLimit("Balcony")
		if limited != (c.most != nil) || limited && most != *c.most {
			t.Errorf("step %d: limited to %d, %v", nth, most, limited)
		}
	}
	if _, err := event.SetZoneLimit(t.Context(), h.db, h.actor, "phedre", "", new(0)); !problem.Has(err, "event_limit_impossible") {
		t.Errorf("no ticket at all: %v", err)
	}
}

// Roles that manage nothing change nothing.
func TestRoles(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.play("phedre")
	cashier := timeline.Actor{Name: "cashier", OrganisationID: h.org.ID, Role: account.Cashier}
	for name, act := range map[string]func() error{
		"add": func() error {
			_, err := event.Add(t.Context(), h.db, cashier, h.org, event.Event{Slug: "x", Name: "X"})
			return err
		},
		"edit": func() error {
			_, _, err := event.Edit(t.Context(), h.db, cashier, "phedre", func(*event.Event) {})
			return err
		},
		"sell":  func() error { _, _, err := event.PutOnSale(t.Context(), h.db, cashier, "phedre"); return err },
		"close": func() error { _, _, err := event.Close(t.Context(), h.db, cashier, "phedre"); return err },
		"kind": func() error {
			_, _, err := event.SaveKind(t.Context(), h.db, cashier, "phedre", "x", func(*event.Kind) {})
			return err
		},
		"price": func() error {
			_, err := event.SetPrice(t.Context(), h.db, cashier, "phedre", event.PriceChange{Kind: "full"})
			return err
		},
		"take": func() error {
			_, err := event.TakePrice(t.Context(), h.db, cashier, "phedre", event.PriceChange{Kind: "full"})
			return err
		},
		"limit": func() error { _, err := event.SetZoneLimit(t.Context(), h.db, cashier, "phedre", "", nil); return err },
	} {
		if err := act(); !problem.Has(err, "role_forbids") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
