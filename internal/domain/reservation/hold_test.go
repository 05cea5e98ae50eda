package reservation

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func TestHold_ChosenSeats(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	r := h.hold(chosen("A1", "a2"))
	h.equal("seats", r.seats(), []string{"A1", "A2"})
	h.equal("state", r.State, Held)
	h.equal("ends at", r.EndsAt.Sub(h.begun), 10*time.Minute)
	h.equal("most at", r.MostAt.Sub(h.begun), 30*time.Minute)
	h.equal("total", r.TotalMinor(), 4000)
	read, err := Read(t.Context(), h.db, r.Reference)
	if err != nil {
		t.Fatal(err)
	}
	h.equal("read again", fmt.Sprintf("%+v", plain(read)), fmt.Sprintf("%+v", plain(r)))
	facts := h.refused(chosen("A2", "A3"), "seats_taken")
	h.equal("lost", facts["seats"], []string{"A2"})
	h.equal("others", facts["others"], []string{"A3", "A4"})
}

func TestHold_BestSeats(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	h.equal("two", h.hold(best(2)).seats(), []string{"A1", "A2"})
	h.equal("nine do not fit beside them", h.hold(best(9)).seats(), []string{"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9"})
	h.equal("a room without a plan", h.hold(Request{Key: "k", Locale: "en", Parts: []Part{{
		Event: "play", Sitting: "S2", Best: &Best{Kinds: []string{"full", "reduced"}},
	}}}).seats(), []string{"001", "002"})
	h.refused(best(20), "seats_too_few")
	h.equal("the rest", len(h.hold(best(19)).seats()), 19)
	h.refused(best(1), "seats_too_few")
	h.whole()
}

// plain is a reservation with values in the place of pointers, in UTC.
func plain(r Reservation) string {
	r.HeldAt, r.MostAt, r.ReadAt = r.HeldAt.UTC(), r.MostAt.UTC(), r.ReadAt.UTC()
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}
