package convocation

import (
	"strings"
	"testing"

	"usher/internal/domain/run"
)

// Explain is a rehearsal of the next run, which convokes for every exam: what an exam before gives
// somebody decides whether a later one clashes, and what a later one gives them whether more places at the
// one before would help.
func TestExplain_SaysWhatTheNextRunDoesForEveryExam(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", room: "A", capacity: places(2)})
	s.sit(hall{exam: "MATH", room: "B", capacity: places(3)})
	s.sit(hall{exam: "MATH", room: "B", day: 1, capacity: places(1)})
	both := []string{"BIO", "MATH"}
	s.file(person{exams: both}, person{exams: both}, person{exams: both}, person{exams: []string{"MATH"}})
	var told []string
	for _, reference := range []string{"C0001", "C0002", "C0003", "C0004"} {
		x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, reference)
		s.must(err)
		for _, exam := range x.Exams {
			told = append(told, reference+" "+exam.Exam+" "+exam.Sentence.Code)
		}
	}
	s.equal("explained", told, []string{
		"C0001 BIO explain_next_run", "C0001 MATH explain_next_run",
		"C0002 BIO explain_next_run", "C0002 MATH refusal_clash",
		"C0003 BIO refusal_clash", "C0003 MATH explain_next_run", "C0004 MATH explain_next_run",
	})
	report := s.convoke()
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0003 clash", "C0002 clash"})
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0001 S003/001", "C0002 S001/002", "C0003 S002/001", "C0004 S002/002"})
}

func TestExplain_ToldByStanding(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.file(person{status: "filed"}, person{pays: 6_000}, person{}, person{}, person{exams: []string{""}})
	_, err := Seat(t.Context(), s.db, s.actor, s.campaign.Slug, "C0004", "S001", "3")
	s.must(err)
	s.convoke()
	for reference, want := range map[string]string{
		"C0001": "explain_status_closed", "C0002": "explain_owes", "C0003": "explain_seated", "C0004": "explain_seated_by_hand", "C0005": "",
	} {
		x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, reference)
		s.must(err)
		code := ""
		for _, exam := range x.Exams {
			code = exam.Sentence.Code
			if seated := strings.HasPrefix(code, "explain_seated"); seated != exam.Seated || (exam.Remedy.Code == "") != seated {
				t.Errorf("%s: %+v", reference, exam)
			}
		}
		if code != want {
			t.Errorf("%s: got %q, want %q", reference, code, want)
		}
	}
	x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002")
	s.must(err)
	if x.Standing.Owed.Minor != 4_000 {
		t.Errorf("owed: %+v", x.Standing)
	}
}

// Very many before somebody are not all tried out for one answer, and the answer says so.
func TestExplain_TriesOutSoManyTurnsAndNoMore(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", room: "A", capacity: places(9)})
	s.sit(hall{exam: "MATH", room: "B", day: 1, capacity: places(9)})
	s.fileMany(3, person{exams: []string{"BIO", "MATH"}})
	const turns = 5 // three for BIO, two for MATH
	for reference, want := range map[string]string{
		"C0001": "explain_next_run explain_next_run", "C0002": "explain_next_run explain_next_run", "C0003": "explain_next_run explain_many_before",
	} {
		x, err := explain(t.Context(), s.db, s.actor, s.campaign.Slug, reference, turns)
		s.must(err)
		if got := x.Exams[0].Sentence.Code + " " + x.Exams[1].Sentence.Code; got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
		for _, exam := range x.Exams {
			if exam.Remedy.Code == "" {
				t.Errorf("%s %s: nothing is advised", reference, exam.Exam)
			}
		}
	}
}
