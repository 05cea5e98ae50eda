package job

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/domain/waiting"
)

// offerEvery is how often it is looked whether places came free for those who wait, however they did.
const offerEvery = 15 * time.Second

// OfferPlaces offers what came free to those who wait.
type OfferPlaces struct{}

// Kind names the job.
func (OfferPlaces) Kind() string { return "offer_places" }

// Queue is where it waits.
func (OfferPlaces) Queue() string { return "waiting" }

// InsertOpts has the job tried once: the next look repeats it.
func (o OfferPlaces) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: o.Queue(), MaxAttempts: 1}
}

// addWaiting has this process look after the waiting lists.
func addWaiting(work *queue.Work, db *pg.DB) {
	river.AddWorker(work.Workers, &offerWorker{db: db})
	work.Ticks = append(work.Ticks, again(db, offerEvery, OfferPlaces{}))
	work.Queues[OfferPlaces{}.Queue()] = 1
}

type offerWorker struct {
	river.WorkerDefaults[OfferPlaces]
	db *pg.DB
}

// Work offers what is free now; what failed is in the log, and the next look repeats it.
func (w *offerWorker) Work(ctx context.Context, _ *river.Job[OfferPlaces]) error {
	_, err := waiting.Offer(ctx, w.db, waiting.System)
	return err
}
