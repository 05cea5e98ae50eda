package seating

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
)

// Claim is a seat that somebody was just given.
type Claim struct {
	ID int64
	Choice
}

// Miss is somebody who was given none, and why.
type Miss struct {
	CandidateID int64
	Reason      Reason
	With        string // what clashes
	Always      bool   // it does so with every sitting, full ones too; false: others are full, and places there would help
}

// Outcome of an assignment. Every applicant is in exactly one of its lists.
type Outcome struct {
	Claims        []Claim
	Misses        []Miss
	AlreadySeated []int64 // candidates who were given a seat by somebody else meanwhile
}

// attempts is how often an applicant who lost a seat to somebody faster is given another choice.
const attempts = 3

// Assign gives each applicant, in their order, the first seat that the rules allow. Under the
// campaign's lock every choice holds; without it the unique indexes refuse what collides, and the
// losers choose again. It takes no lock itself: see admission.Lock.
func Assign(ctx context.Context, tx pgx.Tx, c admission.Campaign, runID, examID int64, o *Openings, applicants []Applicant) (Outcome, error) {
	var out Outcome
	if err := readBusy(ctx, tx, c, examID, applicants); err != nil {
		return out, err
	}
	for attempt := 1; len(applicants) > 0; attempt++ {
		o.Forget()
		choices, misses, err := o.choose(ctx, tx, c.OrganisationID, applicants)
		if err != nil {
			return out, err
		}
		out.Misses = append(out.Misses, misses...)
		claims, err := insertClaims(ctx, tx, c.OrganisationID, runID, examID, choices)
		if err != nil {
			return out, err
		}
		out.Claims = append(out.Claims, claims...)
		if len(claims) == len(choices) {
			return out, nil
		}
		seated, losers, err := sortLosers(ctx, tx, c.OrganisationID, examID, applicants, choices, claims)
		if err != nil {
			return out, err
		}
		out.AlreadySeated = append(out.AlreadySeated, seated...)
		if attempt == attempts {
			for _, loser := range losers {
				out.Misses = append(out.Misses, Miss{CandidateID: loser.CandidateID, Reason: ReasonSeatTaken})
			}
			return out, nil
		}
		applicants = losers
		o.reopen(choices)
	}
	return out, nil
}

// Propose chooses seats without taking them, for a trial. What it proposes stays taken in the
// openings, so that the next call goes on from there.
func (o *Openings) Propose(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, applicants []Applicant) (Outcome, error) {
	var out Outcome
	if err := readBusy(ctx, tx, c, examID, applicants); err != nil {
		return out, err
	}
	choices, misses, err := o.choose(ctx, tx, c.OrganisationID, applicants)
	for _, choice := range choices {
		out.Claims = append(out.Claims, Claim{Choice: choice})
	}
	out.Misses = misses
	return out, err
}

// Judge tells, of applicants who were given no place, why they have none as things are now, in their order; without a
// reason, there is one for them. It takes nothing and adds to what the applicants are known to be busy with.
func (o *Openings) Judge(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, applicants []Applicant) ([]Miss, error) {
	if err := readBusy(ctx, tx, c, examID, applicants); err != nil {
		return nil, err
	}
	misses := make([]Miss, len(applicants))
	for i, applicant := range applicants {
		_, miss, unknown := o.find(applicant)
		for unknown != nil {
			if err := o.read(ctx, tx, c.OrganisationID, unknown); err != nil {
				return nil, err
			}
			_, miss, unknown = o.find(applicant)
		}
		miss.CandidateID = applicant.CandidateID
		misses[i] = miss
	}
	return misses, nil
}

// choose places the applicants one after the other, reading free seats as they are needed.
func (o *Openings) choose(ctx context.Context, tx pgx.Tx, organisationID int64, applicants []Applicant) ([]Choice, []Miss, error) {
	choices := make([]Choice, 0, len(applicants))
	var misses []Miss
	for _, applicant := range applicants {
		choice, miss, unknown := o.place(applicant)
		for unknown != nil {
			if err := o.read(ctx, tx, organisationID, unknown); err != nil {
				return nil, nil, err
			}
			choice, miss, unknown = o.place(applicant)
		}
		if miss.Reason != "" {
			misses = append(misses, miss)
			continue
		}
		choices = append(choices, choice)
	}
	return choices, misses, nil
}

// reopen withdraws the belief that a sitting is full where a choice was refused: that choice may
// have been what filled it.
func (o *Openings) reopen(choices []Choice) {
	chosen := map[int64]bool{}
	for _, choice := range choices {
		chosen[choice.Sitting.ID] = true
	}
	for i := range o.sittings {
		if chosen[o.sittings[i].ID] {
			o.full[i] = false
		}
	}
	o.all.first = 0
	for _, in := range o.byCentre {
		in.first = 0
	}
}

// insertClaims takes the chosen seats in one statement. A choice that collides with a seat or a
// person that was seated meanwhile is left out of what it returns. Collisions are rare, and
// looking out for them costs a fifth of the speed: so the first try does not.
func insertClaims(ctx context.Context, tx pgx.Tx, organisationID, runID, examID int64, choices []Choice) (claims []Claim, err error) {
	if len(choices) == 0 {
		return nil, nil
	}
	err = pg.Within(ctx, tx, func(tx pgx.Tx) error {
		claims, err = insertClaimsBy(ctx, tx, insertClaimsPlainly, organisationID, runID, examID, choices)
		return err
	})
	if pg.Duplicates(err) {
		return insertClaimsBy(ctx, tx, insertClaimsThatFit, organisationID, runID, examID, choices)
	}
	return claims, err
}

// The clock is read once, not by the default of each row.
const (
	insertClaimsInto = `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, run_id, claimed_at)
select $1, w.sitting_id, w.places, nullif(w.seat_number, 0), nullif(w.seat_label, ''), $2, w.candidate_id, nullif($3, 0), (select clock())
  from unnest($4::bigint[], $5::int[], $6::int[], $7::text[], $8::bigint[])
       w(sitting_id, places, seat_number, seat_label, candidate_id)`
	insertClaimsPlainly = insertClaimsInto + ` returning id, candidate_id`
	// The bare form of on conflict covers both unique indexes; the form with a target would raise
	// on the other one.
	insertClaimsThatFit = insertClaimsInto + ` on conflict do nothing returning id, candidate_id`
)

func insertClaimsBy(ctx context.Context, tx pgx.Tx, statement string, organisationID, runID, examID int64, choices []Choice) ([]Claim, error) {
	candidates, sittings := make([]int64, len(choices)), make([]int64, len(choices))
	places, numbers, labels := make([]int, len(choices)), make([]int, len(choices)), make([]string, len(choices))
	of := make(map[int64]int, len(choices))
	for i, choice := range choices {
		candidates[i], sittings[i], places[i] = choice.CandidateID, choice.Sitting.ID, choice.Sitting.Places
		numbers[i], labels[i] = choice.SeatNumber, choice.SeatLabel
		of[choice.CandidateID] = i
	}
	rows, err := tx.Query(ctx, statement, organisationID, examID, runID, sittings, places, numbers, labels, candidates)
	if err != nil {
		return nil, fmt.Errorf("take the seats: %w", err)
	}
	claims := make([]Claim, 0, len(choices))
	var id, candidateID int64
	_, err = pgx.ForEachRow(rows, []any{&id, &candidateID}, func() error {
		claims = append(claims, Claim{ID: id, Choice: choices[of[candidateID]]})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take the seats: %w", err)
	}
	return claims, nil
}

// sortLosers finds, by difference, whom the insert refused: those who sit somewhere by now, and
// those whose seat went to another.
func sortLosers(ctx context.Context, tx pgx.Tx, organisationID, examID int64, applicants []Applicant, choices []Choice, claims []Claim) (seated []int64, losers []Applicant, err error) {
	lost := make(map[int64]bool, len(choices)-len(claims))
	for _, choice := range choices {
		lost[choice.CandidateID] = true
	}
	for _, claim := range claims {
		delete(lost, claim.CandidateID)
	}
	ids := make([]int64, 0, len(lost))
	for id := range lost {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, `select candidate_id from claim
 where organisation_id = $1 and candidate_id = any($2) and exam_id = $3 and released_at is null`, organisationID, ids, examID)
	if err != nil {
		return nil, nil, fmt.Errorf("find who is seated by now: %w", err)
	}
	if seated, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, nil, fmt.Errorf("find who is seated by now: %w", err)
	}
	for _, id := range seated {
		delete(lost, id)
	}
	for _, applicant := range applicants {
		if lost[applicant.CandidateID] {
			losers = append(losers, applicant)
		}
	}
	return seated, losers, nil
}

// readBusy learns when the applicants already sit at other exams of the campaign. A campaign with
// one exam asks nothing. Claims are looked up applicant by applicant: as a join, all claims of the
// other exams were compared with all applicants of each chunk.
func readBusy(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, applicants []Applicant) error {
	ids, of := make([]int64, len(applicants)), make(map[int64]int, len(applicants))
	for i, applicant := range applicants {
		ids[i], of[applicant.CandidateID] = applicant.CandidateID, i
	}
	rows, err := tx.Query(ctx, `
select k.candidate_id, s.starts_at, s.ends_at, e.code || ' ' || s.reference
  from unnest($4::bigint[]) w(candidate_id)
 cross join lateral (select c.candidate_id, c.sitting_id, c.exam_id from claim c
                      where c.organisation_id = $1 and c.candidate_id = w.candidate_id and c.released_at is null and c.exam_id <> $3 offset 0) k
 cross join lateral (select starts_at, ends_at, reference from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select code from exam where organisation_id = $1 and id = k.exam_id offset 0) e
 where exists (select from exam e where e.organisation_id = $1 and e.campaign_id = $2 and e.id <> $3)`,
		pg.PlanAnew, c.OrganisationID, c.ID, examID, ids)
	if err != nil {
		return fmt.Errorf("read the other sittings of the applicants: %w", err)
	}
	var id int64
	var busy Interval
	_, err = pgx.ForEachRow(rows, []any{&id, &busy.From, &busy.Until, &busy.Sitting}, func() error {
		applicant := &applicants[of[id]]
		applicant.Busy = append(applicant.Busy, busy)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the other sittings of the applicants: %w", err)
	}
	return nil
}
