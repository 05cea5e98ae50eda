package cli

import (
	"fmt"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
)

type benchBatch struct {
	Rows   int `default:"200000" help:"Rows that are done."`
	Chunk  int `default:"1000" help:"Rows of one chunk."`
	Rounds int `default:"3" help:"Pairs of a run and the limit."`
}

// Bounds of a bench of chunked work.
const (
	mostBatchRows  = 20_000_000
	mostBenchChunk = 10_000
)

func (b benchBatch) Run(s *session) error {
	if b.Rows < 1 || b.Rows > mostBatchRows || b.Chunk < 1 || b.Chunk > mostBenchChunk || b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_batch", problem.Facts{"rows": mostBatchRows, "chunk": mostBenchChunk, "rounds": mostRounds})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Batch(s.ctx, s.url, benchmark.BatchSizes{Rows: b.Rows, Chunk: b.Chunk, Rounds: b.Rounds},
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
	return nil
}

func percents(shares []float64) string {
	words := make([]string, len(shares))
	for i, share := range shares {
		words[i] = fmt.Sprintf("%.1f", share*100)
	}
	return strings.Join(words, ", ")
}
