package convocation

import (
	"context"
	"maps"
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
	Sitting   seating.Sitting
	Seat      string
}

// Try does everything that Convoke decides on one moment of the database, and writes nothing.
func Try(ctx context.Context, db *pg.DB, actor timeline.Actor, target Target) (Trial, error) {
	var trial Trial
	c, err := admission.FindCampaign(ctx, db, actor, target.Campaign)
	if err != nil {
		return trial, err
	}
	exams, err := targetExams(ctx, db, c, target)
	if err != nil {
		return trial, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		return rehearse(ctx, tx, c, exams, target.Sitting, func(r rehearsal) bool {
			trial.add(r)
			return true
		})
	})
	return trial, err
}

func (t *Trial) add(r rehearsal) {
	if r.reason != "" {
		t.Refused = append(t.Refused, refusalOf(r.applicant, r.exam, string(r.reason), r.facts))
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
		Reference: r.applicant.Reference, Name: r.applicant.name(), Sitting: *r.choice.Sitting, Seat: r.choice.SeatLabel,
	})
}

// rehearsal is one candidate's turn in a run that does not happen.
type rehearsal struct {
	applicant applicant
	exam      seating.Exam
	choice    seating.Choice
	reason    seating.Reason // empty: they would be seated
	facts     problem.Facts
}

// rehearse gives every eligible candidate their turn, in the order of a run, until each says that
// it has seen enough.
func rehearse(ctx context.Context, tx pgx.Tx, c admission.Campaign, exams []seating.Exam, sitting string, each func(rehearsal) bool) error {
	if err := walkIndexes(ctx, tx); err != nil {
		return err
	}
	busy := map[int64][]seating.Interval{} // by the exams before
	for _, exam := range exams {
		openings, err := seating.Open(ctx, tx, c, exam.ID, sitting)
		if err != nil {
			return err
		}
		places, err := usablePlaces(ctx, tx, c.OrganisationID, openings)
		if err != nil {
			return err
		}
		centres := map[int64]string{}
		for _, s := range openings.Sittings() {
			centres[s.CentreID] = s.Centre
		}
		without := map[int64]int{} // how many of a centre were left without a seat so far
		for after := (mark{}); ; {
			applicants, err := readEligible(ctx, tx, c, exam.ID, 0, after, chunkSize)
			if err != nil {
				return err
			}
			if len(applicants) == 0 {
				break
			}
			last := applicants[len(applicants)-1]
			after = mark{last.FiledAt, last.CandidateID}
			turns, err := proposeChunk(ctx, tx, c, exam, openings, applicants, busy)
			if err != nil {
				return err
			}
			for _, turn := range turns {
				if turn.reason != "" {
					turn.facts = missFacts(exam)
				}
				if turn.reason.LacksSeats() {
					centre := turn.applicant.CentreID
					without[centre]++
					maps.Copy(turn.facts, problem.Facts{
						"centre": centres[centre], "rank": places[centre] + without[centre], "places": places[centre],
					})
				}
				if len(exams) > 1 && turn.reason == "" {
					busy[turn.applicant.CandidateID] = append(busy[turn.applicant.CandidateID],
						seating.Interval{From: turn.choice.Sitting.StartsAt, Until: turn.choice.Sitting.EndsAt})
				}
				if !each(turn) {
					return nil
				}
			}
		}
	}
	return nil
}

func proposeChunk(ctx context.Context, tx pgx.Tx, c admission.Campaign, exam seating.Exam, openings *seating.Openings, applicants []applicant, busy map[int64][]seating.Interval) ([]rehearsal, error) {
	wanted, turns, of := make([]seating.Applicant, len(applicants)), make([]rehearsal, len(applicants)), make(map[int64]int, len(applicants))
	for i, a := range applicants {
		wanted[i] = seating.Applicant{
			CandidateID: a.CandidateID, CentreID: a.CentreID, NeedsAccessible: a.NeedsAccessible,
			Busy: slices.Clone(busy[a.CandidateID]),
		}
		turns[i], of[a.CandidateID] = rehearsal{applicant: a, exam: exam}, i
	}
	outcome, err := openings.Propose(ctx, tx, c, exam.ID, wanted)
	if err != nil {
		return nil, err
	}
	for _, claim := range outcome.Claims {
		turns[of[claim.CandidateID]].choice = claim.Choice
	}
	for _, miss := range outcome.Misses {
		turns[of[miss.CandidateID]].reason = miss.Reason
	}
	return turns, nil
}
