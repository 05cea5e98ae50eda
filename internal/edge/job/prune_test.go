package job_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// A night after more than one chunk has grown old, it is gone: events that were delivered, of every organisation, and runs of the
// schedule with what they refused. What a school did with its campaign is kept whole; and done again nothing changes.
func TestPrune_TakesAwayWhatIsOld(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	school(t, db)
	for _, slug := range []string{"ecole", "lycee"} {
		if slug == "lycee" {
			_, err := account.AddOrganisation(t.Context(), db, administrator, account.Organisation{
				Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
			})
			must(t, err)
		}
		org, err := account.FindOrganisation(t.Context(), db, administrator, slug)
		must(t, err)
		_, err = outbox.Add(t.Context(), db, administrator, org, outbox.Endpoint{Name: "crm", URL: "https://" + slug + ".example/"})
		must(t, err)
	}
	owner := testdb.Owner(t, url)
	do := func(statement string, args ...any) {
		t.Helper()
		_, err := owner.Exec(t.Context(), statement, args...)
		must(t, err)
	}
	do(`
insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at, ended_at, state)
select p.organisation_id, p.id, 'candidate.seated', 's' || n, '{}', clock(), clock(), clock() - make_interval(days => n / 8), 'delivered'
  from endpoint p, generate_series(0, 799) n`)
	do(`
insert into run (organisation_id, task, window_key, request, actor, zone, state, counters, window_start, window_end, due_at, lease_until, finished_at)
select 0, 'seal-timeline', 'w' || n, '{}', 'schedule', 'UTC', 'done', '{"changed": 1}', at - interval '1 day', at, at, at, at
  from (select n, clock() - make_interval(days => n / 2) as at from generate_series(2, 1699) n) w`)
	do(`insert into refusal (organisation_id, run_id, list, item, reason) select 0, id, 'refused', 'i', 'r' from run where window_key = 'w1600'`)
	do(`update run set started_at = '2020-01-01', finished_at = '2020-01-02' where organisation_id > 0`)
	keeps := func(end time.Time) []string {
		t.Helper()
		rows, err := owner.Query(t.Context(), `
select 'events that are old ' || count(*) from dispatch where ended_at < $1::timestamptz - interval '90 days' union all
select 'runs that are old ' || count(*) from run where organisation_id = 0 and finished_at < $1::timestamptz - interval '400 days' union all
select 'refusals ' || count(*) from refusal where organisation_id = 0 union all
select 'runs of the campaign ' || count(*) from run where organisation_id > 0 order by 1`, end)
		must(t, err)
		said, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		return said
	}
	var events, runs int
	must(t, owner.QueryRow(t.Context(), `select count(*) from dispatch`).Scan(&events))
	must(t, owner.QueryRow(t.Context(), `select count(*) from run`).Scan(&runs))
	want := []string{"events that are old 0", "refusals 0", "runs of the campaign 3", "runs that are old 0"}
	for i, again := range []bool{false, true} {
		results, err := job.Executor(nil).Run(t.Context(), db, administrator, run.Wanted{Task: "prune", Again: again})
		must(t, err)
		if len(results) != 1 || results[0].State != run.StateDone || results[0].Progress.Refused != 0 {
			t.Fatalf("it ended as %+v", results)
		}
		if diff := cmp.Diff(want, keeps(results[0].Window.End)); diff != "" {
			t.Errorf("what is kept (-want +got):\n%s", diff)
		}
		var left int
		must(t, owner.QueryRow(t.Context(), `select (select count(*) from dispatch) + (select count(*) from run where task <> 'prune')`).Scan(&left))
		gone := int64(events + runs - left)
		if changed := results[0].Progress.Changed; i == 0 && (changed != gone || gone < 900+100) || i == 1 && changed != 0 {
			t.Errorf("it took %d away and says %d", gone, changed)
		}
	}
}
