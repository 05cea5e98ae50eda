package checkin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/checkin"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// The doors of the tests: of an exam at a school, and of an event.
var (
	exam = checkin.Of{Campaign: "c"}
	play = checkin.Of{Event: "play"}
)

// keeper is who stands there.
var keeper = timeline.Actor{Name: "keeper", OrganisationID: 1, Role: account.Door}

// house is an organisation with an exam (sittings S001 and S002, both in the morning of 1 June 2026) and an event (sittings S1 and S2, that
// evening), whose doors open at ten to eight.
type house struct {
	*testing.T
	db     *pg.DB
	owner  *pgx.Conn
	admin  timeline.Actor
	opens  time.Time
	people int
	nonces int
}

func newHouse(t *testing.T) *house {
	t.Helper()
	t.Parallel()
	db, url := testdb.NewWithURL(t)
	h := &house{T: t, db: db, owner: testdb.Owner(t, url), admin: timeline.Actor{Name: "admin", Installation: true}, opens: time.Date(2026, 6, 1, 7, 50, 0, 0, time.UTC)}
	h.exec(`
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'house', 'House', 'ML', 'Africa/Bamako', 'fr', 'EUR'),
  (2, 'other', 'Other', 'ML', 'Africa/Bamako', 'fr', 'EUR');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'c', 'Concours', 0, 'EUR'), (2, 2, 'd', 'Concours', 0, 'EUR');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'MATH'), (2, 2, 2, 'MATH');
insert into status (organisation_id, id, campaign_id, position, code, label, opens_payment) values (1, 1, 1, 1, 'a', 'A', true);
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Lycée', 'Africa/Bamako'), (2, 2, 'Lycée', 'Africa/Bamako');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'B12'), (1, 2, 1, 'B14'), (1, 3, 1, 'Hall'), (2, 4, 2, 'B12');
insert into seat (organisation_id, room_id, number, label, row_label, position) select 1, 3, n, 'A' || n, 'A', n from generate_series(1, 20) n;
insert into event (organisation_id, id, slug, name, state, currency, time_zone) values (1, 1, 'play', 'The play', 'on_sale', 'EUR', 'Africa/Bamako');
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, 'full', 'Full price');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 2000);
insert into sitting (organisation_id, id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 1, 1, 1, 1, 'S001', '2026-06-01 08:00Z', '2026-06-01 10:00Z', 20, 'sitting'), (1, 2, 1, 1, 2, 'S002', '2026-06-01 08:00Z', '2026-06-01 10:00Z', 20, 'sitting'),
  (2, 5, 2, 2, 4, 'S001', '2026-06-01 08:00Z', '2026-06-01 10:00Z', 20, 'sitting');
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from) values
  (1, 3, 1, 3, 'S1', '2026-06-01 20:00Z', '2026-06-01 22:00Z', 20, 'plan'), (1, 4, 1, 3, 'S2', '2026-06-02 20:00Z', '2026-06-02 22:00Z', 20, 'plan')`)
	h.at(0)
	h.must2(payment.AddGateway(t.Context(), db, h.admin, account.Organisation{ID: 1, Slug: "house"}, payment.Setup{Name: "counter", Kind: payment.Counter}, payment.Secrets{}))
	h.must2(payment.AddGateway(t.Context(), db, h.admin, account.Organisation{ID: 1, Slug: "house"}, payment.Setup{
		Name: "bridge", Kind: payment.Signed, CheckoutURL: "https://pay.example/?ref={reference}&sum={amount}&cur={currency}&back={return}",
	}, payment.Secrets{}))
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) must2(_ payment.Setup, _ string, err error) { h.Helper(); h.must(err) }

func (h *house) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// at sets every clock to so long after the doors opened.
func (h *house) at(after time.Duration) {
	h.Helper()
	h.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select '%s'::timestamptz $$`,
		h.opens.Add(after).Format(time.RFC3339Nano)))
}

func (h *house) count(query string, args ...any) (n int) {
	h.Helper()
	h.must(h.owner.QueryRow(h.Context(), query, args...).Scan(&n))
	return n
}

func (h *house) equal(what string, got, want any) {
	h.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// call seats a candidate at a sitting, before the day, and gives the code of their letter.
func (h *house) call(name, sitting string) (code string) {
	h.Helper()
	h.at(-48 * time.Hour)
	defer h.at(0)
	h.people++
	h.exec(`insert into candidate (organisation_id, id, campaign_id, reference, family_name, given_name, locale, status_id, filed_at)
values (1, $1, 1, $2, $3, 'Awa', 'fr', 1, clock())`, h.people, fmt.Sprintf("C%03d", h.people), name)
	h.exec(`insert into registration (organisation_id, candidate_id, exam_id, campaign_id) values (1, $1, 1, 1)`, h.people)
	_, err := convocation.Seat(h.Context(), h.db, h.admin, "c", fmt.Sprintf("C%03d", h.people), sitting, "")
	h.must(err)
	return h.letter(h.people)
}

// letter is the code of the letter that a candidate would get now.
func (h *house) letter(candidate int) (code string) {
	h.Helper()
	claim := int64(h.count(`select id from claim where candidate_id = $1 and released_at is null`, candidate))
	h.must(h.db.Tx(h.Context(), []int64{1}, func(tx pgx.Tx) error {
		letters, err := letter.Read(h.Context(), tx, 1, []int64{claim})
		if err == nil {
			code = letters[0].Code
		}
		return err
	}))
	return code
}

// hold holds seats of S1; the tickets are not paid.
func (h *house) hold(seats ...string) reservation.Reservation {
	h.Helper()
	h.people++
	part := reservation.Part{Event: "play", Sitting: "S1"}
	for _, seat := range seats {
		part.Seats = append(part.Seats, reservation.Ticket{Seat: seat, Kind: "full"})
	}
	r, err := reservation.NewDesk(h.db).Hold(h.Context(), reservation.Buyer, reservation.Request{Key: fmt.Sprint("key ", h.people), Locale: "fr", Parts: []reservation.Part{part}})
	h.must(err)
	return r
}

// buy has seats of S1 paid: the buyer says who they are, and pays at the counter.
func (h *house) buy(seats ...string) reservation.Reservation {
	h.Helper()
	r := h.hold(seats...)
	h.pay(r)
	return r
}

func (h *house) pay(r reservation.Reservation) {
	h.Helper()
	_, err := reservation.StartPayment(h.Context(), h.db, reservation.Buyer, r.Reference, reservation.Paying{
		Gateway: "bridge", Contact: reservation.Contact{Name: "Awa Diarra", Email: fmt.Sprintf("buyer%d@example.org", h.people)}, Return: "https://shop.example/r/" + r.Reference,
	})
	h.must(err)
	_, err = reservation.TakeCash(h.Context(), h.db, h.admin, r.Reference, reservation.Cash{Gateway: "counter", AmountMinor: int64(len(r.Lines)) * 2000, Receipt: fmt.Sprint("R", h.people)})
	h.must(err)
}

// ticket is the code of the ticket that a line would get now.
func (h *house) ticket(r reservation.Reservation, line int) (code string) {
	h.Helper()
	claim := int64(h.count(`select id from claim where reservation_id = $1 and line_number = $2 order by id desc limit 1`, r.ID, line))
	h.must(h.db.Tx(h.Context(), []int64{1}, func(tx pgx.Tx) error {
		codes, err := letter.SealTickets(h.Context(), tx, 1, []int64{claim})
		if err == nil {
			code = codes[0]
		}
		return err
	}))
	return code
}

// reading is one that no other test has the name of.
func (h *house) reading(door, code, sitting string) checkin.Scan {
	h.nonces++
	return checkin.Scan{Device: door, Nonce: fmt.Sprint("n", h.nonces), Code: code, Sitting: sitting}
}

// in reads a code at a door that waits for the answer.
func (h *house) in(of checkin.Of, door, code, sitting string) checkin.Answer {
	h.Helper()
	a, err := checkin.In(h.Context(), h.db, keeper, of, h.reading(door, code, sitting))
	h.must(err)
	return a
}

// offline is a reading of a device without a network that let the person in, so long after the doors opened.
func (h *house) offline(door, code, sitting string, after time.Duration) checkin.Scan {
	s := h.reading(door, code, sitting)
	s.ScannedAt, s.LetIn = h.opens.Add(after), true
	return s
}

// replay sends a batch, and gives what came of each reading in a word or two.
func (h *house) replay(of checkin.Of, scans ...checkin.Scan) (words []string) {
	h.Helper()
	replayed, err := checkin.Replay(h.Context(), h.db, keeper, of, scans)
	h.must(err)
	for _, one := range replayed {
		if p, refused := problem.Of(one.Err); refused {
			words = append(words, p.Code)
			continue
		}
		word := string(one.Answer.Verdict)
		if one.Answer.Conflict != "" {
			word += "/" + string(one.Answer.Conflict)
		}
		words = append(words, word)
	}
	return words
}

// present is who is present at a sitting: since when and by which door; and who is absent.
func (h *house) present(of checkin.Of, sitting string) (present, absent []string) {
	h.Helper()
	p, err := checkin.Read(h.Context(), h.db, keeper, of, sitting)
	h.must(err)
	for _, person := range p.People {
		if person.CameAt == nil {
			absent = append(absent, person.Seat)
			continue
		}
		present = append(present, fmt.Sprint(person.Seat, " ", person.CameAt.Format("15:04"), " ", person.Door))
	}
	return present, absent
}

func (h *house) conflicts(of checkin.Of, sitting string) (words []string) {
	h.Helper()
	_, err := checkin.EachConflict(h.Context(), h.db, keeper, of, sitting, func(a checkin.Answer) error {
		word := string(a.Conflict)
		if a.ClockMark != "" {
			word += "+" + a.ClockMark
		}
		words = append(words, a.Device+" "+word)
		return nil
	})
	h.must(err)
	return words
}

// waiting waits until somebody waits for a lock of a transaction.
func (h *house) waiting(holding pgx.Tx) {
	h.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		var waits bool
		h.must(holding.QueryRow(h.Context(), `select exists (select from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database())`).Scan(&waits))
		if waits {
			return
		}
	}
	h.Fatal("nobody waited for the lock")
}
