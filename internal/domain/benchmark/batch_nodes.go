package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/run"
)

// Nodes are what a bench of the schedule needs of a process that serves.
type Nodes struct {
	Enqueue run.Enqueue // as such a process hands runs over
	Daily   string      // a task of its catalogue that goes through the organisations each day, and is due an hour after midnight in UTC
	// Serve starts one more process of the program that serves the database. It is killed when ctx ends.
	Serve func(ctx context.Context, databaseURL string) (*exec.Cmd, error)
}

// What is wanted.
const (
	TakeoverLimit = 10.0 // seconds
	PlanLimit     = 50.0 // milliseconds
)

// Sizes of these measurements, and bounds.
const (
	planTasks       = 1_000
	planLooks       = 9
	takeoverOrgs    = 3_000
	takeoverChunk   = 100 * time.Millisecond // what each chunk takes besides: the run must be under way when its process is stopped
	takeoverLook    = 5 * time.Millisecond
	takeoverHangs   = 3 * time.Minute
	takeoverServers = 2
)

// plan measures how long it takes to plan one minute at which many tasks are due, with their jobs.
func (b *batching) plan(ctx context.Context, enqueue run.Enqueue) (looks []float64, err error) {
	catalogue := make(run.Catalogue, planTasks)
	for i := range catalogue {
		catalogue[i] = b.task()
		catalogue[i].Name = fmt.Sprint("bench-", i+1)
		catalogue[i].Schedule = run.Schedule{Cron: "* * * * *", Zone: "UTC", Period: run.Minute, CatchUp: run.CatchUpLatest, Most: 1}
	}
	if err := catalogue.Check(); err != nil {
		return nil, err
	}
	planner := run.Planner{Catalogue: catalogue, Enqueue: enqueue}
	if _, err := planner.Look(ctx, b.db); err != nil { // begins the schedule of new tasks
		return nil, err
	}
	for range planLooks {
		for _, statement := range []string{
			`delete from missed_window`, `delete from run`, `delete from river_job`,
			`update schedule set planned_until = date_trunc('minute', clock()) - interval '1 second'`,
			`vacuum analyze missed_window`, `vacuum analyze run`, `vacuum analyze river_job`, `vacuum analyze schedule`,
		} {
			if _, err := b.owner.Exec(ctx, statement); err != nil {
				return nil, fmt.Errorf("prepare a minute: %w", err)
			}
		}
		began := time.Now()
		planned, err := planner.Look(ctx, b.db)
		took := time.Since(began)
		var jobs int
		if err == nil {
			err = b.owner.QueryRow(ctx, `select count(*) from river_job`).Scan(&jobs)
		}
		if err == nil && (planned.Runs != planTasks || jobs != planTasks) {
			err = fmt.Errorf("%d runs with %d jobs were planned, of %d", planned.Runs, jobs, planTasks)
		}
		if err != nil {
			return nil, err
		}
		looks = append(looks, float64(took.Microseconds())/1000)
	}
	return looks, nil
}

// node is a process that serves.
type node struct {
	*exec.Cmd
	wire *wire // nil: nothing is between it and the database
}

// stopping is a way to take a node out of the work.
type stopping struct {
	name  string
	wired bool // it is the network that is cut
	stop  func(node) error
}

func bySignal(signal syscall.Signal) stopping {
	return stopping{name: signal.String(), stop: func(n node) error { return n.Process.Signal(signal) }}
}

func byCut() stopping {
	return stopping{name: "network cut", wired: true, stop: func(n node) error { n.wire.cut(); return nil }}
}

// takeovers measures how soon another process keeps a chunk of a run when the one that works on it is taken out.
func (b *batching) takeovers(ctx context.Context, nodes Nodes, way stopping) (took []float64, err error) {
	for range b.sizes.Takeovers {
		one, err := b.takeover(ctx, nodes, way)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		took = append(took, one.Seconds())
	}
	return took, nil
}

// prepareTakeovers makes enough to do that a run is under way when its process is stopped.
func (b *batching) prepareTakeovers(ctx context.Context, task string) error {
	for _, statement := range []string{
		fmt.Sprintf(`
insert into organisation (slug, name, country, time_zone, locale, currency)
select 'served-' || i, 'Bench', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1, %d) i`, takeoverOrgs),
		fmt.Sprintf(`
create function bench_chunk() returns trigger language plpgsql as $$ begin perform pg_sleep(%f); return new; end $$`, takeoverChunk.Seconds()),
		`create trigger bench_chunk before update of cursor on run for each row when (new.task = '` + task + `') execute function bench_chunk()`,
	} {
		if _, err := b.owner.Exec(ctx, statement); err != nil {
			return fmt.Errorf("prepare the bench of processes: %w", err)
		}
	}
	return nil
}

// held is how a run stands: which process has it, and whether that one kept a chunk.
type held struct {
	pid        int
	kept, over bool
}

func (b *batching) held(ctx context.Context) (h held, err error) {
	var holder string
	err = b.owner.QueryRow(ctx, `select holder, coalesce(kept_at >= taken_at, false), state <> 'running' from run where epoch > 0`).
		Scan(&holder, &h.kept, &h.over)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("look who has the run: %w", err)
	}
	if h.pid, err = strconv.Atoi(holder[strings.LastIndexByte(holder, '/')+1:]); err != nil {
		return h, fmt.Errorf("the holder %q names no process: %w", holder, err)
	}
	return h, nil
}

// until looks again and again, until the run stands as it should; not for ever.
func (b *batching) until(ctx context.Context, what string, stands func(held) bool) (h held, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, takeoverHangs, fmt.Errorf("not within %v: %s", takeoverHangs, what))
	defer cancel()
	ticks := time.NewTicker(takeoverLook)
	defer ticks.Stop()
	for {
		if h, err = b.held(ctx); ctx.Err() == nil && (err != nil || stands(h)) {
			return h, err
		}
		select {
		case <-ctx.Done():
			return h, context.Cause(ctx)
		case <-ticks.C:
		}
	}
}

// takeover has two processes serve, with a window that is due; it stops the one that has it once that one has kept a chunk, and waits
// until the other one has.
func (b *batching) takeover(ctx context.Context, nodes Nodes, way stopping) (took time.Duration, err error) {
	for _, statement := range []string{
		`delete from refusal`, `delete from run`, `delete from river_job`, `delete from schedule`,
		`insert into schedule (task, zone, planned_until)
values ('` + nodes.Daily + `', 'UTC', date_trunc('day', clock() - interval '1 hour', 'UTC') + interval '30 minutes')`,
	} {
		if _, err := b.owner.Exec(ctx, statement); err != nil {
			return 0, fmt.Errorf("prepare a window: %w", err)
		}
	}
	ctx, end := context.WithCancel(ctx)
	var servers []node
	defer func() {
		end()
		for _, server := range servers {
			_ = server.Wait() // it was killed
			if said, ok := server.Stderr.(fmt.Stringer); ok && err != nil {
				err = fmt.Errorf("%w\n%s", err, said)
			}
		}
	}()
	for range takeoverServers {
		server, at := node{}, b.url
		if way.wired {
			if server.wire, at, err = newWire(ctx, b.url); err != nil {
				return 0, err
			}
		}
		if server.Cmd, err = nodes.Serve(ctx, at); err != nil {
			return 0, err
		}
		servers = append(servers, server)
	}
	first, err := b.until(ctx, "a process keeps a chunk", func(h held) bool { return h.kept || h.over })
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(servers, func(server node) bool { return server.Process.Pid == first.pid })
	if at < 0 {
		return 0, fmt.Errorf("the process %d has the run, and was not started by the bench", first.pid)
	}
	if err := way.stop(servers[at]); err != nil {
		return 0, fmt.Errorf("stop the process that has the run: %w", err)
	}
	stopped := time.Now()
	second, err := b.until(ctx, "another process keeps a chunk", func(h held) bool { return h.kept && h.pid != first.pid || h.over })
	if err == nil && second.pid == first.pid {
		err = errors.New("the run ended before its process was stopped")
	}
	return time.Since(stopped), err
}
