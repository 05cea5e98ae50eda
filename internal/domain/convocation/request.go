package convocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// Enqueue hands a run to whoever will execute it, in the transaction that wrote its row: either
// both are there or neither.
type Enqueue func(ctx context.Context, tx pgx.Tx, organisationID, runID int64) error

// Requested is the run that answers a request.
type Requested struct {
	OrganisationID int64
	RunID          int64
	Already        bool // somebody asked for the same before, and that run is still to come or under way
}

// Request checks who asks for what and writes the row of the run that will do it. With enqueue the
// run is handed over in the same transaction; a second request for the same target, while that run
// waits or works, is answered with it, so that two clicks do no harm. Without enqueue the caller
// executes the run, and every request is a run of its own.
func Request(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target, enqueue Enqueue) (asked Requested, err error) {
	if err := account.Allow(actor, account.Convoke); err != nil {
		return asked, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return asked, err
	}
	asked.OrganisationID = c.OrganisationID
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if enqueue != nil { // two clicks at once: the second waits here, and finds the first one's run
			if _, err := admission.Lock(ctx, tx, c); err != nil {
				return err
			}
		}
		within, err := scopeIn(ctx, tx, c, target)
		if err != nil {
			return err
		}
		target = within.named(c, target)
		if enqueue != nil {
			return asked.handOver(ctx, tx, actor, c, target, enqueue)
		}
		asked.RunID, err = run.Add(ctx, tx, actor, c.OrganisationID, Task, c.ID, target)
		return err
	})
	return asked, err
}

// handOver finds the run for a target that waits or works already, or adds one and hands it over. One
// that nobody took for a while is handed over once more: whoever was to take it may have lost it, and
// a run that is taken twice is done once.
func (r *Requested) handOver(ctx context.Context, tx pgx.Tx, actor timeline.Actor, c admission.Campaign, target Target, enqueue Enqueue) (err error) {
	var overdue bool
	r.RunID, overdue, err = run.UnderWay(ctx, tx, c.OrganisationID, Task, c.ID, target)
	if err != nil {
		return err
	}
	if r.Already = r.RunID != 0; r.Already && !overdue {
		return nil
	}
	if !r.Already {
		if r.RunID, err = run.AddWaiting(ctx, tx, actor, c.OrganisationID, Task, c.ID, target); err != nil {
			return err
		}
	}
	return enqueue(ctx, tx, c.OrganisationID, r.RunID)
}

// named writes a target with the names as they are kept, so that one target is one request however
// it was typed.
func (s scope) named(c admission.Campaign, target Target) Target {
	target.Campaign = c.Slug
	if target.Exam != "" {
		target.Exam = s.exams[0].Code
	}
	target.Sitting = s.sitting
	return target
}

// Execute does the work of a run that was requested. Executing one that has ended, or that somebody
// else is executing, does nothing. One whose executor died is taken over: whom it seated stays
// seated, and whom it refused is looked at again.
func Execute(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID, runID int64, options Options) error {
	target, err := requestOf(ctx, db, actor, organisationID, runID)
	if err != nil {
		return err
	}
	campaign, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return err
	}
	e := &execution{db: db, actor: actor, campaign: campaign, options: options.withDefaults()}
	taken, err := e.take(ctx, runID)
	if err != nil || !taken {
		return err
	}
	e.options.at("started")
	if e.scope, err = scopeOf(ctx, db, campaign, target); err == nil {
		err = e.work(ctx)
	}
	if err == nil || errors.Is(err, run.ErrLost) { // who holds the run by now says how it ends
		return err
	}
	// The run is marked even when its context was cancelled: what it did stands, and it says so.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.options.ending)
	defer cancel()
	return errors.Join(err, e.holder.Fail(ending, db, e.counters, err))
}

func requestOf(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID, runID int64) (target Target, err error) {
	unknown := problem.NotFound("run_unknown", problem.Facts{"run": fmt.Sprint(runID)})
	if !actor.MayActFor(organisationID) {
		return target, unknown
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		r, err := run.Find(ctx, tx, []int64{organisationID}, runID)
		if err != nil {
			return err
		}
		if r.Task != Task {
			return unknown
		}
		if err := json.Unmarshal(r.Request, &target); err != nil {
			return fmt.Errorf("read the request of run %d: %w", runID, err)
		}
		return nil
	})
	return target, err
}

// take makes this execution the holder of the run, with what an earlier holder did of it.
func (e *execution) take(ctx context.Context, runID int64) (taken bool, err error) {
	err = e.db.Tx(ctx, []int64{e.campaign.OrganisationID}, func(tx pgx.Tx) error {
		var kept json.RawMessage
		if e.holder, kept, taken, err = run.Take(ctx, tx, e.campaign.OrganisationID, runID); err != nil || !taken {
			return err
		}
		if err := json.Unmarshal(kept, &e.counters); err != nil {
			return fmt.Errorf("read the counters of run %d: %w", runID, err)
		}
		if e.options.Total != 0 {
			e.counters.Total = e.options.Total
		}
		e.counters.Refused = 0
		if err := e.holder.Keep(ctx, tx, e.counters); err != nil {
			return err
		}
		return run.Forget(ctx, tx, e.campaign.OrganisationID, runID)
	})
	return taken, err
}
