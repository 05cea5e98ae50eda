// Package convocation decides who is called to an exam: those registered who have paid, in a
// status that opens payment, in the order in which they filed. Seats are chosen in seating;
// whoever cannot be seated is named here, with the reason.
//
// Locks for order, indexes for truth: each chunk of a run takes the campaign's row, reads who is
// eligible and what is free, and writes claims, timeline, notices, refusals and progress in one
// transaction. Nothing is sent inside it. Eligibility is the checkpoint: a run that died is
// simply run again.
package convocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Task is the name of convocation runs.
const Task = "convoke"

// Bounds of a run.
const (
	ChunkSize    = 5_000 // candidates a transaction: well under a second under the campaign's lock
	chunkRetries = 5     // how often a chunk that collided with another transaction is repeated
	mostLooks    = 50    // how often a run looks again from the first filer because something changed
)

// Target is what is to be convoked.
type Target struct {
	Campaign string // slug
	Exam     string // code; empty: all exams of the campaign
	Sitting  string // reference; empty: all sittings to come
}

// Progress is how far a run is.
type Progress struct {
	Done  int // seated or refused so far
	Total int // eligible without a seat when it began
}

// Options of a run.
type Options struct {
	Total    int // how many a forecast found eligible; 0: it was not asked
	Progress func(Progress)
	// What the tests of this package set: step is called at each named step, so that a test can end
	// the process or let others act there; chunk is the size of one; lock takes the campaign's row.
	step  func(name string)
	chunk int
	lock  func(context.Context, pgx.Tx, admission.Campaign) (admission.Revision, error)
}

func (o Options) at(step string) {
	if o.step != nil {
		o.step(step)
	}
}

// withDefaults fills in what a run outside of a test never chooses.
func (o Options) withDefaults() Options {
	if o.chunk == 0 {
		o.chunk = ChunkSize
	}
	if o.lock == nil {
		o.lock = admission.Lock
	}
	return o
}

// counters are what a run keeps of its progress, with every chunk.
type counters struct {
	Total         int `json:"total"`
	Seated        int `json:"seated"`
	AlreadySeated int `json:"already_seated"`
	Refused       int `json:"refused"`
	ToldNow       int `json:"told_now"` // had no address when they were seated, and have one now
}

// execution is one run under way.
type execution struct {
	db       *pg.DB
	actor    timeline.Actor
	campaign admission.Campaign
	scope    scope
	runID    int64
	counters counters
	options  Options
}

// Convoke seats everybody who is eligible and writes the report, which it returns the id of. It
// may be run at any time, any number of times and by several at once: nobody is seated or told
// twice. Whoever cannot be seated is refused by name; that is no error.
func Convoke(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target, options Options) (runID int64, err error) {
	campaign, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return 0, err
	}
	within, err := scopeOf(ctx, db, campaign, target)
	if err != nil {
		return 0, err
	}
	runID, err = run.Start(ctx, db, actor, campaign.OrganisationID, Task, campaign.ID, target)
	if err != nil {
		return 0, err
	}
	e := &execution{
		db: db, actor: actor, campaign: campaign, scope: within, runID: runID, options: options.withDefaults(),
		counters: counters{Total: options.Total},
	}
	e.options.at("started")
	if err := e.work(ctx); err != nil {
		// The run is marked even when its context was cancelled: what it did stands, and it says so.
		if failed := run.Fail(context.WithoutCancel(ctx), db, campaign.OrganisationID, runID, e.counters, err); failed != nil {
			return runID, errors.Join(err, failed)
		}
		return runID, err
	}
	return runID, nil
}

func (e *execution) work(ctx context.Context) error {
	for _, exam := range e.scope.exams {
		if err := e.convokeExam(ctx, exam); err != nil {
			return fmt.Errorf("convoke exam %s: %w", exam.Code, err)
		}
	}
	return e.finish(ctx)
}

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

// pass is one look through the filing order of an exam.
type pass struct {
	exam     seating.Exam
	openings *seating.Openings
	revision admission.Revision
	known    bool // the revision is
	after    mark
	again    bool // an earlier look may have refused those whom this one meets
	fresh    bool // this look met nobody who was not decided
	revised  int  // how often it began anew because of a revision, since somebody was seated
	settled  bool // it does not begin anew any more
}

// begin starts another look from the first filer.
func (p *pass) begin() { p.after, p.again, p.fresh = mark{}, true, true }

// convokeExam takes chunk after chunk until a look from the first filer meets nobody who is
// neither seated nor refused by this run. When seats came free or somebody may sit elsewhere
// (the campaign was revised), those whom the run refused are looked at again: nobody may be
// refused for lack of seats while a later filer gets one. A campaign that never comes to rest gets
// one last look that does not begin anew, so that a run always ends.
func (e *execution) convokeExam(ctx context.Context, exam seating.Exam) error {
	p := &pass{exam: exam, fresh: true}
	for looks := 1; ; {
		done, err := e.chunk(ctx, p, e.options.chunk)
		if err != nil {
			return err
		}
		last := p.settled
		if !last && (looks == mostLooks || p.revised == mostLooks) {
			p.begin()
			p.settled = true
			continue
		}
		switch {
		case !done:
			continue
		case p.fresh:
			return e.rank(ctx, exam)
		case last:
			if err := e.refuseRest(ctx, p); err != nil {
				return err
			}
			return e.rank(ctx, exam)
		}
		looks++
		p.begin()
	}
}

// chunk seats the next candidates in one transaction; it is repeated when it collides with
// another, and row by row when the database refuses it for another reason, so that only the row
// at fault is refused.
func (e *execution) chunk(ctx context.Context, p *pass, limit int) (done bool, err error) {
	before := *p
	for attempt := 0; ; attempt++ {
		var next pass
		var gained counters
		next, gained, done, err = e.tryChunk(ctx, before, limit)
		if err == nil {
			*p = next
			e.counters = gained
			e.report()
			return done, nil
		}
		before.openings = nil // what it believed of full sittings may come from what was rolled back
		if pg.MayRepeat(err) && attempt < chunkRetries {
			continue
		}
		var at *fault
		switch {
		case pg.Interrupted(err):
			return false, err
		case limit > 1:
			*p = before
			return e.rowByRow(ctx, p, limit)
		case errors.As(err, &at):
			*p = before
			return false, e.setAside(ctx, p, at)
		}
		return false, err
	}
}

// rowByRow does a refused chunk again one candidate at a time.
func (e *execution) rowByRow(ctx context.Context, p *pass, limit int) (done bool, err error) {
	for range limit {
		if done, err = e.chunk(ctx, p, 1); err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// fault is what the database said to one candidate.
type fault struct {
	applicant applicant
	cause     error
}

func (f *fault) Error() string { return f.cause.Error() }
func (f *fault) Unwrap() error { return f.cause }

// setAside refuses the candidate at whom a chunk of one failed. When the campaign was revised
// meanwhile it looks again first, as the chunk did before it failed: else the next chunk would take
// this refusal back and fail at the same candidate for ever.
func (e *execution) setAside(ctx context.Context, p *pass, at *fault) error {
	incident := fmt.Sprintf("%d-%d", e.runID, at.applicant.CandidateID)
	slog.ErrorContext(ctx, "a candidate could not be seated", "run", e.runID, "incident", incident, "error", at.cause)
	next, gained := *p, e.counters
	err := e.db.Tx(ctx, []int64{e.campaign.OrganisationID}, func(tx pgx.Tx) error {
		revision, err := e.options.lock(ctx, tx, e.campaign)
		if err != nil {
			return err
		}
		if err := e.lookAgain(ctx, tx, &next, &gained, revision); err != nil {
			return err
		}
		if next.after == p.after { // it did not begin anew: go on behind them
			next.after = mark{at.applicant.FiledAt, at.applicant.CandidateID}
		}
		next.again, next.fresh = true, false
		gained.Refused++
		if err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.runID,
			refusalOf(at.applicant, p.exam, "fault", problem.Facts{"incident": incident})); err != nil {
			return err
		}
		return run.Keep(ctx, tx, e.campaign.OrganisationID, e.runID, gained)
	})
	if err == nil {
		*p, e.counters = next, gained
	}
	return err
}

func (e *execution) tryChunk(ctx context.Context, p pass, limit int) (next pass, gained counters, done bool, err error) {
	c := e.campaign
	gained = e.counters
	err = e.db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if err := walkIndexes(ctx, tx); err != nil {
			return err
		}
		revision, err := e.options.lock(ctx, tx, c)
		if err != nil {
			return err
		}
		e.options.at("locked")
		if err := e.lookAgain(ctx, tx, &p, &gained, revision); err != nil {
			return err
		}
		applicants, err := readEligible(ctx, tx, c, p.exam.ID, e.scope.centreID, p.after, limit)
		if err != nil {
			return err
		}
		if done = len(applicants) == 0; done {
			return nil
		}
		last := applicants[len(applicants)-1]
		p.after = mark{last.FiledAt, last.CandidateID}
		if p.again {
			if applicants, err = e.undecided(ctx, tx, p.exam, applicants); err != nil || len(applicants) == 0 {
				return err
			}
		}
		p.fresh = false
		if err := e.seat(ctx, tx, &p, &gained, applicants); err != nil {
			if len(applicants) == 1 {
				return &fault{applicants[0], err}
			}
			return err
		}
		if err := run.Keep(ctx, tx, c.OrganisationID, e.runID, gained); err != nil {
			return err
		}
		e.options.at("kept")
		return nil
	})
	if err == nil {
		e.options.at("committed")
	}
	return p, gained, done, err
}

// lookAgain begins anew from the first filer when the campaign was revised since the last chunk: it
// takes back whom it refused. A settled pass only learns the openings anew.
func (e *execution) lookAgain(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, revision admission.Revision) error {
	if p.openings != nil && p.revision == revision {
		return nil
	}
	openings, err := seating.Open(ctx, tx, e.campaign, p.exam.ID, e.scope.sitting)
	if err != nil {
		return err
	}
	if p.known && p.revision != revision && !p.settled {
		taken, err := run.Withdraw(ctx, tx, e.campaign.OrganisationID, e.runID, p.exam.ID, run.ListRefused)
		if err != nil {
			return err
		}
		gained.Refused -= taken
		p.begin()
		p.again = false
		p.revised++
	}
	p.openings, p.revision, p.known = openings, revision, true
	return nil
}

// seat gives the applicants their seats and writes what follows from it.
func (e *execution) seat(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, applicants []applicant) error {
	c := e.campaign
	of := make(map[int64]applicant, len(applicants))
	wanted := make([]seating.Applicant, len(applicants))
	for i, a := range applicants {
		of[a.CandidateID] = a
		wanted[i] = seating.Applicant{CandidateID: a.CandidateID, CentreID: a.CentreID, NeedsAccessible: a.NeedsAccessible}
	}
	outcome, err := seating.Assign(ctx, tx, c, e.runID, p.exam.ID, p.openings, wanted)
	if err != nil {
		return err
	}
	e.options.at("claimed")
	if err := recordSeated(ctx, tx, c, e.actor, e.runID, outcome.Claims, of); err != nil {
		return err
	}
	e.options.at("recorded")
	if err := writeNotices(ctx, tx, c, outcome.Claims, of); err != nil {
		return err
	}
	e.options.at("noticed")
	refusals := make([]run.Refusal, 0, len(outcome.Misses))
	for _, miss := range outcome.Misses {
		refusals = append(refusals, refusalOf(of[miss.CandidateID], p.exam, string(miss.Reason), missFacts(p.exam, miss)))
	}
	if err := run.Refuse(ctx, tx, c.OrganisationID, e.runID, refusals...); err != nil {
		return err
	}
	e.options.at("refused")
	if len(outcome.Claims) > 0 {
		p.revised = 0
	}
	gained.Seated += len(outcome.Claims)
	gained.Refused += len(outcome.Misses)
	return nil
}

func missFacts(exam seating.Exam, miss seating.Miss) problem.Facts {
	facts := problem.Facts{"exam": exam.Code}
	if miss.With != "" {
		facts["with"] = miss.With
	}
	return facts
}

func refusalOf(a applicant, exam seating.Exam, reason string, facts problem.Facts) run.Refusal {
	return run.Refusal{
		List: run.ListRefused, Item: item(a.CandidateID, exam.ID), CandidateID: a.CandidateID, ExamID: exam.ID,
		Reference: a.Reference, Name: a.name(), Reason: reason, Facts: facts,
	}
}

// SeatFacts are what the timeline keeps of a seat that was given: what its holder was told.
type SeatFacts struct {
	Candidate string `json:"candidate"`
	Seat      string `json:"seat"` // the label; empty: given at the door
	Reason    string `json:"reason,omitempty"`
	SittingFacts
}

// SittingFacts are those that everybody at a sitting shares.
type SittingFacts struct {
	Exam     string       `json:"exam"`
	Sitting  string       `json:"sitting"`
	Centre   string       `json:"centre"`
	Room     string       `json:"room"`
	StartsAt i18n.Instant `json:"starts_at"`
}

func seatFacts(candidate string, s *seating.Sitting, label string) SeatFacts {
	return SeatFacts{Candidate: candidate, Seat: label, SittingFacts: sittingFacts(s)}
}

func sittingFacts(s *seating.Sitting) SittingFacts {
	return SittingFacts{Exam: s.Exam, Sitting: s.Reference, Centre: s.Centre, Room: s.Room, StartsAt: s.Begins()}
}

func recordSeated(ctx context.Context, tx pgx.Tx, c admission.Campaign, actor timeline.Actor, runID int64, claims []seating.Claim, of map[int64]applicant) error {
	entries := make([]timeline.Entry, len(claims))
	shared := map[int64]sharedFacts{}
	for i, claim := range claims {
		common, known := shared[claim.Sitting.ID]
		if !known {
			var err error
			if common, err = shareFacts(claim.Sitting); err != nil {
				return err
			}
			shared[claim.Sitting.ID] = common
		}
		facts, err := common.of(of[claim.CandidateID].name(), claim.SeatLabel)
		if err != nil {
			return err
		}
		entries[i] = timeline.Entry{
			Kind: KindSeated,
			Subject: timeline.Subject{
				CampaignID: c.ID, CandidateID: claim.CandidateID, SittingID: claim.Sitting.ID,
				ClaimID: claim.ID, RunID: runID,
			},
			Facts: facts,
		}
	}
	return timeline.Record(ctx, tx, c.OrganisationID, actor, entries...)
}

// sharedFacts is the end of the JSON of SeatFacts that everybody at a sitting shares: written once
// for a sitting, because a run writes thousands of them.
type sharedFacts []byte

func shareFacts(s *seating.Sitting) (sharedFacts, error) {
	text, err := json.Marshal(sittingFacts(s))
	if err != nil {
		return nil, fmt.Errorf("write the facts of sitting %s: %w", s.Reference, err)
	}
	return text[1:], nil // without its opening brace
}

func (f sharedFacts) of(candidate, seat string) (json.RawMessage, error) {
	own, err := json.Marshal(struct {
		Candidate string `json:"candidate"`
		Seat      string `json:"seat"`
	}{candidate, seat})
	if err != nil {
		return nil, fmt.Errorf("write the facts of a seat: %w", err)
	}
	own[len(own)-1] = ',' // in the place of its closing brace
	return append(own, f...), nil
}

func writeNotices(ctx context.Context, tx pgx.Tx, c admission.Campaign, claims []seating.Claim, of map[int64]applicant) error {
	notices := make([]notice.Notice, len(claims))
	for i, claim := range claims {
		a := of[claim.CandidateID]
		notices[i] = notice.Notice{
			Kind: notice.KindConvocation, ClaimID: claim.ID, CandidateID: claim.CandidateID,
			On: claim.Sitting.Day(), Revision: claim.Sitting.Revision, HasEmail: a.HasEmail, HasPhone: a.HasPhone,
		}
	}
	return notice.Write(ctx, tx, c.OrganisationID, c.ID, c.NoticesWait, notices...)
}

// The kinds of timeline rows that seating leaves.
const (
	KindSeated       timeline.Kind = "seated"
	KindReleased     timeline.Kind = "released"
	KindSittingMoved timeline.Kind = "sitting_moved"
)

func (e *execution) report() {
	if e.options.Progress != nil {
		e.options.Progress(Progress{Done: e.counters.Seated + e.counters.Refused, Total: e.counters.Total})
	}
}

// refuseRest names those whom the last look of a campaign that never came to rest did not meet.
func (e *execution) refuseRest(ctx context.Context, p *pass) error {
	for after := (mark{}); ; {
		met := 0
		err := e.inTurn(ctx, func(tx pgx.Tx) error {
			if err := walkIndexes(ctx, tx); err != nil {
				return err
			}
			if _, err := e.options.lock(ctx, tx, e.campaign); err != nil {
				return err
			}
			rest, err := readEligible(ctx, tx, e.campaign, p.exam.ID, e.scope.centreID, after, e.options.chunk)
			if met = len(rest); err != nil || met == 0 {
				return err
			}
			after = mark{rest[met-1].FiledAt, rest[met-1].CandidateID}
			if rest, err = e.undecided(ctx, tx, p.exam, rest); err != nil {
				return err
			}
			refusals := make([]run.Refusal, len(rest))
			for i, a := range rest {
				refusals[i] = refusalOf(a, p.exam, "changing", problem.Facts{"exam": p.exam.Code})
			}
			e.counters.Refused += len(rest)
			if err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.runID, refusals...); err != nil {
				return err
			}
			return run.Keep(ctx, tx, e.campaign.OrganisationID, e.runID, e.counters)
		})
		if err != nil || met == 0 {
			return err
		}
	}
}

// inTurn runs fn in a transaction of its own, and again when it collided with another.
func (e *execution) inTurn(ctx context.Context, fn func(pgx.Tx) error) error {
	for attempt := 0; ; attempt++ {
		before := e.counters
		err := e.db.Tx(ctx, []int64{e.campaign.OrganisationID}, fn)
		if err == nil || !pg.MayRepeat(err) || attempt == chunkRetries {
			return err
		}
		e.counters = before
	}
}
