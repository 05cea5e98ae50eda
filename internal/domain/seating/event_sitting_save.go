package seating

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/outbox"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// mostEventSittings is how many sittings an event has.
const mostEventSittings = 1000

// NewEventSitting is a sitting that an event is to have.
type NewEventSitting struct {
	Reference        string // empty: the next number
	Centre, Room     string // names
	StartsAt, EndsAt time.Time
	Capacity         *int // its own; nil: the room's, else as many as the plan has, else the centre's, else the bound
}

var eventReferenceForm = regexp.MustCompile(`^[A-Z0-9][A-Z0-9-]{0,19}$`)

// AddEventSitting adds a sitting to an event. A room hosts one sitting at a time, of an exam or of an event alike.
func AddEventSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, n NewEventSitting) (added EventSitting, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return added, err
	}
	if err := venue.CheckCapacity(n.Capacity); err != nil {
		return added, err
	}
	if n.Reference = strings.ToUpper(strings.TrimSpace(n.Reference)); n.Reference != "" && !eventReferenceForm.MatchString(n.Reference) {
		return added, problem.Invalid("event_sitting_reference", problem.Facts{"sitting": n.Reference})
	}
	err = ofEvent(ctx, db, actor, slug, func(tx pgx.Tx, e event.Event) error {
		_, roomID, err := venue.FindRoomOf(ctx, tx, e.OrganisationID, n.Centre, n.Room)
		if err != nil {
			return err
		}
		if n.Reference == "" {
			if n.Reference, err = nextEventReference(ctx, tx, e); err != nil {
				return err
			}
		}
		if err := n.insert(ctx, tx, e, roomID); err != nil {
			return err
		}
		if added, err = FindEventSitting(ctx, tx, e, n.Reference); err != nil {
			return err
		}
		return recordSitting(ctx, tx, e, actor, event.KindSittingAdded, added, added.facts(e))
	})
	return added, err
}

// ofEvent runs fn in one transaction that holds the row of an event that may be changed.
func ofEvent(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, fn func(pgx.Tx, event.Event) error) error {
	found, err := event.Find(ctx, db, actor, slug)
	if err != nil {
		return err
	}
	return db.Tx(ctx, []int64{found.OrganisationID}, func(tx pgx.Tx) error {
		e, err := event.LockToChange(ctx, tx, found.OrganisationID, found.ID)
		if err != nil {
			return err
		}
		return fn(tx, e)
	})
}

func nextEventReference(ctx context.Context, tx pgx.Tx, e event.Event) (string, error) {
	var next int
	err := tx.QueryRow(ctx, `select coalesce(max(substring(reference from '^S([0-9]{1,8})$')::int), 0) + 1
  from sitting where organisation_id = $1 and event_id = $2`, e.OrganisationID, e.ID).Scan(&next)
	if err != nil {
		return "", fmt.Errorf("number the sittings: %w", err)
	}
	return Reference(next), nil
}

func (n NewEventSitting) insert(ctx context.Context, tx pgx.Tx, e event.Event, roomID int64) error {
	s := Sitting{Reference: n.Reference}
	if err := s.refuseHours(n.StartsAt, n.EndsAt); err != nil {
		return err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return err
	}
	if !n.StartsAt.After(now) {
		return problem.Refused("event_sitting_past", problem.Facts{"sitting": n.Reference, "at": e.Shown(n.StartsAt)})
	}
	if err := LockRooms(ctx, tx, e.OrganisationID, roomID); err != nil {
		return err
	}
	if err := checkRoomFree(ctx, tx, e.OrganisationID, s, roomID, n.StartsAt, n.EndsAt); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
insert into sitting (organisation_id, event_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select $1, $3, s.room_id, s.reference, s.starts_at, s.ends_at, s.capacity,`+tieredPlaces+`
  from (values ($4::bigint, $5::text, $6::timestamptz, $7::timestamptz, $8::int)) s(room_id, reference, starts_at, ends_at, capacity)
  join room r on r.organisation_id = $1 and r.id = s.room_id
  join centre ce on (ce.organisation_id, ce.id) = (r.organisation_id, r.centre_id)`+planOfEvents+`
 where (select count(*) from sitting o where o.organisation_id = $1 and o.event_id = $3) < $9`,
		e.OrganisationID, venue.Bound, e.ID, roomID, n.Reference, n.StartsAt, n.EndsAt, n.Capacity, mostEventSittings)
	switch {
	case pg.Violates(err, "sitting_event_reference_key"):
		return problem.Refused("event_sitting_exists", problem.Facts{"sitting": n.Reference, "event": e.Name})
	case pg.Violates(err, "sitting_room_free"):
		return problem.Refused("room_busy", problem.Facts{"sitting": n.Reference}).Because(err)
	case err != nil:
		return fmt.Errorf("add the sitting: %w", err)
	case tag.RowsAffected() == 0:
		return problem.Refused("event_sittings_many", problem.Facts{"event": e.Name, "most": mostEventSittings})
	}
	return nil
}

// EventSittingFacts are the facts of a sitting of an event, as the timeline keeps them and other systems read them.
type EventSittingFacts struct {
	Sitting  string    `json:"sitting"`
	Revision int       `json:"revision"`
	Centre   string    `json:"centre"`
	Room     string    `json:"room"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
	Zone     string    `json:"zone"`
}

func (s EventSitting) place() EventSittingFacts {
	return EventSittingFacts{s.Reference, s.Revision, s.Centre, s.Room, s.StartsAt.UTC(), s.EndsAt.UTC(), s.Zone}
}

func (s EventSitting) facts(e event.Event) map[string]any {
	return map[string]any{"event": e.Slug, "sitting": s.place()}
}

func recordSitting(ctx context.Context, tx pgx.Tx, e event.Event, actor timeline.Actor, kind timeline.Kind, s EventSitting, facts any) error {
	return timeline.Record(ctx, tx, e.OrganisationID, actor, timeline.Entry{
		Kind: kind, Subject: timeline.Subject{EventID: e.ID, SittingID: s.ID}, Facts: facts,
	})
}

// EventSittingMove says where and when a sitting will be; what is empty stays.
type EventSittingMove struct {
	Centre, Room     string // names; a centre with a room of it
	StartsAt, EndsAt time.Time
}

// MovedEventSitting is a sitting after a move.
type MovedEventSitting struct {
	EventSitting
	Changed bool
	People  int // who hold a ticket, or seats until an instant that is to come
}

// MoveEventSitting moves a sitting of an event, whose row is locked, to another room or time, and raises its revision. Everybody keeps
// their seat; what makes that impossible is refused in words: a room that is busy, too small, or lacks one of the seats. To tell those
// who have tickets is the caller's.
func MoveEventSitting(ctx context.Context, tx pgx.Tx, actor timeline.Actor, e event.Event, reference string, to EventSittingMove) (moved MovedEventSitting, err error) {
	before, err := FindEventSitting(ctx, tx, e, reference)
	if err != nil {
		return moved, err
	}
	if err := refuseClosed(ctx, tx, e, before); err != nil {
		return moved, err
	}
	roomID, startsAt, endsAt, err := to.destination(ctx, tx, e, before)
	moved.EventSitting = before
	if err != nil || roomID == before.RoomID && startsAt.Equal(before.StartsAt) && endsAt.Equal(before.EndsAt) {
		return moved, err
	}
	now, err := pg.Now(ctx, tx)
	if err != nil {
		return moved, err
	}
	if !startsAt.After(now) {
		return moved, problem.Refused("sitting_into_past", problem.Facts{"sitting": before.Reference})
	}
	if err := rehouse(ctx, tx, e.OrganisationID, before.Sitting, roomID, startsAt, endsAt); err != nil {
		return moved, err
	}
	moved.Changed = true
	if moved.EventSitting, err = FindEventSitting(ctx, tx, e, reference); err != nil {
		return moved, err
	}
	if err := checkStay(ctx, tx, e.OrganisationID, before.Sitting, moved.Sitting); err != nil {
		return moved, err
	}
	if err := relabel(ctx, tx, e.OrganisationID, moved.Sitting); err != nil {
		return moved, err
	}
	moved.People, err = recordSittingMoved(ctx, tx, e, actor, before, moved.EventSitting)
	return moved, err
}

func (m EventSittingMove) destination(ctx context.Context, tx pgx.Tx, e event.Event, s EventSitting) (roomID int64, startsAt, endsAt time.Time, err error) {
	roomID = s.RoomID
	startsAt, endsAt = Span{s.StartsAt, s.EndsAt}.MovedTo(Span{m.StartsAt, m.EndsAt})
	if m.Room == "" && m.Centre == "" {
		return roomID, startsAt, endsAt, nil
	}
	if m.Room == "" {
		return 0, startsAt, endsAt, problem.Invalid("room_missing", nil)
	}
	centre := m.Centre
	if centre == "" {
		centre = s.Centre
	}
	_, roomID, err = venue.FindRoomOf(ctx, tx, e.OrganisationID, centre, m.Room)
	return roomID, startsAt, endsAt, err
}

// recordSittingMoved writes down that a sitting moved, tells other systems, and counts whom it concerns.
func recordSittingMoved(ctx context.Context, tx pgx.Tx, e event.Event, actor timeline.Actor, before, after EventSitting) (people int, err error) {
	if people, err = holders(ctx, tx, e.OrganisationID, after.ID); err != nil {
		return 0, err
	}
	facts := map[string]any{"event": e.Slug, "sitting": after.Reference, "people": people, "from": before.place(), "to": after.place()}
	if err := recordSitting(ctx, tx, e, actor, event.KindSittingMoved, after, facts); err != nil {
		return 0, err
	}
	return people, outbox.Publish(ctx, tx, e.OrganisationID, outbox.Event{
		Kind: outbox.SittingMoved, Subject: outbox.SittingSubject(e.Slug, after.Reference), Data: facts,
	})
}

// holders counts who holds a ticket of a sitting, or seats until an instant that is to come.
func holders(ctx context.Context, tx pgx.Tx, organisationID, sittingID int64) (people int, err error) {
	err = tx.QueryRow(ctx, `select count(*)::int from claim where organisation_id = $1 and sitting_id = $2 and released_at is null
   and (expires_at is null or expires_at > clock())`, organisationID, sittingID).Scan(&people)
	if err != nil {
		return 0, fmt.Errorf("count who sits there: %w", err)
	}
	return people, nil
}

// CancelEventSitting takes a sitting at which nobody holds a seat out of its event. Tickets that were sold are given back first. Where all others
// are closed already, the event is over with it.
func CancelEventSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, reason string) (cancelled EventSitting, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return cancelled, err
	}
	if reason = account.OneLine(reason); reason == "" {
		return cancelled, problem.Invalid("reason_missing", nil)
	}
	err = ofEvent(ctx, db, actor, slug, func(tx pgx.Tx, e event.Event) error {
		if cancelled, err = FindEventSitting(ctx, tx, e, reference); err != nil {
			return err
		}
		if err := refuseClosed(ctx, tx, e, cancelled); err != nil {
			return err
		}
		// Whoever holds seats of it locks its row, so that nobody comes between counting and cancelling.
		if _, err := tx.Exec(ctx, `select from sitting where organisation_id = $1 and id = $2 for no key update`, e.OrganisationID, cancelled.ID); err != nil {
			return fmt.Errorf("lock the sitting: %w", err)
		}
		people, err := holders(ctx, tx, e.OrganisationID, cancelled.ID)
		if err != nil {
			return err
		}
		if people > 0 {
			return problem.Refused("event_sitting_sold", problem.Facts{"sitting": cancelled.Reference, "people": people})
		}
		if err := CancelSittingsOf(ctx, tx, e.OrganisationID, e.ID, cancelled.ID); err != nil {
			return err
		}
		facts := cancelled.facts(e)
		facts["reason"] = reason
		if err := recordSitting(ctx, tx, e, actor, event.KindSittingEnded, cancelled, facts); err != nil {
			return err
		}
		return event.CloseOver(ctx, tx, actor, e.OrganisationID, []int64{e.ID})
	})
	return cancelled, err
}

// CancelSittingsOf takes sittings of an event (none named: all that have not ended) out of their rooms, so that these are free for
// others. What becomes of tickets there is the caller's.
func CancelSittingsOf(ctx context.Context, tx pgx.Tx, organisationID, eventID int64, sittingIDs ...int64) error {
	if _, err := tx.Exec(ctx, `
with taken as (
  select id from sitting
   where organisation_id = $1 and event_id = $2 and cancelled_at is null and (id = any($3::bigint[]) or $3 is null and ends_at > clock())
   order by id for no key update)
update sitting set cancelled_at = clock() where organisation_id = $1 and id in (select id from taken)`,
		organisationID, eventID, sittingIDs); err != nil {
		return fmt.Errorf("cancel the sittings: %w", err)
	}
	return nil
}
