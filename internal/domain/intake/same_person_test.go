package intake_test

import (
	"strings"
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
)

const people = "dossier;nom;prénom;né le;e-mail;tél"

// A second office numbers its people from 1 as the first did: nobody's file becomes another person's.
func TestCandidates_ReferenceOfAnotherPerson(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates(people, "1;Diarra;Awa;2005-01-02;awa@x.ml;", "2;Traoré;Awa;2005-03-04;t@x.ml;")
	before := b.snapshot()
	other := []string{people, "1;Camara;Moussa;2004-11-12;moussa@x.ml;", "2;Traoré;Moussa;2004-01-01;m@x.ml;", "3;Ba;Ina;2004-01-01;;"}
	dry, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(other...), intake.Options{DryRun: true})
	b.must(err)
	wantSaid(t, dry.Rejected, "2:dossier:reference_of_another 3:dossier:reference_of_another")
	if b.snapshot() != before {
		t.Error("the trial changed something")
	}
	r := b.candidates(other...)
	wantCounts(t, r, "read 3 created 1 updated 0 unchanged 0 rejected 2 ignored 0")
	said := i18n.Speak("en").Say("refusal_reference_of_another", r.Rejected[0].Facts)
	for _, word := range []string{"Diarra Awa", "Camara Moussa", `usher candidate edit "1" --campaign concours`, "reference of their own"} {
		if !strings.Contains(said, word) {
			t.Errorf("%q lacks %q", said, word)
		}
	}
	// After a correction by hand the row is theirs.
	text := func(s string) *string { return &s }
	b.correct("1", intake.Correction{FamilyName: text("Camara"), GivenName: text("Moussa")})
	wantCounts(t, b.candidates(people, "1;Camara;Moussa;2004-11-12;moussa@x.ml;"), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	// The first list says again whom it meant: they were called so once.
	r = b.candidates(people, "1;Diarra;Awa;2005-01-02;awa@x.ml;")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
}

// Something in common is enough, now or before; a part of the name alone is said.
func TestCandidates_ReferenceOfTheSamePerson(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates(people, "1;Diarra;Awa;2005-01-02;awa@x.ml;", "2;Fall;Ali;;f@x.ml;76000002")
	r := b.candidates(people, "1;Keïta;Awa;2005-01-02;keita@x.ml;", "2;Faal;Alioune;;ali@x.ml;76000002") // marriage; the phone stays
	wantCounts(t, r, "read 2 created 0 updated 2 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	r = b.candidates("dossier;nom;prénom;e-mail", "1;Touré;Awa;toure@x.ml")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:dossier:reference_perhaps_another")
	r = b.candidates("dossier;nom;e-mail", "1;Diarra;awa@x.ml", "2;Touré;x@x.ml") // a former name is theirs
	wantSaid(t, r.Rejected, "3:dossier:reference_of_another")
	wantCounts(t, r, "read 2 created 0 updated 1 unchanged 0 rejected 1 ignored 0")
}

// People first come without references, then with numbers: both are kept, and named at each import.
func TestCandidates_NumbersComeLater(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("nom;prénom;né le;e-mail;tél", "Diop;Awa;11/04/2008;;", "Fall;Ali;;f@x.ml;", "Ba;Ina;;;76000003", "Sow;Sira;;s@x.ml;")
	numbered := []string{people, "10;Diop;Awa;11/04/2008;new@x.ml;", "11;Fall;Ali;01/01/2007;f@x.ml;76000009", "12;Ina;Ba;;;76000003", "13;Sow;Mariam;;s@x.ml;"}
	r := b.candidates(numbered...)
	wantCounts(t, r, "read 4 created 4 updated 0 unchanged 0 rejected 0 ignored 0")
	for range 2 {
		wantSaid(t, r.Warnings, "2:dossier:perhaps_same_person_stored 3:dossier:perhaps_same_person_stored 4:dossier:perhaps_same_person_stored")
		if other := r.Warnings[1].Facts["other"]; other != "N000002" {
			t.Errorf("the other is %v", other)
		}
		r = b.candidates(numbered...)
		wantCounts(t, r, "read 4 created 0 updated 0 unchanged 4 rejected 0 ignored 0")
	}
	b.apart("N000002", "11")
	wantSaid(t, b.candidates(numbered...).Warnings, "2:dossier:perhaps_same_person_stored 4:dossier:perhaps_same_person_stored")
}

// Whom somebody told apart are named no more when a file has both; who looks like them otherwise is.
func TestCandidates_ToldApartWithinAFile(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	file := []string{people, "1;Diop;Awa;11/04/2008;;", "2;Diop;Awa;11/04/2008;;", "3;Fall;Ali;12/04/2008;;", "4;Fall;Ali;12/04/2008;;"}
	wantSaid(t, b.candidates(file...).Warnings, "3:nom:perhaps_same_person 5:nom:perhaps_same_person")
	b.apart("2", "1")
	for range 2 {
		wantSaid(t, b.candidates(file...).Warnings, "4:dossier:perhaps_same_person_stored 5:nom:perhaps_same_person")
	}
	wantSaid(t, b.candidates(append(file, "5;Diop;Awa;11/04/2008;;")...).Warnings,
		"4:dossier:perhaps_same_person_stored 5:nom:perhaps_same_person 6:nom:perhaps_same_person")
}

func (b *bench) apart(one, other string) {
	b.t.Helper()
	_, err := admission.TellApart(b.t.Context(), b.db, b.actor, "concours", one, other)
	b.must(err)
}

// Without a reference: an address that is added or corrected, or a birth date, adds nobody.
func TestCandidates_CorrectedRowsWithoutReference(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	const list = "nom;prénom;né le;e-mail;tél"
	b.candidates(list, "Diop;Awa;;awa@x.ml;", "Fall;Ali;;f@x.ml;76000002", "Ba;Ina;11/04/2008;i@x.ml;76000003", "Ka;Ami;;k@x.ml;76000004", "Kone;;;k@x.ml;")
	changed := []string{list, "Diop;Awa;;awa@x.ml;76000001", "Fall;Ali;;ali@x.ml;76000002", "Ba;Ina;12/04/2008;i@x.ml;76000003", "Ka;Ami;01/02/2008;k@x.ml;76000009"}
	r := b.candidates(changed...)
	wantCounts(t, r, "read 4 created 0 updated 4 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "4:né le:birth_corrected")
	wantCounts(t, b.candidates(changed...), "read 4 created 0 updated 0 unchanged 4 rejected 0 ignored 0")
	// What could be somebody else is somebody else: a sibling, another birth date with one address, no given name.
	r = b.candidates(list, "Diop;Sira;;awa@x.ml;", "Ba;Ina;13/04/2008;i@x.ml;", "Kone;;;k@x.ml;76000005")
	wantCounts(t, r, "read 3 created 3 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "4:reference:perhaps_same_person_stored")
}

// Two rows of one file that may be one person are two, and named, wherever the file is cut into chunks; again they are the same two.
func TestCandidates_PerhapsSameWithinAFile(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{"nom;prénom;né le;e-mail;tél", "Diop;Awa;;d@x.ml;76123456"}
	for _, line := range manyRows()[1:1_100] {
		_, rest, _ := strings.Cut(line, ";")
		family, rest, _ := strings.Cut(rest, ";")
		given, phone, _ := strings.Cut(rest, ";")
		lines = append(lines, family+";"+given+";;;"+phone)
	}
	lines = append(lines, "Diop;Awa;;d@x.ml;76123457", "Diop;Awa;01/01/2008;;76123457", "Diop;Awa;02/02/2008;;76123457")
	r := b.candidates(lines...)
	wantSaid(t, r.Rejected, "")
	wantSaid(t, r.Warnings, "1102:nom:perhaps_same_person 1103:nom:perhaps_same_person 1104:nom:perhaps_same_person")
	before := b.snapshot()
	again := b.candidates(lines...)
	if again.Created+again.Updated+again.RejectedCount > 0 || b.snapshot() != before {
		t.Errorf("the same file says %s", counts(again))
	}
}

// What a spreadsheet or a hand makes of a reference is recognised, or refused with a sentence: it is nobody new.
func TestCandidates_ReferencesRuined(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom", "1;Diop", "A1;Fall", "1000;Ba", "A-ß7;Ly")
	r := b.candidates("dossier;nom", "1.0;Diop", "a1;Fall", "１;Diop", "1E3;Ba", "Ａ-ß７;Ly", "00A1;Fall", "502.0;Sy")
	wantCounts(t, r, "read 7 created 0 updated 0 unchanged 3 rejected 4 ignored 0")
	wantSaid(t, r.Rejected, "2:dossier:reference_decimals 5:dossier:reference_shortened 7:dossier:reference_zeros_stored 8:dossier:reference_decimals")
	if n := b.count("candidate"); n != 4 {
		t.Errorf("%d candidates", n)
	}
	// In one file, and where nobody has the number that it may have been.
	r = b.candidates("dossier;nom", "b1;Sy", "B1;Ka", "2000;Sow", "2E3;Sow", "7e2;Kane")
	wantCounts(t, r, "read 5 created 3 updated 0 unchanged 0 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "3:dossier:reference_zeros 5:dossier:reference_zeros")
	wantSaid(t, r.Warnings, "6:dossier:reference_perhaps_shortened")
	// A reference that is recognised is that of its person only.
	wantSaid(t, b.candidates("dossier;nom", "a1;Camara").Rejected, "2:dossier:reference_of_another")
}

// Another list that says fewer exams takes registrations of people without a seat: they are named.
func TestCandidates_ExamsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHY")
	b.candidates("dossier;nom;épreuves", "1;Diop;MATH|PHY", "2;Fall;MATH")
	lines := []string{"dossier;nom;épreuves", "1;Diop;PHY", "2;Fall;MATH"}
	r := b.candidates(lines...)
	wantCounts(t, r, "read 2 created 0 updated 1 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:épreuves:registration_taken")
	said := i18n.Speak("en").Say("refusal_registration_taken", r.Warnings[0].Facts)
	for _, word := range []string{"Diop (1)", "MATH, ", "PHY only", "MATH | PHY"} {
		if !strings.Contains(said, word) {
			t.Errorf("%q lacks %q", said, word)
		}
	}
	wantSaid(t, b.candidates(lines...).Warnings, "")
}

// Receipts that differ in capitals only are two payments, and named: stored, and in one file.
func TestPayments_ReceiptsInOtherCapitals(t *testing.T) {
	t.Parallel()
	b := payers(t)
	wantSaid(t, b.payments("dossier;montant;reçu", "000001;5000;R1").Warnings, "")
	r := b.payments("dossier;montant;reçu", "000001;5000;r1", "000001;1000;q7", "000001;1000;Q7", "000001;5000;R1")
	wantCounts(t, r, "read 4 created 3 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:reçu:receipt_perhaps_same 3:montant:payment_over 4:reçu:receipt_perhaps_same 4:montant:payment_over")
}

// Two people of one name who were born on one day, in lists without references: the second neither vanishes nor takes over the first
// one's addresses.
func TestCandidates_NamesakesOfOneDay(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	const list = "nom;prénom;né le;e-mail;tél"
	first := []string{list, "Diakité;Fanta;01/01/2004;fanta1@x.ml;76000031"}
	b.candidates(first...)
	before := b.snapshot()
	second := []string{list, "Diakité;Fanta;01/01/2004;autre.fanta@x.ml;65999999"}
	r := b.candidates(second...)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "2:reference:candidate_perhaps_other")
	if b.snapshot() != before {
		t.Error("the other one's addresses were written over the first one's")
	}
	for _, lang := range i18n.Languages {
		said := i18n.Speak(lang).Say("refusal_candidate_perhaps_other", r.Rejected[0].Facts)
		if !strings.Contains(said, "N000001") || !strings.Contains(said, "usher candidate edit") || !strings.Contains(said, `--phone "+22365999999"`) {
			t.Errorf("%s: %q", lang, said)
		}
	}
	// With a reference she is somebody, and both lists again change nothing.
	numbered := []string{people, "77;Diakité;Fanta;01/01/2004;autre.fanta@x.ml;65999999"}
	r = b.candidates(numbered...)
	wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:dossier:perhaps_same_person_stored")
	wantCounts(t, b.candidates(first...), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantCounts(t, b.candidates(numbered...), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	// One address in common, and an address that she had before, still mean the one.
	for _, row := range []string{
		"Diakité;Fanta;01/01/2004;nouvelle@x.ml;76000031", "Diakité;Fanta;01/01/2004;nouvelle@x.ml;65000000", "Diakité;Fanta;01/01/2004;fanta1@x.ml;",
	} {
		wantCounts(t, b.candidates(list, row), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	}
	// In one list the second row is named, and nobody is told to delete somebody.
	r = b.candidates(list, "Sowé;Awa;01/01/2004;a@x.ml;", "Sowé;Awa;01/01/2004;b@x.ml;")
	wantSaid(t, r.Rejected, "3::row_conflict")
	if said := i18n.Speak("fr").Say("refusal_row_conflict", r.Rejected[0].Facts); !strings.Contains(said, "deux personnes") {
		t.Errorf("it says %q", said)
	}
}
