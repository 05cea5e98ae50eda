package web

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/promise"
	"usher/internal/domain/timeline"
	"usher/internal/domain/verify"
)

const (
	integrityURL = "/integrity"
	// Whole tables are read: a million claims are to take a minute at most.
	verifyTimeout = 100 * time.Second
)

// integrityPage says what the program promises of the organisation's data, and, when somebody asks, whether it holds.
type integrityPage struct {
	Chrome
	Zone    string
	Report  *verify.Report // nil: nobody asked
	Titles  []string       // of all promises about an organisation
	Problem string
}

func (p integrityPage) component() templ.Component { return integrityView(p) }

func (p integrityPage) verdict() string {
	facts := map[string]any{
		"checks": len(p.Report.Checks), "at": i18n.Instant{At: p.Report.At, Zone: p.Zone}, "attention": p.Report.Attention(), "broken": p.Report.Broken(),
	}
	switch {
	case !p.Report.OK():
		return p.Say("integrity_broken", facts)
	case p.Report.Attention() > 0:
		return p.Say("integrity_decide", facts)
	}
	return p.Say("integrity_sound", facts)
}

func (p integrityPage) title(name string) string { return p.Say("promise_"+name, nil) }

func (p integrityPage) state(c verify.Check) stateMark {
	facts := map[string]any{"broken": c.Found.Broken, "attention": c.Found.Attention}
	switch {
	case c.Found.Broken > 0:
		return stateMark{Kind: "failed", Text: p.Say("integrity_state_broken", facts)}
	case c.Found.Attention > 0:
		return stateMark{Kind: "none", Text: p.Say("integrity_state_decide", facts)}
	}
	return stateMark{Kind: "done", Text: p.Say("integrity_state_holds", nil)}
}

// found are the checks with whatever a person has to look at, the broken ones first; the others hold.
func (p integrityPage) found() (broken, decide, hold []verify.Check) {
	for _, c := range p.Report.Checks {
		switch {
		case c.Found.Broken > 0:
			broken = append(broken, c)
		case c.Found.Attention > 0:
			decide = append(decide, c)
		default:
			hold = append(hold, c)
		}
	}
	return broken, decide, hold
}

func (p integrityPage) example(e promise.Example) string {
	return p.Say("verify_"+e.Code, account.InWords(p.Voice, e.Facts))
}

// more is how many are not shown.
func (p integrityPage) more(c verify.Check) int64 {
	return c.Found.Broken + c.Found.Attention - int64(len(c.Found.Examples))
}

func (s *site) promised() verify.Schedule {
	return verify.Schedule{Catalogue: s.catalogue, SealTask: s.sealTask}
}

func (s *site) integrity(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	if err := account.Allow(actor, account.Manage); err != nil {
		fail(w, r, err)
		return
	}
	s.showIntegrity(w, r, actor, integrityPage{}, http.StatusOK)
}

func (s *site) showIntegrity(w http.ResponseWriter, r *http.Request, actor timeline.Actor, page integrityPage, status int) {
	org, err := account.FindOrganisation(r.Context(), s.db, actor, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	page.Chrome, page.Zone = chrome(w, r), org.TimeZone
	page.Here = integrityURL
	page.Title = page.Say("integrity_title", nil)
	for _, p := range verify.Promises(s.promised()) {
		if !p.Once {
			page.Titles = append(page.Titles, page.title(p.Name))
		}
	}
	show(w, r, status, page)
}

// verifyNow asks whether every promise about the organisation holds. One at a time asks: whole tables are read.
func (s *site) verifyNow(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), verifyTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err == nil {
		err = account.Allow(actor, account.Manage)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	select {
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	default:
		busy := problem.Refused("verify_busy", nil)
		s.showIntegrity(w, r, actor, integrityPage{Problem: voiceOf(r).Sentence(busy)}, statusOf(busy))
		return
	}
	report, err := verify.Verify(ctx, s.db, actor, s.promised(), org.Slug, nil)
	if err != nil {
		fail(w, r, err)
		return
	}
	s.showIntegrity(w, r, actor, integrityPage{Report: &report}, http.StatusOK)
}
