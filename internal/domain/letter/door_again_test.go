package letter_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
	"usher/internal/domain/letter"
)

func (s *school) moveSeat(reference, seat string) {
	s.t.Helper()
	_, err := convocation.Move(s.t.Context(), s.db, s.actor, "c", reference, "", "", seat)
	s.must(err)
}

// swap exchanges seats long after the last exchange: said again at once, it would be the same one.
func (s *school) swap(references ...string) {
	s.t.Helper()
	s.exec(`update claim set claimed_at = claimed_at - interval '2 minutes'`)
	_, err := convocation.Swap(s.t.Context(), s.db, s.actor, "c", "", references...)
	s.must(err)
}

func (s *school) startAt(at time.Time) {
	s.t.Helper()
	_, err := convocation.MoveSitting(s.t.Context(), s.db, s.actor, "c", "S001", convocation.SittingMove{StartsAt: at})
	s.must(err)
}

// What counts at a door is what stands on the paper: a letter that is true again lets its person in, whichever claim and
// revision it was written for; one that is not true is replaced.
func TestCheckAtDoor_ALetterThatIsTrueAgainIsGood(t *testing.T) {
	t.Parallel()
	later := func(s *school) { s.startAt(s.opens.Add(2 * time.Hour)) }
	for name, c := range map[string]struct {
		away, back func(*school)
		shortGoes  bool // the claim stays, and its short code says nothing of the revision
	}{
		"the seat":              {func(s *school) { s.moveSeat("C001", "7") }, func(s *school) { s.moveSeat("C001", "1") }, false},
		"the sitting's hour":    {later, func(s *school) { s.startAt(s.opens) }, true},
		"the sitting's room":    {func(s *school) { s.moveTo("B14") }, func(s *school) { s.moveTo("B12") }, true},
		"seats swapped":         {func(s *school) { s.swap("C001", "C002") }, func(s *school) { s.swap("C002", "C001") }, false},
		"the seat and the room": {func(s *school) { s.moveSeat("C001", "7"); s.moveTo("B14") }, func(s *school) { s.moveTo("B12"); s.moveSeat("C001", "1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t)
			s.call("Traoré", "Awa", "fr")
			s.call("Keïta", "Modibo", "fr")
			paper := s.letter("C001")
			asked := letter.Asked{Code: paper.Code, Campaign: "c", Sitting: "S001"}
			check := func(code string) letter.Found {
				t.Helper()
				asked := asked
				asked.Code = code
				found, err := s.check(asked)
				s.must(err)
				return found
			}
			if found := check(paper.Code); !found.LetsIn() || found.Renewed {
				t.Errorf("before: %+v", found)
			}
			if found := check(paper.Short()); !found.LetsIn() || found.Older {
				t.Errorf("before, typed: %+v", found)
			}
			c.away(s)
			between := s.letter("C001")
			if found := check(paper.Code); found.LetsIn() || !problem.Has(found.Refusal(), "door_replaced") {
				t.Errorf("moved away: %+v, %v", found, found.Refusal())
			}
			if found := check(between.Code); !found.LetsIn() || found.Renewed {
				t.Errorf("the letter of the new seat: %+v", found)
			}
			if found := check(paper.Short()); found.LetsIn() != c.shortGoes || found.Older != c.shortGoes {
				t.Errorf("moved away, typed: %+v", found)
			}
			if found := check(between.Short()); !found.LetsIn() || found.Older != (c.shortGoes || name == "the seat and the room") {
				t.Errorf("the letter of the new seat, typed: %+v", found)
			}
			c.back(s)
			for _, code := range []string{paper.Code, paper.Short()} {
				found := check(code)
				if !found.LetsIn() || found.Seat.Label != "001" || found.Seat.Name != "Traoré Awa" || found.Now != nil {
					t.Errorf("true again: %+v, %v", found, found.Refusal())
				}
				if code == paper.Code && !found.Renewed {
					t.Error("nobody says that there is a newer letter")
				}
				if found.Older != (code == paper.Short() && c.shortGoes) {
					t.Errorf("that an older letter says something else is said: %v, of %s", found.Older, code)
				}
			}
			if found := check(between.Code); found.LetsIn() {
				t.Errorf("the letter of the time between lets in: %+v", found)
			}
			if found := check(s.letter("C001").Code); !found.LetsIn() || found.Renewed {
				t.Errorf("the newest letter: %+v", found)
			}
			_, err := convocation.Release(t.Context(), s.db, s.actor, "c", "C001", "", "x")
			s.must(err)
			if found := check(paper.Code); found.LetsIn() || !problem.Has(found.Refusal(), "door_released") {
				t.Errorf("released: %+v", found)
			}
		})
	}
}

// A letter of somebody else for the same seat stays theirs.
func TestCheckAtDoor_ATrueSeatOfAnotherPersonLetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.call("Traoré", "Awa", "fr")
	s.call("Keïta", "Modibo", "fr")
	paper := s.letter("C001")
	s.swap("C001", "C002")
	found, err := s.check(letter.Asked{Code: paper.Code, Campaign: "c", Sitting: "S001"})
	s.must(err)
	if found.LetsIn() || found.Now == nil || found.Now.Label != "002" {
		t.Errorf("%+v", found)
	}
}

// Without a network the file tells which announcements of a sitting said what is true now.
func TestDoorKey_ASittingThatCameBackIsWhereOldLettersSay(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.call("Traoré", "Awa", "fr")
	first := s.letter("C001")
	s.moveTo("B14")
	second := s.letter("C001")
	key := func() letter.DoorKey {
		t.Helper()
		exported, err := letter.ExportDoorKey(t.Context(), s.db, s.actor, "ecole")
		s.must(err)
		var file bytes.Buffer
		s.must(exported.Write(&file))
		read, err := letter.ReadDoorKey(&file, "door.json")
		s.must(err)
		return read
	}
	if _, err := key().Check(letter.Asked{Code: first.Code, Sitting: "S001"}, s.opens); !problem.Has(err, "door_letter_old") {
		t.Errorf("moved away: %v", err)
	}
	s.startAt(s.opens.Add(time.Hour))
	s.moveTo("B12")
	third := s.letter("C001")
	s.startAt(s.opens)
	k := key()
	if !slices.Equal(k.Sittings[0].Alike, []int{1}) {
		t.Errorf("alike: %v", k.Sittings[0].Alike)
	}
	if found, err := k.Check(letter.Asked{Code: first.Code, Sitting: "S001"}, k.MadeAt); err != nil || found.Newer {
		t.Errorf("moved back: %+v, %v", found, err)
	}
	for _, paper := range []letter.Letter{second, third} {
		if _, err := k.Check(letter.Asked{Code: paper.Code, Sitting: "S001"}, k.MadeAt); !problem.Has(err, "door_letter_old") {
			t.Errorf("of revision %d: %v", paper.Revision, err)
		}
	}
	holds(t, "note", i18n.Speak("en").Say("cli_door_renewed", nil), "newer letter", "same")
}
