package intake_test

import (
	"strings"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
)

// A name goes into the head of a message, onto paper and into lists: whatever way it comes in, it is one line
// without signs that nobody sees.
func TestNames_AreOneLineWhereverTheyComeFrom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const typed, kept = " Salle\r\nBcc: x@y.org\x1b\u202E\u200B  1 ", "Salle Bcc: x@y.org 1"
	org, err := account.AddOrganisation(t.Context(), b.db, b.actor, account.Organisation{
		Slug: "other", Name: typed, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	b.must(err)
	campaign, err := admission.AddCampaign(t.Context(), b.db, b.actor, b.org, admission.Campaign{Slug: "second", Name: typed}, nil)
	b.must(err)
	added, err := admission.AddStatus(t.Context(), b.db, b.actor, "second", admission.Status{Code: "a\nb", Label: typed, Advice: typed})
	b.must(err)
	edited, err := admission.EditStatus(t.Context(), b.db, b.actor, "second", "filed", func(s *admission.Status) { s.Label, s.Advice = typed, typed })
	b.must(err)
	exam, _, err := admission.AddExam(t.Context(), b.db, b.actor, "second", typed)
	b.must(err)
	login, err := account.AddLogin(t.Context(), b.db, b.actor, b.org, account.NewLogin{
		Email: "awa@example.org", Name: typed, Password: "a long pass phrase", Role: account.Manager,
	})
	b.must(err)
	_, err = seating.AddRoom(t.Context(), b.db, b.actor, b.org, seating.VenueCapacity{Centre: typed, Room: typed})
	b.must(err)
	b.must(admission.SetInstructions(t.Context(), b.db, b.actor, campaign, "Un stylo\x1b\r\nUne\u202E règle"))
	for what, got := range map[string]string{
		"organisation": org.Name, "campaign": campaign.Name, "status": added.Label, "advice": added.Advice, "edited status": edited.Label,
		"edited advice": edited.Advice, "exam": exam.Code, "login": login.Name,
		"room": b.text("select name from room"), "centre": b.text("select name from centre"),
		"stored campaign": b.text("select name from campaign where slug = 'second'"),
	} {
		if got != kept {
			t.Errorf("the %s is called %q", what, got)
		}
	}
	if added.Code != "a b" {
		t.Errorf("the code of the status is %q", added.Code)
	}
	if got := b.text("select instructions from campaign where slug = 'second'"); got != "Un stylo\nUne règle" {
		t.Errorf("the instructions are %q", got)
	}
	// The same room in a file is the same room.
	b.sittings(sittingHeader, "MATH;\"Salle\nBcc: x@y.org  1\";"+kept+";40;2126-10-05 08:00;10:00")
	if n := b.count("room"); n != 1 {
		t.Errorf("there are %d rooms", n)
	}
}

func TestNames_AtFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, code := range map[string]string{"\u200B \n": "organisation_name_missing", strings.Repeat("é", 201): "name_too_long"} {
		_, err := account.AddOrganisation(t.Context(), b.db, b.actor, account.Organisation{
			Slug: "other", Name: name, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		if !problem.Has(err, code) {
			t.Errorf("the organisation %.10q is answered with %v", name, err)
		}
		_, err = admission.AddCampaign(t.Context(), b.db, b.actor, b.org, admission.Campaign{Slug: "second", Name: name}, nil)
		if !problem.Has(err, strings.Replace(code, "organisation", "campaign", 1)) {
			t.Errorf("the campaign %.10q is answered with %v", name, err)
		}
		_, err = seating.AddRoom(t.Context(), b.db, b.actor, b.org, seating.VenueCapacity{Centre: "Campus", Room: name})
		if !problem.Has(err, strings.Replace(code, "organisation", "room", 1)) {
			t.Errorf("the room %.10q is answered with %v", name, err)
		}
	}
}
