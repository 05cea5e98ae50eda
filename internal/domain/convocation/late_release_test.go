package convocation

import (
	"slices"
	"strings"
	"testing"

	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// Released by hand at any step of a run, somebody who filed early gets the seat before those who filed
// later, or is refused by name; nobody is in no list.
func TestConvoke_ReleasedBesideIt(t *testing.T) {
	t.Parallel()
	build := func() *school {
		s := newSchool(t, "BIO", "MATH")
		s.sit(hall{exam: "BIO", capacity: places(2)})
		s.sit(hall{exam: "MATH", day: 1, capacity: places(9)}) // places stay free
		s.fileMany(6, person{exams: []string{"BIO"}})
		s.fileMany(3, person{exams: []string{"MATH"}})
		s.convoke()
		return s
	}
	var names []string
	build().convokeWith(Target{Campaign: "ecole-concours"}, Options{chunk: 2, step: func(name string) { names = append(names, name) }})
	if !slices.Contains(names, "listed") {
		t.Fatalf("the run passes %v, and not the end", names)
	}
	for nth, name := range names {
		if name != "committed" && name != "listed" && name != "described" && name != "started" { // in between the lock is held
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := build()
			s.t = t
			passed := -1
			report := s.convokeWith(s.target(), Options{chunk: 2, step: func(string) {
				if passed++; passed == nth {
					s.must(s.release("C0001"))
					s.must(s.release("C0007")) // of the exam where places are free
				}
			}})
			seats := strings.Join(s.seats(), "\n")
			for _, reference := range []string{"C0001", "C0007"} {
				if !strings.Contains(seats, reference+" ") {
					t.Errorf("%s was released at step %d (%s) and is not seated again:\n%s\n%+v", reference, nth, name, seats, report)
				}
			}
		})
	}
}

// Whoever starts to wait in the last look of a run, behind it and where places are free, is seated by it all the same.
func TestConvoke_ReleasedBehindItsLastLook(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(s *school) error{
		"released": func(s *school) error { return s.release("C0001") },
		"released and called again": func(s *school) error {
			for _, status := range []string{"filed", "accepted"} {
				if _, _, err := admission.ChangeStatus(s.t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", status); err != nil {
					return err
				}
			}
			return s.release("C0001")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{centre: "Kayes", capacity: places(9)}) // places stay free
			s.sit(hall{centre: "Badalabougou", capacity: places(1)})
			s.file(person{centre: "Kayes"})
			s.fileMany(9, person{centre: "Badalabougou"})
			passed := 0
			report := s.convokeWith(s.target(), Options{chunk: 2, step: func(step string) {
				if step == "committed" {
					passed++
				}
				if step == "committed" && passed == 7 { // six of the first look, and the second, which finds nobody
					s.must(wait(s))
				}
			}})
			if passed < 7 || !slices.Contains(s.seats(), "C0001 S001/001") || len(s.list(report, run.ListRefused)) != 8 {
				t.Errorf("after %d chunks the seats are %v, refused %v", passed, s.seats(), s.list(report, run.ListRefused))
			}
		})
	}
}
