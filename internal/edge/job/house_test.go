package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/edge/job"
)

// house is an organiser in Paris with an event on sale, and a school in Bamako with an exam. The play has two sittings, S1 and S2 a week later,
// in a hall of ten seats, A1 to A10; the exam has one, X1, in a room of ten places, at which three candidates sit. Other systems listen to both.
type house struct {
	*testing.T
	db    *pg.DB
	url   string
	owner *pgx.Conn
	desk  *reservation.Desk
	begun time.Time
	keys  int
}

// Hours of the house.
var (
	houseBegins = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	playBegins  = time.Date(2026, 6, 1, 18, 0, 0, 0, time.UTC) // two hours
	examBegins  = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)  // four hours
)

func newHouse(t *testing.T) *house {
	t.Helper()
	db, url := testdb.NewWithURL(t)
	h := &house{T: t, db: db, url: url, owner: testdb.Owner(t, url), desk: reservation.NewDesk(db), begun: houseBegins}
	h.at(houseBegins)
	h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency, contact_email) values
  (1, 'theatre', 'Theatre', 'FR', 'Europe/Paris', 'fr', 'EUR', 'box@theatre.example'), (2, 'ecole', 'École', 'ML', 'Africa/Bamako', 'fr', 'XOF', '');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Odéon', 'Europe/Paris'), (2, 2, 'Lycée', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Hall'), (2, 2, 2, 'Salle 1');
insert into seat (organisation_id, room_id, number, label, row_label, row_order, position) select 1, 1, n, 'A' || n, 'A', 1, n from generate_series(1, 10) n;
insert into event (organisation_id, id, slug, name, state, currency, time_zone, late_sale) values (1, 1, 'play', 'The play', 'on_sale', 'EUR', 'Europe/Paris', true);
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full price');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 2000);
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (2, 1, 'concours', 'Concours', 0, 'XOF');
insert into exam (organisation_id, campaign_id, id, code) values (2, 1, 1, 'MATH');
insert into status (organisation_id, campaign_id, id, code, label, opens_payment, position) values (2, 1, 1, 'accepted', 'accepted', true, 1);
insert into candidate (organisation_id, campaign_id, id, reference, family_name, given_name, email, phone, status_id, filed_at, locale) values
  (2, 1, 1, 'A1', 'Keita', 'Awa', 'a1@example.org', '+22376000001', 1, clock(), 'fr'), (2, 1, 2, 'A2', 'Diarra', 'Moussa', '', '+22376000002', 1, clock(), 'fr'),
  (2, 1, 3, 'A3', 'Traoré', 'Fanta', '', '', 1, clock(), 'fr');
`)
	h.exec(`
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select 1, n, 1, 1, 'S' || n, at, at + interval '2 hours', 10, 'plan' from (select n, $1::timestamptz + (n - 1) * interval '7 days' as at from generate_series(1, 2) n) s`, playBegins)
	h.exec(`
insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
values (2, 10, 1, 1, 2, 'X1', $1, $1::timestamptz + interval '4 hours', 10, 'room')`, examBegins)
	h.exec(`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id) select 2, 10, 10, n, '00' || n, 1, n from generate_series(1, 3) n`)
	theatre := account.Organisation{ID: 1, Slug: "theatre"}
	_, _, err := payment.AddGateway(t.Context(), db, administrator, theatre, payment.Setup{Name: "counter", Kind: payment.Counter}, payment.Secrets{})
	must(t, err)
	for _, org := range []account.Organisation{theatre, {ID: 2, Slug: "ecole"}} {
		_, err := outbox.Add(t.Context(), db, administrator, org, outbox.Endpoint{Name: "crm", URL: "https://" + org.Slug + ".example/"})
		must(t, err)
	}
	return h
}

func (h *house) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// at sets the one clock, for everybody.
func (h *house) at(now time.Time) {
	h.Helper()
	h.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`, now.Format(time.RFC3339Nano)))
}

func (h *house) key() string { h.keys++; return fmt.Sprint("key ", h.keys) }

// hold holds seats of a sitting of the play.
func (h *house) hold(sitting string, seats ...string) reservation.Reservation {
	h.Helper()
	part := reservation.Part{Event: "play", Sitting: sitting}
	for _, seat := range seats {
		part.Seats = append(part.Seats, reservation.Ticket{Seat: seat, Kind: "full"})
	}
	r, err := h.desk.Hold(h.Context(), reservation.Buyer, reservation.Request{Key: h.key(), Locale: "fr", Parts: []reservation.Part{part}})
	must(h.T, err)
	return r
}

// pay takes the money for a reservation, in somebody's name.
func (h *house) pay(r reservation.Reservation, email string) {
	h.Helper()
	h.exec(`update reservation set name = 'Awa Diarra', email = $2 where reference = $1`, r.Reference, email)
	must(h.T, h.cash(r))
}

func (h *house) cash(r reservation.Reservation) error {
	_, err := reservation.TakeCash(h.Context(), h.db, administrator, r.Reference, reservation.Cash{Gateway: "counter", AmountMinor: r.TotalMinor(), Receipt: h.key()})
	return err
}

func (h *house) read(r reservation.Reservation) reservation.Reservation {
	h.Helper()
	r, err := reservation.Read(h.Context(), h.db, r.Reference)
	must(h.T, err)
	return r
}

// run runs the latest window of a task, again where it was run, and wants it done.
func (h *house) run(task string) run.Progress {
	h.Helper()
	results, err := job.Executor(nil).Run(h.Context(), h.db, administrator, run.Wanted{Task: task, Again: true})
	must(h.T, err)
	var all run.Progress
	for _, result := range results {
		if result.State != run.StateDone {
			h.Fatalf("%s: %+v", task, result)
		}
		all.Done, all.Changed, all.Refused = all.Done+result.Progress.Done, all.Changed+result.Progress.Changed, all.Refused+result.Progress.Refused
	}
	return all
}

// twice runs a task once, and once more, which changes nothing.
func (h *house) twice(task string) (first run.Progress) {
	h.Helper()
	first = h.run(task)
	before := h.digest()
	if again := h.run(task); again.Changed != 0 {
		h.Errorf("%s, again: %+v after %+v", task, again, first)
	}
	if h.digest() != before {
		h.Errorf("%s, again, left something", task)
	}
	return first
}

// digest is everything that a task may change.
func (h *house) digest() (digest string) {
	h.Helper()
	must(h.T, h.owner.QueryRow(h.Context(), `
select md5(string_agg(line, '|' order by line)) from (
  select 'claim ' || x from claim x union all select 'line ' || x from line x union all select 'reservation ' || x from reservation x union all
  select 'sitting ' || x from sitting x union all select 'event ' || x from event x union all select 'waiting ' || x from waiting x union all
  select 'notice ' || x from notice x union all select 'dispatch ' || x.id || x.kind || x.data from dispatch x union all
  select 'refund ' || x from refund x union all select 'statement ' || x from statement x union all select 'entry ' || x from entry x union all
  select 'timeline ' || x from timeline x where organisation_id > 0) lines(line)`).Scan(&digest))
	return digest
}

// texts is what a query says, row by row.
func (h *house) texts(query string, args ...any) []string {
	h.Helper()
	rows, err := h.owner.Query(h.Context(), query, args...)
	must(h.T, err)
	said, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(h.T, err)
	return said
}

func (h *house) equal(what string, got, want any) {
	h.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// published are the events of a kind, by their subjects.
func (h *house) published(kind outbox.Kind) []string {
	h.Helper()
	return h.texts(`select subject from dispatch where kind = $1 order by id`, kind)
}

// failing has the rows of a table that meet a condition fail, whoever changes them.
func (h *house) failing(table, when string) {
	h.Helper()
	h.exec(`create function fails() returns trigger language plpgsql as $$ begin raise exception 'damaged'; end $$`)
	h.exec(`create trigger fails before update on ` + table + ` for each row when (` + when + `) execute function fails()`)
}
