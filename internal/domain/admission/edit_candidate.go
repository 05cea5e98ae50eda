package admission

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Changes are what differs between two states of a file, in words: field → before, after.
type Changes map[string][2]string

// Edit alters a candidate's file under the campaign's lock and tells in words what differs; it
// refuses what a file must not hold.
type Edit func(ctx context.Context, tx pgx.Tx, c Campaign, filed *Filed) (Changes, error)

// EditCandidate corrects a candidate's file by hand. A seat that they have is kept, and so are
// registrations, status and the instant of filing, which have their own ways.
func EditCandidate(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, edit Edit) (Filed, Changes, error) {
	var after Filed
	var changes Changes
	if err := account.Allow(actor, account.File); err != nil {
		return after, nil, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return after, nil, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil {
			return err
		}
		candidate, err := FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		filed, err := FiledOf(ctx, tx, c, []int64{candidate.ID})
		if err != nil {
			return err
		}
		before := filed[candidate.ID]
		after = before
		if changes, err = edit(ctx, tx, c, &after); err != nil || len(changes) == 0 {
			return err
		}
		after.overwrite(before)
		return keepEdit(ctx, tx, actor, c, before, after, changes)
	})
	return after, changes, err
}

func keepEdit(ctx context.Context, tx pgx.Tx, actor timeline.Actor, c Campaign, before, after Filed, changes Changes) error {
	err := UpdateCandidates(ctx, tx, c, []Filed{after})
	if pg.Violates(err, "candidate_identity_key") {
		return problem.Refused("candidate_identity_taken", nil)
	}
	if err != nil {
		return err
	}
	if centreOf(before) != centreOf(after) || before.NeedsAccessible != after.NeedsAccessible {
		if err := Revise(ctx, tx, c); err != nil { // another sitting may be theirs now
			return err
		}
	}
	was, is := map[string]string{}, map[string]string{}
	for field, change := range changes {
		was[field], is[field] = change[0], change[1]
	}
	return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
		Kind: "candidate_edited", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: after.ID},
		Facts: map[string]any{"candidate": after.Name(), "reference": after.Reference, "before": was, "after": is},
	})
}

// centreOf is the centre chosen; 0: any.
func centreOf(f Filed) int64 {
	if f.CentreID == nil {
		return 0
	}
	return *f.CentreID
}
