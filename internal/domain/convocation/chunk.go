package convocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
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
		before.unsure = true
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

// setAside refuses the candidate at whom a chunk of one failed. What changed meanwhile is looked at
// here as well, as the chunk did before it failed: else the next one would go back for it, fail at
// the same candidate, and so on for ever.
func (e *execution) setAside(ctx context.Context, p *pass, at *fault) error {
	incident := fmt.Sprintf("%d-%d", e.holder.RunID, at.applicant.CandidateID)
	slog.ErrorContext(ctx, "a candidate could not be seated", "run", e.holder.RunID, "incident", incident, "error", at.cause)
	var next pass
	var gained counters
	err := e.inTurn(ctx, func(tx pgx.Tx) error {
		next, gained = *p, e.counters
		revision, err := e.options.lock(ctx, tx, e.campaign)
		if err != nil {
			return err
		}
		if err := e.lookAgain(ctx, tx, &next, revision); err != nil {
			return err
		}
		// Unless it goes back, or failed on its way on from there, it goes on behind them.
		ahead := next.back && next.reached.before(at.applicant.mark())
		if next.after == p.after && !ahead {
			next.after = at.applicant.mark()
		}
		next.again, next.fresh = true, false
		refused, err := e.refusedBefore(ctx, tx, p.exam, []applicant{at.applicant})
		if err != nil {
			return err
		}
		err = e.refuse(ctx, tx, &next, &gained, refused, refusalOf(at.applicant, p.exam, "fault", problem.Facts{"incident": incident}))
		if err != nil {
			return err
		}
		return e.holder.Keep(ctx, tx, gained)
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
		if err := pg.WalkIndexes(ctx, tx); err != nil {
			return err
		}
		revision, err := e.options.lock(ctx, tx, c)
		if err != nil {
			return err
		}
		e.options.at("locked")
		if err := e.lookAgain(ctx, tx, &p, revision); err != nil {
			return err
		}
		if p.back {
			if err := e.servePassed(ctx, tx, &p, &gained, limit); err != nil {
				return err
			}
		}
		if !p.back {
			if done, err = e.serveNext(ctx, tx, &p, &gained, limit); err != nil {
				return err
			}
		}
		if done && gained == e.counters {
			return nil
		}
		if p.seen, err = timeline.Latest(ctx, tx, c.OrganisationID); err != nil {
			return err
		}
		if err := e.holder.Keep(ctx, tx, gained); err != nil {
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

// serveNext seats the next candidates of the filing order.
func (e *execution) serveNext(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, limit int) (done bool, err error) {
	// An earlier look, or another run since the last chunk, may have seated nearly everybody who comes next.
	others, err := timeline.AnySince(ctx, tx, e.campaign.OrganisationID, e.campaign.ID, p.seen, notice.KindTold)
	if err != nil {
		return false, err
	}
	read := readEligible
	if p.again || others {
		read = readLeft
	}
	if p.again && p.after == (mark{}) {
		first, found, err := e.firstUnnamed(ctx, tx, p)
		if err != nil || !found {
			return err == nil, err
		}
		p.after = first.previous()
	}
	applicants, err := read(ctx, tx, e.campaign, p.exam.ID, e.scope.centres(), p.after, limit)
	if err != nil || len(applicants) == 0 {
		return err == nil, err
	}
	if p.after = applicants[len(applicants)-1].mark(); p.reached.before(p.after) {
		p.reached = p.after
	}
	if p.again {
		if applicants, err = e.undecided(ctx, tx, p.exam, applicants); err != nil || len(applicants) == 0 {
			return false, err
		}
	}
	p.fresh = false
	return false, e.seat(ctx, tx, p, gained, applicants, nil)
}

// servePassed gives the next of those whom the run passed another turn, until nothing is free for
// them any more.
func (e *execution) servePassed(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, limit int) error {
	applicants, err := readLeft(ctx, tx, e.campaign, p.exam.ID, p.where, p.after, limit)
	if err != nil {
		return err
	}
	applicants = slices.DeleteFunc(applicants, func(a applicant) bool { return p.reached.before(a.mark()) })
	if len(applicants) == 0 {
		p.goOn()
		return nil
	}
	p.after = applicants[len(applicants)-1].mark()
	refused, err := e.refusedBefore(ctx, tx, p.exam, applicants)
	if err != nil {
		return err
	}
	if err := e.seat(ctx, tx, p, gained, applicants, refused); err != nil {
		return err
	}
	if p.openings.Full(p.where) {
		p.goOn()
	}
	return nil
}

// lookAgain learns the openings anew when something changed since the last chunk, or one of their
// sittings has begun. If that may serve anybody whom the run passed, it goes back to them. An act that
// only gave, took back or exchanged seats serves those who would sit where a place came free, and whom it
// passed seated and left without a seat; any other change those whom a centre with places could take. Why
// the others have no place is judged at the end.
func (e *execution) lookAgain(ctx context.Context, tx pgx.Tx, p *pass, revision admission.Revision) error {
	reseated, err := admission.Reseated(ctx, tx, e.campaign)
	if err != nil {
		return err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	before := p.openings
	revised, reseating := p.known && p.revision != revision, p.known && p.reseated != reseated
	if before != nil && !p.unsure && !revised && !reseating && !before.Begun(now) {
		return nil
	}
	if p.openings, err = seating.Open(ctx, tx, e.campaign, p.exam.ID, e.scope.sitting); err != nil {
		return err
	}
	p.revision, p.reseated, p.known, p.unsure = revision, reseated, true, false
	p.stale = p.stale || revised || reseating
	if p.settled || before == nil {
		return nil
	}
	freed, err := p.openings.Learn(ctx, tx, e.campaign.OrganisationID, before)
	if err != nil || p.openings.Full(nil) {
		return err
	}
	anywhere := revised
	if !revised && reseating {
		if anywhere, err = e.someoneUnnamed(ctx, tx, p, &p.reached); err != nil {
			return err
		}
	}
	switch {
	case anywhere:
		p.goBack(p.openings.Centres())
	case len(freed) > 0:
		p.goBack(freed)
	}
	return nil
}

// seat gives the applicants their seats and writes what follows from it. refused are the reasons of
// those among them whom the run refused before.
func (e *execution) seat(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, applicants []applicant, refused map[string]string) error {
	err := e.seatThem(ctx, tx, p, gained, applicants, refused)
	if err != nil && len(applicants) == 1 {
		return &fault{applicants[0], err}
	}
	return err
}

func (e *execution) seatThem(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, applicants []applicant, refused map[string]string) error {
	c := e.campaign
	of := make(map[int64]applicant, len(applicants))
	wanted := make([]seating.Applicant, len(applicants))
	for i, a := range applicants {
		of[a.CandidateID] = a
		wanted[i] = seating.Applicant{CandidateID: a.CandidateID, CentreID: a.CentreID, NeedsAccessible: a.NeedsAccessible}
	}
	outcome, err := seating.Assign(ctx, tx, c, e.holder.RunID, p.exam.ID, p.openings, wanted)
	if err != nil {
		return err
	}
	e.options.at("claimed")
	if err := recordSeated(ctx, tx, c, e.actor, e.holder.RunID, outcome.Claims, of); err != nil {
		return err
	}
	e.options.at("recorded")
	if err := publishSeated(ctx, tx, c, outcome.Claims, of); err != nil {
		return err
	}
	e.options.at("published")
	if err := writeNotices(ctx, tx, c, outcome.Claims, of); err != nil {
		return err
	}
	e.options.at("noticed")
	refusals := make([]run.Refusal, 0, len(outcome.Misses))
	for _, miss := range outcome.Misses {
		a := of[miss.CandidateID]
		refusals = append(refusals, refusalOf(a, p.exam, string(miss.Reason), missFacts(p.exam, miss)))
	}
	if err := e.refuse(ctx, tx, p, gained, refused, refusals...); err != nil {
		return err
	}
	e.options.at("refused")
	if len(outcome.Claims) > 0 {
		p.revised, p.fresh = 0, false
	}
	gained.Seated += len(outcome.Claims)
	return e.takeBack(ctx, tx, p.exam, gained, refused, outcome.Claims)
}

// refuse names those who were given no seat, unless they stand there already for the same reason.
func (e *execution) refuse(ctx context.Context, tx pgx.Tx, p *pass, gained *counters, refused map[string]string, refusals ...run.Refusal) error {
	fresh := slices.DeleteFunc(refusals, func(r run.Refusal) bool { return refused[r.Item] == r.Reason })
	for _, r := range fresh {
		if refused[r.Item] == "" {
			gained.Refused++
			p.fresh = false
		}
	}
	return run.Refuse(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, fresh...)
}

// takeBack withdraws the refusals of those who were seated after all.
func (e *execution) takeBack(ctx context.Context, tx pgx.Tx, exam seating.Exam, gained *counters, refused map[string]string, claims []seating.Claim) error {
	var items []string
	for _, claim := range claims {
		if key := item(claim.CandidateID, exam.ID); refused[key] != "" {
			items = append(items, key)
		}
	}
	taken, err := run.Withdraw(ctx, tx, e.campaign.OrganisationID, e.holder.RunID, run.ListRefused, items)
	gained.Refused -= taken
	return err
}

func missFacts(exam seating.Exam, miss seating.Miss) problem.Facts {
	facts := problem.Facts{"exam": exam.Code}
	if miss.With != "" {
		facts["with"] = miss.With
	}
	if miss.Always {
		facts["every"] = true
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
	return e.repeat(ctx, e.db.Tx, fn)
}

// repeat runs fn in a transaction of the kind that begin opens, and again when it collided with another.
func (e *execution) repeat(ctx context.Context, begin func(context.Context, []int64, func(pgx.Tx) error) error, fn func(pgx.Tx) error) error {
	for attempt := 0; ; attempt++ {
		before := e.counters
		err := begin(ctx, []int64{e.campaign.OrganisationID}, fn)
		if err == nil || !pg.MayRepeat(err) || attempt == chunkRetries {
			return err
		}
		e.counters = before
	}
}
