package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/seating"
)

type sittingCommand struct {
	List     listSittings    `cmd:"" help:"List the sittings of a campaign."`
	Move     moveSitting     `cmd:"" help:"Move a sitting to another room or time; everybody keeps their seat and is told."`
	Capacity sittingCapacity `cmd:"" help:"Say how many places a sitting has."`
	Cancel   cancelSitting   `cmd:"" help:"Take a sitting at which nobody sits out of the timetable."`
}

type listSittings struct {
	Campaign string `required:"" help:"Short name of the campaign."`
}

func (l listSittings) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	timetable, err := convocation.Timetable(s.ctx, s.db, s.actor, l.Campaign)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answerSittings(timetable)
	}
	rows := make([]table.Row, len(timetable))
	for i, x := range timetable {
		rows[i] = table.Row{
			x.Reference, x.Exam, s.voice.Instant(x.Begins()), x.Place(), s.number(x.Seated), s.number(x.Usable),
			s.voice.Say("cli_places_from_"+x.PlacesFrom, nil),
		}
	}
	s.table([]string{"cli_sitting", "cli_exam", "cli_starts_at", "cli_room", "cli_seated", "cli_places", "cli_places_from"}, rows, 5, 6)
	return nil
}

func (s *session) answerSittings(timetable []convocation.Timetabled) error {
	type sitting struct {
		Sitting    string    `json:"sitting"`
		Exam       string    `json:"exam"`
		Centre     string    `json:"centre"`
		Room       string    `json:"room"`
		StartsAt   time.Time `json:"starts_at"`
		EndsAt     time.Time `json:"ends_at"`
		Zone       string    `json:"zone"`
		Seated     int       `json:"seated"`
		Capacity   int       `json:"capacity"`
		PlacesFrom string    `json:"places_from"`
		Revision   int       `json:"revision"`
	}
	list := make([]sitting, len(timetable))
	for i, x := range timetable {
		list[i] = sitting{x.Reference, x.Exam, x.Centre, x.Room, x.StartsAt, x.EndsAt, x.Zone, x.Seated, x.Usable, x.PlacesFrom, x.Revision}
	}
	return s.answer(list)
}

type moveSitting struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Centre   string `help:"New centre; else the same."`
	Room     string `help:"New room; else the same."`
	Starts   string `help:"New start in the centre's zone: 2026-12-07 08:00."`
	Ends     string `help:"New end; else as long as before."`
}

func (m moveSitting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	to := convocation.SittingMove{Centre: m.Centre, Room: m.Room}
	if m.Starts != "" || m.Ends != "" {
		location, err := s.zoneOf(m.Campaign, m.Sitting)
		if err != nil {
			return err
		}
		if to.StartsAt, err = instantIn(m.Starts, location); err != nil {
			return err
		}
		if to.EndsAt, err = instantIn(m.Ends, location); err != nil {
			return err
		}
	}
	moved, people, err := convocation.MoveSitting(s.ctx, s.db, s.actor, m.Campaign, m.Sitting, to)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{
			"sitting": moved.Reference, "room": moved.Place(), "starts_at": moved.StartsAt, "ends_at": moved.EndsAt,
			"revision": moved.Revision, "people": people,
		})
	}
	s.say("cli_sitting_moved", map[string]any{"sitting": moved.Reference, "place": moved.Place(), "starts_at": moved.Begins(), "people": people})
	return nil
}

type cancelSitting struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Reason   string `required:"" help:"Why: it is kept."`
}

func (c cancelSitting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	sitting, err := convocation.CancelSitting(s.ctx, s.db, s.actor, c.Campaign, c.Sitting, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_sitting_cancelled", map[string]any{"sitting": sitting.Reference, "place": sitting.Place(), "starts_at": sitting.Begins()},
		map[string]any{"sitting": sitting.Reference, "cancelled": true})
}

// zoneOf is the zone in which the hours of a sitting are read.
func (s *session) zoneOf(campaign, sitting string) (*time.Location, error) {
	timetable, err := convocation.Timetable(s.ctx, s.db, s.actor, campaign)
	if err != nil {
		return nil, err
	}
	for _, x := range timetable {
		if strings.EqualFold(x.Reference, sitting) {
			return i18n.In(x.Begins()).Location(), nil
		}
	}
	return nil, problem.NotFound("sitting_unknown", problem.Facts{"sitting": sitting, "campaign": campaign})
}

// instantIn reads a local time as it is written in files, the year first or the day first.
func instantIn(text string, location *time.Location) (time.Time, error) {
	if strings.TrimSpace(text) == "" {
		return time.Time{}, nil
	}
	at, timed, err := sheet.DayFirst.Instant(text, location)
	if err != nil || !timed {
		return time.Time{}, problem.Invalid("instant_unreadable", problem.Facts{"value": text})
	}
	return at, nil
}

type sittingCapacity struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Capacity string `arg:"" help:"Number of places; - takes the number back."`
}

func (c sittingCapacity) Run(s *session) error {
	capacity, err := capacityOf(c.Capacity)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	sitting, err := seating.SetCapacity(s.ctx, s.db, s.actor, c.Campaign, c.Sitting, capacity)
	if err != nil {
		return err
	}
	return s.done("cli_capacity_set", map[string]any{"sitting": sitting.Reference, "places": sitting.Places},
		map[string]any{"sitting": sitting.Reference, "places": sitting.Places, "places_from": sitting.PlacesFrom})
}

func capacityOf(text string) (*int, error) {
	if text == "-" {
		return nil, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, problem.Invalid("capacity_unreadable", problem.Facts{"value": text})
	}
	return &number, nil
}

type venueCommand struct {
	Capacity venueCapacity `cmd:"" help:"Say how many places a room has, or each room of a centre that says nothing itself."`
	Room     addRoom       `cmd:"" help:"Add a room, and its centre if it is new."`
}

type venueCapacity struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Centre       string `required:"" help:"Name of the centre."`
	Room         string `help:"Name of the room; else the number counts for each room of the centre without one."`
	Capacity     string `arg:"" help:"Number of places; - takes the number back."`
}

func (v venueCapacity) Run(s *session) error {
	capacity, err := capacityOf(v.Capacity)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, v.Organisation)
	if err != nil {
		return err
	}
	changed, err := seating.SetVenueCapacities(s.ctx, s.db, s.actor, org, seating.VenueCapacity{Centre: v.Centre, Room: v.Room, Capacity: capacity})
	if err != nil {
		return err
	}
	return s.done("cli_venue_set", map[string]any{"count": changed}, map[string]any{"centre": v.Centre, "room": v.Room, "sittings_changed": changed})
}

type addRoom struct {
	Organisation string  `help:"Short name of the organisation; needed when there are several."`
	Centre       string  `required:"" help:"Name of the centre."`
	Name         string  `arg:"" help:"Name of the room."`
	Capacity     *string `help:"Number of places."`
}

func (a addRoom) Run(s *session) error {
	room := seating.VenueCapacity{Centre: a.Centre, Room: a.Name}
	if a.Capacity != nil {
		var err error
		if room.Capacity, err = capacityOf(*a.Capacity); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, a.Organisation)
	if err != nil {
		return err
	}
	if err := seating.AddRoom(s.ctx, s.db, s.actor, org, room); err != nil {
		return err
	}
	return s.done("cli_room_added", map[string]any{"room": a.Name, "centre": a.Centre}, map[string]any{"room": a.Name, "centre": a.Centre, "added": true})
}
