package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// loginPage asks who somebody is.
type loginPage struct {
	Chrome
	Email   string
	Next    string // where to go on to
	Problem string // why the last attempt failed; empty: it is the first
	Notice  string // what led here
}

func (p loginPage) component() templ.Component { return loginView(p) }

// login shows the page, or takes what was typed on it.
func (s *site) login(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.logIn(w, r)
		return
	}
	next := ownPath(r.URL.Query().Get("next"))
	_, err := s.recognise(r.Context())
	if err == nil { // logged in already
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	if !errors.Is(err, account.ErrSessionOver) {
		fail(w, r, err)
		return
	}
	page := newLoginPage(w, r, next)
	switch {
	case r.URL.Query().Has("out"):
		page.Notice = page.Say("login_logged_out", nil)
	case next != "/":
		page.Notice = page.Say("login_goes_on", nil)
	}
	show(w, r, http.StatusOK, page)
}

func newLoginPage(w http.ResponseWriter, r *http.Request, next string) loginPage {
	page := loginPage{Chrome: chrome(w, r), Next: next}
	page.Title = page.Say("login_title", nil)
	return page
}

func (s *site) logIn(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	next := ownPath(r.PostFormValue("next"))
	email := r.PostFormValue("email")
	login, err := account.LogIn(ctx, s.db, account.Credentials{
		Email: email, Password: r.PostFormValue("password"), Address: s.addressOf(r),
	})
	if p, ok := problem.Of(err); ok {
		page := newLoginPage(w, r, next)
		page.Email, page.Problem = shortened(email), page.Voice.Sentence(p)
		if minutes, throttled := p.Facts["minutes"].(int); throttled {
			w.Header().Set("Retry-After", strconv.Itoa(minutes*60))
		}
		show(w, r, loginStatus(p), page)
		return
	}
	if err == nil {
		err = s.begin(r.Context(), login)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	if len(login.Memberships) > 1 {
		next = "/organisation" + nextParameter(next)
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// loginStatus: a login that is refused is a form to be filled in again, whatever the reason.
func loginStatus(p *problem.Problem) int {
	if status := statusOf(p); status == http.StatusTooManyRequests {
		return status
	}
	return http.StatusUnprocessableEntity
}

// logOut ends the session; where there is none any more, it says the same.
func (s *site) logOut(w http.ResponseWriter, r *http.Request) {
	if err := s.sessions.Destroy(r.Context()); err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/login?out", http.StatusSeeOther)
}

// organisationPage lets somebody who works for several organisations choose.
type organisationPage struct {
	Chrome
	Choices []account.Membership
	Next    string
}

func (p organisationPage) component() templ.Component { return organisationView(p) }

// organisation shows the choice, or takes it. It answers also to somebody who has not chosen yet.
func (s *site) organisation(w http.ResponseWriter, r *http.Request) {
	login, err := s.recognise(r.Context())
	if errors.Is(err, account.ErrSessionOver) {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	if r.Method == http.MethodPost {
		s.choose(w, r, login)
		return
	}
	as, _ := login.Member(s.sessions.GetInt64(r.Context(), sessionOrganisation))
	page := organisationPage{
		Chrome: chrome(w, asSeenBy(r, visitor{login, as})), Choices: login.Memberships, Next: ownPath(r.URL.Query().Get("next")),
	}
	page.Title = page.Say("organisation_title", nil)
	show(w, r, http.StatusOK, page)
}

func (s *site) choose(w http.ResponseWriter, r *http.Request, login account.Login) {
	id, err := strconv.ParseInt(r.PostFormValue("organisation"), 10, 64)
	if _, member := login.Member(id); err != nil || !member {
		fail(w, r, problem.NotFound("organisation_not_yours", nil))
		return
	}
	s.sessions.Put(r.Context(), sessionOrganisation, id)
	http.Redirect(w, r, ownPath(r.PostFormValue("next")), http.StatusSeeOther)
}

// speak keeps the language that a login wants its pages in.
func (s *site) speak(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	if err := account.SpeakTo(ctx, s.db, actor, r.PostFormValue("lang")); err != nil {
		fail(w, r, err)
		return
	}
	http.Redirect(w, r, ownPath(r.PostFormValue("next")), http.StatusSeeOther)
}

func nextParameter(next string) string {
	if next == "/" {
		return ""
	}
	return "?next=" + url.QueryEscape(next)
}
