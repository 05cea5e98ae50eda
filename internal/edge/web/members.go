package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

const membersURL = "/members"

// membersPage is who acts for the organisation, and as what.
type membersPage struct {
	Chrome
	Zone     string
	Members  []account.Member
	Password string // that was made just now for For; it is shown once
	For      string
	Done     string // what a form did
	Problem  string // why it did nothing
	Typed    account.NewLogin
}

func (p membersPage) component() templ.Component { return membersView(p) }

func (p membersPage) since(at time.Time) string {
	return p.Voice.Date(i18n.In(i18n.Instant{At: at, Zone: p.Zone}))
}

func (p membersPage) role(role timeline.Role) string { return p.Say("role_"+string(role), nil) }

// may says what a role may do, in a sentence.
func (p membersPage) may(role timeline.Role) string { return p.Say("members_may_"+string(role), nil) }

// invited is the role that is chosen for the next one.
func (p membersPage) invited(role timeline.Role) bool {
	if p.Typed.Role == "" {
		return role == account.Agent
	}
	return role == p.Typed.Role
}

func (s *site) members(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	s.showMembers(w, r, actor, membersPage{}, nil)
}

// showMembers shows the page with what a form did, or, where it was refused, why.
func (s *site) showMembers(w http.ResponseWriter, r *http.Request, actor timeline.Actor, page membersPage, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	why, status, err := besideForm(r, err)
	if err != nil {
		fail(w, r, err)
		return
	}
	if page.Problem = why; why != "" {
		page.Done, page.Password = "", ""
	}
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err == nil {
		page.Members, err = account.Members(ctx, s.db, actor, org)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	page.Chrome, page.Zone = chrome(w, r), org.TimeZone
	page.Here = membersURL
	page.Title = page.Say("members_title", nil)
	show(w, r, status, page)
}

// organisationForm reads the form of a page about the whole organisation. Without it the request is answered.
func (s *site) organisationForm(w http.ResponseWriter, r *http.Request, actor timeline.Actor) (org account.Organisation, ok bool) {
	if err := r.ParseForm(); err != nil {
		fail(w, r, problem.Invalid("form_unreadable", nil).Because(err))
		return org, false
	}
	org, err := account.FindOrganisation(r.Context(), s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return org, false
	}
	return org, true
}

// besideForm is why a form did nothing, in a sentence that its page shows with the status; empty: it did. What the role forbids, and what
// nobody foresaw, has a page of its own, and stays an error.
func besideForm(r *http.Request, err error) (why string, status int, rest error) {
	refusal, is := problem.Of(err)
	if !is || refusal.Code == "role_forbids" {
		return "", http.StatusOK, err
	}
	return voiceOf(r).Sentence(refusal), statusOf(refusal), nil
}

// invite makes somebody a member. A password that is made for them stands in the answer: nothing shows it again, so no other page can.
func (s *site) invite(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	org, ok := s.organisationForm(w, r, actor)
	if !ok {
		return
	}
	page := membersPage{Typed: account.NewLogin{
		Email: strings.TrimSpace(typed(r.PostForm.Get("email"))), Name: typed(r.PostForm.Get("name")), Role: timeline.Role(typed(r.PostForm.Get("role"))),
	}}
	n := page.Typed
	n.Password = account.GeneratePassword()
	made, err := account.Invite(r.Context(), s.db, actor, org, n)
	if err == nil {
		said := map[string]any{"email": n.Email, "role": i18n.Word{ID: "role_" + string(n.Role)}}
		page.Done = voiceOf(r).Say("members_joined", said)
		if made {
			page.Done, page.Password, page.For = voiceOf(r).Say("members_added", said), n.Password, n.Email
		}
		page.Typed = account.NewLogin{}
	}
	s.showMembers(w, r, actor, page, err)
}

// changeMember does what a button beside a member says.
func (s *site) changeMember(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	org, ok := s.organisationForm(w, r, actor)
	if !ok {
		return
	}
	email := typed(r.PostForm.Get("email"))
	var page membersPage
	var err error
	switch r.PathValue("act") {
	case "role":
		role := timeline.Role(typed(r.PostForm.Get("role")))
		err = account.ChangeRole(r.Context(), s.db, actor, org, email, role)
		page.Done = voiceOf(r).Say("members_role_changed", map[string]any{"email": email, "role": i18n.Word{ID: "role_" + string(role)}})
	case "leave":
		err = account.Remove(r.Context(), s.db, actor, org, email)
		page.Done = voiceOf(r).Say("members_left", map[string]any{"email": email})
	case "password":
		password := account.GeneratePassword()
		if err = account.ResetPassword(r.Context(), s.db, actor, org, email, password); err == nil {
			page.Password, page.For = password, email
		}
		page.Done = voiceOf(r).Say("members_password_set", map[string]any{"email": email})
	default:
		err = problem.NotFound("address_unknown", nil)
	}
	s.showMembers(w, r, actor, page, err)
}

// logOutEverywhere ends every session of the login, this one too.
func (s *site) logOutEverywhere(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	if err := account.EndSessions(r.Context(), s.db, actor); err != nil {
		fail(w, r, err)
		return
	}
	s.logOut(w, r)
}

// mayManage tells whether the menu leads to who acts for the organisation.
func (v visitor) mayManage() bool { return account.May(v.actor(), account.Manage) }
