package job

import (
	"context"

	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/domain/outbox"
)

// How many endpoints this process drains at once, of those that work and of those that failed last. It is many: whoever waits for
// an answer costs a goroutine and a connection. What is scarce are places in the database, which pages want too: of those a
// drainer has one only for a turn.
const (
	workingAtOnce = 256
	failingAtOnce = 64
	turnsAtOnce   = 8
)

// addWebhooks has this process tell other systems what happened.
func addWebhooks(work *queue.Work, db *pg.DB, stop <-chan struct{}) {
	river.AddWorker(work.Workers, &dispatchWorker{db: db, stop: stop, turns: make(chan struct{}, turnsAtOnce)})
	work.Queues[outbox.QueueWorking], work.Queues[outbox.QueueFailing] = workingAtOnce, failingAtOnce
	work.Ticks = append(work.Ticks, queue.Tick{Name: "endpoints", Every: outbox.LookEvery, Do: func(ctx context.Context) error {
		_, err := outbox.Enqueue(ctx, db)
		return err
	}})
}

// Holder names this process to whoever asks who drains an endpoint.
func Holder() string { return holder() }

// dispatchWorker delivers what is due at an endpoint.
type dispatchWorker struct {
	river.WorkerDefaults[outbox.Dispatch]
	db    *pg.DB
	stop  <-chan struct{}
	turns chan struct{}
}

// Work delivers for its budget; when there is more, the job comes again, after those of the others.
func (w *dispatchWorker) Work(ctx context.Context, job *river.Job[outbox.Dispatch]) error {
	drainer := outbox.Drainer{
		OrganisationID: job.Args.OrganisationID, EndpointID: job.Args.EndpointID, Holder: holder(), Budget: budget, Stop: w.stop,
		Turns: w.turns,
	}
	_, ended, err := drainer.Drain(ctx, w.db)
	if err == nil && ended == outbox.EndedBudget {
		return river.JobSnooze(0)
	}
	return err
}
