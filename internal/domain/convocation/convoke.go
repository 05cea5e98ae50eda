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
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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
	listSize     = 5_000 // rows of a list that are in memory at once

	// How long a run that failed may take to say so: its database may be what failed.
	endingTimeout = 10 * time.Second
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
	// the process or let others act there; chunk is the size of one, part that of a list; ending bounds
	// how long a failed run may take to say so; lock takes the campaign's row.
	step   func(name string)
	chunk  int
	part   int
	ending time.Duration
	lock   func(context.Context, pgx.Tx, admission.Campaign) (admission.Revision, error)
}

func (o Options) at(step string) {
	if o.step != nil {
		o.step(step)
	}
}

// withDefaults fills in what a run outside of a test never chooses.
func (o Options) withDefaults() Options {
	o.chunk, o.part, o.ending = cmp.Or(o.chunk, ChunkSize), cmp.Or(o.part, listSize), cmp.Or(o.ending, endingTimeout)
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
	ToldNow       int `json:"told_now"` // seated before, with an address now to which nothing was sent yet

	// Described is how far the timeline was before the lists of those whom nobody asked for were written; 0: they are not.
	Described int64 `json:"described,omitempty"`
}

// execution is one run under way.
type execution struct {
	db       *pg.DB
	actor    timeline.Actor
	campaign admission.Campaign
	scope    scope
	holder   run.Holder
	counters counters
	options  Options
}

// Convoke seats everybody who is eligible and writes the report, which it returns the id of. It
// may be run at any time, any number of times and by several at once: nobody is seated or told
// twice. Whoever cannot be seated is refused by name; that is no error.
func Convoke(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target, options Options) (runID int64, err error) {
	asked, err := Request(ctx, db, actor, target, nil)
	if err != nil {
		return 0, err
	}
	return asked.RunID, Execute(ctx, db, actor, asked.OrganisationID, asked.RunID, options)
}

func (e *execution) work(ctx context.Context) error {
	passes := make([]*pass, len(e.scope.exams))
	for i, exam := range e.scope.exams {
		passes[i] = &pass{exam: exam, fresh: true}
		if err := e.convokeExam(ctx, passes[i]); err != nil {
			return err
		}
	}
	return e.finish(ctx, passes)
}

// pass is the way of a run through the filing order of an exam, look after look.
type pass struct {
	exam     seating.Exam
	openings *seating.Openings
	revision admission.Revision
	reseated int64
	known    bool // revision and reseated are
	after    mark
	again    bool // an earlier look may have refused those whom this one meets
	fresh    bool // this look met nobody who was not decided
	revised  int  // how often it went back because something changed, since somebody was seated
	settled  bool // it does not go back any more
	stale    bool // something changed since the run began: some may wait whom no look met
	unsure   bool // what it believes of full sittings may come from what was rolled back

	reached mark  // the furthest that any look came
	seen    int64 // how far the timeline was when its last chunk ended

	back   bool    // those whom it passed get another turn, up to the furthest
	where  []int64 // the centres at which they could be given a place
	resume mark    // where the look goes on afterwards
}

// begin starts another look from the first filer.
func (p *pass) begin() { p.after, p.again, p.fresh, p.back = mark{}, true, true, false }

// goBack gives another turn to those whom the run passed and who could sit at one of the centres, from the
// first filer on: not only those whom it refused. Somebody earlier may have had a seat when the run passed,
// or was not called, and is waiting by now.
func (p *pass) goBack(centres []int64) {
	if !p.back {
		p.back, p.resume, p.where = true, p.after, nil
	}
	p.where = slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.where, centres))))
	p.after = mark{}
	p.revised++
}

// goOn ends the turn of those whom it passed.
func (p *pass) goOn() { p.after, p.back = p.resume, false }

// convokeExam takes chunk after chunk until a look from the first filer meets nobody who is
// neither seated nor refused by this run. When something changed that may serve those whom the run
// passed (a seat came free, somebody may sit elsewhere), they are given another turn first: nobody
// may be refused for lack of seats while a later filer gets one. A campaign that never comes to rest
// gets one last look that does not go back, so that a run always ends.
func (e *execution) convokeExam(ctx context.Context, p *pass) error {
	for looks := 1; ; {
		done, err := e.chunk(ctx, p, e.options.chunk)
		if err != nil {
			return fmt.Errorf("convoke exam %s: %w", p.exam.Code, err)
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
			return e.rank(ctx, p)
		case last:
			if err := e.refuseRest(ctx, p); err != nil {
				return err
			}
			return e.rank(ctx, p)
		}
		looks++
		p.begin()
	}
}

// The kinds of timeline rows that seating leaves.
const (
	KindSeated           timeline.Kind = "seated"
	KindReleased         timeline.Kind = "released"
	KindSittingAdded     timeline.Kind = "sitting_added"
	KindSittingMoved     timeline.Kind = "sitting_moved"
	KindSittingCancelled timeline.Kind = "sitting_cancelled"
)

func (e *execution) report() {
	if e.options.Progress != nil {
		e.options.Progress(Progress{Done: e.counters.Seated + e.counters.Refused, Total: e.counters.Total})
	}
}

// reasonChanging is that of whom the run did not meet at a quiet moment.
const reasonChanging seating.Reason = "changing"

// refuseRest names those whom the last look of a campaign that never came to rest did not meet.
func (e *execution) refuseRest(ctx context.Context, p *pass) error {
	for after := (mark{}); ; {
		met, next := 0, after
		err := e.inTurn(ctx, func(tx pgx.Tx) error {
			if err := pg.WalkIndexes(ctx, tx); err != nil {
				return err
			}
			if _, err := e.options.lock(ctx, tx, e.campaign); err != nil {
				return err
			}
			rest, err := readEligible(ctx, tx, e.campaign, p.exam.ID, e.scope.centres(), after, e.options.chunk)
			if met = len(rest); err != nil || met == 0 {
				return err
			}
			next = rest[met-1].mark()
			if rest, err = e.undecided(ctx, tx, p.exam, rest); err != nil {
				return err
			}
			refusals := make([]run.Refusal, len(rest))
			for i, a := range rest {
				refusals[i] = refusalOf(a, p.exam, string(reasonChanging), problem.Facts{"exam": p.exam.Code})
			}
			e.counters.Refused += len(rest)
			if err := run.Refuse(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, refusals...); err != nil {
				return err
			}
			return e.holder.Keep(ctx, tx, e.counters)
		})
		if err != nil || met == 0 {
			return err
		}
		after = next
	}
}
