package cli

import (
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
)

type candidateCommand struct {
	Status candidateStatus `cmd:"" help:"Move a candidate to another status."`
	Waive  candidateWaive  `cmd:"" help:"Waive a candidate's fee."`
}

type candidateStatus struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Status    string `arg:"" help:"Code or label of the status."`
}

func (c candidateStatus) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, status, err := admission.ChangeStatus(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Status)
	if err != nil {
		return err
	}
	if s.line.JSON {
		x, err := convocation.Explain(s.ctx, s.db, s.actor, c.Campaign, c.Candidate)
		if err != nil {
			return err
		}
		return s.answer(s.explained(x))
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	s.say("cli_status_changed", map[string]any{"candidate": candidate.Name(), "status": status.Label})
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}

// keptSeat is a seat that somebody keeps though they would not be called any more.
type keptSeat struct {
	Exam     string `json:"exam"`
	Sentence string `json:"sentence"`
}

// stillSeated finds the seats about which somebody must decide after a candidate's file changed.
func (s *session) stillSeated(campaign, reference string) ([]keptSeat, error) {
	x, err := convocation.Explain(s.ctx, s.db, s.actor, campaign, reference)
	if err != nil {
		return nil, err
	}
	seats := []keptSeat{}
	for _, exam := range x.Exams {
		if exam.Seated && exam.Doubt.Code != "" {
			seats = append(seats, keptSeat{exam.Exam, s.saying(exam.Sentence)})
		}
	}
	return seats, nil
}

func (s *session) warnSeated(seats []keptSeat, campaign, reference string) {
	for _, seat := range seats {
		s.say("cli_still_seated", map[string]any{"exam": seat.Exam, "where": seat.Sentence, "candidate": reference, "campaign": campaign})
	}
}

type candidateWaive struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c candidateWaive) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	candidate, err := admission.WaiveFee(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_waived", map[string]any{"candidate": candidate.Name()},
		map[string]any{"candidate": candidate.Reference, "name": candidate.Name(), "waived": true})
}
