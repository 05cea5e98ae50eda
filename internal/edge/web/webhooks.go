package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
)

// mostLetters is how many dead letters the page shows; the command line lists more.
const mostLetters = 50

// webhooksPage is where other systems are told what happens, and what they did not take.
type webhooksPage struct {
	Chrome
	Zone      string
	Endpoints []outbox.Endpoint
	Letters   []outbox.Letter
	Dead      int    // dead letters altogether
	Secret    string // of the endpoint that was added just now; it is shown once
	Done      string // what a form did
	Problem   string // why it did nothing
	Name, URL string // typed for an endpoint that was refused
}

func (p webhooksPage) component() templ.Component { return webhooksView(p) }

func (p webhooksPage) at(at time.Time) string {
	return p.Voice.Instant(i18n.Instant{At: at, Zone: p.Zone})
}

func (p webhooksPage) state(e outbox.Endpoint) stateMark {
	switch {
	case e.DisabledAt != nil:
		return stateMark{Kind: "none", Text: p.Say("webhook_disabled_"+e.DisabledReason, nil)}
	case e.FailingSince != nil:
		return stateMark{Kind: "failed", Text: p.Say("webhook_state_failing", nil)}
	}
	return stateMark{Kind: "done", Text: p.Say("webhook_state_on", nil)}
}

func (p webhooksPage) why(status int, reason webhook.Reason, words string) string {
	said := map[string]any{"status": status, "words": words}
	if reason == "" {
		return p.Say("webhook_taken", said)
	}
	return p.Say("webhook_why_"+string(reason), said)
}

func (p webhooksPage) kinds(e outbox.Endpoint) string {
	if len(e.Kinds) == 0 {
		return p.Say("webhook_kinds_all", nil)
	}
	words := make([]string, len(e.Kinds))
	for i, kind := range e.Kinds {
		words[i] = string(kind)
	}
	return strings.Join(words, ", ")
}

func (s *site) webhooks(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	s.showWebhooks(w, r, actor, webhooksPage{}, http.StatusOK)
}

// showWebhooks shows the page with what a form did, or why it did nothing.
func (s *site) showWebhooks(w http.ResponseWriter, r *http.Request, actor timeline.Actor, page webhooksPage, status int) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, err := account.FindOrganisation(ctx, s.db, actor, "")
	if err == nil {
		page.Endpoints, err = outbox.List(ctx, s.db, actor, org)
	}
	if err == nil {
		page.Letters, page.Dead, err = outbox.Dead(ctx, s.db, actor, org, "", mostLetters)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	page.Chrome, page.Zone = chrome(w, r), org.TimeZone
	page.Here = "/webhooks"
	page.Title = page.Say("webhooks_title", nil)
	show(w, r, status, page)
}

// webhookActs are what the buttons of the page do; each says what it did.
var webhookActs = map[string]func(ctx context.Context, s *site, v i18n.Voice, actor timeline.Actor, org account.Organisation, name, letter string) (string, error){
	"test": func(ctx context.Context, s *site, v i18n.Voice, actor timeline.Actor, org account.Organisation, name, _ string) (string, error) {
		tried, err := outbox.Try(ctx, s.db, actor, org, name)
		if err != nil {
			return "", err
		}
		if tried.Answer.Reason != "" {
			why := v.Say("webhook_why_"+string(tried.Answer.Reason), map[string]any{"status": tried.Answer.Status, "words": tried.Answer.Words})
			return v.Say("webhooks_test_failed", map[string]any{"name": name, "why": why}), nil
		}
		return v.Say("cli_webhook_tested", map[string]any{"name": name, "id": tried.MessageID, "status": tried.Answer.Status}), nil
	},
	"disable": func(ctx context.Context, s *site, v i18n.Voice, actor timeline.Actor, org account.Organisation, name, _ string) (string, error) {
		_, err := outbox.Disable(ctx, s.db, actor, org, name)
		return v.Say("cli_webhook_disabled", map[string]any{"name": name}), err
	},
	"enable": func(ctx context.Context, s *site, v i18n.Voice, actor timeline.Actor, org account.Organisation, name, _ string) (string, error) {
		_, err := outbox.Enable(ctx, s.db, actor, org, name)
		return v.Say("webhooks_enabled", map[string]any{"name": name}), err
	},
	"replay": func(ctx context.Context, s *site, v i18n.Voice, actor timeline.Actor, org account.Organisation, name, letter string) (string, error) {
		replayed, err := outbox.Replay(ctx, s.db, actor, org, name, letter)
		return v.Say("cli_webhook_replayed", map[string]any{"events": replayed.Events, "out_of_order": replayed.OutOfOrder}), err
	},
}

// changeWebhook does what a button of the page says. It may be pressed twice: nothing is told twice by it that was not dead.
func (s *site) changeWebhook(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	act, known := webhookActs[r.PathValue("act")]
	if !known {
		fail(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	org, ok := s.organisationForm(w, r, actor)
	if !ok {
		return
	}
	done, err := act(ctx, s, voiceOf(r), actor, org, typed(r.PostForm.Get("name")), typed(r.PostForm.Get("letter")))
	s.webhooksAnswer(w, r, actor, webhooksPage{Done: done}, err)
}

// webhooksAnswer shows what a form did, or, where it was refused, why.
func (s *site) webhooksAnswer(w http.ResponseWriter, r *http.Request, actor timeline.Actor, page webhooksPage, err error) {
	why, status, err := besideForm(r, err)
	if err != nil {
		fail(w, r, err)
		return
	}
	if page.Problem = why; why != "" {
		page.Done = ""
	}
	s.showWebhooks(w, r, actor, page, status)
}

// addWebhook adds an endpoint, and shows its secret in the answer: nothing shows it again, so no other page can.
func (s *site) addWebhook(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	org, ok := s.organisationForm(w, r, actor)
	if !ok {
		return
	}
	page := webhooksPage{Name: strings.TrimSpace(typed(r.PostForm.Get("name"))), URL: strings.TrimSpace(typed(r.PostForm.Get("url")))}
	var err error
	page.Secret, err = outbox.Add(ctx, s.db, actor, org, outbox.Endpoint{Name: page.Name, URL: page.URL})
	if err == nil {
		page.Done = voiceOf(r).Say("webhooks_added", map[string]any{"name": page.Name})
		page.Name, page.URL = "", ""
	}
	s.webhooksAnswer(w, r, actor, page, err)
}
