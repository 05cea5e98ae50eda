package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/checkin"
	"usher/internal/domain/convocation"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// The orders in which the people of a sitting are listed.
const (
	bySeat    = "seat"
	bySurname = "surname"
)

// sittingPage is one sitting: its facts, its seats and its people.
type sittingPage struct {
	Chrome
	Attendance convocation.Attendance
	When       string
	Hours      string
	Zone       string
	Mark       string
	Bar        bar
	OnBound    string // the command that says how many places there are; empty: it was said
	Zones      []seatZone
	Legend     []string // which states of seats there are
	People     []attendee
	Order      string
	SeatURL    string
	SurnameURL string
	AtDoor     int // people whose seat is given on the day
	Downloads  []paper
	ByHand     string // which names the papers cannot show; empty: none
	Paused     []string
	Moved      string // where and when it was before the last move; empty: it was never moved
	Last       lastPrinted
	Came       string // how many came, once it has begun or somebody did; empty: neither
	CameURL    string
}

// lastPrinted is what stands on the paper that is about.
type lastPrinted struct {
	Text  string // its version, and whether it is still so; empty: nothing was printed yet
	URL   string
	Old   bool     // the list is another now
	Lines []string // what changed since
}

// seatZone is a part of a room's plan.
type seatZone struct {
	Name  string
	Seats []plannedSeat
}

// The states of a seat, as the page draws them.
const (
	seatFree    = "free"
	seatTaken   = "taken"
	seatBlocked = "blocked"
)

// plannedSeat is one seat of the plan.
type plannedSeat struct {
	venue.Seat
	State string
	Who   string // family and given name; empty: nobody
	URL   string // where the person stands on the page
	Says  string // what it is, for whoever does not see it
	Row   string // of the plan, as its label says: A of A-12; empty: its labels have no rows
	First bool   // of its row
}

// attendee is one person of the list.
type attendee struct {
	convocation.Attendee
	Anchor string
	Name   string
	News   stateWord
}

// paper is what is printed: the address that is posted to, the words of its button, and the form of the file.
type paper struct{ URL, Text, Kind string }

// stateWord is how far the news of a seat is, in a word and a sign.
type stateWord struct{ Kind, Text string }

// sitting shows one sitting.
func (s *site) sitting(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	order := r.URL.Query().Get("order")
	if order == "" {
		order = bySeat
	}
	if order != bySeat && order != bySurname {
		fail(w, r, problem.NotFound("people_order_unknown", problem.Facts{"order": shortened(order)}))
		return
	}
	attendance, err := convocation.Attend(ctx, s.db, actor, named(r, "slug"), named(r, "ref"))
	if err != nil {
		fail(w, r, err)
		return
	}
	page := sittingPageOf(chrome(w, r), attendance, order)
	if account.May(actor, account.Print) {
		page.Downloads = papersOf(page.Chrome, attendance)
		page.ByHand = byHandOf(page.Chrome, attendance)
	}
	last, err := doorlist.ReadLast(ctx, s.db, actor, attendance.Campaign, attendance.Reference, doorlist.List)
	if err != nil {
		fail(w, r, err)
		return
	}
	page.Last = lastPrintedOf(page.Chrome, attendance, last)
	if page.Paused, err = s.pauses(ctx, page.Chrome, attendance.HomeZone); err != nil {
		fail(w, r, err)
		return
	}
	came, err := checkin.Read(ctx, s.db, actor, checkin.Of{Campaign: attendance.Campaign}, attendance.Reference)
	if err != nil {
		fail(w, r, err)
		return
	}
	if came.Begun || came.Scanned {
		page.Came, page.CameURL = cameSaid(page.Chrome, came), sittingURL(attendance.Campaign, attendance.Reference)+"/presence"
	}
	show(w, r, http.StatusOK, page)
}

func sittingPageOf(c Chrome, a convocation.Attendance, order string) sittingPage {
	begins := i18n.In(a.Begins())
	page := sittingPage{
		Chrome: c, Attendance: a, When: capitalised(c.Voice.Date(begins)), Hours: hours(c.Voice, a.Timetabled), Zone: begins.Location().String(),
		Mark: markOf(a.Timetabled, a.Now), Bar: barOf(a.Timetabled), Order: order,
	}
	page.Title = a.Room + " · " + a.Centre
	at := sittingURL(a.Campaign, a.Reference)
	page.SeatURL, page.SurnameURL = at+"#people", at+"?order="+bySurname+"#people"
	if a.OnBound() {
		page.OnBound = "usher sitting capacity --campaign " + i18n.ShellWord(a.Campaign) + " " + i18n.ShellWord(a.Reference) + " " + c.Say("console_bound_number", nil)
	}
	page.Moved = movedFrom(c, a)
	page.People = attendees(c, a.People)
	page.Zones, page.Legend = planOf(c, a, page.People)
	for _, one := range page.People {
		if one.SeatNumber == 0 {
			page.AtDoor++
		}
	}
	if order == bySurname {
		slices.SortFunc(page.People, func(a, b attendee) int { return a.ByName - b.ByName })
	}
	return page
}

// movedFrom says where and when a sitting was before its last move.
func movedFrom(c Chrome, a convocation.Attendance) string {
	if a.Moved == nil {
		return ""
	}
	before := a.Moved.Before
	return c.Say("console_moved", map[string]any{
		"at": i18n.Instant{At: a.Moved.At, Zone: a.HomeZone}, "room": before.Room, "centre": before.Centre,
		"starts_at": before.StartsAt, "ends_at": c.Voice.Until(before.StartsAt, before.EndsAt),
	})
}

// mostLines is how many lines a page says of what changed since a list was printed; the next version says the rest.
const mostLines = 5

func lastPrintedOf(c Chrome, a convocation.Attendance, last doorlist.Last) lastPrinted {
	if last.Version == 0 {
		return lastPrinted{}
	}
	sentence := "console_last_printed"
	if last.Changed {
		sentence = "console_last_printed_old"
	}
	said := lastPrinted{
		Text: c.Say(sentence, map[string]any{"version": last.Version, "printed_at": i18n.Instant{At: last.PrintedAt, Zone: a.Zone}}),
		URL:  sittingURL(a.Campaign, a.Reference) + "/" + lastPaper, Old: last.Changed,
	}
	if last.News != nil {
		said.Lines = last.News.Lines(c.Voice, last.Now)[1:] // the first names the version
		said.Lines = said.Lines[:min(len(said.Lines), mostLines)]
	}
	return said
}

func attendees(c Chrome, people []convocation.Attendee) []attendee {
	listed := make([]attendee, len(people))
	for i, one := range people {
		listed[i] = attendee{
			Attendee: one, Anchor: "p-" + one.Reference, Name: admission.FullName(one.FamilyName, one.GivenName),
			News: stateWord{string(one.Told), c.Say("console_told_"+string(one.Told), nil)},
		}
	}
	return listed
}

// planOf draws the seats zone by zone, in the order in which their first seats stand.
func planOf(c Chrome, a convocation.Attendance, people []attendee) (zones []seatZone, legend []string) {
	at := make(map[int]attendee, len(people))
	for _, one := range people {
		at[one.SeatNumber] = one
	}
	nth := map[string]int{}
	has := map[string]bool{}
	for _, seat := range a.Seats {
		drawn := drawnSeat(c, seat, at)
		n, known := nth[seat.Zone]
		if !known {
			n = len(zones)
			nth[seat.Zone] = n
			zones = append(zones, seatZone{Name: seat.Zone})
		}
		if before := zones[n].Seats; a.Planned && drawn.Row != "" {
			drawn.First = len(before) > 0 && before[len(before)-1].Row != drawn.Row
		}
		zones[n].Seats = append(zones[n].Seats, drawn)
		has[drawn.State] = true
		if seat.Accessible {
			has["accessible"] = true
		}
	}
	if len(has) == 1 {
		return zones, nil // all seats alike need no legend
	}
	for _, state := range []string{seatTaken, seatFree, seatBlocked, "accessible"} {
		if has[state] {
			legend = append(legend, state)
		}
	}
	return zones, legend
}

func drawnSeat(c Chrome, seat venue.Seat, at map[int]attendee) plannedSeat {
	drawn := plannedSeat{Seat: seat, State: seatFree, Row: strings.TrimRight(seat.Label, "0123456789-. ")}
	if who, taken := at[seat.Number]; taken {
		drawn.State, drawn.Who, drawn.URL = seatTaken, who.Name, "#"+who.Anchor
		if who.SeatLabel != "" { // what was told stands, whatever the plan says by now
			drawn.Label = who.SeatLabel
		}
	} else if seat.Blocked {
		drawn.State = seatBlocked
	}
	drawn.Says = c.Say("console_seat_"+drawn.State, nil)
	if seat.Accessible {
		drawn.Says += ", " + c.Say("console_seat_accessible", nil)
	}
	return drawn
}

// sittingURL is the page of a sitting; its reference is written by people.
func sittingURL(slug, reference string) string {
	return calendarURL(slug) + "/sittings/" + url.PathEscape(reference)
}

// seatText is a seat as it is printed, or that it is given at the door.
func seatText(c Chrome, label string) string {
	if label == "" {
		return c.Say("console_at_door", nil)
	}
	return label
}

// signOf is the drawing for how far the news of a seat is.
func signOf(told string) string {
	switch convocation.Told(told) {
	case convocation.ToldAlready, convocation.ToldHalf:
		return "done"
	case convocation.ToldWaits, convocation.ToldSoon, convocation.ToldWritten:
		return "running"
	case convocation.ToldUnreachable:
		return "not_reachable"
	case convocation.ToldFailed:
		return "failed"
	case convocation.ToldNothing:
	}
	return "not_called"
}
