package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Sending is how a person wants what waits to be sent.
type Sending struct {
	Holder string // this process
	Now    bool   // also what waits for its next attempt: whoever mended the receiver need not wait
}

// Sent is what became of it.
type Sent struct {
	Tally   Tally
	Ended   Ended
	Waiting int        // what is not delivered yet, with what is under way
	NextAt  *time.Time // when the next attempt is due; nil: nothing waits, or all is under way
}

// Send delivers here and now what is due at an endpoint, whether it rests or not. How often it failed and
// how long an event is tried stay as they are: what is tried too early is given up no later.
func Send(
	ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, name string, sending Sending,
) (sent Sent, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return sent, err
	}
	if err := allow(actor, org); err != nil {
		return sent, err
	}
	d := Drainer{OrganisationID: org.ID, Holder: sending.Holder, Insist: true}
	err = db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		d.EndpointID, err = find(ctx, tx, org, name)
		if err != nil {
			return err
		}
		found, err := read(ctx, tx, org, d.EndpointID)
		if err != nil {
			return err
		}
		if found[0].DisabledAt != nil {
			return problem.Refused("webhook_is_disabled", problem.Facts{"name": name})
		}
		if !sending.Now {
			return nil
		}
		return hurry(ctx, tx, org.ID, d.EndpointID)
	})
	if err != nil {
		return sent, err
	}
	if sent.Tally, sent.Ended, err = d.Drain(ctx, db); err != nil {
		return sent, err
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
select count(d.id)::int, greatest(min(d.next_attempt_at) filter (where d.state = 'pending'), min(p.paused_until))
  from endpoint p left join dispatch d on d.organisation_id = $1 and d.endpoint_id = p.id and d.state in ('pending', 'sending')
 where p.organisation_id = $1 and p.id = $2`, org.ID, d.EndpointID).Scan(&sent.Waiting, &sent.NextAt)
	})
	if err != nil {
		return sent, fmt.Errorf("count what waits: %w", err)
	}
	if sent.Waiting == 0 {
		sent.NextAt = nil
	}
	return sent, nil
}

// hurry makes what waits due now, and ends the rest of its endpoint.
func hurry(ctx context.Context, tx pgx.Tx, organisationID, id int64) error {
	_, err := tx.Exec(ctx, `update endpoint set paused_until = null where organisation_id = $1 and id = $2`, organisationID, id)
	if err != nil {
		return fmt.Errorf("end the rest of the endpoint: %w", err)
	}
	_, err = tx.Exec(ctx, `
update dispatch set next_attempt_at = clock()
 where organisation_id = $1 and endpoint_id = $2 and state = 'pending' and next_attempt_at > clock()`, organisationID, id)
	if err != nil {
		return fmt.Errorf("make what waits due: %w", err)
	}
	return nil
}
