package letter

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/notice"
)

// WaitingPath is where somebody finds their place in a queue, under the public address: its reference follows.
const WaitingPath = "/w/"

//go:embed waiting.sql
var readWaitingSQL string

// waiter is somebody's place in a queue with all that they may be told of it.
type waiter struct {
	Reference    string
	State        string
	Name         string
	Email        string
	Locale       string
	Wanted       int
	Fewest       int
	Kind         string
	Zone         string
	Event        string
	StartsAt     time.Time
	AtZone       string
	Place        string
	Organisation string
	Contact      string
}

// composeWaiting words notices to those who wait for places.
func composeWaiting(public string) notice.Compose {
	return func(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
		ids := make([]int64, len(due))
		for i, d := range due {
			ids[i] = d.SubjectID
		}
		waiters, err := all[waiter](ctx, tx, readWaitingSQL, organisationID, ids)
		if err == nil && len(waiters) != len(due) {
			err = fmt.Errorf("%d of %d are there", len(waiters), len(due))
		}
		if err != nil {
			return nil, fmt.Errorf("read who waits: %w", err)
		}
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return nil, err
		}
		messages := make([]notice.Message, len(due))
		for i, d := range due {
			w, what, holds := waiters[i], "joined", "waiting"
			if d.Kind == notice.KindWaitingOver {
				what, holds = "over", "over"
			}
			switch {
			case w.State != holds: // what became of it since is told by its own notice
				messages[i].Verdict = notice.VerdictWithdrawn
			case what == "joined" && !w.StartsAt.After(now):
				messages[i].Verdict = notice.VerdictTooLate
			default:
				if messages[i], err = w.message(what, public); err != nil {
					return nil, err
				}
			}
		}
		return messages, nil
	}
}

func (w waiter) message(what, public string) (notice.Message, error) {
	voice, begins := i18n.Speak(w.Locale), i18n.In(i18n.Instant{At: w.StartsAt, Zone: w.AtZone})
	places := map[string]any{"wanted": w.Wanted, "kind": w.Kind, "zone": w.Zone}
	if w.Fewest < w.Wanted {
		places["fewest"] = w.Fewest
	}
	said := map[string]any{"event": w.Event, "date": voice.Date(begins), "hour": i18n.Clock(begins), "reference": w.Reference, "link": public + WaitingPath + w.Reference}
	say := func(id string) string { return voice.Say(id, said) }
	b := body{
		Lang: voice.Lang(), From: w.Organisation, Title: say("waiting_mail_subject_" + what), Lead: say("waiting_mail_lead_" + what),
		Hello: voice.Say("letter_mail_hello", map[string]any{"name": w.Name}),
		Facts: []fact{
			{say("buyer_event"), w.Event},
			{say("letter_date"), voice.Date(begins)},
			{say("letter_hour"), voice.Say("buyer_begins", map[string]any{"hour": i18n.Clock(begins), "zone": zoneName(begins)})},
			{say("buyer_place"), w.Place},
			{say("waiting_places"), voice.Say("waiting_places_said", places)},
		},
	}
	switch {
	case what != "joined":
	case public != "":
		b.ToDo = []string{say("waiting_mail_link")}
	default:
		b.ToDo = []string{say("waiting_mail_reference")}
	}
	if w.Contact != "" {
		b.Contact = voice.Say("letter_contact", map[string]any{"contact": w.Contact})
	}
	page, err := b.html()
	if err != nil {
		return notice.Message{}, err
	}
	return notice.Message{
		Verdict: notice.VerdictSend, Email: w.Email, Name: w.Name, Sender: w.Organisation, ReplyTo: w.Contact, Subject: b.Title, Text: b.text(voice), HTML: page,
	}, nil
}
