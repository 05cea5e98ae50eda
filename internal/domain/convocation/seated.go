package convocation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/notice"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

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
	EndsAt   i18n.Instant `json:"ends_at"`
}

func seatFacts(candidate string, s *seating.Sitting, label string) SeatFacts {
	return SeatFacts{Candidate: candidate, Seat: label, SittingFacts: sittingFacts(s)}
}

func sittingFacts(s *seating.Sitting) SittingFacts {
	return SittingFacts{Exam: s.Exam, Sitting: s.Reference, Centre: s.Centre, Room: s.Room, StartsAt: s.Begins(), EndsAt: s.Ends()}
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
