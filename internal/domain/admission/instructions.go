package admission

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Bounds of what a school adds to its letters, so that each stays on one page.
const (
	mostInstructions     = 800 // letters
	mostInstructionLines = 10
)

// SetInstructions says what the campaign's letters add to "what to bring"; empty: nothing.
func SetInstructions(ctx context.Context, db *pg.DB, actor timeline.Actor, c Campaign, text string) error {
	if !actor.MayActFor(c.OrganisationID) {
		return problem.NotFound("campaign_unknown", problem.Facts{"slug": c.Slug})
	}
	if err := account.Allow(actor, account.Manage); err != nil {
		return err
	}
	given := strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n"), "\n")
	for i, line := range given {
		given[i] = account.OneLine(line)
	}
	text = strings.TrimSpace(strings.Join(given, "\n"))
	if letters, lines := utf8.RuneCountInString(text), 1+strings.Count(text, "\n"); letters > mostInstructions || lines > mostInstructionLines {
		return problem.Invalid("instructions_too_long", problem.Facts{
			"letters": letters, "most": mostInstructions, "lines": lines, "most_lines": mostInstructionLines,
		})
	}
	return db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update campaign set instructions = $3 where organisation_id = $1 and id = $2`, c.OrganisationID, c.ID, text)
		if err != nil {
			return fmt.Errorf("keep the instructions: %w", err)
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "instructions_set", Subject: timeline.Subject{CampaignID: c.ID}, Facts: map[string]string{"instructions": text},
		})
	})
}
