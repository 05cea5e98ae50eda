package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/queue"
	"usher/internal/base/webhook"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// MostShown is how many dead letters a list gives.
const MostShown = 1000

// Letter is an event that was given up: a dead letter.
type Letter struct {
	Endpoint  string
	MessageID string
	Kind      Kind
	Subject   string
	Data      json.RawMessage
	WrittenAt time.Time
	Attempts  int
	EndedAt   time.Time
	Status    int
	Reason    webhook.Reason
	Words     string
}

// Dead lists the dead letters of an endpoint, or of all (name empty), the oldest first, with how many
// there are altogether.
func Dead(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, most int,
) (letters []Letter, total int, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return nil, 0, err
	}
	if err := allow(actor, org); err != nil {
		return nil, 0, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if name != "" {
			var known bool
			err := tx.QueryRow(ctx, `select exists (select from endpoint where organisation_id = $1 and name = $2)`, org.ID, name).Scan(&known)
			if err != nil {
				return fmt.Errorf("find the endpoint: %w", err)
			}
			if !known {
				return problem.NotFound("webhook_unknown", problem.Facts{"name": name})
			}
		}
		err := tx.QueryRow(ctx, `select count(*) from endpoint p join dispatch d on d.endpoint_id = p.id`+ofDead, org.ID, name).Scan(&total)
		if err != nil {
			return fmt.Errorf("count the dead letters: %w", err)
		}
		rows, err := tx.Query(ctx, `
select p.name as endpoint, `+selectMessageID+` as message_id, d.kind, d.subject, d.data, d.written_at, d.attempts, d.ended_at, d.status, d.reason, d.words
  from endpoint p join dispatch d on d.endpoint_id = p.id`+ofDead+` order by d.id limit $3`, org.ID, name, min(most, MostShown))
		if err != nil {
			return fmt.Errorf("list the dead letters: %w", err)
		}
		letters, err = pgx.CollectRows(rows, pgx.RowToStructByName[Letter])
		if err != nil {
			return fmt.Errorf("list the dead letters: %w", err)
		}
		return nil
	})
	return letters, total, err
}

const ofDead = ` where p.organisation_id = $1 and d.organisation_id = $1 and d.state = 'dead' and ($2 = '' or p.name = $2)`

// Replayed tells what became of a replay.
type Replayed struct {
	Events int // that are tried again
	// OutOfOrder counts those whose subject has a later event that was delivered already: the receiver
	// gets them after it.
	OutOfOrder int
}

// replayLetters looks up letter by letter whether a later event of its subject was delivered: the limit keeps it from becoming a
// join, which without statistics would compare every letter with every event.
const replayLetters = `
with replayed as (
  update dispatch d set state = 'pending', next_attempt_at = clock(), attempts = 0, first_attempt_at = null, ended_at = null
   where d.organisation_id = $1 and d.endpoint_id = $2 and d.state = 'dead' and ($3 = '' or ` + selectMessageID + ` = $3)
  returning d.id, d.subject)
select count(*)::int,
       count(*) filter (where (select true from dispatch e
                                where e.endpoint_id = $2 and e.subject = l.subject and e.state = 'delivered' and e.id > l.id limit 1))::int
  from replayed l`

// Replay has dead letters of an endpoint tried again: the one of this webhook-id, or all (empty). Their
// ids stay, so that whoever has one already can tell. They go before what waits of their subject.
func Replay(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name, messageID string,
) (replayed Replayed, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return replayed, err
	}
	_, err = change(ctx, db, actor, org, name, "webhook_replayed", func(tx pgx.Tx, id int64, e *Endpoint) (bool, error) {
		if e.DisabledAt != nil {
			return false, problem.Refused("webhook_is_disabled", problem.Facts{"name": name})
		}
		err := tx.QueryRow(ctx, replayLetters, pg.PlanAnew, org.ID, id, messageID).Scan(&replayed.Events, &replayed.OutOfOrder)
		if err != nil {
			return false, fmt.Errorf("replay dead letters: %w", err)
		}
		if replayed.Events == 0 && messageID != "" {
			return false, problem.NotFound("webhook_letter_unknown", problem.Facts{"name": name, "id": messageID})
		}
		if replayed.Events == 0 {
			return false, nil
		}
		return true, wake(ctx, tx, org.ID, id, false)
	})
	return replayed, err
}

// wake has an endpoint tried at once, as if it had never failed.
func wake(ctx context.Context, tx pgx.Tx, organisationID, id int64, enable bool) error {
	_, err := tx.Exec(ctx, `
update endpoint set failures = 0, failing_since = null, paused_until = null,
       disabled_at = case when $3 then null else disabled_at end, disabled_reason = case when $3 then '' else disabled_reason end
 where organisation_id = $1 and id = $2`, organisationID, id, enable)
	if err != nil {
		return fmt.Errorf("wake the endpoint: %w", err)
	}
	return queue.Insert(ctx, tx, Dispatch{OrganisationID: organisationID, EndpointID: id})
}
