package intake_test

import (
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/timeline"
)

// filed is a candidate with everything that can be corrected, and two centres.
func filed(t *testing.T) *bench {
	t.Helper()
	b := setup(t, "MATH")
	b.sittings("épreuve;centre;salle;début;fin;places", "MATH;Campus;A;2126-10-05 08:00;2126-10-05 10:00;10", "MATH;Lycée;B;2126-10-05 08:00;2126-10-05 10:00;10")
	b.candidates("dossier;nom;prénom;e-mail;tél;centre;besoins", "000417;Diop;Awa;awa@example.org;76123456;Campus;fauteuil, tiers temps")
	return b
}

func (b *bench) edit(correction intake.Correction) (intake.Corrected, error) {
	return intake.EditCandidate(b.t.Context(), b.db, b.actor, "concours", "000417", correction)
}

func (b *bench) revision() string { return b.text("select revision from campaign") }

const stored = `select concat_ws('|', k.family_name, k.given_name, k.email, k.phone, coalesce(c.name, 'any'), k.needs, k.needs_accessible, k.locale)
  from candidate k left join centre c on c.id = k.centre_id`

func TestEditCandidate_ClearsAndCorrects(t *testing.T) {
	t.Parallel()
	b := filed(t)
	done, err := b.edit(intake.Correction{Email: new(""), Phone: new("-"), Centre: new(""), Needs: new(" ")})
	b.must(err)
	if got := b.text(stored); got != "Diop|Awa|||any||f|fr" || len(done.Changes) != 4 {
		t.Errorf("stored %s after %v", got, done.Changes)
	}
	done, err = b.edit(intake.Correction{
		FamilyName: new("Dïop"), GivenName: new("Awa B."), Email: new("B@Example.org"), Phone: new("66 12 34 56"),
		Centre: new(" LYCÉE "), Needs: new("accessible"), Locale: new("anglais"),
	})
	b.must(err)
	if got := b.text(stored); got != "Dïop|Awa B.|B@example.org|+22366123456|Lycée||t|en" || len(done.Changes) != 7 {
		t.Errorf("stored %s after %v", got, done.Changes)
	}
	want := `{"email": "", "needs": "", "phone": "", "centre": "", "locale": "fr", "given_name": "Awa", "family_name": "Diop"}`
	if got := b.text("select facts->'before' from timeline where kind = 'candidate_edited' order by id desc limit 1"); got != want {
		t.Errorf("the timeline says that it was %s", got)
	}
	revision, entries := b.revision(), b.count("timeline where kind = 'candidate_edited'")
	if done, err = b.edit(intake.Correction{Email: new("B@example.org"), Centre: new("lycée")}); err != nil || len(done.Changes) != 0 {
		t.Errorf("the same again changes %v, %v", done.Changes, err)
	}
	if b.revision() != revision || b.count("timeline where kind = 'candidate_edited'") != entries {
		t.Error("the same again leaves a trace")
	}
}

func TestEditCandidate_Refused(t *testing.T) {
	t.Parallel()
	b := filed(t)
	before := b.snapshot()
	for code, correction := range map[string]intake.Correction{
		"candidate_edit_nothing":     {},
		"candidate_email_wrong":      {Email: new("a@b.org, c@d.org")},
		"candidate_phone_wrong":      {Phone: new("aucun")},
		"candidate_centre_unknown":   {Centre: new("Tessalit")},
		"candidate_language_unknown": {Locale: new("")},
		"candidate_name_missing":     {Email: new(""), FamilyName: new("-")},
	} {
		_, err := b.edit(correction)
		p, _ := problem.Of(err)
		if p == nil || p.Code != code {
			t.Errorf("%v, want %s", err, code)
			continue
		}
		b.speaks("problem_"+code, p.Facts)
		if known, _ := p.Facts["known"].([]string); code == "candidate_centre_unknown" && len(known) != 2 {
			t.Errorf("the centres named are %v", known)
		}
	}
	if b.snapshot() != before {
		t.Error("a refusal changed something")
	}
}

// A seat is kept, and who changes the centre is told; the run that is under way looks again.
func TestEditCandidate_SeatKept(t *testing.T) {
	t.Parallel()
	b := filed(t)
	b.seat("000417", 7)
	revision := b.revision()
	done, err := b.edit(intake.Correction{Email: new("")})
	if err != nil || done.Seat != "" || b.revision() != revision {
		t.Errorf("an e-mail moves seats: %q, %v", done.Seat, err)
	}
	done, err = b.edit(intake.Correction{Centre: new("Lycée")})
	if err != nil || done.Seat != "S001/007" || b.revision() == revision {
		t.Errorf("the seat kept is %q, revision %s, %v", done.Seat, b.revision(), err)
	}
	if n := b.count("claim where released_at is null"); n != 1 {
		t.Errorf("%d seats", n)
	}
}

// A candidate who came without a reference is recognised by the corrected name.
func TestEditCandidate_RecognisedAfterwards(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.candidates("nom;prénom;né le", "Kone;Ina;22/02/2008", "Kone;Ana;22/02/2008")
	if r.Generated != 2 {
		t.Errorf("%d references were generated", r.Generated)
	}
	_, err := intake.EditCandidate(t.Context(), b.db, b.actor, "concours", "N000001", intake.Correction{FamilyName: new("Konaté")})
	b.must(err)
	r = b.candidates("nom;prénom;né le", "Konaté;Ina;22/02/2008")
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	_, err = intake.EditCandidate(t.Context(), b.db, b.actor, "concours", "N000002", intake.Correction{FamilyName: new("Konate"), GivenName: new("Ina")})
	if !problem.Has(err, "candidate_identity_taken") {
		t.Errorf("two people of one identity: %v", err)
	}
}

// Who acts for another organisation finds no such campaign, and a campaign only its own candidates.
func TestEditCandidate_OtherOrganisation(t *testing.T) {
	t.Parallel()
	b := filed(t)
	stranger := timeline.Actor{Name: "stranger", OrganisationID: b.org.ID + 1, Role: account.Manager}
	_, err := intake.EditCandidate(t.Context(), b.db, stranger, "concours", "000417", intake.Correction{Email: new("")})
	if !problem.Has(err, "campaign_unknown") {
		t.Errorf("a stranger is answered %v", err)
	}
	_, err = admission.AddCampaign(t.Context(), b.db, b.actor, b.org, admission.Campaign{Slug: "autre", Name: "Autre"}, nil)
	b.must(err)
	_, err = intake.EditCandidate(t.Context(), b.db, b.actor, "autre", "000417", intake.Correction{Email: new("")})
	if !problem.Has(err, "candidate_unknown") {
		t.Errorf("another campaign answers %v", err)
	}
	if got := b.text("select email from candidate"); got != "awa@example.org" {
		t.Errorf("the e-mail is %q", got)
	}
}
