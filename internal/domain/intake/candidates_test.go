package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/intake"
	"usher/internal/domain/testdb"
)

const header = "dossier;nom;prénom;date de naissance;e-mail;tél.;statut;déposé le;centre;épreuves;besoins;langue"

func TestCandidates_Created(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00")
	r := b.candidates(header,
		`000417;N'Guessan;Agnès;11/04/2008;Agnes@Example.ORG;76 12 34 56;accepted;22/05/2026 08:30;campus;math | PHYS;fauteuil roulant;anglais`)
	wantCounts(t, r, "read 1 created 1 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	got := b.text(`select concat_ws(' ', k.reference, k.family_name, k.given_name, k.birth_on, k.email, k.phone, s.code, k.filed_at at time zone 'UTC',
       c.name, k.needs_accessible, k.needs = '', k.locale, k.identity_key is null,
       (select string_agg(e.code, '+' order by e.code) from registration g join exam e on e.id = g.exam_id where g.candidate_id = k.id))
  from candidate k join status s on s.id = k.status_id join centre c on c.id = k.centre_id`)
	want := "000417 N'Guessan Agnès 2008-04-11 Agnes@example.org +22376123456 accepted 2026-05-22 08:30:00 Campus t t en t MATH+PHYS"
	if got != want {
		t.Errorf("stored %s\nwant   %s", got, want)
	}
	if n := b.count("timeline where kind = 'candidate_imported' and candidate_id is not null and run_id = $1", r.RunID); n != 1 {
		t.Errorf("%d rows of the timeline", n)
	}
	if state := b.text("select state || ' ' || counters from run where id = $1", r.RunID); !strings.Contains(state, `done {"read": 1`) {
		t.Errorf("the run is %s", state)
	}
}

func TestCandidates_RowsAtFault(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	for _, c := range []struct{ row, want string }{
		{`1;;Awa;;;;;;;MATH;;`, "2:nom:name_missing"},
		{`;Diop;Awa;;;;;;;MATH;;`, "2:dossier:identity_missing"},
		{`1;Diop;Awa;;a@b.org, c@d.org;;;;;MATH;;`, "2:e-mail:email_several"},
		{`1;Diop;Awa;;awa.diop@example,org;;;;;MATH;;`, "2:e-mail:email_wrong"},
		{`1;Diop;Awa;;"a@b.org` + "\r\n" + `Bcc: c@d";;;;;MATH;;`, "2:e-mail:email_several"},
		{`1;Diop;Awa;;"a@b.org` + "\r\n" + `Bcc: all";;;;;MATH;;`, "2:e-mail:email_wrong"},
		{`1;Diop;Awa;;;2.23E+10;;;;MATH;;`, "2:tél.:digits_lost"},
		{`1;Diop;Awa;;;3,36E+10;;;;MATH;;`, "2:tél.:digits_lost"},
		{`1;Diop;Awa;;;76 12 34 56 / 66 12 34 56;;;;MATH;;`, "2:tél.:phone_several"},
		{`1;Diop;Awa;;;76 12;;;;MATH;;`, "2:tél.:phone_impossible"},
		{`1;Diop;Awa;;;aucun;;;;MATH;;`, "2:tél.:phone_wrong"},
		{`1;Diop;Awa;;;;peut-être;;;MATH;;`, "2:statut:status_unknown"},
		{`1;Diop;Awa;;;;;31/02/2026;;MATH;;`, "2:déposé le:no_such_day"},
		{`1;Diop;Awa;11.4.08;;;;;;MATH;;`, "2:date de naissance:two_digit_year"},
		{`1;Diop;Awa;22/04/2198;;;;;;MATH;;`, "2:date de naissance:birth_in_future"},
		{`1;Diop;Awa;;;;;;Tessalit;MATH;;`, "2:centre:centre_unknown"},
		{`1;Diop;Awa;;;;;;;MATH,CHIM;;`, "2:épreuves:exam_unknown"},
		{`1;Diop;Awa;;;;;;;;;`, "2:épreuves:exams_missing"},
		{`1;Diop;Awa;;;;;;;MATH;;klingon`, "2:langue:language_unknown"},
		{
			`1;Diop;Awa;;awa;;peut-être;;Tessalit;CHIM;;`,
			"2:e-mail:email_wrong 2:statut:status_unknown 2:centre:centre_unknown 2:épreuves:exam_unknown",
		},
		{`1;Diop;Awa;22/04/2198;;;peut-être;;;MATH;;`, "2:date de naissance:birth_in_future 2:statut:status_unknown"},
		{`1;Diop;Awa;;;;;;;MATH;;fr;extra`, "2:M:extra_cell"},
		{`1;` + strings.Repeat("x", 201) + `;Awa;;;;;;;MATH;;`, "2:nom:text_too_long"},
	} {
		r := b.candidates(header, c.row)
		wantSaid(t, r.Rejected, c.want)
	}
	if n := b.count("candidate"); n != 0 {
		t.Errorf("%d candidates were stored", n)
	}
}

// What many rows get wrong in the same way is counted once for each name that is unknown, and once for each other reason.
func TestCandidates_SameMistakesAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;e-mail;statut", "1;Ba;x;admis", "2;Diop;y;admis", "3;Sow;;admis", "4;Keïta;;refusé")
	got := ""
	for _, tally := range r.Tallies {
		got += fmt.Sprintf("%d×%d:%s:%s:%s ", tally.Count, tally.First.Line, tally.First.Column, tally.First.Reason, tally.First.Value)
	}
	if want := "3×2:statut:status_unknown:admis 2×2:e-mail:email_wrong:x 1×5:statut:status_unknown:refusé "; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	if len(r.Rejected) != 6 {
		t.Errorf("the list has %d mistakes", len(r.Rejected))
	}
}

// A bad row costs the others nothing, and every row is counted once.
func TestCandidates_PartSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;prénom;tél.", "1;Diop;Awa;76123456", "2;;Awa;", ";;;", "3;Fall;Ali;76123457", " ;\u00a0;;")
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 0 rejected 1 ignored 2")
	if row := r.Rejected[0]; row.Line != 3 || row.Facts["file"] != "candidats.csv" || row.Facts["line"] != 3 || row.Reference != "2" {
		t.Errorf("the row is named %+v", row)
	}
}

func TestCandidates_SiblingsShareAnAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;prénom;né le;e-mail;tél",
		"000417;Diop;Awa;11/04/2008;diop@example.org;76123456", "000418;Diop;Ali;11/04/2008;diop@example.org;76123456")
	wantCounts(t, r, "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")

	r = b.candidates("nom;prénom;né le;e-mail;tél", "Kone;Awa;11/04/2008;k@example.org;76123456", "Kone;Ali;11/04/2008;k@example.org;76123456",
		"Kone;Oumar;;k@example.org;76123456", "Kone;Ina;;k@example.org;76123456")
	wantCounts(t, r, "read 4 created 4 updated 0 unchanged 0 rejected 0 ignored 0")
	if refs := b.text("select string_agg(reference, ' ' order by reference) from candidate where family_name = 'Kone'"); refs != "N000001 N000002 N000003 N000004" {
		t.Errorf("references are %s", refs)
	}
}

func TestCandidates_SamePersonTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;prénom;né le;tél",
		"000416;Ba;Sira;12/04/2008;", // line 2
		"000417;Diop;Awa;11/04/2008;76123456",
		"000418;Fall;Ali;22/04/2008;",
		"000419;Ba;Ali;12/04/2008;",
		"000481;Fall;Ali;22/04/2008;",         // 6: perhaps line 4
		"000417;Diop;Awa;11/04/2008;76999999", // 7: conflicts with 3
		"000417;Diop;Awa;11/04/2008;76123456", // 8: a copy of 3
		"417;Diop;Ada;13/04/2008;",            // 9: zeros lost
	)
	wantCounts(t, r, "read 8 created 5 updated 0 unchanged 1 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "7::row_conflict 9:dossier:reference_zeros")
	wantSaid(t, r.Warnings, "6:nom:perhaps_same_person 8::row_copy")
	if first := r.Rejected[0].Facts["first_line"]; first != 3 {
		t.Errorf("the conflict names line %v", first)
	}
}

// Of two people whom a list gives one new reference, none is taken for its bearer; of one who exists, the row with their name is
// theirs. A name that is written otherwise is no other one.
func TestCandidates_ReferenceOfPeopleOfDifferentNames(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;prénom", "7;Diop;Awa")
	r := b.candidates("dossier;nom;prénom;tél",
		"1;Ba;Sira;", "2;Fall;Ali;", "3;Kone;Ina;", // 2, 3, 4
		"2;Diallo;Oumar;", "2;Fall;Ali;", // 5, 6: a copy
		"3;INA;Koné;76123456",      // 7: the same person, with a phone
		"7;Diop;Awa;", "7;Sy;Ada;", // 8, 9
		"2;Cissé;Moussa;") // 10
	wantSaid(t, r.Rejected, "3:dossier:reference_contradicted 5:dossier:reference_contradicted 6::copy_of_rejected 7::row_conflict "+
		"9:dossier:reference_of_another 10:dossier:reference_contradicted")
	wantCounts(t, r, "read 9 created 2 updated 0 unchanged 1 rejected 6 ignored 0")
	for i := range 2 {
		if said := i18n.Speak("en").Say("refusal_reference_contradicted", r.Rejected[i].Facts); !strings.Contains(said, "the reference 2 to people of different names, in the lines 3, 5, 10.") {
			t.Errorf("it says %s", said)
		}
	}
	if got := b.text("select string_agg(reference || family_name, ' ' order by reference) from candidate"); got != "1Ba 3Kone 7Diop" {
		t.Errorf("the candidates are %s", got)
	}
}

// Of rows that give a reference that exists to people of different names, those with the name of its bearer are taken, in whichever order
// they stand, and also where a contact is shared; where none has it, none is.
func TestCandidates_ReferenceOfTheBearerWhicheverRowIsFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stored, other string }{
		"another person":          {"7;Diop;Awa;76123456", "7;Sy;Ada;"},
		"a sibling with a phone":  {"7;Diop;Awa;76123456", "7;Diop;Moussa;76123456"},
		"a sibling, and no phone": {"7;Diop;Awa;", "7;Diop;Moussa;"},
	} {
		for _, rows := range [][]string{{c.other, c.stored}, {c.stored, c.other}, {c.other, c.stored, c.other}} {
			b := setup(t, "MATH")
			b.candidates("dossier;nom;prénom;tél", c.stored)
			r := b.candidates(append([]string{"dossier;nom;prénom;tél"}, rows...)...)
			if got := b.text("select string_agg(given_name, ' ') from candidate"); got != "Awa" || r.Unchanged != 1 || r.RejectedCount != len(rows)-1 {
				t.Errorf("%s, %v: %s is there, %+v", name, rows, got, r.Rejected)
			}
		}
		b := setup(t, "MATH")
		b.candidates("dossier;nom;prénom;tél", c.stored)
		r := b.candidates("dossier;nom;prénom;tél", c.other, "7;Koné;Ali;76123456")
		if got := b.text("select string_agg(given_name, ' ') from candidate"); got != "Awa" || r.RejectedCount != 2 {
			t.Errorf("%s, and nobody's: %s is there, %+v", name, got, r.Rejected)
		}
	}
}

// A copy of a row that was rejected is not counted as if it stood.
func TestCandidates_CopyOfRejected(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;statut", "1;Diop;quoi", "1;Diop;quoi")
	wantSaid(t, r.Rejected, "2:statut:status_unknown 3::copy_of_rejected")
}

func TestCandidates_LeadingZerosStored(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom", "000417;Diop", "77;Fall")
	r := b.candidates("dossier;nom", "417;Diop", "0077;Fall", "4170;Ba", "000417;Diop")
	wantCounts(t, r, "read 4 created 1 updated 0 unchanged 1 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "2:dossier:reference_zeros_stored 3:dossier:reference_zeros_stored")
	if other := r.Rejected[0].Facts["other"]; other != "000417" {
		t.Errorf("the sentence names %v", other)
	}
}

// Without a reference a row is recognised by name and birth date, else by name and contact, also
// when the candidate came with a reference or when the birth date is new.
func TestCandidates_WithoutReference(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;prénom;né le;e-mail", "000417;N'Guessan;Éric;11/04/2008;e@example.org", "000418;Diop;Awa;;awa@example.org",
		"000500;Twin;Ali;01/01/2008;", "000501;Twin;Ali;01/01/2008;")
	r := b.candidates("nom;prénom;né le;e-mail;tél", "NGUESSAN;ERIC;11/04/2008;e@example.org;", "Diop;Awa;;AWA@example.org;", "Kone;Ina;;;76123456",
		"Twin;Ali;01/01/2008;;")
	wantCounts(t, r, "read 4 created 1 updated 1 unchanged 1 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "5:reference:candidate_ambiguous")
	if r.Rejected[0].Reference != "" || b.count("candidate") != 5 {
		t.Errorf("%d candidates; rejected %+v", b.count("candidate"), r.Rejected)
	}
	// The birth date is found out later: the same person, now recognised by it, with and without.
	r = b.candidates("nom;prénom;né le;tél", "Kone;Ina;02/02/2008;76123456")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	r = b.candidates("nom;prénom;né le", "Koné;Ina;02/02/2008")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	r = b.candidates("nom;prénom;tél", "Koné;Ina;76 12 34 56")
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	// A new candidate under a reference, who looks like one without.
	r = b.candidates("dossier;nom;prénom;né le", "000900;Kone;Ina;02/02/2008")
	wantSaid(t, r.Warnings, "2:dossier:perhaps_same_person_stored")
}

// A file erases nothing: an absent column and an empty cell leave what is stored.
func TestCandidates_EmptyErasesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00")
	b.candidates(header, `1;Diop;Awa;11/04/2008;a@b.org;76123456;accepted;22/05/2026;Campus;MATH;pmr;es`)
	before := b.snapshot()
	wantCounts(t, b.candidates("dossier;nom", "1;Diop"), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	r := b.candidates(header, `1;Diop;;;;;;;;;;`)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:prénom:value_kept 2:date de naissance:value_kept 2:e-mail:value_kept 2:tél.:value_kept 2:centre:value_kept 2:besoins:value_kept")
	if b.snapshot() != before {
		t.Error("something was erased")
	}
	// What is said takes effect.
	wantCounts(t, b.candidates("dossier;nom;besoins", "1;Diop;aucun"), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	if b.text("select needs_accessible from candidate") != "false" {
		t.Error("“aucun” left the need as it was")
	}
}

func TestCandidates_FiledAt(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom", "3;Ba", "1;Diop", "2;Fall")
	if r.Found.FiledAt != intake.FiledAtRowOrder {
		t.Errorf("filed at: %s", r.Found.FiledAt)
	}
	order := func() string {
		return b.text("select string_agg(reference, '' order by filed_at) || ' ' || count(distinct filed_at) from candidate")
	}
	if got := order(); got != "312 3" {
		t.Errorf("filing order %s", got)
	}
	before := b.snapshot()
	wantCounts(t, b.candidates("dossier;nom", "1;Diop", "2;Fall", "3;Ba"), "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	if b.snapshot() != before {
		t.Error("importing again moved somebody")
	}
	r = b.candidates("dossier;nom;déposé le", "2;Fall;01/02/2026 10:00", "4;Ly;", "1;Diop;", "5;Sow;01/02/2126 10:00")
	wantCounts(t, r, "read 4 created 2 updated 1 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "3:déposé le:filed_at_missing 5:déposé le:filed_in_future")
	if got := order(); got != "23145 5" || r.Found.FiledAt != intake.FiledAtGiven {
		t.Errorf("filing order %s, %s", got, r.Found.FiledAt)
	}
}

// The order of dates is that of the file; a row that does not fit is refused, never guessed.
func TestCandidates_DateOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;né le", "1;Diop;11/04/2008", "2;Fall;22/04/2008", "3;Ba;04/13/2008", "4;Ly;2008-04-11", "5;Sow;11.4.08")
	wantSaid(t, r.Rejected, "4:né le:wrong_order 6:né le:two_digit_year")
	if got := b.text("select string_agg(birth_on::text, ' ' order by reference) from candidate"); got != "2008-04-11 2008-04-22 2008-04-11" {
		t.Errorf("born on %s", got)
	}
}

// One typing mistake does not turn a file round; a file that is month first is read so, and says so
// once a column.
func TestCandidates_MonthFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;né le", "1;Diop;11/04/2006", "2;Fall;12/05/2006", "3;Ba;04/25/2006")
	wantSaid(t, r.Rejected, "4:né le:wrong_order")
	wantSaid(t, r.Warnings, "")
	if got := i18n.Speak("fr").Say("refusal_wrong_order", r.Rejected[0].Facts); !strings.Contains(got, "(jour/mois/année)") {
		t.Errorf("the order is said as %s", got)
	}
	facts := b.text("select facts from refusal where reason = 'wrong_order'")
	if !strings.Contains(facts, `{"word": "date_order_day_first"}`) {
		t.Errorf("the report keeps %s", facts)
	}
	r = b.candidates("dossier;nom;né le;déposé le", "4;Diop;11/04/2006;01/02/2026", "5;Fall;12/25/2006;01/13/2026", "6;Ba;04/25/2006;01/14/2026")
	wantCounts(t, r, "read 3 created 3 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "3:né le:dates_month_first 3:déposé le:dates_month_first")
	if r.Warnings[0].Value != "12/25/2006" || !r.Found.MonthFirst {
		t.Errorf("the proof is %+v", r.Warnings[0])
	}
}

// A status is known by its label as people write it; where accents are all that tells two apart, they count.
func TestCandidates_StatusByItsLabel(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;statut", "1;Diop;depose", "2;Fall;  ADMIS à  CONCOURIR ", "3;Ba;rejete", "4;Sow;Accepté", "5;Ly;Admis-a-concourir")
	wantSaid(t, r.Rejected, "5:statut:status_unknown")
	want := "filed accepted rejected accepted"
	if got := b.text("select string_agg(s.code, ' ' order by k.reference) from candidate k join status s on s.id = k.status_id"); got != want {
		t.Errorf("the statuses are %s, want %s", got, want)
	}
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update status set label = case code when 'filed' then 'Archive' else 'Archivé' end where code in ('filed', 'rejected')")
		return err
	})
	r = b.candidates("dossier;nom;statut", "6;Diop;ARCHIVE", "7;Fall;archivé", "8;Ba;archivè")
	wantSaid(t, r.Rejected, "4:statut:status_unknown")
}

// A rejected row is named once, among the rejected ones: nothing of it was taken. What the row shows of
// the file as a whole is said all the same.
func TestCandidates_NoWarningsOfRejectedRows(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;e-mail;besoins;né le", "1;\"Di\nop\";awa;lunettes;11/04/2006", "2;\"Fa\nll\";a@b.org;lunettes;12/25/2006",
		"3;\"B\na\";inconnu;lunettes;04/25/2006", "4;Sow;;lunettes;05/06/2006", "4;Sow;;lunettes;05/06/2006", "5;Ka;awa;;", "5;Ka;awa;;")
	wantSaid(t, r.Rejected, "2:e-mail:email_wrong 6:e-mail:email_wrong 10:e-mail:email_wrong 11:e-mail:email_wrong")
	wantSaid(t, r.Warnings, "4:nom:line_break_joined 4:besoins:needs_by_hand 4:né le:dates_month_first 8:besoins:needs_by_hand 9:besoins:needs_by_hand 9::row_copy")
	if r.WarningCount != 6 {
		t.Errorf("%d warnings are counted", r.WarningCount)
	}
	r = b.candidates("dossier;nom;e-mail;né le", "7;Diop;awa;12/25/2006", "8;Fall;;04/25/2006")
	wantSaid(t, r.Warnings, "2:né le:dates_month_first")
}

// Every cell at fault of a row is named, and the row counts once.
func TestCandidates_SeveralMistakesInARow(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	r := b.candidates(header, `1;Diop;Awa;31/02/2008;awa;aucun;;;;MATH;;`, `2;Fall;Ali;;;;quoi;;Tessalit;CHIM;;`, `3;Ba;Ina;;;;;;;MATH;;`)
	wantCounts(t, r, "read 3 created 1 updated 0 unchanged 0 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "2:date de naissance:no_such_day 2:e-mail:email_wrong 2:tél.:phone_wrong "+
		"3:statut:status_unknown 3:centre:centre_unknown 3:épreuves:exam_unknown")
	if known := fmt.Sprint(r.Rejected[3].Facts["known"]); !strings.Contains(known, "accepted (Admis à concourir)") {
		t.Errorf("the statuses named are %s", known)
	}
}

func TestCandidates_EmailIsOneAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom;e-mail", "1;Diop;Awa.Diop@Example.org ")
	for _, same := range []string{"awa.diop@example.org", "awa.diop@example.org\u200f", "\u00a0awa.diop@example.org", "AWA.DIOP@EXAMPLE.ORG"} {
		wantCounts(t, b.candidates("dossier;nom;e-mail", "1;Diop;"+same), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	}
	if got := b.text("select email from candidate"); got != "Awa.Diop@example.org" {
		t.Errorf("stored %q", got)
	}
}

func TestCandidates_Needs(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("dossier;nom;besoins", "1;A;oui", "2;B;PMR", "3;C;silla de ruedas", "4;D;tiers temps", "5;E;fauteuil, tiers temps", "6;F;non")
	wantSaid(t, r.Warnings, "5:besoins:needs_by_hand 6:besoins:needs_by_hand")
	if got := b.text("select string_agg(reference || needs_accessible || needs, ' ' order by reference) from candidate"); got !=
		"1true 2true 3true 4falsetiers temps 5truefauteuil, tiers temps 6false" {
		t.Errorf("needs are %s", got)
	}
}

// seat gives somebody a seat of the first sitting, and seatAt of another.
func (b *bench) seat(reference string, number int) { b.seatAt("S001", reference, number) }

func (b *bench) seatAt(sitting, reference string, number int) {
	b.t.Helper()
	owner := testdb.Owner(b.t, b.url)
	_, err := owner.Exec(b.t.Context(), `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id)
select k.organisation_id, s.id, s.places, $2::int, lpad($2::int::text, 3, '0'), s.exam_id, k.id
  from candidate k, sitting s where k.reference = $1 and s.reference = $3`, reference, number, sitting)
	b.must(err)
}

// A file never un-seats anybody: it names who keeps a seat.
func TestCandidates_SeatedKeepTheirSeat(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	b.sittings("épreuve;centre;salle;début;fin", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00", "PHYS;Nord;A;2126-10-05 08:00;2126-10-05 10:00")
	b.candidates(header, "1;Diop;Awa;;;;accepted;;Campus;MATH|PHYS;;", "2;Fall;Ali;;;;accepted;;Campus;MATH|PHYS;;", "3;Ba;Sira;;;;accepted;;;MATH;;")
	b.seat("1", 7)
	r := b.candidates(header, "1;Diop;Awa;;;;rejected;;Nord;PHYS;;", "2;Fall;Ali;;;;rejected;;Nord;PHYS;;")
	wantCounts(t, r, "read 2 created 0 updated 2 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:épreuves:registration_kept 2:statut:seat_kept 2:centre:seat_kept 3:épreuves:registration_taken")
	if w := r.Warnings[1]; w.Name != "Diop Awa" || w.Facts["seat"] != "S001/007" {
		t.Errorf("the warning names %+v", w)
	}
	if n := b.count("claim where released_at is null"); n != 1 {
		t.Errorf("%d live claims", n)
	}
	got := b.text(`select string_agg(k.reference || e.code, ' ' order by k.reference, e.code) from registration g
  join candidate k on k.id = g.candidate_id join exam e on e.id = g.exam_id`)
	if got != "1MATH 1PHYS 2PHYS 3MATH" {
		t.Errorf("registrations are %s", got)
	}
	// A shorter file takes nobody away either.
	b.candidates("dossier;nom;épreuves", "2;Fall;PHYS")
	if n := b.count("candidate"); n != 3 {
		t.Errorf("%d candidates after a shorter file", n)
	}
}

// Whoever changes who may be seated tells a run that is under way; whoever changes a phone does not.
func TestCandidates_Revise(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	revision := func() string { return b.text("select revision from campaign") }
	b.candidates("dossier;nom;statut", "1;Diop;filed")
	created := revision()
	b.candidates("dossier;nom;tél", "1;Diop;76123456")
	if revision() != created {
		t.Error("a phone number revised the campaign")
	}
	b.candidates("dossier;nom;statut", "1;Diop;accepted")
	if revision() == created {
		t.Error("a status did not revise the campaign")
	}
}

func TestCandidates_WholeFileRefused(t *testing.T) {
	t.Parallel()
	take := func(b *bench, lines ...string) error {
		_, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(lines...), intake.Options{})
		return err
	}
	none := setup(t)
	none.refused(take(none, "dossier;nom", "1;Diop"), "import_exams_none")
	several := setup(t, "MATH", "PHYS")
	several.refused(take(several, "dossier;nom", "1;Diop"), "import_exams_column_missing")
	one := setup(t, "MATH")
	one.refused(take(one, "dossier;prénom", "1;Awa"), "missing_columns")
	one.refused(take(one, "nom;prénom", "Diop;Awa"), "import_identity_missing")
	one.refused(take(one, "dossier;nom;E-mail;e_mail", "1;Diop;;"), "repeated_column")
	one.refused(take(one), "empty_file")
	one.refused(take(one, "une seule colonne", "x"), "missing_columns")
	one.refused(take(one, "dossier;nom", `1;"Diop`), "quote_not_closed")
	one.refused(take(one, "dossier;nom", "1;Agn\xe8s", "2;Agnès"), "mixed_encodings")
	one.refused(take(one, "<html><table>"), "not_a_table")
	if n := one.count("candidate"); n != 0 {
		t.Errorf("%d candidates were stored", n)
	}
	_, err := intake.Candidates(t.Context(), one.db, one.actor, "autre", "c.csv", csv("dossier;nom", "1;Diop"), intake.Options{})
	if !problem.Has(err, "campaign_unknown") {
		t.Errorf("another campaign: %v", err)
	}
}

func TestCandidates_DryRunWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.candidates("dossier;nom", "1;Diop", "2;Fall")
	before, runs := b.snapshot(), b.count("run")
	lines := []string{"dossier;nom;né le", "1;Diop;02/02/2008", "2;Fall;", "3;Ba;01/01/2008", "3;Ba;01/01/2008", "4;;", "4;Ba;01/01/2008", "02;Ly;"}
	dry, err := intake.Candidates(t.Context(), b.db, b.actor, "concours", "c.csv", csv(lines...), intake.Options{DryRun: true})
	b.must(err)
	if b.snapshot() != before || b.count("run") != runs || dry.RunID != 0 {
		t.Error("the dry run wrote something")
	}
	wet := b.candidates(lines...)
	if counts(dry) != counts(wet) || said(dry.Rejected) != said(wet.Rejected) || said(dry.Warnings) != said(wet.Warnings) {
		t.Errorf("foreseen %s, %s, %s\nhappened %s, %s, %s", counts(dry), said(dry.Rejected), said(dry.Warnings),
			counts(wet), said(wet.Rejected), said(wet.Warnings))
	}
	wantCounts(t, wet, "read 7 created 2 updated 1 unchanged 2 rejected 2 ignored 0")
}

// One row that the database refuses costs the other rows of its chunk nothing.
func TestCandidates_OneRowAtFault(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	owner := testdb.Owner(t, b.url)
	_, err := owner.Exec(t.Context(), "alter table candidate add constraint no_ba check (family_name <> 'Ba')")
	b.must(err)
	r := b.candidates("dossier;nom", "1;Diop", "2;Ba", "3;Fall", "3;Fall", "2;Ba")
	wantCounts(t, r, "read 5 created 2 updated 0 unchanged 1 rejected 2 ignored 0")
	wantSaid(t, r.Rejected, "3::row_refused 6::copy_of_rejected")
	if order := b.text("select string_agg(reference, '' order by filed_at) from candidate"); order != "13" {
		t.Errorf("filing order %s", order)
	}
}

func TestCandidates_OtherOrganisation(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	stranger := b.actor
	stranger.Installation, stranger.OrganisationID, stranger.Role = false, b.org.ID+1, "manager"
	_, err := intake.Candidates(t.Context(), b.db, stranger, "concours", "c.csv", csv("dossier;nom", "1;Diop"), intake.Options{})
	if !problem.Has(err, "campaign_unknown") {
		t.Errorf("a stranger imports: %v", err)
	}
	_, err = intake.ExportCandidates(t.Context(), b.db, stranger, "concours", new(strings.Builder), sheet.CSV)
	if !problem.Has(err, "campaign_unknown") {
		t.Errorf("a stranger exports: %v", err)
	}
}

// The instant of filing decides who is seated first: one of an hour that the clocks show twice is
// taken as the first, with a warning that says how to write the second. So is the instant of a payment.
func TestCandidatesAndPayments_HourThatComesTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), "update organisation set time_zone = 'Europe/Paris'; update status set opens_payment = true")
	b.must(err)
	r := b.candidates("dossier;nom;déposé le", "1;Diop;26/10/2025 02:30", "2;Fall;2025-10-26 02:30+01:00", "3;Ba;26/10/2025", "4;Sy;30/03/2025 02:30")
	wantSaid(t, r.Warnings, "2:déposé le:time_comes_twice")
	wantSaid(t, r.Rejected, "5:déposé le:skipped_time")
	if got := r.Warnings[0].Facts; got["understood"] != "2025-10-26 02:30+02:00" || got["other"] != "2025-10-26 02:30+01:00" || got["zone"] != "Europe/Paris" {
		t.Errorf("it says %v", got)
	}
	if got := b.text("select string_agg(to_char(filed_at at time zone 'UTC', 'DD HH24:MI'), ', ' order by reference) from candidate"); got != "26 00:30, 26 01:30, 25 22:00" {
		t.Errorf("filed at %s", got)
	}
	r = b.payments("dossier;montant;date", "1;10000;26/10/2025 02:30", "2;10000;2025-10-26 02:30+01:00")
	wantSaid(t, r.Warnings, "2:date:time_comes_twice")
	wantCounts(t, r, "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
}
