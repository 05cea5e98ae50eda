package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
)

type sittingCommand struct {
	List     listSittings    `cmd:"" help:"List the sittings of a campaign."`
	Add      addSitting      `cmd:"" help:"Add one sitting, in a room that is there; also where files had another one that was moved or cancelled."`
	Move     moveSitting     `cmd:"" help:"Move a sitting to another room or time; everybody keeps their seat and is told."`
	Capacity sittingCapacity `cmd:"" help:"Say how many places a sitting has."`
	AtDoor   sittingAtDoor   `cmd:"" name:"at-door" help:"Say whether the seats of a sitting are given at the door."`
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
		AtDoor     bool      `json:"seats_at_door"`
	}
	list := make([]sitting, len(timetable))
	for i, x := range timetable {
		list[i] = sitting{x.Reference, x.Exam, x.Centre, x.Room, x.StartsAt, x.EndsAt, x.Zone, x.Seated, x.Usable, x.PlacesFrom, x.Revision, x.SeatsAtDoor}
	}
	return s.answer(list)
}

type moveSitting struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Centre   string `help:"New centre, with a room of it; else the same."`
	Room     string `help:"New room; else the same."`
	Starts   string `help:"New start, in the zone of the centre where it will be: 2026-12-07 08:00; with an offset where that hour comes twice: 2026-10-25 02:30+01:00."`
	Ends     string `help:"New end, an hour of the same day or with its date; else as long as before."`
}

func (m moveSitting) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	if m.Centre == "" && m.Room == "" && m.Starts == "" && m.Ends == "" {
		return problem.Invalid("sitting_move_nowhere", nil)
	}
	to := convocation.SittingMove{Centre: m.Centre, Room: m.Room}
	doubts, err := m.readHours(s, &to)
	if err != nil {
		return err
	}
	moved, err := convocation.MoveSitting(s.ctx, s.db, s.actor, m.Campaign, m.Sitting, to)
	if err != nil {
		return err
	}
	sentence := "cli_sitting_moved"
	if !moved.Changed {
		sentence = "cli_sitting_not_moved"
	}
	err = s.done(sentence,
		map[string]any{
			"sitting": moved.Reference, "place": moved.Place(), "starts_at": moved.Begins(), "ends_at": moved.Ends(), "people": moved.People,
		},
		map[string]any{
			"sitting": moved.Reference, "room": moved.Place(), "starts_at": moved.StartsAt, "ends_at": moved.EndsAt,
			"zone": moved.Zone, "revision": moved.Revision, "changed": moved.Changed, "people": moved.People, "other_centre": moved.Afar, "room_holds": moved.RoomHolds, "warnings": doubts,
		})
	if err != nil || s.line.JSON {
		return err
	}
	if moved.Afar > 0 {
		s.say("cli_sitting_moved_afar", map[string]any{"count": moved.Afar, "centre": moved.Centre})
	}
	if moved.RoomHolds != nil {
		s.say("cli_sitting_own_places", map[string]any{
			"sitting": moved.Reference, "campaign": m.Campaign, "places": moved.Places, "place": moved.Place(), "holds": *moved.RoomHolds,
		})
	}
	return s.sayDoubts(doubts, nil)
}

// readHours reads the hours by the clock of where the sitting will be.
func (m moveSitting) readHours(s *session, to *convocation.SittingMove) (doubts []string, err error) {
	if m.Starts == "" && m.Ends == "" {
		return []string{}, nil
	}
	clock, err := convocation.ClockOfMove(s.ctx, s.db, s.actor, m.Campaign, m.Sitting, m.Centre)
	if err != nil {
		return nil, err
	}
	to.StartsAt, to.EndsAt, doubts, err = s.readHours(clock, m.Starts, m.Ends)
	return doubts, err
}

// readHours reads the hours of a sitting as files have theirs read; what is to be said of those that come twice is
// returned. An empty text stays the zero instant.
func (s *session) readHours(clock convocation.Clock, starts, ends string) (startsAt, endsAt time.Time, doubts []string, err error) {
	doubts = []string{}
	zone := i18n.In(i18n.Instant{Zone: clock.Zone}).Location()
	understood := func(flag, text string, hour intake.Hour, err error) (time.Time, error) {
		if err != nil || !hour.Timed {
			return time.Time{}, s.unreadableHour(text, err)
		}
		if reason, facts, twice := hour.Doubt(); twice {
			facts["value"], facts["typed"] = text, flag
			doubts = append(doubts, s.voice.Say("refusal_"+reason, facts))
		}
		return hour.At, nil
	}
	after := clock.StartsAt
	if starts != "" {
		hour, err := intake.ReadHour(sheet.DayFirst, starts, zone)
		if startsAt, err = understood("--starts", starts, hour, err); err != nil {
			return startsAt, endsAt, doubts, err
		}
		after = startsAt
	}
	if ends != "" {
		hour, err := intake.ReadEnd(sheet.DayFirst, ends, zone, after)
		if endsAt, err = understood("--ends", ends, hour, err); err != nil {
			return startsAt, endsAt, doubts, err
		}
	}
	return startsAt, endsAt, doubts, nil
}

type addSitting struct {
	Campaign string  `required:"" help:"Short name of the campaign."`
	Exam     string  `required:"" help:"Code of the exam."`
	Centre   string  `required:"" help:"Name of the centre."`
	Room     string  `required:"" help:"Name of the room; usher venue room adds one."`
	Starts   string  `required:"" help:"Start, in the zone of the centre: 2026-12-07 08:00."`
	Ends     string  `help:"End, an hour of the same day or with its date; else as long as the exam lasts."`
	Capacity *string `help:"Number of places of this sitting; else those of the room."`
}

func (a addSitting) Run(s *session) error {
	wanted := convocation.NewSitting{Exam: a.Exam, Centre: a.Centre, Room: a.Room}
	if a.Capacity != nil {
		var err error
		if wanted.Capacity, err = capacityOf(*a.Capacity); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	zone, err := convocation.ZoneOfCentre(s.ctx, s.db, s.actor, a.Campaign, a.Centre)
	if err != nil {
		return err
	}
	if a.Starts == "" {
		return problem.Invalid("instant_unreadable", problem.Facts{"value": a.Starts})
	}
	var doubts []string
	if wanted.StartsAt, wanted.EndsAt, doubts, err = s.readHours(convocation.Clock{Zone: zone}, a.Starts, a.Ends); err != nil {
		return err
	}
	added, err := convocation.AddSitting(s.ctx, s.db, s.actor, a.Campaign, wanted)
	if err != nil {
		return err
	}
	err = s.done("cli_sitting_added",
		map[string]any{
			"sitting": added.Reference, "exam": added.Exam, "place": added.Place(), "starts_at": added.Begins(), "ends_at": added.Ends(),
			"places": added.Usable.Count, "campaign": a.Campaign,
		},
		map[string]any{
			"sitting": added.Reference, "exam": added.Exam, "room": added.Place(), "starts_at": added.StartsAt, "ends_at": added.EndsAt, "zone": added.Zone,
			"places": added.Usable.Count, "places_from": added.Usable.From, "room_holds": added.RoomHolds, "warnings": doubts,
		})
	s.sayPlaces(a.Campaign, added, err)
	return s.sayDoubts(doubts, err)
}

// sayDoubts prints what is to be said of hours after what was done with them.
func (s *session) sayDoubts(doubts []string, err error) error {
	if err != nil || s.line.JSON {
		return err
	}
	for _, doubt := range doubts {
		fmt.Fprintln(s.stdout, doubt)
	}
	return nil
}

// unreadableHour says of what is typed what would be said of a cell.
func (s *session) unreadableHour(text string, err error) error {
	var refusal *sheet.Error
	if !errors.As(err, &refusal) || refusal.Code == sheet.NotADate || refusal.Code == sheet.WrongOrder {
		return problem.Invalid("instant_unreadable", problem.Facts{"value": text})
	}
	sentence := s.voice.Say("refusal_"+string(refusal.Code), problem.Facts{"value": text, "names": refusal.Names})
	return problem.Invalid("hour_wrong", problem.Facts{"sentence": sentence}).Because(err)
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
	err = s.done("cli_capacity_set",
		map[string]any{"sitting": sitting.Reference, "places": sitting.Usable.Count, "plan": sitting.Usable.From == seating.FromPlan},
		map[string]any{"sitting": sitting.Reference, "places": sitting.Usable.Count, "places_from": sitting.Usable.From, "room_holds": sitting.RoomHolds})
	s.sayPlaces(c.Campaign, sitting, err)
	return err
}

// sayPlaces says, after what was done, that a sitting has more places than its room, or that nobody gave their number.
func (s *session) sayPlaces(campaign string, sitting seating.Sized, err error) {
	switch {
	case err != nil:
	case sitting.RoomHolds != nil:
		s.say("cli_sitting_own_places", map[string]any{
			"sitting": sitting.Reference, "campaign": campaign, "places": sitting.Places, "place": sitting.Place(), "holds": *sitting.RoomHolds,
		})
	case sitting.Usable.From == "bound":
		s.say("cli_sitting_on_bound", map[string]any{"sitting": sitting.Reference, "campaign": campaign})
	}
}

type sittingAtDoor struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `arg:"" help:"Reference of the sitting."`
	Given    string `arg:"" help:"on: places are promised, and seats given on the day. off: seats are given before."`
}

func (a sittingAtDoor) Run(s *session) error {
	if a.Given != "on" && a.Given != "off" {
		return problem.Invalid("at_door_unreadable", problem.Facts{"value": a.Given})
	}
	if err := s.open(); err != nil {
		return err
	}
	sitting, changed, err := seating.SetSeatsAtDoor(s.ctx, s.db, s.actor, a.Campaign, a.Sitting, a.Given == "on")
	if err != nil {
		return err
	}
	sentence := "cli_seats_before"
	if sitting.SeatsAtDoor {
		sentence = "cli_seats_at_door"
	}
	return s.done(sentence, map[string]any{"sitting": sitting.Reference, "place": sitting.Place(), "starts_at": sitting.Begins()},
		map[string]any{"sitting": sitting.Reference, "seats_at_door": sitting.SeatsAtDoor, "changed": changed})
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
	Zone     venueZone     `cmd:"" help:"Say in which time zone the hours of a centre are; its coming sittings keep their local hours, and what lasts otherwise by it is named."`
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

type venueZone struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
	Centre       string `required:"" help:"Name of the centre."`
	TimeZone     string `arg:"" name:"time-zone" help:"Zone, such as Africa/Bamako. Refused while people sit at a coming sitting there: they were told its hours."`
}

func (v venueZone) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, v.Organisation)
	if err != nil {
		return err
	}
	change, err := seating.SetTimeZone(s.ctx, s.db, s.actor, org, v.Centre, v.TimeZone)
	if err != nil {
		return err
	}
	lasting := change.Lasting
	if lasting == nil {
		lasting = []seating.Lasting{}
	}
	err = s.done("cli_zone_set", map[string]any{"centre": v.Centre, "zone": v.TimeZone, "count": change.Sittings},
		map[string]any{"centre": v.Centre, "zone": v.TimeZone, "sittings_changed": change.Sittings, "lasting": lasting})
	if err != nil || s.line.JSON {
		return err
	}
	for _, l := range lasting {
		s.say("cli_zone_lasting", map[string]any{"sitting": l.Sitting, "campaign": l.Campaign, "before": l.MinutesBefore, "now": l.Minutes})
	}
	return nil
}

type addRoom struct {
	Organisation string  `help:"Short name of the organisation; needed when there are several."`
	Centre       string  `required:"" help:"Name of the centre."`
	Name         string  `arg:"" help:"Name of the room."`
	Capacity     *string `help:"Number of places; else what is known of it stays."`
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
	done, err := seating.AddRoom(s.ctx, s.db, s.actor, org, room)
	if err != nil {
		return err
	}
	sentence := "cli_room_there"
	switch {
	case done.Added:
		sentence = "cli_room_added"
	case done.CapacityChanged:
		sentence = "cli_room_resized"
	}
	return s.done(sentence, map[string]any{"room": a.Name, "centre": a.Centre, "count": done.Sittings}, map[string]any{
		"room": a.Name, "centre": a.Centre, "added": done.Added, "capacity_changed": done.CapacityChanged, "sittings_changed": done.Sittings,
	})
}
