package seating

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// SetSeatsAtDoor says whether a sitting only promises places, and seats are given on the day. It is
// refused while people hold places there of the other kind: what they were told would not be true
// any more.
func SetSeatsAtDoor(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, atDoor bool) (s Sitting, changed bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return s, false, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return s, false, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := admission.Lock(ctx, tx, c); err != nil {
			return err
		}
		if s, err = FindSitting(ctx, tx, c, reference); err != nil || s.SeatsAtDoor == atDoor {
			return err
		}
		if err := CheckToCome(ctx, tx, s); err != nil {
			return err
		}
		if err := checkOneKind(ctx, tx, c.OrganisationID, s, atDoor); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update sitting set seats_at_door = $3 where organisation_id = $1 and id = $2`, c.OrganisationID, s.ID, atDoor); err != nil {
			return fmt.Errorf("say where seats are given: %w", err)
		}
		s.SeatsAtDoor, changed = atDoor, true
		if err := admission.Revise(ctx, tx, c); err != nil { // a run under way gives seats there otherwise from now on
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "seats_at_door_set", Subject: timeline.Subject{CampaignID: c.ID, SittingID: s.ID},
			Facts: map[string]any{"sitting": s.Reference, "seats_at_door": atDoor},
		})
	})
	return s, changed, err
}

// checkOneKind refuses, with the names, to change how seats are given while somebody holds one.
func checkOneKind(ctx context.Context, tx pgx.Tx, organisationID int64, s Sitting, atDoor bool) error {
	facts := problem.Facts{"sitting": s.Reference, "place": s.Place()}
	const holders = `
select concat_ws(' ', c.family_name, nullif(c.given_name, ''), '(' || c.reference || ')')
  from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.sitting_id = $2 and k.released_at is null and (k.seat_number is not null) = $3
 order by c.filed_at, c.id`
	if atDoor {
		return refuseNamed(ctx, tx, "seats_numbered_already", facts, holders, organisationID, s.ID, true)
	}
	return refuseNamed(ctx, tx, "places_promised_already", facts, holders, organisationID, s.ID, false)
}
