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

// TellApart says of two candidates that they are two people, though they look like one: no run and no import names them
// together again. It gives them in the order in which they were named; said twice it changes nothing.
func TellApart(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, other string) (two [2]Candidate, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return two, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return two, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		for i, named := range []string{reference, other} {
			if two[i], err = FindCandidate(ctx, tx, c, named); err != nil {
				return err
			}
		}
		if two[0].ID == two[1].ID {
			return problem.Invalid("told_apart_of_one", problem.Facts{"reference": two[0].Reference, "name": two[0].Name()})
		}
		tag, err := tx.Exec(ctx, `
insert into told_apart (organisation_id, campaign_id, candidate_id, other_id, actor) values ($1, $2, least($3::bigint, $4), greatest($3::bigint, $4), $5)
    on conflict do nothing`, c.OrganisationID, c.ID, two[0].ID, two[1].ID, actor.Name)
		if err != nil {
			return fmt.Errorf("tell two candidates apart: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		entry := func(one, other Candidate) timeline.Entry {
			return timeline.Entry{
				Kind: "candidates_told_apart", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: one.ID},
				Facts: map[string]string{"candidate": one.Name(), "reference": one.Reference, "other": other.Name(), "other_reference": other.Reference},
			}
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, entry(two[0], two[1]), entry(two[1], two[0]))
	})
	return two, err
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
