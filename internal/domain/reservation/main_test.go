package reservation

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) {
	if os.Getenv(crashURL) != "" {
		fmt.Fprintln(os.Stderr, holdAndDie())
		os.Exit(3)
	}
	testdb.Main(m)
}

// theatre is an organiser with an event that is on sale: one sitting, S1, in a room of rows A, B and C of ten seats.
type theatre struct {
	*testing.T
	db    *pg.DB
	url   string
	owner *pgx.Conn
	desk  *Desk
	begun time.Time
}

// newTheatre opens one. Its clock stands still, at begun, until it is moved.
func newTheatre(t *testing.T) *theatre {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	h := &theatre{T: t, db: db, url: url, owner: testdb.Owner(t, url), desk: NewDesk(db), begun: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)}
	h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'theatre', 'Theatre', 'FR', 'Europe/Paris', 'fr', 'EUR'),
  (2, 'other', 'Other', 'FR', 'Europe/Paris', 'fr', 'EUR');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Centre', 'Europe/Paris'), (2, 2, 'Centre', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Hall'), (1, 3, 1, 'Studio'), (2, 2, 2, 'Hall');
insert into seat (organisation_id, room_id, number, label, row_label, row_order, position)
select 1, 1, (r.nth - 1) * 10 + n, r.label || n, r.label, r.nth, n from unnest(array['A', 'B', 'C']) with ordinality r(label, nth), generate_series(1, 10) n;
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values
  (1, 1, 'play', 'The play', 'on_sale', 'EUR', 'Europe/Paris'), (2, 2, 'concert', 'The concert', 'on_sale', 'EUR', 'Europe/Paris');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full price'), (1, 2, 1, 'reduced', 'Reduced'), (2, 3, 2, 'full', 'Full price');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 2000), (1, 1, 2, 1000), (2, 2, 3, 2000);
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 1, 1, 1, 'S1', '2026-06-01 20:00Z', '2026-06-01 22:00Z', 30, 'room'), (1, 2, 1, 3, 'S2', '2026-06-02 20:00Z', '2026-06-02 22:00Z', 5, 'sitting'),
  (2, 3, 2, 2, 'T1', '2026-06-01 20:00Z', '2026-06-01 22:00Z', 30, 'room')`)
	h.at(0)
	return h
}

func (h *theatre) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// at sets the database's clock to so long after it began, for everybody.
func (h *theatre) at(after time.Duration) {
	h.Helper()
	h.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`,
		h.begun.Add(after).Format(time.RFC3339Nano)))
}

// another is a desk of another process.
func (h *theatre) another() *Desk {
	h.Helper()
	db, err := pg.Open(h.Context(), h.url, schema.Migrations())
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(db.Close)
	return NewDesk(db)
}

var keys atomic.Int64

// aKey is one that no other request of the tests has.
func aKey() string { return fmt.Sprint("key ", keys.Add(1)) }

// chosen is a request for seats of S1 at the full price, under a key of its own.
func chosen(seats ...string) Request {
	part := Part{Event: "play", Sitting: "S1"}
	for _, seat := range seats {
		part.Seats = append(part.Seats, Ticket{Seat: seat, Kind: "full"})
	}
	return Request{Key: aKey(), Locale: "fr", Parts: []Part{part}}
}

// best is a request for so many of the best seats of S1.
func best(n int) Request {
	kinds := make([]string, n)
	for i := range kinds {
		kinds[i] = "full"
	}
	return Request{Key: aKey(), Locale: "fr", Parts: []Part{{Event: "play", Sitting: "S1", Best: &Best{Kinds: kinds}}}}
}

func (h *theatre) hold(request Request) Reservation {
	h.Helper()
	r, err := h.desk.Hold(h.Context(), Buyer, request)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// refused holds what is to be refused with a code, and looks that nothing was written.
func (h *theatre) refused(request Request, code string) problem.Facts {
	h.Helper()
	before := h.digest()
	r, err := h.desk.Hold(h.Context(), Buyer, request)
	p, ok := problem.Of(err)
	if !ok || p.Code != code {
		h.Fatalf("got %v and %v, want %s", r, err, code)
	}
	if h.digest() != before {
		h.Errorf("%s left something", code)
	}
	return p.Facts
}

// digest is everything that a hold may write.
func (h *theatre) digest() (digest string) {
	h.Helper()
	err := h.owner.QueryRow(h.Context(), `
select md5(coalesce(string_agg(line, '|' order by line), '')) from (
  select 'claim ' || k::text from claim k union all select 'line ' || l::text from line l union all
  select 'reservation ' || r::text from reservation r union all select 'buyer ' || b::text from buyer b union all
  select 'timeline ' || t::text from timeline t) lines(line)`).Scan(&digest)
	if err != nil {
		h.Fatal(err)
	}
	return digest
}

// count is what a query that counts says.
func (h *theatre) count(query string, args ...any) (n int) {
	h.Helper()
	if err := h.owner.QueryRow(h.Context(), query, args...).Scan(&n); err != nil {
		h.Fatalf("%s: %v", query, err)
	}
	return n
}

func (h *theatre) equal(what string, got, want any) {
	h.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (r Reservation) seats() (labels []string) {
	for _, line := range r.Lines {
		if line.Live {
			labels = append(labels, line.Seat)
		}
	}
	return labels
}

// whole looks that no seat is twice somebody's and that every live hold belongs to a reservation whose lines say the same.
func (h *theatre) whole() {
	h.Helper()
	h.equal("seats held twice", h.count(`
select count(*) from (select 1 from claim where released_at is null group by sitting_id, seat_number having count(*) > 1) d`), 0)
	h.equal("reservations with fewer seats than lines", h.count(`
select count(*) from reservation r where state = 'held' and exists (
  select from line l where l.reservation_id = r.id and l.cancelled_at is null
     and not exists (select from claim k where k.reservation_id = r.id and k.line_number = l.number))`), 0)
	h.equal("tickets that are paid and have no seat", h.count(`
select count(*) from reservation r join line l on l.reservation_id = r.id and l.cancelled_at is null
 where r.state in ('confirmed', 'disputed')
   and not exists (select from claim k where k.reservation_id = r.id and k.line_number = l.number and k.released_at is null and k.expires_at is null)`), 0)
}

var agent = timeline.Actor{Name: "agent", OrganisationID: 1, Role: account.Agent}

// expireSome writes down what lapsed, of at most so many reservations: of how many, and how many were listed for it.
func expireSome(ctx context.Context, db *pg.DB, actor timeline.Actor, most int) (expired, listed int, err error) {
	err = db.Tx(ctx, []int64{1, 2}, func(tx pgx.Tx) error {
		items, err := ListOver(ctx, tx, run.Window{}, []int64{1, 2}, run.Key{}, most)
		if err != nil {
			return err
		}
		listed = len(items)
		expired, _, err = Expire(ctx, tx, actor, items)
		return err
	})
	return expired, listed, err
}

func together(n int, act func(i int) error) []error {
	errs := make([]error, n)
	done := make(chan struct{})
	for i := range n {
		go func() { errs[i] = act(i); done <- struct{}{} }()
	}
	for range n {
		<-done
	}
	return errs
}
