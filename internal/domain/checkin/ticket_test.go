package checkin_test

import (
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/letter"
)

// What a door is told of a ticket without marking it is what it is told when it marks it.
func TestCheckAtDoor_OfATicket(t *testing.T) {
	h := newHouse(t)
	r := h.buy("A1")
	code := h.ticket(r, 1)
	short := letter.Letter{ClaimID: int64(h.count(`select id from claim where reservation_id = $1`, r.ID))}.Short()
	check := func(what, code, refusal string) letter.Found {
		t.Helper()
		found, err := letter.CheckAtDoor(t.Context(), h.db, keeper, letter.Asked{Code: code, Event: "play", Sitting: "S1"})
		h.must(err)
		if refused, ok := problem.Of(found.Refusal()); (refusal != "") != ok || ok && refused.Code != refusal {
			t.Errorf("%s: %v, want %s", what, found.Refusal(), refusal)
		}
		return found
	}
	if found := check("paid", code, ""); !found.Signed || found.Older || found.Seat.Kind != "Full price" || found.Seat.Label != "A1" {
		t.Errorf("%+v", found)
	}
	if found := check("typed", short, ""); found.Signed || found.Older {
		t.Errorf("%+v", found)
	}
	h.exec(`update line set transfers = 1, attendee = 'Modibo'`)
	check("passed on", code, "door_ticket_transferred")
	if found := check("typed, after it was passed on", short, ""); !found.Older || found.Seat.Name != "Modibo" {
		t.Errorf("%+v", found)
	}
	h.exec(`update reservation set state = 'disputed'`)
	check("disputed", h.ticket(r, 1), "door_ticket_disputed")
	h.equal("nothing is marked", h.count(`select count(*) from scan`), 0)
}

// A device without a network knows the sittings of events too.
func TestDoorKey_OfATicket(t *testing.T) {
	h := newHouse(t)
	code := h.ticket(h.buy("A1"), 1)
	key, err := letter.ExportDoorKey(t.Context(), h.db, h.admin, "house")
	h.must(err)
	found, err := key.Check(letter.Asked{Code: code, Event: "play", Sitting: "s1"}, key.MadeAt)
	h.must(err)
	if !found.Ticket.Bought || found.Sitting.Event != "play" || found.Sitting.Campaign != "" || found.Facts()["event"] != "The play" {
		t.Errorf("%+v", found)
	}
	for what, asked := range map[string]letter.Asked{
		"another sitting": {Code: code, Event: "play", Sitting: "S2"}, "another event": {Code: code, Event: "concert", Sitting: "S1"},
		"an exam": {Code: code, Campaign: "c", Sitting: "S001"},
	} {
		if _, err := key.Check(asked, key.MadeAt); !problem.Has(err, "door_genuine_elsewhere") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
