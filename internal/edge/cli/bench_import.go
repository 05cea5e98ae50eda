package cli

import (
	"fmt"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
)

type benchImport struct {
	Rows   int `default:"20000" help:"Candidates to import; a tenth of them has paid."`
	Rounds int `default:"3" help:"Pairs of the imports and the limit."`
}

// mostBenchRows is how many rows one file takes.
const mostBenchRows = 1_000_000

func (b benchImport) Run(s *session) error {
	if b.Rows < 1 || b.Rows > mostBenchRows || b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_import_sizes", problem.Facts{"rows": mostBenchRows, "rounds": mostRounds})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Import(s.ctx, s.url, benchmark.ImportSizes{Rows: b.Rows, Rounds: b.Rounds},
		func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_import", map[string]any{
		"rows": result.Rows, "payments": result.Payments, "per_second": int(result.PerSecond), "again": int(result.AgainPerSecond),
		"limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio), "ratios": fmt.Sprintf("%.2f", result.Ratios),
		"memory": int(result.PeakRSS),
	})
	return nil
}
