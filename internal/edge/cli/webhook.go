package cli

import (
	"fmt"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/edge/job"
)

type webhookCommand struct {
	Add     addWebhook     `cmd:"" help:"Tell another system what happens, and show the secret that it verifies with."`
	List    listWebhooks   `cmd:"" help:"List the endpoints, with what waits and what they answered."`
	Edit    editWebhook    `cmd:"" help:"Change the address, the events or the description of an endpoint."`
	Enable  enableWebhook  `cmd:"" help:"Let an endpoint have events again; what waited is sent."`
	Disable disableWebhook `cmd:"" help:"Keep events from an endpoint; what waits is kept."`
	Rotate  rotateWebhook  `cmd:"" help:"Give an endpoint another secret; the former one signs along for a while."`
	Remove  removeWebhook  `cmd:"" help:"Remove an endpoint with everything that waits for it."`
	Test    testWebhook    `cmd:"" help:"Post one test event to an endpoint, once, and say what it answered."`
	Send    sendWebhook    `cmd:"" help:"Send what is due now; a program that serves does so by itself."`
	Dead    deadWebhooks   `cmd:"" help:"List the dead letters: events that were given up."`
	Replay  replayWebhook  `cmd:"" help:"Send dead letters again."`
}

// webhookName names an endpoint.
type webhookName struct {
	Name         string `arg:"" help:"Name of the endpoint."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

// organisationOf opens the database and finds the organisation.
func (s *session) organisationOf(slug string) (account.Organisation, error) {
	if err := s.open(); err != nil {
		return account.Organisation{}, err
	}
	return account.FindOrganisation(s.ctx, s.db, s.actor, slug)
}

func kindsOf(words []string) []outbox.Kind {
	kinds := make([]outbox.Kind, len(words))
	for i, word := range words {
		kinds[i] = outbox.Kind(word)
	}
	return kinds
}

func wordsOf(kinds []outbox.Kind) []string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return words
}

type addWebhook struct {
	webhookName
	URL         string   `name:"url" required:"" help:"Address that takes the messages (https://host/path)."`
	Kinds       []string `name:"kind" placeholder:"EVENT" help:"Event that it wants; again for each further one. Without it: all. (candidate.seated, candidate.moved, candidate.released, sitting.moved, sitting.closed, event.closed, payment.recorded, payment.reversed, reservation.expired, reservation.confirmed, reservation.cancelled, reservation.disputed, reservation.refunded, payment.refund_due, timeline.sealed, statement.settled)"`
	Description string   `help:"What it is for, and who answers for it."`
	Insecure    bool     `help:"Send without encryption to another machine (http://)."`
}

func (a addWebhook) Run(s *session) error {
	org, err := s.organisationOf(a.Organisation)
	if err != nil {
		return err
	}
	e := outbox.Endpoint{Name: a.Name, URL: a.URL, Kinds: kindsOf(a.Kinds), Description: a.Description, Insecure: a.Insecure}
	secret, err := outbox.Add(s.ctx, s.db, s.actor, org, e)
	if err != nil {
		return err
	}
	err = s.done("cli_webhook_added", map[string]any{"name": a.Name, "url": strings.TrimSpace(a.URL)},
		map[string]any{"name": a.Name, "url": strings.TrimSpace(a.URL), "kinds": orEmpty(a.Kinds), "secret": secret})
	s.say("cli_webhook_secret", map[string]any{"secret": secret})
	return err
}

type editWebhook struct {
	webhookName
	URL         *string  `name:"url" help:"Address that takes the messages."`
	Kinds       []string `name:"kind" placeholder:"EVENT" help:"Event that it wants, in the place of those before; again for each further one."`
	AllKinds    bool     `help:"It wants all events."`
	Description *string  `help:"What it is for, and who answers for it."`
	Insecure    bool     `help:"Send without encryption to another machine (http://)."`
}

func (e editWebhook) Run(s *session) error {
	switch {
	case e.URL == nil && len(e.Kinds) == 0 && !e.AllKinds && e.Description == nil:
		return problem.Invalid("webhook_nothing_to_change", nil)
	case len(e.Kinds) > 0 && e.AllKinds:
		return problem.Invalid("webhook_kinds_twice", nil)
	}
	org, err := s.organisationOf(e.Organisation)
	if err != nil {
		return err
	}
	edited, err := outbox.Edit(s.ctx, s.db, s.actor, org, e.Name, func(to *outbox.Endpoint) {
		if e.URL != nil {
			to.URL, to.Insecure = *e.URL, e.Insecure
		}
		if len(e.Kinds) > 0 || e.AllKinds {
			to.Kinds = kindsOf(e.Kinds)
		}
		if e.Description != nil {
			to.Description = *e.Description
		}
	})
	if err != nil {
		return err
	}
	return s.done("cli_webhook_edited", map[string]any{"name": e.Name}, map[string]any{
		"name": e.Name, "url": edited.URL, "kinds": wordsOf(edited.Kinds), "description": edited.Description,
	})
}

type enableWebhook struct{ webhookName }

func (e enableWebhook) Run(s *session) error {
	org, err := s.organisationOf(e.Organisation)
	if err != nil {
		return err
	}
	before, err := outbox.Enable(s.ctx, s.db, s.actor, org, e.Name)
	if err != nil {
		return err
	}
	object := map[string]any{"name": e.Name, "disabled": false, "changed": before.DisabledAt != nil, "waiting": before.Pending}
	if before.DisabledAt != nil {
		return s.done("cli_webhook_enabled", map[string]any{"name": e.Name, "waiting": unlessNone(before.Pending)}, object)
	}
	if err := s.done("cli_webhook_enabled_already", map[string]any{"name": e.Name, "waiting": unlessNone(before.Pending)}, object); err != nil {
		return err
	}
	s.sayFailing(before, org)
	return nil
}

type disableWebhook struct{ webhookName }

func (d disableWebhook) Run(s *session) error {
	org, err := s.organisationOf(d.Organisation)
	if err != nil {
		return err
	}
	if _, err := outbox.Disable(s.ctx, s.db, s.actor, org, d.Name); err != nil {
		return err
	}
	return s.done("cli_webhook_disabled", map[string]any{"name": d.Name}, map[string]any{"name": d.Name, "disabled": true})
}

type rotateWebhook struct {
	webhookName
	Overlap time.Duration `default:"24h" help:"How long the former secret signs along; 0s: not at all, when it leaked."`
	Force   bool          `help:"Though a former secret signs along still: that one ends now."`
}

func (r rotateWebhook) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	secret, e, err := outbox.Rotate(s.ctx, s.db, s.actor, org, r.Name, outbox.Rotation{Overlap: r.Overlap, Force: r.Force})
	if err != nil {
		return err
	}
	said := map[string]any{"name": r.Name}
	if e.FormerUntil != nil {
		said["until"] = i18n.Instant{At: *e.FormerUntil, Zone: org.TimeZone}
	}
	err = s.done("cli_webhook_rotated", said, map[string]any{"name": r.Name, "secret": secret, "former_until": e.FormerUntil})
	s.say("cli_webhook_secret", map[string]any{"secret": secret})
	return err
}

type removeWebhook struct{ webhookName }

func (r removeWebhook) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	e, err := outbox.Remove(s.ctx, s.db, s.actor, org, r.Name)
	if err != nil {
		return err
	}
	return s.done("cli_webhook_removed", map[string]any{"name": r.Name, "waiting": e.Pending, "dead": e.Dead},
		map[string]any{"name": r.Name, "removed": true, "waiting": e.Pending, "dead": e.Dead})
}

type testWebhook struct{ webhookName }

// Run posts the event; that it was not taken is a refusal, so that a script learns it.
func (c testWebhook) Run(s *session) error {
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	tried, err := outbox.Try(s.ctx, s.db, s.actor, org, c.Name)
	if err != nil {
		return err
	}
	a := tried.Answer
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if !a.Taken() {
		return problem.Refused("webhook_test_refused", problem.Facts{"name": c.Name, "why": s.webhookWhy(a.Status, a.Reason, a.Words)})
	}
	return s.done("cli_webhook_tested", map[string]any{"name": c.Name, "id": tried.MessageID, "status": a.Status},
		map[string]any{"name": c.Name, "id": tried.MessageID, "status": a.Status})
}

type sendWebhook struct {
	webhookName
	Now bool `help:"Also what waits for its next attempt, and though the endpoint rests: when the receiver was mended."`
}

// Run sends here and now. Where nothing was tried while something waits, or nothing that was tried was taken, that is a refusal:
// whoever pressed it wanted that sent.
func (c sendWebhook) Run(s *session) error {
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	sent, err := outbox.Send(s.ctx, s.db, s.actor, org, c.Name, outbox.Sending{Holder: job.Holder(), Now: c.Now})
	if err != nil {
		return err
	}
	facts := problem.Facts{"name": c.Name, "waiting": sent.Waiting}
	if sent.NextAt != nil {
		facts["until"] = i18n.Instant{At: *sent.NextAt, Zone: org.TimeZone}
	}
	waits := problem.Refused("webhook_waits", facts)
	if sent.Ended == outbox.EndedBusy {
		waits = problem.Refused("webhook_busy", facts)
	}
	if sent.Tally == (outbox.Tally{}) && sent.Waiting > 0 {
		return waits
	}
	if sent.Tally.Delivered == 0 && sent.Tally != (outbox.Tally{}) {
		facts["failed"], facts["dead"] = sent.Tally.Failed, sent.Tally.Dead
		return problem.Refused("webhook_took_none", facts)
	}
	err = s.done("cli_webhook_sent", map[string]any{"delivered": sent.Tally.Delivered, "failed": sent.Tally.Failed, "dead": sent.Tally.Dead},
		map[string]any{
			"name": c.Name, "delivered": sent.Tally.Delivered, "failed": sent.Tally.Failed, "dead": sent.Tally.Dead, "ended": sent.Ended,
			"waiting": sent.Waiting, "next_attempt_at": sent.NextAt,
		})
	if sent.Waiting > 0 && !s.line.JSON {
		fmt.Fprintln(s.stdout, s.voice.Sentence(waits))
	}
	return err
}

type replayWebhook struct {
	webhookName
	ID string `name:"id" placeholder:"WEBHOOK-ID" help:"Only this one, as usher webhook dead names it; else all of the endpoint."`
}

func (r replayWebhook) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	again, err := outbox.Replay(s.ctx, s.db, s.actor, org, r.Name, r.ID)
	if err != nil {
		return err
	}
	said := map[string]any{"events": again.Events}
	if again.OutOfOrder > 0 {
		said["out_of_order"] = again.OutOfOrder
	}
	return s.done("cli_webhook_replayed", said,
		map[string]any{"name": r.Name, "replayed": again.Events, "out_of_order": again.OutOfOrder})
}
