package convocation

import (
	"strings"
	"testing"

	"usher/internal/base/i18n"
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

// A clash is said as it is: with every sitting, or with all that have a seat, where places in the others would help. The report
// and the explanation say it in the same words.
func TestExplain_WhatClashesAndWhatIsFull(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH", "PHYS")
	s.sit(hall{exam: "BIO", room: "A", capacity: places(1)})
	s.sit(hall{exam: "MATH", room: "B", capacity: places(1)})
	s.sit(hall{exam: "MATH", room: "B", day: 1, capacity: places(0)})
	s.sit(hall{exam: "PHYS", room: "C", capacity: places(0)})
	s.sit(hall{exam: "PHYS", room: "D", centre: "Kayes", day: 1, capacity: places(9)})
	s.file(person{exams: []string{"BIO", "MATH", "PHYS"}, centre: "Badalabougou"})
	report := s.convoke()
	said := map[string]string{}
	for _, refusal := range s.refusals(report, run.ListRefused) {
		said[refusal.Facts["exam"].(string)] = i18n.Speak("en").Say("refusal_"+refusal.Reason, refusal.Facts)
	}
	x, err := Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0001")
	s.must(err)
	for i, want := range []struct{ exam, sentence, remedy string }{
		{
			"MATH", "Every sitting of MATH at Badalabougou that has a free seat overlaps another sitting of the candidate (BIO S001), and the others are full. " +
				"Add one at another time, or places to one that is full, then convoke again.",
			"Add a sitting of MATH at Badalabougou at another time, raise the capacity of one that is full, or move the candidate's other sitting, then convoke again.",
		},
		{
			"PHYS", "Every sitting of PHYS at Badalabougou overlaps another sitting of the candidate (BIO S001). Add one at another time, then convoke again.",
			"Add a sitting of PHYS at Badalabougou at another time, or move the candidate's other sitting, then convoke again.",
		},
	} {
		told := x.Exams[i+1]
		explained := i18n.Speak("en").Say(told.Sentence.Code, told.Sentence.Facts)
		if said[want.exam] != want.sentence || explained != want.sentence {
			t.Errorf("%s: reported %q, explained %q, want %q", want.exam, said[want.exam], explained, want.sentence)
		}
		if remedy := i18n.Speak("en").Say(told.Remedy.Code, told.Remedy.Facts); remedy != want.remedy {
			t.Errorf("%s: %q, want %q", want.exam, remedy, want.remedy)
		}
	}
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

// A run that gives one sitting alone says of a clash what is true of that sitting: another may be at another time, as the explanation says.
func TestConvoke_ClashWithTheOneSittingThatIsNamed(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", capacity: places(5)})
	named := s.sit(hall{exam: "MATH", room: "B", capacity: places(5)})
	later := s.sit(hall{exam: "MATH", room: "B", day: 1, capacity: places(5)})
	s.file(person{exams: []string{"BIO", "MATH"}})
	target := s.target()
	target.Exam = "BIO"
	s.convokeWith(target, Options{})
	target = s.target()
	target.Sitting = named
	refused := s.refusals(s.convokeWith(target, Options{}), run.ListRefused)
	if len(refused) != 1 {
		t.Fatalf("refused: %+v", refused)
	}
	said := i18n.Speak("en").Say("refusal_"+refused[0].Reason, refused[0].Facts)
	if !strings.HasPrefix(said, "The sitting "+named+" overlaps another sitting of the candidate (BIO S001).") {
		t.Errorf("it says: %s", said)
	}
	target.Sitting = later
	if report := s.convokeWith(target, Options{}); report.Seated != 1 {
		t.Errorf("the later one: %+v", report)
	}
}
