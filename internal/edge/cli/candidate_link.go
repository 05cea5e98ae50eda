package cli

import (
	"usher/internal/domain/admission"
	"usher/internal/domain/letter"
)

type candidateLink struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Renew     bool   `help:"Give another one first: links given before open nothing any more."`
	publicFlags
}

func (c candidateLink) Run(s *session) error {
	public, err := c.read()
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	if c.Renew {
		if _, err := admission.RenewLink(s.ctx, s.db, s.actor, c.Campaign, c.Candidate); err != nil {
			return err
		}
	}
	own, err := letter.LinkOf(s.ctx, s.db, s.actor, c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	link, sentence := own.Path, "cli_own_link_path"
	if public != nil {
		link, sentence = public.String()+own.Path, "cli_own_link"
	}
	if err := s.done(sentence, map[string]any{"name": own.Name, "reference": own.Reference, "link": link}, map[string]any{
		"candidate": own.Reference, "name": own.Name, "link": link, "path": own.Path, "renewed": c.Renew,
	}); err != nil || !c.Renew || s.line.JSON {
		return err
	}
	s.say("cli_own_link_renewed", nil)
	return nil
}
