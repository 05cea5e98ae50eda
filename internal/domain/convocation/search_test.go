package convocation

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// searched is a campaign whose candidates are hard to type, and another organisation's with the same names.
func searched(t *testing.T) (s *school, references func(Wanted) []string) {
	t.Helper()
	s = newSchool(t)
	one := func(reference, family, given, email, phone string) {
		s.must(s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `
insert into candidate (organisation_id, campaign_id, reference, family_name, given_name, email, phone, locale, status_id, filed_at)
select $1, $2, $3, $4, $5, $6, $7, 'fr', min(id), clock() from status where organisation_id = $1 and campaign_id = $2`,
				s.org.ID, s.campaign.ID, reference, family, given, email, phone)
			return err
		}))
	}
	one("2026-00147", "TRAORÉ", "Awa", "awa.traore@ecole.example", "+22376123456")
	one("2026-00148", "Traoré", "Modibo", "m@ecole.example", "+33612345678")
	one("B-7", "Kɔ̀ɔ̀nyɛ́", "Ŋaɲa", "", "")
	one("B-8", "N’Diaye", "Fatou-Bintou", "", "")
	one("B-9", "Coulibaly", "Awa", "", "")
	one("B-10", "Keïta", "", "", "")
	one("B-11", "100%_Sûr", "Jean", "", "")
	return s, func(wanted Wanted) []string {
		t.Helper()
		found, err := Search(t.Context(), s.db, s.actor, s.campaign.Slug, wanted)
		s.must(err)
		names := make([]string, len(found.Candidates))
		for i, one := range found.Candidates {
			names[i] = one.Reference
		}
		if found.Count != len(names) {
			t.Errorf("%q: counts %d of %d", wanted.Text, found.Count, len(names))
		}
		return names
	}
}

func TestSearch_ByAnySpelling(t *testing.T) {
	t.Parallel()
	_, references := searched(t)
	for text, want := range map[string]string{
		"traore": "2026-00147 2026-00148", "TRAORÉ": "2026-00147 2026-00148", "Awa Traoré": "2026-00147", "traoré  awa": "2026-00147", "trao": "2026-00147 2026-00148",
		"awa": "B-9 2026-00147", "koonye": "B-7", "kɔɔnyɛ": "B-7", "KƆƆNYƐ": "B-7", "nana": "B-7", "ndiaye": "B-8", "n'diaye": "B-8", "N Diaye": "B-8", "fatou bintou": "B-8", "bintou": "B-8",
		"2026-00147": "2026-00147", "00147": "2026-00147", "147": "2026-00147", "b-7": "B-7", "Ｂ-７": "B-7",
		"76 12 34 56": "2026-00147", "+223 76123456": "2026-00147", "0022376123456": "2026-00147", "06 12 34 56 78": "2026-00148", "awa.traore@": "2026-00147", "awa.traore": "2026-00147", "traore@ecole": "2026-00147",
		"traoer": "2026-00147 2026-00148", "kieta": "B-10", "coulibali": "B-9", "coulibally awa": "B-9", "traorre modibo": "2026-00148",
		"oulibaly": "B-9", "libaly": "", "x": "", "%": "", "_": "", "100%": "B-11", "zzz": "", "awa fatou": "", `\`: "", "'": "",
	} {
		if got := strings.Join(references(Wanted{Text: text}), " "); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
}

// Who is found with a slip comes after whom the text is the name of, and says so.
func TestSearch_SlipsComeLast(t *testing.T) {
	t.Parallel()
	s, references := searched(t)
	s.must(s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update candidate set family_name = 'Keta' where organisation_id = $1 and reference = 'B-9'`, s.org.ID)
		return err
	}))
	if got := strings.Join(references(Wanted{Text: "keta"}), " "); got != "B-9 B-10" {
		t.Errorf("keta finds %q", got)
	}
	found, err := Search(t.Context(), s.db, s.actor, s.campaign.Slug, Wanted{Text: "keta"})
	s.must(err)
	if found.Candidates[0].Alike || !found.Candidates[1].Alike {
		t.Errorf("%+v", found.Candidates)
	}
	if found, err = Search(t.Context(), s.db, s.actor, s.campaign.Slug, Wanted{Text: "x"}); err != nil || !found.TooShort {
		t.Errorf("one letter: %+v, %v", found, err)
	}
}

// Page after page names everybody once, with a text and without.
func TestSearch_PageAfterPage(t *testing.T) {
	t.Parallel()
	s, _ := searched(t)
	for text, want := range map[string]string{"": "2026-00147 2026-00148 B-7 B-8 B-9 B-10 B-11", "a": "", "20": "", "traore": "2026-00147 2026-00148", "awa": "B-9 2026-00147"} {
		var got []string
		wanted := Wanted{Text: text, Limit: 1}
		for range 9 {
			found, err := Search(t.Context(), s.db, s.actor, s.campaign.Slug, wanted)
			s.must(err)
			for _, one := range found.Candidates {
				got = append(got, one.Reference)
				wanted.After = one.Reference
			}
			if !found.More {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q lists %q, want %q", text, got, want)
		}
	}
}

func TestSearch_WhereTheyStand(t *testing.T) {
	t.Parallel()
	s, references := searched(t)
	s.must(s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update candidate set fee_waived_at = clock(), fee_waived_by = 'a', fee_waived_reason = 'b' where organisation_id = $1 and reference = 'B-7'`, s.org.ID)
		return err
	}))
	_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "B-8", "rejected")
	s.must(err)
	for _, c := range []struct {
		wanted Wanted
		want   string
	}{
		{Wanted{Paid: Yes}, "B-7"},
		{Wanted{Paid: No, Text: "koonye"}, ""},
		{Wanted{Paid: Yes, Text: "koonye"}, "B-7"},
		{Wanted{Status: "rejected"}, "B-8"},
		{Wanted{Status: "rejected", Text: "traore"}, ""},
		{Wanted{Seated: Yes}, ""},
		{Wanted{Seated: No, Text: "koonye"}, "B-7"},
		{Wanted{Told: Yes}, ""},
		{Wanted{Told: No}, ""},
	} {
		if got := strings.Join(references(c.wanted), " "); got != c.want {
			t.Errorf("%+v finds %q, want %q", c.wanted, got, c.want)
		}
	}
	if _, err := Search(t.Context(), s.db, s.actor, s.campaign.Slug, Wanted{Status: "no such"}); !problem.Has(err, "status_unknown") {
		t.Errorf("an unknown status: %v", err)
	}
	if _, err := Search(t.Context(), s.db, s.actor, s.campaign.Slug, Wanted{After: "no such"}); !problem.Has(err, "candidate_unknown") {
		t.Errorf("after nobody: %v", err)
	}
}

// Addresses are for those who may read them; and the function that sees over the fence shows nobody of an organisation that the
// transaction has not named, and nothing at all to one that has named none.
func TestSearch_WithinTheOrganisation(t *testing.T) {
	t.Parallel()
	s, _ := searched(t)
	door := timeline.Actor{OrganisationID: s.org.ID, Role: account.Door, Name: "d"}
	found, err := Search(t.Context(), s.db, door, s.campaign.Slug, Wanted{Text: "traore"})
	s.must(err)
	if len(found.Candidates) != 2 || found.Candidates[0].Email != "" || found.Candidates[0].Phone != "" {
		t.Errorf("at a door: %+v", found.Candidates)
	}
	agent := timeline.Actor{OrganisationID: s.org.ID, Role: account.Agent, Name: "a"}
	if found, err = Search(t.Context(), s.db, agent, s.campaign.Slug, Wanted{Text: "traore awa"}); err != nil || found.Candidates[0].Phone != "+22376123456" {
		t.Errorf("an agent: %+v, %v", found.Candidates, err)
	}
	for _, organisations := range [][]int64{nil, {s.org.ID + 1}, {s.org.ID}} {
		var n int
		s.must(s.db.Tx(t.Context(), organisations, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `select count(*) from find_candidates($1, array['traore'], false, null, null, 10)`, s.campaign.ID).Scan(&n)
		}))
		if want := 2 * len(slices.DeleteFunc(organisations, func(id int64) bool { return id != s.org.ID })); n != want {
			t.Errorf("with %v named, it shows %d, want %d", organisations, n, want)
		}
	}
}
