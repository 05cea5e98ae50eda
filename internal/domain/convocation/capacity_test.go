package convocation

import (
	"testing"

	"usher/internal/domain/run"
	"usher/internal/domain/seating"
)

func (s *school) addRoom(v seating.VenueCapacity) {
	s.t.Helper()
	_, err := seating.AddRoom(s.t.Context(), s.db, s.actor, s.org, v)
	s.must(err)
}

// kinds are the kinds of what the timeline tells of rooms and their places.
func (s *school) kinds() []string {
	s.t.Helper()
	return s.texts(`select kind from timeline where organisation_id = $1 and (kind like '%capacity%' or kind like 'room%') order by id`, s.org.ID)
}

// However the room of a run under way is made larger, the run seats whom it refused.
func TestConvoke_ARoomMadeLargerMeanwhileSeatsTheRefused(t *testing.T) {
	t.Parallel()
	larger := seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 1", Capacity: places(4)}
	for name, grow := range map[string]func(s *school) error{
		"the capacity is set": func(s *school) error {
			_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org, larger)
			return err
		},
		"the room is added again": func(s *school) error {
			s.addRoom(larger)
			return nil
		},
		"the sitting's own is set": func(s *school) error {
			_, err := seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(4))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{})
			_, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org,
				seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 1", Capacity: places(1)})
			s.must(err)
			s.fileMany(4, person{})
			grown := false
			report := s.convokeWith(s.target(), Options{chunk: 2, step: func(step string) {
				if step == "committed" && !grown {
					grown = true
					s.must(grow(s))
				}
			}})
			if report.Seated != 4 {
				t.Errorf("%d were seated, and refused: %v", report.Seated, s.list(report, run.ListRefused))
			}
		})
	}
}

// What was said of places is told, also where no sitting to come has other places by it; what was so
// already is not told again.
func TestCapacities_ToldWhereTheyChangeAndOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(7)})
	room := seating.VenueCapacity{Centre: "Badalabougou", Room: "Salle 1", Capacity: places(30)}
	for range 2 { // the sitting keeps its own 7
		changed, err := seating.SetVenueCapacities(t.Context(), s.db, s.actor, s.org, room)
		s.must(err)
		if changed != 0 {
			t.Errorf("%d sittings have other places", changed)
		}
	}
	s.equal("after the room's number", s.kinds(), []string{"venue_capacity_changed"})
	for range 2 { // as many as the room has: the same places, from elsewhere
		_, err := seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(30))
		s.must(err)
	}
	s.equal("after the sitting's own", s.kinds(), []string{"venue_capacity_changed", "capacity_changed"})
	for range 2 {
		_, err := seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", nil)
		s.must(err)
	}
	s.equal("after it was taken back", s.kinds(), []string{"venue_capacity_changed", "capacity_changed", "capacity_changed"})
}

// A sitting that is over keeps its places, and what is said of it is told all the same.
func TestSetCapacity_OfASittingThatIsOverIsTold(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{day: -40, capacity: places(7)})
	after, err := seating.SetCapacity(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", places(9))
	s.must(err)
	if after.Places != 7 {
		t.Errorf("a sitting that is over has %d places", after.Places)
	}
	s.equal("told", s.kinds(), []string{"capacity_changed"})
}

func TestAddRoom_TellsWhatItDid(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.addRoom(seating.VenueCapacity{Centre: "Kayes", Room: "Salle A", Capacity: places(30)})
	s.addRoom(seating.VenueCapacity{Centre: "Kayes", Room: "salle a", Capacity: places(30)})
	s.addRoom(seating.VenueCapacity{Centre: "Kayes", Room: "Salle A"})
	s.equal("added once", s.kinds(), []string{"room_added"})
	s.addRoom(seating.VenueCapacity{Centre: "Kayes", Room: "Salle A", Capacity: places(40)})
	s.equal("made larger", s.kinds(), []string{"room_added", "venue_capacity_changed"})
}
