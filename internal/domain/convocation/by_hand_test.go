package convocation

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

func (s *school) seat(reference, sitting, seat string) error {
	_, err := Seat(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, sitting, seat)
	return err
}

func (s *school) move(reference, sitting, seat string) error {
	_, err := Move(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, "", sitting, seat)
	return err
}

func (s *school) swap(references ...string) error {
	_, err := Swap(s.t.Context(), s.db, s.actor, s.campaign.Slug, "", references...)
	return err
}

func (s *school) release(reference string) error {
	_, err := Release(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, "", "withdrawn")
	return err
}

// together calls act n times at once and returns what each said.
func together(n int, act func(i int) error) []error {
	errs := make([]error, n)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			errs[i] = act(i)
		})
	}
	close(begin)
	wg.Wait()
	return errs
}

// tally counts what was said: "" is success, a problem its code, anything else its text.
func tally(errs []error) map[string]int {
	said := map[string]int{}
	for _, err := range errs {
		p, ok := problem.Of(err)
		switch {
		case err == nil:
			said[""]++
		case ok:
			said[p.Code]++
		default:
			said[err.Error()]++
		}
	}
	return said
}

// C01: fifty people ask for the one free seat at once.
func TestSeat_FiftyAtOnceForOneSeat(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(7)})
	s.fileMany(50, person{})
	for round := range 20 {
		said := tally(together(50, func(i int) error { return s.seat(fmt.Sprintf("C%04d", i+1), "S001", "7") }))
		if said[""] != 1 || said["seat_taken"] != 49 {
			t.Fatalf("round %d: %v, want one success and 49 seat_taken", round, said)
		}
		holders := s.texts(`select c.reference from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.released_at is null`, s.org.ID)
		if len(holders) != 1 {
			t.Fatalf("round %d: held by %v", round, holders)
		}
		s.must(s.release(holders[0]))
	}
	s.whole()
}

func TestSeat_TwoClicksAtOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(7)})
	s.fileMany(1, person{})
	said := tally(together(2, func(int) error { return s.seat("C0001", "S001", "3") }))
	if said[""] != 1 || said["already_seated"] != 1 {
		t.Errorf("%v, want one success and one already_seated", said)
	}
	s.whole()
}

func TestSeat_Refusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "MATH", capacity: places(4)})
	s.sit(hall{exam: "BIO", room: "B", capacity: places(1)})
	s.sit(hall{exam: "MATH", room: "B", day: -31, capacity: places(4)})
	s.layPlan("Salle 1", 6, []int{2}, nil)
	both := []string{"BIO", "MATH"}
	s.file(person{exams: both}, person{exams: both, pays: -1}, person{exams: both, status: "filed"}, person{exams: []string{"BIO"}}, person{exams: both})
	s.must(s.seat("C0001", "s001", "a-1"))
	_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0005", "S001", "A-9")
	if p, _ := problem.Of(err); p == nil || p.Facts["places"] != 3 || p.Facts["most"] != 4 || p.Facts["label"] != "A-4" {
		t.Errorf("of a plan with a blocked seat among the four: %v, want 3 places up to 4, which is A-4", err)
	}
	for _, try := range []struct{ reference, sitting, seat, code string }{
		{"C0005", "S001", "1", "seat_taken"},
		{"C0005", "S001", "A-1", "seat_taken"},
		{"C0005", "S001", "2", "seat_blocked"},
		{"C0005", "S001", "A-5", "seat_unknown"}, // the plan has it, the capacity does not
		{"C0005", "S001", "A-9", "seat_unknown"},
		{"C0005", "S002", "0", "seat_unknown"},
		{"C0005", "S002", "-1", "seat_unknown"},
		{"C0005", "S002", "2", "seat_unknown"},
		{"C0005", "S002", "99999999999999999999", "seat_unknown"},
		{"C0005", "S009", "1", "sitting_unknown"},
		{"C9999", "S001", "1", "candidate_unknown"},
		{"C0005", "S003", "1", "sitting_begun"},
		{"C0001", "S001", "3", "already_seated"},
		{"C0001", "S002", "1", "sitting_clash"}, // at the same hour in another room
		{"C0002", "S001", "3", "seat_unpaid"},
		{"C0003", "S001", "3", "seat_status_closed"},
		{"C0004", "S001", "3", "seat_not_registered"},
	} {
		t.Run(try.code+" "+try.seat, func(t *testing.T) {
			refused(t, s.seat(try.reference, try.sitting, try.seat), try.code)
		})
	}
	s.must(s.seat("C0004", "S002", "0001"))
	refused(t, s.seat("C0005", "S002", ""), "sitting_full")
	s.equal("only the good ones", s.seats(), []string{"C0001 S001/A-1", "C0004 S002/001"})
}

// C13: who left may come back, to the same seat; history keeps all of it.
func TestRelease_SeatAndPersonCanBeSeatedAgain(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(7)})
	s.fileMany(2, person{})
	for range 2 {
		s.must(s.seat("C0001", "S001", "7"))
		s.must(s.release("C0001"))
	}
	refused(t, s.release("C0001"), "not_seated")
	s.must(s.seat("C0002", "S001", "7"))
	if n := s.number(`select count(*) from claim where organisation_id = $1 and seat_number = 7`, s.org.ID); n != 3 {
		t.Errorf("history shows %d seatings, want 3", n)
	}
	if n := s.number(`select count(*) from claim where organisation_id = $1 and released_at is not null and release_reason = 'withdrawn'`, s.org.ID); n != 2 {
		t.Errorf("history shows %d releases, want 2", n)
	}
	_, err := Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "", " ")
	refused(t, err, "reason_missing")
	s.whole()
}

func TestRelease_AtOnceFreesOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(1)})
	s.fileMany(1, person{})
	s.must(s.seat("C0001", "S001", "1"))
	said := tally(together(6, func(int) error { return s.release("C0001") }))
	if said[""] != 1 || said["not_seated"] != 5 {
		t.Errorf("%v, want one success and five not_seated", said)
	}
	if n := s.number(`select count(*) from timeline where organisation_id = $1 and kind = 'released'`, s.org.ID); n != 1 {
		t.Errorf("%d releases recorded", n)
	}
	s.whole()
}

func TestRelease_WhoSitsAtTwoExamsMustSayWhich(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "MATH", capacity: places(4)})
	s.sit(hall{exam: "BIO", day: 1, capacity: places(4)})
	s.file(person{exams: []string{"BIO", "MATH"}})
	s.convoke()
	refused(t, s.release("C0001"), "exam_to_choose")
	_, err := Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "bio", "ill")
	s.must(err)
	s.equal("seats", s.seats(), []string{"C0001 S001/001"})
}

func TestMove_ReplacesTheClaim(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.sit(hall{day: 1, capacity: places(3)})
	s.fileMany(2, person{})
	s.convoke()
	s.must(s.move("C0001", "", "3"))
	s.must(s.move("C0001", "S002", ""))
	refused(t, s.move("C0001", "", ""), "move_nowhere")
	refused(t, s.move("C0001", "S001", "2"), "seat_taken")
	s.equal("seats", s.seats(), []string{"C0001 S002/001", "C0002 S001/002"})
	if n := s.number(`select count(*) from claim k where organisation_id = $1 and released_at is null and replaces_id is not null`, s.org.ID); n != 1 {
		t.Errorf("%d live claims replace another, want 1", n)
	}
	// Nobody had been told the old seats: they are convoked, not corrected, and once.
	s.equal("notices", s.notices(), []string{
		"C0001 convocation 1 withdrawn withdrawn", "C0001 convocation 1 withdrawn withdrawn", "C0001 convocation 1 pending unreachable",
		"C0002 convocation 1 pending unreachable",
	})
	s.whole()
}

func TestMove_ToTheSameSeatTellsNobody(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.fileMany(2, person{})
	s.convoke()
	before := s.digest()
	for _, to := range [][2]string{{"", "1"}, {"S001", "001"}, {"s001", ""}} {
		placed, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", to[0], to[1])
		s.must(err)
		if placed.Changed || placed.Seat != "001" {
			t.Errorf("to %q %q: %+v", to[0], to[1], placed)
		}
	}
	if s.digest() != before {
		t.Error("a move to where somebody sits left a trace")
	}
}

// C15: exchanges are whole or nothing.
func TestSwap_TwoThreeAndAcrossRooms(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{room: "B12", capacity: places(9)})
	s.sit(hall{room: "B13", day: 1, capacity: places(9)})
	s.fileMany(4, person{})
	for i, seat := range []string{"7", "8", "9"} {
		s.must(s.seat(fmt.Sprintf("C%04d", i+1), "S001", seat))
	}
	s.must(s.seat("C0004", "S002", "1"))
	s.must(s.swap("C0001", "C0002"))
	s.equal("exchanged", s.seats()[:3], []string{"C0001 S001/008", "C0002 S001/007", "C0003 S001/009"})
	s.must(s.swap("C0001", "C0002", "C0003"))
	s.equal("rotated", s.seats()[:3], []string{"C0001 S001/007", "C0002 S001/009", "C0003 S001/008"})
	s.must(s.swap("C0001", "C0004"))
	s.equal("across rooms", s.seats(), []string{"C0001 S002/001", "C0002 S001/009", "C0003 S001/008", "C0004 S001/007"})
	// Each has one convocation that stands; those of before are withdrawn.
	if n := s.number(`select count(*) from notice where organisation_id = $1 and email_state = 'pending'`, s.org.ID); n != 4 {
		t.Errorf("%d notices stand for four people", n)
	}
	refused(t, s.swap("C0001"), "swap_impossible")
	refused(t, s.swap("C0001", "C0001"), "swap_impossible")
	s.whole()
}

// The same exchange pressed three times, at once or one after the other, is one exchange; a minute later it is another one. An exchange
// of others in between, or one that turns the other way, is no repeat.
func TestSwap_SaidAgainIsOne(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.fileMany(3, person{})
	for n := 1; n <= 3; n++ {
		s.must(s.seat(fmt.Sprintf("C%04d", n), "S001", fmt.Sprint(n)))
	}
	s.must(errors.Join(together(3, func(int) error { return s.swap("C0001", "C0002") })...))
	s.equal("exchanged once", s.seats(), []string{"C0001 S001/002", "C0002 S001/001", "C0003 S001/003"})
	again, err := Swap(t.Context(), s.db, s.actor, s.campaign.Slug, "", "C0002", "C0001")
	s.must(err)
	if again[0].Changed || again[1].Changed || again[0].Seat != "001" {
		t.Errorf("said again: %+v", again)
	}
	s.must(s.swap("C0001", "C0002", "C0003"))
	s.must(s.swap("C0001", "C0002", "C0003"))
	s.equal("turned once", s.seats(), []string{"C0001 S001/001", "C0002 S001/003", "C0003 S001/002"})
	s.must(s.swap("C0003", "C0002", "C0001"))
	s.equal("turned back", s.seats(), []string{"C0001 S001/002", "C0002 S001/001", "C0003 S001/003"})
	s.owner(`update claim set claimed_at = claimed_at - interval '61 seconds'`)
	s.must(s.swap("C0001", "C0002"))
	s.equal("a minute later", s.seats(), []string{"C0001 S001/001", "C0002 S001/002", "C0003 S001/003"})
	s.whole()
}

// Whoever is put at another centre than they chose is named with it at once.
func TestByHand_NamesWhoSitsAtAnotherCentre(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{centre: "Bamako", capacity: places(4)})
	s.sit(hall{centre: "Sikasso", capacity: places(4)})
	s.file(person{centre: "Bamako"}, person{centre: "Sikasso"}, person{})
	s.convoke()
	chosen := func(placed []Placed, err error) (said []string) {
		t.Helper()
		s.must(err)
		for _, p := range placed {
			said = append(said, p.Candidate.Reference+" "+p.Chosen)
		}
		return said
	}
	one := func(placed Placed, err error) ([]Placed, error) { return []Placed{placed}, err }
	c := s.campaign.Slug
	s.equal("exchanged", chosen(Swap(t.Context(), s.db, s.actor, c, "", "C0001", "C0002")), []string{"C0001 Bamako", "C0002 Sikasso"})
	s.equal("moved back", chosen(one(Move(t.Context(), s.db, s.actor, c, "C0001", "", "S001", ""))), []string{"C0001 "})
	s.equal("moved", chosen(one(Move(t.Context(), s.db, s.actor, c, "C0001", "", "S002", ""))), []string{"C0001 Bamako"})
	s.must(s.release("C0003"))
	s.equal("seated where nothing was chosen", chosen(one(Seat(t.Context(), s.db, s.actor, c, "C0003", "S002", ""))), []string{"C0003 "})
}

func TestSwap_SecondHalfBreaksARule(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(4)})
	s.layPlan("Salle 1", 4, nil, []int{4})
	s.file(person{}, person{accessible: true})
	s.convoke()
	before := s.seats()
	refused(t, s.swap("C0001", "C0002"), "swap_needs_accessible")
	refused(t, s.swap("C0002", "C0001"), "swap_needs_accessible")
	s.equal("both stay", s.seats(), before)
	if n := s.number(`select count(*) from claim where organisation_id = $1`, s.org.ID); n != 2 {
		t.Errorf("%d claims, want the first two", n)
	}
	s.equal("notices", s.notices(), []string{"C0001 convocation 1 pending unreachable", "C0002 convocation 1 pending unreachable"})
}

// A label that was told stays as it was when a sitting moves to a room without a plan; the seat is
// its number, and can still be exchanged.
func TestSwap_AfterAMoveToARoomWithoutAPlan(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(4)})
	s.sit(hall{room: "Salle 2", day: 1, capacity: places(4)})
	s.layPlan("Salle 1", 4, nil, nil)
	s.fileMany(2, person{})
	s.convoke()
	_, err := MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", SittingMove{Room: "Salle 2"})
	s.must(err)
	s.must(s.swap("C0001", "C0002"))
	if got := s.texts(`select c.reference || ' ' || k.seat_number from claim k join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.released_at is null order by 1`, s.org.ID); fmt.Sprint(got) != "[C0001 2 C0002 1]" {
		t.Errorf("got %v", got)
	}
}

// C02: exchanges in opposite orders, at once and beside a run.
func TestSwap_OppositeOrdersAtOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(20)})
	s.fileMany(20, person{})
	for n := 1; n <= 4; n++ {
		s.must(s.seat(fmt.Sprintf("C%04d", n), "S001", ""))
	}
	said := tally(together(40, func(i int) error {
		switch i % 5 {
		case 0:
			return s.swap("C0001", "C0002", "C0003", "C0004")
		case 1:
			return s.swap("C0004", "C0003", "C0002", "C0001")
		case 2:
			return s.swap("C0002", "C0001")
		case 3:
			_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0020", []string{"filed", "accepted"}[i%2])
			return err
		}
		_, err := Convoke(t.Context(), s.db, s.actor, s.target(), Options{chunk: 3})
		return err
	}))
	if said[""] != 40 {
		t.Errorf("%v, want forty successes", said)
	}
	s.whole()
}

// C16: fewer places than people.
func TestSetCapacity_BelowWhoIsSeated(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(20)})
	s.fileMany(20, person{})
	for n := 1; n <= 3; n++ {
		s.must(s.seat(fmt.Sprintf("C%04d", n), "S001", fmt.Sprint(n*4)))
	}
	lower := func(n int) error {
		_, err := seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(n))
		return err
	}
	refused(t, lower(11), "places_in_use")
	refused(t, lower(-1), "capacity_impossible")
	if n := s.number(`select places from sitting where organisation_id = $1`, s.org.ID); n != 20 {
		t.Fatalf("the refused number stands: %d places", n)
	}
	s.must(lower(12))

	for round := range 10 {
		s.must(lower(20))
		reference := fmt.Sprintf("C%04d", 4+round)
		said := tally(together(2, func(i int) error {
			if i == 0 {
				return lower(12)
			}
			return s.seat(reference, "S001", "20")
		}))
		if said[""] != 1 || said["places_in_use"]+said["seat_unknown"] != 1 {
			t.Errorf("round %d: %v, want one success and one refusal", round, said)
		}
		s.whole()
		if len(s.seats()) == 4 {
			s.must(s.release(reference))
		}
	}
}

// A reversal keeps the seat and whoever reverses can see that somebody must decide.
func TestReverse_TheCallerCanSeeTheSeatInDoubt(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(1)})
	s.fileMany(1, person{})
	s.convoke()
	standing, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "bounced")
	s.must(err)
	x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001")
	s.must(err)
	if standing.Enough || !x.Exams[0].Seated || x.Exams[0].Doubt.Code != "explain_doubt_owes" {
		t.Errorf("standing %+v, explained %+v", standing, x.Exams)
	}
}

func TestMove_ToOnesOwnSeatChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.file(person{})
	s.convoke()
	before := s.written()
	for _, seat := range []string{"1", "001"} {
		placed, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "", seat)
		s.must(err)
		if placed.Changed || placed.Seat != "001" {
			t.Errorf("moved to seat %s: %+v", seat, placed)
		}
	}
	s.equal("rows", s.written(), before)
}

func TestCancelSitting_OnlyWhenNobodySitsThere(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(1)})
	second := s.sit(hall{day: 1, capacity: places(1)})
	s.file(person{})
	s.convoke()
	_, err := CancelSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", "imported by mistake")
	refused(t, err, "sitting_in_use")
	_, err = CancelSitting(t.Context(), s.db, s.actor, s.campaign.Slug, second, "imported by mistake")
	s.must(err)
	s.file(person{})
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S001/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0002 room_full"})
	_, err = CancelSitting(t.Context(), s.db, s.actor, s.campaign.Slug, second, "again")
	refused(t, err, "sitting_unknown")
}

// A sitting and an exam that contradict each other are refused: which of the two seats is meant?
func TestMove_RefusesASittingOfAnotherExam(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "MATH", capacity: places(9)})
	s.sit(hall{exam: "BIO", room: "Salle 2", hour: 4, capacity: places(9)})
	s.file(person{exams: []string{"BIO", "MATH"}})
	s.convoke()
	before := s.seats()
	move := func(exam string) error {
		_, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", exam, "S001", "5")
		return err
	}
	refused(t, move("BIO"), "sitting_of_other_exam")
	refused(t, move("CHEM"), "exam_unknown")
	s.equal("refused", s.seats(), before)
	s.must(move(" math "))
	s.equal("the same exam, as people type it", s.seats(), []string{"C0001 S001/005", "C0001 S002/001"})
}

// Places at the door of one sitting are all the same: who would exchange them is told so.
func TestSwap_RefusesWhatExchangesNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.sit(hall{room: "Salle 2", day: 1, capacity: places(9)})
	s.owner(`update sitting set seats_at_door = true where reference = 'S001'`)
	s.fileMany(3, person{})
	s.must(s.seat("C0001", "S001", ""))
	s.must(s.seat("C0002", "S001", ""))
	s.must(s.seat("C0003", "S002", ""))
	before, told := s.seats(), s.notices()
	refused(t, s.swap("C0001", "C0002"), "swap_same_place")
	refused(t, s.swap("C0003", "C0001", "C0002"), "swap_same_place")
	s.equal("nobody moves", s.seats(), before)
	s.equal("nobody is told", s.notices(), told)
	s.must(s.swap("C0001", "C0003"))
	s.equal("with another sitting they do", s.seats(), []string{"C0001 S002/001", "C0002 S001/door", "C0003 S001/door"})
}

// At one sitting some have numbered seats and some have none, because how seats are given there was
// changed in between: an exchange could not give each what the other had, and says so.
func TestSwap_RefusesANumberedSeatAgainstOneAtTheDoor(t *testing.T) {
	t.Parallel()
	for name, atDoorNow := range map[string]bool{"seats are numbered now": false, "seats are given at the door now": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(9)})
			s.fileMany(2, person{})
			if atDoorNow {
				s.must(s.seat("C0001", "S001", "1"))
				s.owner(`update sitting set seats_at_door = true`)
				s.must(s.seat("C0002", "S001", ""))
			} else {
				s.owner(`update sitting set seats_at_door = true`)
				s.must(s.seat("C0002", "S001", ""))
				s.owner(`update sitting set seats_at_door = false`)
				s.must(s.seat("C0001", "S001", "1"))
			}
			before := s.seats()
			refused(t, s.swap("C0001", "C0002"), "swap_numbered_and_door")
			refused(t, s.swap("C0002", "C0001"), "swap_numbered_and_door")
			s.equal("both stay", s.seats(), before)
		})
	}
}
