package convocation

import (
	"slices"
	"testing"

	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// chunksOf counts the chunks of a run beside which something is done after each of them, from the
// one on that refuses somebody first.
func (s *school) chunksOf(chunk int, beside func(nth int)) (Report, int) {
	s.t.Helper()
	chunks := 0
	report := s.convokeWith(s.target(), Options{chunk: chunk, step: func(step string) {
		if step != "committed" {
			return
		}
		if chunks++; beside != nil && s.number(`select count(*) from refusal where list = 'refused'`) > 0 {
			beside(chunks)
		}
	}})
	return report, chunks
}

// Acts by hand that free nothing do not send a run back to those whom it has refused.
func TestConvoke_GoesOnBesideActsThatFreeNothing(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T) *school {
		s := newSchool(t, "MATH")
		s.sit(hall{capacity: places(3)})
		s.sit(hall{centre: "Kayes", capacity: places(9)})
		s.fileMany(2, person{centre: "Kayes"})
		s.fileMany(20, person{centre: "Badalabougou"})
		return s
	}
	undisturbed := build(t)
	want, chunks := undisturbed.chunksOf(2, nil)
	for name, act := range map[string]func(s *school, nth int) error{
		"swapped": func(s *school, _ int) error {
			_, err := Swap(t.Context(), s.db, s.actor, s.campaign.Slug, "", "C0003", "C0004")
			return err
		},
		"moved within the room": func(s *school, nth int) error {
			_, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "", []string{"3", "4"}[nth%2])
			return err
		},
		"a status changed of somebody who keeps their seat": func(s *school, nth int) error {
			if nth > 10 { // the end comes back to what changed since the last look
				return nil
			}
			_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", []string{"filed", "accepted"}[nth%2])
			return err
		},
		"released and seated where places are free": func(s *school, _ int) error {
			if _, err := Release(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "mistake"); err != nil {
				return err
			}
			_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "S002", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := build(t)
			report, took := s.chunksOf(2, func(nth int) { s.must(act(s, nth)) })
			if took != chunks {
				t.Errorf("the run took %d chunks, undisturbed %d", took, chunks)
			}
			s.equal("refused", s.list(report, run.ListRefused), undisturbed.list(want, run.ListRefused))
		})
	}
}

// A place that comes free again and again goes to the first who was refused, each time, and the run
// goes on in the same chunk.
func TestConvoke_GoesOnBesideReleases(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.fileMany(30, person{})
	released := 0
	report, chunks := s.chunksOf(2, func(int) {
		if released++; released <= 3 {
			s.must(s.withdraw([]string{"C0001", "C0002", "C0003"}[released-1]))
		}
	})
	s.equal("seats", s.seats(), []string{"C0004 S001/001", "C0005 S001/002", "C0006 S001/003"})
	if got := s.list(report, run.ListRefused); len(got) != 24 || got[0] != "C0007 room_full" {
		t.Errorf("refused: %v", got)
	}
	if most := 2*15 + 2*3; chunks > most {
		t.Errorf("the run took %d chunks, want at most %d", chunks, most)
	}
}

// Whom a clash kept out is given their turn before later filers when their other seat is moved.
func TestConvoke_ASeatMovedAwayFromAClashGivesItsHolderTheirTurn(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "ART", "MATH")
	s.sit(hall{exam: "ART", room: "A", capacity: places(9)})
	s.sit(hall{exam: "ART", room: "A", day: 1, capacity: places(9)})
	s.sit(hall{exam: "MATH", room: "B", capacity: places(3)})
	both := []string{"ART", "MATH"}
	s.file(person{exams: both})
	s.fileMany(6, person{exams: []string{"MATH"}})
	moved := false
	report, _ := s.chunksOf(1, func(int) {
		if !moved {
			moved = true
			_, err := Move(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001", "", "S002", "")
			s.must(err)
		}
	})
	s.equal("seats", s.seats(), []string{"C0001 S002/001", "C0001 S003/001", "C0002 S003/002", "C0003 S003/003"})
	if got := s.list(report, run.ListRefused); len(got) != 4 || got[0] != "C0004 room_full" {
		t.Errorf("refused: %v", got)
	}
}

// Whom the run refused, and somebody seated by hand before its end, does not stand in its list.
func TestConvoke_WhoWasSeatedByHandMeanwhileIsNotCalledRefused(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.sit(hall{centre: "Kayes", capacity: places(2)})
	s.fileMany(6, person{centre: "Badalabougou"})
	seated := false
	report, _ := s.chunksOf(2, func(int) {
		if !seated {
			seated = true
			_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "S002", "")
			s.must(err)
		}
	})
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0004 room_full", "C0005 room_full", "C0006 room_full"})
	if !slices.Contains(s.seats(), "C0003 S002/001") || report.Seated != 2 {
		t.Errorf("seats %v, by the run %d", s.seats(), report.Seated)
	}
}
