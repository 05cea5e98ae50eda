package doorlist

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

// readContent reads what would be printed now, on the consistent moment of tx.
func readContent(ctx context.Context, tx pgx.Tx, c admission.Campaign, s seating.Sitting, document Document) (Content, error) {
	content := Content{}
	claims, err := seating.ClaimsAt(ctx, tx, c.OrganisationID, s.ID)
	if err != nil {
		return content, err
	}
	if len(claims) == 0 {
		return content, problem.Refused("nobody_to_print", problem.Facts{
			"sitting": s.Reference, "place": s.Place(), "starts_at": s.Begins(), "campaign": c.Slug,
		})
	}
	if content.Heading, err = readHeading(ctx, tx, c, s); err != nil {
		return content, err
	}
	if content.People, content.ByName, err = readPeople(ctx, tx, c, claims); err != nil {
		return content, err
	}
	if document == Letters {
		content.onlyAsLetters()
		content.Letters, err = readLetters(ctx, tx, c, content.People, claims)
	}
	return content, err
}

// onlyAsLetters leaves out what no letter shows, so that a change of it makes no new version of them.
func (c *Content) onlyAsLetters() {
	c.Heading.Places = 0
	for i := range c.People {
		c.People[i].Needs, c.People[i].Born, c.People[i].Letter = "", "", ""
	}
}

func readHeading(ctx context.Context, tx pgx.Tx, c admission.Campaign, s seating.Sitting) (Heading, error) {
	h := Heading{
		Locale: c.Locale, Campaign: c.Name, Exam: s.Exam, Sitting: s.Reference, Centre: s.Centre, Room: s.Room, Zone: s.Zone,
		StartsAt: s.StartsAt.UTC(), EndsAt: s.EndsAt.UTC(), SeatsAtDoor: s.SeatsAtDoor,
	}
	usable, err := seating.Usable(ctx, tx, c.OrganisationID, []seating.Sitting{s})
	if err != nil {
		return h, err
	}
	h.Places = usable[s.ID].Count
	if err := tx.QueryRow(ctx, `select name from organisation where id = $1`, c.OrganisationID).Scan(&h.Organisation); err != nil {
		return h, fmt.Errorf("read the organisation's name: %w", err)
	}
	return h, nil
}

// people are read by the keys of their claims, so that who is on a list is decided by
// seating alone; the package comment says how they are sorted. Names that are sorted to one place are alike: a reader
// does not tell them apart.
const people = `
with person as (
  select c.id, c.reference, c.family_name, c.given_name, c.needs, c.needs_accessible, coalesce(w.seat, '') as seat, w.seat_number,
         case when count(*) over (partition by {same}) > 1
              then coalesce(to_char(c.birth_on, 'YYYY-MM-DD'), '') else '' end as born,
         row_number() over (order by {by_name}) as by_name
    from unnest($2::bigint[], $3::int[], $4::text[]) w(candidate_id, seat_number, seat)
   cross join lateral (select id, reference, family_name, given_name, needs, needs_accessible, birth_on
                         from candidate where organisation_id = $1 and id = w.candidate_id offset 0) c)
select id, reference, family_name, given_name, needs, needs_accessible, seat, born, by_name
  from person
 order by {by_seat}, seat_number, by_name`

func readPeople(ctx context.Context, tx pgx.Tx, c admission.Campaign, claims []seating.LiveClaim) ([]Person, []int, error) {
	candidates, numbers, labels := make([]int64, len(claims)), make([]*int, len(claims)), make([]*string, len(claims))
	letters := make(map[int64]string, len(claims))
	for i, claim := range claims {
		letters[claim.CandidateID] = letter.Letter{ClaimID: claim.ID}.Short()
		candidates[i], numbers[i], labels[i] = claim.CandidateID, claim.SeatNumber, claim.SeatLabel
	}
	names, err := admission.OrderOfNames(c.Locale, "c")
	if err != nil {
		return nil, nil, err
	}
	sorted := strings.NewReplacer("{same}", names.Same, "{by_name}", names.By, "{by_seat}", venue.OrderOfLabels("seat"))
	rows, err := tx.Query(ctx, sorted.Replace(people), c.OrganisationID, candidates, numbers, labels)
	if err != nil {
		return nil, nil, fmt.Errorf("read who sits at the sitting: %w", err)
	}
	list, byName := make([]Person, 0, len(claims)), make([]int, len(claims))
	var p Person
	var place int
	into := []any{&p.CandidateID, &p.Reference, &p.FamilyName, &p.GivenName, &p.Needs, &p.Accessible, &p.Seat, &p.Born, &place}
	_, err = pgx.ForEachRow(rows, into, func() error {
		byName[place-1] = len(list)
		p.Letter = letters[p.CandidateID]
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read who sits at the sitting: %w", err)
	}
	if len(list) != len(claims) { // the foreign key of claim forbids it
		return nil, nil, fmt.Errorf("read who sits at the sitting: %d of %d claims have a candidate", len(list), len(claims))
	}
	return list, byName, nil
}
