package job_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailpit"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// ahead is the clock of a node that is a year ahead. What River leaves to the database is left to it, as in any program; dated are
// also the jobs, for which River has no stub but this one.
type ahead struct{ dates bool }

func (ahead) Now() time.Time { return time.Now().AddDate(1, 0, 0) }

func (a ahead) NowOrNil() *time.Time {
	if !a.dates {
		return nil
	}
	now := a.Now()
	return &now
}

type patience struct {
	Puts int `json:"puts"` // how often it is put back before
}

func (patience) Kind() string { return "patience" }

type patienceWorker struct {
	river.WorkerDefaults[patience]
	done chan<- struct{}
	puts atomic.Int64
}

func (w *patienceWorker) Work(_ context.Context, job *river.Job[patience]) error {
	w.done <- struct{}{}
	if w.puts.Add(1) <= int64(job.Args.Puts) {
		return river.JobSnooze(0)
	}
	return nil
}

// A node whose clock is a year ahead inserts a job, has it put back at the end of its queue, and has it again: it does not wait a year
// for either. Without the triggers it does.
func TestJobs_OfANodeThatIsAhead(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	done := make(chan struct{}, 10)
	workers := river.NewWorkers()
	river.AddWorker(workers, &patienceWorker{done: done})
	node, err := river.NewClient(riverpgxv5.New(db.Pool()), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, Test: river.TestConfig{Time: ahead{}},
	})
	must(t, err)
	must(t, node.Start(t.Context()))
	t.Cleanup(func() { must(t, node.Stop(context.WithoutCancel(t.Context()))) })
	inserter, err := river.NewClient(riverpgxv5.New(db.Pool()), &river.Config{Test: river.TestConfig{Time: ahead{dates: true}}})
	must(t, err)
	insert := func() {
		tx, err := db.Pool().Begin(t.Context())
		must(t, err)
		_, err = inserter.InsertManyFastTx(t.Context(), tx, []river.InsertManyParams{{Args: patience{Puts: 1}}})
		must(t, err)
		must(t, tx.Commit(t.Context()))
	}
	insert()
	for range 2 {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("the job waits until the clock of its node")
		}
	}
	until(t, owner, "jobs that are not completed", `select count(*) from river_job where state <> 'completed'`, 0, nil)
	// The control: River dates them as was believed.
	_, err = owner.Exec(t.Context(), `drop trigger job_inserted on river_job`)
	must(t, err)
	insert()
	var later int
	must(t, owner.QueryRow(t.Context(), `select count(*) from river_job where state = 'available' and scheduled_at > now() + interval '360 days'`).Scan(&later))
	if later != 1 {
		t.Errorf("without the trigger %d jobs are dated by the node, want 1: the test shows nothing", later)
	}
}

// The lease of River's leader outlasts a clock that was set back, and nobody leads until then. Messages and events whose jobs were lost
// leave all the same.
func TestRun_NobodyLeads(t *testing.T) {
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	c := school(t, db)
	org, err := account.FindOrganisation(t.Context(), db, administrator, "ecole")
	must(t, err)
	came := make(chan string, 10)
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- "event" }))
	t.Cleanup(listener.Close)
	_, err = outbox.Add(t.Context(), db, administrator, org, outbox.Endpoint{Name: "office", URL: listener.URL})
	must(t, err)
	_, err = payment.Record(t.Context(), db, administrator, c.Slug, "A1", payment.Payment{AmountMinor: 1, Method: "cash", Receipt: "W1"})
	must(t, err)
	_, err = convocation.Convoke(t.Context(), db, administrator, convocation.Target{Campaign: c.Slug}, convocation.Options{})
	must(t, err)
	for _, statement := range []string{
		`delete from river_job`,
		`insert into river_leader (name, leader_id, elected_at, expires_at) values ('default', 'gone', now() + interval '1 year', now() + interval '366 days')`,
	} {
		_, err := owner.Exec(t.Context(), statement)
		must(t, err)
	}
	post := mailpit.Start(t)
	server, err := mail.ParseURL(post.URL())
	must(t, err)
	working, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- job.Run(working, db, job.Channels{Mail: func() notice.Carrier {
			return watched{&notice.Post{Server: server, From: "convocations@ecole.example"}, came}
		}})
	}()
	for want := map[string]bool{"event": true, "a1@example.org": true, "a2@example.org": true}; len(want) > 0; {
		select {
		case what := <-came:
			delete(want, what)
		case err := <-ended:
			t.Fatalf("the workers stopped: %v", err)
		case <-time.After(time.Minute):
			t.Fatalf("nothing came for %v", want)
		}
	}
	stop()
	must(t, <-ended)
	var leaders string
	must(t, owner.QueryRow(t.Context(), `select string_agg(leader_id, ' ') from river_leader`).Scan(&leaders))
	if leaders != "gone" {
		t.Errorf("%q led: the test shows nothing", leaders)
	}
}
