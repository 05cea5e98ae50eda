package convocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

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
