package convocation

import (
	"strings"
	"testing"
	"time"

	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

// written are the rows that a run may add, with the transactions that wrote them.
func (s *school) written() []string {
	s.t.Helper()
	return s.texts(`
select line from (
  select 'claim ' || id || ' ' || xmin from claim where organisation_id = $1 union all
  select 'notice ' || id || ' ' || xmin from notice where organisation_id = $1 union all
  select 'timeline ' || id || ' ' || xmin from timeline where organisation_id = $1 union all
  select 'campaign ' || id || ' ' || xmin from campaign where organisation_id = $1) lines(line) order by line`, s.org.ID)
}

func TestConvoke_AgainChangesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", capacity: places(4)})
	s.sit(hall{exam: "MATH", day: 1, capacity: places(9)})
	both := []string{"BIO", "MATH"}
	s.file(person{exams: both}, person{exams: both, silent: true}, person{exams: both}, person{exams: both}, person{exams: both})
	first := s.convoke()
	before := s.written()
	for range 3 {
		again := s.convoke()
		if again.Seated != 0 || again.AlreadySeated != first.Seated || again.ToldNow != 0 {
			t.Errorf("the repeat says seated %d, already %d, told %d", again.Seated, again.AlreadySeated, again.ToldNow)
		}
		s.equal("refused as before", s.list(again, run.ListRefused), s.list(first, run.ListRefused))
		s.equal("not reachable as before", s.list(again, run.ListNotReachable), s.list(first, run.ListNotReachable))
	}
	s.equal("the rows and who wrote them", s.written(), before)
}

func TestConvoke_AgainPicksUpWhoPaidSinceAndTellsWhoHasAnAddressSince(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.file(person{silent: true}, person{pays: -1}, person{}, person{silent: true})
	s.convoke()
	s.must(s.record("C0002", fee))
	s.owner(`update candidate set phone = '+22376000001' where reference = 'C0001'`)
	report := s.convoke()
	if report.Seated != 1 || report.AlreadySeated != 3 || report.ToldNow != 1 {
		t.Errorf("seated %d, already %d, told %d; want 1, 3, 1", report.Seated, report.AlreadySeated, report.ToldNow)
	}
	want := []string{
		"C0001 convocation 1 unreachable pending", "C0002 convocation 1 pending unreachable",
		"C0003 convocation 1 pending unreachable", "C0004 convocation 1 unreachable unreachable",
	}
	s.equal("notices", s.notices(), want)
	before := s.written()
	if again := s.convoke(); again.ToldNow != 0 {
		t.Errorf("told %d twice", again.ToldNow)
	}
	s.equal("the rows and who wrote them", s.written(), before)
}

// A place that comes while a run is under way goes to the first who was left without one, whatever
// the run has passed by then.
func TestConvoke_APlaceThatComesMidRunGoesToTheFirstWithoutOne(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(*school) error{
		"capacity raised": func(s *school) error {
			_, err := seating.SetCapacity(s.t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(3))
			return err
		},
		"seat released": func(s *school) error { return s.withdraw("C0001") },
		"centre enlarged": func(s *school) error {
			_, err := seating.SetVenueCapacities(s.t.Context(), s.db, s.actor, s.org,
				seating.VenueCapacity{Centre: "Kayes", Capacity: places(1)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(2)})
			s.sit(hall{centre: "Kayes", day: 2})
			_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org, seating.VenueCapacity{Centre: "Kayes", Capacity: places(0)})
			s.must(err)
			s.fileMany(9, person{})
			commits := 0
			report := s.convokeWith(s.target(), Options{chunk: 2, step: func(step string) {
				if step != "committed" {
					return
				}
				if commits++; commits == 4 { // C0007 and C0008 were just refused
					s.must(more(s))
				}
			}})
			if last := s.seats()[len(s.seats())-1]; !strings.HasPrefix(last, "C0003 ") {
				t.Errorf("the place went to %s", last)
			}
			if got := s.list(report, run.ListRefused); len(got) != 6 || !strings.HasPrefix(got[0], "C0004 ") {
				t.Errorf("refused: %v", got)
			}
			if named := s.unfair(nil, time.Time{}); len(named) > 0 {
				t.Errorf("unfair: %v", named)
			}
		})
	}
}

// Who is refused because of another sitting is told so again, also once a later filer fills the
// seat that they could not take.
func TestConvoke_AClashStaysAClash(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ART", "MATH")
	s.sit(hall{exam: "ART", room: "A", capacity: places(5)})
	s.sit(hall{exam: "MATH", room: "B", capacity: places(1)})
	s.file(person{exams: []string{"ART", "MATH"}}, person{exams: []string{"MATH"}})
	for range 2 {
		report := s.convoke()
		s.equal("refused", s.list(report, run.ListRefused), []string{"C0001 clash"})
	}
}
