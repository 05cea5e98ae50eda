package convocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
)

func (s *school) moveSitting(reference string, to SittingMove) (seating.Sitting, int) {
	s.t.Helper()
	moved, people, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, to)
	s.must(err)
	return moved, people
}

func (s *school) moveRefused(reference string, to SittingMove, code string) {
	s.t.Helper()
	_, _, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, to)
	refused(s.t, err, code)
}

func TestMoveSitting_KeepsSeatsTellsEverybodyAndTheTimelineKeepsWhatWasTold(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.sit(hall{room: "Amphi 2", day: 9, capacity: places(5)})
	s.file(person{}, person{phone: true}, person{silent: true})
	s.convoke()
	// The first was told already; nobody could tell so of the others.
	s.owner(`alter table notice drop constraint notice_email_state_known`,
		`update notice set email_state = 'sent' where candidate_id = (select id from candidate where reference = 'C0001')`)
	moved, people := s.moveSitting("S001", SittingMove{Room: "amphi 2", StartsAt: s.opening.AddDate(0, 0, 2)})
	if people != 3 || moved.Revision != 2 || moved.Room != "Amphi 2" || !moved.EndsAt.Equal(moved.StartsAt.Add(time.Hour)) {
		t.Errorf("moved %d people: %+v", people, moved)
	}
	s.equal("seats", s.seats(), seated(1, 3, "S001", 1))
	s.equal("notices", s.notices(), []string{
		"C0001 convocation 1 sent unreachable", "C0001 change 2 pending unreachable",
		"C0002 convocation 1 withdrawn withdrawn", "C0002 convocation 2 pending pending",
		"C0003 convocation 1 withdrawn withdrawn", "C0003 convocation 2 unreachable unreachable",
	})
	s.equal("the timeline", s.texts(`
select kind || ' ' || (facts->>'room') || ' ' || (facts->>'seat') from timeline
 where organisation_id = $1 and candidate_id = (select id from candidate where reference = 'C0001') and claim_id is not null order by id`, s.org.ID),
		[]string{"seated Salle 1 001", "sitting_moved Amphi 2 001"})

	// Back, on the day of before: the revision makes it another notice.
	s.moveSitting("S001", SittingMove{Room: "Salle 1", StartsAt: s.opening})
	s.equal("after the second move", s.notices()[:6], []string{
		"C0001 convocation 1 sent unreachable", "C0001 change 2 withdrawn withdrawn", "C0001 change 3 pending unreachable",
		"C0002 convocation 1 withdrawn withdrawn", "C0002 convocation 2 withdrawn withdrawn", "C0002 convocation 3 pending pending",
	})
	before := s.notices()
	if _, people := s.moveSitting("S001", SittingMove{Room: "Salle 1", StartsAt: s.opening}); people != 0 {
		t.Errorf("a move to where it is told %d people", people)
	}
	s.equal("nobody is told of nothing", s.notices(), before)

	// By hand as well: what follows something that was told is a change, however often it changes.
	s.must(s.move("C0001", "", "4"))
	s.must(s.move("C0001", "", "5"))
	s.must(s.release("C0001"))
	s.equal("told by hand", s.notices()[:6], []string{
		"C0001 convocation 1 sent unreachable", "C0001 change 2 withdrawn withdrawn", "C0001 change 3 withdrawn withdrawn",
		"C0001 change 3 withdrawn withdrawn", "C0001 change 3 withdrawn withdrawn", "C0001 release 3 pending unreachable",
	})
}

func TestMoveSitting_Refusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "MATH", hours: 3})
	s.sit(hall{exam: "BIO", room: "Salle 2", hour: 4, hours: 2, capacity: places(9)})
	s.sit(hall{exam: "MATH", room: "Petite", day: 5})
	s.sit(hall{exam: "MATH", room: "Plan", day: 6})
	s.sit(hall{exam: "MATH", room: "Salle 9", day: -31})
	_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org,
		seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 1", Capacity: places(3)},
		seating.VenueCapacity{Centre: "Badalabougou", Room: "Petite", Capacity: places(2)})
	s.must(err)
	s.layPlan("Plan", 5, []int{3}, nil)
	s.fileMany(3, person{exams: []string{"BIO", "MATH"}})
	s.convoke()
	before := s.seats()
	begin := func(hour int) time.Time { return s.opening.Add(time.Duration(hour) * time.Hour) }
	s.moveRefused("S001", SittingMove{Room: "Salle 2", StartsAt: begin(2)}, "room_busy") // 10–13 over 12–14
	s.moveRefused("S001", SittingMove{StartsAt: begin(5)}, "sitting_clashes")
	s.moveRefused("S001", SittingMove{Room: "Petite"}, "places_in_use")
	s.moveRefused("S001", SittingMove{Room: "Plan"}, "seats_missing")
	s.moveRefused("S001", SittingMove{StartsAt: s.opening.AddDate(0, 0, -60)}, "sitting_into_past")
	s.moveRefused("S001", SittingMove{EndsAt: s.opening}, "sitting_ends_before_start")
	s.moveRefused("S001", SittingMove{Room: "Salle 99"}, "room_unknown")
	s.moveRefused("S001", SittingMove{Centre: "Nulle part", Room: "Salle 1"}, "centre_unknown")
	s.moveRefused("S001", SittingMove{Centre: "Badalabougou"}, "room_missing")
	s.moveRefused("S005", SittingMove{StartsAt: begin(20)}, "sitting_begun")
	s.moveRefused("S099", SittingMove{StartsAt: begin(20)}, "sitting_unknown")
	s.equal("everybody stays", s.seats(), before)
	if n := s.number(`select count(*) from notice where organisation_id = $1`, s.org.ID); n != 6 {
		t.Errorf("%d notices, want the first 6", n)
	}
	if n := s.number(`select max(revision) from sitting where organisation_id = $1`, s.org.ID); n != 1 {
		t.Errorf("a refused move left revision %d", n)
	}
	// Back to back is no overlap, of rooms as of people.
	if _, people := s.moveSitting("S001", SittingMove{Room: "Salle 2", StartsAt: begin(1)}); people != 3 {
		t.Errorf("back to back: moved %d people", people)
	}
	s.toldWhereTheySit()
}

// toldWhereTheySit fails the test unless everybody has a notice of their sitting as it is now.
func (s *school) toldWhereTheySit() {
	s.t.Helper()
	s.noOverlap()
	if n := s.number(`select count(*) from claim k join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where k.organisation_id = $1 and k.released_at is null
   and not exists (select from notice n where n.organisation_id = k.organisation_id and n.subject_id = k.id and n.revision = s.revision)`, s.org.ID); n != 0 {
		s.t.Errorf("%d people were not told where they sit now", n)
	}
}

func TestMoveSitting_BesideARun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(60)})
	s.sit(hall{room: "Salle 2", day: 3, capacity: places(60)})
	s.fileMany(60, person{})
	moves := 0
	s.convokeWith(s.target(), Options{chunk: 7, step: func(step string) {
		if step == "committed" && moves < 4 {
			moves++
			s.moveSitting("S001", SittingMove{StartsAt: s.opening.Add(time.Duration(moves) * time.Hour)})
		}
	}})
	s.equal("seats", s.seats(), seated(1, 60, "S001", 1))
	s.toldWhereTheySit()
	if n := s.number(`select count(*) from notice where organisation_id = $1 and email_state = 'pending'`, s.org.ID); n != 60 {
		t.Errorf("%d notices are to be sent to 60 people", n)
	}
}

// Retrying what could not be told must not tell what is no longer true.
func TestConvoke_TellsWhoHasAnAddressNowOnlyWhatIsTrue(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.file(person{silent: true}, person{silent: true}, person{silent: true})
	s.convoke()
	s.moveSitting("S001", SittingMove{StartsAt: s.opening.Add(2 * time.Hour)})
	s.must(s.release("C0003"))
	_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "rejected")
	s.must(err)
	s.owner(`update candidate set email = lower(reference) || '@example.org'`)
	report := s.convoke()
	if report.ToldNow != 2 {
		t.Errorf("told %d now, want 2", report.ToldNow)
	}
	s.equal("notices", s.notices(), []string{
		"C0001 convocation 1 withdrawn withdrawn", "C0001 convocation 2 pending unreachable",
		"C0002 convocation 1 withdrawn withdrawn", "C0002 convocation 2 pending unreachable",
		"C0003 convocation 1 withdrawn withdrawn", "C0003 convocation 2 withdrawn withdrawn",
	})
	if fmt.Sprint(s.list(report, "not_reachable")) != "[]" {
		t.Errorf("not reachable: %v", s.list(report, "not_reachable"))
	}
}

// Two campaigns want one room at one time: the constraint lets one in, and the other reads a
// sentence, whatever the two transactions wait for.
func TestMoveSitting_OneRoomAtOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	other := *s
	other.exams, other.sittings = map[string]int64{}, 0
	var err error
	other.campaign, err = admission.AddCampaign(t.Context(), s.db, s.actor, s.org, admission.Campaign{Slug: "next", Name: "Next"}, nil)
	s.must(err)
	s.tx(func(tx pgx.Tx) error {
		if err := admission.AddExams(t.Context(), tx, other.campaign, []string{"BIO"}); err != nil {
			return err
		}
		exams, err := seating.Exams(t.Context(), tx, other.campaign, "")
		other.exams["BIO"] = exams[0].ID
		return err
	})
	s.sit(hall{room: "Salle 1"})
	other.sit(hall{room: "Salle 2"})
	s.sit(hall{room: "Salle 3"}) // the room they want, free after the first hour
	both := []*school{s, &other}
	for round := range 60 {
		to := SittingMove{Room: "Salle 3", StartsAt: s.opening.AddDate(0, 0, 1+round)}
		said := tally(together(2, func(i int) error {
			_, _, err := MoveSitting(t.Context(), s.db, s.actor, both[i].campaign.Slug, "S001", to)
			return err
		}))
		if said[""] != 1 || said["room_busy"] != 1 {
			t.Fatalf("round %d: %v, want one success and one room_busy", round, said)
		}
	}
}
