package convocation

import (
	"fmt"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

func (s *school) atDoor(reference string, on bool) error {
	_, _, err := seating.SetSeatsAtDoor(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, on)
	return err
}

func TestSetSeatsAtDoor_OnlyWhileNobodyHoldsTheOtherKind(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(2, person{})
	for range 2 { // the second time it is so already
		s.must(s.atDoor("s001", true))
	}
	s.convoke()
	s.equal("promised", s.seats(), []string{"C0001 S001/door", "C0002 S001/door"})
	refused(t, s.atDoor("S001", false), "places_promised_already")
	s.must(s.release("C0001"))
	s.must(s.release("C0002"))
	s.must(s.atDoor("S001", false))
	s.convoke()
	s.equal("numbered", s.seats(), []string{"C0001 S001/001", "C0002 S001/002"})
	refused(t, s.atDoor("S001", true), "seats_numbered_already")
	s.equal("told", s.texts(`select facts->>'seats_at_door' from timeline where organisation_id = $1 and kind = 'seats_at_door_set' order by id`, s.org.ID),
		[]string{"true", "false"})
}

func TestSetSeatsAtDoor_Refusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{day: -40})
	s.sit(hall{})
	refused(t, s.atDoor("S001", true), "sitting_begun")
	refused(t, s.atDoor("S009", true), "sitting_unknown")
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		other := timeline.Actor{Name: "somebody", OrganisationID: s.org.ID, Role: role}
		_, _, err := seating.SetSeatsAtDoor(t.Context(), s.db, other, s.campaign.Slug, "S002", true)
		refused(t, err, "role_forbids")
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: s.org.ID + 1, Role: account.Manager}
	_, _, err := seating.SetSeatsAtDoor(t.Context(), s.db, stranger, s.campaign.Slug, "S002", true)
	refused(t, err, "campaign_unknown")
}

// A run that goes on gives no numbers at a sitting of which somebody said so in between.
func TestSetSeatsAtDoor_BesideARun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.sit(hall{day: 1, capacity: places(9)})
	s.fileMany(5, person{})
	said := false
	s.convokeWith(s.target(), Options{chunk: 2, step: func(step string) {
		if step == "committed" && !said {
			said = true
			s.must(s.atDoor("S002", true))
		}
	}})
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0002 S001/002", "C0003 S002/door", "C0004 S002/door", "C0005 S002/door"})
}

// However many seat people there at the same moment, a sitting never mixes the two.
func TestSetSeatsAtDoor_BesideHands(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.fileMany(8, person{})
	for round := range 10 {
		said := tally(together(9, func(i int) error {
			if i == 0 {
				return s.atDoor("S001", round%2 == 0)
			}
			return s.seat(fmt.Sprintf("C%04d", i), "S001", "")
		}))
		if said[""]+said["seats_numbered_already"]+said["places_promised_already"] != 9 {
			t.Fatalf("round %d: %v", round, said)
		}
		if kinds := s.number(`select count(distinct seat_number is null) from claim where organisation_id = $1 and released_at is null`, s.org.ID); kinds != 1 {
			t.Fatalf("round %d: %v", round, s.seats())
		}
		for i := 1; i <= 8; i++ {
			s.must(s.release(fmt.Sprintf("C%04d", i)))
		}
	}
}
