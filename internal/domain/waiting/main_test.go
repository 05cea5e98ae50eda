package waiting_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/waiting"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// full is a theatre with a sitting, S1, of ten places in two zones of five, stalls (A1 to A5) and balcony (B1 to B5), all of which are sold.
type full struct {
	*testing.T
	db    *pg.DB
	owner *pgx.Conn
	desk  *reservation.Desk
	admin timeline.Actor
	begun time.Time
	sold  map[string]ticket // by seat
}

type ticket struct {
	reservation string
	number      int
}

func newFull(t *testing.T) *full {
	t.Helper()
	return newFullOf(t, 5)
}

// newFullOf has the places sold to buyers who have so many of them each.
func newFullOf(t *testing.T, each int) *full {
	t.Helper()
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	h := &full{
		T: t, db: db, owner: testdb.Owner(t, url), desk: reservation.NewDesk(db), admin: timeline.Actor{Name: "admin", Installation: true},
		begun: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), sold: map[string]ticket{},
	}
	h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'theatre', 'Theatre', 'FR', 'Europe/Paris', 'fr', 'EUR'),
  (2, 'other', 'Other', 'FR', 'Europe/Paris', 'fr', 'EUR');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Centre', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Hall');
insert into seat (organisation_id, room_id, number, label, zone, row_label, row_order, position)
select 1, 1, (r.nth - 1) * 5 + n, r.label || n, r.zone, r.label, r.nth, n
  from unnest(array['A', 'B'], array['stalls', 'balcony']) with ordinality r(label, zone, nth), generate_series(1, 5) n;
insert into event (organisation_id, id, slug, name, state, currency, time_zone, offer_seconds) values (1, 1, 'play', 'The play', 'on_sale', 'EUR', 'Europe/Paris', 172800);
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full price');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 2000);
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 1, 1, 1, 'S1', '2026-06-01 15:00Z', '2026-06-01 17:00Z', 10, 'plan')`)
	h.at(h.begun)
	_, _, err := payment.AddGateway(t.Context(), db, h.admin, account.Organisation{ID: 1, Slug: "theatre"}, payment.Setup{
		Name: "bridge", Kind: payment.Signed, CheckoutURL: "https://pay.example/?ref={reference}&sum={amount}&cur={currency}&back={return}",
	}, payment.Secrets{})
	h.must(err)
	_, _, err = payment.AddGateway(t.Context(), db, h.admin, account.Organisation{ID: 1, Slug: "theatre"}, payment.Setup{Name: "counter", Kind: payment.Counter}, payment.Secrets{})
	h.must(err)
	seats := []string{"A1", "A2", "A3", "A4", "A5", "B1", "B2", "B3", "B4", "B5"}
	for cart := range slices.Chunk(seats, each) {
		r, err := h.hold(cart...)
		h.must(err)
		h.pay(r.Reference, "buyer-"+cart[0]+"@example.org")
		for _, line := range r.Lines {
			h.sold[line.Seat] = ticket{r.Reference, line.Number}
		}
	}
	return h
}

func (h *full) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *full) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// at sets the one clock.
func (h *full) at(now time.Time) {
	h.Helper()
	h.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`, now.Format(time.RFC3339Nano)))
}

var keys atomic.Int64

func aKey() string { return fmt.Sprint("key ", keys.Add(1)) }

// hold holds seats as a buyer who does not wait.
func (h *full) hold(seats ...string) (reservation.Reservation, error) {
	part := reservation.Part{Event: "play", Sitting: "S1"}
	for _, seat := range seats {
		part.Seats = append(part.Seats, reservation.Ticket{Seat: seat, Kind: "full"})
	}
	return h.desk.Hold(h.Context(), reservation.Buyer, reservation.Request{Key: aKey(), Locale: "fr", Parts: []reservation.Part{part}})
}

func (h *full) pay(reference, email string) {
	h.Helper()
	_, err := reservation.StartPayment(h.Context(), h.db, reservation.Buyer, reference, reservation.Paying{
		Gateway: "bridge", Contact: reservation.Contact{Name: "Awa Diarra", Email: email}, Return: "https://shop.example/r/" + reference,
	})
	h.must(err)
	r, err := reservation.Read(h.Context(), h.db, reference)
	h.must(err)
	_, err = reservation.TakeCash(h.Context(), h.db, h.admin, reference, reservation.Cash{Gateway: "counter", AmountMinor: r.TotalMinor(), Receipt: aKey()})
	h.must(err)
}

// cancel has the organiser take a ticket back.
func (h *full) cancel(seats ...string) {
	h.Helper()
	for _, seat := range seats {
		h.must(h.cancelOne(seat))
	}
}

func (h *full) cancelOne(seat string) error {
	_, err := reservation.CancelTickets(h.Context(), h.db, h.admin, h.sold[seat].reservation, reservation.Cancelling{Tickets: []int{h.sold[seat].number}, Reason: "ill"})
	return err
}

func joining(name string, wanted, fewest int, zone string) waiting.Joining {
	j := waiting.Joining{
		Key: aKey(), Event: "play", Sitting: "S1", Kind: "full", Wanted: wanted, Fewest: fewest,
		Contact: reservation.Contact{Name: name, Email: name + "@example.org", Locale: "fr"},
	}
	if zone != "" {
		j.Zone = &zone
	}
	return j
}

func (h *full) join(name string, wanted, fewest int, zone string) waiting.Entry {
	h.Helper()
	e, err := waiting.Join(h.Context(), h.db, reservation.Buyer, joining(name, wanted, fewest, zone))
	h.must(err)
	return e
}

func (h *full) refusedJoin(j waiting.Joining, code string) {
	h.Helper()
	if e, err := waiting.Join(h.Context(), h.db, reservation.Buyer, j); !problem.Has(err, code) {
		h.Errorf("joined as %v and %v, want %s", e, err, code)
	}
}

// offer sweeps, and gives to whom places were offered, in order.
func (h *full) offer() (names []string) {
	h.Helper()
	done, err := waiting.Offer(h.Context(), h.db, waiting.System)
	h.must(err)
	for _, e := range done.Offered {
		names = append(names, e.Name)
	}
	return names
}

func (h *full) read(e waiting.Entry) waiting.Entry {
	h.Helper()
	e, err := waiting.Read(h.Context(), h.db, e.Reference)
	h.must(err)
	return e
}

func (h *full) seatsOf(e waiting.Entry) (seats []string, endsAt time.Time) {
	h.Helper()
	r, err := reservation.Read(h.Context(), h.db, h.read(e).Reservation)
	h.must(err)
	for _, line := range r.Lines {
		if line.Live {
			seats = append(seats, line.Seat)
		}
	}
	if r.EndsAt != nil {
		endsAt = *r.EndsAt
	}
	return seats, endsAt
}

func (h *full) count(query string, args ...any) (n int) {
	h.Helper()
	h.must(h.owner.QueryRow(h.Context(), query, args...).Scan(&n))
	return n
}

func (h *full) equal(what string, got, want any) {
	h.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// told is how many notices of a kind there are.
func (h *full) told(kind string) int {
	h.Helper()
	return h.count(`select count(*) from notice where kind = $1`, kind)
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
