package letter

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/domain/notice"
)

// attachable reads the tickets of the reservations that notices of one kind and channel speak of, where something of them goes with
// the message.
func attachable(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due, now time.Time) (map[int64]Tickets, error) {
	switch due[0].Kind {
	case notice.KindReservationConfirmed, notice.KindTicketsCancelled, notice.KindEventCancelled:
	default: // of money alone
		return nil, nil
	}
	if due[0].Channel == notice.ChannelSMS {
		return nil, nil
	}
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.SubjectID
	}
	return ReadTickets(ctx, tx, organisationID, ids, now)
}

// attach makes the files of an e-mail: with the confirmation every ticket and its sittings for the calendar; when tickets ended, their
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
	case s.due.Kind == notice.KindReservationConfirmed:
		return told.attach
	}
	return func() ([]mail.Attachment, error) {
		calendar, err := told.calendar()
		return []mail.Attachment{calendar}, err
	}
}

// bring says what to bring: the tickets that are attached, with what is to be written on them by hand.
func (s story) bring(said map[string]any) []string {
	if texts := s.papers.Good().ByHand(); len(texts) > 0 {
		return []string{s.voice.Say("buyer_bring", said), s.voice.Say("ticket_mail_by_hand", map[string]any{"texts": texts})}
	}
	return []string{s.voice.Say("buyer_bring", said)}
}

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
