package checkin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// In answers a door that reads a code and waits. Who is let in is marked as present.
func In(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, s Scan) (a Answer, err error) {
	s.ScannedAt, s.LetIn = time.Time{}, false
	if err := s.check(); err != nil {
		return a, err
	}
	err = at(ctx, db, actor, of, s.Sitting, func(tx pgx.Tx, door letter.Door, here seating.Sitting) error {
		a, err = keep(ctx, tx, actor, door.OrganisationID, here, s)
		return err
	})
	return a, err
}

// Replayed is one reading of a batch with what came of it, or why it could not be kept.
type Replayed struct {
	Scan   Scan
	Answer Answer
	Err    error
}

// Replay takes a batch of a device, in any order and as often as it comes. Each reading is a transaction: one that cannot be kept holds
// up no other. A fault that is not a reading's ends it; what was taken by then stays, and the batch can be sent again.
func Replay(ctx context.Context, db *pg.DB, actor timeline.Actor, of Of, scans []Scan) ([]Replayed, error) {
	if err := account.Allow(actor, account.CheckIn); err != nil {
		return nil, err
	}
	if len(scans) > MostScans {
		return nil, problem.Invalid("scans_too_many", problem.Facts{"most": MostScans})
	}
	door, err := of.door(ctx, db, actor)
	if err != nil {
		return nil, err
	}
	replayed := make([]Replayed, len(scans))
	for i, s := range scans {
		one := &replayed[i]
		if one.Scan, one.Err = s, s.check(); one.Err != nil {
			continue
		}
		one.Err = db.Tx(ctx, []int64{door.OrganisationID}, func(tx pgx.Tx) error {
			here, err := door.Sitting(ctx, tx, s.Sitting)
			if err != nil {
				return err
			}
			one.Answer, err = keep(ctx, tx, actor, door.OrganisationID, here, s)
			return err
		})
		if _, isProblem := problem.Of(one.Err); one.Err != nil && !isProblem {
			return nil, fmt.Errorf("take reading %d of %d: %w", i+1, len(scans), one.Err)
		}
	}
	return replayed, nil
}

// row is a reading as it is kept.
type row struct {
	Scan
	organisationID int64
	here           seating.Sitting
	who            *letter.Seat // nil: the code is nobody's
	ruling
	asked     []byte // digest
	unasked   bool   // the device was offline
	now       time.Time
	countsAt  time.Time
	clockMark string
	undoneAt  *time.Time
	undoneBy  *string
	facts     problem.Facts
}

// ruling is what comes of a reading.
type ruling struct {
	verdict  Verdict
	conflict Conflict
	letIn    bool
}

// keepTries is how often a reading is tried when others come and go by the same code in the same moment.
const keepTries = 5

// keep answers one reading and keeps the answer, or gives the one that was kept before.
func keep(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, here seating.Sitting, s Scan) (Answer, error) {
	if a, found, err := known(ctx, tx, organisationID, here, s); err != nil || found {
		return a, err
	}
	r, err := judge(ctx, tx, organisationID, here, s)
	if err != nil {
		return Answer{}, err
	}
	for range keepTries {
		a, kept, err := r.write(ctx, tx, actor)
		if err != nil || kept {
			return a, err
		}
		// One of two keys refused it: the same reading came in by another way, or the same person by another door.
		if a, found, err := known(ctx, tx, organisationID, here, s); err != nil || found {
			return a, err
		}
		first, found, err := cameIn(ctx, tx, organisationID, here.ID, *r.who)
		if err != nil {
			return a, err
		}
		if found { // else it was taken back meanwhile
			r.already(first)
		}
	}
	return Answer{}, fmt.Errorf("keep a reading of sitting %d: it met another one %d times", here.ID, keepTries)
}

// known is the answer that a reading got before.
func known(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, s Scan) (a Answer, found bool, err error) {
	rows, err := tx.Query(ctx, `
select `+answerColumns+`, asked_digest, facts from scan where organisation_id = $1 and device = $2 and nonce = $3`, organisationID, s.Device, s.Nonce)
	if err != nil {
		return a, false, fmt.Errorf("look for an earlier answer: %w", err)
	}
	type kept struct {
		Answer
		AskedDigest []byte
		Facts       []byte
	}
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[kept])
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err == nil && !bytes.Equal(k.AskedDigest, s.digest(here)) {
		return a, false, problem.Refused("scan_nonce_reused", problem.Facts{"device": s.Device, "nonce": s.Nonce})
	}
	if err == nil {
		err = json.Unmarshal(k.Facts, &k.Answer.Facts)
	}
	if err != nil {
		return a, false, fmt.Errorf("read an earlier answer: %w", err)
	}
	k.Repeat = true
	return k.Answer, true, nil
}

const answerColumns = `device, nonce, verdict, coalesce(conflict, '') as conflict, coalesce(clock_mark, '') as clock_mark, let_in, offline,
       scanned_at, received_at, undone_at`

// judge decides what comes of a reading, by the clock after what it speaks of was locked.
func judge(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, s Scan) (*row, error) {
	found, err := look(ctx, tx, organisationID, here, s)
	unknown := problem.Has(err, "code_unknown") || s.offline() && problem.Has(err, "code_mistyped")
	if err != nil && !unknown {
		return nil, err
	}
	r := &row{Scan: s, organisationID: organisationID, here: here, asked: s.digest(here), unasked: s.offline()}
	if r.now, err = pg.Now(ctx, tx); err != nil {
		return nil, err
	}
	r.readClock()
	if unknown {
		r.ruling = ruling{VerdictUnknown, "", s.LetIn}
		if s.LetIn {
			r.conflict = ConflictUnknown
		}
		r.tell(problem.Facts{factSentence: "code_unknown"})
		return r, nil
	}
	r.who = &found.Seat
	good := false // whether the seat was theirs when it was read
	if s.LetIn {
		if good, err = wasTheirs(ctx, tx, organisationID, found.Seat, r.countsAt); err != nil {
			return nil, err
		}
	}
	r.ruling = decide(s, found, good && found.Seat.SittingID == here.ID)
	if r.verdict == VerdictIn {
		if err := r.readTakenBack(ctx, tx); err != nil {
			return nil, err
		}
	}
	facts := found.Seat.Facts()
	if refused, ok := problem.Of(found.Refusal()); ok && r.verdict != VerdictIn {
		facts = refused.Facts
		facts[factSentence] = refused.Code
	}
	r.tell(facts)
	return r, nil
}

func look(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, s Scan) (letter.Found, error) {
	if s.codeKind() == "none" {
		return letter.Found{}, problem.Refused("code_unknown", nil)
	}
	return letter.LookHolding(ctx, tx, organisationID, here, s.Code)
}

// verdicts are the answers to a door that waits, by what became of the seat.
var verdicts = map[letter.State]Verdict{
	letter.StateValid: VerdictIn, letter.StateReleased: VerdictReleased, letter.StateReplaced: VerdictReplaced,
	letter.StateUnpaid: VerdictUnpaid, letter.StateDisputed: VerdictDisputed,
}

// decide is the rule of check-in. theirs says of a person who went in unasked that the seat was theirs then, at this sitting.
func decide(s Scan, found letter.Found, theirs bool) ruling {
	verdict := verdicts[found.State]
	if found.Elsewhere {
		verdict = VerdictElsewhere
	}
	switch {
	case !s.offline() && verdict == VerdictDisputed && s.Despite:
		return ruling{VerdictIn, ConflictDisputed, true}
	case !s.offline():
		return ruling{verdict, "", verdict == VerdictIn}
	case !s.LetIn && verdict == VerdictIn:
		return ruling{VerdictTurnedAway, ConflictTurnedAway, false}
	case !s.LetIn:
		return ruling{verdict, "", false}
	case verdict == VerdictIn:
		return ruling{VerdictIn, "", true}
	case verdict == VerdictDisputed:
		return ruling{VerdictIn, ConflictDisputed, true}
	case verdict == VerdictReleased && theirs:
		return ruling{VerdictIn, ConflictReleasedAfter, true}
	case verdict == VerdictReleased:
		return ruling{VerdictReleased, ConflictReleasedBefore, true}
	case verdict == VerdictReplaced && theirs && !found.Transferred: // only the paper is out of date
		return ruling{VerdictIn, ConflictReplaced, true}
	}
	return ruling{verdict, Conflict(verdict), true} // unpaid, replaced, elsewhere
}

// readClock says at which time the reading counts: at the device's own, unless that cannot be.
func (r *row) readClock() {
	if !r.unasked {
		r.ScannedAt, r.countsAt = r.now, r.now
		return
	}
	day := i18n.In(r.here.Begins())
	dayBegins := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, day.Location())
	r.countsAt = r.ScannedAt
	switch {
	case r.ScannedAt.After(r.now.Add(clockSlack)):
		r.countsAt, r.clockMark = r.now, clockAhead
	case r.ScannedAt.After(r.now):
		r.countsAt = r.now
	case r.ScannedAt.Before(dayBegins) && r.ScannedAt.Before(r.here.StartsAt.Add(-doorsOpenBefore)):
		r.countsAt, r.clockMark = r.now, clockEarly
	}
}

// wasTheirs tells whether a seat had not been taken back at an instant.
func wasTheirs(ctx context.Context, tx pgx.Tx, organisationID int64, seat letter.Seat, when time.Time) (theirs bool, err error) {
	err = tx.QueryRow(ctx, `
select coalesce(least(k.released_at, (select cancelled_at from line
                                       where organisation_id = $1 and reservation_id = k.reservation_id and number = k.line_number)), 'infinity') > $3
  from claim k where k.organisation_id = $1 and k.id = $2`, organisationID, seat.ClaimID, when).Scan(&theirs)
	if err != nil {
		return false, fmt.Errorf("read whose seat it was: %w", err)
	}
	return theirs, nil
}

// readTakenBack has a presence that somebody took back by hand stay so, whichever device says afterwards that it let the person in
// before that.
func (r *row) readTakenBack(ctx context.Context, tx pgx.Tx) error {
	condition, args := holderIs(*r.who)
	last := len(args) + 3
	rows, err := tx.Query(ctx, fmt.Sprintf(`
select undone_at, undone_by from scan where organisation_id = $1 and %s and undone_at >= $%d order by undone_at desc limit 1`, condition, last),
		append([]any{r.organisationID, r.here.ID}, append(args, r.countsAt)...)...)
	if err == nil {
		var undoneAt time.Time
		var by string
		_, err = pgx.ForEachRow(rows, []any{&undoneAt, &by}, func() error {
			r.undoneAt, r.undoneBy, r.conflict = &undoneAt, &by, ConflictTakenBack
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("read what was taken back: %w", err)
	}
	return nil
}

// tell makes the facts of the answer.
func (r *row) tell(facts problem.Facts) {
	r.facts = maps.Clone(facts)
	r.facts["door"], r.facts["here"] = r.Device, r.here.Reference
	r.facts["scanned_at"], r.facts["received_at"] = i18n.Instant{At: r.ScannedAt, Zone: r.here.Zone}, i18n.Instant{At: r.now, Zone: r.here.Zone}
	if r.undoneAt != nil {
		r.facts["undone_at"] = i18n.Instant{At: *r.undoneAt, Zone: r.here.Zone}
	}
}

// already says that the person came in before. One whom a door without a network let in again is a conflict: two people may be inside.
func (r *row) already(first since) {
	r.verdict = VerdictAlready
	if r.letIn = r.unasked && r.LetIn; r.letIn {
		r.conflict = ConflictTwice
	} else {
		r.conflict = ""
	}
	r.facts[factSentence] = "checkin_already"
	r.facts["since_at"], r.facts["since_door"] = i18n.Instant{At: first.At, Zone: r.here.Zone}, first.Device
}

// write keeps the reading and its trace in the timeline; kept tells that no key refused it.
func (r *row) write(ctx context.Context, tx pgx.Tx, actor timeline.Actor) (a Answer, kept bool, err error) {
	facts, err := json.Marshal(r.facts)
	if err != nil {
		return a, false, fmt.Errorf("write the facts of a reading: %w", err)
	}
	var claim, candidate, reservation *int64
	var line *int
	if r.who != nil {
		claim = &r.who.ClaimID
		if r.who.Ticket() {
			reservation, line = &r.who.ReservationID, &r.who.Line
		} else {
			candidate = &r.who.CandidateID
		}
	}
	rows, err := tx.Query(ctx, `
insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, claim_id, candidate_id, reservation_id, line_number,
  scanned_at, received_at, counts_at, clock_mark, offline, let_in, verdict, conflict, undone_at, undone_by, actor, facts)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, nullif($14, ''), $15, $16, $17, nullif($18, ''), $19, $20, $21, $22)
on conflict do nothing returning `+answerColumns,
		r.organisationID, r.Device, r.Nonce, r.asked, r.codeKind(), r.here.ID, claim, candidate, reservation, line,
		r.ScannedAt, r.now, r.countsAt, r.clockMark, r.unasked, r.letIn, r.verdict, string(r.conflict), r.undoneAt, r.undoneBy, actor.Name, facts)
	if err != nil {
		return a, false, fmt.Errorf("keep a reading: %w", err)
	}
	a, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Answer])
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err == nil {
		err = json.Unmarshal(facts, &a.Facts) // as a repeat will read them
	}
	if err != nil {
		return a, false, fmt.Errorf("keep a reading: %w", err)
	}
	if r.verdict != VerdictIn || r.undoneAt != nil {
		return a, true, nil
	}
	return a, true, timeline.Record(ctx, tx, r.organisationID, actor, timeline.Entry{Kind: kindIn, Subject: subjectOf(*r.who), Facts: json.RawMessage(facts)})
}
