package letter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// attachable reads the tickets of the reservations that notices of one kind and channel speak of, where something of them goes with
// the message.
func attachable(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due, now time.Time) (map[int64]Tickets, error) {
	switch due[0].Kind {
	case notice.KindTicketsRenamed: // which is worded by them, too
	case notice.KindReservationConfirmed, notice.KindTicketsMoved, notice.KindTicketsCancelled, notice.KindEventCancelled:
		if due[0].Channel == notice.ChannelSMS {
			return nil, nil
		}
	default: // of money alone
		return nil, nil
	}
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.SubjectID
	}
	return ReadTickets(ctx, tx, organisationID, ids, now)
}

// hasPapers tells whether it says what somebody's good tickets are, which go along with it: not of money, and not of tickets that ended.
func (s story) hasPapers() bool {
	switch s.what {
	case "confirmed", "renamed", "moved", "reminder":
		return true
	}
	return false
}

// attach makes the files of an e-mail: where it has papers, every ticket and its sittings for the calendar; when tickets ended, their
// sittings as they are now. Nil: there are none.
func (s story) attach() func() ([]mail.Attachment, error) {
	of := map[int64]bool{}
	for _, t := range s.tickets {
		of[t.SittingID] = true
	}
	told := s.papers.ofSittings(of)
	switch {
	case len(told) == 0:
		return nil
	case s.hasPapers():
		return told.attach
	}
	return func() ([]mail.Attachment, error) {
		calendar, err := told.calendar()
		return []mail.Attachment{calendar}, err
	}
}

// names are whose each ticket is, seat by seat, where names changed.
func (s story) names() (names []fact) {
	if s.due.Kind != notice.KindTicketsRenamed {
		return nil
	}
	for _, one := range s.papers.Good() {
		names = append(names, fact{s.voice.Say("ticket_name_of", map[string]any{"seat": one.Seat}), one.Name()})
	}
	return names
}

// bring says what to bring: the tickets that are attached, with what is to be written on them by hand.
func (s story) bring(said map[string]any) []string {
	if texts := s.papers.Good().ByHand(); len(texts) > 0 {
		return []string{s.voice.Say("buyer_bring", said), s.voice.Say("ticket_mail_by_hand", map[string]any{"texts": texts})}
	}
	return []string{s.voice.Say("buyer_bring", said)}
}

// composeAttendees words notices to those whom tickets are for: each has their own, and nothing else of the reservation.
func composeAttendees(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		papers, now, err := ticketsOfClaims(ctx, tx, organisationID, due)
		if err != nil {
			return nil, err
		}
		messages := make([]notice.Message, len(due))
		for i, d := range due {
			one, there := papers[d.SubjectID]
			switch {
			case !there || one.Ended || one.AttendeeEmail == "" || one.counted(d.Kind) != d.Revision: // it has another name or place since
				messages[i].Verdict = notice.VerdictWithdrawn
			case !one.EndsAt.After(now):
				messages[i].Verdict = notice.VerdictTooLate
			default:
				if messages[i], err = one.message(d.Kind, public); err != nil {
					return nil, err
				}
			}
		}
		return messages, nil
	}
}

// counted is what tells one notice of a kind from the next.
func (t TicketPaper) counted(kind notice.Kind) int {
	if kind == notice.KindTicketMoved {
		return t.Revision
	}
	return t.Transfers
}

// ticketsOfClaims reads the tickets that notices speak of by their claims, and the time.
func ticketsOfClaims(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) (papers map[int64]TicketPaper, now time.Time, err error) {
	claims := make([]int64, len(due))
	for i, d := range due {
		claims[i] = d.SubjectID
	}
	rows, err := tx.Query(ctx, `
select distinct k.reservation_id from unnest($2::bigint[]) w(id)
 cross join lateral (select reservation_id from claim where organisation_id = $1 and id = w.id offset 0) k`, organisationID, claims)
	if err != nil {
		return nil, now, fmt.Errorf("read whose tickets to tell of: %w", err)
	}
	reservations, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, now, fmt.Errorf("read whose tickets to tell of: %w", err)
	}
	if now, err = pg.Now(ctx, tx); err != nil {
		return nil, now, err
	}
	of, err := ReadTickets(ctx, tx, organisationID, reservations, now)
	if err != nil {
		return nil, now, err
	}
	papers = map[int64]TicketPaper{}
	for _, tickets := range of {
		for _, one := range tickets {
			papers[one.ClaimID] = one
		}
	}
	return papers, now, nil
}

// message is what whoever a ticket is for is told of it.
func (t TicketPaper) message(kind notice.Kind, public string) (notice.Message, error) {
	voice, said := i18n.Speak(t.Locale), t.said()
	b := t.body("ticket_mail_subject", "ticket_mail_lead")
	if kind == notice.KindTicketMoved {
		b = t.body("ticket_moved_subject", "ticket_moved_lead")
	}
	b.ToDo = []string{voice.Say("ticket_mail_bring", said)}
	if public != "" && t.Link != "" {
		b.ToDo = append(b.ToDo, voice.Say("ticket_mail_link", map[string]any{"link": public + TicketPath + t.Link}))
	}
	if texts := t.ByHand(); len(texts) > 0 {
		b.ToDo = append(b.ToDo, voice.Say("ticket_mail_by_hand", map[string]any{"texts": texts}))
	}
	return t.mail(b, t.AttendeeEmail, t.attachAlone)
}

// said is what sentences to whoever a ticket is for say of it.
func (t TicketPaper) said() map[string]any {
	begins := i18n.In(t.Begins())
	return map[string]any{"event": t.Event, "date": i18n.Speak(t.Locale).Date(begins), "hour": i18n.Clock(begins), "buyer": t.Buyer}
}

// body is what each message to whoever a ticket is for has: which ticket it is.
func (t TicketPaper) body(title, lead string) body {
	voice, begins, said := i18n.Speak(t.Locale), i18n.In(t.Begins()), t.said()
	say := func(id string) string { return voice.Say(id, nil) }
	b := body{
		Lang: voice.Lang(), From: t.Organisation, Title: voice.Say(title, said), Hello: voice.Say("letter_mail_hello", map[string]any{"name": t.Name()}),
		Lead: voice.Say(lead, said),
		Facts: []fact{
			{say("buyer_event"), t.Event},
			{say("letter_date"), voice.Date(begins)},
			{say("letter_hour"), voice.Say("buyer_begins", map[string]any{"hour": i18n.Clock(begins), "zone": zoneName(begins)})},
			{say("buyer_place"), t.Room + ", " + t.Centre},
			{say("letter_seat"), strings.TrimPrefix(t.Part+", "+t.Seat, ", ")},
		},
	}
	if t.Contact != "" {
		b.Contact = voice.Say("letter_contact", map[string]any{"contact": t.Contact})
	}
	return b
}

func (t TicketPaper) mail(b body, address string, attach func() ([]mail.Attachment, error)) (notice.Message, error) {
	page, err := b.html()
	if err != nil {
		return notice.Message{}, err
	}
	return notice.Message{
		Verdict: notice.VerdictSend, Email: address, Name: t.Name(), Sender: t.Organisation, ReplyTo: t.Contact,
		Subject: b.Title, Text: b.text(i18n.Speak(t.Locale)), HTML: page, Attach: attach,
	}, nil
}

// attachAlone makes the files that go to whoever a ticket is for.
func (t TicketPaper) attachAlone() ([]mail.Attachment, error) {
	own := Tickets{t}
	var paper bytes.Buffer
	if err := own.WritePDF(&paper); err != nil {
		return nil, err
	}
	name := TicketsName(t.Short())
	calendar, err := calendarFile(name, t.entry())
	return []mail.Attachment{{Name: name + ".pdf", ContentType: "application/pdf", Body: paper.Bytes()}, calendar}, err
}

// entry is the ticket in the calendar of whoever it is for: their own, since the buyer's is another.
func (t TicketPaper) entry() doc.Event {
	entry := Tickets{t}.entry()
	entry.UID = fmt.Sprintf("ticket-%d-%d-%d@%s.usher", t.ReservationID, t.SittingID, t.Number, t.Installation)
	return entry
}

// WriteCalendar writes the ticket as an entry of a calendar; one that ended is cancelled.
func (t TicketPaper) WriteCalendar(w io.Writer) error { return doc.Calendar(w, t.entry()) }

// Bounds of the seats in a short message.
const (
	mostSeatsListed = 4
	mostSeatLetters = 60
)

// seatsInShort lists seats in a short message. Few are named one by one; of many the runs, A-1…A-7 (7); and where those are too many,
// the first of them, with how many there are.
func seatsInShort(seats []string) string {
	if plain := strings.Join(seats, ", "); len(seats) <= mostSeatsListed && utf8.RuneCountInString(plain) <= mostSeatLetters {
		return plain
	}
	var runs []string
	for rest := seats; len(rest) > 0; {
		n := runOf(rest)
		run := rest[0]
		switch {
		case n > 2:
			run += "…" + rest[n-1]
		default:
			n = 1
		}
		runs, rest = append(runs, run), rest[n:]
	}
	short := ""
	for i, run := range runs {
		longer := strings.TrimPrefix(short+", "+run, ", ")
		if i > 0 && utf8.RuneCountInString(longer) > mostSeatLetters {
			short += "…"
			break
		}
		short = longer
	}
	if runes := []rune(short); len(runes) > mostSeatLetters+1 { // one label alone may be as long
		short = string(runes[:mostSeatLetters]) + "…"
	}
	return fmt.Sprintf("%s (%d)", short, len(seats))
}

// runOf is how many seats follow each other from the first on: the same letters, and numbers that rise by one.
func runOf(seats []string) int {
	row, number, ok := splitSeat(seats[0])
	if !ok {
		return 1
	}
	for i, seat := range seats[1:] {
		r, n, ok := splitSeat(seat)
		if !ok || r != row || n != number+i+1 {
			return i + 1
		}
	}
	return len(seats)
}

// splitSeat parts a label into what stands before its number and the number.
func splitSeat(label string) (row string, number int, ok bool) {
	row = strings.TrimRight(label, "0123456789")
	number, err := strconv.Atoi(label[len(row):])
	return row, number, err == nil
}
