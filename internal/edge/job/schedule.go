package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// RunWindow executes a run of the schedule. The epoch is that of its last holder: a job for one that has passed does nothing.
type RunWindow struct {
	RunID int64 `json:"run_id"`
	Epoch int   `json:"epoch"`
}

// Kind names the job.
func (RunWindow) Kind() string { return "run_window" }

// Queue is where it waits.
func (RunWindow) Queue() string { return "windows" }

// InsertOpts has the job tried once: retries come from the planner, which looks at the run and not at the job.
func (r RunWindow) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: r.Queue(), MaxAttempts: 1}
}

// EnqueueWindows hands runs over in the transaction that made them ready.
func EnqueueWindows(ctx context.Context, tx pgx.Tx, runs []run.Ready) error {
	jobs := make([]queue.Job, len(runs))
	for i, ready := range runs {
		jobs[i] = RunWindow{RunID: ready.RunID, Epoch: ready.Epoch}
	}
	return queue.Insert(ctx, tx, jobs...)
}

var _ run.Enqueue = EnqueueWindows

// Bounds of the schedule in a process.
const (
	windowsAtOnce = 4
	windowBudget  = 30 * time.Second // then the next run gets its turn
	planEvery     = time.Second
	planWithin    = 30 * time.Second // a look that takes longer is given up, and the next one finds the same
	alarmFirst    = 30 * time.Second // what a process that begins catches up in that time is not late for long
	alarmEvery    = 5 * time.Minute
)

// Executor prepares the execution of what is in the catalogue, by this process, until stop is closed.
func Executor(stop <-chan struct{}) run.Executor {
	return run.Executor{Catalogue: Catalogue(), Enqueue: EnqueueWindows, Holder: holder(), Stop: stop}
}

// LogLevel is the lowest level of what the log of a server must hold: River is quiet above it, and tells of every job below.
const LogLevel = slog.LevelWarn

type windowWorker struct {
	river.WorkerDefaults[RunWindow]
	db       *pg.DB
	executor run.Executor
	log      *slog.Logger
}

// Timeout is longer than any execution lasts: River's own would end the trial of a slow item before that item is named. What stops
// a holder that lost its run is the lease.
func (w *windowWorker) Timeout(*river.Job[RunWindow]) time.Duration { return w.executor.Longest() }

// Work works on the run for its budget. A run that somebody else holds is left to them, and that is no error. What broke a
// holding off is said here, once, and ends there: the run's row holds it, and the planner has the run taken again.
func (w *windowWorker) Work(ctx context.Context, job *river.Job[RunWindow]) error {
	ended, err := w.executor.Execute(ctx, w.db, run.Ready{RunID: job.Args.RunID, Epoch: job.Args.Epoch})
	if err != nil {
		level := slog.LevelError
		if errors.Is(err, run.ErrLost) { // nothing is lost but the run: somebody else has it
			level = slog.LevelWarn
		}
		w.log.Log(ctx, level, "a run broke off", "run", job.Args.RunID, "failed", ended.How == run.EndedFailed, "error", err)
		return nil
	}
	if ended.How == run.EndedBusy {
		level := LogLevel
		if ended.Held.Overdue {
			level = slog.LevelError
		}
		w.log.Log(ctx, level, "skip: the run is held elsewhere", "run", job.Args.RunID, "holder", ended.Held.Holder, "since", ended.Held.Since,
			"overdue", ended.Held.Overdue)
	}
	return nil
}

// plan looks what is due until ctx ends. Every process does, and none leads: a look that fails is followed by the next.
func plan(ctx context.Context, db *pg.DB, catalogue run.Catalogue) error {
	planner := run.Planner{Catalogue: catalogue, Enqueue: EnqueueWindows}
	looks, alarms := time.NewTicker(planEvery), time.NewTicker(alarmFirst)
	defer looks.Stop()
	defer alarms.Stop()
	sounding := alarm{log: slog.Default()}
	look(ctx, db, planner)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
			look(ctx, db, planner)
		case <-alarms.C:
			alarms.Reset(alarmEvery)
			sounding.look(ctx, db, catalogue)
		}
	}
}

func look(ctx context.Context, db *pg.DB, planner run.Planner) {
	within, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	planned, err := planner.Look(within, db)
	if len(planned.ZonesUnknown) > 0 {
		slog.ErrorContext(ctx, "nothing is planned for zones that this program does not know", "zones", planned.ZonesUnknown)
	}
	for _, back := range planned.TurnedBack {
		slog.ErrorContext(ctx, "the schedule was planned ahead of the clock and goes on from now: the clock was set back, or somebody changed the row",
			"task", back.Task, "zone", back.Zone, "planned_until", back.Until)
	}
	if planned.Released > 0 {
		slog.ErrorContext(ctx, "windows were begun before they were due, by a clock that was ahead; they are run again when they are due",
			"windows", planned.Released)
	}
	for _, late := range planned.TooLate {
		slog.WarnContext(ctx, "windows of the schedule came too late to be run", "task", late.Task, "zone", late.Zone, "missed", late.Count,
			"first", late.First, "last", late.Last)
	}
	if err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "the schedule could not be planned; the next look tries again", "error", err)
	}
	aside, err := timeline.SetAsideAhead(within, db)
	if aside > 0 {
		slog.ErrorContext(ctx, "seals of days that are not over were set aside: they were made by a clock that was ahead", "organisations", aside)
	}
	if err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "seals that were made too early could not be set aside; the next look tries again", "error", err)
	}
}

// alarm says what is late, failed or refused something: soon after its process begins, and then each thing once, and once more
// when it stands otherwise. What is late is said again each hour: it may stay so for ever.
type alarm struct {
	log    *slog.Logger
	within time.Duration // 0: planWithin
	said   map[int64]alarmed
	at     map[int64]time.Time
}

// alarmed is how a run stood when it was said.
type alarmed struct {
	ended, failed bool
	refused       int64 // of one that has ended
}

// alarmAgain is how often a run that does not end is said.
const alarmAgain = time.Hour

func (a *alarm) look(ctx context.Context, db *pg.DB, catalogue run.Catalogue) {
	within, cancel := context.WithTimeout(ctx, cmp.Or(a.within, planWithin))
	defer cancel()
	late, err := run.Late(within, db, catalogue)
	if err != nil {
		if ctx.Err() == nil {
			a.log.ErrorContext(ctx, "nobody knows whether runs are late", "error", err)
		}
		return
	}
	said, at := make(map[int64]alarmed, len(late)), make(map[int64]time.Time, len(late)) // what is late no more is forgotten
	for _, r := range late {
		now := alarmed{ended: r.FinishedAt != nil, failed: r.State == run.StateFailed}
		if now.ended {
			now.refused = r.Progress.Refused
		}
		before, known := a.said[r.ID]
		said[r.ID], at[r.ID] = now, a.at[r.ID]
		if known && before == now && (now.ended || time.Since(a.at[r.ID]) < alarmAgain) {
			continue
		}
		at[r.ID] = time.Now()
		a.log.ErrorContext(ctx, "a run is late, failed or refused something", "task", r.Task, "window", r.Key, "run", r.ID, "state", r.State,
			"refused", r.Progress.Refused, "unreadable", r.Unreadable, "holder", r.Holder, "due_at", r.DueAt, "error", r.Error)
	}
	a.said, a.at = said, at
}
