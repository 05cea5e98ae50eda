package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/event"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
)

type saveKind struct {
	Event    string  `arg:"" help:"Short name of the event."`
	Code     string  `arg:"" help:"Short code of the kind, such as full or child."`
	Name     *string `help:"What people read; else the code."`
	Opens    *string `help:"When it is sold from, in the zone of the event; - takes it back."`
	Closes   *string `help:"When it is sold until, that instant not included; - takes it back."`
	Most     *string `name:"most-per-buyer" placeholder:"N" help:"Tickets of the kind of one buyer; - takes the limit back."`
	Withdraw *bool   `negatable:"" help:"Sell it no more; what is held or sold of it stays."`
}

func (k saveKind) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, err := event.Find(s.ctx, s.db, s.actor, k.Event)
	if err != nil {
		return err
	}
	hours := s.hoursOf(e)
	opens, closes := hours.optional("--opens", k.Opens), hours.optional("--closes", k.Closes)
	var numbers numberFlags
	most := numbers.optional(k.Most)
	if hours.err != nil {
		return hours.err
	}
	if numbers.err != nil {
		return numbers.err
	}
	after, saved, err := event.SaveKind(s.ctx, s.db, s.actor, k.Event, k.Code, func(kind *event.Kind) {
		set(&kind.Name, k.Name)
		set(&kind.OpensAt, opens)
		set(&kind.ClosesAt, closes)
		set(&kind.MostPerBuyer, most)
		set(&kind.Withdrawn, k.Withdraw)
	})
	if err != nil {
		return err
	}
	sentence := "cli_kind_there"
	switch {
	case saved.Added:
		sentence = "cli_kind_added"
	case saved.Changed && after.Withdrawn:
		sentence = "cli_kind_withdrawn"
	case saved.Changed:
		sentence = "cli_kind_changed"
	}
	err = s.done(sentence, map[string]any{"kind": after.Name, "event": e.Name}, map[string]any{
		"event": e.Slug, "kind": after.Code, "name": after.Name, "added": saved.Added, "changed": saved.Changed, "withdrawn": after.Withdrawn, "warnings": hours.doubts,
	})
	return s.sayDoubts(hours.doubts, err)
}

type setPrice struct {
	Event  string  `arg:"" help:"Short name of the event."`
	Kind   string  `arg:"" help:"Code of the kind of ticket."`
	Amount string  `arg:"" help:"What it costs, as it is written on a receipt (20.00; 5000); - takes the price back, with --from the one from then on."`
	Zone   string  `help:"Zone of the plan, as it names it; else where a zone has no price of its own."`
	From   *string `help:"From when on, in the zone of the event; else from now on."`
}

func (p setPrice) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, err := event.Find(s.ctx, s.db, s.actor, p.Event)
	if err != nil {
		return err
	}
	hours := s.hoursOf(e)
	price := event.PriceChange{Kind: p.Kind, Zone: p.Zone}
	if p.From != nil {
		price.From = new(hours.hour("--from", *p.From))
	}
	if hours.err != nil {
		return hours.err
	}
	facts := map[string]any{"event": e.Name, "kind": p.Kind, "zone": p.Zone, "from": s.instantOr(e, price.From, "")}
	object := map[string]any{"event": e.Slug, "kind": p.Kind, "zone": p.Zone, "from_at": price.From, "warnings": hours.doubts}
	sentence := "cli_price_set"
	if p.Amount == "-" {
		taken, err := event.TakePrice(s.ctx, s.db, s.actor, p.Event, price)
		if err != nil {
			return err
		}
		sentence, facts["count"], object["taken"] = "cli_price_taken", taken, taken
		return s.done(sentence, facts, object)
	}
	if price.AmountMinor, err = intake.Amount(p.Amount, e.Currency); err != nil {
		return err
	}
	changed, err := event.SetPrice(s.ctx, s.db, s.actor, p.Event, price)
	if err != nil {
		return err
	}
	if !changed {
		sentence = "cli_price_there"
	}
	facts["price"] = i18n.Money{Minor: price.AmountMinor, Currency: e.Currency}
	object["amount_minor"], object["currency"], object["changed"] = price.AmountMinor, e.Currency, changed
	return s.sayDoubts(hours.doubts, s.done(sentence, facts, object))
}

type limitZone struct {
	Event string `arg:"" help:"Short name of the event."`
	Most  string `arg:"" help:"Tickets of one buyer; - takes the limit back."`
	Zone  string `help:"Zone of the plan, as it names it; else seats without a zone. For all zones together: usher event edit --most-per-buyer."`
}

func (l limitZone) Run(s *session) error {
	var numbers numberFlags
	most := numbers.optional(&l.Most)
	if numbers.err != nil {
		return numbers.err
	}
	if err := s.open(); err != nil {
		return err
	}
	changed, err := event.SetZoneLimit(s.ctx, s.db, s.actor, l.Event, l.Zone, *most)
	if err != nil {
		return err
	}
	sentence, facts := "cli_limit_taken", map[string]any{"event": l.Event, "zone": l.Zone}
	if *most != nil {
		sentence, facts["most"] = "cli_limit_set", **most
	}
	return s.done(sentence, facts, map[string]any{"event": l.Event, "zone": l.Zone, "most_per_buyer": *most, "changed": changed})
}

type putOnSale struct {
	Event string `arg:"" help:"Short name of the event."`
}

func (p putOnSale) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, changed, err := event.PutOnSale(s.ctx, s.db, s.actor, p.Event)
	if err != nil {
		return err
	}
	sold, err := event.Show(s.ctx, s.db, s.actor, p.Event)
	if err != nil {
		return err
	}
	sentence := "cli_event_on_sale"
	if !changed {
		sentence = "cli_event_sold_already"
	}
	err = s.done(sentence, map[string]any{"name": e.Name, "opens_at": s.instantOr(e, e.OpensAt, "")},
		map[string]any{"slug": e.Slug, "state": e.State, "changed": changed, "zones_without_price": orEmpty(sold.Unpriced)})
	if err != nil {
		return err
	}
	s.sayUnpriced(sold)
	return nil
}

// sayUnpriced names the zones where nobody can buy.
func (s *session) sayUnpriced(sold event.Sold) {
	if len(sold.Unpriced) == 0 {
		return
	}
	zones := make(i18n.Quoted, len(sold.Unpriced))
	for i, zone := range sold.Unpriced {
		zones[i] = zone
	}
	s.say("cli_event_unpriced", map[string]any{"zones": zones, "event": sold.Event.Slug})
}

type closeSale struct {
	Event string `arg:"" help:"Short name of the event."`
}

func (c closeSale) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, changed, err := event.Close(s.ctx, s.db, s.actor, c.Event)
	if err != nil {
		return err
	}
	sentence := "cli_event_closed"
	if !changed {
		sentence = "cli_event_closed_already"
	}
	return s.done(sentence, map[string]any{"name": e.Name}, map[string]any{"slug": e.Slug, "state": e.State, "changed": changed})
}

type showEvent struct {
	Event string `arg:"" help:"Short name of the event."`
}

func (x showEvent) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	sold, err := event.Show(s.ctx, s.db, s.actor, x.Event)
	if err != nil {
		return err
	}
	sittings, err := seating.SoldSittings(s.ctx, s.db, s.actor, x.Event)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answerEvent(sold, sittings)
	}
	e := sold.Event
	none := "–"
	s.say("cli_event_head", map[string]any{
		"name": e.Name, "event": e.Slug, "state": i18n.Word{ID: "event_state_" + string(e.State)}, "currency": e.Currency, "zone": e.TimeZone,
		"opens_at": s.instantOr(e, e.OpensAt, none), "closes_at": s.instantOr(e, e.ClosesAt, none),
		"hold": int(e.HoldFor.Minutes()), "hold_most": int(e.HoldMost.Minutes()), "most": s.countOr(e.MostPerBuyer, none),
		"from": s.countOr(e.GroupFrom, ""), "percent": s.countOr(e.GroupPercent, ""), "fee": e.CancelFeePercent,
		"offer": int(e.OfferFor.Minutes()), "self_cancel": s.countOr(e.SelfCancelHours, ""),
	})
	if len(sittings) > 0 {
		s.showSittings(sittings)
	}
	s.showKinds(sold)
	s.showPrices(sold)
	s.sayUnpriced(sold)
	return nil
}

// countOr is a count, or other words where there is none.
func (s *session) countOr(n *int, none string) string {
	if n == nil {
		return none
	}
	return s.number(*n)
}

func (s *session) showSittings(sittings []seating.SoldSitting) {
	rows := make([]table.Row, len(sittings))
	for i, x := range sittings {
		rows[i] = table.Row{x.Reference, s.voice.Instant(x.Begins()), x.Place(), s.number(x.Sold), s.number(x.Held), s.number(x.Usable)}
	}
	s.table([]string{"cli_sitting", "cli_starts_at", "cli_room", "cli_sold", "cli_held", "cli_places"}, rows, 4, 5, 6)
}

func (s *session) showKinds(sold event.Sold) {
	if len(sold.Kinds) == 0 {
		return
	}
	e := sold.Event
	kinds := make([]table.Row, len(sold.Kinds))
	for i, k := range sold.Kinds {
		withdrawn := ""
		if k.Withdrawn {
			withdrawn = s.voice.Say("cli_yes", nil)
		}
		kinds[i] = table.Row{k.Code, k.Name, s.instantOr(e, k.OpensAt, "–"), s.instantOr(e, k.ClosesAt, "–"), s.countOr(k.MostPerBuyer, "–"), withdrawn}
	}
	s.table([]string{"cli_code", "cli_name", "cli_opens", "cli_closes", "cli_most_per_buyer", "cli_withdrawn"}, kinds, 5)
}

func (s *session) showPrices(sold event.Sold) {
	e := sold.Event
	prices := make([]table.Row, len(sold.Prices))
	for i, p := range sold.Prices {
		counts := ""
		if p.Counts {
			counts = s.voice.Say("cli_yes", nil)
		}
		prices[i] = table.Row{p.Kind, orDash(p.Zone), s.instantOr(e, p.From, "–"), s.voice.Money(i18n.Money{Minor: p.AmountMinor, Currency: e.Currency}), counts}
	}
	if len(prices) > 0 {
		s.table([]string{"cli_code", "cli_event_zone_name", "cli_from", "cli_event_price", "cli_counts_now"}, prices, 4)
	}
	if len(sold.Limits) == 0 {
		return
	}
	limits := make([]table.Row, len(sold.Limits))
	for i, l := range sold.Limits {
		limits[i] = table.Row{orDash(l.Zone), s.number(l.MostPerBuyer)}
	}
	s.table([]string{"cli_event_zone_name", "cli_most_per_buyer"}, limits, 2)
}

func (s *session) answerEvent(sold event.Sold, sittings []seating.SoldSitting) error {
	type kind struct {
		Kind         string     `json:"kind"`
		Name         string     `json:"name"`
		OpensAt      *time.Time `json:"opens_at"`
		ClosesAt     *time.Time `json:"closes_at"`
		MostPerBuyer *int       `json:"most_per_buyer"`
		Withdrawn    bool       `json:"withdrawn"`
	}
	type price struct {
		Kind   string     `json:"kind"`
		Zone   string     `json:"zone"`
		FromAt *time.Time `json:"from_at"`
		Amount int64      `json:"amount_minor"`
		Counts bool       `json:"counts"`
	}
	type limit struct {
		Zone string `json:"zone"`
		Most int    `json:"most_per_buyer"`
	}
	kinds, prices, limits := make([]kind, len(sold.Kinds)), make([]price, len(sold.Prices)), make([]limit, len(sold.Limits))
	for i, k := range sold.Kinds {
		kinds[i] = kind{k.Code, k.Name, k.OpensAt, k.ClosesAt, k.MostPerBuyer, k.Withdrawn}
	}
	for i, p := range sold.Prices {
		prices[i] = price{p.Kind, p.Zone, p.From, p.AmountMinor, p.Counts}
	}
	for i, l := range sold.Limits {
		limits[i] = limit{l.Zone, l.MostPerBuyer}
	}
	e := sold.Event
	return s.answer(map[string]any{
		"slug": e.Slug, "name": e.Name, "description": e.Description, "state": e.State, "currency": e.Currency, "zone": e.TimeZone,
		"opens_at": e.OpensAt, "closes_at": e.ClosesAt, "hold_seconds": int(e.HoldFor.Seconds()), "hold_most_seconds": int(e.HoldMost.Seconds()),
		"most_per_buyer": e.MostPerBuyer, "group_from": e.GroupFrom, "group_percent": e.GroupPercent, "cancel_fee_percent": e.CancelFeePercent,
		"late_sale": e.LateSale, "offer_seconds": int(e.OfferFor.Seconds()), "self_cancel_hours": e.SelfCancelHours, "sittings": answerEventSittings(sittings), "kinds": kinds, "prices": prices, "limits": limits,
		"zones_without_price": orEmpty(sold.Unpriced),
	})
}
