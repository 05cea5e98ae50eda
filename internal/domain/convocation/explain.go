package convocation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/payment"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Explanation is why a candidate has a seat or none, and what would change it.
type Explanation struct {
	Candidate admission.Candidate
	Status    admission.Status
	Standing  payment.Standing
	Exams     []ExamExplanation // by exam code; none: not registered for any
	slug      string            // of the campaign
	called    bool
}

// ExamExplanation is the state of one exam: each fact is a sentence (explain_<code>).
type ExamExplanation struct {
	Exam     string
	Seated   bool
	Sentence Saying
	Remedy   Saying // what would change it; empty code: nothing needs to
	Doubt    Saying // why somebody must decide whether the seat is kept; empty code: no doubt
	// Elsewhere says that the seat is at another centre than the chosen one; empty code: it is not.
	Elsewhere Saying
	Telling   Telling
}

// Saying is a sentence to be: its code and its facts.
type Saying struct {
	Code  string
	Facts problem.Facts
}

// Explain tells, for every exam of a candidate, why they are seated or why not, and how they were told. Who is eligible
// and has no seat is given their turn in a rehearsal of the next run, so the answer is what that
// run would do at this moment. When very many are served before them, the rehearsal does not come to
// them (mostRehearsed), and the answer says that.
func Explain(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (Explanation, error) {
	return explain(ctx, db, actor, campaign, reference, mostRehearsed)
}

func explain(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string, most int) (Explanation, error) {
	var explanation Explanation
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return explanation, err
	}
	explanation.slug = c.Slug
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if explanation.Candidate, err = admission.FindCandidate(ctx, tx, c, reference); err != nil {
			return err
		}
		if err := explanation.readCalled(ctx, tx, c); err != nil {
			return err
		}
		exams, err := registeredExams(ctx, tx, c, explanation.Candidate)
		if err != nil {
			return err
		}
		known, err := notice.KnownBy(ctx, tx, c.OrganisationID, c.ID, explanation.Candidate.ID)
		if err != nil {
			return err
		}
		for _, exam := range exams {
			told, zone, err := explanation.explainExam(ctx, tx, c, exam)
			if err != nil {
				return err
			}
			of, written := known[exam.ID]
			explanation.explainTelling(c, &told, of, written, zone)
			explanation.Exams = append(explanation.Exams, told)
		}
		return explanation.rehearseTurns(ctx, tx, c, most)
	})
	return explanation, err
}

func registeredExams(ctx context.Context, tx pgx.Tx, c admission.Campaign, candidate admission.Candidate) ([]seating.Exam, error) {
	all, err := seating.Exams(ctx, tx, c, "")
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select exam_id from registration where organisation_id = $1 and candidate_id = $2`,
		c.OrganisationID, candidate.ID)
	if err != nil {
		return nil, fmt.Errorf("read the registrations: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read the registrations: %w", err)
	}
	registered := map[int64]bool{}
	for _, id := range ids {
		registered[id] = true
	}
	var exams []seating.Exam
	for _, exam := range all {
		if registered[exam.ID] {
			exams = append(exams, exam)
		}
	}
	return exams, nil
}

// explainExam tells what stands already; without a sentence, the candidate is waiting for a run. The zone is that in which
// instants are said: the sitting's, else the organisation's.
func (x *Explanation) explainExam(ctx context.Context, tx pgx.Tx, c admission.Campaign, exam seating.Exam) (
	told ExamExplanation, zone string, err error,
) {
	told.Exam, zone = exam.Code, c.TimeZone
	claim, seated, err := seating.ClaimOf(ctx, tx, c.OrganisationID, x.Candidate.ID, exam.ID)
	if err != nil {
		return told, zone, err
	}
	if seated {
		told.Seated = true
		sitting, err := seating.SittingByID(ctx, tx, c, claim.SittingID)
		if err != nil {
			return told, zone, err
		}
		told.Sentence, zone = seatedSaying(sitting, claim), sitting.Zone
		if why := x.notCalled(); why.Code != "" {
			told.Doubt = Saying{"explain_doubt_" + strings.TrimPrefix(why.Code, "explain_"), why.Facts}
		}
		return told, zone, x.explainCentre(ctx, tx, c, &told, sitting, claim.ID)
	}
	if why := x.notCalled(); why.Code != "" {
		told.Sentence = why
		told.Remedy = Saying{"explain_remedy_" + strings.TrimPrefix(why.Code, "explain_"), why.Facts}
	}
	return told, zone, nil
}

func seatedSaying(sitting seating.Sitting, claim seating.LiveClaim) Saying {
	facts := problem.Facts{"exam": sitting.Exam, "sitting": sitting.Reference, "place": sitting.Place(), "starts_at": sitting.Begins(), "seat": claim.Label()}
	switch {
	case claim.SeatNumber == nil:
		return Saying{"explain_seated_at_door", facts}
	case claim.ByHand:
		return Saying{"explain_seated_by_hand", facts}
	}
	return Saying{"explain_seated", facts}
}

// readCalled reads whether a run calls the candidate, and from what that follows.
func (x *Explanation) readCalled(ctx context.Context, tx pgx.Tx, c admission.Campaign) (err error) {
	if x.Status, err = admission.StatusOf(ctx, tx, c, x.Candidate); err != nil {
		return err
	}
	if x.Standing, err = payment.StandingOf(ctx, tx, c, x.Candidate.ID); err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `select called from candidacy($1, $2) where candidate_id = $3`, c.OrganisationID, c.ID, x.Candidate.ID).Scan(&x.called)
	if err != nil {
		return fmt.Errorf("read whether the candidate is called: %w", err)
	}
	return nil
}

// Called tells whether a run calls the candidate for what they have no seat at.
func (x *Explanation) Called() bool { return x.called }

// notCalled says why the candidate is not called from their status or payments; empty: they are.
func (x *Explanation) notCalled() Saying {
	facts := problem.Facts{
		"status": x.Status.Label, "code": i18n.ShellWord(x.Status.Code), "campaign": x.slug, "advice": x.Status.Advice,
		"owed": x.Standing.Owed, "paid": x.Standing.Paid, "fee": x.Standing.Fee,
	}
	switch {
	case x.called:
		return Saying{}
	case !x.Status.OpensPayment:
		return Saying{"explain_status_closed", facts}
	}
	return Saying{"explain_owes", facts}
}

// mostRehearsed is how many turns are rehearsed to explain one candidate, over all exams: more take
// longer than whoever asks will wait.
const mostRehearsed = 50_000

// rehearseTurns gives the candidate their turn for the exams at which they wait for a run. It
// rehearses every exam before them as well, as the run will: what somebody gets at one decides what
// clashes at the next.
func (x *Explanation) rehearseTurns(ctx context.Context, tx pgx.Tx, c admission.Campaign, most int) error {
	waiting := map[string]*ExamExplanation{}
	for i := range x.Exams {
		if x.Exams[i].Sentence.Code == "" {
			waiting[x.Exams[i].Exam] = &x.Exams[i]
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	exams, err := seating.ExamsInTurn(ctx, tx, c, "")
	if err != nil {
		return err
	}
	turns := 0
	err = rehearse(ctx, tx, c, scope{exams: exams}, func(r rehearsal) bool {
		turns++
		if told := waiting[r.exam.Code]; told != nil && !r.pending && r.applicant.CandidateID == x.Candidate.ID {
			told.Sentence, told.Remedy = r.sayings(c)
			delete(waiting, r.exam.Code)
		}
		return len(waiting) > 0 && turns < most
	})
	for _, told := range waiting { // the rehearsal did not come to them
		told.Sentence = Saying{"explain_many_before", problem.Facts{"exam": told.Exam, "turns": turns}}
		told.Remedy = Saying{"explain_remedy_many_before", problem.Facts{"campaign": c.Slug}}
	}
	return err
}

func (r rehearsal) sayings(c admission.Campaign) (sentence, remedy Saying) {
	if reason := string(r.miss.Reason); reason != "" {
		return Saying{"refusal_" + reason, r.facts}, Saying{"explain_remedy_" + reason, r.facts}
	}
	return Saying{"explain_next_run", problem.Facts{
		"exam": r.exam.Code, "sitting": r.choice.Sitting.Reference, "place": r.choice.Sitting.Place(),
		"starts_at": r.choice.Sitting.Begins(), "seat": r.choice.SeatLabel,
	}}, Saying{"explain_remedy_next_run", problem.Facts{"campaign": c.Slug}}
}
