package job_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// until looks at the database until a number is what it should become.
func until(t *testing.T, owner *pgx.Conn, what, statement string, want int, ended <-chan error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for got := -1; got != want; {
		must(t, owner.QueryRow(t.Context(), statement).Scan(&got))
		if got != want && time.Now().After(deadline) {
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
		select {
		case err := <-ended:
			t.Fatalf("the workers stopped: %v", err)
		case <-tick.C:
		}
	}
}

// What became due while nobody planned is planned, executed and ended by the processes that serve, once, with two of them; a run
// that somebody holds is left to them, and counted; when they are gone, it is done.
func TestRun_WhatIsDueIsPlannedExecutedAndEnded(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	_, err := account.AddOrganisation(t.Context(), db, administrator, account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	must(t, err)
	owner := testdb.Owner(t, url)
	// Nobody looked for three days; and somebody else, who is alive, holds a window of last week.
	for _, statement := range []string{
		`update organisation set created_at = clock() - interval '9 days' where id > 0`,
		`insert into schedule (task, zone, planned_until) values ('seal-timeline', 'UTC', date_trunc('day', clock(), 'UTC') - interval '2 days')`,
		`insert into run (organisation_id, task, window_key, request, actor, zone, due_at, window_start, window_end, epoch, lease_until, holder)
values (0, 'seal-timeline', '2026-01-07', '{}', 'schedule', 'UTC', '2026-01-08 01:00Z', '2026-01-07Z', '2026-01-08Z', 1, clock() + interval '9 seconds', 'elsewhere/1')`,
	} {
		_, err := owner.Exec(t.Context(), statement)
		must(t, err)
	}
	// A job meets the window that is held: a queue may hand one over more than once.
	var held int64
	must(t, owner.QueryRow(t.Context(), `select id from run`).Scan(&held))
	must(t, db.Tx(t.Context(), []int64{account.System}, func(tx pgx.Tx) error {
		return job.EnqueueWindows(t.Context(), tx, []run.Ready{{RunID: held, Epoch: 1}})
	}))
	working, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- job.Run(working, db, job.Channels{}) }()
	}
	until(t, owner, "skips of the window that is held, whose holder gives signs", `
with kept as (update run set lease_until = clock() + interval '9 seconds' where holder = 'elsewhere/1' returning skips)
select skips from kept`, 1, ended)
	const due = `(select count(*) from generate_series(date_trunc('day', clock(), 'UTC') - interval '2 days' + interval '1 hour', clock(), interval '1 day'))`
	until(t, owner, "windows that were due and are not done",
		`select `+due+` - count(*) from run where state = 'done' and window_key <> '2026-01-07'`, 0, ended)
	until(t, owner, "seals of the latest day that was due",
		`select count(*) from timeline_seal where day = (clock() at time zone 'UTC' - interval '1 hour')::date - 1`, 1, ended)
	// When its holder gives no sign any more, the window of last week is done as well.
	until(t, owner, "windows that are not done", `select count(*) from run where state <> 'done'`, 0, ended)
	stop()
	for range 2 {
		must(t, <-ended)
	}
	var twice int
	must(t, owner.QueryRow(t.Context(), `select count(*) from (select task, window_key from run group by 1, 2 having count(*) > 1) r`).Scan(&twice))
	if twice != 0 {
		t.Errorf("%d windows were run twice", twice)
	}
}

// A process that serves does not start where a task would not be protected from doing something twice.
func TestRun_DoesNotStartWithoutTheConstraintsOfTheSchedule(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{"timeline_seal_pkey": "timeline_seal", "run_window_key": "run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, url := testdb.NewWithURL(t)
			_, err := testdb.Owner(t, url).Exec(t.Context(), fmt.Sprintf(`alter table %s drop constraint %s cascade`, table, name))
			must(t, err)
			err = job.Run(t.Context(), db, job.Channels{})
			if p, ok := problem.Of(err); !ok || p.Code != "schedule_constraint_missing" || p.Facts["constraint"] != name {
				t.Errorf("it starts, or says something else: %v", err)
			}
		})
	}
}
