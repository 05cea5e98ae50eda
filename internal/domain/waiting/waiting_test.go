package waiting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/reservation"
	"usher/internal/domain/timeline"
	"usher/internal/domain/waiting"
)

func TestJoin(t *testing.T) {
	h := newFull(t)
	j := joining("Awa", 2, 1, "")
	e, err := waiting.Join(t.Context(), h.db, reservation.Buyer, j)
	h.must(err)
	again, err := waiting.Join(t.Context(), h.db, reservation.Buyer, j)
	h.must(err)
	h.equal("the same request", again, e)
	h.equal("second in the queue", h.join("Moussa", 1, 1, "stalls").Ahead, 1)
	h.equal("told that they wait", h.told("waiting_joined"), 2)

	j.Wanted = 3
	h.refusedJoin(j, "request_key_used")
	other := joining("Awa", 1, 1, "")
	other.Contact.Email = "AWA@example.org"
	h.refusedJoin(other, "waiting_already")
	for code, wrong := range map[string]waiting.Joining{
		"waiting_wanted": joining("x", 0, 0, ""), "waiting_fewest": joining("x", 2, 3, ""), "waiting_never": joining("x", 6, 6, "stalls"),
	} {
		h.refusedJoin(wrong, code)
	}
	nameless, unknown, elsewhere := joining("x", 1, 1, ""), joining("x", 1, 1, ""), joining("x", 1, 1, "")
	nameless.Contact.Name, unknown.Kind, elsewhere.Sitting = " ", "child", "S9"
	h.refusedJoin(nameless, "buyer_name_missing")
	h.refusedJoin(unknown, "ticket_kind_unknown")
	h.refusedJoin(elsewhere, "event_sitting_unknown")
	h.exec(`update event set most_per_buyer = 2`)
	h.refusedJoin(joining("x", 3, 1, ""), "limit_event")
	h.equal("in the queue", h.count(`select count(*) from waiting`), 2)
}

// Whoever could hold what they want does not wait: an offer lasts longer than a hold.
func TestJoin_NeedlessWhileSeatsAreFree(t *testing.T) {
	h := newFull(t)
	h.cancel("A1", "A2")
	h.refusedJoin(joining("Awa", 2, 2, ""), "waiting_needless")
	h.join("Awa", 3, 3, "")
	h.join("Moussa", 1, 1, "") // though two are free: Awa waits for them
}

func TestOffer_FirstInTheQueue(t *testing.T) {
	h := newFull(t)
	first, second := h.join("Awa", 1, 1, ""), h.join("Moussa", 1, 1, "")
	h.equal("nothing is free", h.offer(), []string{})
	h.cancel("A3")
	h.equal("offered", h.offer(), []string{"Awa"})
	h.equal("again", h.offer(), []string{})
	seats, endsAt := h.seatsOf(first)
	h.equal("seats", seats, []string{"A3"})
	h.equal("until", endsAt.UTC(), h.begun.Add(48*time.Hour))
	h.equal("state", h.read(first).State, waiting.Offered)
	h.equal("the second waits first now", h.read(second).Ahead, 0)
	h.equal("told", h.told("places_offered"), 1)

	h.pay(h.read(first).Reservation, "Awa@example.org")
	h.offer()
	h.equal("paid", h.read(first).State, waiting.Taken)
	h.equal("money", h.count(`select count(*) from payment where amount_minor = 2000 and reservation_id = (select reservation_id from waiting where id = $1)`, first.ID), 1)
}

// An offer that was not paid goes on to the next, and whoever missed it is told and joins at the end.
func TestOffer_LapsesToTheNext(t *testing.T) {
	h := newFull(t)
	first, second := h.join("Awa", 1, 1, ""), h.join("Moussa", 1, 1, "")
	h.cancel("A3")
	h.offer()
	reference := h.read(first).Reservation
	h.at(h.begun.Add(47 * time.Hour))
	if _, err := h.desk.Renew(t.Context(), reservation.Buyer, reference); err != nil {
		t.Fatal(err)
	}
	_, endsAt := h.seatsOf(first)
	h.equal("a renewal gives no later end", endsAt.UTC(), h.begun.Add(48*time.Hour))
	h.at(h.begun.Add(48 * time.Hour))
	_, err := h.hold("A3")
	h.equal("at its end, a stranger", problem.Has(err, "places_awaited"), true)
	h.equal("offered", h.offer(), []string{"Moussa"})
	h.equal("first", h.read(first).State, waiting.Missed)
	h.equal("told that it went on", h.told("offer_missed"), 1)
	seats, _ := h.seatsOf(second)
	h.equal("second", seats, []string{"A3"})
	h.equal("joins at the end", h.join("Awa", 1, 1, "").State, waiting.Waiting)
}

// C18: nothing is offered when it cannot be paid any more, and an offer ends with the last instant at which it can.
func TestOffer_EndsWithTheSale(t *testing.T) {
	closes := time.Date(2026, 5, 31, 22, 0, 0, 0, time.UTC)
	t.Run("cut to the end of the sale", func(t *testing.T) {
		h := newFull(t)
		h.exec(`update event set closes_at = $1`, closes)
		e := h.join("Awa", 1, 1, "")
		h.at(closes.Add(-5 * time.Hour))
		h.cancel("A1")
		h.offer()
		_, endsAt := h.seatsOf(e)
		h.equal("until", endsAt.UTC(), closes)
	})
	for name, at := range map[string]time.Time{
		"last payment day passed": time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), "begun": time.Date(2026, 6, 1, 15, 15, 0, 0, time.UTC),
		"too short to pay in": closes.Add(-14 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			h := newFull(t)
			h.exec(`update event set closes_at = $1`, closes)
			e := h.join("Awa", 1, 1, "")
			h.at(at)
			h.cancel("A1")
			h.equal("offered", h.offer(), []string{})
			h.equal("over", h.read(e).State, waiting.Over)
			h.equal("told", h.told("waiting_over"), 1)
			h.equal("held", h.count(`select count(*) from claim where expires_at is not null and released_at is null`), 0)
			h.offer()
			h.equal("told once", h.told("waiting_over"), 1)
			h.refusedJoin(joining("Moussa", 1, 1, ""), map[bool]string{true: "offer_late", false: "sale_over"}[at.Before(closes)])
			if at.Before(closes) { // what nobody can be offered any more is in nobody's way
				_, err := h.hold("A1")
				h.must(err)
			}
		})
	}
	t.Run("the organiser sells longer", func(t *testing.T) {
		h := newFull(t)
		h.exec(`update event set closes_at = $1`, closes)
		h.join("Awa", 1, 1, "")
		h.exec(`update event set closes_at = null`)
		h.at(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
		h.cancel("A1")
		h.equal("offered", h.offer(), []string{"Awa"})
	})
}

// Nobody who does not wait takes what those who wait are to be offered.
func TestHold_WhileOthersWait(t *testing.T) {
	h := newFull(t)
	h.join("Awa", 2, 2, "stalls")
	h.join("Moussa", 1, 1, "")
	h.cancel("A1", "A2", "B1")
	for _, seat := range []string{"A1", "B1"} {
		_, err := h.hold(seat)
		h.equal(seat, problem.Has(err, "places_awaited"), true)
	}
	h.cancel("B2")
	r, err := h.hold("B1") // one more than those who wait want
	h.must(err)
	if _, err := h.desk.Add(t.Context(), reservation.Buyer, r.Reference, 1, []reservation.Part{{Event: "play", Sitting: "S1", Seats: []reservation.Ticket{{Seat: "B2", Kind: "full"}}}}); !problem.Has(err, "places_awaited") {
		t.Errorf("added with %v", err)
	}
	part := reservation.Part{Event: "play", Sitting: "S1", Best: &reservation.Best{Kinds: []string{"full"}}}
	if _, err := h.desk.Hold(t.Context(), reservation.Buyer, reservation.Request{Key: aKey(), Locale: "fr", Parts: []reservation.Part{part}}); !problem.Has(err, "places_awaited") {
		t.Errorf("held with %v", err)
	}
	agent := timeline.Actor{Name: "agent", OrganisationID: 1, Role: account.Agent}
	if _, err := h.desk.Hold(t.Context(), agent, reservation.Request{Key: aKey(), Locale: "fr", Parts: []reservation.Part{part}}); err != nil {
		t.Errorf("the organiser decides: %v", err)
	}
}

// Whoever waits for more than is free keeps it from those behind them who want less, in the same zone and not in others.
func TestOffer_NobodyOvertakes(t *testing.T) {
	h := newFull(t)
	four := h.join("Four", 4, 4, "stalls")
	h.join("Stalls", 1, 1, "stalls")
	h.join("Balcony", 1, 1, "balcony")
	h.join("Any", 1, 1, "")
	h.cancel("A1", "A2", "B1")
	h.equal("offered", h.offer(), []string{"Balcony"})
	h.cancel("B2")
	h.equal("offered", h.offer(), []string{"Any"})
	h.cancel("A3", "A4", "A5")
	h.equal("offered", h.offer(), []string{"Four", "Stalls"})
	seats, _ := h.seatsOf(four)
	h.equal("four together", seats, []string{"A1", "A2", "A3", "A4"})
}

// Whoever takes fewer gets what there is, rather than nobody.
func TestOffer_FewerWillDo(t *testing.T) {
	h := newFull(t)
	e := h.join("Four", 4, 2, "")
	h.join("One", 1, 1, "")
	h.cancel("A1")
	h.equal("one is too few", h.offer(), []string{})
	h.cancel("B1")
	h.equal("offered", h.offer(), []string{"Four"})
	seats, _ := h.seatsOf(e)
	h.equal("seats", seats, []string{"A1", "B1"})
}

// Capacity that is raised and holds that lapse are offered, too.
func TestOffer_HoweverItCameFree(t *testing.T) {
	h := newFull(t)
	h.cancel("A1")
	_, err := h.hold("A1")
	h.must(err)
	h.join("Awa", 1, 1, "")
	h.join("Moussa", 1, 1, "")
	h.equal("held by a buyer", h.offer(), []string{})
	h.at(h.begun.Add(10 * time.Minute))
	h.equal("lapsed", h.offer(), []string{"Awa"})
	h.exec(`insert into seat (organisation_id, room_id, number, label, zone, row_label, row_order, position) values (1, 1, 11, 'B6', 'balcony', 'B', 2, 6);
update room set plan_revision = plan_revision + 1; update sitting set places = 11`)
	h.equal("a larger room", h.offer(), []string{"Moussa"})
}

func TestLeave(t *testing.T) {
	h := newFull(t)
	first, second := h.join("Awa", 1, 1, ""), h.join("Moussa", 1, 1, "")
	third := h.join("Fatou", 1, 1, "")
	leave := func(e waiting.Entry) waiting.State {
		t.Helper()
		left, err := waiting.Leave(t.Context(), h.db, reservation.Buyer, e.Reference)
		h.must(err)
		return left.State
	}
	h.equal("left", leave(second), waiting.Left)
	h.equal("left again", leave(second), waiting.Left)
	h.cancel("A1")
	h.offer()
	h.equal("gave back what was offered", leave(first), waiting.Left)
	seats, _ := h.seatsOf(third)
	h.equal("which went to the next at once", seats, []string{"A1"})
	if _, err := waiting.Leave(t.Context(), h.db, timeline.Actor{Name: "a", OrganisationID: 2, Role: account.Manager}, third.Reference); !problem.Has(err, "waiting_unknown") {
		t.Errorf("another organisation's: %v", err)
	}
	if _, err := waiting.Leave(t.Context(), h.db, timeline.Actor{Name: "a", OrganisationID: 1, Role: account.Door}, third.Reference); !problem.Has(err, "role_forbids") {
		t.Errorf("by whom the role forbids: %v", err)
	}
	h.equal("in the timeline", h.count(`select count(*) from timeline where kind in ('waiting_joined', 'waiting_left', 'waiting_offered')`), 3+2+2)
}

// Whoever waits for what is not sold any more is told, and is in nobody's way.
func TestOffer_WithdrawnKind(t *testing.T) {
	h := newFull(t)
	h.exec(`insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 2, 1, 'child', 'Child'); insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 2, 500)`)
	j := joining("Awa", 1, 1, "")
	j.Kind = "child"
	e, err := waiting.Join(t.Context(), h.db, reservation.Buyer, j)
	h.must(err)
	h.join("Moussa", 1, 1, "")
	h.exec(`update ticket_kind set withdrawn_at = clock() where id = 2`)
	h.cancel("A1")
	h.equal("offered", h.offer(), []string{"Moussa"})
	h.equal("over", h.read(e).State, waiting.Over)
}

// Cancellations, sweeps, buyers and joins at the same time: the order of the queue holds, and no place is two people's or lost.
func TestOffer_ConcurrentCancellations(t *testing.T) {
	h := newFullOf(t, 1)
	if faults := h.crowd(); faults != "" {
		t.Error(faults)
	}
}

// The negative control: without what keeps an offer one person's, the same crowd finds it.
func TestOffer_ConcurrentCancellationsWithoutTheKeys(t *testing.T) {
	h := newFullOf(t, 1)
	h.exec(`drop index claim_seat_key; create index claim_seat_key on claim (organisation_id, sitting_id, seat_number) where released_at is null`)
	h.exec(`create or replace function offers_twice() returns trigger language plpgsql as $$ begin
  insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
  select c.organisation_id, c.sitting_id, c.places, new.seat_number, new.seat_label, c.event_id, c.reservation_id, c.line_number, new.expires_at
    from claim c where c.released_at is not null and c.expires_at is null and not exists (
      select from claim l where (l.reservation_id, l.line_number) = (c.reservation_id, c.line_number) and l.released_at is null) limit 1;
  return null; end $$`)
	h.exec(`create trigger offers_twice after insert on claim for each row when (new.expires_at is not null and pg_trigger_depth() = 0) execute function offers_twice()`)
	if faults := h.crowd(); !strings.Contains(faults, "twice") {
		t.Errorf("nobody noticed a place that was offered to two: %q", faults)
	}
}

// crowd lets ten people wait, frees all ten seats at once with sweeps and buyers in between, and says what went wrong.
func (h *full) crowd() (faults string) {
	h.Helper()
	var queue []waiting.Entry
	for i := range 8 {
		queue = append(queue, h.join(fmt.Sprint("Waits", i), 1, 1, ""))
	}
	var seats []string
	for seat := range h.sold {
		seats = append(seats, seat)
	}
	// Only as many as wait are freed in the first wave.
	errs := together(30, func(i int) error {
		switch i % 3 {
		case 0:
			if n := i / 3; n < 5 {
				return h.cancelOne(seats[n])
			}
		case 1:
			_, err := waiting.Offer(h.Context(), h.db, waiting.System)
			return err
		}
		_, err := h.hold(seats[i%5])
		if problem.Has(err, "places_awaited") || problem.Has(err, "seats_taken") {
			return nil
		}
		if err == nil {
			return fmt.Errorf("somebody overtook those who wait")
		}
		return err
	})
	for _, err := range errs {
		if err != nil {
			faults += err.Error() + "; "
		}
	}
	if _, err := waiting.Offer(h.Context(), h.db, waiting.System); err != nil {
		faults += err.Error() + "; "
	}
	for i, e := range queue {
		want := waiting.Waiting
		if i < 5 {
			want = waiting.Offered
		}
		if got := h.read(e); got.State != want {
			faults += fmt.Sprintf("%s is %s, not %s; ", got.Name, got.State, want)
		}
	}
	if n := h.count(`select count(*) from (select 1 from claim where released_at is null group by sitting_id, seat_number having count(*) > 1) d`); n > 0 {
		faults += fmt.Sprintf("%d places twice somebody's; ", n)
	}
	if n := h.count(`select count(*) from claim where released_at is null`); n != 10 {
		faults += fmt.Sprintf("%d of 10 places are somebody's; ", n)
	}
	return faults
}
