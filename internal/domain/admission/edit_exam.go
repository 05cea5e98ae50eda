package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Bounds of an exam: a longer code or duration is a typing mistake.
const (
	mostExamCode    = 64      // letters
	mostExamMinutes = 24 * 60 // as the longest sitting
)

// Exam is a paper of a campaign.
type Exam struct {
	ID              int64
	Code            string
	DurationMinutes *int // how long a sitting is of which a file says no end; nil: each says its own
}

// Exams lists the exams of a campaign by code.
func Exams(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (exams []Exam, err error) {
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select id, code, duration_minutes from exam
 where organisation_id = $1 and campaign_id = $2 order by name_key(code) collate "C", id`, c.OrganisationID, c.ID)
		if err != nil {
			return fmt.Errorf("list the exams: %w", err)
		}
		exams, err = pgx.CollectRows(rows, pgx.RowToStructByName[Exam])
		return err
	})
	return exams, err
}

// AddExam adds an exam to the campaign before a file names it; one that is there already stays.
func AddExam(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, code string) (exam Exam, added bool, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return exam, false, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return exam, false, err
	}
	given := code
	code = account.OneLine(given)
	if code == "" || !utf8.ValidString(given) || strings.ContainsAny(given, "|,;\x00") || utf8.RuneCountInString(code) > mostExamCode {
		return exam, false, problem.Invalid("exam_code_form", problem.Facts{"exam": code, "most": mostExamCode})
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil {
			return err
		}
		if exam, err = findExam(ctx, tx, c, code); !problem.Has(err, "exam_unknown") {
			return err
		}
		if err := AddExams(ctx, tx, c, []string{code}); err != nil {
			return err
		}
		if exam, err = findExam(ctx, tx, c, code); err != nil {
			return err
		}
		added = true
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "exam_added", Subject: timeline.Subject{CampaignID: c.ID}, Facts: map[string]any{"exam": exam.Code},
		})
	})
	return exam, added, err
}

// SetDuration says how long an exam lasts, for sittings of which a file says no end; nil takes it
// back. Sittings that are planned already keep their hours.
func SetDuration(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, code string, minutes *int) (exam Exam, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return exam, err
	}
	if minutes != nil && (*minutes < 1 || *minutes > mostExamMinutes) {
		return exam, problem.Invalid("exam_duration_impossible", problem.Facts{"most": mostExamMinutes})
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return exam, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil { // imports read durations under it
			return err
		}
		if exam, err = findExam(ctx, tx, c, code); err != nil {
			return err
		}
		before := exam.DurationMinutes
		exam.DurationMinutes = minutes
		tag, err := tx.Exec(ctx, `update exam set duration_minutes = $3
 where organisation_id = $1 and id = $2 and duration_minutes is distinct from $3`, c.OrganisationID, exam.ID, minutes)
		if err != nil {
			return fmt.Errorf("set the duration of the exam: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "exam_duration_set", Subject: timeline.Subject{CampaignID: c.ID},
			Facts: map[string]any{"exam": exam.Code, "before": before, "after": minutes},
		})
	})
	return exam, err
}

func findExam(ctx context.Context, tx pgx.Tx, c Campaign, code string) (exam Exam, err error) {
	err = tx.QueryRow(ctx, `select id, code, duration_minutes from exam
 where organisation_id = $1 and campaign_id = $2 and name_key(code) = name_key($3)`, c.OrganisationID, c.ID, code).
		Scan(&exam.ID, &exam.Code, &exam.DurationMinutes)
	if errors.Is(err, pgx.ErrNoRows) {
		return exam, problem.NotFound("exam_unknown", problem.Facts{"exam": code, "campaign": c.Slug})
	}
	if err != nil {
		return exam, fmt.Errorf("find the exam: %w", err)
	}
	return exam, nil
}
