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
	exams    []seating.Exam // in the order in which they are seated
	sitting  string         // reference; empty: all to come
	centreID int64          // of that sitting; 0: all centres
}

// centres are those whose people the target concerns; nil: all.
func (s scope) centres() []int64 {
	if s.centreID == 0 {
		return nil
	}
	return []int64{s.centreID}
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
		found, err = scopeIn(ctx, tx, c, target)
		return err
	})
	return found, err
}

func scopeIn(ctx context.Context, tx pgx.Tx, c admission.Campaign, target Target) (found scope, err error) {
	if found.exams, err = seating.ExamsInTurn(ctx, tx, c, target.Exam); err != nil || target.Sitting == "" {
		return found, err
	}
	sitting, err := seating.FindSitting(ctx, tx, c, target.Sitting)
	if err != nil {
		return found, err
	}
	if err := seating.CheckToCome(ctx, tx, sitting); err != nil {
		return found, err
	}
	found.sitting, found.centreID = sitting.Reference, sitting.CentreID
	for _, exam := range found.exams {
		if exam.ID == sitting.ExamID {
			found.exams = []seating.Exam{exam}
			return found, nil
		}
	}
	return found, problem.Invalid("sitting_of_other_exam", problem.Facts{"sitting": sitting.Reference, "exam": sitting.Exam})
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

func (a applicant) mark() mark { return mark{a.FiledAt, a.CandidateID} }

func (a applicant) name() string {
	return admission.Candidate{FamilyName: a.FamilyName, GivenName: a.GivenName}.Name()
}

// mark is a place in the filing order: who comes after it was not looked at yet.
type mark struct {
	filedAt time.Time
	id      int64
}

// previous is the place right before it.
func (m mark) previous() mark { return mark{m.filedAt, m.id - 1} }

// before tells whether this mark comes earlier in the filing order.
func (m mark) before(other mark) bool {
	return m.filedAt.Before(other.filedAt) || m.filedAt.Equal(other.filedAt) && m.id < other.id
}

// readEligible reads, in filing order, the next candidates who are to be called: after the mark,
// and, unless centres is nil, those whom one of the centres could take.
func readEligible(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, centres []int64, after mark, limit int) ([]applicant, error) {
	return readApplicants(ctx, tx, c, examID, centres, after, limit, false)
}

// readLeft reads the same where nearly everybody has a seat by now: it looks for that first, and spares
// itself what else would be looked up.
func readLeft(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, centres []int64, after mark, limit int) ([]applicant, error) {
	return readApplicants(ctx, tx, c, examID, centres, after, limit, true)
}

func readApplicants(ctx context.Context, tx pgx.Tx, c admission.Campaign, examID int64, centres []int64, after mark, limit int, left bool) ([]applicant, error) {
	rows, err := tx.Query(ctx, `
select t.candidate_id, t.filed_at, t.reference, t.family_name, t.given_name, coalesce(t.centre_id, 0) as centre_id,
       t.needs_accessible, t.has_email, t.has_phone
  from standing($1, $2) t
 where t.exam_id = $3 and (t.filed_at, t.candidate_id) > ($4, $5) and ($6::bigint[] is null or t.centre_id is null or t.centre_id = any($6))
   and t.eligible
   and (not $8 or (select k.id from claim k where k.organisation_id = $1 and k.candidate_id = t.candidate_id and k.exam_id = $3
                      and k.released_at is null limit 1) is null)
 order by t.filed_at, t.candidate_id limit $7`, pg.PlanAnew, c.OrganisationID, c.ID, examID, after.filedAt, after.id, centres, limit, left)
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

// eligibleInSets are those who are eligible ($3: for which exams; $4: whom which centres could take, null: any), as standing
// says it of one after the other, for a statement that goes through everybody (pg.JoinSets).
const eligibleInSets = `
  from candidacy($1, $2) c
  join registration r on r.organisation_id = $1 and r.campaign_id = $2 and r.candidate_id = c.candidate_id
 where c.called and r.exam_id = any($3) and ($4::bigint[] is null or c.centre_id is null or c.centre_id = any($4))
   and not exists (select from claim k where k.organisation_id = $1 and k.candidate_id = c.candidate_id and k.exam_id = r.exam_id
                      and k.released_at is null)`

// refusedBefore gives the reasons of those whom the run has refused already.
func (e *execution) refusedBefore(ctx context.Context, tx pgx.Tx, exam seating.Exam, applicants []applicant) (map[string]string, error) {
	items := make([]string, len(applicants))
	for i, a := range applicants {
		items[i] = item(a.CandidateID, exam.ID)
	}
	return run.Standing(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, run.ListRefused, items)
}

// undecided leaves out those whom the run has refused already: a look from the first filer meets
// them again.
func (e *execution) undecided(ctx context.Context, tx pgx.Tx, exam seating.Exam, applicants []applicant) ([]applicant, error) {
	refused, err := e.refusedBefore(ctx, tx, exam, applicants)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(applicants, func(a applicant) bool { return refused[item(a.CandidateID, exam.ID)] != "" }), nil
}

func item(candidateID, examID int64) string {
	return strconv.FormatInt(candidateID, 10) + "/" + strconv.FormatInt(examID, 10)
}
