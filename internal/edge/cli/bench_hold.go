package cli

import (
	"fmt"

	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
	"usher/internal/domain/venue"
)

type benchHold struct {
	Places  int `default:"100000" help:"Places of the one sitting."`
	Holds   int `default:"20000" help:"Holds of one seat each, in each round."`
	Clients int `default:"16" help:"Clients that hold at once."`
	Rounds  int `default:"3" help:"Pairs of holding and the limit."`
}

const mostBenchClients = 1_000

func (b benchHold) Run(s *session) error {
	if b.Places < 1 || b.Places > venue.MostPlaces || b.Holds < 1 || b.Holds > b.Places ||
		b.Clients < 1 || b.Clients > mostBenchClients || b.Rounds < 1 || b.Rounds > mostRounds {
		return problem.Invalid("bench_hold", problem.Facts{"places": venue.MostPlaces, "clients": mostBenchClients, "rounds": mostRounds})
	}
	if err := s.open(); err != nil {
		return err
	}
	result, err := benchmark.Hold(s.ctx, s.url, benchmark.HoldSizes{Places: b.Places, Holds: b.Holds, Clients: b.Clients, Rounds: b.Rounds},
		benchmark.ThroughDesk, func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_hold", map[string]any{
		"holds": result.Holds, "places": result.Places, "clients": result.Clients, "per_second": int(result.PerSecond),
		"limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio), "ratios": fmt.Sprintf("%.2f", result.Ratios),
		"p50": fmt.Sprintf("%.1f", result.P50), "p99": fmt.Sprintf("%.1f", result.P99), "memory": int(result.PeakRSS),
	})
	return nil
}
