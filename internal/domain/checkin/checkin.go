// Package checkin decides who was let in at a door: each person once, whichever door and device they came to, with a network or
// without, and however often a device says it. What a code is worth is judged in letter; this package keeps what came of each reading,
// who was present, who was absent, and what somebody must look at. Two unique indexes arbitrate between doors.
package checkin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Bounds of what a device says.
const (
	MostScans = 500 // of one batch
	mostName  = 64  // characters of the name of a device, and of a reading
	mostCode  = 512 // characters; what is longer is nobody's code

	// clockSlack is how far ahead of the database a device's clock may be: clocks that are set by a network differ by less.
	clockSlack = 2 * time.Minute
	// doorsOpenBefore is how long before a sitting its doors are open at most, where that is the day before.
	doorsOpenBefore = 6 * time.Hour
)

// Of says whose sittings the doors are of: a campaign's or an event's, by its slug.
type Of struct {
	Campaign string
	Event    string
}

func (of Of) door(ctx context.Context, db *pg.DB, actor timeline.Actor) (letter.Door, error) {
	if of == (Of{}) {
		return letter.Door{}, problem.Invalid("door_of_neither", nil)
	}
	return letter.FindDoor(ctx, db, actor, of.Campaign, of.Event)
}

// Scan is one reading of a code at a door.
type Scan struct {
	Device    string    // the device or the door, as it calls itself
	Nonce     string    // the device's name of the reading; the same again is the same reading
	Code      string    // what the QR code holds, or the short code as it is typed
	Sitting   string    // reference of the sitting at the door
	ScannedAt time.Time // by the device's own clock; zero: it asks now, and waits for the answer
	LetIn     bool      // of one that was read without a network: the person went in
	Despite   bool      // of one that waits for the answer: whoever answers for the door lets a disputed ticket in
}

func (s Scan) offline() bool { return !s.ScannedAt.IsZero() }

func (s Scan) codeKind() string {
	switch {
	case seal.Looks(s.Code):
		return "signed"
	case strings.TrimSpace(s.Code) == "" || len(s.Code) > mostCode:
		return "none"
	}
	return "short"
}

// digest is of all that makes a reading this one and not another.
func (s Scan) digest(here seating.Sitting) []byte {
	said, _ := json.Marshal([]any{ //nolint:errchkjson // texts, numbers and booleans
		here.ID, strings.ToUpper(strings.TrimSpace(s.Code)), s.ScannedAt.UTC().Format(time.RFC3339Nano), s.LetIn, s.Despite,
	})
	sum := sha256.Sum256(said)
	return sum[:]
}

// check refuses what cannot be kept.
func (s Scan) check() error {
	for name, text := range map[string]string{"device": s.Device, "nonce": s.Nonce} {
		if text == "" || utf8.RuneCountInString(text) > mostName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return problem.Invalid("scan_name_unfit", problem.Facts{"name": name, "most": mostName})
		}
	}
	switch {
	case !s.offline() && strings.TrimSpace(s.Code) == "":
		return problem.Invalid("code_missing", nil)
	case s.offline() && (s.ScannedAt.Year() < 1970 || s.ScannedAt.Year() > 9999):
		return problem.Invalid("scan_time_unfit", nil)
	}
	return nil
}

// Verdict is what a door was answered.
type Verdict string

// The verdicts.
const (
	VerdictIn         Verdict = "in"
	VerdictAlready    Verdict = "already"     // somebody was let in with it before
	VerdictReleased   Verdict = "released"    // the seat was taken back, or the ticket cancelled
	VerdictUnpaid     Verdict = "unpaid"      // held, and not paid
	VerdictDisputed   Verdict = "disputed"    // whoever answers for the door decides
	VerdictReplaced   Verdict = "replaced"    // another paper of the seat counts
	VerdictElsewhere  Verdict = "elsewhere"   // it is for another sitting
	VerdictUnknown    Verdict = "unknown"     // the code is nobody's
	VerdictTurnedAway Verdict = "turned_away" // it was good, and a door without a network did not let the person in
)

// Conflict is what somebody must look at of a reading: what the door did is not what it would have been told.
type Conflict string

// The conflicts.
const (
	ConflictTwice          Conflict = "twice"           // let in, and so was somebody else by the same paper or another one of the seat
	ConflictReleasedBefore Conflict = "released_before" // let in, though the seat had been taken back
	ConflictReleasedAfter  Conflict = "released_after"  // let in, and the seat was taken back since: present
	ConflictUnpaid         Conflict = "unpaid"
	ConflictDisputed       Conflict = "disputed" // let in with a disputed ticket: present
	ConflictReplaced       Conflict = "replaced" // let in with a paper that is out of date; present if the seat is theirs
	ConflictElsewhere      Conflict = "elsewhere"
	ConflictUnknown        Conflict = "unknown"
	ConflictTurnedAway     Conflict = "turned_away" // not let in, with a paper that is good
	ConflictTakenBack      Conflict = "taken_back"  // let in before somebody took the person's presence back by hand: absent
)

// Why the time by a device's own clock does not count.
const (
	clockAhead = "ahead" // of the database's
	clockEarly = "early" // before the day of the sitting
)

// Answer is what came of a reading, the first time and each time that it is said again.
type Answer struct {
	Device     string
	Nonce      string
	Verdict    Verdict
	Conflict   Conflict // empty: there is nothing to look at
	ClockMark  string   // empty: the device's time counts
	LetIn      bool     // the person went in
	Offline    bool
	ScannedAt  time.Time
	ReceivedAt time.Time
	UndoneAt   *time.Time
	Facts      problem.Facts `db:"-"` // what sentences say of it
	Repeat     bool          `db:"-"` // it was known before
}

// factSentence names, among the facts that are kept, the sentence that refuses; the other facts are what sentences speak of.
const factSentence = "sentence"

// Refusal says why a door that waits for the answer lets nobody in; nil: it does.
func (a Answer) Refusal() error {
	if code, _ := a.Facts[factSentence].(string); code != "" {
		return problem.Refused(code, a.Facts)
	}
	return nil
}

// Sentence says what came of the reading.
func (a Answer) Sentence(v i18n.Voice) string {
	if refusal := a.Refusal(); refusal != nil {
		return v.Sentence(refusal)
	}
	if a.Verdict == VerdictTurnedAway {
		return v.Say("checkin_turned_away", a.Facts)
	}
	return v.Say("checkin_in", a.Facts)
}

// Looked says what somebody must look at; empty: nothing.
func (a Answer) Looked(v i18n.Voice) string {
	if a.Conflict == "" {
		return ""
	}
	return v.Say("conflict_"+string(a.Conflict), a.Facts)
}

// presentKinds are what the timeline keeps.
const (
	kindIn     timeline.Kind = "checked_in"
	kindUndone timeline.Kind = "check_in_undone"
)

func subjectOf(seat letter.Seat) timeline.Subject {
	return timeline.Subject{
		CampaignID: seat.CampaignID, CandidateID: seat.CandidateID, SittingID: seat.SittingID, ClaimID: seat.ClaimID,
		EventID: seat.EventID, ReservationID: seat.ReservationID,
	}
}

// at finds the door's sitting and does something there, in one transaction that may write.
func at(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, reference string, do func(pgx.Tx, letter.Door, seating.Sitting) error) error {
	if err := account.Allow(actor, account.CheckIn); err != nil {
		return err
	}
	door, err := of.door(ctx, db, actor)
	if err != nil {
		return err
	}
	return db.Tx(ctx, []int64{door.OrganisationID}, func(tx pgx.Tx) error {
		here, err := door.Sitting(ctx, tx, reference)
		if err != nil {
			return err
		}
		return do(tx, door, here)
	})
}

// holderIs is the part of a statement that finds the readings of one person at one sitting ($2) by the key that is there.
func holderIs(seat letter.Seat) (condition string, args []any) {
	if seat.Ticket() {
		return `sitting_id = $2 and reservation_id = $3 and line_number = $4`, []any{seat.ReservationID, seat.Line}
	}
	return `sitting_id = $2 and candidate_id = $3`, []any{seat.CandidateID}
}

// since is when and at which door somebody was let in: of all who let them in, the earliest.
type since struct {
	At     time.Time
	Device string
}

// cameIn is the earliest time at which the person was let in, of what was not taken back; found: they were.
func cameIn(ctx context.Context, tx pgx.Tx, organisationID, sittingID int64, seat letter.Seat) (s since, found bool, err error) {
	condition, args := holderIs(seat)
	rows, err := tx.Query(ctx, `
select counts_at as at, device from scan
 where organisation_id = $1 and `+condition+` and let_in and verdict in ('in', 'already') and undone_at is null
   and exists (select from scan where organisation_id = $1 and `+condition+` and verdict = 'in' and undone_at is null)
 order by counts_at, id limit 1`, append([]any{organisationID, sittingID}, args...)...)
	if err != nil {
		return s, false, fmt.Errorf("read who came in: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[since])
	if err != nil {
		return s, false, fmt.Errorf("read who came in: %w", err)
	}
	if len(all) == 0 {
		return s, false, nil
	}
	return all[0], true, nil
}
