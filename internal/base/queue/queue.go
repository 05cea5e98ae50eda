// Package queue executes jobs through River. Jobs are inserted in the transaction that causes
// them, and worked on after its commit by whichever process serves. It decides nothing about what
// a job does: rows decide, River executes, and every job may run twice.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// Bounds of working.
const (
	jobTimeout    = 2 * time.Minute        // a job works for a budget below it, and asks to be called again
	fetchCooldown = 20 * time.Millisecond  // a commit's notification is followed at once
	fetchPoll     = 500 * time.Millisecond // when a notification was lost
	rescueAfter   = 5 * time.Minute        // of a process that was killed; must be longer than jobTimeout
	softStop      = 8 * time.Second        // for jobs under way, when the program is told to stop
	hardStop      = 5 * time.Second        // … and once they are cut off
)

// inserter only inserts: it needs no sessions of its own.
var inserter = sync.OnceValues(func() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(nil), &river.Config{Logger: slog.New(slog.DiscardHandler)})
})

// Job is one piece of work: its kind, its arguments, and how River is to treat it.
type Job interface {
	river.JobArgs
	InsertOpts() river.InsertOpts
}

// Insert adds the jobs in the transaction: they exist when it commits, and not otherwise. River dates them by the clock of this
// process, and the database's triggers job_inserted and job_put_back by its own, which is the one that hands them out.
func Insert(ctx context.Context, tx pgx.Tx, jobs ...Job) error {
	if len(jobs) == 0 {
		return nil
	}
	client, err := inserter()
	if err != nil {
		return fmt.Errorf("prepare the queue: %w", err)
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{Args: job}
	}
	if _, err := client.InsertManyFastTx(ctx, tx, params); err != nil {
		return fmt.Errorf("queue the jobs: %w", err)
	}
	return nil
}

// Tick is done again and again by each process that works, so that work is found whose own job was lost. It waits for nobody's
// lead: a leader's lease outlasts a clock that was set back. What it does changes nothing when there is nothing to find.
type Tick struct {
	Name  string
	Every time.Duration
	Do    func(ctx context.Context) error
}

// tickWithin bounds one tick; what a longer one would have found, the next finds.
const tickWithin = 30 * time.Second

// run does it at once, and then again until ctx ends.
func (t Tick) run(ctx context.Context) {
	ticks := time.NewTicker(t.Every)
	defer ticks.Stop()
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, tickWithin)
		err := t.Do(within)
		cancel()
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "nothing was looked for; the next look tries again", "look", t.Name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}

// Work describes what a process works on.
type Work struct {
	Workers *river.Workers
	Queues  map[string]int // how many jobs of a queue at once, in this process
	Ticks   []Tick
}

func (w Work) config() *river.Config {
	config := &river.Config{
		Workers: w.Workers, Queues: map[string]river.QueueConfig{}, JobTimeout: jobTimeout, RescueStuckJobsAfter: rescueAfter,
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll, Logger: slog.Default(), ErrorHandler: faults{},
	}
	for name, atOnce := range w.Queues {
		config.Queues[name] = river.QueueConfig{MaxWorkers: atOnce}
	}
	return config
}

// Run works until ctx ends, then lets the jobs under way end within a bound.
func Run(ctx context.Context, pool *pgxpool.Pool, work Work) error {
	client, err := river.NewClient(riverpgxv5.New(pool), work.config())
	if err != nil {
		return fmt.Errorf("prepare the workers: %w", err)
	}
	// River's own context outlives ctx: it is stopped in order, and within a bound whatever it is doing.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the workers: %w", err)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	ticking, halt := context.WithCancel(ctx)
	defer halt()
	for _, tick := range work.Ticks {
		looking.Go(func() { tick.run(ticking) })
	}
	select {
	case <-ctx.Done():
	case <-client.Stopped():
		return errors.New("the workers stopped by themselves")
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), softStop)
	defer cancel()
	if err := client.Stop(stopping); err == nil {
		return nil
	}
	cutting, cut := context.WithTimeout(context.WithoutCancel(ctx), hardStop)
	defer cut()
	if err := client.StopAndCancel(cutting); err != nil {
		return fmt.Errorf("stop the workers: %w", err)
	}
	return nil
}

// faults puts into the log why a job failed: River itself keeps it in the job's row, which nobody reads.
type faults struct{}

func (faults) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	slog.ErrorContext(ctx, "a job failed", "kind", job.Kind, "job", job.ID, "attempt", job.Attempt, "of", job.MaxAttempts, "error", err)
	return nil
}

func (faults) HandlePanic(ctx context.Context, job *rivertype.JobRow, cause any, trace string) *river.ErrorHandlerResult {
	slog.ErrorContext(ctx, "a job broke off", "kind", job.Kind, "job", job.ID, "attempt", job.Attempt, "of", job.MaxAttempts,
		"cause", cause, "trace", trace)
	return nil
}
