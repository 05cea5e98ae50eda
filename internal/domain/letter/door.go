package letter

import (
	"context"
	_ "embed" // the statements
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Asked is what a door asks about a code.
type Asked struct {
	Code         string // what the QR code holds, or the short code as it is typed
	Organisation string // slug; empty: the campaign's, or the only one there is
	Campaign     string // slug
	Sitting      string // reference of the sitting at this door; empty: any. A short code counts within a sitting alone
}

// Found is what became of the seat that a code speaks of.
type Found struct {
	State     State
	Letter    Letter  // the seat of the code, as its sitting is now; of a valid one, the seat that the person has
	Now       *Letter // of a letter that was replaced, the seat that the person has now; nil: none
	Renewed   bool    // a newer letter was written since, and says the same
	Signed    bool    // the signature is this organisation's; false: a short code, which anybody can make up
	Elsewhere bool    // the letter is valid, for another sitting than the one at this door
	Older     bool    // a short code: an older letter of the seat bears it too, and says what is not true any more
}

// LetsIn tells whether the person may sit down at this door.
func (f Found) LetsIn() bool { return f.State == StateValid && !f.Elsewhere }

// Refusal says why the person is not let in, and where they are to go; nil: they are.
func (f Found) Refusal() error {
	facts := f.Letter.doorFacts()
	switch {
	case f.LetsIn():
		return nil
	case f.Elsewhere:
		return problem.Refused("door_elsewhere", facts)
	case f.State == StateReplaced && f.Now != nil:
		return problem.Refused("door_replaced", f.Now.doorFacts())
	}
	return problem.Refused("door_released", facts)
}

// Facts are what a sentence says of somebody who is let in.
func (f Found) Facts() map[string]any { return f.Letter.doorFacts() }

func (l Letter) doorFacts() problem.Facts {
	return problem.Facts{
		"name": l.Name(), "reference": l.Reference, "exam": l.Exam, "sitting": l.Sitting, "place": l.Room + ", " + l.Centre,
		"starts_at": l.Begins(), "seat": l.Seat,
	}
}

// CheckAtDoor says whether a code lets its person in. It reads, and every role may.
func CheckAtDoor(ctx context.Context, db *pg.DB, actor timeline.Actor, asked Asked) (Found, error) {
	if strings.TrimSpace(asked.Code) == "" {
		return Found{}, problem.Invalid("code_missing", nil)
	}
	organisationID, campaign, err := asked.scope(ctx, db, actor)
	if err != nil {
		return Found{}, err
	}
	var found Found
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		var here seating.Sitting
		if asked.Sitting != "" {
			if here, err = seating.FindSitting(ctx, tx, campaign, asked.Sitting); err != nil {
				return err
			}
		}
		if seal.Looks(asked.Code) {
			found, err = Scan(ctx, tx, organisationID, asked.Code)
			found.Signed = true
		} else {
			found, err = typed(ctx, tx, organisationID, asked)
		}
		if err != nil {
			return err
		}
		found.Elsewhere = found.State == StateValid && here.ID != 0 && here.ID != found.Letter.SittingID
		return nil
	})
	return found, err
}

// scope is the organisation whose codes are read, and the campaign of the sitting at the door.
func (asked Asked) scope(ctx context.Context, db *pg.DB, actor timeline.Actor) (int64, admission.Campaign, error) {
	if asked.Campaign != "" {
		c, err := admission.FindCampaign(ctx, db, actor, asked.Campaign)
		return c.OrganisationID, c, err
	}
	if asked.Sitting != "" {
		return 0, admission.Campaign{}, problem.Invalid("door_campaign_missing", problem.Facts{"sitting": asked.Sitting})
	}
	org, err := account.FindOrganisation(ctx, db, actor, asked.Organisation)
	return org.ID, admission.Campaign{}, err
}

// typed reads the short code, which is not signed: it counts only for whoever stands at a known door.
// It does not say of which revision the letter is: the last thing that was said of its claim counts, and where something
// else was said before, that is told, for only whoever reads the paper can see which of them it is.
func typed(ctx context.Context, tx pgx.Tx, organisationID int64, asked Asked) (Found, error) {
	claim, ok := parseShort(asked.Code)
	switch {
	case !ok:
		return Found{}, problem.Invalid("code_mistyped", problem.Facts{"code": asked.Code})
	case asked.Sitting == "":
		return Found{}, problem.Invalid("short_code_needs_sitting", nil)
	}
	there, err := lookUp(ctx, tx, organisationID, []int64{claim})
	if err != nil {
		return Found{}, err
	}
	if len(there) == 0 {
		return Found{}, problem.Refused("code_unknown", nil)
	}
	found, err := judge(ctx, tx, there[0], anyRevision)
	if err == nil && found.State == StateValid {
		found.Older, err = saidOtherwise(ctx, tx, there[0], found.Letter)
	}
	return found, err
}

// saidOtherwise tells whether a letter of the claim, under one of its revisions, said of the seat what is not true now.
func saidOtherwise(ctx context.Context, tx pgx.Tx, l, now Letter) (otherwise bool, err error) {
	rows, err := tx.Query(ctx, `
select l.facts from (select * from timeline where candidate_id = $2 offset 0) l
 where l.organisation_id = $1 and l.claim_id = $3 and l.kind in ('seated', 'sitting_moved')`, l.OrganisationID, l.CandidateID, l.ClaimID)
	if err == nil {
		var kept []byte
		_, err = pgx.ForEachRow(rows, []any{&kept}, func() error {
			var said *facts
			if err := json.Unmarshal(kept, &said); err != nil {
				return err
			}
			otherwise = otherwise || !said.isTrueOf(now)
			return nil
		})
	}
	if err != nil {
		return false, fmt.Errorf("read what the letters of claim %d said: %w", l.ClaimID, err)
	}
	return otherwise, nil
}

// anyRevision stands for the last one of a claim.
const anyRevision = 0

// judge says what a letter is worth that was written for a claim under a revision of its sitting. What counts is what
// stands on the paper: who was moved and moved back holds a letter that is true again. A letter that is true of where the
// person sits now is valid; any other is replaced.
func judge(ctx context.Context, tx pgx.Tx, l Letter, revision int) (Found, error) {
	found := Found{State: l.State, Letter: l}
	newest := l.State == StateValid && (revision == anyRevision || revision == l.Revision)
	if newest || l.State == StateReleased {
		return found, nil
	}
	now, err := seatNow(ctx, tx, l)
	if err != nil || now == nil { // not nil: the claim is live, or it was replaced by one that is
		return found, err
	}
	said, err := saidOf(ctx, tx, l, revision)
	if err != nil {
		return found, err
	}
	if l.SittingID == now.SittingID && said.isTrueOf(*now) {
		return Found{State: StateValid, Letter: *now, Renewed: true}, nil
	}
	found.State, found.Now = StateReplaced, now
	return found, nil
}

//go:embed said.sql
var readSaid string

// saidOf is what the letter of a claim said under a revision, as the timeline keeps it; nil: it does not.
func saidOf(ctx context.Context, tx pgx.Tx, l Letter, revision int) (said *facts, err error) {
	var kept []byte
	err = tx.QueryRow(ctx, readSaid, l.OrganisationID, l.CandidateID, l.ClaimID, revision).Scan(&kept)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(kept, &said)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the letter of claim %d said: %w", l.ClaimID, err)
	}
	return said, nil
}

// isTrueOf tells whether the person finds their seat with what they were told. When the exam ends does not decide that.
func (f *facts) isTrueOf(l Letter) bool {
	return f != nil && f.Centre == l.Centre && f.Room == l.Room && f.Seat == l.Seat && f.StartsAt.At.Equal(l.StartsAt)
}

// seatNow is the seat that the person has for the exam; nil: none.
func seatNow(ctx context.Context, tx pgx.Tx, l Letter) (*Letter, error) {
	var claim int64
	err := tx.QueryRow(ctx, `select id from claim where organisation_id = $1 and candidate_id = $2 and exam_id = $3 and released_at is null`,
		l.OrganisationID, l.CandidateID, l.ExamID).Scan(&claim)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where the person sits now: %w", err)
	}
	now, err := read(ctx, tx, l.OrganisationID, []int64{claim})
	if err != nil {
		return nil, err
	}
	return &now[0], nil
}

// misread are letters that people write for the digits of a short code.
var misread = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "", "\u00a0", "")

// parseShort reads a short code as people type it: in small letters, without the hyphen, O for 0.
func parseShort(text string) (claim int64, ok bool) {
	text = misread.Replace(strings.ToUpper(strings.TrimSpace(text)))
	if len(text) != shortDigits+1 {
		return 0, false
	}
	for _, letter := range text[:shortDigits] {
		value := strings.IndexRune(crockford, letter)
		if value < 0 {
			return 0, false
		}
		claim = claim*int64(len(crockford)) + int64(value)
	}
	return claim, text[shortDigits:] == checkDigit(claim)
}

func checkDigit(claim int64) string { return crockford[claim%checkPrime:][:1] }

// shortOf is the short code of a claim: 0000-2M9X.
func shortOf(claim int64) string {
	digits := make([]byte, shortDigits)
	rest := claim
	for i := range digits {
		digits[shortDigits-1-i] = crockford[rest%int64(len(crockford))]
		rest /= int64(len(crockford))
	}
	if rest > 0 { // more claims than the form has room for
		return strconv.FormatInt(claim, 10)
	}
	return string(digits[:4]) + "-" + string(digits[4:]) + checkDigit(claim)
}
