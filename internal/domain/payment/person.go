package payment

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Person is a candidate as the counter sees them.
type Person struct {
	Campaign  admission.Campaign
	Candidate admission.Candidate
	Status    admission.Status // says whether money may be taken
	Standing  Standing
	Made      []Made // payments, oldest first
}

// AtCampaign finds the campaign whose counter it is, for whoever takes money there.
func AtCampaign(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (admission.Campaign, error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return admission.Campaign{}, err
	}
	return admission.FindCampaign(ctx, db, actor, slug)
}

// AtCounter reads what the counter must know of a candidate: what they owe, what they paid, and whether money may be taken.
func AtCounter(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string) (person Person, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return Person{}, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return Person{}, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		candidate, err := admission.FindCandidate(ctx, tx, c, reference)
		if err != nil {
			return err
		}
		person, err = readPerson(ctx, tx, c, candidate)
		return err
	})
	return person, err
}

func readPerson(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate) (Person, error) {
	person := Person{Campaign: c, Candidate: candidate}
	statuses, err := admission.Statuses(ctx, tx, c)
	if err != nil {
		return person, err
	}
	for _, status := range statuses {
		if status.ID == candidate.StatusID {
			person.Status = status
		}
	}
	if person.Standing, err = StandingOf(ctx, tx, c, candidate.ID); err != nil {
		return person, err
	}
	person.Made, err = MadeBy(ctx, tx, c, candidate)
	return person, err
}
