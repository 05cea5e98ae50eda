package convocation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

// scope is what a target comes to: its exams, and the one sitting if it names one. Only those whom
// that sitting could take are in its scope; the others are no concern of the run.
type scope struct {
	exams    []seating.Exam
	sitting  string // reference; empty: all to come
	centreID int64  // of that sitting; 0: all centres
}

func (s scope) examIDs() []int64 {
	ids := make([]int64, len(s.exams))
	for i, exam := range s.exams {
		ids[i] = exam.ID
	}
	return ids
}

func scopeOf(ctx context.Context, db *pg.DB, c admission.Campaign, target Target) (found scope, err error) {
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if found.exams, err = seating.Exams(ctx, tx, c, target.Exam); err != nil || target.Sitting == "" {
			return err
		}
		sitting, err := seating.FindSitting(ctx, tx, c, target.Sitting)
		if err != nil {
			return err
		}
		if err := seating.CheckToCome(ctx, tx, sitting); err != nil {
			return err
		}
		found.sitting, found.centreID = sitting.Reference, sitting.CentreID
		for _, exam := range found.exams {
			if exam.ID == sitting.ExamID {
				found.exams = []seating.Exam{exam}
				return nil
			}
		}
		return problem.Invalid("sitting_of_other_exam", problem.Facts{"sitting": sitting.Reference, "exam": sitting.Exam})
	})
	return found, err
}

// walkIndexes lets the statements of this transaction walk the filing order by its index and look
// the rest up row by row, whatever the statistics say: right after an import there are none, and
// the planner then believes that a campaign of 200,000 has five candidates, which it reads and
// sorts whole for every chunk.
func walkIndexes(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
set local enable_sort = off; set local enable_incremental_sort = off; set local enable_seqscan = off;
set local enable_bitmapscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`)
	if err != nil {
		return fmt.Errorf("prepare the chunk: %w", err)
	}
	return nil
}

// applicant is one eligible candidate as a chunk reads them.
type applicant struct {
	CandidateID     int64
	FiledAt         time.Time
	Reference       string
	FamilyName      string
	GivenName       string
	CentreID        int64
	NeedsAccessible bool
	HasEmail        bool
	HasPhone        bool
}

func (a applicant) name() string {
	return admission.Candidate{FamilyName: a.FamilyName, GivenName: a.GivenName}.Name()
}

// mark is a place in the filing order: who comes after it was not looked at yet.
type mark struct {
	filedAt time.Time
	id      int64
}

// readEligible reads, in filing order, the next candidates who are to be called: after the mark,
// and, with a centre, those whom it could take.
func readEligible(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID, centreID int64, after mark, limit int) ([]applicant, error) {
	rows, err := tx.Query(ctx, `
select t.candidate_id, t.filed_at, t.reference, t.family_name, t.given_name, coalesce(t.centre_id, 0) as centre_id,
       t.needs_accessible, t.has_email, t.has_phone
  from standing($1, $2) t
 where t.exam_id = $3 and (t.filed_at, t.candidate_id) > ($4, $5) and ($6 = 0 or t.centre_id is null or t.centre_id = $6)
   and t.opens_payment and t.paid and t.claim_id is null
 order by t.filed_at, t.candidate_id limit $7`, pg.PlanAnew, c.OrganisationID, c.ID, examID, after.filedAt, after.id, centreID, limit)
	if err != nil {
		return nil, fmt.Errorf("read who is eligible: %w", err)
	}
	var a applicant
	applicants := make([]applicant, 0, limit)
	_, err = pgx.ForEachRow(rows, []any{
		&a.CandidateID, &a.FiledAt, &a.Reference, &a.FamilyName, &a.GivenName, &a.CentreID,
		&a.NeedsAccessible, &a.HasEmail, &a.HasPhone,
	}, func() error { applicants = append(applicants, a); return nil })
	if err != nil {
		return nil, fmt.Errorf("read who is eligible: %w", err)
	}
	return applicants, nil
}

// undecided leaves out those whom the run has refused already: a look from the first filer meets
// them again.
func (e *execution) undecided(ctx context.Context, tx pgx.Tx, exam seating.Exam, applicants []applicant) ([]applicant, error) {
	items := make([]string, len(applicants))
	for i, a := range applicants {
		items[i] = item(a.CandidateID, exam.ID)
	}
	refused, err := run.Standing(ctx, tx, e.campaign.OrganisationID, e.runID, run.ListRefused, items)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(applicants, func(a applicant) bool { return refused[item(a.CandidateID, exam.ID)] }), nil
}

func item(candidateID, examID int64) string {
	return strconv.FormatInt(candidateID, 10) + "/" + strconv.FormatInt(examID, 10)
}
