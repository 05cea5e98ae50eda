package cli

import (
	"crypto/rand"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/domain/reservation"
	"usher/internal/domain/waiting"
)

type waitingCommand struct {
	Join  joinWaiting  `cmd:"" help:"Put somebody at the end of a sitting's waiting list."`
	Leave leaveWaiting `cmd:"" help:"Take somebody out of a waiting list; what is offered to them goes to the next."`
	List  listWaiting  `cmd:"" help:"Show who waits for a sitting, in order."`
	Offer offerWaiting `cmd:"" help:"Offer what came free to those who waited longest. A running usher serve does it by itself."`
}

// waitedFor names a sitting that people wait for.
type waitedFor struct {
	Event   string `required:"" help:"Short name of the event."`
	Sitting string `required:"" help:"Reference of the sitting."`
}

type joinWaiting struct {
	waitedFor
	Name   string  `arg:"" help:"Name of whoever waits."`
	Email  string  `required:"" help:"Their address: an offer is told there."`
	Phone  string  `help:"Their telephone: an offer is told there, too."`
	Kind   string  `help:"Kind of ticket; needed when there are several."`
	Zone   *string `help:"Zone of the plan; else any."`
	Places int     `default:"1" help:"How many places they want."`
	Fewest int     `help:"How few will do; else all of them."`
	Locale string  `default:"en" help:"Language in which they are told: en, fr or es."`
}

func (c joinWaiting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, err := waiting.Join(s.ctx, s.db, s.actor, waiting.Joining{
		Key: rand.Text(), Event: c.Event, Sitting: c.Sitting, Kind: c.Kind, Zone: c.Zone, Wanted: c.Places, Fewest: c.Fewest,
		Contact: reservation.Contact{Name: c.Name, Email: c.Email, Phone: c.Phone, Locale: c.Locale},
	})
	if err != nil {
		return err
	}
	return s.done("cli_waiting_joined", map[string]any{
		"name": e.Name, "places": s.placesOf(e), "sitting": e.Sitting, "event": e.EventName, "ahead": e.Ahead, "reference": e.Reference,
	}, waitingAsJSON(e))
}

// placesOf says what somebody waits for.
func (s *session) placesOf(e waiting.Entry) string {
	said := map[string]any{"wanted": e.Wanted, "kind": e.KindName, "zone": ""}
	if e.Zone != nil {
		said["zone"] = *e.Zone
	}
	if e.Fewest < e.Wanted {
		said["fewest"] = e.Fewest
	}
	return s.voice.Say("waiting_places_said", said)
}

func waitingAsJSON(e waiting.Entry) map[string]any {
	return map[string]any{
		"reference": e.Reference, "state": e.State, "event": e.Event, "sitting": e.Sitting, "kind": e.Kind, "zone": e.Zone, "places": e.Wanted, "fewest": e.Fewest,
		"name": e.Name, "email": e.Email, "phone": e.Phone, "joined_at": e.JoinedAt, "reservation": e.Reservation,
	}
}

func waitingObjects(entries []waiting.Entry) []map[string]any {
	objects := make([]map[string]any, len(entries))
	for i, e := range entries {
		objects[i] = waitingAsJSON(e)
	}
	return objects
}

type leaveWaiting struct {
	Waiting string `arg:"" help:"Reference of their place in the list."`
}

func (c leaveWaiting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	e, err := waiting.Leave(s.ctx, s.db, s.actor, c.Waiting)
	if err != nil {
		return err
	}
	sentence := "cli_waiting_left"
	if e.State != waiting.Left {
		sentence = "cli_waiting_stays"
	}
	return s.done(sentence, map[string]any{"name": e.Name, "reference": e.Reference, "state": s.voice.Say("waiting_state_"+string(e.State), nil)}, waitingAsJSON(e))
}

type listWaiting struct {
	waitedFor
	All bool `help:"Also those who do not wait any more, with what became of it."`
}

func (c listWaiting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	q, err := waiting.List(s.ctx, s.db, s.actor, c.Event, c.Sitting, c.All)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"waiting": q.Waiting, "wanted": q.Wanted, "total": q.Total, "list": waitingObjects(q.Entries)})
	}
	if q.Total == 0 {
		s.say("cli_waiting_none", nil)
		return nil
	}
	shown := q.Entries[:min(len(q.Entries), mostPrinted)]
	said := map[string]any{"waiting": q.Waiting, "wanted": q.Wanted, "shown": len(shown)}
	if q.Total > len(shown) {
		said["more"] = q.Total
	}
	s.say("cli_waiting_list", said)
	rows := make([]table.Row, len(shown))
	for i, e := range shown {
		rows[i] = table.Row{e.Reference, s.voice.Say("waiting_state_"+string(e.State), nil), e.Name, s.placesOf(e), s.voice.Instant(e.Shown(e.JoinedAt)), orDash(e.Reservation)}
	}
	s.table([]string{"cli_waiting_reference", "cli_waiting_state", "cli_waiting_who", "cli_waiting_places", "cli_waiting_since", "cli_reservation_reference"}, rows)
	return nil
}

type offerWaiting struct{}

func (c offerWaiting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	done, err := waiting.Offer(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"offered": waitingObjects(done.Offered), "missed": done.Missed, "over": done.Over})
	}
	for _, e := range done.Offered[:min(len(done.Offered), mostPrinted)] {
		s.say("cli_waiting_offered", map[string]any{"name": e.Name, "sitting": e.Sitting, "event": e.EventName, "reservation": e.Reservation})
	}
	s.say("cli_waiting_swept", map[string]any{"offered": len(done.Offered), "missed": done.Missed, "over": done.Over})
	return nil
}
