package seating

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
)

// KindSittingClosed is the kind of timeline row that the end of a sitting of an exam leaves; of one of an event, it is the event's.
const KindSittingClosed timeline.Kind = "sitting_closed"

// Ended is the condition of a sitting s that is to be closed. What was cancelled did not take place.
const Ended = `s.closed_at is null and s.cancelled_at is null and s.ends_at <= clock()`

// LockEnded takes the rows of those sittings that have ended and are not closed, in key order. What somebody else has locked is left out.
func LockEnded(ctx context.Context, tx pgx.Tx, organisationID int64, ids []int64) (locked []int64, err error) {
	rows, err := tx.Query(ctx, `
select s.id from sitting s where s.organisation_id = $1 and s.id = any($2) and `+Ended+` order by s.id for no key update skip locked`, organisationID, ids)
	if err != nil {
		return nil, fmt.Errorf("lock the sittings that are over: %w", err)
	}
	if locked, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("lock the sittings that are over: %w", err)
	}
	return locked, nil
}

// closed is a sitting that was closed, as the timeline keeps it and other systems read it.
type closed struct {
	ID         int64     `json:"-"`
	CampaignID int64     `json:"-"` // 0: of an event
	EventID    int64     `json:"-"` // 0: of an exam
	Event      string    `json:"event,omitempty"`
	Campaign   string    `json:"campaign,omitempty"`
	Exam       string    `json:"exam,omitempty"`
	Sitting    string    `json:"sitting"`
	Centre     string    `json:"centre"`
	Room       string    `json:"room"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	Zone       string    `json:"zone"`
	People     int       `json:"people"` // who had a seat
}

// Close closes sittings whose rows are locked, that have ended and at which nobody holds a seat that is not theirs for good: nothing is held, sold
// or moved there any more. It tells other systems, and gives the events that the sittings were of.
func Close(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, ids []int64) (number int, events []int64, err error) {
	rows, err := tx.Query(ctx, `
with over as (update sitting set closed_at = clock() where organisation_id = $1 and id = any($2) returning *)
select s.id, coalesce(s.campaign_id, 0) as campaign_id, coalesce(s.event_id, 0) as event_id, coalesce(v.slug, '') as event, coalesce(g.slug, '') as campaign,
       coalesce(x.code, '') as exam, s.reference as sitting, c.name as centre, r.name as room, s.starts_at, s.ends_at, coalesce(v.time_zone, c.time_zone) as zone,
       (select count(*)::int from claim where organisation_id = $1 and sitting_id = s.id and released_at is null) as people
  from over s
  join room r on (r.organisation_id, r.id) = ($1, s.room_id)
  join centre c on (c.organisation_id, c.id) = ($1, r.centre_id)
  left join event v on (v.organisation_id, v.id) = ($1, s.event_id)
  left join campaign g on (g.organisation_id, g.id) = ($1, s.campaign_id)
  left join exam x on (x.organisation_id, x.id) = ($1, s.exam_id)
 order by s.id`, pg.PlanAnew, organisationID, ids)
	if err != nil {
		return 0, nil, fmt.Errorf("close the sittings: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[closed])
	if err != nil {
		return 0, nil, fmt.Errorf("close the sittings: %w", err)
	}
	entries, published := make([]timeline.Entry, len(all)), make([]outbox.Event, len(all))
	for i, s := range all {
		s.StartsAt, s.EndsAt = s.StartsAt.UTC(), s.EndsAt.UTC()
		kind, of := KindSittingClosed, s.Campaign
		if s.EventID != 0 {
			kind, of = event.KindSittingOver, s.Event
			events = append(events, s.EventID)
		}
		entries[i] = timeline.Entry{Kind: kind, Subject: timeline.Subject{CampaignID: s.CampaignID, EventID: s.EventID, SittingID: s.ID}, Facts: s}
		published[i] = outbox.Event{Kind: outbox.SittingClosed, Subject: outbox.SittingSubject(of, s.Sitting), Data: s}
	}
	if err := timeline.Record(ctx, tx, organisationID, actor, entries...); err != nil {
		return 0, nil, err
	}
	return len(all), events, outbox.Publish(ctx, tx, organisationID, published...)
}

// refuseClosed refuses to change a sitting that is closed. The caller holds its event's row, under which it is closed.
func refuseClosed(ctx context.Context, tx pgx.Tx, e event.Event, s EventSitting) error {
	var over bool
	err := tx.QueryRow(ctx, `select closed_at is not null from sitting where organisation_id = $1 and id = $2`, e.OrganisationID, s.ID).Scan(&over)
	if err != nil {
		return fmt.Errorf("look whether the sitting is closed: %w", err)
	}
	if over {
		return problem.Refused("event_sitting_closed", problem.Facts{"event": e.Name, "sitting": s.Reference})
	}
	return nil
}
