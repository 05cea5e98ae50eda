package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Pair is two candidates of whom somebody said whether they are two people.
type Pair struct {
	Two     [2]Candidate // in the order in which they were named
	Changed bool         // false: it was so before
	Alike   bool         // as they are filed now, they would be named as perhaps one
}

// TellApart says of two candidates that they are two people, though they look like one: no run and no import names them
// together again. Said twice it changes nothing.
func TellApart(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, other string) (Pair, error) {
	return sayOfPair(ctx, db, actor, slug, [2]string{reference, other}, "candidates_told_apart", `
insert into told_apart (organisation_id, campaign_id, candidate_id, other_id, actor) values ($1, $2, least($3::bigint, $4), greatest($3::bigint, $4), $5)
    on conflict do nothing`, actor.Name)
}

// DoubtAgain takes back what TellApart said: they are named again for as long as they look like one person.
func DoubtAgain(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, other string) (Pair, error) {
	return sayOfPair(ctx, db, actor, slug, [2]string{reference, other}, "candidates_doubted_again", `
delete from told_apart where organisation_id = $1 and campaign_id = $2 and candidate_id = least($3::bigint, $4) and other_id = greatest($3::bigint, $4)`)
}

// sayOfPair does it with a statement that takes organisation, campaign and the two, and what else it is given.
func sayOfPair(
	ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, named [2]string, kind timeline.Kind, statement string, more ...any,
) (pair Pair, err error) {
	if err := account.Allow(actor, account.File); err != nil {
		return pair, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return pair, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		two := &pair.Two
		for i, reference := range named {
			if two[i], err = FindCandidate(ctx, tx, c, reference); err != nil {
				return err
			}
		}
		if two[0].ID == two[1].ID {
			return problem.Invalid("told_apart_of_one", problem.Facts{"reference": two[0].Reference, "name": two[0].Name()})
		}
		filed, err := FiledOf(ctx, tx, c, []int64{two[0].ID, two[1].ID})
		if err != nil {
			return err
		}
		pair.Alike = PerhapsSame(filed[two[0].ID].Person(), filed[two[1].ID].Person())
		tag, err := tx.Exec(ctx, statement, append([]any{c.OrganisationID, c.ID, two[0].ID, two[1].ID}, more...)...)
		if err != nil {
			return fmt.Errorf("say whether two candidates are two people: %w", err)
		}
		if pair.Changed = tag.RowsAffected() > 0; !pair.Changed {
			return nil
		}
		entry := func(one, other Candidate) timeline.Entry {
			return timeline.Entry{
				Kind: kind, Subject: timeline.Subject{CampaignID: c.ID, CandidateID: one.ID},
				Facts: map[string]string{"candidate": one.Name(), "reference": one.Reference, "other": other.Name(), "other_reference": other.Reference},
			}
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, entry(two[0], two[1]), entry(two[1], two[0]))
	})
	return pair, err
}

// ToldApart are the candidates of whom somebody said that they are two people: candidate → the others.
type ToldApart map[int64][]int64

// Are tells whether two were told apart.
func (t ToldApart) Are(one, other int64) bool { return slices.Contains(t[one], other) }

// ReadToldApart reads those of a campaign. They are few: each pair is a person's word.
func ReadToldApart(ctx context.Context, tx pgx.Tx, c Campaign) (ToldApart, error) {
	rows, err := tx.Query(ctx, `select candidate_id, other_id from told_apart where organisation_id = $1 and campaign_id = $2`, c.OrganisationID, c.ID)
	if err != nil {
		return nil, fmt.Errorf("read who was told apart: %w", err)
	}
	apart := ToldApart{}
	var one, other int64
	_, err = pgx.ForEachRow(rows, []any{&one, &other}, func() error {
		apart[one], apart[other] = append(apart[one], other), append(apart[other], one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read who was told apart: %w", err)
	}
	return apart, nil
}
