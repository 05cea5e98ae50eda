package doorlist

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/doc"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
)

// readLetters reads the letters of the people, in the order of their seats: as they are handed out.
func readLetters(ctx context.Context, tx pgx.Tx, c admission.Campaign, people []Person, claims []seating.LiveClaim) ([]letter.Letter, error) {
	claimOf := make(map[int64]int64, len(claims))
	for _, claim := range claims {
		claimOf[claim.CandidateID] = claim.ID
	}
	ids := make([]int64, len(people))
	for i, p := range people {
		ids[i] = claimOf[p.CandidateID]
	}
	return letter.Read(ctx, tx, c.OrganisationID, ids)
}

func (p Printed) writeLetters(w io.Writer) error {
	return letter.WritePDF(w, letter.Issued(p.Content.Letters, p.PrintedAt)...)
}

// undrawableLetters lists what concerns everybody once, and then what concerns one person.
func (p Printed) undrawableLetters() []Undrawable {
	var found []Undrawable
	for _, text := range doc.Lacking(p.Content.Heading.Room, p.Content.Heading.Centre) {
		found = append(found, Undrawable{Text: text})
	}
	for _, l := range p.Content.Letters {
		for _, text := range doc.Lacking(l.Name(), l.Reference, l.Seat) {
			found = append(found, Undrawable{Reference: l.Reference, Seat: l.Seat, Text: text})
		}
	}
	return found
}
