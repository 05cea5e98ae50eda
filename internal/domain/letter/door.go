package letter

import (
	"context"
	_ "embed" // the statements
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/event"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Asked is what a door asks about a code.
type Asked struct {
	Code         string // what the QR code holds, or the short code as it is typed
	Organisation string // slug; empty: the campaign's or the event's, else that of the actor's which signed the code
	Campaign     string // slug
	Event        string // slug
	Sitting      string // reference of the sitting at this door; empty: any. A short code counts within a sitting alone
}

// Seat is one person's seat at a sitting, as a door speaks of it: a candidate's, or that of a ticket.
type Seat struct {
	ClaimID       int64
	SittingID     int64
	CampaignID    int64
	CandidateID   int64 // 0: it is a ticket
	ReservationID int64
	Line          int // of the reservation
	EventID       int64
	Name          string // of the candidate, of whoever the ticket is for, or of its buyer; a ticket may have none
	Reference     string // of the candidate
	What          string // exam or event
	Kind          string // of the ticket
	Sitting       string
	Centre        string
	Room          string
	Zone          string
	StartsAt      time.Time
	EndsAt        time.Time
	Label         string // empty: given at the door
}

// Ticket tells whether the seat is of a ticket, and not of a candidate.
func (s Seat) Ticket() bool { return s.CandidateID == 0 }

// Facts are what a sentence says of the seat.
func (s Seat) Facts() problem.Facts {
	return problem.Facts{
		"name": s.Name, "reference": s.Reference, "exam": s.What, "event": s.What, "kind": s.Kind, "sitting": s.Sitting,
		"place": s.Room + ", " + s.Centre, "starts_at": s.Begins(), "seat": s.Label,
	}
}

func (l Letter) doorSeat() Seat {
	return Seat{
		ClaimID: l.ClaimID, SittingID: l.SittingID, CampaignID: l.CampaignID, CandidateID: l.CandidateID,
		Name: l.Name(), Reference: l.Reference, What: l.Exam, Sitting: l.Sitting, Centre: l.Centre, Room: l.Room, Zone: l.Zone,
		StartsAt: l.StartsAt, EndsAt: l.EndsAt, Label: l.Seat,
	}
}

// The states that a ticket can be in beside those of a letter.
const (
	StateUnpaid   State = "unpaid"
	StateDisputed State = "disputed" // the payer's bank asks for the money back: whoever answers for the door decides
)

// Found is what became of the seat that a code speaks of.
type Found struct {
	State       State
	Seat        Seat   // of the code, as its sitting is now; of a valid one, the seat that the person has
	Now         *Seat  // of a paper that was replaced, the seat that the person has now; nil: none
	Why         string // of a ticket that is worth nothing any more: the reason that its line keeps, or the state of its reservation
	Transferred bool   // a newer ticket has another name
	Renewed     bool   // a newer letter was written since, and says the same
	Signed      bool   // the signature is this organisation's; false: a short code, which anybody can make up
	Elsewhere   bool   // the paper is good, for another sitting than the one at this door
	Older       bool   // a short code: an older paper of the seat bears it too, and says what is not true any more
}

// LetsIn tells whether the person may sit down at this door.
func (f Found) LetsIn() bool { return f.State == StateValid && !f.Elsewhere }

// Refusal says why the person is not let in, and where they are to go; nil: they are. What makes a paper worthless is said first, then
// that it is for another sitting.
func (f Found) Refusal() error {
	if f.LetsIn() {
		return nil
	}
	code, facts := "door_"+f.refusalCode(), f.Seat.Facts()
	if f.State == StateReplaced && f.Now != nil {
		facts = f.Now.Facts()
	}
	if f.Seat.Ticket() {
		code = "door_ticket_" + f.refusalCode()
		facts["why"] = whyEndedWord(f.Why)
	}
	return problem.Refused(code, facts)
}

func (f Found) refusalCode() string {
	switch {
	case f.Elsewhere:
		return "elsewhere"
	case f.State == StateReplaced && f.Transferred:
		return "transferred"
	case f.State == StateReplaced && f.Now == nil:
		return string(StateReleased)
	}
	return string(f.State)
}

// Facts are what a sentence says of somebody who is let in.
func (f Found) Facts() map[string]any { return f.Seat.Facts() }

// CheckAtDoor says whether a code lets its person in. It reads, and every role may.
func CheckAtDoor(ctx context.Context, db *pg.DB, actor timeline.Actor, asked Asked) (Found, error) {
	if strings.TrimSpace(asked.Code) == "" {
		return Found{}, problem.Invalid("code_missing", nil)
	}
	door, err := asked.door(ctx, db, actor)
	if err != nil {
		return Found{}, err
	}
	var found Found
	err = db.Read(ctx, []int64{door.OrganisationID}, func(tx pgx.Tx) error {
		here := seating.Sitting{}
		if asked.Sitting != "" {
			if here, err = door.Sitting(ctx, tx, asked.Sitting); err != nil {
				return err
			}
		}
		found, err = Look(ctx, tx, door.OrganisationID, here, asked.Code)
		return err
	})
	return found, err
}

// Door is whose codes are read at a door: an organisation's, and of which of its campaigns or events the sittings are.
type Door struct {
	OrganisationID int64
	Campaign       admission.Campaign
	Event          event.Event
}

// FindDoor finds the door of a campaign, or of an event.
func FindDoor(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, event string) (Door, error) {
	return Asked{Campaign: campaign, Event: event}.door(ctx, db, actor)
}

// Sitting finds the sitting at the door by its reference.
func (d Door) Sitting(ctx context.Context, tx pgx.Tx, reference string) (seating.Sitting, error) {
	if d.Event.ID != 0 {
		s, err := seating.FindEventSitting(ctx, tx, d.Event, reference)
		return s.Sitting, err
	}
	return seating.FindSitting(ctx, tx, d.Campaign, reference)
}

func (asked Asked) door(ctx context.Context, db *pg.DB, actor timeline.Actor) (d Door, err error) {
	switch {
	case asked.Campaign != "" && asked.Event != "":
		return d, problem.Invalid("door_of_both", nil)
	case asked.Campaign != "":
		d.Campaign, err = admission.FindCampaign(ctx, db, actor, asked.Campaign)
		d.OrganisationID = d.Campaign.OrganisationID
	case asked.Event != "":
		d.Event, err = event.Find(ctx, db, actor, asked.Event)
		d.OrganisationID = d.Event.OrganisationID
	case asked.Sitting != "":
		err = problem.Invalid("door_campaign_missing", problem.Facts{"sitting": asked.Sitting})
	case asked.Organisation == "" && seal.Looks(asked.Code):
		d.OrganisationID, err = signer(ctx, db, actor, asked.Code)
	default:
		var org account.Organisation
		org, err = account.FindOrganisation(ctx, db, actor, asked.Organisation)
		d.OrganisationID = org.ID
	}
	return d, err
}

// signer is the one of the actor's organisations that signed a code.
func signer(ctx context.Context, db *pg.DB, actor timeline.Actor, code string) (organisationID int64, err error) {
	ids, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return 0, err
	}
	err = db.Read(ctx, ids, func(tx pgx.Tx) error {
		ticket, err := openSigned(ctx, tx, ids, code)
		organisationID = ticket.OrganisationID
		return err
	})
	return organisationID, err
}

// reading is what a code says, signed or typed.
type reading struct {
	Ticket
	Signed bool
}

// Look reads a code, signed or short, at the door of a sitting (without an id: at any), and says what became of its seat.
func Look(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, text string) (Found, error) {
	return look(ctx, tx, organisationID, here, text, false)
}

// LookHolding does the same and holds what it judges: until the transaction ends nobody takes the seat back, and no reservation changes
// its state.
func LookHolding(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, text string) (Found, error) {
	return look(ctx, tx, organisationID, here, text, true)
}

func look(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, text string, holding bool) (Found, error) {
	code, err := readAny(ctx, tx, organisationID, here, text)
	if err == nil && holding {
		err = holdSeat(ctx, tx, organisationID, code.ClaimID)
	}
	if err != nil {
		return Found{}, err
	}
	found, err := becameOf(ctx, tx, organisationID, code)
	good := found.State == StateValid || found.State == StateDisputed
	found.Elsewhere = good && here.ID != 0 && here.ID != found.Seat.SittingID
	return found, err
}

func readAny(ctx context.Context, tx pgx.Tx, organisationID int64, here seating.Sitting, text string) (reading, error) {
	if seal.Looks(text) {
		return readSigned(ctx, tx, organisationID, text)
	}
	claim, ok := parseShort(text)
	switch { // it is not signed: it counts only for whoever stands at a known door
	case !ok:
		return reading{}, problem.Invalid("code_mistyped", problem.Facts{"code": text})
	case here.ID == 0:
		return reading{}, problem.Invalid("short_code_needs_sitting", nil)
	}
	return reading{Ticket: Ticket{OrganisationID: organisationID, ClaimID: claim, Revision: anyRevision}}, nil
}

func readSigned(ctx context.Context, tx pgx.Tx, organisationID int64, text string) (reading, error) {
	ticket, err := openSigned(ctx, tx, []int64{organisationID}, text)
	return reading{ticket, true}, err
}

// openSigned reads a code that one of the organisations signed.
func openSigned(ctx context.Context, tx pgx.Tx, organisations []int64, text string) (Ticket, error) {
	keys, err := PublicKeys(ctx, tx, organisations...)
	if err != nil {
		return Ticket{}, err
	}
	ticket, err := OpenCode(text, keys)
	if err != nil || !slices.Contains(organisations, ticket.OrganisationID) {
		return Ticket{}, problem.Refused("code_unknown", nil).Because(err)
	}
	return ticket, nil
}

// becameOf says what became of the seat of a code. A short one does not say of which revision the letter is: the last thing that was
// said of its claim counts, and where something else was said before, that is told, for only whoever reads the paper can see which of
// them it is.
func becameOf(ctx context.Context, tx pgx.Tx, organisationID int64, code reading) (found Found, err error) {
	letters, err := lookUp(ctx, tx, organisationID, []int64{code.ClaimID})
	switch {
	case err != nil:
	case len(letters) == 0:
		found, err = becameOfTicket(ctx, tx, organisationID, code)
	default:
		found, err = becameOfLetter(ctx, tx, letters[0], code)
	}
	found.Signed = code.Signed
	return found, err
}

func becameOfTicket(ctx context.Context, tx pgx.Tx, organisationID int64, code reading) (Found, error) {
	ticket, err := readTicket(ctx, tx, organisationID, code.ClaimID)
	if err != nil {
		return Found{}, err
	}
	if ticket == nil || code.Signed && !code.Bought {
		return Found{}, problem.Refused("code_unknown", nil)
	}
	return judgeTicket(ctx, tx, organisationID, *ticket, code)
}

func becameOfLetter(ctx context.Context, tx pgx.Tx, l Letter, code reading) (Found, error) {
	found, now, err := judge(ctx, tx, l, code.Revision)
	if err == nil && !code.Signed && found.State == StateValid {
		found.Older, err = saidOtherwise(ctx, tx, l, now)
	}
	return found, err
}

// holdSeat holds the claim of a code and the one that its person has now, with the reservation before them, as everybody locks them.
// A claim that is live is the one that they have now, so that of candidates no two live claims are ever held.
func holdSeat(ctx context.Context, tx pgx.Tx, organisationID, claimID int64) error {
	var reservation, candidate, exam *int64
	var line *int
	err := tx.QueryRow(ctx, `select reservation_id, line_number, candidate_id, exam_id from claim where organisation_id = $1 and id = $2`,
		organisationID, claimID).Scan(&reservation, &line, &candidate, &exam)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nobody's: that is said when it is judged
	}
	if err == nil && reservation != nil {
		_, err = tx.Exec(ctx, `select from reservation where organisation_id = $1 and id = $2 for share`, organisationID, reservation)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `select from claim where organisation_id = $1 and id = $2 for share`, organisationID, claimID)
	}
	if err == nil && candidate != nil {
		_, err = tx.Exec(ctx, `
select from claim where organisation_id = $1 and candidate_id = $2 and exam_id = $3 and released_at is null for share`, organisationID, candidate, exam)
	}
	if err == nil && reservation != nil {
		_, err = tx.Exec(ctx, `
select from claim where organisation_id = $1 and reservation_id = $2 and line_number = $3 and released_at is null for share`, organisationID, reservation, line)
	}
	if err != nil {
		return fmt.Errorf("hold what is judged at the door: %w", err)
	}
	return nil
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

// judge says what a letter is worth that was written for a claim under a revision of its sitting, and where its person sits now. What
// counts is what stands on the paper: who was moved and moved back holds a letter that is true again. A letter that is true of where the
// person sits now is valid; any other is replaced.
func judge(ctx context.Context, tx pgx.Tx, l Letter, revision int) (found Found, sits Letter, err error) {
	found = Found{State: l.State, Seat: l.doorSeat()}
	newest := l.State == StateValid && (revision == anyRevision || revision == l.Revision)
	if newest || l.State == StateReleased {
		return found, l, nil
	}
	now, err := seatNow(ctx, tx, l)
	if err != nil || now == nil { // not nil: the claim is live, or it was replaced by one that is
		return found, l, err
	}
	said, err := saidOf(ctx, tx, l, revision)
	if err != nil {
		return found, l, err
	}
	seat := now.doorSeat()
	if l.SittingID == now.SittingID && said.isTrueOf(*now) {
		return Found{State: StateValid, Seat: seat, Renewed: true}, *now, nil
	}
	found.State, found.Now = StateReplaced, &seat
	return found, *now, nil
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
