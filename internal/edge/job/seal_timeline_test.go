package job_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// Days that nobody sealed are caught up by several at once and out of order; each has its seal all the same, and done again
// nothing changes.
func TestSealTimeline_EachMissedDayHasItsSeal(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	for _, slug := range []string{"ecole", "lycee"} {
		_, err := account.AddOrganisation(t.Context(), db, administrator, account.Organisation{
			Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		must(t, err)
	}
	owner := testdb.Owner(t, url)
	_, err := owner.Exec(t.Context(), `update timeline set at = '2026-10-01 12:00:00Z'`)
	must(t, err)
	at, err := pg.Open(t.Context(), url+"&app.clock=2026-10-20T02:00:00Z", schema.Migrations())
	must(t, err)
	defer at.Close()
	for _, window := range []string{"2026-10-10", "2026-10-15", "2026-10-12", "2026-10-13", "2026-10-15"} {
		results, err := job.Executor(nil).Run(t.Context(), at, administrator, run.Wanted{Task: "seal-timeline", Key: window, Again: true})
		must(t, err)
		if len(results) != 1 || results[0].State != run.StateDone || results[0].Progress.Done != 2 || results[0].Progress.Refused != 0 {
			t.Fatalf("%s: %+v", window, results)
		}
	}
	rows, err := owner.Query(t.Context(), `select to_char(day, 'DD') || ' ' || rows from timeline_seal order by organisation_id, day`)
	must(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	var want []string
	for range 2 {
		for day := 10; day <= 15; day++ {
			count := 0
			if day == 10 { // the first seal covers everything before it
				count = 1
			}
			want = append(want, fmt.Sprintf("%d %d", day, count))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the seals: %q, want %q", got, want)
	}
}
