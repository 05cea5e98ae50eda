package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
	"usher/internal/edge/job"
)

type benchBatch struct {
	Rows   int `default:"200000" help:"Rows that are done."`
	Chunk  int `default:"1000" help:"Rows of one chunk."`
	Rounds int `default:"3" help:"Pairs of a run and the limit."`

	Takeovers int `default:"2" help:"How often a process that works on a run is killed, is stopped, and has its network cut, until another goes on; 0: never."`
}

// Bounds of a bench of chunked work.
const (
	mostBatchRows  = 20_000_000
	mostBenchChunk = 10_000
	mostTakeovers  = 20
)

func (b benchBatch) Run(s *session) error {
	if b.Rows < 1 || b.Rows > mostBatchRows || b.Chunk < 1 || b.Chunk > mostBenchChunk || b.Rounds < 1 || b.Rounds > mostRounds ||
		b.Takeovers < 0 || b.Takeovers > mostTakeovers {
		return problem.Invalid("bench_batch", problem.Facts{
			"rows": mostBatchRows, "chunk": mostBenchChunk, "rounds": mostRounds, "takeovers": mostTakeovers,
		})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Batch(s.ctx, s.url, benchmark.BatchSizes{Rows: b.Rows, Chunk: b.Chunk, Rounds: b.Rounds, Takeovers: b.Takeovers},
		benchmark.Nodes{Enqueue: job.EnqueueWindows, Daily: job.SealTask, Serve: spawnServe},
		func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_batch", map[string]any{
		"rows": result.Rows, "chunk": result.Chunk, "per_second": int(result.PerSecond), "limit": int(result.LimitPerSecond),
		"ratio": fmt.Sprintf("%.2f", result.Ratio), "ratios": fmt.Sprintf("%.2f", result.Ratios),
		"cost": fmt.Sprintf("%.1f", result.CheckpointCost*100), "costs": percents(result.Costs), "noisy": result.Noisy, "memory": int(result.AboveIdleMB),
	})
	s.say("cli_bench_plan", map[string]any{"took": fmt.Sprintf("%.1f", result.Plan), "looks": fmt.Sprintf("%.1f", result.PlanLooks), "limit": int(result.PlanLimit)})
	if b.Takeovers > 0 {
		s.say("cli_bench_takeover", map[string]any{
			"took": fmt.Sprintf("%.1f", result.Takeover), "killed": fmt.Sprintf("%.1f", result.TakeoverKilled),
			"stopped": fmt.Sprintf("%.1f", result.TakeoverStopped), "cut": fmt.Sprintf("%.1f", result.TakeoverCut), "limit": int(result.TakeoverLimit),
		})
	}
	return nil
}

// spawnServe runs this program once more, as another machine would that serves the same database: with nothing of what this one is told
// by its environment, so that it reads no mailbox and sends nothing.
func spawnServe(ctx context.Context, databaseURL string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	command := exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0")
	command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "USHER_") }),
		"USHER_DATABASE_URL="+databaseURL)
	command.Stderr = &bytes.Buffer{}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("serve in another process: %w", err)
	}
	return command, nil
}

func percents(shares []float64) string {
	words := make([]string, len(shares))
	for i, share := range shares {
		words[i] = fmt.Sprintf("%.1f", share*100)
	}
	return strings.Join(words, ", ")
}
