package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/intake"
	"usher/internal/domain/reservation"
)

type eventCommand struct {
	List    listEvents          `cmd:"" help:"List events: those that come next first."`
	Add     addEvent            `cmd:"" help:"Add an event, as a draft that nobody else sees."`
	Show    showEvent           `cmd:"" help:"Show an event: sittings, kinds of ticket, prices, limits, and what lacks a price."`
	Edit    editEvent           `cmd:"" help:"Change an event. What is held or sold keeps what it was held at."`
	Kind    saveKind            `cmd:"" help:"Add a kind of ticket, or change the one of this code."`
	Price   setPrice            `cmd:"" help:"Say what a kind of ticket costs, in a zone and from an instant on."`
	Limit   limitZone           `cmd:"" help:"Say how many tickets in a zone one buyer may have."`
	Sale    putOnSale           `cmd:"" help:"Put an event on sale, within its windows."`
	Close   closeSale           `cmd:"" help:"End the sale of an event. What is held may still be paid."`
	Cancel  cancelEvent         `cmd:"" help:"Say that an event does not take place: all its tickets end, what was paid for them goes back."`
	Sitting eventSittingCommand `cmd:"" help:"Sittings of an event: add, move, cancel."`
}

type listEvents struct{}

func (listEvents) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	listed, err := event.List(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type one struct {
			Slug         string      `json:"slug"`
			Name         string      `json:"name"`
			Organisation string      `json:"organisation"`
			State        event.State `json:"state"`
			Sittings     int         `json:"sittings"`
			NextAt       *time.Time  `json:"next_at"`
			Zone         string      `json:"zone"`
		}
		list := make([]one, len(listed))
		for i, e := range listed {
			list[i] = one{e.Slug, e.Name, e.Organisation, e.State, e.Sittings, e.NextAt, e.TimeZone}
		}
		return s.answer(list)
	}
	if len(listed) == 0 {
		s.say("cli_no_event", nil)
		return nil
	}
	rows := make([]table.Row, len(listed))
	for i, e := range listed {
		rows[i] = table.Row{e.Slug, e.Name, s.voice.Say("event_state_"+string(e.State), nil), s.number(e.Sittings), s.instantOr(e.Event, e.NextAt, "–")}
	}
	s.table([]string{"cli_event", "cli_name", "cli_event_state", "cli_event_sittings", "cli_event_next"}, rows, 4)
	return nil
}

// instantOr is an instant as the people of the event read it, or other words where there is none.
func (s *session) instantOr(e event.Event, at *time.Time, none string) string {
	if at == nil {
		return none
	}
	return s.voice.Instant(e.Shown(*at))
}

// eventFlags are what is said of an event when it is added and when it is changed; - takes a value back.
type eventFlags struct {
	Description *string `help:"What people read of it."`
	Opens       *string `help:"When its sale begins, in the zone of the event: 2026-05-01 10:00. - takes it back: as soon as it is on sale."`
	Closes      *string `help:"When its sale ends, that instant not included. - takes it back: when a sitting begins."`
	Hold        *string `placeholder:"MINUTES" help:"How long seats are held, and what a renewal gives; else 10."`
	HoldMost    *string `name:"hold-most" placeholder:"MINUTES" help:"From the first hold on: no renewal goes past it; else 30."`
	Most        *string `name:"most-per-buyer" placeholder:"N" help:"Tickets of one buyer; - takes the limit back."`
	GroupFrom   *string `name:"group-from" placeholder:"N" help:"From so many tickets in a cart each costs less; - takes the discount back."`
	GroupOff    *string `name:"group-percent" placeholder:"PERCENT" help:"… so much less."`
	CancelFee   *string `name:"cancel-fee" placeholder:"PERCENT" help:"What stays with you of a ticket that its buyer gives back."`
	SelfCancel  *string `name:"self-cancel" placeholder:"HOURS" help:"Until so many hours before a sitting buyers give tickets back by themselves; - takes it back: only you do."`
	Offer       *string `placeholder:"MINUTES" help:"How long places that came free are offered to whoever waits; else 1440."`
	LateSale    *bool   `name:"late-sale" negatable:"" help:"Sell until a sitting ends, not until it begins."`
}

type addEvent struct {
	Slug         string `arg:"" help:"Short name, unique in the installation."`
	Name         string `required:"" help:"Full name."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Currency     string `help:"Three letters (XOF); else the organisation's."`
	Zone         string `name:"time-zone" help:"Zone in which its hours are typed and shown; else the organisation's."`
	eventFlags
}

func (a addEvent) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, a.Organisation)
	if err != nil {
		return err
	}
	e := event.Event{Slug: a.Slug, Name: a.Name, Currency: a.Currency, TimeZone: a.Zone}
	if e.TimeZone == "" {
		e.TimeZone = org.TimeZone
	}
	if err := account.CheckTimeZone(e.TimeZone); err != nil { // hours are read in it
		return err
	}
	change, doubts, err := a.read(s, e)
	if err != nil {
		return err
	}
	change(&e)
	if e, err = event.Add(s.ctx, s.db, s.actor, org, e); err != nil {
		return err
	}
	return s.sayDoubts(doubts, s.done("cli_event_added", map[string]any{"name": e.Name, "event": e.Slug},
		map[string]any{"slug": e.Slug, "state": e.State, "zone": e.TimeZone, "currency": e.Currency, "warnings": doubts}))
}

type editEvent struct {
	Event string  `arg:"" help:"Short name of the event."`
	Name  *string `help:"Full name."`
	Zone  *string `name:"time-zone" help:"Zone in which its hours are typed and shown."`
	Keep  string  `help:"With another zone: hour keeps what clocks show, and instant when it is."`
	eventFlags
}

func (x editEvent) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, err := event.Find(s.ctx, s.db, s.actor, x.Event)
	if err != nil {
		return err
	}
	if x.Zone != nil && *x.Zone != e.TimeZone {
		return x.changeZone(s, e)
	}
	change, doubts, err := x.read(s, e)
	if err != nil {
		return err
	}
	after, changed, err := event.Edit(s.ctx, s.db, s.actor, x.Event, func(e *event.Event) {
		set(&e.Name, x.Name)
		change(e)
	})
	if err != nil {
		return err
	}
	sentence := "cli_event_edited"
	if !changed {
		sentence = "cli_event_unchanged"
	}
	return s.sayDoubts(doubts, s.done(sentence, map[string]any{"name": after.Name}, map[string]any{
		"slug": after.Slug, "changed": changed, "zone": after.TimeZone, "opens_at": after.OpensAt, "closes_at": after.ClosesAt, "warnings": doubts,
	}))
}

// changeZone gives the event another zone, and nothing else: hours that are typed beside it could be of either.
func (x editEvent) changeZone(s *session, e event.Event) error {
	if x.Name != nil || x.eventFlags != (eventFlags{}) {
		return problem.Invalid("event_zone_alone", problem.Facts{"event": e.Slug})
	}
	zoned, err := reservation.SetEventTimeZone(s.ctx, s.db, s.actor, x.Event, *x.Zone, event.Keep(x.Keep))
	if err != nil {
		return err
	}
	after, sittings := zoned.Event, make([]map[string]any, len(zoned.Sittings))
	for i, sitting := range zoned.Sittings {
		sittings[i] = sittingObject(sitting, map[string]any{})
	}
	if err := s.done("cli_event_zone", map[string]any{"name": after.Name, "zone": after.TimeZone, "people": zoned.People, "told": zoned.Told}, map[string]any{
		"slug": after.Slug, "changed": zoned.Changed, "zone": after.TimeZone, "people": zoned.People, "told": zoned.Told, "sittings": sittings,
	}); err != nil {
		return err
	}
	for _, sitting := range zoned.Sittings {
		s.say("cli_event_zone_sitting", map[string]any{"sitting": sitting.Reference, "starts_at": sitting.Begins()})
	}
	return nil
}

// read understands the flags; hours are those of the event's zone.
func (f eventFlags) read(s *session, e event.Event) (change func(*event.Event), doubts []string, err error) {
	hours := s.hoursOf(e)
	opens, closes := hours.optional("--opens", f.Opens), hours.optional("--closes", f.Closes)
	var numbers numberFlags
	hold, holdMost, offer := numbers.minutes(f.Hold), numbers.minutes(f.HoldMost), numbers.minutes(f.Offer)
	most, from, percent, fee := numbers.optional(f.Most), numbers.optional(f.GroupFrom), numbers.optional(f.GroupOff), numbers.given(f.CancelFee)
	selfCancel := numbers.optional(f.SelfCancel)
	if hours.err != nil {
		return nil, nil, hours.err
	}
	if numbers.err != nil {
		return nil, nil, numbers.err
	}
	return func(e *event.Event) {
		set(&e.Description, f.Description)
		set(&e.OpensAt, opens)
		set(&e.ClosesAt, closes)
		set(&e.HoldFor, hold)
		set(&e.HoldMost, holdMost)
		set(&e.MostPerBuyer, most)
		set(&e.GroupFrom, from)
		set(&e.GroupPercent, percent)
		if from != nil && *from == nil { // without a number no percentage
			e.GroupPercent = nil
		}
		set(&e.CancelFeePercent, fee)
		set(&e.LateSale, f.LateSale)
		set(&e.OfferFor, offer)
		set(&e.SelfCancelHours, selfCancel)
	}, hours.doubts, nil
}

// hoursFlags reads hours as files have theirs read, in the zone of an event.
type hoursFlags struct {
	s      *session
	zone   *time.Location
	doubts []string
	err    error
}

func (s *session) hoursOf(e event.Event) *hoursFlags {
	return &hoursFlags{s: s, zone: i18n.In(i18n.Instant{Zone: e.TimeZone}).Location(), doubts: []string{}}
}

// optional reads an hour that - takes back; nil: nothing was typed.
func (h *hoursFlags) optional(flag string, text *string) **time.Time {
	if text == nil || h.err != nil {
		return nil
	}
	if *text == "-" {
		return new((*time.Time)(nil))
	}
	return new(new(h.hour(flag, *text)))
}

func (h *hoursFlags) hour(flag, text string) time.Time {
	hour, err := intake.ReadHour(sheet.DayFirst, text, h.zone)
	return h.understood(flag, text, hour, err)
}

// inZone says of an hour that cannot be read in which zone it would be.
func inZone(err error, zone string) error {
	if p, ok := problem.Of(err); ok && p.Code == "instant_unreadable" {
		return problem.Invalid("event_hour_unreadable", problem.Facts{"value": p.Facts["value"], "zone": zone})
	}
	return err
}

func (h *hoursFlags) understood(flag, text string, hour intake.Hour, err error) time.Time {
	if h.err == nil && (err != nil || !hour.Timed) {
		h.err = inZone(h.s.unreadableHour(text, err), h.zone.String())
	}
	if reason, facts, twice := hour.Doubt(); twice && err == nil {
		facts["value"], facts["typed"] = text, flag
		h.doubts = append(h.doubts, h.s.voice.Say("refusal_"+reason, facts))
	}
	return hour.At
}

// numberFlags reads numbers and keeps the first that is none.
type numberFlags struct{ err error }

func (n *numberFlags) given(text *string) *int {
	if text == nil || n.err != nil {
		return nil
	}
	number, err := wholeNumber(*text)
	if n.err = err; err != nil {
		return nil
	}
	return &number
}

// optional reads a number that - takes back; nil: nothing was typed.
func (n *numberFlags) optional(text *string) **int {
	if text == nil {
		return nil
	}
	if *text == "-" {
		return new((*int)(nil))
	}
	return new(n.given(text))
}

// mostMinutes is more than any hold takes, so that no duration overflows.
const mostMinutes = 1_000_000

func (n *numberFlags) minutes(text *string) *time.Duration {
	number := n.given(text)
	if number == nil {
		return nil
	}
	if *number < 1 || *number > mostMinutes {
		n.err = problem.Invalid("number_unreadable", problem.Facts{"value": *text})
	}
	return new(time.Duration(*number) * time.Minute)
}
