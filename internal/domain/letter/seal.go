package letter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// composeSeals words for an organisation what sealed its days. A seal that was set aside since is not told.
func composeSeals(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
	to, err := readOrganiser(ctx, tx, organisationID)
	if err != nil {
		return nil, err
	}
	days := make([]time.Time, len(due))
	for i, d := range due {
		days[i] = d.On
	}
	sealed, err := timeline.SealsOf(ctx, tx, organisationID, days)
	if err != nil {
		return nil, err
	}
	messages := make([]notice.Message, len(due))
	for i, d := range due {
		seal, stands := sealed[d.On.UTC()]
		if !stands {
			messages[i].Verdict = notice.VerdictWithdrawn
			continue
		}
		if messages[i], err = to.sealed(seal); err != nil {
			return nil, fmt.Errorf("word the seal of %s: %w", d.On.Format(time.DateOnly), err)
		}
	}
	return messages, nil
}

func (o organiser) sealed(seal timeline.Sealed) (notice.Message, error) {
	voice := i18n.Speak(o.Locale)
	facts := map[string]any{"name": o.Name, "day": voice.Date(seal.Day), "short": seal.Digest.Short()}
	return o.mail(voice, body{
		Lang: voice.Lang(), From: o.Name, Title: voice.Say("seal_subject", facts), Hello: voice.Say("buyer_hello", nil), Lead: voice.Say("seal_lead", facts),
		Facts: []fact{
			{voice.Say("cli_timeline_day", nil), voice.Date(seal.Day)},
			{voice.Say("cli_timeline_rows_column", nil), voice.Number(seal.Rows)},
			{voice.Say("seal_short", nil), seal.Digest.Short()},
			{voice.Say("cli_timeline_digest", nil), seal.Digest.String()},
		},
		ToDo: []string{voice.Say("seal_do", map[string]any{"organisation": o.Slug})},
	})
}
