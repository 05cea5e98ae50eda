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
	Import  benchImport  `cmd:"" help:"Import candidates and payments beside inserting the same rows with nothing to decide."`
	Batch   benchBatch   `cmd:"" help:"Do rows in chunks, as a run of the schedule, beside one plain statement that does the same."`
	Letters benchLetters `cmd:"" help:"Draw letters in one PDF beside the same page with fixed texts."`
	Hold    benchHold    `cmd:"" help:"Hold single best seats of one sitting, many clients at once, beside inserting the same rows with nothing to choose."`
	Settle  benchSettle  `cmd:"" help:"Settle a month, as a run of the schedule, beside one statement that sums up and inserts the same for all."`
	Verify  benchVerify  `cmd:"" help:"Verify that every promise holds, beside counting the rows of the same tables."`
	Tell    benchTell    `cmd:"" help:"Tell people by e-mail, with letter and calendar entry, beside handing over as many messages with nothing to draw or record."`
}

type benchLetters struct {
	Letters int `default:"2000" help:"Letters in one PDF."`
}

const mostBenchLetters = 20_000

func (b benchLetters) Run(s *session) error {
	if b.Letters < 1 || b.Letters > mostBenchLetters {
		return problem.Invalid("bench_letters", problem.Facts{"most": mostBenchLetters})
	}
	result, err := benchmark.Letters(b.Letters)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_letters", map[string]any{
		"letters": result.Letters, "megabytes": fmt.Sprintf("%.1f", float64(result.Bytes)/1e6),
		"per_second": int(result.PerSecond), "limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio),
		"memory": int(result.PeakRSS),
	})
	return nil
}

type benchConvoke struct {
	Candidates int `default:"20000" help:"Candidates, all of them paid."`
	Sittings   int `default:"100" help:"Sittings, with just enough places."`
	Exams      int `default:"1" help:"Exams that each candidate sits, each with as many sittings."`
	Rounds     int `default:"3" help:"Pairs of a run and the limit."`
	Processes  int `default:"0" help:"How many processes convoke at once at the end."`
}

// Bounds of a bench.
const (
	mostBenchCandidates = 5_000_000
	mostBenchSittings   = 50_000
	mostRounds          = 20
	mostProcesses       = 16
	mostExams           = 10
)

func (b benchConvoke) Run(s *session) error {
	if b.Candidates < 1 || b.Candidates > mostBenchCandidates || b.Sittings < 1 || b.Sittings > min(mostBenchSittings, b.Candidates) {
		return problem.Invalid("bench_sizes", problem.Facts{"candidates": mostBenchCandidates, "sittings": mostBenchSittings})
	}
	if b.Rounds < 1 || b.Rounds > mostRounds || b.Processes < 0 || b.Processes > mostProcesses || b.Exams < 1 || b.Exams > mostExams {
		return problem.Invalid("bench_bounds", problem.Facts{"rounds": mostRounds, "processes": mostProcesses, "exams": mostExams})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Convoke(s.ctx, s.url, benchmark.ConvokeSizes{
		Candidates: b.Candidates, Sittings: b.Sittings, Exams: b.Exams, Rounds: b.Rounds, Processes: b.Processes,
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
