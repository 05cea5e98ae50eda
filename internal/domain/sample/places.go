package sample

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const examCode = "CONCOURS"

// OverfullCentre is the centre that more paid candidates chose than it has seats.
const OverfullCentre = sikasso

const (
	campus    = "Bamako - Campus du Djoliba"
	nieta     = "Bamako - Lycée Nièta"
	gao       = "Gao - Lycée Kanaga-Dunes"
	kayes     = "Kayes - Lycée Badenya"
	koulikoro = "Koulikoro - Lycée du Bord-du-Fleuve"
	mopti     = "Mopti - Lycée de la Venise"
	segou     = "Ségou - Lycée Balanzan"
	sikasso   = "Sikasso - Lycée Kénédougou-Kura"
)

// Centre is a place of the exam. Its capacity, where known, counts for each of its rooms that has
// none of its own.
type Centre struct {
	Name, City string
	Capacity   *int
}

// Room is what the office knows of a room beside the sittings file.
type Room struct {
	Centre, Name string
	Capacity     *int
}

// RoomPlan is the seats of a room, ordered by number.
type RoomPlan struct {
	Centre, Room string
	Seats        []Seat
}

// Seat is one chair. Number identifies it, Label is what is painted on it.
type Seat struct {
	Number              int
	Label, Zone         string
	Blocked, Accessible bool
}

// Sitting is one room at one time. Capacity is nil where the file leaves it out.
type Sitting struct {
	Exam, Centre, Room string
	Capacity           *int
	StartsAt, EndsAt   time.Time
}

// Seats is the number of people whom a sitting can take: its own capacity, else its room's, else
// its centre's, else the fallback, less the blocked seats of the room's plan.
func (s School) Seats(sitting Sitting) int {
	places := FallbackPlaces
	if c := firstKnown(sitting.Capacity, s.roomCapacity(sitting), s.centreCapacity(sitting)); c != nil {
		places = *c
	}
	return places - s.blockedSeats(sitting, places)
}

// blockedSeats counts the broken chairs among the first places of the sitting's room.
func (s School) blockedSeats(sitting Sitting, places int) int {
	blocked := 0
	for _, plan := range s.RoomPlans {
		if plan.Centre != sitting.Centre || plan.Room != sitting.Room {
			continue
		}
		for _, seat := range plan.Seats {
			if seat.Blocked && seat.Number <= places {
				blocked++
			}
		}
	}
	return blocked
}

func firstKnown(capacities ...*int) *int {
	for _, c := range capacities {
		if c != nil {
			return c
		}
	}
	return nil
}

func (s School) roomCapacity(sitting Sitting) *int {
	for _, r := range s.Rooms {
		if r.Centre == sitting.Centre && r.Name == sitting.Room {
			return r.Capacity
		}
	}
	return nil
}

func (s School) centreCapacity(sitting Sitting) *int {
	for _, c := range s.Centres {
		if c.Name == sitting.Centre {
			return c.Capacity
		}
	}
	return nil
}

func known(capacity int) *int { return &capacity }

func centres() []Centre {
	return []Centre{
		{Name: campus, City: "Bamako"},
		{Name: nieta, City: "Bamako"},
		{Name: gao, City: "Gao", Capacity: known(130)},
		{Name: kayes, City: "Kayes"},
		{Name: koulikoro, City: "Koulikoro"},
		{Name: mopti, City: "Mopti"},
		{Name: segou, City: "Ségou"},
		{Name: sikasso, City: "Sikasso"},
	}
}

func rooms() []Room {
	return []Room{
		{campus, "Grand amphi", known(400)},
		{campus, "Amphi 2", known(220)},
		{campus, "Amphi 10", known(300)},
		{campus, "Salle B12", known(planRows * planColumns)},
		{nieta, "Gymnase", known(260)},
		{nieta, "Salle 2", known(planRows * planColumns)},
		{nieta, "Salle 10", nil},
		{gao, "Salle 1", nil},
		{gao, "Salle 2", nil},
		{kayes, "Amphi 1", known(210)},
		{kayes, "Amphi 1 bis", known(150)},
		{koulikoro, "Grande salle", known(190)},
		{koulikoro, "Salle 3", nil},
		{mopti, "Salle du fleuve", nil},
		{mopti, "Salle C4", known(150)},
		{segou, "Amphi 1", known(240)},
		{segou, "Salle 12", nil},
		{sikasso, "Amphi Woroni", known(190)},
		{sikasso, "Salle 5", known(130)},
	}
}

// A session is half a day of the exam: 0 is the first morning, 9 the fifth afternoon.
const (
	sessionCount     = 10
	morningHour      = 8
	afternoonHour    = 14
	sittingHours     = 3
	hoursInDay       = 24
	sessionsInOneDay = 2
)

// roomSessions says when a room is used, and the capacity that the file gives for those sessions.
type roomSessions struct {
	centre, room string
	capacity     *int
	sessions     []int
}

// The campus carries the first days and the regions begin on the Wednesday: candidates without a
// centre are called to the earliest free seat, and would otherwise take the regions' seats from
// those who asked for them.
var timetable = []roomSessions{
	{campus, "Grand amphi", known(400), []int{0, 1, 2, 3}},
	{campus, "Grand amphi", nil, []int{4}}, // the room's 400
	{campus, "Amphi 2", known(220), []int{0, 1, 2, 3, 4}},
	{campus, "Amphi 10", known(300), []int{0, 1, 2, 3}},
	{campus, "Salle B12", nil, []int{0, 2}}, // the seat plan's
	{campus, "Salle B12", known(planRows * planColumns), []int{1, 3}},

	{nieta, "Gymnase", known(260), []int{0, 1, 2, 3}},
	{nieta, "Salle 2", known(planRows * planColumns), []int{0, 1, 2, 3}},
	{nieta, "Salle 10", known(120), []int{0, 1, 2}},
	{nieta, "Salle 10", nil, []int{3}}, // nobody knows: the fallback

	{kayes, "Amphi 1", known(210), []int{4, 5, 6, 7}},
	{kayes, "Amphi 1 bis", known(150), []int{4, 5}},

	{sikasso, "Amphi Woroni", known(190), []int{4, 5, 6}},
	{sikasso, "Salle 5", known(130), []int{4, 5, 6}},

	{segou, "Amphi 1", known(240), []int{4, 5, 6, 7}},
	{segou, "Salle 12", known(160), []int{4}},
	{segou, "Salle 12", nil, []int{5}}, // nobody knows: the fallback

	{mopti, "Salle du fleuve", known(170), []int{4, 5, 6}},
	{mopti, "Salle C4", nil, []int{4}}, // the room's 150
	{mopti, "Salle C4", known(150), []int{5}},

	{gao, "Salle 1", known(130), []int{4, 5, 6}},
	{gao, "Salle 2", nil, []int{4, 5}}, // the centre's 130

	{koulikoro, "Grande salle", known(190), []int{5, 6, 7}},
	{koulikoro, "Salle 3", known(120), []int{5, 6}},
}

// sittings are in the order in which the office typed them: by time, then centre, then room.
func sittings(first time.Time) []Sitting {
	var all []Sitting
	for _, use := range timetable {
		for _, session := range use.sessions {
			starts := sessionStart(first, session)
			all = append(all, Sitting{
				Exam: examCode, Centre: use.centre, Room: use.room, Capacity: use.capacity,
				StartsAt: starts, EndsAt: starts.Add(sittingHours * time.Hour),
			})
		}
	}
	slices.SortStableFunc(all, bySitting)
	return all
}

func bySitting(a, b Sitting) int {
	return cmp.Or(a.StartsAt.Compare(b.StartsAt), cmp.Compare(a.Centre, b.Centre), cmp.Compare(a.Room, b.Room))
}

func sessionStart(first time.Time, session int) time.Time {
	hour := morningHour
	if session%sessionsInOneDay == 1 {
		hour = afternoonHour
	}
	return first.Add(time.Duration(session/sessionsInOneDay*hoursInDay+hour) * time.Hour)
}

// The two rooms with a plan have the same rows of numbered chairs.
const (
	planRows    = 8
	planColumns = 12
)

// roomPlans gives two rooms their seats: a row of a letter, A nearest to the door, where a
// wheelchair can come in at both ends; broken chairs are blocked.
func roomPlans() []RoomPlan {
	return []RoomPlan{
		{Centre: campus, Room: "Salle B12", Seats: planSeats(7, 48, 49)},
		{Centre: nieta, Room: "Salle 2", Seats: planSeats(31, 96)},
	}
}

func planSeats(broken ...int) []Seat {
	seats := make([]Seat, 0, planRows*planColumns)
	for row := range planRows {
		zone := "Avant"
		if row >= planRows/2 {
			zone = "Arrière"
		}
		for column := 1; column <= planColumns; column++ {
			number := row*planColumns + column
			seats = append(seats, Seat{
				Number: number, Label: fmt.Sprintf("%c-%d", 'A'+row, column), Zone: zone,
				Blocked:    slices.Contains(broken, number),
				Accessible: row == 0 && (column <= 2 || column > planColumns-2),
			})
		}
	}
	return seats
}
