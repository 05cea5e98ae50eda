package cli

import (
	"strings"

	"usher/internal/domain/account"
)

type editOrganisation struct {
	Slug    string  `arg:"" help:"Short name of the organisation."`
	Contact *string `required:"" placeholder:"ADDRESS" help:"E-mail address to which its people turn: answers go there, and its letters print it; empty: none."`
}

func (e editOrganisation) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, e.Slug)
	if err != nil {
		return err
	}
	if err := account.SetContact(s.ctx, s.db, s.actor, org, *e.Contact); err != nil {
		return err
	}
	contact, sentence := strings.TrimSpace(*e.Contact), "cli_contact_set"
	if contact == "" {
		sentence = "cli_contact_removed"
	}
	return s.done(sentence, map[string]any{"name": org.Name, "contact": contact}, map[string]any{"slug": org.Slug, "contact": contact})
}
