package job_test

import (
	"testing"
	"time"

	"usher/internal/domain/outbox"
	"usher/internal/domain/reservation"
	"usher/internal/domain/waiting"
)

// A hold that is over is written down once, its seats are free, and other systems are told once. One that holds, and one that is paid, stay.
func TestExpireHolds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	over, paid := h.hold("S1", "A1", "A2"), h.hold("S1", "A3")
	h.pay(paid, "awa@example.org")
	h.at(h.begun.Add(5 * time.Minute))
	holds := h.hold("S1", "A4")
	h.at(h.begun.Add(10 * time.Minute))
	h.equal("changed", h.twice("expire-holds").Changed, 1)
	h.equal("over", h.read(over).Written, reservation.Lapsed)
	h.equal("holds", h.read(holds).Written, reservation.Held)
	h.equal("paid", h.read(paid).Written, reservation.Confirmed)
	h.equal("published", h.published(outbox.ReservationExpired), []string{"reservation " + over.Reference})
	h.equal("claims that are free", h.texts(`select seat_label from claim where release_reason = 'lapsed' order by 1`), []string{"A1", "A2"})
}

// A hold whose row somebody holds is theirs for the moment; the next minute's run finds it again, and nobody has to repeat a window for that.
func TestExpireHolds_HeldElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	over := h.hold("S1", "A1")
	h.at(h.begun.Add(10 * time.Minute))
	somebody, err := h.owner.Begin(t.Context())
	must(t, err)
	_, err = somebody.Exec(t.Context(), `select from reservation where reference = $1 for no key update`, over.Reference)
	must(t, err)
	if p := h.run("expire-holds"); p.Done != 0 || p.Changed != 0 || p.Refused != 0 {
		t.Errorf("while it is held: %+v", p)
	}
	must(t, somebody.Rollback(t.Context()))
	h.equal("changed after that", h.run("expire-holds").Changed, 1)
}

// A reservation at fault is named, and stops no other.
func TestExpireHolds_ItemAtFault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first, fault, last := h.hold("S1", "A1"), h.hold("S1", "A2"), h.hold("S1", "A3")
	h.failing("reservation", `old.reference = '`+fault.Reference+`'`)
	h.at(h.begun.Add(10 * time.Minute))
	if p := h.run("expire-holds"); p.Changed != 2 || p.Refused != 1 {
		t.Errorf("%+v", p)
	}
	h.equal("named", h.texts(`select reference || ' ' || reason from refusal`), []string{fault.Reference + " item_failed"})
	for _, r := range []reservation.Reservation{first, last} {
		h.equal("the others", h.read(r).Written, reservation.Lapsed)
	}
}

// What came free is offered to whoever waits, an offer that lapsed to the next; and who missed theirs is told once.
func TestOfferPlaces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	all := h.hold("S1", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10")
	h.pay(all, "awa@example.org")
	for _, name := range []string{"Moussa", "Fanta"} {
		_, err := waiting.Join(t.Context(), h.db, reservation.Buyer, waiting.Joining{
			Key: h.key(), Event: "play", Sitting: "S1", Kind: "full", Wanted: 1, Fewest: 1,
			Contact: reservation.Contact{Name: name, Email: name + "@example.org", Locale: "fr"},
		})
		must(t, err)
	}
	h.equal("while all is sold", h.twice("offer-places").Changed, 0)
	_, err := reservation.CancelTickets(t.Context(), h.db, administrator, all.Reference, reservation.Cancelling{Tickets: []int{1}, Reason: "ill"})
	must(t, err)
	h.equal("offered", h.twice("offer-places").Changed, 1)
	h.at(h.begun.Add(24 * time.Hour))
	h.equal("expired", h.twice("expire-holds").Changed, 1)
	h.equal("offered to the next", h.twice("offer-places").Changed, 1)
	h.equal("who waits", h.texts(`select name || ' ' || state from waiting order by id`), []string{"Moussa missed", "Fanta offered"})
	h.equal("told", h.texts(`select kind from notice where kind in ('places_offered', 'offer_missed') order by id`), []string{"places_offered", "offer_missed", "places_offered"})
}
