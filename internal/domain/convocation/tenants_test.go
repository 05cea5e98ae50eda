package convocation

import (
	"context"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

// Every entry answers somebody of another organisation as if the thing did not exist.
func TestOtherOrganisation_FindsNothingAtAnyEntry(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(3, person{})
	runID := s.convoke().Run
	other := foundSchool(t, s.db, s.url, "lycee", "MATH")
	stranger := timeline.Actor{Name: "stranger", OrganisationID: other.org.ID}
	member := timeline.Actor{Name: "member", OrganisationID: s.org.ID}
	before := s.digest()

	type at struct {
		actor    timeline.Actor
		campaign string
		run      int64
	}
	entries := map[string]func(context.Context, at) error{
		"Convoke": func(ctx context.Context, at at) error {
			_, err := Convoke(ctx, s.db, at.actor, Target{Campaign: at.campaign}, Options{})
			return err
		},
		"Try": func(ctx context.Context, at at) error {
			_, err := Try(ctx, s.db, at.actor, Target{Campaign: at.campaign})
			return err
		},
		"Foresee": func(ctx context.Context, at at) error {
			_, err := Foresee(ctx, s.db, at.actor, Target{Campaign: at.campaign})
			return err
		},
		"Explain": func(ctx context.Context, at at) error {
			_, err := Explain(ctx, s.db, at.actor, at.campaign, "C0001")
			return err
		},
		"Seat": func(ctx context.Context, at at) error {
			_, err := Seat(ctx, s.db, at.actor, at.campaign, "C0001", "S001", "5")
			return err
		},
		"Move": func(ctx context.Context, at at) error {
			_, err := Move(ctx, s.db, at.actor, at.campaign, "C0001", "", "S001", "5")
			return err
		},
		"Swap": func(ctx context.Context, at at) error {
			_, err := Swap(ctx, s.db, at.actor, at.campaign, "", "C0001", "C0002")
			return err
		},
		"Release": func(ctx context.Context, at at) error {
			_, err := Release(ctx, s.db, at.actor, at.campaign, "C0001", "", "because")
			return err
		},
		"MoveSitting": func(ctx context.Context, at at) error {
			_, _, err := MoveSitting(ctx, s.db, at.actor, at.campaign, "S001", SittingMove{StartsAt: s.opening.AddDate(0, 0, 1)})
			return err
		},
		"SetCapacity": func(ctx context.Context, at at) error {
			_, err := seating.SetCapacity(ctx, s.db, at.actor, at.campaign, "S001", places(9))
			return err
		},
		"ChangeStatus": func(ctx context.Context, at at) error {
			_, _, err := admission.ChangeStatus(ctx, s.db, at.actor, at.campaign, "C0001", "rejected")
			return err
		},
		"WaiveFee": func(ctx context.Context, at at) error {
			_, err := admission.WaiveFee(ctx, s.db, at.actor, at.campaign, "C0001", "because")
			return err
		},
		"EditStatus": func(ctx context.Context, at at) error {
			_, err := admission.EditStatus(ctx, s.db, at.actor, at.campaign, "accepted", func(s *admission.Status) { s.Label = "Stolen" })
			return err
		},
		"Record": func(ctx context.Context, at at) error {
			_, err := payment.Record(ctx, s.db, at.actor, at.campaign, "C0001", payment.Payment{AmountMinor: 1, Method: "cash", IdempotencyKey: "k"})
			return err
		},
		"Reverse": func(ctx context.Context, at at) error {
			_, err := payment.Reverse(ctx, s.db, at.actor, at.campaign, "C0001", "", "because")
			return err
		},
		"ReadReport": func(ctx context.Context, at at) error {
			_, err := ReadReport(ctx, s.db, at.actor, at.run)
			return err
		},
		"Refusals": func(ctx context.Context, at at) error {
			_, err := Refusals(ctx, s.db, at.actor, at.run, run.ListRefused, 0, 10)
			return err
		},
		"EachRefusal": func(ctx context.Context, at at) error {
			return run.EachRefusal(ctx, s.db, at.actor, at.run, run.ListRefused, func(run.Refusal) error { return nil })
		},
		"LatestRun": func(ctx context.Context, at at) error {
			campaign := s.campaign.ID
			if at.campaign != s.campaign.Slug {
				campaign = 999_999
			}
			_, err := LatestRun(ctx, s.db, at.actor, campaign)
			return err
		},
		"SetVenueCapacities": func(ctx context.Context, at at) error {
			_, err := seating.SetVenueCapacities(ctx, s.db, at.actor, s.org, seating.VenueCapacity{Centre: "Badalabougou", Capacity: places(9)})
			return err
		},
		"LayPlan": func(ctx context.Context, at at) error {
			return seating.LayPlan(ctx, s.db, at.actor, s.org, "Badalabougou", "Salle 1", []venue.Seat{{Number: 1, Label: "A-1"}})
		},
		"AddCampaign": func(ctx context.Context, at at) error {
			_, err := admission.AddCampaign(ctx, s.db, at.actor, s.org, admission.Campaign{Slug: "more", Name: "More"}, nil)
			return err
		},
	}
	for name, entry := range entries {
		theirs := entry(t.Context(), at{stranger, s.campaign.Slug, runID})
		p, ok := problem.Of(theirs)
		if !ok || p.Kind != problem.KindNotFound {
			t.Errorf("%s: a stranger got %v, want not found", name, theirs)
			continue
		}
		if name == "SetVenueCapacities" || name == "LayPlan" || name == "AddCampaign" {
			continue // the organisation itself was looked up before: nothing unknown can be named
		}
		unknown := entry(t.Context(), at{member, "no-such-campaign", 999_999})
		if !problem.Has(unknown, p.Code) {
			t.Errorf("%s: a stranger got %s, and what does not exist answers %v", name, p.Code, unknown)
		}
	}
	if after := s.digest(); after != before {
		t.Error("a stranger changed something")
	}
	runs, err := Runs(t.Context(), s.db, stranger)
	s.must(err)
	overviews, err := Overviews(t.Context(), s.db, stranger)
	s.must(err)
	if len(runs) != 0 || len(overviews) != 1 || overviews[0].Slug != other.campaign.Slug {
		t.Errorf("a stranger sees runs %v and campaigns %v", runs, overviews)
	}
	// The same entries do something for a member: so the refusals above are not for another reason.
	_, err = Explain(t.Context(), s.db, member, s.campaign.Slug, "C0001")
	s.must(err)
	_, err = ReadReport(t.Context(), s.db, member, runID)
	s.must(err)
}

// digest is the state of everything that acts change, with the transactions that wrote it.
func (s *school) digest() string {
	s.t.Helper()
	var digest string
	conn := s.ownerConn()
	defer func() { _ = conn.Close(context.Background()) }()
	err := conn.QueryRow(s.t.Context(), `
select md5(string_agg(line, '|' order by line)) from (
  select 'claim ' || xmin || ' ' || k::text from claim k union all
  select 'notice ' || xmin || ' ' || n::text from notice n union all
  select 'timeline ' || xmin || ' ' || t::text from timeline t where organisation_id = $1 union all
  select 'candidate ' || xmin || ' ' || c::text from candidate c where organisation_id = $1 union all
  select 'payment ' || xmin || ' ' || p::text from payment p union all
  select 'sitting ' || xmin || ' ' || s::text from sitting s union all
  select 'status ' || xmin || ' ' || s::text from status s where organisation_id = $1 union all
  select 'run ' || xmin || ' ' || r::text from run r union all
  select 'refusal ' || xmin || ' ' || r::text from refusal r union all
  select 'room ' || xmin || ' ' || r::text from room r union all
  select 'centre ' || xmin || ' ' || c::text from centre c union all
  select 'campaign ' || xmin || ' ' || c::text from campaign c where organisation_id = $1) lines(line)`, s.org.ID).Scan(&digest)
	s.must(err)
	return digest
}
