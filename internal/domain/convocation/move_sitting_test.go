package convocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

func (s *school) moveSitting(reference string, to SittingMove) (seating.Sitting, int) {
	s.t.Helper()
	moved, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, to)
	s.must(err)
	return moved.Sitting, moved.People
}

func (s *school) moveRefused(reference string, to SittingMove, code string) {
	s.t.Helper()
	_, err := MoveSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, to)
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
		`update notice set email_state = 'sent', told_at = clock() where candidate_id = (select id from candidate where reference = 'C0001')`)
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
	s.moveRefused("S001", SittingMove{EndsAt: begin(24).Add(time.Minute)}, "sitting_too_long")
	s.moveRefused("S001", SittingMove{EndsAt: s.opening.AddDate(2, 0, 0)}, "sitting_too_long")
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

// A sitting's own places were given for the room where it was: they make another room no larger than it is said to be.
func TestMoveSitting_IntoASmallerRoom(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(6)})
	for day, room := range []string{"Petite", "Moyenne", "Plan", "Libre"} {
		s.sit(hall{room: room, day: 20 + day, capacity: places(6)})
	}
	_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org,
		seating.VenueCapacity{Centre: "Badalabougou", Room: "Petite", Capacity: places(2)},
		seating.VenueCapacity{Centre: "Badalabougou", Room: "Moyenne", Capacity: places(5)})
	s.must(err)
	s.layPlan("Plan", 4, []int{4}, nil)
	s.fileMany(4, person{})
	s.convoke()
	s.must(s.release("C0001")) // three people on the seats 2 to 4
	before := s.written()
	_, err = MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", SittingMove{Room: "Petite"})
	refused(t, err, "room_too_small")
	p, _ := problem.Of(err)
	names := s.texts(`select concat_ws(' ', family_name, given_name, '(' || reference || ', 00' || right(reference, 1) || ')') from candidate
 where organisation_id = $1 and reference in ('C0003', 'C0004') order by reference`, s.org.ID)
	if got := fmt.Sprint(p.Facts["places"], p.Facts["count"], p.Facts["named"]); got != fmt.Sprint(2, 2, names) {
		t.Errorf("it names %s, want %v", got, names)
	}
	s.moveRefused("S001", SittingMove{Room: "Plan"}, "seats_missing")
	s.equal("refused moves wrote nothing", s.written(), before)

	// Everybody fits, and its own places are more than the room holds: that is said, where the room is another.
	for _, c := range []struct {
		to   SittingMove
		want string
	}{
		{SittingMove{Room: "Moyenne"}, "5"},
		{SittingMove{Room: "Moyenne", StartsAt: s.opening.Add(time.Hour)}, "nothing"},
		{SittingMove{Room: "Libre"}, "nothing"},
	} {
		moved, err := MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", c.to)
		s.must(err)
		got := "nothing"
		if moved.RoomHolds != nil {
			got = fmt.Sprint(*moved.RoomHolds)
		}
		if got != c.want || moved.People != 3 || !moved.Changed {
			t.Errorf("to %+v: the room holds %s, want %s; moved %d", c.to, got, c.want, moved.People)
		}
	}
}

// People to whom places are promised are counted, also in a room whose plan has fewer seats.
func TestMoveSitting_PlacesAtTheDoorIntoASmallerRoom(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(6)})
	s.sit(hall{room: "Plan", day: 20, capacity: places(6)})
	s.layPlan("Plan", 4, []int{1, 2}, nil)
	s.must(s.atDoor("S001", true))
	s.fileMany(3, person{})
	s.convoke()
	s.moveRefused("S001", SittingMove{Room: "Plan"}, "room_too_small")
	s.must(s.release("C0002"))
	if _, people := s.moveSitting("S001", SittingMove{Room: "Plan"}); people != 2 {
		t.Errorf("moved %d people", people)
	}
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
			_, err := MoveSitting(t.Context(), s.db, s.actor, both[i].campaign.Slug, "S001", to)
			return err
		}))
		if said[""] != 1 || said["room_busy"] != 1 {
			t.Fatalf("round %d: %v, want one success and one room_busy", round, said)
		}
	}
}

// What is there already is not moved: nobody is told, and whoever asked learns so.
func TestMoveSitting_ThatIsThereAlreadySaysSo(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(2, person{})
	s.convoke()
	before := s.written()
	moved, err := MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", SittingMove{Room: "Salle 1", StartsAt: s.opening})
	s.must(err)
	if moved.Changed || moved.People != 0 || moved.Reference != "S001" {
		t.Errorf("it answers %+v", moved)
	}
	s.equal("the rows and who wrote them", s.written(), before)
}

// Hours are meant where the sitting will be.
func TestClockOfMove_IsThatOfTheDestination(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.tx(func(tx pgx.Tx) error {
		_, err := venue.EnsureCentre(t.Context(), tx, s.org.ID, "Libreville", "Africa/Libreville")
		return err
	})
	for centre, want := range map[string]string{"": "Africa/Bamako", "Badalabougou": "Africa/Bamako", "libreville": "Africa/Libreville"} {
		if clock, err := ClockOfMove(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", centre); err != nil || clock.Zone != want {
			t.Errorf("to %q: %s, %v; want %s", centre, clock.Zone, err, want)
		}
	}
	_, err := ClockOfMove(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", "Nowhere")
	refused(t, err, "centre_unknown")
}

func TestMoveSitting_RefusedToWhoMayNotMove(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	for role, may := range map[timeline.Role]bool{account.Manager: true, account.Agent: true, account.Cashier: false, account.Door: false} {
		actor := timeline.Actor{Name: "somebody", OrganisationID: s.org.ID, Role: role}
		_, err := MoveSitting(t.Context(), s.db, actor, s.campaign.Slug, "S001", SittingMove{StartsAt: s.opening.AddDate(0, 0, 3)})
		if may {
			s.must(err)
			continue
		}
		refused(t, err, "role_forbids")
	}
}

// Whatever way a wrong date takes, the database keeps no sitting of more than a day.
func TestSittingHours_TheDatabaseBelievesOneDay(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{})
	for minutes, fits := range map[int]bool{24 * 60: true, 24*60 + 1: false} {
		err := s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "update sitting set ends_at = starts_at + make_interval(mins => $1)", minutes)
			return err
		})
		if fits && err != nil || !fits && !pg.Violates(err, "sitting_hours_believed") {
			t.Errorf("%d minutes: %v", minutes, err)
		}
	}
}

// Whoever sits at another centre than the one that they chose is named, however they came there, until
// they are moved back or their file says that they come here.
func TestMoveSitting_WhoChoseAnotherCentreIsNamedByTheNextRun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{centre: "Kayes", capacity: places(5)})
	s.sit(hall{centre: "Mopti", room: "Amphi", day: 1, capacity: places(5)})
	s.sit(hall{centre: "Mopti", room: "Amphi", day: 2, capacity: places(5)})
	s.file(person{centre: "Kayes"}, person{}, person{centre: "Kayes"}, person{centre: "Mopti"}, person{centre: "Mopti"})
	s.equal("nobody sits afar", s.list(s.convoke(), run.ListAttention), []string{})

	moved, err := MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", SittingMove{Centre: "Mopti", Room: "Amphi"})
	s.must(err)
	if moved.People != 3 || moved.Afar != 2 {
		t.Errorf("moved %d people, of whom %d chose another centre; want 3 and 2", moved.People, moved.Afar)
	}
	report := s.convoke()
	s.equal("who sits afar", s.list(report, run.ListAttention), []string{"C0001 other_centre", "C0003 other_centre"})
	facts := s.texts(`select (facts->>'centre') || ' ' || (facts->>'place') || ' ' || (facts->>'seat') || ' ' || (facts->>'sitting') from refusal
 where organisation_id = $1 and run_id = $2 and reason = 'other_centre' order by id`, s.org.ID, report.Run)
	s.equal("what is said of it", facts, []string{"Kayes Amphi, Mopti 001 S001", "Kayes Amphi, Mopti 003 S001"})

	s.owner(`update candidate set centre_id = (select id from centre where name = 'Mopti') where reference = 'C0001'`)
	s.must(s.release("C0003"))
	s.equal("decided", s.list(s.convoke(), run.ListAttention), []string{})

	// What is over is decided.
	s.owner(`update candidate set centre_id = (select id from centre where name = 'Kayes') where reference = 'C0001'`,
		`update sitting set starts_at = clock() - interval '2 hours', ends_at = clock() - interval '1 hour' where reference = 'S001'`)
	s.equal("over", s.list(s.convoke(), run.ListAttention), []string{})
}
