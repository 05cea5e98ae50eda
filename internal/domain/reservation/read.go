package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/payment"
)

// Reservation is a cart, then an order.
type Reservation struct {
	OrganisationID int64
	ID             int64
	Reference      string // public, and cannot be guessed
	State          State  // by the clock: one whose hold is over is lapsed, whatever was written down
	Written        State  // as it was written down
	Currency       string
	BuyerID        *int64 // nil: not said yet
	Name           string
	Email          string
	Phone          string // E.164
	Locale         string
	HeldAt         time.Time
	EndsAt         *time.Time // of the hold, not included; nil: nothing is held
	MostAt         time.Time  // no renewal goes past it
	PayingAt       *time.Time
	ConfirmedAt    *time.Time
	EndedAt        *time.Time
	ReadAt         time.Time // by the one clock
	Lines          []Line
}

// Line is one ticket of a reservation, with what was frozen when it was held and the seat that it is for.
type Line struct {
	Number         int
	EventID        int64
	Event          string // slug
	EventName      string
	KindID         int64
	Kind           string // code
	KindName       string
	Zone           string // of the seat
	ListMinor      int64  // before any discount
	PriceMinor     int64
	CancelFeeMinor int64
	Attendee       string
	Cancelled      bool
	RefundMinor    *int64 // what its cancelling gave back
	Unpaid         bool   // it ended before it was paid: it costs nothing and gives nothing back
	ClaimID        int64  // the latest of its claims
	SittingID      int64
	Sitting        string // reference
	StartsAt       time.Time
	SittingZone    string // of the centre: IANA name
	Place          string // room and centre
	SeatNumber     int
	Seat           string     // label
	ExpiresAt      *time.Time // of its claim
	Live           bool       // the seat is theirs: for good, or until a hold ends that is not over
}

// Begins is when its sitting starts, as people there say it.
func (l Line) Begins() i18n.Instant { return i18n.Instant{At: l.StartsAt, Zone: l.SittingZone} }

// TotalMinor is what its tickets cost, those that were given back left out.
func (r Reservation) TotalMinor() (sum int64) {
	for _, line := range r.Lines {
		if !line.Cancelled {
			sum += line.PriceMinor
		}
	}
	return sum
}

// FeeMinor is what stays of the price of tickets that were given back. What was paid is what is kept for tickets, this fee, what went back and
// what is to go back.
func (r Reservation) FeeMinor(m payment.Money) int64 { return m.CostMinor - r.TotalMinor() }

// Read finds a reservation by its reference, for whoever knows that.
func Read(ctx context.Context, db *pg.DB, reference string) (r Reservation, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return r, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		r, err = ReadByID(ctx, tx, organisationID, id)
		return err
	})
	return r, err
}

func find(ctx context.Context, db *pg.DB, reference string) (organisationID, id int64, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, reservation_id from find_reservation($1)`, reference).Scan(&organisationID, &id)
		if errors.Is(err, pgx.ErrNoRows) {
			return unknown(reference)
		}
		if err != nil {
			return fmt.Errorf("find the reservation: %w", err)
		}
		return nil
	})
	return organisationID, id, err
}

func unknown(reference string) error {
	return problem.NotFound("reservation_unknown", problem.Facts{"reservation": reference})
}

// ReadByID reads a reservation of the organisation.
func ReadByID(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Reservation, error) {
	read, err := readMany(ctx, tx, organisationID, []int64{id})
	if err != nil {
		return Reservation{}, err
	}
	r, there := read[id]
	if !there {
		return Reservation{}, fmt.Errorf("reservation %d is not there", id)
	}
	return r, nil
}

// lock takes the row of a reservation: before buyers, sittings and claims.
func lock(ctx context.Context, tx pgx.Tx, organisationID, id int64) (Reservation, error) {
	if _, err := tx.Exec(ctx, `select from reservation where organisation_id = $1 and id = $2 for no key update`, pg.PlanAnew, organisationID, id); err != nil {
		return Reservation{}, fmt.Errorf("lock the reservation: %w", err)
	}
	return ReadByID(ctx, tx, organisationID, id)
}

const reservationColumns = `
select organisation_id, id, reference, state as written, currency, buyer_id, name, email, phone, locale, held_at, hold_most_at as most_at,
       paying_at, confirmed_at, ended_at, clock() as read_at
  from unnest($2::bigint[]) w(reservation_id)
 cross join lateral (select * from reservation where organisation_id = $1 and id = w.reservation_id offset 0) r`

// Each line is looked up, with the latest of its claims, whatever the statistics say.
const lineColumns = `
select l.reservation_id, l.number, l.event_id, e.slug as event, e.name as event_name, l.kind_id, t.code as kind, t.name as kind_name, l.zone,
       l.list_minor, l.price_minor, l.cancel_fee_minor, l.attendee, l.cancelled_at is not null as cancelled, l.refund_minor,
       ended_unpaid(l.cancel_reason) as unpaid,
       k.id as claim_id, k.sitting_id, s.reference as sitting, s.starts_at, c.time_zone as sitting_zone, r.name || ', ' || c.name as place,
       k.seat_number, k.seat_label as seat, k.expires_at,
       k.released_at is null and (k.expires_at is null or k.expires_at > clock()) as live
  from unnest($2::bigint[]) w(reservation_id)
 cross join lateral (select * from line where organisation_id = $1 and reservation_id = w.reservation_id offset 0) l
 cross join lateral (select slug, name from event where organisation_id = l.organisation_id and id = l.event_id offset 0) e
 cross join lateral (select code, name from ticket_kind where organisation_id = l.organisation_id and id = l.kind_id offset 0) t
 cross join lateral (select * from claim where organisation_id = l.organisation_id and reservation_id = l.reservation_id and line_number = l.number
                      order by id desc limit 1) k
 cross join lateral (select reference, starts_at, room_id from sitting where organisation_id = l.organisation_id and id = k.sitting_id offset 0) s
 cross join lateral (select name, centre_id from room where organisation_id = l.organisation_id and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = l.organisation_id and id = r.centre_id offset 0) c
 order by l.reservation_id, l.number`

// readMany reads reservations with their lines, by id.
func readMany(ctx context.Context, tx pgx.Tx, organisationID int64, ids []int64) (map[int64]Reservation, error) {
	read := make(map[int64]Reservation, len(ids))
	if len(ids) == 0 {
		return read, nil
	}
	if err := collect(ctx, tx, organisationID, ids, read); err != nil {
		return nil, fmt.Errorf("read the reservations: %w", err)
	}
	return read, nil
}

func collect(ctx context.Context, tx pgx.Tx, organisationID int64, ids []int64, read map[int64]Reservation) error {
	rows, err := tx.Query(ctx, reservationColumns, pg.PlanAnew, organisationID, ids)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Reservation])
	if err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, lineColumns, pg.PlanAnew, organisationID, ids); err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		ReservationID int64
		Line
	}])
	if err != nil {
		return err
	}
	of := make(map[int64][]Line, len(all))
	for _, line := range lines {
		of[line.ReservationID] = append(of[line.ReservationID], line.Line)
	}
	for _, r := range all {
		r.Lines = of[r.ID]
		r.stand()
		read[r.ID] = r
	}
	return nil
}

// stand says how it stands by the clock.
func (r *Reservation) stand() {
	r.State, r.EndsAt = r.Written, nil
	if _, open := Move(r.Written, Lapse); !open {
		return
	}
	r.State = Lapsed
	for _, line := range r.Lines {
		if line.Live {
			r.State, r.EndsAt = r.Written, line.ExpiresAt
		}
	}
}
