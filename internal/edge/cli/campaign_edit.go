package cli

import (
	"strings"

	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
)

type editCampaign struct {
	Slug         string  `arg:"" help:"Short name of the campaign."`
	Instructions *string `required:"" help:"What its letters add to what to bring; empty: nothing."`
}

func (e editCampaign) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	c, err := admission.FindCampaign(s.ctx, s.db, s.actor, e.Slug)
	if err != nil {
		return err
	}
	if err := admission.SetInstructions(s.ctx, s.db, s.actor, c, *e.Instructions); err != nil {
		return err
	}
	text := strings.TrimSpace(*e.Instructions)
	sentence := "cli_instructions_set"
	if text == "" {
		sentence = "cli_instructions_removed"
	}
	err = s.done(sentence, map[string]any{"campaign": c.Name, "text": text}, map[string]any{"slug": c.Slug, "instructions": text})
	s.warnGaps(text)
	return err
}

// warnGaps says which letters of a text the letters on paper will not show.
func (s *session) warnGaps(text string) {
	if missing := letter.Gaps(text); missing != "" && !s.line.JSON {
		s.say("cli_letters_gaps", map[string]any{"gap": letter.Gap, "letters": missing})
	}
}
