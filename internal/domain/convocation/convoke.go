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
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
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

// The kinds of timeline rows that seating leaves.
const (
	KindSeated           timeline.Kind = "seated"
	KindReleased         timeline.Kind = "released"
	KindSittingMoved     timeline.Kind = "sitting_moved"
	KindSittingCancelled timeline.Kind = "sitting_cancelled"
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
