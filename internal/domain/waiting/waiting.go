// Package waiting decides who is offered places of an event that came free: who joined the queue of their sitting first. An offer is a hold
// like any other, with an end of its own; what becomes of it is decided in reservation. That nobody overtakes those who wait is looked at
// there, too, when somebody wants to hold seats.
//
// Everything about one queue is done under its sitting's lock, so that it has one order. Reservations whose offers are over are locked
// before that.
package waiting

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/timeline"
)

// State is what became of a place in a queue.
type State string

// The states.
const (
	Waiting State = "waiting"
	Offered State = "offered" // places are held for them
	Taken   State = "taken"   // … and they paid for them
	Missed  State = "missed"  // … and they did not, in time: they may join again, at the end
	Left    State = "left"    // they went, or gave back what was offered
	Over    State = "over"    // nothing can come free for them any more
)

// Live tells whether something may still come of it.
func (s State) Live() bool { return s == Waiting || s == Offered }

// The kinds of timeline rows that queues leave.
const (
	kindJoined  timeline.Kind = "waiting_joined"
	kindLeft    timeline.Kind = "waiting_left"
	kindOffered timeline.Kind = "waiting_offered"
	kindMissed  timeline.Kind = "waiting_missed"
	kindOver    timeline.Kind = "waiting_over"
)

// Entry is somebody's place in the queue of a sitting.
type Entry struct {
	OrganisationID int64
	ID             int64
	Reference      string // public, and cannot be guessed
	EventID        int64
	Event          string // slug
	EventName      string
	SittingID      int64
	Sitting        string // reference
	StartsAt       time.Time
	SittingZone    string // of the centre: IANA name
	Place          string // room and centre
	KindID         int64
	Kind           string // code
	KindName       string
	Zone           *string // nil: any in which the kind is sold
	Wanted         int
	Fewest         int // that will do
	Name           string
	Email          string
	Phone          string
	Locale         string
	State          State
	JoinedAt       time.Time
	OfferedAt      *time.Time
	EndedAt        *time.Time
	Reservation    string // reference of what was offered; empty: nothing yet
	Ahead          int    // people who wait before them for places of the sitting, where one place alone is read
	Organiser      string
	Contact        string // the organiser's e-mail address; empty: none
}

// Begins is when the sitting starts, as people there say it.
func (e Entry) Begins() i18n.Instant { return e.Shown(e.StartsAt) }

// Shown is an instant as people at the sitting say it.
func (e Entry) Shown(at time.Time) i18n.Instant { return i18n.Instant{At: at, Zone: e.SittingZone} }

// URL is the address of its page, under the public one.
func (e Entry) URL() string { return letter.WaitingPath + url.PathEscape(e.Reference) }

const entryColumns = `
select w.organisation_id, w.id, w.reference, w.event_id, e.slug as event, e.name as event_name, w.sitting_id, s.reference as sitting, s.starts_at,
       c.time_zone as sitting_zone, r.name || ', ' || c.name as place, w.kind_id, t.code as kind, t.name as kind_name, w.zone, w.wanted, w.fewest,
       w.name, w.email, w.phone, w.locale, w.state, w.joined_at, w.offered_at, w.ended_at, coalesce(o.reference, '') as reservation,
       0 as ahead, g.name as organiser, g.contact_email as contact
  from waiting w
  join organisation g on g.id = w.organisation_id
  join event e on (e.organisation_id, e.id) = (w.organisation_id, w.event_id)
  join ticket_kind t on (t.organisation_id, t.id) = (w.organisation_id, w.kind_id)
  join sitting s on (s.organisation_id, s.id) = (w.organisation_id, w.sitting_id)
  join room r on (r.organisation_id, r.id) = (s.organisation_id, s.room_id)
  join centre c on (c.organisation_id, c.id) = (r.organisation_id, r.centre_id)
  left join reservation o on (o.organisation_id, o.id) = (w.organisation_id, w.reservation_id)
 where w.organisation_id = $1 and `

func read(ctx context.Context, tx pgx.Tx, organisationID int64, which string, args ...any) ([]Entry, error) {
	rows, err := tx.Query(ctx, entryColumns+which, append([]any{pg.PlanAnew, organisationID}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read the queue: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByName[Entry])
	if err != nil {
		return nil, fmt.Errorf("read the queue: %w", err)
	}
	return entries, nil
}

func readOne(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Entry, error) {
	entries, err := read(ctx, tx, organisationID, `w.id = $2`, id)
	if err == nil && len(entries) != 1 {
		err = fmt.Errorf("read the queue: place %d is not there", id)
	}
	if err != nil {
		return Entry{}, err
	}
	e := entries[0]
	err = tx.QueryRow(ctx, `
select count(*) from waiting where organisation_id = $1 and sitting_id = $2 and state = 'waiting' and $5 and (joined_at, id) < ($3, $4)`,
		organisationID, e.SittingID, e.JoinedAt, e.ID, e.State == Waiting).Scan(&e.Ahead)
	if err != nil {
		return e, fmt.Errorf("count who waits before somebody: %w", err)
	}
	return e, nil
}

// Read finds a place in a queue by its reference, for whoever knows that.
func Read(ctx context.Context, db *pg.DB, reference string) (e Entry, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return e, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		e, err = readOne(ctx, tx, organisationID, id)
		return err
	})
	return e, err
}

func find(ctx context.Context, db *pg.DB, reference string) (organisationID, id int64, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, waiting_id from find_waiting($1)`, reference).Scan(&organisationID, &id)
		if errors.Is(err, pgx.ErrNoRows) {
			return unknown(reference)
		}
		if err != nil {
			return fmt.Errorf("find the place in the queue: %w", err)
		}
		return nil
	})
	return organisationID, id, err
}

func unknown(reference string) error {
	return problem.NotFound("waiting_unknown", problem.Facts{"waiting": reference})
}

func (e Entry) subject() timeline.Subject {
	return timeline.Subject{EventID: e.EventID, SittingID: e.SittingID}
}

// facts are what the timeline keeps of a place in a queue.
func (e Entry) facts() map[string]any {
	return map[string]any{"waiting": e.Reference, "sitting": e.Sitting, "name": e.Name, "kind": e.Kind, "zone": e.Zone, "wanted": e.Wanted, "fewest": e.Fewest}
}
