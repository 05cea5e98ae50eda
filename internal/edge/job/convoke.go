package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// Convoke executes a requested run.
type Convoke struct {
	OrganisationID int64 `json:"organisation_id"`
	RunID          int64 `json:"run_id"`
}

// Kind names the job.
func (Convoke) Kind() string { return "convoke" }

// Queue is where requested runs wait.
func (Convoke) Queue() string { return "convoke" }

// InsertOpts has the job tried once: a run that broke off is shown as interrupted, and repeated by
// a person.
func (c Convoke) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: c.Queue(), MaxAttempts: 1}
}

// EnqueueConvoke hands a run over in the transaction that wrote its row.
func EnqueueConvoke(ctx context.Context, tx pgx.Tx, organisationID, runID int64) error {
	return queue.Insert(ctx, tx, Convoke{OrganisationID: organisationID, RunID: runID})
}

var _ convocation.Enqueue = EnqueueConvoke

// mostRunTime bounds a run: a million candidates take minutes.
const mostRunTime = time.Hour

type convokeWorker struct {
	river.WorkerDefaults[Convoke]
	db *pg.DB
}

// Timeout is the run's own.
func (*convokeWorker) Timeout(*river.Job[Convoke]) time.Duration { return mostRunTime }

// Work executes the run in the name of whoever asked for it. They were allowed to when they asked.
func (w *convokeWorker) Work(ctx context.Context, job *river.Job[Convoke]) error {
	actor := timeline.Actor{OrganisationID: job.Args.OrganisationID, Role: account.Agent}
	err := run.See(ctx, w.db, actor, job.Args.RunID, func(_ pgx.Tx, r run.Run) error { actor.Name = r.Actor; return nil })
	if err != nil {
		return err
	}
	return convocation.Execute(ctx, w.db, actor, job.Args.OrganisationID, job.Args.RunID, convocation.Options{})
}
