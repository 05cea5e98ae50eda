package letter

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the statement
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/mail"
	"usher/internal/domain/account"
)

// TicketPaper is a ticket as whoever goes in holds it: one page, with the code that a door reads.
type TicketPaper struct {
	OrganisationID int64
	ReservationID  int64
	Number         int // of the line
	ClaimID        int64
	SittingID      int64
	Reference      string // of the reservation
	Buyer          string
	Attendee       string // who goes in; empty: nobody was named
	AttendeeEmail  string
	Link           string // of whoever it is for: names it under TicketPath, and cannot be guessed; empty: they have none
	Transfers      int    // how often that changed
	Locale         string
	Organisation   string
	Contact        string // e-mail address to which the organisation's people turn; empty: none
	Installation   string // tells the entries of calendars from those of other installations
	Event          string
	Kind           string
	PriceMinor     int64
	Currency       string
	Sitting        string // reference
	Centre         string
	Room           string
	Zone           string // of the centre: IANA name
	StartsAt       time.Time
	EndsAt         time.Time
	Revision       int    // of the sitting
	Part           string // of the room: a zone of its plan; empty: none
	Row            string // empty: none
	Seat           string // label
	Ended          bool   // it was given back, or came to an end otherwise: there is no paper of it
	EndReason      string // that the line keeps; empty: it stands, or its reservation ended
	Code           string `db:"-"` // signed: what the QR code holds

	// Logo is drawn on all papers of the organisation that are drawn together; the first one of a reading carries it.
	Logo []byte `db:"-"`
	// IssuedAt is set by whoever tells or prints.
	IssuedAt time.Time `db:"-"`
}

// TicketPath is where whoever a ticket is for finds it, under the public address: its link follows.
const TicketPath = "/t/"

// Name is whose ticket it is: of whoever goes in, else of the buyer.
func (t TicketPaper) Name() string { return cmp.Or(t.Attendee, t.Buyer) }

// Short is the short code of the ticket: 0000-2M9X.
func (t TicketPaper) Short() string { return shortOf(t.ClaimID) }

// Begins is the start in the centre's zone.
func (t TicketPaper) Begins() i18n.Instant { return i18n.Instant{At: t.StartsAt, Zone: t.Zone} }

// Ends is the end in the centre's zone.
func (t TicketPaper) Ends() i18n.Instant { return i18n.Instant{At: t.EndsAt, Zone: t.Zone} }

// ByHand are the texts of who sits where that the typefaces cannot show: the paper leaves a line for them, as that of a letter does.
func (t TicketPaper) ByHand() []string {
	var texts []string
	for _, text := range []string{t.Name(), t.Centre, t.Room, t.Part, t.Row, t.Seat} {
		if Gaps(text) != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// drawable is the ticket as it can be drawn: a gap shows where the names that the organiser gives have letters that the typefaces lack.
func (t TicketPaper) drawable() (drawn TicketPaper, gaps bool) {
	drawn = t
	for _, text := range []*string{&drawn.Organisation, &drawn.Event, &drawn.Kind, &drawn.Contact} {
		whole := doc.Instead(*text, Gap)
		gaps, *text = gaps || whole != *text, whole
	}
	return drawn, gaps
}

// Tickets are those of one reservation, in the order of sittings and seats, with those that ended.
type Tickets []TicketPaper

// Good are those that let somebody in.
func (t Tickets) Good() Tickets {
	return slices.DeleteFunc(slices.Clone(t), func(one TicketPaper) bool { return one.Ended })
}

// transfers is how often names on them changed.
func (t Tickets) transfers() (n int) {
	for _, one := range t {
		n += one.Transfers
	}
	return n
}

// ByHand are the texts that the papers leave a line for, each once.
func (t Tickets) ByHand() (texts []string) {
	for _, one := range t {
		for _, text := range one.ByHand() {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

//go:embed ticket_papers.sql
var readTicketPapersSQL string

// ReadTickets reads the tickets of reservations that were paid, by reservation: of one that was not, there are none. In a transaction
// that may write it makes the organisation's key when there is none yet; one that only reads needs Prepare before it.
func ReadTickets(ctx context.Context, tx pgx.Tx, organisationID int64, reservationIDs []int64, at time.Time) (map[int64]Tickets, error) {
	once := slices.Compact(slices.Sorted(slices.Values(reservationIDs))) // several notices may be about one
	papers, err := all[TicketPaper](ctx, tx, readTicketPapersSQL, organisationID, once)
	if err != nil {
		return nil, fmt.Errorf("read the tickets: %w", err)
	}
	logo, err := account.Logo(ctx, tx, organisationID)
	if err != nil {
		return nil, err
	}
	var claims []int64
	for _, paper := range papers {
		claims = append(claims, paper.ClaimID)
	}
	codes, err := SealTickets(ctx, tx, organisationID, claims)
	if err != nil {
		return nil, err
	}
	of := make(map[int64]Tickets, len(once))
	for i, paper := range papers {
		paper.StartsAt, paper.EndsAt, paper.Code, paper.IssuedAt = paper.StartsAt.UTC(), paper.EndsAt.UTC(), codes[i], at.UTC()
		paper.Logo = logo // the same bytes, not a copy
		of[paper.ReservationID] = append(of[paper.ReservationID], paper)
	}
	return of, nil
}

// TicketsName is how the files of a reservation's tickets are called, without their ending.
func TicketsName(reference string) string {
	return strings.TrimSuffix("tickets-"+doc.FileName(plain(reference)), "-")
}

// entries are the tickets in a calendar: one entry for each sitting of the reservation, the same whatever becomes of it. Its number
// rises with all that changes it, none of which is ever undone: the sitting is announced anew, a ticket ends or changes its name.
func (t Tickets) entries() (entries []doc.Event) {
	for rest := t; len(rest) > 0; {
		sitting := rest[0].SittingID
		end := slices.IndexFunc(rest, func(one TicketPaper) bool { return one.SittingID != sitting })
		if end < 0 {
			end = len(rest)
		}
		entries, rest = append(entries, rest[:end].entry()), rest[end:]
	}
	return entries
}

// entry is that of tickets for one sitting.
func (t Tickets) entry() doc.Event {
	first, good, voice := t[0], t.Good(), i18n.Speak(t[0].Locale)
	sequence := first.Revision - 1 + len(t) - len(good) + t.transfers()
	shown := good
	if len(good) == 0 {
		shown = t
	}
	seats := make([]string, len(shown))
	for i, one := range shown {
		seats[i] = one.Seat
	}
	begins := i18n.In(first.Begins())
	row := func(label, value string) string {
		return voice.Say("letter_row", map[string]any{"label": voice.Say(label, nil), "value": value})
	}
	lines := []string{
		row("letter_date", voice.Date(begins)),
		row("letter_hour", voice.Say("buyer_begins", map[string]any{"hour": i18n.Clock(begins), "zone": zoneName(begins)})),
		row("buyer_place", first.Room+", "+first.Centre), row("buyer_seats", strings.Join(seats, ", ")),
	}
	if reference := t.reference(); reference != "" {
		lines = append(lines, row("buyer_reference", reference))
	}
	if len(good) > 0 {
		lines = append(lines, "", voice.Say("ticket_bring_each", nil))
	}
	return doc.Event{
		UID:      fmt.Sprintf("tickets-%d-%d@%s.usher", first.ReservationID, first.SittingID, first.Installation),
		Sequence: sequence, Cancelled: len(good) == 0, At: first.IssuedAt, StartsAt: first.StartsAt, EndsAt: first.EndsAt, Remind: remindBefore,
		Lang: voice.Lang(), Organiser: first.Organisation, Address: first.Contact, Summary: first.Event,
		Location: first.Room + ", " + first.Centre, Description: strings.Join(lines, "\n"),
	}
}

// reference is that of the reservation, for its buyer: whoever knows it has the whole of it in hand. Empty: these are all somebody
// else's.
func (t Tickets) reference() string {
	for _, one := range t {
		if one.Attendee == "" || one.Attendee == one.Buyer {
			return one.Reference
		}
	}
	return ""
}

// WriteCalendar writes the tickets of one reservation as entries of a calendar; sittings of which every ticket ended are cancelled.
func (t Tickets) WriteCalendar(w io.Writer) error { return doc.Calendar(w, t.entries()...) }

// calendar is the calendar as a file of an e-mail.
func (t Tickets) calendar() (mail.Attachment, error) {
	return calendarFile(TicketsName(t[0].Reference), t.entries()...)
}

func calendarFile(name string, entries ...doc.Event) (mail.Attachment, error) {
	var written bytes.Buffer
	if err := doc.Calendar(&written, entries...); err != nil {
		return mail.Attachment{}, err
	}
	kind := "text/calendar; charset=utf-8"
	if method := doc.Method(entries...); method != "" { // what is sent around it must name the same (RFC 6047)
		kind += "; method=" + method
	}
	return mail.Attachment{Name: name + ".ics", ContentType: kind, Body: written.Bytes()}, nil
}

// attach makes the files that go with the e-mail of a confirmation: every ticket, and the sittings for the calendar.
func (t Tickets) attach() (files []mail.Attachment, err error) {
	if good := t.Good(); len(good) > 0 {
		var paper bytes.Buffer
		if err := good.WritePDF(&paper); err != nil {
			return nil, err
		}
		files = append(files, mail.Attachment{Name: TicketsName(t[0].Reference) + ".pdf", ContentType: "application/pdf", Body: paper.Bytes()})
	}
	calendar, err := t.calendar()
	return append(files, calendar), err
}

// ofSittings are the tickets of these sittings.
func (t Tickets) ofSittings(ids map[int64]bool) Tickets {
	return slices.DeleteFunc(slices.Clone(t), func(one TicketPaper) bool { return !ids[one.SittingID] })
}
