package admission

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Registration says that a candidate sits an exam.
type Registration struct {
	CandidateID int64
	ExamID      int64
}

// register adds the registrations that are not there yet.
func register(ctx context.Context, tx pgx.Tx, c Campaign, candidateIDs, examIDs []int64) error {
	if len(candidateIDs) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
insert into registration (organisation_id, candidate_id, exam_id, campaign_id)
select $1, w.candidate_id, w.exam_id, $2 from unnest($3::bigint[], $4::bigint[]) w(candidate_id, exam_id)
    on conflict do nothing`, c.OrganisationID, c.ID, candidateIDs, examIDs)
	if err != nil {
		return fmt.Errorf("register the candidates: %w", err)
	}
	return nil
}

// Unregister takes registrations back. Whether somebody was ever called for the exam is the
// caller's question, asked under the campaign's lock.
func Unregister(ctx context.Context, tx pgx.Tx, c Campaign, gone []Registration) error {
	if len(gone) == 0 {
		return nil
	}
	candidates, exams := make([]int64, len(gone)), make([]int64, len(gone))
	for i, r := range gone {
		candidates[i], exams[i] = r.CandidateID, r.ExamID
	}
	_, err := tx.Exec(ctx, `
delete from registration r using unnest($2::bigint[], $3::bigint[]) w(candidate_id, exam_id)
 where r.organisation_id = $1 and r.candidate_id = w.candidate_id and r.exam_id = w.exam_id`, c.OrganisationID, candidates, exams)
	if err != nil {
		return fmt.Errorf("take the registrations back: %w", err)
	}
	return nil
}
