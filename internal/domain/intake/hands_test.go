package intake_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"usher/internal/base/i18n"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
)

func (b *bench) correct(reference string, correction intake.Correction) {
	b.t.Helper()
	_, err := intake.EditCandidate(b.t.Context(), b.db, b.actor, "concours", reference, correction)
	b.must(err)
}

func (b *bench) status(reference, code string) {
	b.t.Helper()
	_, _, err := admission.ChangeStatus(b.t.Context(), b.db, b.actor, "concours", reference, code)
	b.must(err)
}

// filed is what the campaign holds of its candidates.
func (b *bench) filed() string {
	b.t.Helper()
	return b.text(`select string_agg(concat_ws(' ', k.reference, k.family_name, nullif(k.given_name, ''), nullif(k.email, ''), nullif(k.phone, ''), k.locale, s.code, c.name, k.needs_accessible), ', '
 order by k.reference) from candidate k join status s on s.id = k.status_id left join centre c on c.id = k.centre_id`)
}

// What somebody wrote over a file stands when that file comes again, field by field, and is named.
func TestCandidates_SameFileKeepsWhatAHandWrote(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00", "MATH;Nord;A;2126-10-05 08:00;2126-10-05 10:00")
	lines := []string{header, "1;Diop;Awa;;a@b.org;76123456;filed;22/05/2026;Campus;MATH;;fr", "2;Fall;Ali;;f@b.org;;filed;22/05/2026;;MATH;pmr;"}
	b.candidates(lines...)
	b.seatAt("S001", "1", 1)
	text := func(s string) *string { return &s }
	b.correct("1", intake.Correction{
		FamilyName: text("Diallo"), GivenName: text("Awa Marie"), Email: text("-"), Phone: text("76123457"), Centre: text("Nord"), Needs: text("pmr"), Locale: text("es"),
	})
	b.status("1", "accepted")
	b.correct("2", intake.Correction{Centre: text("Nord"), Needs: text("-")})
	before := b.snapshot()
	want := "1 Diallo Awa Marie +22376123457 es accepted Nord t, 2 Fall Ali f@b.org fr filed Nord f"
	if got := b.filed(); got != want {
		t.Fatalf("by hand they became %s", got)
	}
	for range 2 {
		r := b.candidates(lines...)
		wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
		wantSaid(t, r.Warnings, "2:nom:hand_kept 2:prénom:hand_kept 2:e-mail:hand_kept 2:tél.:hand_kept 2:statut:hand_kept 2:centre:hand_kept "+
			"2:langue:hand_kept 2:besoins:value_kept 3:besoins:hand_kept 3:centre:value_kept")
		if b.snapshot() != before {
			t.Error("the same file changed something")
		}
	}
	dry, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(lines...), intake.Options{DryRun: true})
	b.must(err)
	wantCounts(t, dry, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
}

// A file that says something new counts, also over what somebody wrote: it is the later of the two. Both are named, once.
func TestCandidates_NewerFileCountsOverAHand(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;tél;statut", "1;Diop;76123456;filed", "2;Fall;76123450;filed")
	text := func(s string) *string { return &s }
	b.correct("1", intake.Correction{Phone: text("76123457")})
	b.status("1", "accepted")
	b.status("2", "accepted")
	lines := []string{"dossier;nom;tél;statut", "1;Diop;76123458;rejected", "2;Fall;76123451;filed"}
	r := b.candidates(lines...)
	wantCounts(t, r, "read 2 created 0 updated 2 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:tél:hand_overwritten 2:statut:hand_overwritten 3:statut:hand_kept")
	if got := i18n.Speak("en").Say("refusal_hand_overwritten", r.Warnings[0].Facts); !strings.Contains(got, "+22376123457") || !strings.Contains(got, "+22376123458") {
		t.Errorf("it says %s", got)
	}
	if got := b.filed(); got != "1 Diop +22376123458 fr rejected f, 2 Fall +22376123451 fr accepted f" {
		t.Errorf("they are %s", got)
	}
	before := b.snapshot()
	r = b.candidates(lines...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "3:statut:hand_kept")
	if b.snapshot() != before {
		t.Error("the second time changed something")
	}
}

// Once a file says what a hand wrote, the two agree; from then on the file counts when it says something else.
func TestCandidates_FileAgreesWithAHand(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	old, agreed := []string{"dossier;nom;statut", "1;Diop;filed"}, []string{"dossier;nom;statut", "1;Diop;accepted"}
	b.candidates(old...)
	b.status("1", "accepted")
	r := b.candidates(agreed...)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	b.status("1", "rejected")
	b.status("1", "accepted") // as the file says again: nothing is left of the hand
	r = b.candidates(old...)
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	// A file that says nothing of the status leaves both as they are.
	b.status("1", "accepted")
	wantCounts(t, b.candidates("dossier;nom", "1;Diop"), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantCounts(t, b.candidates(old...), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
}

// Without a reference a row is recognised by what files said: a name or an address that was corrected by hand adds nobody.
func TestCandidates_CorrectedByHandWithoutReference(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;prénom;né le", "900;Ba;Ina;02/02/2008")
	lines := []string{"nom;prénom;né le;e-mail", "Diop;Awa;11/04/2008;", "Fall;Ali;;f@b.org", "Ba;Ina;02/02/2008;"}
	b.candidates(lines...)
	text := func(s string) *string { return &s }
	b.correct("N000001", intake.Correction{FamilyName: text("Diallo")})
	b.correct("N000002", intake.Correction{Email: text("ali@b.org"), FamilyName: text("Faal")})
	b.correct("900", intake.Correction{GivenName: text("Inna")})
	before := b.snapshot()
	r := b.candidates(lines...)
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:nom:hand_kept 3:nom:hand_kept 3:e-mail:hand_kept 4:prénom:hand_kept")
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
	// The list is corrected too: still the same people.
	r = b.candidates("nom;prénom;né le;e-mail", "Diallo;Awa;11/04/2008;", "Faal;Ali;;ali@b.org", "Ba;Inna;02/02/2008;")
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
}

// Once another list agrees with a hand, the first list still means the person whom it named: nobody is there twice.
func TestCandidates_EarlierListAfterAnotherAgreedWithAHand(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	text := func(s string) *string { return &s }
	first := []string{"nom;prénom;né le;e-mail", "Diop;Awa;11/04/2008;", "Fall;Ali;;f@b.org"}
	b.candidates(first...)
	b.correct("N000001", intake.Correction{FamilyName: text("Diallo")})
	b.correct("N000002", intake.Correction{Email: text("ali@b.org")})
	b.candidates("nom;prénom;né le;e-mail", "Diallo;Awa;11/04/2008;", "Fall;Ali;;ali@b.org")
	r := b.candidates(first...)
	wantCounts(t, r, "read 2 created 0 updated 2 unchanged 0 rejected 0 ignored 0")
	if wantSaid(t, r.Warnings, "2:nom:known_before 3:nom:known_before"); t.Failed() {
		return
	}
	if got := i18n.Speak("en").Say("refusal_known_before", r.Warnings[0].Facts); !strings.Contains(got, "N000001, Diallo Awa until now") {
		t.Errorf("it says %s", got)
	}
	r = b.candidates(first...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
}

// Who once had the name and the contact of somebody else is not taken for them: who has it now is, and two who had it are asked about.
func TestCandidates_FormerNamesOfSeveral(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	text := func(s string) *string { return &s }
	b.candidates("nom;prénom;e-mail", "Diop;Awa;d@b.org", "Fall;Ali;d@b.org")
	b.correct("N000002", intake.Correction{FamilyName: text("Diop"), GivenName: text("Awa Marie")}) // siblings stay two
	b.correct("N000002", intake.Correction{FamilyName: text("Fall"), GivenName: text("Ali")})
	wantCounts(t, b.candidates("nom;prénom;e-mail", "Diop;Awa;d@b.org", "Fall;Ali;d@b.org"), "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")

	b.correct("N000001", intake.Correction{GivenName: text("Binta")})
	b.correct("N000002", intake.Correction{FamilyName: text("Diop"), GivenName: text("Awa")})
	wantCounts(t, b.candidates("nom;prénom;e-mail", "Diop;Awa;d@b.org"), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	b.candidates("dossier;nom;prénom", "N000001;Diop;Binta", "N000002;Diop;Awa") // the lists agree: only the past knows Awa as N000001
	b.correct("N000002", intake.Correction{GivenName: text("Coumba")})
	b.candidates("dossier;nom;prénom", "N000002;Diop;Coumba")
	r := b.candidates("nom;prénom;e-mail", "Diop;Awa;d@b.org")
	wantSaid(t, r.Rejected, "2:reference:candidate_ambiguous")
	// Another birth date than the one that is known makes another person.
	b.candidates("dossier;nom;prénom;né le", "N000001;Diop;Binta;11/04/2008", "N000002;Diop;Coumba;12/04/2008")
	r = b.candidates("nom;prénom;né le;e-mail", "Diop;Awa;13/04/2008;d@b.org")
	wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
}

// However lists with and without references, and hands, follow each other, whoever once had a name and a contact is
// found by them: nobody is there twice, and the sibling who shares the address is left alone.
func TestProperty_NobodyTwiceHoweverFilesAndHandsAlternate(t *testing.T) {
	t.Parallel()
	r := &rounds{bench: setup(t)}
	const list, sibling = "nom;prénom;né le;e-mail;tél", "Diop;Sira;01/01/2009;a@b.org;"
	rapid.Check(t, func(t *rapid.T) {
		r.next(t)
		draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		now := func(reference string) string {
			return r.text(`select concat_ws(';', family_name, given_name, coalesce(to_char(birth_on, 'DD/MM/YYYY'), ''), email, phone)
  from candidate where campaign_id = $1 and reference = $2`, r.campaign.ID, reference)
		}
		r.bring(t, intake.Candidates, []string{list, sibling, "Diop;Awa;;a@b.org;"})
		known := []string{now("N000002")}
		for range rapid.IntRange(1, 10).Draw(t, "acts") {
			family, email, phone := draw("family", "Diop", "Diallo", "DIÔP"), draw("email", "a@b.org", "c@d.org"), draw("phone", "", "+22376123456")
			var lines []string
			switch draw("act", "hand", "hand", "list again", "list again", "list by reference", "birth date") {
			case "hand":
				_, err := intake.EditCandidate(r.t.Context(), r.db, r.actor, r.campaign.Slug, "N000002",
					intake.Correction{FamilyName: &family, Email: &email, Phone: &phone})
				if err != nil {
					t.Fatal(err)
				}
			case "list again":
				row := strings.Split(draw("row", known...), ";")
				switch says := draw("says", "all", "no birth date", "birth date only"); {
				case says == "no birth date":
					row[2] = ""
				case says == "birth date only" && row[2] != "":
					row[3], row[4] = "", ""
				}
				lines = []string{list, strings.Join(row, ";"), sibling}
			case "list by reference":
				lines = []string{"dossier;nom;prénom;e-mail;tél", "N000002;" + family + ";Awa;" + email + ";" + phone}
			case "birth date":
				family, _, _ = strings.Cut(now("N000002"), ";") // another name with another date is another person
				lines = []string{"dossier;nom;prénom;né le", "N000002;" + family + ";Awa;" + draw("born", "02/02/2008", "13/03/2008")}
			}
			if len(lines) > 0 {
				if done := r.bring(t, intake.Candidates, lines); done.Created+done.RejectedCount > 0 {
					t.Fatalf("%q: %s, rejected %s", lines, counts(done), said(done.Rejected))
				}
			}
			known = append(known, now("N000002"))
		}
		if n := r.count("candidate where campaign_id = $1", r.campaign.ID); n != 2 || now("N000001") != sibling {
			t.Fatalf("%d candidates, the sibling is %s", n, now("N000001"))
		}
	})
}
