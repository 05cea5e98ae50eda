package job

import (
	"context"
	"errors"

	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/domain/reservation"
)

// gatewayCallsMost is how many checkouts, or refunds, one job asks gateways about: each call is bounded by some twenty seconds, and the
// job by its own budget. What is left comes with the next.
const gatewayCallsMost = 5

// LookAtCheckouts asks the gateways what became of checkouts whose end is not known.
type LookAtCheckouts struct{}

// Kind names the job.
func (LookAtCheckouts) Kind() string { return "look_at_checkouts" }

// Queue is where it waits.
func (LookAtCheckouts) Queue() string { return "checkouts" }

// InsertOpts has the job tried once: the next look repeats it.
func (l LookAtCheckouts) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: l.Queue(), MaxAttempts: 1}
}

// addGateways has this process ask gateways what became of checkouts, and for what is to go back.
func addGateways(work *queue.Work, db *pg.DB) {
	river.AddWorker(work.Workers, &checkoutWorker{db: db})
	river.AddWorker(work.Workers, &refundWorker{db: db})
	for _, look := range []queue.Job{LookAtCheckouts{}, AskRefunds{}} {
		work.Ticks = append(work.Ticks, again(db, reservation.LookEvery, look))
	}
	work.Queues[LookAtCheckouts{}.Queue()] = 1
	work.Queues[AskRefunds{}.Queue()] = 1
}

type checkoutWorker struct {
	river.WorkerDefaults[LookAtCheckouts]
	db *pg.DB
}

// Work looks at some that are due; a failure of one is in the log, and it is looked at again.
func (w *checkoutWorker) Work(ctx context.Context, _ *river.Job[LookAtCheckouts]) error {
	looked, err := reservation.LookAtCheckouts(ctx, w.db, gatewayCallsMost)
	return errors.Join(append(looked.Errors, err)...)
}
