package letter

import (
	"context"
	_ "embed" // the statements
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// Definitions say how notices are told. A release goes out by SMS as well, though that costs: whoever is not told travels for nothing.
// Organisers are told by e-mail. Public is the address under which people reach the pages, which stands in links; empty: none does.
func Definitions(public string) map[notice.Kind]notice.Definition {
	both := []notice.Channel{notice.ChannelEmail, notice.ChannelSMS}
	definitions := map[notice.Kind]notice.Definition{}
	for _, kind := range []notice.Kind{notice.KindConvocation, notice.KindChange, notice.KindRelease} {
		definitions[kind] = notice.Definition{Channels: both, Compose: composeSeats(public)}
	}
	for _, kind := range []notice.Kind{
		notice.KindReservationConfirmed, notice.KindRefundDue, notice.KindReservationLapsed, notice.KindTicketsCancelled, notice.KindEventCancelled,
		notice.KindTicketsRenamed, notice.KindTicketsMoved, notice.KindPlacesOffered, notice.KindOfferMissed,
	} {
		definitions[kind] = notice.Definition{Channels: both, Compose: composeOrders(public)}
	}
	for _, kind := range []notice.Kind{notice.KindTicketNamed, notice.KindTicketMoved} {
		definitions[kind] = notice.Definition{Channels: []notice.Channel{notice.ChannelEmail}, Compose: composeAttendees(public)}
	}
	for _, kind := range []notice.Kind{notice.KindTicketPassedOn, notice.KindTicketEnded} {
		definitions[kind] = notice.Definition{Channels: []notice.Channel{notice.ChannelEmail}, Compose: composeFormer}
	}
	for _, kind := range []notice.Kind{notice.KindWaitingJoined, notice.KindWaitingOver} {
		definitions[kind] = notice.Definition{Channels: []notice.Channel{notice.ChannelEmail}, Compose: composeWaiting(public)}
	}
	definitions[notice.KindReminder] = notice.Definition{Channels: both, Compose: composeReminders(public)}
	definitions[notice.KindOrganiserMoney] = notice.Definition{Channels: []notice.Channel{notice.ChannelEmail}, Compose: composeOrganiser}
	definitions[notice.KindSeal] = notice.Definition{Channels: []notice.Channel{notice.ChannelEmail}, Compose: composeSeals}
	return definitions
}

// matter is a notice with everything that decides whether and how it is told.
type matter struct {
	due    notice.Due
	letter Letter
	told   told
	voice  i18n.Voice
	link   string // to the candidate's own page; empty: none is known
}

// told is what is known of a notice beside the letter.
type told struct {
	Superseded bool // a later notice of the same claim says more on the channel
	Seated     bool // the candidate has a seat for the exam now

	known said // to the person of a change, by whichever channel
	heard said // by the channel of this notice
}

// said is what somebody was last told of the exam before a change.
type said struct {
	facts *facts // nil: nothing, or it is not known
	words string // of the e-mail, as it was sent
}

// facts are those that the timeline keeps of a seat, as convocation writes them.
type facts struct {
	Seat     string        `json:"seat"`
	Centre   string        `json:"centre"`
	Room     string        `json:"room"`
	StartsAt i18n.Instant  `json:"starts_at"`
	EndsAt   *i18n.Instant `json:"ends_at"` // nil: it was not kept
}

// composeSeats reads the state again and words what is still true and still to come. Public is the address under which people reach the
// pages; empty: they do not.
func composeSeats(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		matters, err := readMatters(ctx, tx, organisationID, due)
		if err != nil {
			return nil, err
		}
		if public != "" {
			for i := range matters {
				matters[i].link = public + CandidatePath + matters[i].letter.Link
			}
		}
		return compose(ctx, tx, matters)
	}
}

func compose(ctx context.Context, tx pgx.Tx, matters []matter) ([]notice.Message, error) {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return nil, err
	}
	messages := make([]notice.Message, len(matters))
	var printed []Letter
	for i, m := range matters {
		messages[i].Verdict = m.verdict(now)
		if messages[i].Verdict == notice.VerdictSend && m.due.Kind != notice.KindRelease {
			printed = append(printed, m.letter)
		}
	}
	papers := drawTogether(printed)
	for i, m := range matters {
		if messages[i].Verdict == notice.VerdictSend {
			if messages[i], err = m.message(papers); err != nil {
				return nil, err
			}
		}
	}
	return messages, nil
}

//go:embed told.sql
var readTold string

//go:embed before.sql
var readBefore string

func readMatters(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]matter, error) {
	n := len(due)
	notices, claims, candidates, exams, channels := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n)
	for i, d := range due {
		notices[i], claims[i], candidates[i], channels[i] = d.ID, d.SubjectID, d.CandidateID, string(d.Channel)
	}
	letters, err := Read(ctx, tx, organisationID, claims)
	if err != nil {
		return nil, err
	}
	for i, l := range letters {
		exams[i] = l.ExamID
	}
	rows, err := tx.Query(ctx, readTold, organisationID, notices, claims, candidates, exams, channels)
	if err != nil {
		return nil, fmt.Errorf("read what is told after: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[told])
	if err != nil {
		return nil, fmt.Errorf("read what is told after: %w", err)
	}
	matters := make([]matter, n)
	for i, d := range due {
		letters[i].IssuedAt = d.WrittenAt.UTC()
		if i > 0 {
			letters[i].Logo = letters[0].Logo // the same bytes, not a copy
		}
		matters[i] = matter{due: d, letter: letters[i], told: all[i], voice: i18n.Speak(letters[i].Locale)}
	}
	return matters, addSaid(ctx, tx, organisationID, matters)
}

// addSaid adds to changes what their people were told before.
func addSaid(ctx context.Context, tx pgx.Tx, organisationID int64, matters []matter) error {
	var changes []*matter
	var notices, candidates, exams []int64
	var channels []string
	for i := range matters {
		if m := &matters[i]; m.due.Kind == notice.KindChange {
			changes = append(changes, m)
			notices, candidates = append(notices, m.due.ID), append(candidates, m.due.CandidateID)
			exams, channels = append(exams, m.letter.ExamID), append(channels, string(m.due.Channel))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, readBefore, organisationID, notices, candidates, exams, channels)
	if err != nil {
		return fmt.Errorf("read what was told before: %w", err)
	}
	var kept json.RawMessage
	var one said
	row := 0
	_, err = pgx.ForEachRow(rows, []any{&kept, &one.words}, func() error {
		one.facts = nil
		if err := json.Unmarshal(kept, &one.facts); err != nil {
			return err
		}
		if to := &changes[row/2].told; row%2 == 0 {
			to.known = one
		} else {
			to.heard = one
		}
		row++
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what was told before: %w", err)
	}
	return nil
}

// verdict says whether a notice is still true, news, and in time.
func (m matter) verdict(now time.Time) notice.Verdict {
	switch {
	case m.due.Kind == notice.KindRelease && m.told.Seated: // what they have now is told by its own notice
		return notice.VerdictWithdrawn
	case m.due.Kind != notice.KindRelease && m.letter.State != StateValid:
		return notice.VerdictWithdrawn
	case m.due.Kind != notice.KindRelease && m.told.Superseded:
		return notice.VerdictWithdrawn
	case (m.due.Kind == notice.KindChange || m.due.Kind == notice.KindReminder) && m.due.Revision < m.letter.Revision:
		return notice.VerdictWithdrawn
	case m.due.Kind == notice.KindChange && !m.due.Asked && m.sameAs(m.told.known) && m.sameAs(m.told.heard):
		return notice.VerdictWithdrawn
	case !m.letter.StartsAt.After(now):
		return notice.VerdictTooLate
	}
	return notice.VerdictSend
}

// sameAs tells whether what is true now was told already: a sitting that was moved and moved back. Where the timeline kept no
// end, the e-mail that was sent is asked.
func (m matter) sameAs(before said) bool {
	if before.facts == nil || len(m.differences(before.facts)) > 0 {
		return false
	}
	return before.facts.EndsAt != nil || before.words == "" || strings.Contains(before.words, m.hours())
}

// kind is that of the words. A change that is none to its person says what a convocation says: it is told because the channel
// had told nothing, or because somebody asked for it once more.
func (m matter) kind() notice.Kind {
	if m.due.Kind == notice.KindChange && m.sameAs(m.told.known) && (m.told.heard.facts == nil || m.sameAs(m.told.heard)) {
		return notice.KindConvocation
	}
	return m.due.Kind
}

// change is something that is not as the person was told.
type change struct{ Label, Before, Now string }

// changes are those since the last word that reached the person. Where that is true again, it was another channel's: then those since
// the last word of this one.
func (m matter) changes() []change {
	if m.sameAs(m.told.known) {
		return m.differences(m.told.heard.facts)
	}
	return m.differences(m.told.known.facts)
}

// differences are what is not as it was; of what nobody knows there are none.
func (m matter) differences(before *facts) []change {
	if before == nil {
		return nil
	}
	was := m.letter
	was.Seat, was.Centre, was.Room = before.Seat, before.Centre, before.Room
	was.StartsAt, was.Zone = before.StartsAt.At, before.StartsAt.Zone
	then := matter{letter: was, voice: m.voice}
	from, to := i18n.In(was.Begins()), i18n.In(m.letter.Begins())
	all := []change{
		{"letter_date", m.voice.Date(from), m.voice.Date(to)},
		{"letter_hour", i18n.Clock(from), i18n.Clock(to)},
		{"letter_centre", was.Centre, m.letter.Centre},
		{"letter_room", was.Room, m.letter.Room},
		{"letter_seat", then.seat(), m.seat()},
	}
	if before.EndsAt != nil {
		all = append(all, change{"letter_end", i18n.Clock(i18n.In(*before.EndsAt)), i18n.Clock(i18n.In(m.letter.Ends()))})
	}
	var changes []change
	for _, c := range all {
		if c.Before != c.Now {
			changes = append(changes, change{m.voice.Say(c.Label, nil), c.Before, c.Now})
		}
	}
	return changes
}

// seat is the seat's label, or that it is given at the door.
func (m matter) seat() string {
	if m.letter.Seat == "" {
		return m.voice.Say("letter_seat_at_door", nil)
	}
	return m.letter.Seat
}

// hours are those of the clock on the wall of the centre, with its zone.
func (m matter) hours() string {
	begins := i18n.In(m.letter.Begins())
	return m.voice.Say("letter_hours", map[string]any{
		"from": i18n.Clock(begins), "to": m.voice.Until(m.letter.Begins(), m.letter.Ends()), "zone": zoneName(begins),
	})
}
