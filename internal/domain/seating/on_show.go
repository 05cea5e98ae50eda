package seating

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/event"
)

// MostDrawn is how many seats of a plan are shown one by one; of a larger one buyers are given the best there are.
const MostDrawn = 5_000

// OnShow is an event as whoever has no login sees it at one instant.
type OnShow struct {
	event.Offer
	Organiser string // name of its organisation
	ReadAt    time.Time
	Sittings  []SoldSitting // that take place and are not over, in their order
}

// Show reads a public event with what is sold of it and what is left of each of its sittings.
func Show(ctx context.Context, db *pg.DB, slug string) (shown OnShow, err error) {
	e, err := event.FindPublic(ctx, db, slug)
	if err != nil {
		return shown, err
	}
	err = db.Read(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		if err := shown.read(ctx, tx, e); err != nil {
			return err
		}
		sittings, err := EventSittings(ctx, tx, e.OrganisationID, e.ID)
		if err != nil {
			return err
		}
		return shown.count(ctx, tx, sittings)
	})
	return shown, err
}

func (o *OnShow) read(ctx context.Context, tx pgx.Tx, e event.Event) error {
	offers, err := event.Offers(ctx, tx, e.OrganisationID, e.ID)
	if err != nil {
		return err
	}
	o.Offer = offers[e.ID]
	err = tx.QueryRow(ctx, `select name, clock() from organisation where id = $1`, e.OrganisationID).Scan(&o.Organiser, &o.ReadAt)
	if err != nil {
		return fmt.Errorf("read the organiser: %w", err)
	}
	return nil
}

// count says what is left of those of the sittings that are not over.
func (o *OnShow) count(ctx context.Context, tx pgx.Tx, sittings []EventSitting) error {
	var plain []Sitting
	for _, s := range sittings {
		if s.EndsAt.After(o.ReadAt) {
			plain, o.Sittings = append(plain, s.Sitting), append(o.Sittings, SoldSitting{EventSitting: s})
		}
	}
	usable, err := Usable(ctx, tx, o.Event.OrganisationID, plain)
	if err != nil {
		return err
	}
	for i := range o.Sittings {
		o.Sittings[i].Usable = usable[o.Sittings[i].ID].Count
	}
	return countSold(ctx, tx, o.Event, o.Sittings)
}

// Left is how many places are free.
func (s SoldSitting) Left() int { return max(0, s.Usable-s.Sold-s.Held) }

// ShownSeat is a seat of a plan as a buyer sees it.
type ShownSeat struct {
	PlannedSeat
	Sold bool // for good
	Held bool // until an instant that is to come
}

// Free tells whether it can be chosen.
func (s ShownSeat) Free() bool { return !s.Blocked && !s.Sold && !s.Held }

// ZoneLeft is a zone with what is left in it.
type ZoneLeft struct {
	Zone       string
	Seats      int // that can be given
	Free       int
	Accessible int // of those that are free
}

// SittingOnShow is one sitting with its seats.
type SittingOnShow struct {
	OnShow
	Sitting SoldSitting
	Zones   []ZoneLeft  // of its plan, from the front; none: the room has no plan
	Seats   []ShownSeat // row by row, from the front; none: the room has no plan, or one that is too large to be drawn
}

// ShowSitting reads a sitting of a public event, with the seats of its plan and who has them.
func ShowSitting(ctx context.Context, db *pg.DB, slug, reference string) (shown SittingOnShow, err error) {
	e, err := event.FindPublic(ctx, db, slug)
	if err != nil {
		return shown, err
	}
	err = db.Read(ctx, []int64{e.OrganisationID}, func(tx pgx.Tx) error {
		if err := shown.read(ctx, tx, e); err != nil {
			return err
		}
		s, err := FindEventSitting(ctx, tx, e, reference)
		if err != nil {
			return err
		}
		if !s.EndsAt.After(shown.ReadAt) {
			return problem.NotFound("event_sitting_unknown", problem.Facts{"sitting": reference, "event": e.Name})
		}
		if err := shown.count(ctx, tx, []EventSitting{s}); err != nil {
			return err
		}
		shown.Sitting = shown.Sittings[0]
		return shown.readSeats(ctx, tx)
	})
	return shown, err
}

// readSeats reads the plan with the claims that hold, and lets go of the single seats where there are too many to be drawn.
func (o *SittingOnShow) readSeats(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
select p.number, p.label, p.zone, p.row_label, p.row_order, coalesce(p.position, p.number) as position, p.blocked, p.accessible,
       k.seat_number is not null and k.expires_at is null as sold, k.expires_at is not null as held
  from seat p
  left join claim k on k.organisation_id = $1 and k.sitting_id = $2 and k.seat_number = p.number and k.released_at is null
   and (k.expires_at is null or k.expires_at > clock())
 where p.organisation_id = $1 and p.room_id = $3 and p.number <= $4
 order by p.row_order, min(p.number) over (partition by p.row_order, p.row_label, p.zone), p.zone, p.row_label, coalesce(p.position, p.number), p.number`,
		o.Event.OrganisationID, o.Sitting.ID, o.Sitting.RoomID, o.Sitting.Places)
	if err != nil {
		return fmt.Errorf("read the seats on show: %w", err)
	}
	if o.Seats, err = pgx.CollectRows(rows, pgx.RowToStructByName[ShownSeat]); err != nil {
		return fmt.Errorf("read the seats on show: %w", err)
	}
	at := map[string]int{}
	for _, s := range o.Seats {
		i, known := at[s.Zone]
		if !known {
			i = len(o.Zones)
			at[s.Zone], o.Zones = i, append(o.Zones, ZoneLeft{Zone: s.Zone})
		}
		if !s.Blocked {
			o.Zones[i].Seats++
		}
		if s.Free() {
			o.Zones[i].Free++
			if s.Accessible {
				o.Zones[i].Accessible++
			}
		}
	}
	if len(o.Seats) > MostDrawn {
		o.Seats = nil
	}
	return nil
}
