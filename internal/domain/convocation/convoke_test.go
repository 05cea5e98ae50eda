package convocation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

func TestConvoke_OrderIsFilingThenID(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.file(
		person{reference: "Z", filed: s.filed.Add(2 * time.Hour)},
		person{reference: "Y", filed: s.filed.Add(time.Hour)}, // the same instant as X, and a lower id
		person{reference: "X", filed: s.filed.Add(time.Hour)},
		person{reference: "A", filed: s.filed.Add(3 * time.Hour)},
	)
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"X S001/002", "Y S001/001", "Z S001/003"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"A room_full"})
}

func TestConvoke_SittingsByStartThenCentreThenRoomAsPeopleCount(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	one := places(1)
	late := s.sit(hall{room: "Amphi 1", day: 1, capacity: one})
	ten := s.sit(hall{room: "Amphi 10", capacity: one})
	two := s.sit(hall{room: "Amphi 2", capacity: one})
	centre2 := s.sit(hall{centre: "Centre 2", room: "A", capacity: one})
	centre10 := s.sit(hall{centre: "Centre 10", room: "A", capacity: one})
	s.fileMany(5, person{})
	s.convoke()
	s.equal("seats", s.seats(), []string{
		"C0001 " + two + "/001", "C0002 " + ten + "/001", "C0003 " + centre2 + "/001", "C0004 " + centre10 + "/001", "C0005 " + late + "/001",
	})
}

func TestConvoke_ChosenCentreAndItsRefusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH", "BIO")
	s.sit(hall{exam: "MATH", centre: "Ségou", capacity: places(1)})
	s.sit(hall{exam: "MATH", centre: "Kayes", day: 1, room: "A", capacity: places(1)})
	s.sit(hall{exam: "MATH", centre: "Kayes", day: 2, room: "A", capacity: places(0)})
	s.sit(hall{exam: "BIO", centre: "Gao", day: 3, capacity: places(5)})
	math := []string{"MATH"}
	s.file(
		person{exams: math, centre: "Kayes"},
		person{exams: math, centre: "Kayes"}, // both sittings there are full
		person{exams: math, centre: "Ségou"},
		person{exams: math, centre: "Ségou"}, // the only sitting there is full
		person{exams: math, centre: "Gao"},   // MATH is not sat there
		person{exams: math},                  // everything is full
		person{exams: math, centre: "Kayes"},
	)
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S002/001", "C0003 S001/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{
		"C0002 centre_full", "C0004 room_full", "C0005 no_sitting_at_centre", "C0006 exam_full", "C0007 centre_full",
	})
	ranks := map[string]string{}
	for _, r := range s.refusals(report, run.ListRefused) {
		ranks[r.Reference] = fmt.Sprint(r.Facts["rank"], " of ", r.Facts["places"], " ", r.Facts["centre"])
	}
	for reference, want := range map[string]string{
		"C0002": "2 of 1 Kayes", "C0004": "2 of 1 Ségou", "C0006": "3 of 2 ", "C0007": "3 of 1 Kayes", "C0005": "<nil> of <nil> <nil>",
	} {
		if ranks[reference] != want {
			t.Errorf("rank of %s: got %q, want %q", reference, ranks[reference], want)
		}
	}
}

func TestConvoke_ExamWithoutSittingIsRefusedByName(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.fileMany(2, person{})
	report := s.convoke()
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0001 no_sitting", "C0002 no_sitting"})
}

func TestConvoke_PlacesComeFromSittingThenRoomThenCentreThenBound(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	own := s.sit(hall{centre: "Kayes", room: "A", capacity: places(0)}) // 0 is a capacity, not a missing one
	room := s.sit(hall{centre: "Kayes", room: "B"})
	centre := s.sit(hall{centre: "Kayes", room: "C"})
	again := s.sit(hall{centre: "Kayes", room: "D"}) // the centre's number is that of each of its rooms
	bound := s.sit(hall{centre: "Mopti", room: "A"})
	_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org,
		seating.VenueCapacity{Centre: "Kayes", Room: "A", Capacity: places(9)},
		seating.VenueCapacity{Centre: "Kayes", Room: "B", Capacity: places(2)},
		seating.VenueCapacity{Centre: "Kayes", Capacity: places(3)})
	s.must(err)
	s.fileMany(venue.Bound+2+3+3+4, person{})
	report := s.convoke()
	got := map[string]string{}
	for _, fill := range report.Sittings {
		got[fill.Sitting] = fmt.Sprint(fill.Seated, "/", fill.Capacity, " ", fill.PlacesFrom)
	}
	for reference, want := range map[string]string{
		own: "0/0 sitting", room: "2/2 room", centre: "3/3 centre", again: "3/3 centre", bound: "200/200 bound",
	} {
		if got[reference] != want {
			t.Errorf("%s: got %q, want %q", reference, got[reference], want)
		}
	}
	if named := report.OnBound(); len(named) != 1 || named[0].Sitting != bound {
		t.Errorf("on the bound: got %+v, want %s alone", named, bound)
	}
	if report.Seated != 208 || report.Count(run.ListRefused) != 4 {
		t.Errorf("seated %d and refused %d, want 208 and 4", report.Seated, report.Count(run.ListRefused))
	}
}

func TestConvoke_LowestFreeNumberFillsHolesAndKeepsHandGivenSeats(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	sitting := s.sit(hall{capacity: places(6)})
	s.fileMany(6, person{})
	for seat, reference := range map[string]string{"2": "C0006", "4": "C0005"} {
		_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, reference, sitting, seat)
		s.must(err)
	}
	_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0004", sitting, "")
	s.must(err) // the lowest free: 1
	_, err = Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0004", "", "withdrawn")
	s.must(err) // and a hole again
	s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0002 S001/003", "C0003 S001/005", "C0004 S001/006", "C0005 S001/004", "C0006 S001/002"})
}

func TestConvoke_LabelsArePaddedByThePlaces(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{room: "A", capacity: places(7)})
	s.sit(hall{room: "B", capacity: places(1000)})
	s.fileMany(8, person{})
	s.convoke()
	s.equal("labels", s.seats()[6:], []string{"C0007 S001/007", "C0008 S002/0001"})
}

// layPlan gives a room the seats A-1 … A-n; some are blocked, some accessible.
// What a plan limits is said by the plan, and nobody is asked for a number that the seats give.
func TestConvoke_PlacesOfAPlannedRoomAreSaidByItsPlan(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	want := map[string]string{
		s.sit(hall{room: "Planned"}):                            "3/3 plan",
		s.sit(hall{room: "Just the bound"}):                     "200/200 plan",
		s.sit(hall{room: "Beyond the bound"}):                   "199/199 bound",
		s.sit(hall{room: "Said", capacity: places(2)}):          "2/2 sitting",
		s.sit(hall{room: "Said too much", capacity: places(9)}): "4/4 plan",
		s.sit(hall{room: "Said right", capacity: places(4)}):    "4/4 sitting",
		s.sit(hall{room: "Nothing"}):                            "200/200 bound",
	}
	s.layPlan("Planned", 4, []int{2}, nil)
	s.layPlan("Just the bound", venue.Bound, nil, nil)
	s.layPlan("Beyond the bound", venue.Bound+5, []int{1}, nil)
	for _, room := range []string{"Said", "Said too much", "Said right"} {
		s.layPlan(room, 4, nil, nil)
	}
	s.fileMany(3+200+199+2+4+4+200, person{})
	report := s.convoke()
	got := map[string]string{}
	for _, fill := range report.Sittings {
		got[fill.Sitting] = fmt.Sprint(fill.Seated, "/", fill.Capacity, " ", fill.PlacesFrom)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if named := report.OnBound(); len(named) != 2 {
		t.Errorf("on the bound: %+v, want the two that are", named)
	}
	timetable, err := Timetable(t.Context(), s.db, s.actor, s.campaign.Slug)
	s.must(err)
	for _, one := range timetable {
		if said := fmt.Sprint(one.Seated, "/", one.Usable, " ", one.PlacesFrom); said != want[one.Reference] {
			t.Errorf("the timetable says %s of %s, want %s", said, one.Reference, want[one.Reference])
		}
	}
}

func (s *school) layPlan(room string, n int, blocked, accessible []int) {
	s.t.Helper()
	s.layPlanAt("Badalabougou", room, n, blocked, accessible)
}

func (s *school) layPlanAt(centre, room string, n int, blocked, accessible []int) {
	s.t.Helper()
	seats := make([]venue.Seat, n)
	for i := range seats {
		seats[i] = venue.Seat{
			Number: i + 1, Label: fmt.Sprintf("A-%d", i+1),
			Blocked: slices.Contains(blocked, i+1), Accessible: slices.Contains(accessible, i+1),
		}
	}
	s.must(seating.LayPlan(s.t.Context(), s.db, s.actor, s.org, centre, room, seats))
}

func TestConvoke_PlanGivesLabelsAndBlockedSeatsAreNeverGiven(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(4)})
	s.layPlan("Salle 1", 6, []int{1, 3}, nil) // 2 and 4 are left of the four that the capacity allows
	s.fileMany(3, person{})
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S001/A-2", "C0002 S001/A-4"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 room_full"})
	if report.Sittings[0].Capacity != 2 {
		t.Errorf("the report says %d places, want the 2 that can be given", report.Sittings[0].Capacity)
	}
}

func TestConvoke_AccessibleSeatsGoToWhoNeedsThemThenToTheLast(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.sit(hall{room: "Salle 2", day: 1, capacity: places(1)})
	s.layPlan("Salle 1", 5, nil, []int{1, 4})
	s.file(person{}, person{accessible: true}, person{}, person{accessible: true}, person{}, person{accessible: true})
	report := s.convoke()
	// The last who needs one sits where their turn falls; no accessible seat is left there.
	s.equal("seats", s.seats(), []string{
		"C0001 S001/A-2", "C0002 S001/A-1", "C0003 S001/A-3", "C0004 S001/A-4", "C0005 S001/A-5", "C0006 S002/001",
	})
	s.equal("attention", s.list(report, run.ListAttention), []string{"C0006 no_accessible_seat"})

	other := newSchool(t, "MATH")
	other.sit(hall{capacity: places(3)})
	other.layPlan("Salle 1", 3, nil, []int{1})
	other.fileMany(3, person{})
	other.convoke()
	other.equal("accessible last", other.seats(), []string{"C0001 S001/A-2", "C0002 S001/A-3", "C0003 S001/A-1"})
}

func TestConvoke_SeatsGivenAtTheDoorCountAgainstCapacity(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.owner(`update sitting set seats_at_door = true`)
	s.fileMany(3, person{})
	report := s.convoke()
	s.equal("two unattributed at one sitting", s.seats(), []string{"C0001 S001/door", "C0002 S001/door"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 room_full"})
	_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "S001", "")
	refused(t, err, "sitting_full")
	_, err = Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "S001", "1")
	refused(t, err, "seats_at_door")

	// Seats are given again from now on: the two who were promised a place still have theirs.
	s.owner(`update sitting set seats_at_door = false`)
	_, err = seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(3))
	s.must(err)
	s.fileMany(1, person{})
	report = s.convoke()
	s.equal("a seat beside the promises", s.seats(), []string{"C0001 S001/door", "C0002 S001/door", "C0003 S001/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0004 room_full"})
	refused(t, s.seat("C0004", "S001", "2"), "sitting_full") // free, and promised to somebody at the door
	_, err = seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(2))
	refused(t, err, "places_in_use") // no seat number says so: three people hold a place
}

func TestConvoke_SittingsThatHaveBegunAreNotFilled(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{day: -31, capacity: places(5)})
	s.fileMany(1, person{})
	s.equal("refused", s.list(s.convoke(), run.ListRefused), []string{"C0001 no_sitting"})
	coming := s.sit(hall{day: 1, capacity: places(5)})
	s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 " + coming + "/001"})
}

func TestConvoke_StatusesAreTheSchools(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	_, err := admission.AddStatus(t.Context(), s.db, s.actor, s.campaign.Slug, admission.Status{Code: "repeche", Label: "Repêché", OpensPayment: true})
	s.must(err)
	s.readStatuses()
	s.file(person{}, person{status: "repeche"}, person{status: "filed"}, person{status: "rejected"})
	_, err = admission.EditStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "accepted", func(status *admission.Status) {
		status.Code, status.Label = "zugelassen", "Zugelassen"
	})
	s.must(err)
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0002 S001/002"})
	s.equal("not called", s.list(report, run.ListNotCalled), []string{"C0003 status_closed", "C0004 status_closed"})
	_, err = admission.EditStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "filed", func(status *admission.Status) { status.OpensPayment = true })
	s.must(err)
	report = s.convoke()
	s.equal("after a checkbox", s.seats(), []string{"C0001 S001/001", "C0002 S001/002", "C0003 S001/003"})
	if report.AlreadySeated != 2 || report.Seated != 1 {
		t.Errorf("already seated %d, seated %d; want 2 and 1", report.AlreadySeated, report.Seated)
	}
}

func TestConvoke_PaidHasOneMeaning(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.file(
		person{pays: -1},    // C0001 nothing
		person{pays: 6_000}, // C0002 part
		person{pays: 6_000}, // C0003 the rest comes below
		person{},            // C0004 reversed below
		person{pays: -1},    // C0005 waived below
		person{pays: 12_000},
	)
	record := func(reference string, amount int64) {
		_, err := payment.Record(t.Context(), s.db, s.actor, s.campaign.Slug, reference,
			payment.Payment{AmountMinor: amount, Method: "cash", IdempotencyKey: "counter " + reference})
		s.must(err)
	}
	record("C0003", 4_000)
	_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0004", "R-C0004", "bounced")
	s.must(err)
	_, err = admission.WaiveFee(t.Context(), s.db, s.actor, s.campaign.Slug, "C0005", "orphan")
	s.must(err)
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0003 S001/001", "C0005 S001/002", "C0006 S001/003"})
	if got := s.list(report, run.ListRefused); len(got) != 0 {
		t.Errorf("who has not paid is not called and not refused: got %v", got)
	}
	record("C0002", 4_000)
	s.convoke()
	s.equal("after the second part", s.seats(), []string{"C0002 S001/004", "C0003 S001/001", "C0005 S001/002", "C0006 S001/003"})
}

func TestConvoke_NotRegisteredIsNotCalled(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.file(person{exams: []string{""}}, person{exams: []string{""}, pays: -1})
	s.equal("not called", s.list(s.convoke(), run.ListNotCalled), []string{"C0001 not_registered"})
}

func TestConvoke_NotReachableIsNamed(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.file(person{silent: true}, person{silent: true, phone: true}, person{silent: true}) // the last has no seat
	s.equal("not reachable", s.list(s.convoke(), run.ListNotReachable), []string{"C0001 no_address"})
}

func TestConvoke_SeatedInDoubtIsListed(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(3, person{})
	s.convoke()
	_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "R-C0001", "bounced")
	s.must(err)
	_, _, err = admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "rejected")
	s.must(err)
	report := s.convoke()
	s.equal("attention", s.list(report, run.ListAttention), []string{"C0001 seated_unpaid", "C0002 seated_status_closed"})
	s.equal("the seats stay", s.seats(), seated(1, 3, "S001", 1))
	told, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001")
	s.must(err)
	if told.Exams[0].Doubt.Code != "explain_doubt_owes" {
		t.Errorf("explain does not doubt the seat: %+v", told.Exams[0])
	}
}

func TestConvoke_OneSittingOrOneExam(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH", "BIO")
	s.sit(hall{exam: "MATH", capacity: places(1)})
	second := s.sit(hall{exam: "MATH", day: 1, capacity: places(1)})
	s.sit(hall{exam: "BIO", day: 2, capacity: places(9)})
	both := []string{"MATH", "BIO"}
	s.file(person{exams: both}, person{exams: both}, person{exams: both})
	target := s.target()
	target.Sitting = strings.ToLower(second)
	report := s.convokeWith(target, Options{})
	s.equal("one sitting", s.seats(), []string{"C0001 S002/001"})
	s.equal("refused there", s.list(report, run.ListRefused), []string{"C0002 room_full", "C0003 room_full"})
	if len(report.Sittings) != 1 || report.Sittings[0].Sitting != second || report.Sittings[0].Added != 1 {
		t.Errorf("the report lists %+v, want %s with one added", report.Sittings, second)
	}
	target = s.target()
	target.Exam = "bio"
	report = s.convokeWith(target, Options{})
	s.equal("one exam", s.seats(), []string{"C0001 S002/001", "C0001 S003/001", "C0002 S003/002", "C0003 S003/003"})
	if len(report.Sittings) != 1 || report.Seated != 3 {
		t.Errorf("the report of BIO lists %+v", report.Sittings)
	}
	target.Sitting = second
	_, err := Convoke(t.Context(), s.db, s.actor, target, Options{})
	refused(t, err, "sitting_of_other_exam")
}

func TestConvoke_TwoExamsAtTheSameHour(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", room: "A", capacity: places(3)})
	s.sit(hall{exam: "MATH", room: "B", capacity: places(3)})
	later := s.sit(hall{exam: "MATH", room: "B", hour: 1, capacity: places(1)}) // begins as the first ends
	both := []string{"BIO", "MATH"}
	s.file(person{exams: both}, person{exams: both}, person{exams: []string{"MATH"}})
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0001 " + later + "/001", "C0002 S001/002", "C0003 S002/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0002 clash"})
	if with := s.refusals(report, run.ListRefused)[0].Facts["with"]; with != "BIO S001" {
		t.Errorf("it clashes with %v, want BIO S001", with)
	}
	s.noOverlap()
}

// Exams are seated in the order of their first sittings to come, not in that of their codes: who sits at the early exam, which
// is held once, is then given the sitting of the other that does not overlap it.
func TestConvoke_ExamsInTheOrderOfTheirFirstSittings(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ART", "BIO", "MATH", "ZOO")
	s.sit(hall{exam: "ART", room: "A", day: -40, capacity: places(3)}) // over
	cancelled := s.sit(hall{exam: "ART", room: "C", day: -1, capacity: places(3)})
	_, err := CancelSitting(t.Context(), s.db, s.actor, s.campaign.Slug, cancelled, "never announced")
	s.must(err)
	s.sit(hall{exam: "ART", room: "A", hour: 1, hours: 2, capacity: places(3)})
	s.sit(hall{exam: "ART", room: "A", hour: 6, hours: 2, capacity: places(3)})
	s.sit(hall{exam: "MATH", room: "B", hours: 2, capacity: places(2)})
	both := []string{"ART", "MATH"}
	s.file(person{exams: both}, person{exams: both}, person{exams: both}, person{exams: []string{"BIO", "ZOO"}})

	var order []string
	s.tx(func(tx pgx.Tx) error {
		exams, err := seating.ExamsInTurn(t.Context(), tx, s.campaign, "")
		for _, exam := range exams {
			order = append(order, exam.Code)
		}
		return err
	})
	if want := []string{"MATH", "ART", "BIO", "ZOO"}; !slices.Equal(order, want) {
		t.Errorf("the exams come as %v, want %v", order, want)
	}
	x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002")
	s.must(err)
	if exam := x.Exams[0]; exam.Sentence.Code != "explain_next_run" || exam.Sentence.Facts["sitting"] != "S004" {
		t.Errorf("explained as %+v", exam)
	}
	report := s.convoke()
	s.equal("seats", s.seats(), []string{"C0001 S004/001", "C0001 S005/001", "C0002 S004/002", "C0002 S005/002", "C0003 S003/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 clash", "C0004 no_sitting", "C0004 no_sitting"})
}

// A run for one sitting is no concern of those who chose another centre.
func TestConvoke_OneSittingConcernsWhomItCouldTake(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{centre: "Kayes", capacity: places(1)})
	s.sit(hall{centre: "Gao", day: 1, capacity: places(5)})
	s.sit(hall{day: -31, capacity: places(5)})
	s.file(person{centre: "Gao"}, person{centre: "Kayes"}, person{}, person{centre: "Gao"})
	target := s.target()
	target.Sitting = "S001"
	report := s.convokeWith(target, Options{chunk: 1})
	s.equal("seats", s.seats(), []string{"C0002 S001/001"})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 room_full"})
	forecast, err := Foresee(t.Context(), s.db, s.actor, target)
	s.must(err)
	if forecast.Seats != 1 {
		t.Errorf("foreseen for the sitting: %+v, want C0003 alone", forecast)
	}
	target.Sitting = "S003"
	_, err = Convoke(t.Context(), s.db, s.actor, target, Options{})
	refused(t, err, "sitting_begun")
}

// C19: an exam uses fewer places than the room has chairs, and some were seated the day before.
func TestConvoke_FewerPlacesThanChairs(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(37)})
	_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org,
		seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 1", Capacity: places(75)})
	s.must(err)
	s.fileMany(5, person{})
	s.convoke()
	s.fileMany(35, person{})
	trial, err := Try(t.Context(), s.db, s.actor, s.target())
	s.must(err)
	if len(trial.Seated) != 32 || len(trial.Refused) != 3 || len(s.seats()) != 5 {
		t.Fatalf("the trial seats %d, refuses %d and left %d seated", len(trial.Seated), len(trial.Refused), len(s.seats()))
	}
	report := s.convoke()
	s.equal("seats", s.seats(), seated(1, 37, "S001", 1))
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0038 room_full", "C0039 room_full", "C0040 room_full"})
	if report.AlreadySeated != 5 || report.Seated != 32 || report.State != run.StateDone {
		t.Errorf("already %d, seated %d, %s", report.AlreadySeated, report.Seated, report.State)
	}
	for i, r := range s.refusals(report, run.ListRefused) {
		if r.Facts["rank"] != float64(38+i) || r.Facts["places"] != float64(37) {
			t.Errorf("%s: rank %v of %v, want %d of 37", r.Reference, r.Facts["rank"], r.Facts["places"], 38+i)
		}
	}
	if n := s.number(`select count(*) from notice where organisation_id = $1`, s.org.ID); n != 37 {
		t.Errorf("%d notices for 37 seats", n)
	}
}

func TestForesee_CountsAtMostWhatIsSent(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.file(person{}, person{phone: true}, person{silent: true}, person{pays: -1})
	forecast, err := Foresee(t.Context(), s.db, s.actor, s.target())
	s.must(err)
	if forecast != (Forecast{Seats: 3, Emails: 2, SMS: 1}) {
		t.Errorf("got %+v", forecast)
	}

	// Who was seated, could not be told and has an address now will be sent something too.
	other := newSchool(t, "MATH")
	other.sit(hall{capacity: places(2)})
	other.file(person{silent: true}, person{silent: true})
	other.convoke()
	other.owner(`update candidate set phone = '+22376000001' where reference = 'C0001'`)
	forecast, err = Foresee(t.Context(), other.db, other.actor, other.target())
	other.must(err)
	if forecast != (Forecast{SMS: 1}) {
		t.Errorf("got %+v, want one SMS", forecast)
	}
	if report := other.convoke(); report.ToldNow != 1 {
		t.Errorf("told %d", report.ToldNow)
	}
}

func TestConvoke_NoticesWaitWhenTheCampaignSaysSo(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.file(person{phone: true}, person{silent: true})
	s.owner(`update campaign set notices_wait = true`)
	s.convoke()
	s.equal("notices", s.notices(), []string{"C0001 convocation 1 waiting waiting", "C0002 convocation 1 unreachable unreachable"})
}

// notices are those of the organisation as "C0001 kind revision email sms".
func (s *school) notices() []string {
	s.t.Helper()
	return s.texts(`
select c.reference || ' ' || n.kind || ' ' || n.revision || ' ' || n.email_state || ' ' || n.sms_state
  from notice n join candidate c on (c.organisation_id, c.id) = (n.organisation_id, n.candidate_id)
 where n.organisation_id = $1 order by c.reference, n.id`, s.org.ID)
}

// noOverlap fails the test when somebody sits at two sittings that overlap.
func (s *school) noOverlap() {
	s.t.Helper()
	if found := s.overlaps(); len(found) > 0 {
		s.t.Errorf("sit twice at one time: %v", found)
	}
}

func (s *school) overlaps() []string {
	s.t.Helper()
	return s.texts(`
select distinct c.reference from claim k
  join claim o on (o.organisation_id, o.candidate_id) = (k.organisation_id, k.candidate_id) and o.id > k.id and o.released_at is null
  join sitting a on (a.organisation_id, a.id) = (k.organisation_id, k.sitting_id)
  join sitting b on (b.organisation_id, b.id) = (o.organisation_id, o.sitting_id)
  join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
 where k.organisation_id = $1 and k.released_at is null and a.starts_at < b.ends_at and b.starts_at < a.ends_at`, s.org.ID)
}

func TestConvoke_WrongTargets(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	for code, target := range map[string]Target{
		"campaign_unknown": {Campaign: "nothing"},
		"exam_unknown":     {Campaign: s.campaign.Slug, Exam: "CHEMISTRY"},
		"sitting_unknown":  {Campaign: s.campaign.Slug, Sitting: "S999"},
	} {
		_, err := Convoke(t.Context(), s.db, s.actor, target, Options{})
		refused(t, err, code)
		if p, ok := problem.Of(err); !ok || p.Kind != problem.KindNotFound {
			t.Errorf("%s is %v, want not found", code, err)
		}
	}
	if n := s.number(`select count(*) from run where organisation_id = $1`, s.org.ID); n != 0 {
		t.Errorf("%d runs were begun", n)
	}
}
