package cli

import (
	"time"

	"usher/internal/domain/convocation"
)

type seatCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Sitting   string `required:"" help:"Reference of the sitting."`
	Seat      string `help:"Label or number of the seat; else the lowest free one."`
}

func (c seatCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Seat(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Sitting, c.Seat)
	return s.placed("cli_placed", err, placed)
}

type moveCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Exam      string `help:"Code of the exam; needed when the candidate has several seats and no sitting is named."`
	Sitting   string `help:"Reference of the new sitting; else the same."`
	Seat      string `help:"Label or number of the new seat; else the lowest free one."`
}

func (c moveCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Move(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Exam, c.Sitting, c.Seat)
	return s.placed("cli_placed", err, placed)
}

type swapCommand struct {
	Campaign   string   `required:"" help:"Short name of the campaign."`
	Exam       string   `help:"Code of the exam; needed when somebody has several seats."`
	Candidates []string `arg:"" help:"References: each takes the seat of the next, the last that of the first."`
}

func (c swapCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Swap(s.ctx, s.db, s.actor, c.Campaign, c.Exam, c.Candidates...)
	if err := s.placed("cli_placed", err, placed...); err != nil || s.line.JSON || placed[0].Changed {
		return err
	}
	s.say("cli_swapped_before", nil)
	return nil
}

type releaseCommand struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Exam      string `help:"Code of the exam; needed when the candidate has several seats."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c releaseCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	placed, err := convocation.Release(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Exam, c.Reason)
	if err := s.placed("cli_released", err, placed); err != nil || s.line.JSON {
		return err
	}
	x, err := convocation.Explain(s.ctx, s.db, s.actor, c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	for _, exam := range x.Exams {
		if exam.Exam == placed.Sitting.Exam && !exam.Seated && x.Called() {
			s.say("cli_still_called", map[string]any{"candidate": c.Candidate, "campaign": c.Campaign})
		}
	}
	return nil
}

// placed says where people sit now, or sat.
func (s *session) placed(sentence string, err error, placed ...convocation.Placed) error {
	if err != nil {
		return err
	}
	if s.line.JSON {
		type place struct {
			Candidate string    `json:"candidate"`
			Name      string    `json:"name"`
			Sitting   string    `json:"sitting"`
			Room      string    `json:"room"`
			StartsAt  time.Time `json:"starts_at"`
			Seat      string    `json:"seat"`
			Changed   bool      `json:"changed"`
			Chosen    string    `json:"centre_chosen,omitempty"` // where it is another
		}
		list := make([]place, len(placed))
		for i, p := range placed {
			list[i] = place{p.Candidate.Reference, p.Candidate.Name(), p.Sitting.Reference, p.Sitting.Place(), p.Sitting.StartsAt, p.Seat, p.Changed, p.Chosen}
		}
		return s.answer(list)
	}
	for _, p := range placed {
		s.say(sentence, map[string]any{
			"candidate": p.Candidate.Name(), "reference": p.Candidate.Reference, "seat": p.Seat,
			"place": p.Sitting.Place(), "sitting": p.Sitting.Reference, "starts_at": p.Sitting.Begins(),
		})
		if p.Chosen != "" {
			s.say("cli_placed_elsewhere", map[string]any{"candidate": p.Candidate.Name(), "chosen": p.Chosen, "centre": p.Sitting.Centre})
		}
	}
	return nil
}
