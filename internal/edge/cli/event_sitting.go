package cli

import (
	"strings"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
	"usher/internal/domain/event"
	"usher/internal/domain/reservation"
	"usher/internal/domain/seating"
)

type eventSittingCommand struct {
	Add    addEventSitting    `cmd:"" help:"Add a sitting to an event: a room at a time."`
	Move   moveEventSitting   `cmd:"" help:"Move a sitting to another room or time; everybody keeps their seat."`
	Cancel cancelEventSitting `cmd:"" help:"Take a sitting at which nobody holds a seat out of its event."`
}

type addEventSitting struct {
	Event     string  `arg:"" help:"Short name of the event."`
	Centre    string  `required:"" help:"Name of the centre."`
	Room      string  `required:"" help:"Name of the room."`
	Starts    string  `required:"" help:"Start, in the zone of the event: 2026-12-07 20:00."`
	Ends      string  `required:"" help:"End, an hour of the same day or with its date."`
	Reference string  `help:"What it is called; else the next number: S001."`
	Capacity  *string `help:"Number of places; else the room's, else as many as its plan has."`
}

func (a addEventSitting) Run(s *session) error {
	n := seating.NewEventSitting{Reference: a.Reference, Centre: a.Centre, Room: a.Room}
	if a.Capacity != nil {
		var err error
		if n.Capacity, err = capacityOf(*a.Capacity); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	e, err := event.Find(s.ctx, s.db, s.actor, a.Event)
	if err != nil {
		return err
	}
	var doubts []string
	if n.StartsAt, n.EndsAt, doubts, err = s.readHours(convocation.Clock{Zone: e.TimeZone}, a.Starts, a.Ends); err != nil {
		return inZone(err, e.TimeZone)
	}
	added, err := seating.AddEventSitting(s.ctx, s.db, s.actor, a.Event, n)
	if err != nil {
		return err
	}
	return s.sayDoubts(doubts, s.done("cli_event_sitting_added", sittingFacts(added),
		sittingObject(added, map[string]any{"warnings": doubts, "places": added.Places, "places_from": added.PlacesFrom})))
}

func sittingFacts(x seating.EventSitting) map[string]any {
	return map[string]any{
		"sitting": x.Reference, "place": x.Place(), "starts_at": x.Begins(), "ends_at": x.Ends(), "places": x.Places,
	}
}

func sittingObject(x seating.EventSitting, more map[string]any) map[string]any {
	more["sitting"], more["centre"], more["room"] = x.Reference, x.Centre, x.Room
	more["starts_at"], more["ends_at"], more["zone"], more["revision"] = x.StartsAt, x.EndsAt, x.Zone, x.Revision
	return more
}

type moveEventSitting struct {
	Event   string `arg:"" help:"Short name of the event."`
	Sitting string `arg:"" help:"Reference of the sitting."`
	Centre  string `help:"New centre, with a room of it; else the same."`
	Room    string `help:"New room; else the same."`
	Starts  string `help:"New start, in the zone of the event."`
	Ends    string `help:"New end, an hour of the same day or with its date; else as long as before."`
}

func (m moveEventSitting) Run(s *session) error {
	if m.Centre == "" && m.Room == "" && m.Starts == "" && m.Ends == "" {
		return problem.Invalid("sitting_move_nowhere", nil)
	}
	if err := s.open(); err != nil {
		return err
	}
	to, doubts, err := m.destination(s)
	if err != nil {
		return err
	}
	moved, err := reservation.MoveSitting(s.ctx, s.db, s.actor, m.Event, m.Sitting, to)
	if err != nil {
		return err
	}
	sentence := "cli_event_sitting_moved"
	if !moved.Changed {
		sentence = "cli_sitting_not_moved"
	}
	facts := sittingFacts(moved.EventSitting)
	facts["people"], facts["told"] = moved.People, moved.Told
	return s.sayDoubts(doubts, s.done(sentence, facts, sittingObject(moved.EventSitting, map[string]any{
		"changed": moved.Changed, "people": moved.People, "told": moved.Told, "warnings": doubts,
	})))
}

// destination reads the hours in the zone of the event.
func (m moveEventSitting) destination(s *session) (to seating.EventSittingMove, doubts []string, err error) {
	to = seating.EventSittingMove{Centre: m.Centre, Room: m.Room}
	e, err := event.Find(s.ctx, s.db, s.actor, m.Event)
	if err != nil {
		return to, nil, err
	}
	clock := convocation.Clock{Zone: e.TimeZone}
	if m.Starts == "" && m.Ends != "" {
		if clock.StartsAt, err = m.start(s); err != nil {
			return to, nil, err
		}
	}
	to.StartsAt, to.EndsAt, doubts, err = s.readHours(clock, m.Starts, m.Ends)
	return to, doubts, inZone(err, e.TimeZone)
}

// start is when the sitting starts as it stands: an end that names an hour alone is meant on that day.
func (m moveEventSitting) start(s *session) (time.Time, error) {
	sittings, err := seating.SoldSittings(s.ctx, s.db, s.actor, m.Event)
	if err != nil {
		return time.Time{}, err
	}
	for _, x := range sittings {
		if strings.EqualFold(x.Reference, m.Sitting) {
			return x.StartsAt, nil
		}
	}
	return time.Time{}, problem.NotFound("event_sitting_unknown", problem.Facts{"sitting": m.Sitting, "event": m.Event})
}

type cancelEventSitting struct {
	Event   string `arg:"" help:"Short name of the event."`
	Sitting string `arg:"" help:"Reference of the sitting."`
	Reason  string `required:"" help:"Why: it is kept."`
}

func (c cancelEventSitting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	cancelled, err := seating.CancelEventSitting(s.ctx, s.db, s.actor, c.Event, c.Sitting, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_sitting_cancelled", sittingFacts(cancelled), map[string]any{"sitting": cancelled.Reference, "cancelled": true})
}

func answerEventSittings(sittings []seating.SoldSitting) []map[string]any {
	list := make([]map[string]any, len(sittings))
	for i, x := range sittings {
		list[i] = sittingObject(x.EventSitting, map[string]any{"sold": x.Sold, "held": x.Held, "capacity": x.Usable, "places_from": x.PlacesFrom})
	}
	return list
}
