// Package web shows the program in a browser: the runs of convocation and their reports. It decides how a page looks, which
// language it speaks and what a stranger may not do to it (other hosts, other methods, other sites' frames and forms). Who may
// log in and what a role may do is decided in account, what a report says in convocation; every text comes from i18n. Pages
// are whole without JavaScript and load nothing from elsewhere.
package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/alexedwards/scs/v2"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/sms"
	"usher/internal/domain/convocation"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
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
	// PublicURL is where people reach the pages, when a server of this machine hands their requests on or the listener is open to a
	// network. Its host is allowed, and with https the cookies are kept to it. Nil: loopback only.
	PublicURL *url.URL
	// EnqueueConvoke hands a requested run to whoever executes it. Nil: the pages offer no button.
	EnqueueConvoke convocation.Enqueue
	// Gateway is whose receipts of SMS are taken; nil: nobody's.
	Gateway sms.Gateway
	// Catalogue is what the program does on its own, to show how it stands.
	Catalogue run.Catalogue
	// SealTask is the task of the catalogue that seals the timeline.
	SealTask string
	// PayPage is the page of a demonstration at which no money moves; nil: there is none.
	PayPage *PayPage
}

// site is what all pages share.
type site struct {
	db             *pg.DB
	sessions       *scs.SessionManager
	publicURL      *url.URL
	enqueueConvoke convocation.Enqueue
	gateway        sms.Gateway
	catalogue      run.Catalogue
	sealTask       string
	verifying      chan struct{} // full while somebody has the promises verified
	desk           *reservation.Desk
	holds          holdLimit
	joins          holdLimit // places that are waited for
	payPage        *PayPage
}

// pageHandler answers one request for whoever is logged in: the actor is what it hands to its use case. What surrounds the page
// (language, name, organisation) comes from chrome.
type pageHandler func(w http.ResponseWriter, r *http.Request, actor timeline.Actor)

// route is one address with what it answers to reading (GET, HEAD) and to changing (POST); nil: it does not.
type route struct {
	path string
	get  pageHandler
	post pageHandler
}

// routes are the addresses that need a login.
func (s *site) routes() []route {
	return append(append(s.consoleRoutes(), s.counterRoutes()...), []route{
		{path: "/{$}", get: s.home},
		{path: "/runs", get: s.runs},
		{path: "/runs/{id}", get: s.report},
		{path: "/runs/{id}/lists/{list}", get: s.list}, // and {list}.csv
		{path: "/schedule", get: s.schedule},
		{path: "/schedule/progress", get: s.scheduleProgress},
		{path: "/webhooks", get: s.webhooks, post: s.addWebhook},
		{path: "/webhooks/{act}", post: s.changeWebhook},
		{path: statementsURL, get: s.statements},
		{path: statementsURL + "/{month}", get: s.statement}, // and {month}.pdf, {month}.xlsx
		{path: integrityURL, get: s.integrity, post: s.verifyNow},
		{path: membersURL, get: s.members, post: s.invite},
		{path: membersURL + "/{act}", post: s.changeMember},
		{path: "/logout/everywhere", post: s.logOutEverywhere},
		{path: DoorScans, post: s.doorScans},
		{path: "/language", post: s.speak},
		{path: "/", get: s.nothingHere, post: s.nothingHere},
	}...)
}

// Handler answers every address of the program. Without a login there are only the login itself, the pages of whoever buys, what pages are made
// of, hooks, and the probe.
func Handler(db *pg.DB, options Options) http.Handler {
	s := &site{
		db: db, sessions: newSessions(db, options.PublicURL), publicURL: options.PublicURL, enqueueConvoke: options.EnqueueConvoke,
		gateway: options.Gateway, catalogue: options.Catalogue, sealTask: options.SealTask,
		verifying: make(chan struct{}, 1), desk: reservation.NewDesk(db), payPage: options.PayPage,
	}
	mux := http.NewServeMux()
	for _, at := range s.routes() {
		mux.Handle(at.path, s.withSession(byMethod(at.get != nil, at.post != nil, s.answer(at))))
	}
	mux.Handle("/login", s.withSession(byMethod(true, true, s.login)))
	mux.Handle("/logout", s.withSession(byMethod(false, true, s.logOut)))
	mux.Handle("/organisation", s.withSession(byMethod(true, true, s.organisation)))
	mux.Handle("/assets/{name}", byMethod(true, false, asset))
	mux.Handle(SMSReceipts, byMethod(false, true, s.smsReceipt))
	mux.Handle(GatewayHooks+"{hook}", byMethod(false, true, s.gatewayHook))
	s.shop(mux)
	if s.payPage != nil {
		mux.Handle(DemoPay, byMethod(true, true, s.payDemo))
	}
	mux.Handle("/healthz", byMethod(true, false, s.health))

	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(refuseCrossOrigin))
	hosts := options.AllowedHosts
	if options.PublicURL != nil {
		hosts = append(slices.Clone(hosts), options.PublicURL.Hostname())
	}
	// The bound comes first: it hands on a copy of the request, and the route must reach whoever logs a panic.
	secure := options.PublicURL != nil && options.PublicURL.Scheme == "https"
	return bounded(headers(secure, recovered(onlyHosts(hosts, crossOrigin.Handler(mux)))))
}

// answer hands a request to its page, with the actor that the session stands for; who has none is asked to log in.
func (s *site) answer(at route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := s.admit(w, r)
		if !ok {
			return
		}
		handle := at.get
		if r.Method == http.MethodPost {
			handle = at.post
		}
		handle(w, asSeenBy(r, who), who.actor())
	}
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
	command := "usher convoke --campaign " + i18n.ShellWord(target.Campaign)
	if target.Exam != "" {
		command += " --exam " + i18n.ShellWord(target.Exam)
	}
	if target.Sitting != "" {
		command += " --sitting " + i18n.ShellWord(target.Sitting)
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
