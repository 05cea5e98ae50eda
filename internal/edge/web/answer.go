package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/a-h/templ"

	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// statuses is the one place where a kind of problem becomes a status.
var statuses = map[problem.Kind]int{
	problem.KindInvalid:     http.StatusUnprocessableEntity,
	problem.KindNotFound:    http.StatusNotFound,
	problem.KindRefused:     http.StatusConflict,
	problem.KindUnavailable: http.StatusServiceUnavailable,
}

// codes are problems that have a status of their own, which their kind does not tell.
var codes = map[string]int{
	"role_forbids":    http.StatusForbidden,
	"login_throttled": http.StatusTooManyRequests,
}

func statusOf(p *problem.Problem) int {
	if status, ok := codes[p.Code]; ok {
		return status
	}
	return statuses[p.Kind]
}

// page is the data of one page, which knows its template.
type page interface{ component() templ.Component }

// show writes a page whole: one that fails half way would look like a short page.
func show(w http.ResponseWriter, r *http.Request, status int, p page) {
	var whole bytes.Buffer
	if err := p.component().Render(r.Context(), &whole); err != nil {
		// Not even the page of an incident may be possible: what is left is its name, in plain text.
		incident := newIncident()
		logIncident(r, incident, "a page could not be made", err)
		http.Error(w, incident, http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store") // names of people
	h.Set("Vary", "Accept-Language, Cookie")
	w.WriteHeader(status)
	if _, err := w.Write(whole.Bytes()); err != nil {
		logGone(r, err)
	}
}

// fail answers an error: a problem in its words and with its status, anything else as an incident.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		logGone(r, err)
		return
	}
	if p, ok := problem.Of(err); ok {
		answerProblem(w, r, statusOf(p), p)
		return
	}
	answerIncident(w, r, err)
}

func answerProblem(w http.ResponseWriter, r *http.Request, status int, p *problem.Problem) {
	page := problemPage{Chrome: chrome(w, r), Status: status}
	page.Title = page.Say("problem_title", nil)
	if status == http.StatusNotFound {
		page.Title = page.Say("not_found_title", nil)
	}
	page.Sentence = page.Voice.Sentence(p)
	show(w, r, status, page)
}

// answerIncident says that something went wrong, and under which name it is in the log.
func answerIncident(w http.ResponseWriter, r *http.Request, err error) {
	incident := newIncident()
	logIncident(r, incident, "a page could not be shown", err)
	page := problemPage{Chrome: chrome(w, r), Status: http.StatusInternalServerError, Incident: incident}
	page.Title = page.Say("incident_title", nil)
	page.Sentence = page.Voice.Sentence(err)
	show(w, r, http.StatusInternalServerError, page)
}

// incidentLetters is enough to find one line in a log, and short enough to be read out on a telephone.
const incidentLetters = 8

func newIncident() string { return rand.Text()[:incidentLetters] }

// logIncident names the route and never the address, which may hold what a person typed.
func logIncident(r *http.Request, incident, message string, err error) {
	slog.ErrorContext(r.Context(), message, "incident", incident, "route", r.Pattern, "error", err)
}

// logGone: the reader went away before the answer was complete; nobody is left to be told.
func logGone(r *http.Request, err error) {
	slog.DebugContext(r.Context(), "the reader went away", "route", r.Pattern, "error", err)
}

func writeText(w io.Writer, text string) {
	_, _ = io.WriteString(w, text) // a probe that went away asks again
}

func (s *site) nothingHere(w http.ResponseWriter, r *http.Request, _ timeline.Actor) {
	fail(w, r, problem.NotFound("address_unknown", nil))
}
