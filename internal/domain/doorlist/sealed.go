package doorlist

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/timeline"
)

// Seal is the latest seal of the organisation's timeline when a list was printed. On paper it leaves the database: whoever
// rewrites the timeline and all its seals cannot rewrite the lists that people hold.
type Seal struct {
	Day    string `json:"day"`    // the last that it covers, in UTC: 2026-11-28
	Digest string `json:"digest"` // the whole one, in hexadecimal
	Short  string `json:"short"`  // as it is printed
}

// readSeal is nil when nothing is sealed yet.
func readSeal(ctx context.Context, tx pgx.Tx, organisationID int64) (*Seal, error) {
	latest, err := timeline.LatestSeal(ctx, tx, organisationID)
	if err != nil || latest == nil {
		return nil, err
	}
	return &Seal{Day: latest.Day.Format(time.DateOnly), Digest: latest.Digest.String(), Short: latest.Digest.Short()}, nil
}

// sealed says the seal in the language of the list; empty: there was none.
func (p Printed) sealed(voice i18n.Voice) string {
	seal := p.Content.Seal
	if seal == nil {
		return ""
	}
	day := seal.Day
	if parsed, err := time.Parse(time.DateOnly, day); err == nil {
		day = voice.Date(parsed)
	}
	return voice.Say("timeline_sealed", map[string]any{"day": day, "digest": seal.Short})
}

// sealCell is the seal as programs read it.
func (p Printed) sealCell() string {
	if seal := p.Content.Seal; seal != nil {
		return seal.Day + " " + seal.Short
	}
	return ""
}
