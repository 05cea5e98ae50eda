package convocation

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Trial is what a run would do at this moment. It writes nothing at all.
type Trial struct {
	Forecast Forecast // messages to those who would be seated
	Seated   []Proposed
	Refused  []run.Refusal
}

// Proposed is a seat that somebody would be given.
type Proposed struct {
	Reference string
	Name      string
	Sitting   *seating.Sitting
	Seat      string
}

// Turn is what a run would give to one candidate: a seat, or a refusal. The other is nil.
type Turn struct {
	Seat    *Proposed
	Refusal *run.Refusal
}

// Try does everything that Convoke decides on one moment of the database, and writes nothing. It
// holds everybody in memory: Rehearse does not.
func Try(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target) (trial Trial, err error) {
	trial.Forecast, err = Rehearse(ctx, db, actor, target, func(turn Turn) error {
		if turn.Seat != nil {
			trial.Seated = append(trial.Seated, *turn.Seat)
		} else {
			trial.Refused = append(trial.Refused, *turn.Refusal)
		}
		return nil
	})
	return trial, err
}

// Rehearse gives every eligible candidate their turn in a run that does not happen, and tells each
// look about all of them, one after the other. Every look goes through the same moment of the
// database. How many would be seated, and told, is what it returns.
func Rehearse(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target, looks ...func(Turn) error) (f Forecast, err error) {
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return f, err
	}
	within, err := scopeOf(ctx, db, c, target)
	if err != nil {
		return f, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		for _, look := range looks {
			f = Forecast{}
			var stopped error
			err := rehearse(ctx, tx, c, within, func(r rehearsal) bool {
				if r.pending {
					return true
				}
				f.add(r)
				stopped = look(r.turn())
				return stopped == nil
			})
			if err := cmp.Or(err, stopped); err != nil {
				return err
			}
		}
		return f.addRetries(ctx, tx, c)
	})
	return f, err
}

// add counts who would be seated and the messages that would follow.
func (f *Forecast) add(r rehearsal) {
	if r.miss.Reason != "" {
		return
	}
	f.Seats++
	if r.applicant.HasEmail {
		f.Emails++
	}
	if r.applicant.HasPhone {
		f.SMS++
	}
}

func (r rehearsal) turn() Turn {
	if r.miss.Reason != "" {
		refusal := refusalOf(r.applicant, r.exam, string(r.miss.Reason), r.facts)
		return Turn{Refusal: &refusal}
	}
	return Turn{Seat: &Proposed{
		Reference: r.applicant.Reference, Name: r.applicant.name(), Sitting: r.choice.Sitting, Seat: r.choice.SeatLabel,
	}}
}

// rehearsal is one candidate's turn in a run that does not happen.
type rehearsal struct {
	applicant applicant
	exam      seating.Exam
	choice    seating.Choice
	miss      seating.Miss // without a reason: they would be seated
	facts     problem.Facts
	pending   bool // no place for them; why not is told once everybody had their turn
}

// rehearse gives every eligible candidate their turn, in the order of a run, until each says that
// it has seen enough. Why somebody has no place is judged, as at the end of a run, by how things are
// then: what they were given at a later exam may be what keeps them out. In a campaign of one exam
// nothing can change any more, and it is told at once.
func rehearse(ctx context.Context, tx pgx.Tx, c admission.Campaign, within scope, each func(rehearsal) bool) error {
	all, err := seating.Exams(ctx, tx, c, "")
	if err != nil {
		return err
	}
	if err := pg.WalkIndexes(ctx, tx); err != nil {
		return err
	}
	var stages []*stage
	busy := map[int64][]seating.Interval{} // by all the exams
	for _, exam := range within.exams {
		stage, err := setStage(ctx, tx, c, exam, within.sitting)
		if err != nil {
			return err
		}
		if len(all) > 1 {
			stage.pending = map[int64]bool{}
		}
		stages = append(stages, stage)
		more, err := stage.pass(ctx, tx, c, within, func(applicants []applicant) ([]rehearsal, error) {
			return stage.turns(ctx, tx, c, applicants, busy)
		}, each)
		if err != nil || !more {
			return err
		}
	}
	for _, stage := range stages {
		if len(stage.pending) == 0 {
			continue
		}
		more, err := stage.pass(ctx, tx, c, within, func(applicants []applicant) ([]rehearsal, error) {
			return stage.judge(ctx, tx, c, applicants, busy)
		}, each)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// pass goes through the eligible in filing order, and tells each what became of them; it ends early when each says so.
func (s *stage) pass(ctx context.Context, tx pgx.Tx, c admission.Campaign, within scope,
	decide func([]applicant) ([]rehearsal, error), each func(rehearsal) bool,
) (more bool, err error) {
	for after := (mark{}); ; {
		applicants, err := readEligible(ctx, tx, c, s.exam.ID, within.centres(), after, ChunkSize)
		if err != nil || len(applicants) == 0 {
			return err == nil, err
		}
		after = applicants[len(applicants)-1].mark()
		decided, err := decide(applicants)
		if err != nil {
			return false, err
		}
		for _, r := range decided {
			if !each(r) {
				return false, nil
			}
		}
	}
}

func intervalOf(s *seating.Sitting) seating.Interval {
	return seating.Interval{From: s.StartsAt, Until: s.EndsAt, Sitting: s.Exam + " " + s.Reference}
}

// stage is where one exam is rehearsed: its openings fill as in a run.
type stage struct {
	exam     seating.Exam
	openings *seating.Openings
	queue    queue
	pending  map[int64]bool // who was given no place; nil: why not is told at once
}

func setStage(ctx context.Context, tx pgx.Tx, c admission.Campaign, exam seating.Exam, sitting string) (*stage, error) {
	openings, err := seating.Open(ctx, tx, c, exam.ID, sitting)
	if err != nil {
		return nil, err
	}
	places, err := queueFor(ctx, tx, c.OrganisationID, exam, sitting, openings)
	return &stage{exam: exam, openings: openings, queue: places}, err
}

// turns gives a chunk of applicants their turn.
func (s *stage) turns(ctx context.Context, tx pgx.Tx, c admission.Campaign, applicants []applicant, busy map[int64][]seating.Interval) ([]rehearsal, error) {
	turns, of := make([]rehearsal, len(applicants)), make(map[int64]int, len(applicants))
	for i, a := range applicants {
		turns[i], of[a.CandidateID] = rehearsal{applicant: a, exam: s.exam}, i
	}
	outcome, err := s.openings.Propose(ctx, tx, c, s.exam.ID, wantedBy(applicants, busy))
	if err != nil {
		return nil, err
	}
	for _, claim := range outcome.Claims {
		turns[of[claim.CandidateID]].choice = claim.Choice
		if s.pending != nil {
			busy[claim.CandidateID] = append(busy[claim.CandidateID], intervalOf(claim.Sitting))
		}
	}
	for _, miss := range outcome.Misses {
		turn := &turns[of[miss.CandidateID]]
		if turn.pending = s.pending != nil; turn.pending {
			s.pending[miss.CandidateID] = true
			continue
		}
		turn.miss, turn.facts = miss, s.queue.factsOf(miss, turn.applicant.CentreID)
	}
	return turns, nil
}

// judge tells why those of a chunk who were given no place have none, now that everybody had their turn.
func (s *stage) judge(ctx context.Context, tx pgx.Tx, c admission.Campaign, applicants []applicant, busy map[int64][]seating.Interval) ([]rehearsal, error) {
	applicants = slices.DeleteFunc(applicants, func(a applicant) bool { return !s.pending[a.CandidateID] })
	misses, err := s.openings.Judge(ctx, tx, c, s.exam.ID, wantedBy(applicants, busy))
	if err != nil {
		return nil, err
	}
	judged := make([]rehearsal, len(misses))
	for i, miss := range misses {
		judged[i] = rehearsal{applicant: applicants[i], exam: s.exam, miss: miss, facts: s.queue.factsOf(miss, applicants[i].CentreID)}
	}
	return judged, nil
}

// wantedBy is what the applicants want, and when they are busy.
func wantedBy(applicants []applicant, busy map[int64][]seating.Interval) []seating.Applicant {
	wanted := make([]seating.Applicant, len(applicants))
	for i, a := range applicants {
		wanted[i] = seating.Applicant{
			CandidateID: a.CandidateID, CentreID: a.CentreID, NeedsAccessible: a.NeedsAccessible, Busy: slices.Clone(busy[a.CandidateID]),
		}
	}
	return wanted
}
