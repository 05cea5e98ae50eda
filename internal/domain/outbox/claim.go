package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/webhook"
)

// claimed is a dispatch that this process is about to post.
type claimed struct {
	ID        int64
	MessageID string
	Kind      Kind
	Data      string
	WrittenAt time.Time
	Attempts  int       // with this one
	At        time.Time // of the attempt, by the database's clock

	since  time.Time // by this process: the lease lasts at least from then on
	poster *webhook.Poster
}

// message is what the receiver reads.
type message struct {
	Type      Kind            `json:"type"`
	Timestamp time.Time       `json:"timestamp"` // when it happened
	Data      json.RawMessage `json:"data"`
}

// body is the same for each attempt.
func (c claimed) body() ([]byte, error) {
	return json.Marshal(message{c.Kind, c.WrittenAt.UTC(), json.RawMessage(c.Data)})
}

// messagePrefix tells the id of a message from other ids.
const messagePrefix = "msg_"

// selectMessageID writes the id as the receiver reads it.
const selectMessageID = `'` + messagePrefix + `' || replace(d.message_id::text, '-', '')`

// head says of a dispatch d that nothing of its subject goes before it: none that is older waits, and
// none at all is under way (one that is older may have been committed, or replayed, since). It is
// looked up row by row: the limit keeps it from becoming a join.
const head = `(select true from dispatch e
         where e.endpoint_id = d.endpoint_id and e.subject = d.subject and e.state in ('pending', 'sending') and e.id <> d.id
           and (e.state = 'sending' or e.id < d.id) limit 1) is null`

// claim takes the next dispatches that are due, at most one of a subject. A first attempt that lies ahead was made before the clock
// was set back: its three days begin now.
func (h *hold) claim(ctx context.Context, tx pgx.Tx, most int) ([]claimed, error) {
	rows, err := tx.Query(ctx, `
update dispatch d set state = 'sending', epoch = $3, attempts = attempts + 1, last_attempt_at = clock(),
       first_attempt_at = least(first_attempt_at, clock())
 where d.organisation_id = $1 and d.state = 'pending' and d.id = any(array(
         select d.id from dispatch d
          where d.organisation_id = $1 and d.endpoint_id = $2 and d.state = 'pending' and d.next_attempt_at <= (select clock())
            and `+head+`
          order by d.next_attempt_at, d.id limit $4))
returning d.id, `+selectMessageID+` as message_id, d.kind, d.data::text as data, d.written_at, d.attempts, d.last_attempt_at as at`,
		pg.PlanAnew, h.d.OrganisationID, h.d.EndpointID, h.Epoch, most)
	if err != nil {
		return nil, fmt.Errorf("claim what is due: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[claimed])
	if err != nil {
		return nil, fmt.Errorf("claim what is due: %w", err)
	}
	return found, nil
}

// anyDue tells whether something may be claimed now.
func (h *hold) anyDue(ctx context.Context) (due bool, err error) {
	err = h.d.tx(ctx, h.db, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
select exists (
  select from dispatch d
   where d.organisation_id = $1 and d.endpoint_id = $2 and d.state = 'pending' and d.next_attempt_at <= (select clock()) and `+head+`)`,
			pg.PlanAnew, h.d.OrganisationID, h.d.EndpointID).Scan(&due)
	})
	if err != nil {
		return false, fmt.Errorf("ask what is due: %w", err)
	}
	return due, nil
}
