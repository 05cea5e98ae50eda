package seating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
)

// HeldSitting is a sitting of an event as whoever holds seats there sees it.
type HeldSitting struct {
	ID           int64
	EventID      int64
	Reference    string
	RoomID       int64
	Room         string
	Centre       string
	Zone         string // of the centre: IANA name
	StartsAt     time.Time
	EndsAt       time.Time
	Places       int // the bound that claims obey
	PlanRevision int
	Cancelled    bool
	Closed       bool // it is over, and nothing is held there any more
}

// Begins is the start in the centre's zone.
func (s HeldSitting) Begins() i18n.Instant { return i18n.Instant{At: s.StartsAt, Zone: s.Zone} }

// Place names the room with its centre, as people say it.
func (s HeldSitting) Place() string { return s.Room + ", " + s.Centre }

// lockSittings takes the rows of the sittings in key order.
const lockSittings = `select from sitting where organisation_id = $1 and id = any($2) order by id for no key update`

// heldSittings reads them after the lock was obtained, with the clock that decides what has lapsed.
const heldSittings = `
select s.id, s.event_id, s.reference, s.room_id, r.name as room, c.name as centre, c.time_zone as zone, s.starts_at, s.ends_at, s.places,
       r.plan_revision, s.cancelled_at is not null as cancelled, s.closed_at is not null as closed, clock() as now
  from sitting s
 cross join lateral (select name, centre_id, plan_revision from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = s.organisation_id and id = r.centre_id offset 0) c
 where s.organisation_id = $1 and s.id = any($2) and s.event_id is not null order by s.id`

// LockSittings takes the rows of sittings of events, in key order, and reads them and the clock after that. Whoever chooses seats
// holds them: what they read is what they get. The instant is zero where none of them is there.
func LockSittings(ctx context.Context, tx pgx.Tx, organisationID int64, ids []int64) ([]HeldSitting, time.Time, error) {
	asked := &pgx.Batch{}
	QueueLock(asked, organisationID, ids)
	answers := tx.SendBatch(ctx, asked)
	locked, now, err := ReadLocked(answers)
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, now, fmt.Errorf("lock the sittings: %w", err)
	}
	return locked, now, nil
}

// QueueLock is the question of LockSittings, for who asks more in the same exchange. Each statement has its own moment: the second sees what
// the first waited for.
func QueueLock(asked *pgx.Batch, organisationID int64, ids []int64) {
	asked.Queue(lockSittings, organisationID, ids)
	asked.Queue(heldSittings, organisationID, ids)
}

// ReadLocked is the answer to QueueLock.
func ReadLocked(answers pgx.BatchResults) (locked []HeldSitting, now time.Time, err error) {
	if _, err = answers.Exec(); err != nil {
		return nil, now, err
	}
	rows, err := answers.Query()
	if err != nil {
		return nil, now, err
	}
	read, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
		HeldSitting
		Now time.Time
	}])
	for _, s := range read {
		locked, now = append(locked, s.HeldSitting), s.Now
	}
	return locked, now, err
}

// Hold is one seat that becomes somebody's until an instant: for a line of their reservation.
type Hold struct {
	ReservationID int64
	Line          int
	Sitting       HeldSitting
	Seat          Proposed
	Until         time.Time // not included
	ReplacesID    int64     // the claim that it follows; 0: none
}

// QueueHolds asks for the seats to become theirs, under the sittings' lock: the lapsed claims in the way are released in the order of their
// seats, then all claims are added in that order, in one statement. The unique key refuses what a forgotten lock let through. Claimed gets
// the claim of each line.
func QueueHolds(asked *pgx.Batch, organisationID int64, holds []Hold, claimed func(reservationID int64, line int, claimID int64)) {
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Sitting.ID, b.Sitting.ID), cmp.Compare(a.Seat.Number, b.Seat.Number))
	})
	n := len(holds)
	var lapsed []int64
	sittings, places, numbers, labels := make([]int64, n), make([]int, n), make([]int, n), make([]string, n)
	events, reservations, lines, replaces := make([]int64, n), make([]int64, n), make([]int, n), make([]int64, n)
	until := make([]time.Time, n)
	for i, h := range holds {
		sittings[i], places[i], numbers[i], labels[i] = h.Sitting.ID, h.Sitting.Places, h.Seat.Number, h.Seat.Label
		events[i], reservations[i], lines[i], replaces[i], until[i] = h.Sitting.EventID, h.ReservationID, h.Line, h.ReplacesID, h.Until
		if h.Seat.LapsedID != 0 {
			lapsed = append(lapsed, h.Seat.LapsedID)
		}
	}
	if len(lapsed) > 0 {
		asked.Queue(takeBackLapsed, organisationID, lapsed)
	}
	asked.Queue(`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, replaces_id, expires_at)
select $1, h.sitting_id, h.places, h.number, h.label, h.event_id, h.reservation_id, h.line, nullif(h.replaces_id, 0), h.until
  from unnest($2::bigint[], $3::int[], $4::int[], $5::text[], $6::bigint[], $7::bigint[], $8::int[], $9::bigint[], $10::timestamptz[])
       with ordinality h(sitting_id, places, number, label, event_id, reservation_id, line, replaces_id, until, nth)
 order by h.nth returning reservation_id, line_number, id`,
		organisationID, sittings, places, numbers, labels, events, reservations, lines, replaces, until).Query(func(rows pgx.Rows) error {
		var reservationID, claimID int64
		var line int
		_, err := pgx.ForEachRow(rows, []any{&reservationID, &line, &claimID}, func() error { claimed(reservationID, line, claimID); return nil })
		return err
	})
}

// takeBackLapsed takes back others' claims that are in the way, in the order of their seats. That they have lapsed is judged after each
// was locked: one that was prolonged or paid meanwhile, by whoever needs no lock of the sitting for that, stays, and the key refuses its
// seat.
const takeBackLapsed = `
update claim c set released_at = clock(), release_reason = 'lapsed'
  from (select k.id from unnest($2::bigint[]) w(id) join claim k on (k.organisation_id, k.id) = ($1, w.id)
         where k.released_at is null and k.expires_at <= clock() order by k.sitting_id, k.seat_number for no key update of k) l
 where c.organisation_id = $1 and c.id = l.id`

// releaseInOrder takes claims back in the order of their seats, as everybody does who takes several back.
const releaseInOrder = `
update claim c set released_at = clock(), release_reason = $3
  from (select k.id from unnest($2::bigint[]) w(id) join claim k on (k.organisation_id, k.id) = ($1, w.id)
         where k.released_at is null order by k.sitting_id, k.seat_number for no key update of k) l
 where c.organisation_id = $1 and c.id = l.id returning c.id`

// ReleaseInOrder is Release for claims of several sittings that others may take back at the same time. They are those of reservations
// whose rows the caller holds: what became of others' is judged by takeBackLapsed. Freeing a seat needs no lock of its sitting.
func ReleaseInOrder(ctx context.Context, tx pgx.Tx, organisationID int64, reason string, claimIDs []int64) (released []int64, err error) {
	rows, err := tx.Query(ctx, releaseInOrder, pg.PlanAnew, organisationID, claimIDs, reason)
	if err != nil {
		return nil, fmt.Errorf("release the claims: %w", err)
	}
	if released, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, fmt.Errorf("release the claims: %w", err)
	}
	return released, nil
}

// Prolong gives the live holds of a reservation, whose row is locked and then the sittings', another end, in the order of their
// seats. It tells how many they are: one that has lapsed by the clock is none.
func Prolong(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64, until time.Time) (int64, error) {
	tag, err := tx.Exec(ctx, `
update claim c set expires_at = $3
  from (select id from claim where organisation_id = $1 and reservation_id = $2 and released_at is null and expires_at > clock()
         order by sitting_id, seat_number for no key update) l
 where c.organisation_id = $1 and c.id = l.id`, pg.PlanAnew, organisationID, reservationID, until)
	if err != nil {
		return 0, fmt.Errorf("prolong the hold: %w", err)
	}
	return tag.RowsAffected(), nil
}
