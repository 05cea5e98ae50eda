package convocation

import (
	"fmt"
	"strings"
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
)

// called gives candidates the names, birth dates and contacts of a list: reference family given birth e-mail phone.
func (s *school) called(lines ...string) {
	s.t.Helper()
	var statements []string
	for _, line := range lines {
		f := strings.Split(line, "|")
		birth := "null"
		if f[3] != "" {
			birth = "'" + f[3] + "'"
		}
		statements = append(statements, fmt.Sprintf(`update candidate set family_name = '%s', given_name = '%s', birth_on = %s, email = '%s', phone = '%s' where reference = '%s'`,
			f[1], f[2], birth, f[4], f[5], f[0]))
	}
	s.owner(statements...)
}

// Who may be there twice is seated, since only people can tell, and named by every run until somebody has decided.
func TestConvoke_PerhapsTwiceIsNamed(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH", "PHY")
	s.sit(hall{exam: "MATH", capacity: places(20)})
	s.sit(hall{exam: "PHY", capacity: places(20), day: 1})
	math, phy := person{exams: []string{"MATH"}}, person{exams: []string{"PHY"}}
	unpaid, closed := math, math
	unpaid.pays, closed.status = -1, "rejected"
	s.file(math, math, math, math, math, math, math, phy, math, unpaid, math, closed)
	s.called("C0001|N''Diaye|Awa|2008-04-11|a@x.ml|", "C0002|NDIAYE|Áwa|2008-04-11||", // name and birth date
		"C0003|Fall|Ali||f@x.ml|", "C0004|Fall|Ali|2008-01-01|F@x.ml|+22376000004", // name and e-mail
		"C0005|Ba|Ina|2008-01-01|s@x.ml|+22376000005", "C0006|Ba|Sira|2008-01-01|s@x.ml|+22376000005", // twins
		"C0007|Ka|Ami|2008-02-02||", "C0008|Ka|Ami|2008-02-02||", // not for the same exam
		"C0009|Sow|Oumar|2008-03-03||", "C0010|Sow|Oumar|2008-03-03||", // one has not paid yet
		"C0011|Ly|Binta|2008-04-04||", "C0012|Ly|Binta|2008-04-04||") // decided
	want := []string{"C0001 perhaps_twice", "C0002 perhaps_twice", "C0003 perhaps_twice", "C0004 perhaps_twice", "C0009 perhaps_twice", "C0010 perhaps_twice"}
	report := s.convoke()
	s.equal("to decide", s.list(report, run.ListAttention), want)
	if got := s.number("select count(*) from claim where organisation_id = $1 and released_at is null", s.org.ID); got != 10 {
		t.Errorf("%d are seated", got)
	}
	first := s.refusals(report, run.ListAttention)[0]
	said := i18n.Speak("en").Say("refusal_perhaps_twice", first.Facts)
	if !strings.Contains(said, "NDIAYE Áwa (C0002)") || !strings.Contains(said, "stand for MATH.") || first.Name != "N'Diaye Awa" {
		t.Errorf("%s: %s", first.Name, said)
	}
	s.equal("the next run", s.list(s.convoke(), run.ListAttention), want)

	// Told apart: they are two, whichever is named first and however often, and of others that says nothing.
	for _, two := range [][2]string{{"C0001", "c0002"}, {"C0002", "C0001"}} {
		_, err := admission.TellApart(t.Context(), s.db, s.actor, s.campaign.Slug, two[0], two[1])
		s.must(err)
	}
	s.equal("told apart", s.list(s.convoke(), run.ListAttention), want[2:])
	_, err := admission.DoubtAgain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "C0001")
	s.must(err)
	s.equal("taken back", s.list(s.convoke(), run.ListAttention), want)
	_, err = admission.TellApart(t.Context(), s.db, s.actor, s.campaign.Slug, "C0002", "C0001")
	s.must(err)

	// Decided: one of the two gives the seat back and is called no more.
	for _, reference := range []string{"C0002", "C0004", "C0010"} {
		if reference != "C0010" {
			s.must(s.release(reference))
		}
		_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, reference, "rejected")
		s.must(err)
	}
	s.equal("decided", s.list(s.convoke(), run.ListAttention), []string{})
	_, _, err = admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0009", "rejected") // and keeps the seat
	s.must(err)
	_, _, err = admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0010", "accepted")
	s.must(err)
	s.equal("a seat counts whatever the status", s.list(s.convoke(), run.ListAttention),
		[]string{"C0009 seated_status_closed", "C0009 perhaps_twice", "C0010 perhaps_twice"})
}

// A line that was copied down many times is named, and costs no more than its bounds.
func TestConvoke_OnePersonManyTimes(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(100)})
	s.fileMany(80, person{})
	s.owner(`update candidate set family_name = 'Diop', given_name = 'Awa', email = '', phone = '+22376000000'`)
	named := s.refusals(s.convoke(), run.ListAttention)
	if len(named) != 80 {
		t.Errorf("%d are named", len(named))
	}
	if others := named[0].Facts["others"].([]any); len(others) != mostOthers {
		t.Errorf("beside one of them %v are named", others)
	}
}

// A name without a given one has one space before its reference.
func TestMoveSitting_NamesOfOneWord(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH", "PHY")
	s.sit(hall{exam: "MATH", capacity: places(5)})
	s.sit(hall{exam: "PHY", room: "Salle 2", day: 1, capacity: places(5)})
	s.file(person{exams: []string{"MATH", "PHY"}})
	s.owner(`update candidate set family_name = 'Madonna', given_name = ''`)
	s.convoke()
	day := s.opening
	_, err := MoveSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S002", SittingMove{StartsAt: day})
	refused(t, err, "sitting_clashes")
	if said := i18n.Speak("en").Sentence(err); !strings.Contains(said, "Madonna (C0001)") {
		t.Errorf("it says %s", said)
	}
	refused(t, s.atDoor("S002", true), "seats_numbered_already")
	if said := i18n.Speak("en").Sentence(s.atDoor("S002", true)); !strings.Contains(said, "Madonna (C0001)") {
		t.Errorf("it says %s", said)
	}
}
