package cli

import (
	"fmt"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
	"usher/internal/edge/job"
)

type benchVerify struct {
	Claims int `default:"20000" help:"Seats to verify, of as many candidates."`
	Rounds int `default:"3" help:"Pairs of a verification and the limit."`
}

func (b benchVerify) Run(s *session) error {
	if b.Claims < 1 || b.Claims > mostBenchCandidates || b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_verify_sizes", problem.Facts{"claims": mostBenchCandidates, "rounds": mostRounds})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Verify(s.ctx, s.url, benchmark.VerifySizes{Claims: b.Claims, Rounds: b.Rounds}, job.Promised(),
		func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_verify", map[string]any{
		"claims": result.Claims, "checks": result.Checks, "seconds": fmt.Sprintf("%.1f", result.Seconds), "analysed": fmt.Sprintf("%.1f", result.Analysed),
		"per_second": int(result.PerSecond), "limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio),
		"ratios": fmt.Sprintf("%.2f", result.Ratios), "memory": int(result.PeakRSS),
	})
	return nil
}
