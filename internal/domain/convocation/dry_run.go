package convocation

import (
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

// Try does everything that Convoke decides on one moment of the database, and writes nothing.
func Try(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target) (Trial, error) {
	var trial Trial
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return trial, err
	}
	within, err := scopeOf(ctx, db, c, target)
	if err != nil {
		return trial, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if err := trial.Forecast.addRetries(ctx, tx, c); err != nil {
			return err
		}
		return rehearse(ctx, tx, c, within, func(r rehearsal) bool {
			trial.add(r)
			return true
		})
	})
	return trial, err
}

func (t *Trial) add(r rehearsal) {
	if r.miss.Reason != "" {
		t.Refused = append(t.Refused, refusalOf(r.applicant, r.exam, string(r.miss.Reason), r.facts))
		return
	}
	t.Forecast.Eligible++
	if r.applicant.HasEmail {
		t.Forecast.Emails++
	}
	if r.applicant.HasPhone {
		t.Forecast.SMS++
	}
	t.Seated = append(t.Seated, Proposed{
		Reference: r.applicant.Reference, Name: r.applicant.name(), Sitting: r.choice.Sitting, Seat: r.choice.SeatLabel,
	})
}

// rehearsal is one candidate's turn in a run that does not happen.
type rehearsal struct {
	applicant applicant
	exam      seating.Exam
	choice    seating.Choice
	miss      seating.Miss // without a reason: they would be seated
	facts     problem.Facts
}

// rehearse gives every eligible candidate their turn, in the order of a run, until each says that
// it has seen enough.
func rehearse(ctx context.Context, tx pgx.Tx, c admission.Campaign, within scope, each func(rehearsal) bool) error {
	if err := walkIndexes(ctx, tx); err != nil {
		return err
	}
	busy := map[int64][]seating.Interval{} // by the exams before
	for _, exam := range within.exams {
		stage, err := setStage(ctx, tx, c, exam, within.sitting)
		if err != nil {
			return err
		}
		for after := (mark{}); ; {
			applicants, err := readEligible(ctx, tx, c, exam.ID, within.centreID, after, ChunkSize)
			if err != nil {
				return err
			}
			if len(applicants) == 0 {
				break
			}
			last := applicants[len(applicants)-1]
			after = mark{last.FiledAt, last.CandidateID}
			turns, err := stage.turns(ctx, tx, c, applicants, busy)
			if err != nil {
				return err
			}
			for _, turn := range turns {
				if len(within.exams) > 1 && turn.choice.Sitting != nil {
					busy[turn.applicant.CandidateID] = append(busy[turn.applicant.CandidateID], intervalOf(turn.choice.Sitting))
				}
				if !each(turn) {
					return nil
				}
			}
		}
	}
	return nil
}

func intervalOf(s *seating.Sitting) seating.Interval {
	return seating.Interval{From: s.StartsAt, Until: s.EndsAt, Sitting: s.Exam + " " + s.Reference}
}

// stage is where one exam is rehearsed: its openings fill as in a run.
type stage struct {
	exam     seating.Exam
	openings *seating.Openings
	queue    queue
}

func setStage(ctx context.Context, tx pgx.Tx, c admission.Campaign, exam seating.Exam, sitting string) (*stage, error) {
	openings, err := seating.Open(ctx, tx, c, exam.ID, sitting)
	if err != nil {
		return nil, err
	}
	places, err := queueFor(ctx, tx, c.OrganisationID, exam, openings)
	return &stage{exam: exam, openings: openings, queue: places}, err
}

// turns gives a chunk of applicants their turn.
func (s *stage) turns(ctx context.Context, tx pgx.Tx, c admission.Campaign, applicants []applicant, busy map[int64][]seating.Interval) ([]rehearsal, error) {
	wanted, turns, of := make([]seating.Applicant, len(applicants)), make([]rehearsal, len(applicants)), make(map[int64]int, len(applicants))
	for i, a := range applicants {
		wanted[i] = seating.Applicant{
			CandidateID: a.CandidateID, CentreID: a.CentreID, NeedsAccessible: a.NeedsAccessible,
			Busy: slices.Clone(busy[a.CandidateID]),
		}
		turns[i], of[a.CandidateID] = rehearsal{applicant: a, exam: s.exam}, i
	}
	outcome, err := s.openings.Propose(ctx, tx, c, s.exam.ID, wanted)
	if err != nil {
		return nil, err
	}
	for _, claim := range outcome.Claims {
		turns[of[claim.CandidateID]].choice = claim.Choice
	}
	for _, miss := range outcome.Misses {
		turn := &turns[of[miss.CandidateID]]
		turn.miss, turn.facts = miss, missFacts(s.exam, miss)
		if miss.Reason.LacksSeats() {
			turn.facts = s.queue.next(turn.applicant.CentreID)
		}
	}
	return turns, nil
}
