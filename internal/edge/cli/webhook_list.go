package cli

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
)

type listWebhooks struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l listWebhooks) Run(s *session) error {
	org, err := s.organisationOf(l.Organisation)
	if err != nil {
		return err
	}
	endpoints, err := outbox.List(s.ctx, s.db, s.actor, org)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(s.endpointsAsJSON(endpoints))
	}
	if len(endpoints) == 0 {
		s.say("cli_webhook_none", nil)
		return nil
	}
	rows := make([]table.Row, len(endpoints))
	for i, e := range endpoints {
		kinds := strings.Join(wordsOf(e.Kinds), ", ")
		if len(e.Kinds) == 0 {
			kinds = s.voice.Say("webhook_kinds_all", nil)
		}
		rows[i] = table.Row{e.Name, e.URL, kinds, s.webhookState(e), orDash(s.lastAnswer(e)), s.number(e.Pending), s.number(e.Dead)}
	}
	s.table([]string{
		"cli_webhook_name", "cli_webhook_url", "cli_webhook_kinds", "cli_webhook_state", "cli_webhook_last", "cli_webhook_pending", "cli_webhook_dead",
	}, rows, 6, 7)
	for _, e := range endpoints {
		if e.Description != "" {
			s.say("cli_webhook_description", map[string]any{"name": e.Name, "text": e.Description})
		}
		if e.FormerUntil != nil {
			s.say("cli_webhook_former", map[string]any{"name": e.Name, "until": i18n.Instant{At: *e.FormerUntil, Zone: org.TimeZone}})
		}
		s.sayFailing(e, org)
	}
	return nil
}

// webhookState says whether an endpoint takes what it is sent.
func (s *session) webhookState(e outbox.Endpoint) string {
	switch {
	case e.DisabledAt != nil:
		return s.voice.Say("webhook_disabled_"+e.DisabledReason, nil)
	case e.FailingSince != nil:
		return s.voice.Say("webhook_state_failing", nil)
	}
	return s.voice.Say("webhook_state_on", nil)
}

// sayFailing says since when an endpoint takes nothing, and when it is tried again.
func (s *session) sayFailing(e outbox.Endpoint, org account.Organisation) {
	if e.FailingSince == nil || e.DisabledAt != nil {
		return
	}
	said := map[string]any{"name": e.Name, "since": i18n.Instant{At: *e.FailingSince, Zone: org.TimeZone}}
	if e.PausedUntil != nil {
		said["until"] = i18n.Instant{At: *e.PausedUntil, Zone: org.TimeZone}
	}
	s.say("cli_webhook_failing", said)
}

func (s *session) lastAnswer(e outbox.Endpoint) string {
	if e.LastAt == nil {
		return ""
	}
	return s.webhookWhy(e.LastStatus, e.LastReason, e.LastWords)
}

func (s *session) webhookWhy(status int, reason webhook.Reason, words string) string {
	said := map[string]any{"status": status, "words": words}
	if reason == "" {
		return s.voice.Say("webhook_taken", said)
	}
	return s.voice.Say("webhook_why_"+string(reason), said)
}

type answerRow struct {
	At       time.Time      `json:"at"`
	Status   int            `json:"status"`
	Reason   webhook.Reason `json:"reason"`
	Words    string         `json:"words"`
	Sentence string         `json:"sentence"`
}

func (s *session) endpointsAsJSON(endpoints []outbox.Endpoint) any {
	type endpoint struct {
		Name           string        `json:"name"`
		URL            string        `json:"url"`
		Insecure       bool          `json:"insecure"`
		Kinds          []outbox.Kind `json:"kinds"`
		Description    string        `json:"description"`
		Disabled       bool          `json:"disabled"`
		DisabledAt     *time.Time    `json:"disabled_at"`
		DisabledReason string        `json:"disabled_reason"`
		FormerUntil    *time.Time    `json:"former_secret_until"`
		FailingSince   *time.Time    `json:"failing_since"`
		PausedUntil    *time.Time    `json:"paused_until"`
		Last           *answerRow    `json:"last_answer"`
		Waiting        int           `json:"waiting"`
		Dead           int           `json:"dead"`
	}
	list := make([]endpoint, len(endpoints))
	for i, e := range endpoints {
		list[i] = endpoint{
			e.Name, e.URL, e.Insecure, orEmpty(e.Kinds), e.Description, e.DisabledAt != nil, e.DisabledAt, e.DisabledReason, e.FormerUntil,
			e.FailingSince, e.PausedUntil, nil, e.Pending, e.Dead,
		}
		if e.LastAt != nil {
			list[i].Last = &answerRow{*e.LastAt, e.LastStatus, e.LastReason, e.LastWords, s.lastAnswer(e)}
		}
	}
	return list
}

type deadWebhooks struct {
	Name         string `arg:"" optional:"" help:"Name of the endpoint; else all."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (d deadWebhooks) Run(s *session) error {
	org, err := s.organisationOf(d.Organisation)
	if err != nil {
		return err
	}
	most := mostPrinted
	if s.line.JSON {
		most = outbox.MostShown
	}
	letters, total, err := outbox.Dead(s.ctx, s.db, s.actor, org, d.Name, most)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"dead": total, "letters": s.lettersAsJSON(letters)})
	}
	if total == 0 {
		s.say("cli_webhook_dead_none", nil)
		return nil
	}
	s.say("cli_webhook_dead_title", map[string]any{"count": total})
	// Each in lines of its own: in a table the webhook-id would be broken, and it is there to be copied.
	for _, l := range letters {
		s.say("cli_webhook_letter", map[string]any{
			"id": l.MessageID, "name": l.Endpoint, "event": string(l.Kind), "subject": l.Subject, "at": i18n.Instant{At: l.WrittenAt, Zone: org.TimeZone},
			"attempts": l.Attempts, "why": s.webhookWhy(l.Status, l.Reason, l.Words),
		})
	}
	if more := total - len(letters); more > 0 {
		s.say("cli_more", map[string]any{"count": more})
	}
	return nil
}

func (s *session) lettersAsJSON(letters []outbox.Letter) any {
	type letter struct {
		Endpoint  string          `json:"endpoint"`
		ID        string          `json:"id"`
		Event     outbox.Kind     `json:"event"`
		Subject   string          `json:"subject"`
		Data      json.RawMessage `json:"data"`
		WrittenAt time.Time       `json:"written_at"`
		Attempts  int             `json:"attempts"`
		Last      answerRow       `json:"last_answer"`
	}
	list := make([]letter, len(letters))
	for i, l := range letters {
		list[i] = letter{
			l.Endpoint, l.MessageID, l.Kind, l.Subject, l.Data, l.WrittenAt, l.Attempts,
			answerRow{l.EndedAt, l.Status, l.Reason, l.Words, s.webhookWhy(l.Status, l.Reason, l.Words)},
		}
	}
	return list
}
