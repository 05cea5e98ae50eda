// Package web shows the program in a browser: the runs of convocation and their reports. It decides how a page looks, which
// language it speaks and what a stranger may not do to it (other hosts, other methods, other sites' frames). What a report
// says is decided in convocation; every text comes from i18n. Pages are whole without JavaScript and load nothing from
// elsewhere.
package web

import (
	"context"
	"net/http"
	"time"

	"usher/internal/base/pg"
	"usher/internal/domain/convocation"
	"usher/internal/domain/timeline"
)

// Bounds of the server. A download may be long; whatever a browser sends is short.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	writeTimeout    = 2 * time.Minute
	idleTimeout     = time.Minute
	mostHeaderBytes = 16 << 10
	mostBodyBytes   = 64 << 10
	pageTimeout     = 20 * time.Second
	downloadTimeout = time.Minute // to gather it; sending has the rest of writeTimeout
	healthTimeout   = 2 * time.Second
)

// Options of the pages.
type Options struct {
	// AllowedHosts are names under which the pages may be asked for, besides the loopback names and addresses.
	AllowedHosts []string
}

// site is what all pages share.
type site struct {
	db    *pg.DB
	actor timeline.Actor
}

// Handler answers every address of the program, for one actor: who may reach the listener is decided by the caller.
func Handler(db *pg.DB, actor timeline.Actor, options Options) http.Handler {
	s := &site{db: db, actor: actor}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /runs", s.runs)
	mux.HandleFunc("GET /runs/{id}", s.report)
	mux.HandleFunc("GET /runs/{id}/lists/{list}", s.list) // and {list}.csv
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("/", s.nothingHere)

	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(refuseCrossOrigin))
	// The bound comes first: it hands on a copy of the request, and the route must reach whoever logs a panic.
	return http.MaxBytesHandler(headers(recovered(onlyHosts(options.AllowedHosts, onlyReading(crossOrigin.Handler(mux))))), mostBodyBytes)
}

// Server serves the handler within bounds that a slow or endless client cannot pass.
func Server(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: mostHeaderBytes,
	}
}

// convokeCommand is what to type in a shell to convoke the target; codes of exams may hold anything.
func convokeCommand(target convocation.Target) string {
	command := "usher convoke --campaign " + shellWord(target.Campaign)
	if target.Exam != "" {
		command += " --exam " + shellWord(target.Exam)
	}
	if target.Sitting != "" {
		command += " --sitting " + shellWord(target.Sitting)
	}
	return command
}

// health tells a probe whether the pages can be shown.
func (s *site) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err := s.db.Pool().Ping(ctx); err != nil {
		logIncident(r, newIncident(), "the database does not answer", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		writeText(w, "the database does not answer\n")
		return
	}
	writeText(w, "ok\n")
}
