package convocation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// mostHappened is how much of a candidate's timeline their file shows.
const mostHappened = 200

// File is everything about one candidate: who they are, where they stand and why, what they paid, and what happened.
type File struct {
	Explanation
	Campaign     admission.Campaign
	Filed        admission.Filed // without addresses for whoever may not read them
	Centre       string          // chosen; empty: any
	Centres      []string
	Statuses     []admission.Status
	Payments     []payment.Made
	Seats        []FoundSeat
	Sittings     []seating.Sitting // to come, of the exams for which they are registered: where a hand may put them
	Happened     []timeline.Happened
	HappenedMore bool // earlier things are left out
}

// ReadFile reads the file of a candidate.
func ReadFile(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (f File, err error) {
	if f.Explanation, err = Explain(ctx, db, actor, campaign, reference); err != nil {
		return f, err
	}
	if f.Campaign, err = admission.FindCampaign(ctx, db, actor, campaign); err != nil {
		return f, err
	}
	if f.Payments, err = payment.List(ctx, db, actor, campaign, reference); err != nil {
		return f, err
	}
	err = db.Read(ctx, []int64{f.Campaign.OrganisationID}, func(tx pgx.Tx) error { return f.read(ctx, tx) })
	if err == nil && !account.May(actor, account.Reach) {
		f.hideAddresses()
	}
	return f, err
}

func (f *File) read(ctx context.Context, tx pgx.Tx) error {
	org, id := f.Campaign.OrganisationID, f.Candidate.ID
	filed, err := admission.FiledOf(ctx, tx, f.Campaign, []int64{id})
	if err != nil {
		return err
	}
	f.Filed = filed[id]
	if f.Statuses, err = admission.Statuses(ctx, tx, f.Campaign); err != nil {
		return err
	}
	one := FoundCandidates{Candidates: []FoundCandidate{{ID: id}}}
	seats := search{tx: tx, c: f.Campaign, found: &one}
	if err := seats.complete(ctx); err != nil {
		return err
	}
	f.Seats = one.Candidates[0].Seats
	rows, err := tx.Query(ctx, `select name, id = $2 from centre where organisation_id = $1 order by name collate natural_order, name`, org, f.Filed.CentreID)
	if err != nil {
		return fmt.Errorf("list the centres: %w", err)
	}
	var name string
	var chosen *bool
	if _, err = pgx.ForEachRow(rows, []any{&name, &chosen}, func() error {
		f.Centres = append(f.Centres, name)
		if chosen != nil && *chosen {
			f.Centre = name
		}
		return nil
	}); err != nil {
		return fmt.Errorf("list the centres: %w", err)
	}
	if err := f.readSittings(ctx, tx); err != nil {
		return err
	}
	f.Happened, f.HappenedMore, err = timeline.OfCandidate(ctx, tx, org, id, mostHappened)
	return err
}

// readSittings lists the sittings to come of the exams for which the candidate is registered.
func (f *File) readSittings(ctx context.Context, tx pgx.Tx) error {
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	all, err := seating.Sittings(ctx, tx, f.Campaign)
	if err != nil {
		return err
	}
	registered := map[string]bool{}
	for _, exam := range f.Exams {
		registered[exam.Exam] = true
	}
	for _, sitting := range all {
		if registered[sitting.Exam] && sitting.StartsAt.After(now) {
			f.Sittings = append(f.Sittings, sitting)
		}
	}
	return nil
}

// hideAddresses leaves out what only some roles may read, also where the file says it in words.
func (f *File) hideAddresses() {
	f.Filed.Email, f.Filed.Phone, f.Candidate.Email, f.Candidate.Phone = "", "", "", ""
	for i := range f.Exams {
		f.Exams[i].Telling.Sentences = nil
	}
	for i := range f.Happened {
		for _, facts := range []string{"before", "after", "changes"} {
			delete(f.Happened[i].Facts, facts)
		}
	}
}
