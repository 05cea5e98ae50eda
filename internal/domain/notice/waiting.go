package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The kinds of notice to whoever waits for places. That some are offered, and that an offer was missed, is told of the reservation that
// was offered.
const (
	KindPlacesOffered Kind = "places_offered"
	KindOfferMissed   Kind = "offer_missed"
	KindWaitingJoined Kind = "waiting_joined" // with the link to their place in the queue
	KindWaitingOver   Kind = "waiting_over"   // nothing can come free for them any more
)

// SubjectWaiting says that a notice is about a place in a queue.
const SubjectWaiting = "waiting"

// An offer is told of once, and so is its end.
const offeredOnce = `select r.held_at as at, 1 as revision`

// TellWaiting adds a notice to each who has one of these places in a queue, and the jobs that send it. It is called in the transaction of the
// cause, by whoever holds the sitting.
func TellWaiting(ctx context.Context, tx pgx.Tx, organisationID int64, kind Kind, ids ...int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
insert into notice (organisation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
select $1, $2, 'waiting', w.id, (w.joined_at at time zone 'UTC')::date, 1, 'pending', 'unreachable', 1
  from waiting w where w.organisation_id = $1 and w.id = any($3)
 order by w.id
on conflict do nothing`, organisationID, kind, ids)
	if err != nil {
		return fmt.Errorf("write the notices to those who wait: %w", err)
	}
	return wake(ctx, tx, true, false)
}
