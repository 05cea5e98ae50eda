package cli

import (
	"fmt"
	"os"

	"usher/internal/domain/account"
)

type setLogo struct {
	Slug string `arg:"" help:"Short name of the organisation."`
	File string `arg:"" help:"PNG or JPEG."`
}

func (l setLogo) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, l.Slug)
	if err != nil {
		return err
	}
	file, err := os.Open(l.File)
	if err != nil {
		return fmt.Errorf("open the logo: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := account.SetLogo(s.ctx, s.db, s.actor, org, file); err != nil {
		return err
	}
	return s.done("cli_logo_set", map[string]any{"name": org.Name}, map[string]any{"slug": org.Slug, "logo": true})
}
