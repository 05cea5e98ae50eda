package cli

import (
	"fmt"

	"usher/internal/base/mail"
	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
)

type benchTell struct {
	Messages int    `default:"2000" help:"E-mails to send."`
	Rounds   int    `default:"3" help:"Pairs of telling and the limit."`
	Server   string `placeholder:"URL" help:"Server for trying that takes the e-mails (to addresses at example.org): smtp://host:port?tls=none; else one of its own, which forgets them."`
}

// mostBenchMessages is how many people one round tells.
const mostBenchMessages = 200_000

func (b benchTell) Run(s *session) error {
	if b.Messages < 1 || b.Messages > mostBenchMessages || b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_tell_sizes", problem.Facts{"messages": mostBenchMessages, "rounds": mostRounds})
	}
	var server *mail.Server
	if b.Server != "" {
		given, err := mail.ParseURL(b.Server)
		if err != nil {
			return err
		}
		server = &given
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Tell(s.ctx, s.url, benchmark.TellSizes{Messages: b.Messages, Rounds: b.Rounds}, server,
		func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_tell", map[string]any{
		"messages": result.Messages, "kilobytes": result.MessageBytes / 1000,
		"per_second": int(result.PerSecond), "limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio),
		"cpu": fmt.Sprintf("%.2f", result.CPUMillis), "limit_cpu": fmt.Sprintf("%.2f", result.LimitCPUMillis),
		"ratios": fmt.Sprintf("%.2f", result.Ratios), "memory": int(result.PeakRSS),
	})
	return nil
}
