// Package job is the work that nobody waits for: River hands it over after the commit that caused
// it, and each worker calls one use case. It decides no rule, only how long a worker works at a time
// and how often it looks.
package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/base/sms"
	"usher/internal/domain/letter"
	"usher/internal/domain/notice"
)

// Channels are the ways on which this process tells people. What is nil is not configured: its
// messages wait for a process that has it.
type Channels struct {
	Mail            func() notice.Carrier
	SMS             func() notice.Carrier
	Gateway         sms.Gateway // whose receipts are taken; nil: none
	EmailsPerMinute float64     // 0: as fast as the server takes them
	SMSPerMinute    float64
	Bounces         *mail.Mailbox // where messages that come back are read; nil: nowhere
	Public          string        // address under which people reach the pages, for links; empty: they do not
}

// Of are the channels that are configured.
func (c Channels) Of() []notice.Channel {
	var configured []notice.Channel
	if c.Mail != nil {
		configured = append(configured, notice.ChannelEmail)
	}
	if c.SMS != nil {
		configured = append(configured, notice.ChannelSMS)
	}
	return configured
}

// Drainer prepares the sending of what is due on a configured channel. Its carrier must be closed.
func (c Channels) Drainer(channel notice.Channel, stop <-chan struct{}) *notice.Drainer {
	d := &notice.Drainer{Channel: channel, Definitions: letter.Definitions(c.Public), Holder: holder(), Stop: stop}
	if channel == notice.ChannelSMS {
		d.Carrier, d.PerMinute = c.SMS(), c.SMSPerMinute
	} else {
		d.Carrier, d.PerMinute = c.Mail(), c.EmailsPerMinute
	}
	return d
}

// holder names this process to whoever asks who drains a channel.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Bounds of the workers of a process.
const (
	runsAtOnce   = 2                // convocations
	budget       = 30 * time.Second // of one delivery job: then the next one's turn comes
	bouncesEvery = 2 * time.Minute
)

// Run works until ctx ends: it executes requested runs, sends what is due on the channels that are
// configured, reads what came back, plans what is due and executes it, and tells other systems what
// happened.
func Run(ctx context.Context, db *pg.DB, channels Channels) error {
	executor := Executor(ctx.Done())
	executor.Budget = windowBudget
	if err := errors.Join(executor.Catalogue.Check(), executor.Catalogue.CheckConstraints(ctx, db)); err != nil {
		return err
	}
	work := queue.Work{Workers: river.NewWorkers(), Queues: map[string]int{
		Convoke{}.Queue(): runsAtOnce, RunWindow{}.Queue(): windowsAtOnce,
	}}
	river.AddWorker(work.Workers, &windowWorker{db: db, executor: executor, log: slog.Default()})
	river.AddWorker(work.Workers, &convokeWorker{db: db})
	river.AddWorker(work.Workers, &deliverWorker{db: db, channels: channels, stop: ctx.Done()})
	addWebhooks(&work, db, ctx.Done())
	addGateways(&work, db)
	for _, channel := range channels.Of() {
		look := notice.Deliver{Channel: channel}
		work.Queues[look.Queue()] = 1
		work.Ticks = append(work.Ticks, again(db, notice.LookEvery, look))
	}
	if channels.Bounces != nil {
		river.AddWorker(work.Workers, &bounceWorker{db: db, mailbox: *channels.Bounces})
		work.Queues[ReadBounces{}.Queue()] = 1
		work.Ticks = append(work.Ticks, again(db, bouncesEvery, ReadBounces{}))
	}
	working, ctx := errgroup.WithContext(ctx)
	working.Go(func() error { return queue.Run(ctx, db.Pool(), work) })
	working.Go(func() error { return plan(ctx, db, executor.Catalogue) })
	return working.Wait()
}

// again has a job inserted again and again.
func again(db *pg.DB, every time.Duration, job queue.Job) queue.Tick {
	return queue.Tick{Name: job.Kind(), Every: every, Do: func(ctx context.Context) error {
		return db.Tx(ctx, nil, func(tx pgx.Tx) error { return queue.Insert(ctx, tx, job) })
	}}
}
