package reservation

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/notice"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// MovedSitting is a sitting after a move.
type MovedSitting struct {
	seating.MovedEventSitting
	Told int // buyers with tickets that were paid: each has a notice now, and so has whoever a ticket is for
}

// MoveSitting moves a sitting of an event to another room or time. Everybody keeps their seat, and whoever has a ticket is told, with
// the papers as they are now. Who holds seats and has not paid sees it in the cart. The same move again changes nothing and tells
// nobody.
func MoveSitting(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference string, to seating.EventSittingMove) (moved MovedSitting, err error) {
	if err := account.Allow(actor, account.Move); err != nil {
		return moved, err
	}
	err = ofEvent(ctx, db, actor, slug, func(tx pgx.Tx, e event.Event) (err error) {
		moved = MovedSitting{}
		reference := strings.ToUpper(reference)
		if err := holdThose(ctx, tx, e, "", reference); err != nil {
			return err
		}
		if moved.MovedEventSitting, err = seating.MoveEventSitting(ctx, tx, actor, e, reference, to); err != nil || !moved.Changed {
			return err
		}
		if err := holdThose(ctx, tx, e, "nowait", reference); err != nil {
			return err
		}
		moved.Told, err = tellMoved(ctx, tx, e.OrganisationID, moved.ID)
		return err
	})
	return moved, err
}

// ZonedEvent is an event that got another time zone.
type ZonedEvent struct {
	seating.EventZone
	Told int // buyers with tickets that were paid
}

// SetEventTimeZone gives an event the zone in which its hours are meant, and tells whoever has tickets of its sittings to come: they
// were told an hour of the zone before.
func SetEventTimeZone(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, zone string, keep event.Keep) (done ZonedEvent, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return done, err
	}
	if err := account.CheckTimeZone(zone); err != nil {
		return done, err
	}
	err = ofEvent(ctx, db, actor, slug, func(tx pgx.Tx, e event.Event) (err error) {
		done = ZonedEvent{}
		if err := holdThose(ctx, tx, e, ""); err != nil {
			return err
		}
		if done.EventZone, err = seating.SetEventTimeZone(ctx, tx, actor, e, zone, keep); err != nil || !done.Changed {
			return err
		}
		if err := holdThose(ctx, tx, e, "nowait"); err != nil {
			return err
		}
		ids := make([]int64, len(done.Sittings))
		for i, s := range done.Sittings {
			ids[i] = s.ID
		}
		done.Told, err = tellMoved(ctx, tx, e.OrganisationID, ids...)
		return err
	})
	return done, err
}

func ofEvent(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, act func(pgx.Tx, event.Event) error) error {
	found, err := event.Find(ctx, db, actor, slug)
	if err != nil {
		return err
	}
	return inTurns(ctx, db, found.OrganisationID, func(tx pgx.Tx) error {
		e, err := event.LockToChange(ctx, tx, found.OrganisationID, found.ID)
		if err != nil {
			return err
		}
		return act(tx, e)
	})
}

// holdThose takes the rows of the reservations with seats of an event's sittings, as waits says: before the sittings' own, as everywhere,
// by waiting for whoever is just paying; and once the sittings are taken, so that nobody comes any more, without: whoever came
// meanwhile and is just paying has it all begun again. So nobody is missed whose confirmation may say the old place.
func holdThose(ctx context.Context, tx pgx.Tx, e event.Event, waits string, references ...string) error {
	_, err := tx.Exec(ctx, `
select from reservation
 where organisation_id = $1 and id in (
   select k.reservation_id from claim k join sitting s on s.organisation_id = k.organisation_id and s.id = k.sitting_id
    where k.organisation_id = $1 and s.event_id = $2 and ($3::text[] is null or s.reference = any($3)) and k.released_at is null)
 order by id for no key update `+waits, e.OrganisationID, e.ID, references)
	if err != nil {
		return fmt.Errorf("take the reservations of what moves: %w", err)
	}
	return nil
}

// tellMoved tells whoever has tickets of sittings that they moved. Their rows are taken, and those of the reservations.
func tellMoved(ctx context.Context, tx pgx.Tx, organisationID int64, sittingIDs ...int64) (buyers int, err error) {
	var reservations, claims []int64
	err = tx.QueryRow(ctx, `
select coalesce(array_agg(distinct r.id), '{}'), coalesce(array_agg(k.id), '{}')
  from claim k join reservation r on r.organisation_id = k.organisation_id and r.id = k.reservation_id
 where k.organisation_id = $1 and k.sitting_id = any($2) and k.released_at is null and r.state in ('confirmed', 'disputed')`,
		organisationID, sittingIDs).Scan(&reservations, &claims)
	if err != nil {
		return 0, fmt.Errorf("find who has tickets of what moved: %w", err)
	}
	if err := notice.TellAttendees(ctx, tx, organisationID, notice.KindTicketMoved, claims...); err != nil {
		return 0, err
	}
	return len(reservations), notice.TellBuyers(ctx, tx, organisationID, notice.KindTicketsMoved, reservations...)
}
