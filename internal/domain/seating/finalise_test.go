package seating

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/testdb"
)

// lateHold is the database of an event of which the reservation 1 held the seat 1 and does not any more, and 2 may want it.
func lateHold(t *testing.T) (*pg.DB, *pgx.Conn) {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	owner := testdb.Owner(t, url)
	_, err := owner.Exec(t.Context(), `
create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '2026-05-04 10:00Z'::timestamptz $$;
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'theatre', 'Theatre', 'FR', 'Europe/Paris', 'fr', 'EUR');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Centre', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Hall');
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values (1, 1, 'play', 'The play', 'on_sale', 'EUR', 'Europe/Paris');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full price');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 1, 1, 1, 'S1', '2026-06-01 20:00Z', '2026-06-01 22:00Z', 5, 'sitting');
insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
select 1, id, 'R' || id, 'key ' || id, '', 'EUR', 'fr', clock(), 'buyer' from generate_series(1, 2) id;
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency, time_zone)
select 1, id, 1, 1, 1, '', 2000, 2000, 0, 0, 'EUR', 'Europe/Paris' from generate_series(1, 2) id;
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at, released_at, release_reason)
values (1, 1, 5, 1, '001', 1, 1, 1, clock() - interval '1 minute', clock(), 'lapsed')`)
	if err != nil {
		t.Fatal(err)
	}
	return db, owner
}

// takeForAnother takes the seat for the reservation 2, under the sitting's lock, unless that is somebody's.
func takeForAnother(t *testing.T, owner *pgx.Conn) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from sitting where id = 1 for no key update nowait`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
values (1, 1, 5, 1, '001', 1, 2, 1, clock() + interval '10 minutes')`)
		return err
	})
}

// liveClaims is how many have the seat.
func liveClaims(t *testing.T, owner *pgx.Conn) (live int) {
	t.Helper()
	if err := owner.QueryRow(t.Context(), `select count(*) from claim where seat_number = 1 and released_at is null`).Scan(&live); err != nil {
		t.Fatal(err)
	}
	return live
}

// Seats that are taken again are taken under the lock of their sitting: nobody can choose one between the look at it and its taking.
func TestFinalise_RetakesUnderTheLock(t *testing.T) {
	t.Parallel()
	db, owner := lateHold(t)
	err := db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		held, err := Finalise(t.Context(), tx, 1, 1)
		if held || err != nil {
			t.Errorf("still held %v, %v", held, err)
		}
		lost, err := Retake(t.Context(), tx, 1, 1)
		if len(lost) > 0 {
			t.Errorf("lost %v", lost)
		}
		if taken := takeForAnother(t, owner); !pg.MayRepeat(taken) {
			t.Errorf("while the seat is taken again, another got: %v", taken)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if live := liveClaims(t, owner); live != 1 {
		t.Errorf("%d claims are live", live)
	}
}

// Where somebody forgets that lock the seat is another's between the look and the taking, and the key alone forbids the double.
// Without the key as well it is two people's.
func TestFinalise_RetakesWithoutTheLock_Control(t *testing.T) {
	t.Parallel()
	for _, keyless := range []bool{false, true} {
		db, owner := lateHold(t)
		if keyless {
			_, err := owner.Exec(t.Context(), `
drop index claim_seat_key; create index claim_seat_key on claim (organisation_id, sitting_id, seat_number) where released_at is null`)
			if err != nil {
				t.Fatal(err)
			}
		}
		err := db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			seats, err := readOverdue(t.Context(), tx, 1, 1) // as Retake does, and LockSittings before it does not
			if err != nil || len(seats) != 1 || seats[0].Gone {
				return errors.Join(err, errors.New("the seat was to be free"))
			}
			if err := takeForAnother(t, owner); err != nil {
				return err
			}
			return takeAgain(t.Context(), tx, 1, seats)
		})
		if live := liveClaims(t, owner); keyless && (err != nil || live != 2) || !keyless && (!pg.Violates(err, "claim_seat_key") || live != 1) {
			t.Errorf("without the key %v: %v, and %d claims are live", keyless, err, live)
		}
	}
}
