package admission

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// AddExams adds the exams of the campaign that are not there yet. Codes are compared without
// regard to case and spacing; the first spelling stays.
func AddExams(ctx context.Context, tx pgx.Tx, c Campaign, codes []string) error {
	if len(codes) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
insert into exam (organisation_id, campaign_id, code)
select $1, $2, w.code from unnest($3::text[]) with ordinality w(code, nth) order by w.nth
    on conflict do nothing`, c.OrganisationID, c.ID, codes)
	if err != nil {
		return fmt.Errorf("add the exams: %w", err)
	}
	return nil
}

// ExamDurations tells, by exam id, how long an exam lasts, where the campaign says it.
func ExamDurations(ctx context.Context, tx pgx.Tx, c Campaign) (map[int64]int, error) {
	rows, err := tx.Query(ctx, `select id, duration_minutes from exam
 where organisation_id = $1 and campaign_id = $2 and duration_minutes is not null`, c.OrganisationID, c.ID)
	if err != nil {
		return nil, fmt.Errorf("read the durations of the exams: %w", err)
	}
	durations := map[int64]int{}
	var id int64
	var minutes int
	if _, err := pgx.ForEachRow(rows, []any{&id, &minutes}, func() error { durations[id] = minutes; return nil }); err != nil {
		return nil, fmt.Errorf("read the durations of the exams: %w", err)
	}
	return durations, nil
}
