package job

import (
	"context"
	"errors"

	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// deliverWorker sends what is due on a channel.
type deliverWorker struct {
	river.WorkerDefaults[notice.Deliver]
	db       *pg.DB
	channels Channels
	stop     <-chan struct{}
}

// Work sends for its budget; when there is more, the job comes again.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[notice.Deliver]) (err error) {
	drainer := w.channels.Drainer(job.Args.Channel, w.stop)
	drainer.Budget = budget
	defer func() { err = errors.Join(err, drainer.Carrier.Close()) }()
	_, ended, err := drainer.Drain(ctx, w.db)
	if err == nil && ended == notice.EndedBudget {
		return river.JobSnooze(0)
	}
	return err
}
