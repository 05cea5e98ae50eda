package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
)

type benchCommand struct {
	Convoke benchConvoke `cmd:"" help:"Seat candidates beside inserting the same rows with nothing to decide."`
}

type benchConvoke struct {
	Candidates int `default:"20000" help:"Candidates, all of them paid."`
	Sittings   int `default:"100" help:"Sittings, with just enough places."`
	Rounds     int `default:"3" help:"Pairs of a run and the limit."`
	Processes  int `default:"0" help:"How many processes convoke at once at the end."`
}

// Bounds of a bench.
const (
	mostBenchCandidates = 5_000_000
	mostBenchSittings   = 50_000
	mostRounds          = 20
	mostProcesses       = 16
)

func (b benchConvoke) Run(s *session) error {
	if b.Candidates < 1 || b.Candidates > mostBenchCandidates || b.Sittings < 1 || b.Sittings > min(mostBenchSittings, b.Candidates) {
		return problem.Invalid("bench_sizes", problem.Facts{"candidates": mostBenchCandidates, "sittings": mostBenchSittings})
	}
	if b.Rounds < 1 || b.Rounds > mostRounds || b.Processes < 0 || b.Processes > mostProcesses {
		return problem.Invalid("bench_bounds", problem.Facts{"rounds": mostRounds, "processes": mostProcesses})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Convoke(s.ctx, s.url, benchmark.ConvokeSizes{
		Candidates: b.Candidates, Sittings: b.Sittings, Rounds: b.Rounds, Processes: b.Processes,
	}, spawnConvoke, func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_convoke", map[string]any{
		"candidates": result.Candidates, "sittings": result.Sittings,
		"per_second": int(result.PerSecond), "limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio),
		"ratios": fmt.Sprintf("%.2f", result.Ratios), "no_keys": int(result.LimitNoKeys), "memory": int(result.PeakRSS),
	})
	if result.Processes > 1 {
		s.say("cli_bench_processes", map[string]any{
			"processes": result.Processes,
			"seconds":   fmt.Sprintf("%.1f", result.ProcessesSeconds), "ratio": fmt.Sprintf("%.2f", result.ProcessesRatio),
		})
	}
	return nil
}

// spawnConvoke runs this program once more, as somebody at another counter would.
func spawnConvoke(ctx context.Context, databaseURL, campaign string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	command := exec.CommandContext(ctx, program, "convoke", "--campaign", campaign, "--json")
	command.Env = append(os.Environ(), "USHER_DATABASE_URL="+databaseURL)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("convoke in another process: %w: %s", err, out)
	}
	return nil
}
