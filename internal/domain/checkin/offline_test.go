package checkin_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/domain/checkin"
	"usher/internal/domain/convocation"
	"usher/internal/domain/reservation"
)

// Two devices without a network, a batch each, sent twice, in any order, the devices mixed: each presence is once, at the earliest time.
func TestReplay_TwiceOutOfOrderFromTwoDevices(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // an order, no secret
	h := newHouse(t)
	var codes []string
	for _, name := range []string{"Traoré", "Eba", "Keïta", "Zongo"} {
		codes = append(codes, h.call(name, "S001"))
	}
	scans := []checkin.Scan{
		h.offline("door 1", codes[0], "S001", 1*time.Minute), h.offline("door 2", codes[0], "S001", 3*time.Minute), // at both
		h.offline("door 1", codes[1], "S001", 5*time.Minute), h.offline("door 2", codes[1], "S001", 4*time.Minute), // at both, the second first
		h.offline("door 2", codes[2], "S001", 2*time.Minute), // at one
	}
	h.at(20 * time.Minute)
	for range 4 {
		random.Shuffle(len(scans), func(i, j int) { scans[i], scans[j] = scans[j], scans[i] })
		h.replay(exam, scans...)
		present, absent := h.present(exam, "S001")
		h.equal("present", present, []string{"001 07:51 door 1", "002 07:54 door 2", "003 07:52 door 2"})
		h.equal("absent", absent, []string{"004"})
		h.equal("doubles", h.count(doubles), 0)
		h.equal("readings", h.count(`select count(*) from scan`), len(scans))
	}
	h.equal("let in at two doors", len(h.conflicts(exam, "S001")), 2)
	h.equal("of what", h.count(`select count(*) from scan where conflict = 'twice'`), 2)
}

// Batches that come in at once, and twice each.
func TestReplay_AtOnce(t *testing.T) {
	h := newHouse(t)
	var batches [4][]checkin.Scan
	for _, name := range []string{"Traoré", "Eba", "Keïta", "Zongo", "Sow"} {
		code := h.call(name, "S001")
		for i := range batches {
			if i < 2 {
				batches[i] = append(batches[i], h.offline(fmt.Sprint("door ", i), code, "S001", time.Minute))
			}
		}
	}
	batches[2], batches[3] = slices.Clone(batches[0]), slices.Clone(batches[1])
	slices.Reverse(batches[1])
	slices.Reverse(batches[2])
	for _, err := range together(len(batches), func(i int) error {
		replayed, err := checkin.Replay(t.Context(), h.db, keeper, exam, batches[i])
		for _, one := range replayed {
			if one.Err != nil {
				return one.Err
			}
		}
		return err
	}) {
		h.must(err)
	}
	h.equal("readings", h.count(`select count(*) from scan`), 10)
	h.equal("in", h.count(`select count(*) from scan where verdict = 'in'`), 5)
	h.equal("twice", h.count(`select count(*) from scan where conflict = 'twice'`), 5)
	h.equal("doubles", h.count(doubles), 0)
}

// What a device did unasked is judged by its own time.
func TestReplay_WhatBecameOfTheSeat(t *testing.T) {
	h := newHouse(t)
	early, late := h.call("Traoré", "S001"), h.call("Eba", "S001")
	r := h.buy("A1", "A2", "A3", "A4")
	unpaid := h.ticket(h.hold("A6"), 1)
	var tickets []string
	for line := range 4 {
		tickets = append(tickets, h.ticket(r, line+1))
	}
	h.at(10 * time.Minute)
	for _, reference := range []string{"C001", "C002"} {
		_, err := convocation.Release(t.Context(), h.db, h.admin, "c", reference, "", "withdrew")
		h.must(err)
	}
	_, err := reservation.CancelTickets(t.Context(), h.db, h.admin, r.Reference, reservation.Cancelling{Tickets: []int{1, 2}, Reason: "ill"})
	h.must(err)
	h.exec(`update line set transfers = 1, attendee = 'Modibo' where number = 3 and reservation_id = $1`, r.ID)
	h.at(20 * time.Minute)
	h.equal("candidates", h.replay(exam, h.offline("door", early, "S001", 5*time.Minute), h.offline("door", late, "S001", 15*time.Minute)),
		[]string{"in/released_after", "released/released_before"})
	h.equal("tickets", h.replay(play, h.offline("door", tickets[0], "S1", 5*time.Minute), h.offline("door", tickets[1], "S1", 15*time.Minute),
		h.offline("door", tickets[2], "S1", 5*time.Minute), h.offline("door", unpaid, "S1", 5*time.Minute),
		h.offline("door", "USHER1:AAAA", "S1", 6*time.Minute), h.offline("door", "scribble", "S1", 7*time.Minute)),
		[]string{"in/released_after", "released/released_before", "replaced/replaced", "unpaid/unpaid", "unknown/unknown", "unknown/unknown"})
}

// An old letter of somebody whose seat it was then is theirs: only the paper is out of date.
func TestReplay_AnOldPaper(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.at(5 * time.Minute)
	_, err := convocation.Move(t.Context(), h.db, h.admin, "c", "C001", "", "", "7")
	h.must(err)
	h.at(20 * time.Minute)
	h.equal("moved after it was read", h.replay(exam, h.offline("door", code, "S001", 2*time.Minute)), []string{"in/replaced"})
	present, absent := h.present(exam, "S001")
	h.equal("present", fmt.Sprint(present, absent), "[007 07:52 door] []")
	h.equal("moved before", h.replay(exam, h.offline("door 2", code, "S001", 8*time.Minute)), []string{"replaced/replaced"})
	h.equal("conflicts", h.conflicts(exam, "S001"), []string{"door replaced", "door 2 replaced"})
}

func TestReplay_AtTheWrongSitting(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.at(20 * time.Minute)
	h.equal("let in", h.replay(exam, h.offline("door", code, "S002", 5*time.Minute)), []string{"elsewhere/elsewhere"})
	h.equal("conflicts there", h.conflicts(exam, "S002"), []string{"door elsewhere"})
	h.equal("conflicts here", len(h.conflicts(exam, "S001")), 0)
	_, absent := h.present(exam, "S001")
	h.equal("absent", absent, []string{"001"})
}

// Who was turned away with a good code is named, until they come in after all.
func TestReplay_TurnedAway(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	s := h.offline("door", code, "S001", 5*time.Minute)
	s.LetIn = false
	h.at(20 * time.Minute)
	h.equal("turned away", h.replay(exam, s), []string{"turned_away/turned_away"})
	h.equal("conflicts", h.conflicts(exam, "S001"), []string{"door turned_away"})
	h.in(exam, "door 2", code, "S001")
	h.equal("after all", len(h.conflicts(exam, "S001")), 0)
}

// A clock that cannot be right is kept and marked: the reading counts when it came in.
func TestReplay_AClockThatCannotBeRight(t *testing.T) {
	h := newHouse(t)
	ahead, behind, nearly := h.call("Traoré", "S001"), h.call("Eba", "S001"), h.call("Sow", "S001")
	h.at(20 * time.Minute)
	h.replay(exam, h.offline("fast", ahead, "S001", time.Hour), h.offline("slow", behind, "S001", -20*24*time.Hour), h.offline("good", nearly, "S001", 21*time.Minute))
	present, _ := h.present(exam, "S001")
	h.equal("present", present, []string{"001 08:10 fast", "002 08:10 slow", "003 08:10 good"})
	h.equal("conflicts", h.conflicts(exam, "S001"), []string{"fast +ahead", "slow +early"})
	h.equal("their own times", h.count(`select count(*) from scan where scanned_at = $1 or scanned_at = $2`, h.opens.Add(time.Hour), h.opens.Add(-20*24*time.Hour)), 2)
}

// A presence that was taken back stays so, whether a device says before or after that it let the person in.
func TestReplay_TakenBackByHand(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("said before: ", first), func(t *testing.T) {
			h := newHouse(t)
			code := h.call("Traoré", "S001")
			before, after := h.offline("door 2", code, "S001", 5*time.Minute), h.offline("door 3", code, "S001", 15*time.Minute)
			h.in(exam, "door 1", code, "S001")
			h.at(10 * time.Minute)
			if first {
				h.replay(exam, before)
			}
			_, err := checkin.Out(t.Context(), h.db, keeper, exam, "S001", code)
			h.must(err)
			h.at(20 * time.Minute)
			if !first {
				h.equal("said after", h.replay(exam, before), []string{"in/taken_back"})
				h.equal("conflicts", h.conflicts(exam, "S001"), []string{"door 2 taken_back"})
			}
			present, absent := h.present(exam, "S001")
			h.equal("present and absent", fmt.Sprint(present, absent), "[] [001]")
			h.equal("let in after that", h.replay(exam, after), []string{"in"})
			present, _ = h.present(exam, "S001")
			h.equal("present", present, []string{"001 08:05 door 3"})
		})
	}
}

// Every conflict can be said, whatever is known of it.
func TestConflicts_CanBeSaid(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.at(20 * time.Minute)
	h.replay(exam, h.offline("door 1", code, "S001", 5*time.Minute), h.offline("door 2", code, "S001", 6*time.Minute), h.offline("door 1", "USHER1:AAAA", "S001", 7*time.Minute))
	_, err := checkin.EachConflict(t.Context(), h.db, keeper, exam, "S001", func(a checkin.Answer) error {
		for _, language := range i18n.Languages {
			said := a.Looked(i18n.Speak(language))
			if said == "" || strings.Contains(said, "<no value>") || strings.Contains(said, "conflict_") {
				t.Errorf("%s of %s says %q", language, a.Conflict, said)
			}
		}
		return nil
	})
	h.must(err)
	h.equal("conflicts", h.conflicts(exam, "S001"), []string{"door 2 twice", "door 1 unknown"})
}
