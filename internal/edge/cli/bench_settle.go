package cli

import (
	"fmt"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
	"usher/internal/edge/job"
)

type benchSettle struct {
	Lines         int `default:"200000" help:"Tickets that were sold in the month."`
	Organisations int `default:"1000" help:"Organisations that sold them."`
	Rounds        int `default:"3" help:"Pairs of a run and the limit."`
}

// Bounds of a bench of the settlement.
const (
	mostBenchLines         = 10_000_000
	mostBenchOrganisations = 100_000
)

func (b benchSettle) Run(s *session) error {
	if b.Organisations < 1 || b.Organisations > mostBenchOrganisations || b.Lines < 2*b.Organisations || b.Lines > mostBenchLines ||
		b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_settle", problem.Facts{"lines": mostBenchLines, "organisations": mostBenchOrganisations, "rounds": mostRounds})
	}
	if err := s.open(); err != nil {
		return err
	}
	task, err := job.Catalogue().Find(job.SettleTask)
	if err != nil {
		return err
	}
	result, err := benchmark.Settle(s.ctx, s.url, benchmark.SettleSizes{Lines: b.Lines, Organisations: b.Organisations, Rounds: b.Rounds}, task,
		func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_settle", map[string]any{
		"lines": result.Lines, "organisations": result.Organisations, "chunk": result.Chunk, "per_second": int(result.PerSecond),
		"limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio), "ratios": fmt.Sprintf("%.2f", result.Ratios),
		"memory": int(result.AboveIdleMB),
	})
	return nil
}
