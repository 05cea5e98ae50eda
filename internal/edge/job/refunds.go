package job

import (
	"context"
	"errors"

	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/domain/reservation"
)

// AskRefunds asks the gateways for what is to go back.
type AskRefunds struct{}

// Kind names the job.
func (AskRefunds) Kind() string { return "ask_refunds" }

// Queue is where it waits.
func (AskRefunds) Queue() string { return "refunds" }

// InsertOpts has the job tried once: the next one repeats it.
func (a AskRefunds) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: a.Queue(), MaxAttempts: 1}
}

type refundWorker struct {
	river.WorkerDefaults[AskRefunds]
	db *pg.DB
}

// Work asks for some that are due; what a gateway did not do is in the log and in the list of what is open.
func (w *refundWorker) Work(ctx context.Context, _ *river.Job[AskRefunds]) error {
	asked, err := reservation.AskRefunds(ctx, w.db, gatewayCallsMost)
	return errors.Join(append(asked.Errors, err)...)
}
