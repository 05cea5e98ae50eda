package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/benchmark"
	"usher/internal/domain/venue"
	"usher/internal/edge/web"
)

type benchHold struct {
	Places  int `default:"100000" help:"Places of the one sitting."`
	Holds   int `default:"20000" help:"Holds of one seat each, in each round."`
	Clients int `default:"16" help:"Clients that hold at once."`
	Rounds  int `default:"3" help:"Pairs of holding and the limit."`

	HTTP bool `name:"http" help:"Hold by sending the form of the sitting's page, to the pages served on loopback by this process."`
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
	through := benchmark.ThroughDesk
	if b.HTTP {
		through = benchmark.HoldThrough{Name: "http", Open: throughPages}
	}
	result, err := benchmark.Hold(s.ctx, s.url, benchmark.HoldSizes{Places: b.Places, Holds: b.Holds, Clients: b.Clients, Rounds: b.Rounds},
		through, func(step string) { fmt.Fprintln(s.stderr, step) })
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(result)
	}
	s.say("cli_bench_hold", map[string]any{
		"holds": result.Holds, "places": result.Places, "clients": result.Clients, "http": b.HTTP, "per_second": int(result.PerSecond),
		"limit": int(result.LimitPerSecond), "ratio": fmt.Sprintf("%.2f", result.Ratio), "ratios": fmt.Sprintf("%.2f", result.Ratios),
		"p50": fmt.Sprintf("%.1f", result.P50), "p99": fmt.Sprintf("%.1f", result.P99), "memory": int(result.PeakRSS),
	})
	return nil
}

// throughPages serves the pages on loopback, in this process, and sends them the form by which a buyer asks for the best seat. The answer that
// leads to the reservation is the hold; nobody follows it. Each buyer comes as one does through a server that hands requests on: from an
// address of their own, in a browser without cookies, so that no limit of a browser or an address is met.
func throughPages(ctx context.Context, db *pg.DB, clients int) (benchmark.HoldOne, func() error, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen for the bench: %w", err)
	}
	home := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	server := web.Server(home.Host, web.Handler(db, web.Options{PublicURL: home}))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	wires := &http.Transport{MaxIdleConnsPerHost: clients}
	stop := func() error {
		wires.CloseIdleConnections()
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	form := home.JoinPath("e", benchmark.HoldEvent, benchmark.HoldSitting).String()
	return func(ctx context.Context, n int) error { return holdByForm(ctx, wires, form, n) }, stop, nil
}

// holdByForm sends the form of the nth buyer. The transport follows no redirection and keeps no cookies.
func holdByForm(ctx context.Context, wires *http.Transport, form string, n int) error {
	fields := url.Values{"key": {fmt.Sprint("hold ", n)}, "way": {"best"}, "n-" + benchmark.HoldKind: {"1"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, form, strings.NewReader(fields.Encode()))
	if err != nil {
		return fmt.Errorf("write the form: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept-Language", "en")
	request.Header.Set("X-Forwarded-For", buyerAddress(n))
	answer, err := wires.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("send the form: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil { // read whole, so that the connection serves the next one
		return fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case answer.StatusCode == http.StatusSeeOther:
		return nil
	case answer.StatusCode < http.StatusInternalServerError:
		return fmt.Errorf("%w: %s", benchmark.ErrRefused, answer.Status)
	}
	return fmt.Errorf("the form is answered %s", answer.Status)
}

// buyerAddress is the nth address of a private network.
func buyerAddress(n int) string {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}
