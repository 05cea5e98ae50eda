package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// WebhookTest is what Try sends; nobody can ask for it, nor leave it out.
const WebhookTest Kind = "webhook.test"

// Tried is what became of a test event.
type Tried struct {
	MessageID string
	Answer    webhook.Answer
}

// Try posts one event that says nothing to an endpoint, signed like all others, and gives the answer. It
// is tried once and kept nowhere, and says nothing of the endpoint to whoever drains it: also one that
// rests or is disabled can be tried.
func Try(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string) (tried Tried, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return tried, err
	}
	if err := allow(actor, org); err != nil {
		return tried, err
	}
	var target webhook.Target
	var secret, former string
	var now time.Time
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
select url, insecure, secret, case when former_until > clock() then former_secret else '' end, clock(),
       '`+messagePrefix+`' || replace(gen_random_uuid()::text, '-', '')
  from endpoint where organisation_id = $1 and name = $2`, org.ID, name).Scan(&target.URL, &target.Insecure, &secret, &former, &now, &tried.MessageID)
		if errors.Is(err, pgx.ErrNoRows) {
			return problem.NotFound("webhook_unknown", problem.Facts{"name": name})
		}
		return err
	})
	if err != nil {
		return tried, fmt.Errorf("read the endpoint: %w", err)
	}
	data, err := dataOf(org.Slug, Event{Kind: WebhookTest, Data: struct {
		Endpoint string `json:"endpoint"`
	}{name}})
	if err != nil {
		return tried, err
	}
	body, err := json.Marshal(message{WebhookTest, now.UTC(), json.RawMessage(data)})
	if err != nil {
		return tried, fmt.Errorf("write the test event: %w", err)
	}
	secrets := []string{secret}
	if former != "" {
		secrets = append(secrets, former)
	}
	poster := webhook.Open(target, secrets...)
	defer poster.Close()
	tried.Answer = poster.Post(ctx, webhook.Message{ID: tried.MessageID, At: now, Body: body})
	return tried, nil
}
