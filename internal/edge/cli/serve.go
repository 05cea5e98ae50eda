package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/edge/job"
	"usher/internal/edge/web"
)

// stopWithin is how long requests under way may take once the program is told to stop.
const stopWithin = 10 * time.Second

type serveCommand struct {
	Listen string `default:"127.0.0.1:8080" help:"Address to listen on; one that others reach needs --public-url."`
	publicFlags
	channelFlags
}

// publicFlags say under which address people reach the pages.
type publicFlags struct {
	PublicURL string `name:"public-url" env:"USHER_PUBLIC_URL" placeholder:"URL" help:"Address under which people reach the pages (https://usher.ecole.example); without it they are for this machine only."`
}

// read gives the address, or nil where there is none. It stands in links, in cookies and in what the pages answer to, so it is a
// host and nothing more.
func (f publicFlags) read() (*url.URL, error) {
	if f.PublicURL == "" {
		return nil, nil
	}
	public, err := url.Parse(strings.TrimSuffix(f.PublicURL, "/"))
	if err != nil || public.Scheme != "https" && public.Scheme != "http" || public.Hostname() == "" ||
		public.Path != "" || public.User != nil || public.RawQuery != "" || public.Fragment != "" {
		return nil, problem.Invalid("public_url_unreadable", problem.Facts{"url": f.PublicURL})
	}
	return public, nil
}

func (c serveCommand) Run(s *session) error {
	public, err := c.read()
	if err != nil {
		return err
	}
	channels, err := c.channels(public)
	if err != nil {
		return err
	}
	listener, err := s.listen(c.Listen, public)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed by the server when all went well
	if err := s.open(); err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(map[string]any{"url": urlOf(listener, public)}); err != nil {
			return err
		}
	}
	sentence := "cli_serving"
	logins, err := account.Logins(s.ctx, s.db, s.actor)
	if err != nil {
		return err
	}
	if len(logins) == 0 {
		sentence = "cli_serving_nobody"
	}
	s.sayChannels(c.channelFlags)
	return s.serve(serving{listener: listener, public: public, channels: channels, sentence: sentence})
}

// listen opens a port: on loopback, or wherever it was told to when it was also told the address under which people come. Pages
// that are open to a network by mistake would be open to everybody there.
func (s *session) listen(address string, public *url.URL) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, problem.Invalid("listen_unreadable", problem.Facts{"address": address})
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && public == nil {
		return nil, problem.Invalid("listen_not_loopback", problem.Facts{"address": address})
	}
	if public != nil && public.Scheme == "http" && !loopback {
		fmt.Fprintln(s.stderr, s.voice.Say("cli_serving_plain", map[string]any{"url": public.String()}))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, problem.Invalid("listen_failed", problem.Facts{"address": address, "why": s.why(err)}).Because(err)
	}
	return listener, nil
}

// urlOf is where the pages are: for people, or for this machine.
func urlOf(listener net.Listener, public *url.URL) string {
	if public != nil {
		return public.String()
	}
	return "http://" + listener.Addr().String()
}

// serving is what a process that serves needs.
type serving struct {
	listener net.Listener
	public   *url.URL // nil: for this machine only
	channels job.Channels
	sentence string // that says where the pages are
	facts    map[string]any
	payPage  *web.PayPage // of a demonstration; nil: there is none
}

// serve says where the pages are; it answers, and does the work that nobody waits for, until the
// program is told to stop.
func (s *session) serve(o serving) error {
	if s.line.Log == "" {
		s.log.name = "" // a server's log belongs to whatever started it
	}
	if _, err := s.catalogue(); err != nil { // before anything is promised
		return err
	}
	said := map[string]any{"url": urlOf(o.listener, o.public)}
	maps.Copy(said, o.facts)
	fmt.Fprintln(s.stderr, s.voice.Say(o.sentence, said))
	handler := web.Handler(s.db, web.Options{
		PublicURL: o.public, EnqueueConvoke: job.EnqueueConvoke, Gateway: o.channels.Gateway, Catalogue: job.Catalogue(), SealTask: job.SealTask, PayPage: o.payPage,
	})
	working, ctx := errgroup.WithContext(s.ctx) // one that fails ends the other
	working.Go(func() error { return job.Run(ctx, s.db, o.channels) })
	working.Go(func() error { return answer(ctx, web.Server(o.listener.Addr().String(), handler), o.listener) })
	err := working.Wait()
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // told to stop, perhaps while it was still starting: that is its good end
	}
	return err
}

// answer serves pages until ctx ends, and lets requests under way end within a bound.
func answer(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the pages: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the pages: %w", err)
	}
	return nil
}
