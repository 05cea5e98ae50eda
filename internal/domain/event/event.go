// Package event decides what an organiser sells: events with their kinds of ticket, what these cost in which zone from when on,
// when they are sold and how many one buyer may have. It says what is sold at an instant; which seat becomes whose is decided in
// seating, and what a buyer holds and pays in reservation.
package event

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// Event is what tickets are sold for: a play, a match, with its sittings in rooms.
type Event struct {
	ID, OrganisationID int64
	Slug               string // unique in the installation: links and commands name it
	Name               string
	Description        string
	State              State
	Currency           string        // ISO 4217, of all its prices
	TimeZone           string        // IANA name: instants of its sale are typed and shown in it
	OpensAt            *time.Time    // of the sale, included; nil: as soon as it is on sale
	ClosesAt           *time.Time    // not included; nil: when a sitting begins, or ends where LateSale
	HoldFor            time.Duration // how long a hold lasts, and what a renewal gives
	HoldMost           time.Duration // from the first hold: no renewal goes past it
	MostPerBuyer       *int          // tickets, over all their reservations; nil: as many as a cart takes
	GroupFrom          *int          // from so many tickets of the event in a cart …
	GroupPercent       *int          // … each costs so much less
	CancelFeePercent   int           // of a ticket that its buyer gives back
	LateSale           bool          // tickets are sold until a sitting ends, not until it begins
	OfferFor           time.Duration // how long places that came free stay those of whoever waited for them
	SelfCancelHours    *int          // until so many hours before a sitting buyers give tickets back by themselves; nil: only the organiser does
}

// Shown is an instant as the people of the event read it.
func (e Event) Shown(at time.Time) i18n.Instant { return i18n.Instant{At: at, Zone: e.TimeZone} }

const eventColumns = `
select id, organisation_id, slug, name, description, state, currency, time_zone, opens_at, closes_at,
       make_interval(secs => hold_seconds) as hold_for, make_interval(secs => hold_most_seconds) as hold_most,
       most_per_buyer, group_from, group_percent, cancel_fee_percent, late_sale,
       make_interval(secs => offer_seconds) as offer_for, self_cancel_hours
  from event`

// Find finds an event by its slug, whatever its state. One of an organisation for which the actor does not act is not found, like
// one that does not exist.
func Find(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (Event, error) {
	return find(ctx, db, slug, func(e Event) bool { return actor.MayActFor(e.OrganisationID) })
}

// FindPublic finds an event by its slug for whoever has no login. A draft is as if it did not exist.
func FindPublic(ctx context.Context, db *pg.DB, slug string) (Event, error) {
	return find(ctx, db, slug, func(e Event) bool { return e.State.Public() })
}

func find(ctx context.Context, db *pg.DB, slug string, shown func(Event) bool) (found Event, err error) {
	unknown := problem.NotFound("event_unknown", problem.Facts{"event": slug})
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		var organisationID, id int64
		err := tx.QueryRow(ctx, `select organisation_id, event_id from find_event($1)`, slug).Scan(&organisationID, &id)
		if errors.Is(err, pgx.ErrNoRows) {
			return unknown
		}
		if err != nil {
			return fmt.Errorf("find the event: %w", err)
		}
		if err := pg.See(ctx, tx, organisationID); err != nil {
			return err
		}
		if found, err = read(ctx, tx, organisationID, id, ""); err == nil && !shown(found) {
			err = unknown
		}
		return err
	})
	if err != nil {
		return Event{}, err
	}
	return found, nil
}

// read reads an event that is there.
func read(ctx context.Context, tx pgx.Tx, organisationID, id int64, lock string) (Event, error) {
	rows, err := tx.Query(ctx, eventColumns+` where organisation_id = $1 and id = $2`+lock, organisationID, id)
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	e, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Event])
	if err != nil {
		return Event{}, fmt.Errorf("read the event: %w", err)
	}
	return e, nil
}
