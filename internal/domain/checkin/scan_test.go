package checkin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/checkin"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
	"usher/internal/domain/reservation"
	"usher/internal/domain/timeline"
)

// says looks that an answer has a verdict, and what it says in English.
func (h *house) says(what string, a checkin.Answer, verdict checkin.Verdict, wanted ...string) {
	h.Helper()
	sentence := a.Sentence(i18n.Speak("en"))
	if a.Verdict != verdict || (a.Refusal() == nil) != (verdict == checkin.VerdictIn) || a.LetIn != (verdict == checkin.VerdictIn) {
		h.Errorf("%s: %s (%v), want %s: %s", what, a.Verdict, a.LetIn, verdict, sentence)
	}
	for _, want := range wanted {
		if !strings.Contains(sentence, want) {
			h.Errorf("%s: %q is not in %s", what, want, sentence)
		}
	}
	for _, language := range i18n.Languages {
		if said := a.Sentence(i18n.Speak(language)); strings.Contains(said, "<no value>") || strings.Contains(said, "_") {
			h.Errorf("%s: in %s it says %s", what, language, said)
		}
	}
}

func TestIn_ACandidateComesInOnce(t *testing.T) {
	h := newHouse(t)
	awa := h.call("Traoré", "S001")
	h.call("Eba", "S001")
	h.says("first", h.in(exam, "door 1", awa, "S001"), checkin.VerdictIn, "Traoré Awa (C001)", "seat 001", "S001")
	h.at(10 * time.Minute)
	h.says("again", h.in(exam, "door 2", strings.ToLower(awa), "S001"), checkin.VerdictAlready, "07:50", "door 1", "Traoré Awa")
	h.equal("timeline", h.count(`select count(*) from timeline where kind = 'checked_in' and candidate_id = 1 and sitting_id = 1`), 1)
	present, absent := h.present(exam, "S001")
	h.equal("present", present, []string{"001 07:50 door 1"})
	h.equal("absent", absent, []string{"002"})
	h.says("by the short code", h.in(exam, "door 1", letter.Letter{ClaimID: 2}.Short(), "S001"), checkin.VerdictIn, "Eba Awa")
}

// Case: scanned, cancelled, scanned. What makes the paper worthless is said before that it was scanned.
func TestIn_WhatIsWorthlessIsSaidFirst(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.says("before", h.in(exam, "door 1", code, "S001"), checkin.VerdictIn)
	_, err := convocation.Release(t.Context(), h.db, h.admin, "c", "C001", "", "withdrew")
	h.must(err)
	h.says("taken back", h.in(exam, "door 1", code, "S001"), checkin.VerdictReleased, "RELEASED", "Traoré Awa")

	r := h.buy("A1", "A2")
	one, two := h.ticket(r, 1), h.ticket(r, 2)
	h.says("a ticket", h.in(play, "door 1", one, "S1"), checkin.VerdictIn, "Awa Diarra, Full price, seat A1, S1, Hall, Lycée")
	h.says("again", h.in(play, "door 2", one, "S1"), checkin.VerdictAlready, "door 1")
	_, err = reservation.CancelTickets(t.Context(), h.db, h.admin, r.Reference, reservation.Cancelling{Tickets: []int{1}, Reason: "ill"})
	h.must(err)
	h.says("cancelled", h.in(play, "door 2", one, "S1"), checkin.VerdictReleased, "NOT GOOD", "Awa Diarra", "it was cancelled")
	h.says("the other one stands", h.in(play, "door 2", two, "S1"), checkin.VerdictIn, "seat A2")
	h.exec(`update line set cancelled_at = clock(), cancel_reason = 'charged_back', refund_minor = 0 where number = 2`)
	h.says("charged back", h.in(play, "door 2", two, "S1"), checkin.VerdictReleased, "the bank of whoever paid took the money back")
}

func TestIn_AtTheWrongSitting(t *testing.T) {
	h := newHouse(t)
	code, ticket := h.call("Traoré", "S001"), h.ticket(h.buy("A1"), 1)
	for what, a := range map[string]checkin.Answer{
		"a letter at another sitting": h.in(exam, "door", code, "S002"), "a letter at an event": h.in(play, "door", code, "S1"),
	} {
		h.says(what, a, checkin.VerdictElsewhere, "ANOTHER SITTING", "S001", "B12, Lycée", "08:00")
	}
	for what, a := range map[string]checkin.Answer{
		"a ticket at another sitting": h.in(play, "door", ticket, "S2"), "a ticket at an exam": h.in(exam, "door", ticket, "S001"),
	} {
		h.says(what, a, checkin.VerdictElsewhere, "ANOTHER SITTING", "The play", "S1", "Hall, Lycée", "20:00", "seat A1")
	}
	h.equal("let in", h.count(`select count(*) from scan where let_in`), 0)
}

func TestIn_Unpaid(t *testing.T) {
	h := newHouse(t)
	r := h.hold("A1")
	code := h.ticket(r, 1)
	h.says("held", h.in(play, "door", code, "S1"), checkin.VerdictUnpaid, "NOT PAID", "seat A1", "box office")
	h.pay(r)
	h.says("paid at the box office", h.in(play, "door", code, "S1"), checkin.VerdictIn, "Awa Diarra")
	lapsed := h.hold("A2")
	code = h.ticket(lapsed, 1)
	h.at(time.Hour)
	h.says("lapsed", h.in(play, "door", code, "S1"), checkin.VerdictUnpaid, "NOT PAID")
}

// The dispute is decided at the door by whoever answers for it, and is listed.
func TestIn_Disputed(t *testing.T) {
	h := newHouse(t)
	r := h.buy("A1")
	code := h.ticket(r, 1)
	h.exec(`update reservation set state = 'disputed'`)
	h.says("disputed", h.in(play, "door", code, "S1"), checkin.VerdictDisputed, "DISPUTED", "Ask whoever answers for this door", "--despite-dispute")
	h.equal("nobody is in", h.count(`select count(*) from scan where verdict = 'in'`), 0)
	s := h.reading("door", code, "S1")
	s.Despite = true
	a, err := checkin.In(t.Context(), h.db, keeper, play, s)
	h.must(err)
	h.says("let in all the same", a, checkin.VerdictIn)
	h.equal("conflicts", h.conflicts(play, "S1"), []string{"door disputed"})
	h.exec(`update reservation set state = 'confirmed'`)
	h.says("won", h.in(play, "door 2", code, "S1"), checkin.VerdictAlready)
}

func TestIn_Transferred(t *testing.T) {
	h := newHouse(t)
	r := h.buy("A1")
	old := h.ticket(r, 1)
	h.exec(`update line set attendee = 'Modibo Keïta', transfers = transfers + 1`)
	h.says("the old one", h.in(play, "door", old, "S1"), checkin.VerdictReplaced, "REPLACED", "passed on", "in the name of Modibo Keïta", "seat A1")
	h.says("the new one", h.in(play, "door", h.ticket(r, 1), "S1"), checkin.VerdictIn, "Modibo Keïta")
	h.says("the old one still", h.in(play, "door", old, "S1"), checkin.VerdictReplaced)
}

// A letter that says another room is replaced, and the new one lets in; a ticket whose sitting was moved is for the same seat.
func TestIn_Moved(t *testing.T) {
	h := newHouse(t)
	code, ticket := h.call("Traoré", "S001"), h.ticket(h.buy("A1"), 1)
	h.at(-24 * time.Hour)
	_, err := convocation.Move(t.Context(), h.db, h.admin, "c", "C001", "", "S002", "")
	h.must(err)
	h.at(0)
	h.says("moved", h.in(exam, "door", code, "S001"), checkin.VerdictReplaced, "REPLACED", "S002", "B14, Lycée")
	h.says("the new letter", h.in(exam, "door", h.letter(1), "S002"), checkin.VerdictIn)
	h.exec(`update sitting set revision = revision + 1, starts_at = starts_at + interval '1 hour', ends_at = ends_at + interval '1 hour' where reference = 'S1'`)
	h.says("the sitting moved", h.in(play, "door", ticket, "S1"), checkin.VerdictIn, "21:00")
}

// Who is given another seat of the sitting is inside all the same: once, and not absent.
func TestIn_TheSeatChangesInside(t *testing.T) {
	h := newHouse(t)
	h.says("in", h.in(exam, "door 1", h.call("Traoré", "S001"), "S001"), checkin.VerdictIn)
	_, err := convocation.Move(t.Context(), h.db, h.admin, "c", "C001", "", "", "7")
	h.must(err)
	h.says("with the new letter", h.in(exam, "door 2", h.letter(1), "S001"), checkin.VerdictAlready, "door 1", "seat 007")
	present, absent := h.present(exam, "S001")
	h.equal("present and absent", fmt.Sprint(present, absent), "[007 07:50 door 1] []")
}

func TestIn_WhatIsNoCode(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	damaged := code[:30] + map[bool]string{true: "77", false: "AA"}[code[30:32] != "77"] + code[32:]
	for what, text := range map[string]string{"damaged": damaged, "of a later version": "USHER2:AAAA", "endless": strings.Repeat("USHER1:", 100), "of nobody": letter.Letter{ClaimID: 99}.Short()} {
		h.says(what, h.in(exam, "door", text, "S001"), checkin.VerdictUnknown, "not a code")
	}
	for what, c := range map[string]struct {
		of   checkin.Of
		scan checkin.Scan
		want string
	}{
		"nothing":          {exam, h.reading("door", " ", "S001"), "code_missing"},
		"mistyped":         {exam, h.reading("door", "0014-R61Z", "S001"), "code_mistyped"},
		"no door":          {exam, h.reading("", code, "S001"), "scan_name_unfit"},
		"a long name":      {exam, h.reading(strings.Repeat("é", 65), code, "S001"), "scan_name_unfit"},
		"a name of lines":  {exam, h.reading("a\nb", code, "S001"), "scan_name_unfit"},
		"no sitting":       {exam, h.reading("door", code, "S077"), "sitting_unknown"},
		"no event sitting": {play, h.reading("door", code, "S077"), "event_sitting_unknown"},
		"of neither":       {checkin.Of{}, h.reading("door", code, "S001"), "door_of_neither"},
		"of both":          {checkin.Of{Campaign: "c", Event: "play"}, h.reading("door", code, "S001"), "door_of_both"},
		"of a stranger":    {checkin.Of{Campaign: "d"}, h.reading("door", code, "S001"), "campaign_unknown"},
		"an unknown event": {checkin.Of{Event: "d"}, h.reading("door", code, "S1"), "event_unknown"},
	} {
		if _, err := checkin.In(t.Context(), h.db, keeper, c.of, c.scan); !problem.Has(err, c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	nobody := timeline.Actor{Name: "nobody", OrganisationID: 1}
	if _, err := checkin.In(t.Context(), h.db, nobody, exam, h.reading("door", code, "S001")); !problem.Has(err, "role_forbids") {
		t.Errorf("without a role: %v", err)
	}
}

// A code of another organisation, in its own database, is nobody's here.
func TestIn_AForeignOrganisation(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	stranger := timeline.Actor{Name: "stranger", OrganisationID: 2, Role: account.Manager}
	a, err := checkin.In(t.Context(), h.db, stranger, checkin.Of{Campaign: "d"}, h.reading("door", code, "S001"))
	h.must(err)
	h.says("of another organisation", a, checkin.VerdictUnknown)
	h.equal("its reading is theirs", h.count(`select count(*) from scan where organisation_id = 2 and claim_id is null`), 1)
	if _, err := checkin.Read(t.Context(), h.db, stranger, exam, "S001"); !problem.Has(err, "campaign_unknown") {
		t.Errorf("a stranger reads: %v", err)
	}
}

// A repeat gets the first answer, whatever became of the seat since; another content under the same name is refused.
func TestIn_ARepeatIsTheFirstAnswer(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	s := h.reading("door", code, "S001")
	first, err := checkin.In(t.Context(), h.db, keeper, exam, s)
	h.must(err)
	_, err = convocation.Release(t.Context(), h.db, h.admin, "c", "C001", "", "withdrew")
	h.must(err)
	again, err := checkin.In(t.Context(), h.db, keeper, exam, s)
	h.must(err)
	v := i18n.Speak("en")
	if first.Repeat || !again.Repeat || again.Verdict != checkin.VerdictIn || first.Sentence(v) != again.Sentence(v) || !first.ReceivedAt.Equal(again.ReceivedAt) {
		t.Errorf("first %+v, then %+v", first, again)
	}
	other := s
	other.Sitting = "S002"
	if _, err := checkin.In(t.Context(), h.db, keeper, exam, other); !problem.Has(err, "scan_nonce_reused") {
		t.Errorf("another reading under the same name: %v", err)
	}
	h.equal("readings", h.count(`select count(*) from scan`), 1)
}

func together(n int, act func(i int) error) (errs []error) {
	results := make(chan error, n)
	start := make(chan struct{})
	for i := range n {
		go func() { <-start; results <- act(i) }()
	}
	close(start)
	for range n {
		errs = append(errs, <-results)
	}
	return errs
}

// race has eight doors read one code in the same moment, and tells how many let somebody in.
func (h *house) race(of checkin.Of, code, sitting string) (in int) {
	h.Helper()
	scans := make([]checkin.Scan, 8)
	for i := range scans {
		scans[i] = h.reading(fmt.Sprint("door ", i), code, sitting)
	}
	for _, err := range together(len(scans), func(i int) error {
		_, err := checkin.In(h.Context(), h.db, keeper, of, scans[i])
		return err
	}) {
		h.must(err)
	}
	return h.count(`select count(*) from scan where verdict = 'in'`)
}

// doubles are people who are present twice at one sitting.
const doubles = `select count(*) from (select 1 from scan where verdict = 'in' and undone_at is null
 group by sitting_id, candidate_id, reservation_id, line_number having count(*) > 1) d`

func TestIn_DoorsInTheSameMoment(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.equal("let in", h.race(exam, code, "S001"), 1)
	h.equal("said so to the others", h.count(`select count(*) from scan where verdict = 'already'`), 7)
	h.equal("in the timeline", h.count(`select count(*) from timeline where kind = 'checked_in'`), 1)
	ticket := h.ticket(h.buy("A1"), 1)
	h.equal("with the ticket", h.race(play, ticket, "S1"), 2)
	h.equal("doubles", h.count(doubles), 0)
}

// Without the index the same race lets the same person in at every door, and the test sees it.
func TestIn_DoorsInTheSameMoment_Control(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	h.exec(`drop index scan_in_candidate`)
	h.equal("let in", h.race(exam, code, "S001"), 8)
	h.equal("doubles", h.count(doubles), 1)
}

// One reading that comes in by eight ways at once is one.
func TestIn_OneReadingInTheSameMoment(t *testing.T) {
	h := newHouse(t)
	s := h.reading("door", h.call("Traoré", "S001"), "S001")
	for _, err := range together(8, func(int) error {
		a, err := checkin.In(t.Context(), h.db, keeper, exam, s)
		if err == nil && a.Verdict != checkin.VerdictIn {
			err = fmt.Errorf("it was answered %s", a.Verdict)
		}
		return err
	}) {
		h.must(err)
	}
	h.equal("readings", h.count(`select count(*) from scan`), 1)
}

// A door that reads while the seat is taken back: either it was in first and the seat is taken back after that, or it is refused.
func TestIn_WhileTheSeatIsTakenBack(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	tx, err := h.owner.Begin(t.Context())
	h.must(err)
	_, err = tx.Exec(t.Context(), `update claim set released_at = clock(), release_reason = 'x' where candidate_id = 1`)
	h.must(err)
	answered := make(chan checkin.Answer, 1)
	failed := make(chan error, 1)
	s := h.reading("door", code, "S001")
	go func() {
		a, err := checkin.In(context.WithoutCancel(t.Context()), h.db, keeper, exam, s)
		failed <- err
		answered <- a
	}()
	h.waiting(tx)
	h.must(tx.Commit(t.Context()))
	h.must(<-failed)
	h.says("taken back meanwhile", <-answered, checkin.VerdictReleased)
}

// Out takes a presence back with who did, and the same code lets in again.
func TestOut(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	undo := func(want bool) {
		t.Helper()
		u, err := checkin.Out(t.Context(), h.db, keeper, exam, "S001", code)
		h.must(err)
		if u.Changed != want || u.Seat.Name != "Traoré Awa" {
			t.Errorf("%+v, want %v", u, want)
		}
	}
	undo(false)
	h.in(exam, "door 1", code, "S001")
	h.at(time.Minute)
	undo(true)
	undo(false)
	h.equal("who did", h.count(`select count(*) from scan where undone_by = 'keeper' and undone_at is not null`), 1)
	h.equal("in the timeline", h.count(`select count(*) from timeline where kind = 'check_in_undone' and actor = 'keeper'`), 1)
	present, absent := h.present(exam, "S001")
	h.equal("then", fmt.Sprint(present, absent), "[] [001]")
	h.at(2 * time.Minute)
	h.says("again", h.in(exam, "door 2", code, "S001"), checkin.VerdictIn)
	present, _ = h.present(exam, "S001")
	h.equal("since", present, []string{"001 07:52 door 2"})
	if _, err := checkin.Out(t.Context(), h.db, keeper, exam, "S001", "USHER1:AAAA"); !problem.Has(err, "code_unknown") {
		t.Errorf("an unknown code: %v", err)
	}
}

// Absentees are those with a seat; who was only held, or cancelled, is not expected.
func TestRead_WhoIsExpected(t *testing.T) {
	h := newHouse(t)
	r := h.buy("A10", "A2", "A3")
	h.hold("A5")
	h.in(play, "door", h.ticket(r, 1), "S1")
	_, err := reservation.CancelTickets(t.Context(), h.db, h.admin, r.Reference, reservation.Cancelling{Tickets: []int{3}, Reason: "ill"})
	h.must(err)
	p, err := checkin.Read(t.Context(), h.db, keeper, play, "S1")
	h.must(err)
	if p.Over || !p.Scanned || p.Present != 1 || len(p.People) != 2 || len(p.Absent()) != 1 || p.Absent()[0].Seat != "A2" || p.Absent()[0].Name != "Awa Diarra" || p.Others != 0 {
		t.Errorf("%+v", p)
	}
	_, err = reservation.CancelTickets(t.Context(), h.db, h.admin, r.Reference, reservation.Cancelling{Tickets: []int{1}, Reason: "ill"})
	h.must(err)
	h.at(24 * time.Hour)
	p, err = checkin.Read(t.Context(), h.db, keeper, play, "S1")
	h.must(err)
	if !p.Over || p.Present != 0 || p.Others != 1 || len(p.People) != 1 {
		t.Errorf("after the ticket of who is inside was cancelled: %+v", p)
	}
}

// A batch cannot be longer than a device may send, and one reading that cannot be kept holds up no other.
func TestReplay_Bounds(t *testing.T) {
	h := newHouse(t)
	code := h.call("Traoré", "S001")
	if _, err := checkin.Replay(t.Context(), h.db, keeper, exam, slices.Repeat([]checkin.Scan{{}}, checkin.MostScans+1)); !problem.Has(err, "scans_too_many") {
		t.Errorf("a long batch: %v", err)
	}
	ancient := h.offline("door", code, "S001", 0)
	ancient.ScannedAt = time.Date(9, 1, 1, 0, 0, 0, 0, time.UTC)
	h.equal("the others are kept", h.replay(exam, h.offline("", code, "S001", 0), ancient, h.offline("door", code, "S077", 0), h.offline("door", code, "S001", 0)),
		[]string{"scan_name_unfit", "scan_time_unfit", "sitting_unknown", "in"})
}
