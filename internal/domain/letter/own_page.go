package letter

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/domain/notice"
)

// OwnSeat is a seat as its candidate reads of it on their own page: what an e-mail says, in the language of the page.
type OwnSeat struct {
	Letter
	Date, Hours string   // of the centre, the hours with its zone
	SeatSaid    string   // the label, or that it is given at the door
	Changed     []string // what is not as the candidate was told before the last change
	Bring       []string // what to do and to bring
	Adds        []string // the school's own instructions

	matter matter // in the language of its letter, in which files are written
}

//go:embed own_page.sql
var readOwnSeats string

// OwnSeats reads the seats of one candidate as their page shows them, in the order asked. The files that are made of them are those that an
// e-mail of this moment would take along. The organisation's key must be there: see Prepare.
func OwnSeats(ctx context.Context, tx pgx.Tx, organisationID, candidateID int64, claimIDs []int64, voice i18n.Voice) ([]OwnSeat, error) {
	if len(claimIDs) == 0 {
		return nil, nil
	}
	letters, err := Read(ctx, tx, organisationID, claimIDs)
	if err != nil {
		return nil, err
	}
	type written struct {
		SubjectID, CandidateID, Newest, Change int64
		WrittenAt                              time.Time
		Earlier                                int
	}
	last, err := all[written](ctx, tx, readOwnSeats, organisationID, claimIDs, candidateID)
	if err == nil && len(last) != len(letters) {
		err = fmt.Errorf("%d of %d are there", len(last), len(letters))
	}
	if err != nil {
		return nil, fmt.Errorf("read what was written of the seats: %w", err)
	}
	matters := make([]matter, len(letters))
	for i, w := range last {
		letters[i].IssuedAt = w.WrittenAt.UTC()
		matters[i] = matter{letter: letters[i], voice: voice, due: notice.Due{
			ID: w.Newest, Kind: notice.KindConvocation, SubjectID: w.SubjectID, CandidateID: w.CandidateID, Revision: letters[i].Revision,
			WrittenAt: w.WrittenAt, Earlier: w.Earlier, Channel: notice.ChannelEmail,
		}}
		if w.Change != 0 {
			matters[i].due.Kind, matters[i].due.ID = notice.KindChange, w.Change
		}
	}
	if err := addSaid(ctx, tx, organisationID, matters); err != nil {
		return nil, err
	}
	seats := make([]OwnSeat, len(matters))
	for i, m := range matters {
		seats[i] = m.own()
	}
	return seats, nil
}

func (m matter) own() OwnSeat {
	l, say := m.letter, func(id string) string { return m.voice.Say(id, nil) }
	own := OwnSeat{Letter: l, Date: capital(m.voice.Date(i18n.In(l.Begins()))), Hours: m.hours(), SeatSaid: m.seat()}
	for _, c := range m.differences(m.told.known.facts) {
		own.Changed = append(own.Changed, m.voice.Say("letter_was", map[string]any{"label": c.Label, "before": c.Before, "now": c.Now}))
	}
	own.Bring = []string{say("own_bring_page"), say("letter_bring_identity"), say("letter_bring_early")}
	if l.NeedsAccessible {
		own.Bring = append(own.Bring, say("letter_accessible"))
	}
	if l.Instructions != "" {
		own.Adds = strings.Split(l.Instructions, "\n")
	}
	own.matter = m
	own.matter.voice, own.matter.due.Kind = i18n.Speak(l.Locale), notice.KindConvocation
	return own
}

// WriteOwnLetters draws the letters of seats, one page each.
func WriteOwnLetters(w io.Writer, seats []OwnSeat) error {
	letters := make([]Letter, len(seats))
	for i, seat := range seats {
		letters[i] = seat.Letter
	}
	return WritePDF(w, letters...)
}

// WriteOwnCalendar writes seats as entries of a calendar: those that e-mails brought are replaced by them, and not doubled.
func WriteOwnCalendar(w io.Writer, seats []OwnSeat) error {
	entries := make([]doc.Event, len(seats))
	for i, seat := range seats {
		entries[i] = seat.matter.entry()
	}
	return doc.Calendar(w, entries...)
}
