package checkin_test

import (
	"context"
	"fmt"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/checkin"
	"usher/internal/domain/reservation"
)

// A ticket that has another name lets in by its new paper alone; once somebody went in by it, it gets no other name.
func TestTransfer_AtTheDoor(t *testing.T) {
	h := newHouse(t)
	r := h.buy("A1", "A2")
	old, other := h.ticket(r, 1), h.ticket(r, 2)
	n, err := reservation.NameAttendee(t.Context(), h.db, reservation.Buyer, r.Reference, 1, reservation.Attendee{Name: "Modibo Keïta"})
	h.must(err)
	h.equal("changed", n.Changed, true)
	h.equal("the old paper", h.in(play, "north", old, "S1").Verdict, checkin.VerdictReplaced)
	h.equal("the other ticket", h.in(play, "north", other, "S1").Verdict, checkin.VerdictIn)
	h.equal("the new paper", h.in(play, "north", h.ticket(r, 1), "S1").Verdict, checkin.VerdictIn)
	for line := 1; line <= 2; line++ {
		if _, err := reservation.NameAttendee(t.Context(), h.db, reservation.Buyer, r.Reference, line, reservation.Attendee{Name: "Sira"}); !problem.Has(err, "attendee_came") {
			t.Errorf("named once somebody went in by it: %v", err)
		}
	}
	_, err = checkin.Out(t.Context(), h.db, keeper, play, "S1", other)
	h.must(err)
	_, err = reservation.NameAttendee(t.Context(), h.db, reservation.Buyer, r.Reference, 2, reservation.Attendee{Name: "Sira"})
	h.must(err)
	h.equal("after it was taken back", h.in(play, "north", other, "S1").Verdict, checkin.VerdictReplaced)
}

// A name that is changed while the door reads the paper: one of them is first, and the other is told so.
func TestTransfer_AgainstTheDoor(t *testing.T) {
	h := newHouse(t)
	seen := map[string]int{}
	for round := range 12 {
		r := h.buy(fmt.Sprint("A", round+1))
		code := h.ticket(r, 1)
		read := make(chan checkin.Answer)
		go func() {
			a, err := checkin.In(context.WithoutCancel(t.Context()), h.db, keeper, play, checkin.Scan{Device: "north", Nonce: fmt.Sprint("race ", round), Code: code, Sitting: "S1"})
			if err != nil {
				t.Error(err)
			}
			read <- a
		}()
		_, err := reservation.NameAttendee(t.Context(), h.db, reservation.Buyer, r.Reference, 1, reservation.Attendee{Name: "Sira"})
		a := <-read
		switch {
		case err == nil && a.Verdict == checkin.VerdictReplaced, problem.Has(err, "attendee_came") && a.Verdict == checkin.VerdictIn:
			seen[string(a.Verdict)]++
		default:
			t.Errorf("round %d: the door says %s, the change %v", round, a.Verdict, err)
		}
	}
	t.Logf("what was first: %v", seen)
}

// The row of the reservation is what keeps them apart: who forgets it has a paper let in that is out of date.
func TestTransfer_TheReservationsRowKeepsThemApart(t *testing.T) {
	h := newHouse(t)
	for seat, lock := range map[string]bool{"A1": true, "A2": false} {
		r := h.buy(seat)
		code := h.ticket(r, 1)
		changing, err := h.owner.Begin(t.Context())
		h.must(err)
		if lock {
			_, err = changing.Exec(t.Context(), `select from reservation where id = $1 for no key update`, r.ID)
			h.must(err)
		}
		_, err = changing.Exec(t.Context(), `update line set attendee = 'Sira', transfers = transfers + 1 where reservation_id = $1`, r.ID)
		h.must(err)
		read := make(chan checkin.Verdict, 1)
		go func() {
			a, err := checkin.In(context.WithoutCancel(t.Context()), h.db, keeper, play, checkin.Scan{Device: "north", Nonce: seat, Code: code, Sitting: "S1"})
			if err != nil {
				t.Error(err)
			}
			read <- a.Verdict
		}()
		if lock {
			h.waiting(changing)
			h.must(changing.Commit(t.Context()))
			h.equal("with the lock", <-read, checkin.VerdictReplaced)
			continue
		}
		h.equal("without the lock", <-read, checkin.VerdictIn)
		h.must(changing.Commit(t.Context()))
	}
}
