package convocation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// mostOthers bounds how many are named as perhaps the same person as one.
const mostOthers = 5

// nameTwice lists those who may be one person under two references and both stand for an exam of the run. A list of
// candidates keeps both, because only people can tell; nobody may be seated twice in silence.
func (e *execution) nameTwice(ctx context.Context, tx pgx.Tx, examIDs []int64) error {
	twice, err := admission.PerhapsTwice(ctx, tx, e.campaign)
	if err != nil || len(twice) == 0 {
		return err
	}
	people, err := e.standingOf(ctx, tx, slices.Collect(maps.Keys(twice)), examIDs)
	if err != nil {
		return err
	}
	byID := map[int64]standingForAll{}
	for _, p := range people {
		byID[p.CandidateID] = p
	}
	var named []run.Refusal
	for _, p := range people {
		var others, exams []string
		for _, other := range twice[p.CandidateID] {
			o := byID[other.ID]
			shared := p.with(o)
			if len(shared) == 0 || len(others) == mostOthers {
				continue
			}
			others = append(others, other.Name()+" ("+other.Reference+")")
			for _, exam := range shared {
				if !slices.Contains(exams, exam) {
					exams = append(exams, exam)
				}
			}
		}
		if len(others) > 0 {
			slices.Sort(exams)
			named = append(named, run.Refusal{
				List: run.ListAttention, Item: fmt.Sprintf("candidate %d perhaps_twice", p.CandidateID), CandidateID: p.CandidateID,
				Reference: p.Reference, Name: p.name(), Reason: "perhaps_twice", Facts: problem.Facts{"others": others, "exams": exams},
			})
		}
	}
	for part := range slices.Chunk(named, e.options.part) {
		if err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, part...); err != nil {
			return fmt.Errorf("name who is perhaps there twice: %w", err)
		}
	}
	return nil
}

// standingForAll is where somebody stands for the exams of the run that they may sit: those that they are registered for,
// while their status lets them pay, and those at which they have a seat all the same.
type standingForAll struct {
	CandidateID int64
	Reference   string
	FamilyName  string
	GivenName   string
	Exams       []string
	Called      []bool // of each exam, whether they are called or seated
}

func (s standingForAll) name() string { return admission.FullName(s.FamilyName, s.GivenName) }

// with lists the exams at which two may both be seated: one of the two is called or seated already.
func (s standingForAll) with(other standingForAll) (shared []string) {
	for i, exam := range s.Exams {
		if at := slices.Index(other.Exams, exam); at >= 0 && (s.Called[i] || other.Called[at]) {
			shared = append(shared, exam)
		}
	}
	return shared
}

// standingOf looks people, registrations, claims and exams up one by one, whatever the statistics say: as joins, everybody of
// the campaign was compared with everybody who was asked for.
func (e *execution) standingOf(ctx context.Context, tx pgx.Tx, candidateIDs, examIDs []int64) ([]standingForAll, error) {
	rows, err := tx.Query(ctx, `
select c.candidate_id, c.reference, c.family_name, c.given_name, array_agg(x.code order by x.code) as exams,
       array_agg(c.called or r.seated order by x.code) as called
  from unnest($3::bigint[]) w(candidate_id)
 cross join lateral (select * from candidacy($1, $2) k where k.candidate_id = w.candidate_id offset 0) c
 cross join lateral (
       select r.exam_id, (select k.id from claim k
                           where k.organisation_id = $1 and k.candidate_id = c.candidate_id and k.exam_id = r.exam_id
                             and k.released_at is null limit 1) is not null as seated
         from registration r where r.organisation_id = $1 and r.candidate_id = c.candidate_id offset 0) r
 cross join lateral (select code from exam where organisation_id = $1 and id = r.exam_id offset 0) x
 where r.exam_id = any($4) and (c.opens_payment or r.seated)
 group by c.filed_at, c.candidate_id, c.reference, c.family_name, c.given_name
 order by c.filed_at, c.candidate_id`, e.campaign.OrganisationID, e.campaign.ID, candidateIDs, examIDs)
	if err != nil {
		return nil, fmt.Errorf("look where they stand who are perhaps there twice: %w", err)
	}
	people, err := pgx.CollectRows(rows, pgx.RowToStructByName[standingForAll])
	if err != nil {
		return nil, fmt.Errorf("look where they stand who are perhaps there twice: %w", err)
	}
	return people, nil
}
