// Package letter decides what one person is told of their seat: the same facts on paper, in an
// e-mail, in a short message and in a calendar, in the reader's language. It reads the state again
// before anything is told, and says whether it is still true and still to come. When and how often
// something is sent is decided in notice; who prints which version of a bundle, by whoever prints.
package letter

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/base/i18n"
	"usher/internal/base/seal"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
)

// Letter is what one person is told of one seat. It holds everything that is drawn: kept as JSON, it
// can be drawn again and says the same, whatever became of the seat.
type Letter struct {
	OrganisationID  int64     `json:"organisation_id"`
	ClaimID         int64     `json:"claim_id"`
	CampaignID      int64     `json:"campaign_id"`
	CandidateID     int64     `json:"candidate_id"`
	ExamID          int64     `json:"exam_id"`
	SittingID       int64     `json:"sitting_id"`
	Organisation    string    `json:"organisation"`
	Campaign        string    `json:"campaign"`
	Instructions    string    `json:"instructions,omitempty"` // what the school adds
	FamilyName      string    `json:"family_name"`
	GivenName       string    `json:"given_name"`
	Reference       string    `json:"reference"`
	Locale          string    `json:"locale"`
	Email           string    `json:"-"` // not on paper
	Phone           string    `json:"-"`
	NeedsAccessible bool      `json:"needs_accessible,omitempty"`
	Exam            string    `json:"exam"`
	ExamAlone       bool      `json:"exam_alone,omitempty"` // the campaign has no other: its code says nothing
	Sitting         string    `json:"sitting"`
	Centre          string    `json:"centre"`
	Room            string    `json:"room"`
	Zone            string    `json:"zone"` // of the centre: IANA name
	StartsAt        time.Time `json:"starts_at"`
	EndsAt          time.Time `json:"ends_at"`
	Seat            string    `json:"seat"` // the label that was told; empty: given at the door
	Revision        int       `json:"revision"`
	State           State     `json:"state"`
	Code            string    `json:"code"`              // signed: what the QR code holds
	Contact         string    `json:"contact,omitempty"` // e-mail address to which the organisation's people turn; empty: none
	Installation    string    `json:"-"`                 // tells the entries of calendars from those of other installations
	LinkEpoch       int       `json:"-"`                 // from which Link is derived
	Link            string    `json:"-" db:"-"`          // of the candidate's own page: names it under CandidatePath, and cannot be guessed

	// Logo is drawn on all letters of the organisation that are drawn together; the first one of a
	// reading carries it.
	Logo []byte `json:"logo,omitempty"`
	// IssuedAt is set by whoever tells or prints, and is no fact of the seat.
	IssuedAt time.Time `json:"-"`
}

// State is what became of a claim.
type State string

// The states.
const (
	StateValid    State = "valid"
	StateReplaced State = "replaced" // the person sits elsewhere now
	StateReleased State = "released" // the person has no seat for this exam any more
)

// Name is the family name, then the given one, as lists are sorted.
func (l Letter) Name() string { return admission.FullName(l.FamilyName, l.GivenName) }

// Begins is the start in the centre's zone.
func (l Letter) Begins() i18n.Instant { return i18n.Instant{At: l.StartsAt, Zone: l.Zone} }

// Ends is the end in the centre's zone.
func (l Letter) Ends() i18n.Instant { return i18n.Instant{At: l.EndsAt, Zone: l.Zone} }

// Paper is the name of the exam where it says something.
func (l Letter) Paper() string {
	if l.ExamAlone {
		return ""
	}
	return l.Exam
}

// Issued gives the letters the instant that is printed on them.
func Issued(letters []Letter, at time.Time) []Letter {
	dated := make([]Letter, len(letters))
	for i, l := range letters {
		l.IssuedAt = at.UTC()
		dated[i] = l
	}
	return dated
}

// ByHand are the texts of who sits where that the typefaces cannot show. In their place the paper leaves a line on which
// they are written by hand: never a box, and nobody is without a letter. What the school says beside that has gaps: see
// drawable.
func (l Letter) ByHand() []string {
	return doc.Lacking(l.Name(), l.Reference, l.Centre, l.Room, l.Seat)
}

// Gap stands on paper for letters that the typefaces lack.
const Gap = doc.Gap

// Gaps are the letters of a text in whose place letters on paper show a gap, each once; empty: they show it whole.
func Gaps(text string) string { return string(doc.Missing(text)) }

// drawable is the letter as it can be drawn: a gap shows where the names of the school, of its campaign and its exam, or what
// the school adds have letters that the typefaces lack. Nobody is left without a letter for an emoji in a greeting.
func (l Letter) drawable() (drawn Letter, gaps bool) {
	drawn = l
	if l.ExamAlone { // then it is not drawn
		drawn.Exam = ""
	}
	for _, text := range []*string{&drawn.Organisation, &drawn.Campaign, &drawn.Exam, &drawn.Instructions, &drawn.Contact} {
		whole := doc.Instead(*text, doc.Gap)
		gaps, *text = gaps || whole != *text, whole
	}
	return drawn, gaps
}

//go:embed read.sql
var readLetters string

// Read reads what is to be told of the claims, in the order asked. In a transaction that may write it
// makes the organisation's key when there is none yet; one that only reads needs Prepare before it.
func Read(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs []int64) ([]Letter, error) {
	if len(claimIDs) == 0 {
		return nil, nil
	}
	key, err := signingKey(ctx, tx, organisationID)
	if err != nil {
		return nil, err
	}
	letters, err := read(ctx, tx, organisationID, claimIDs)
	if err != nil {
		return nil, err
	}
	links := linkKey(key)
	for i := range letters {
		if letters[i].Code, err = letters[i].seal(key); err != nil {
			return nil, err
		}
		letters[i].Link = linkOf(links, organisationID, letters[i].CandidateID, letters[i].LinkEpoch)
	}
	letters[0].Logo, err = account.Logo(ctx, tx, organisationID)
	return letters, err
}

func read(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs []int64) ([]Letter, error) {
	letters, err := lookUp(ctx, tx, organisationID, claimIDs)
	if err == nil && len(letters) != len(claimIDs) {
		err = fmt.Errorf("read what is to be told: %d of %d claims are there", len(letters), len(claimIDs))
	}
	return letters, err
}

// lookUp reads those of the claims that are there.
func lookUp(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs []int64) ([]Letter, error) {
	rows, err := tx.Query(ctx, readLetters, organisationID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("read what is to be told: %w", err)
	}
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Letter])
	if err != nil {
		return nil, fmt.Errorf("read what is to be told: %w", err)
	}
	for i := range letters {
		letters[i].StartsAt, letters[i].EndsAt = letters[i].StartsAt.UTC(), letters[i].EndsAt.UTC()
	}
	return letters, nil
}

func (l Letter) seal(key seal.Key) (string, error) {
	ticket := Ticket{OrganisationID: l.OrganisationID, SittingID: l.SittingID, ClaimID: l.ClaimID, Revision: l.Revision}
	text, err := key.Seal(ticket.pack())
	if err != nil {
		return "", fmt.Errorf("sign the letter of claim %d: %w", l.ClaimID, err)
	}
	return text, nil
}
