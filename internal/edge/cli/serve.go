package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"usher/internal/base/problem"
	"usher/internal/edge/web"
)

// stopWithin is how long requests under way may take once the program is told to stop.
const stopWithin = 10 * time.Second

type serveCommand struct {
	Listen string `default:"127.0.0.1:8080" help:"Address on this machine."`
}

func (c serveCommand) Run(s *session) error {
	listener, err := s.listen(c.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed by the server when all went well
	if err := s.open(); err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(map[string]any{"url": urlOf(listener)}); err != nil {
			return err
		}
	}
	return s.serve(listener)
}

// listen opens a port on loopback and nowhere else: the pages have no login.
func (s *session) listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, problem.Invalid("listen_unreadable", problem.Facts{"address": address})
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, problem.Invalid("listen_not_loopback", problem.Facts{"address": address})
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, problem.Invalid("listen_failed", problem.Facts{"address": address, "why": s.why(err)}).Because(err)
	}
	return listener, nil
}

func urlOf(listener net.Listener) string { return "http://" + listener.Addr().String() }

// serve answers until the program is told to stop.
func (s *session) serve(listener net.Listener) error {
	if s.line.Log == "" {
		s.log.name = "" // a server's log belongs to whatever started it
	}
	server := web.Server(listener.Addr().String(), web.Handler(s.db, s.actor, web.Options{}))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintln(s.stderr, s.voice.Say("cli_serving", map[string]any{"url": urlOf(listener)}))
	select {
	case err := <-ended:
		return fmt.Errorf("serve the pages: %w", err)
	case <-s.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stopWithin)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the pages: %w", err)
	}
	return nil
}
