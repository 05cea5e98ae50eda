package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
	"usher/internal/domain/sample"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
	"usher/internal/edge/web"
)

type demoCommand struct {
	NoServe bool   `name:"no-serve" help:"Print the report and end."`
	Listen  string `default:"127.0.0.1:8080" help:"Address on this machine."`
}

// Run makes the sample school, or finds the one that an earlier demo made. Every step may be done
// again, so a demo that was killed goes on where it was.
func (d demoCommand) Run(s *session) error {
	if !d.NoServe { // a port that is taken is better said before the work than after it
		listener, err := s.listen(d.Listen, nil)
		if err != nil {
			return err
		}
		defer func() { _ = listener.Close() }()
		if err := d.prepare(s); err != nil {
			return err
		}
		page, err := s.demoShop(urlOf(listener, nil))
		if err != nil {
			return err
		}
		password, err := s.demoLogin()
		if err != nil {
			return err
		}
		return s.serveDemo(listener, password, page)
	}
	if err := d.prepare(s); err != nil {
		return err
	}
	_, err := s.demoShop("http://" + d.Listen)
	return err
}

// serveDemo serves the sample. Its people do not exist: their messages go into a folder, whatever
// server the environment names.
func (s *session) serveDemo(listener net.Listener, password string, page *web.PayPage) error {
	dir, err := s.dataDir()
	if err != nil {
		return err
	}
	flags := channelFlags{Outbox: filepath.Join(dir, "outbox")}
	channels, err := flags.channels(nil)
	if err != nil {
		return err
	}
	s.sayChannels(flags)
	fmt.Fprintln(s.stderr, s.voice.Say("cli_demo_shop", map[string]any{"urls": demoAddresses(page.Home)}))
	return s.serve(serving{
		listener: listener, channels: channels, sentence: "cli_serving_demo", payPage: page,
		facts: map[string]any{"email": demoEmail, "password": password},
	})
}

// demoEmail is the login of the sample's manager.
const demoEmail = "demo@usher.example"

// demoLogin lets the newcomer in: each time the pages are served there is a login that works, with a password that nobody had
// before. The login and what it did stay.
func (s *session) demoLogin() (password string, err error) {
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, sample.Bamako(time.Now()).Organisation.Slug)
	if err != nil {
		return "", err
	}
	house, err := account.FindOrganisation(s.ctx, s.db, s.actor, sample.Kelenya(time.Now()).Organisation.Slug)
	if err != nil {
		return "", err
	}
	password = account.GeneratePassword()
	_, err = account.AddLogin(s.ctx, s.db, s.actor, org, account.NewLogin{
		Email: demoEmail, Name: s.voice.Say("cli_demo_name", nil), Password: password, Role: account.Manager,
	})
	switch {
	case problem.Has(err, "login_exists"):
		if _, err := account.SetPassword(s.ctx, s.db, s.actor, demoEmail, password); err != nil {
			return "", err
		}
		if _, err := account.Enable(s.ctx, s.db, s.actor, demoEmail); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	}
	for _, of := range []account.Organisation{org, house} { // the school, and whoever sells seats
		if _, err := account.SetRole(s.ctx, s.db, s.actor, of, demoEmail, account.Manager); err != nil {
			return "", err
		}
	}
	return password, nil
}

func (d demoCommand) prepare(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	campaign, err := s.sampleCampaign()
	if err != nil {
		return err
	}
	runID, err := convocation.LatestRun(s.ctx, s.db, s.actor, campaign.ID)
	if err == nil {
		report, err := convocation.ReadReport(s.ctx, s.db, s.actor, runID)
		if err != nil {
			return err
		}
		if report.State == run.StateDone {
			fmt.Fprintln(s.stderr, s.voice.Say("cli_demo_warm", map[string]any{"campaign": campaign.Slug, "usher": s.program()}))
			return s.showReport(runID)
		}
	} else if !problem.Has(err, "run_none") {
		return err
	}
	if err := s.loadSample(campaign); err != nil {
		return err
	}
	if runID, err = s.convoke(convocation.Target{Campaign: campaign.Slug}); err != nil {
		return err
	}
	return s.showReport(runID)
}

// sampleCampaign finds or adds the organisation and the campaign of the sample.
func (s *session) sampleCampaign() (admission.Campaign, error) {
	school := sample.Bamako(time.Now())
	c, err := admission.FindCampaign(s.ctx, s.db, s.actor, school.Campaign.Slug)
	if err == nil || !problem.Has(err, "campaign_unknown") {
		return c, err
	}
	o := school.Organisation
	org, err := account.AddOrganisation(s.ctx, s.db, s.actor, account.Organisation{
		Slug: o.Slug, Name: o.Name, Country: o.Country,
		TimeZone: o.Zone, Locale: o.Languages[0], Currency: o.Currency,
	})
	if problem.Has(err, "organisation_exists") {
		org, err = account.FindOrganisation(s.ctx, s.db, s.actor, o.Slug)
	}
	if err != nil {
		return c, err
	}
	statuses := make([]admission.Status, len(school.Statuses))
	for i, x := range school.Statuses {
		statuses[i] = admission.Status{Code: x.Code, Label: x.Label, Advice: x.ToDo, OpensPayment: x.OpensPayment}
	}
	c, err = admission.AddCampaign(s.ctx, s.db, s.actor, org, admission.Campaign{
		Slug: school.Campaign.Slug, Name: school.Campaign.Name, FeeMinor: school.Campaign.FeeMinor, Currency: o.Currency,
	}, statuses)
	if problem.Has(err, "campaign_exists") { // another demo was faster
		return admission.FindCampaign(s.ctx, s.db, s.actor, school.Campaign.Slug)
	}
	return c, err
}

// examsBegin is the Monday on which the exams of the sample begin: four weeks after the campaign
// was added, whenever the demo goes on.
func examsBegin(added time.Time) time.Time {
	day := added.AddDate(0, 0, 28)
	for day.Weekday() != time.Monday {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// loadSample brings the sample in the way a school would: files through the import, and what files
// do not carry by hand.
func (s *session) loadSample(c admission.Campaign) error {
	school := sample.Bamako(examsBegin(c.AddedAt))
	org, err := account.FindOrganisation(s.ctx, s.db, s.actor, school.Organisation.Slug)
	if err != nil {
		return err
	}
	steps := []struct {
		file  string
		bring importer
		write func(io.Writer) error
		after func() error
	}{
		{"seances.csv", intake.Sittings, school.WriteSittings, func() error { return s.sampleRules(org, c, school) }},
		{"candidats.csv", intake.Candidates, school.WriteCandidates, nil},
		{"paiements.csv", intake.Payments, school.WritePayments, func() error { return s.sampleDecisions(c, school) }},
		{"erreurs.csv", intake.Candidates, school.WriteMistakes, nil},
	}
	for _, step := range steps {
		if err := s.bringSample(c, step.file, step.bring, step.write); err != nil {
			return fmt.Errorf("import %s: %w", step.file, err)
		}
		if step.after != nil {
			if err := step.after(); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringSample imports one file of the sample, streamed from its writer.
func (s *session) bringSample(c admission.Campaign, file string, bring importer, write func(io.Writer) error) error {
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() { writer.CloseWithError(write(writer)) }()
	result, err := bring(ctx, s.db, s.actor, c.Slug, file, reader, intake.Options{})
	_ = reader.Close() // ends the writer when the import stopped early
	if err != nil {
		return err
	}
	facts := s.rowCounts(result)
	facts["file"], facts["run"], facts["usher"] = file, namedIf(result.RejectedCount > 0, result.RunID), s.program()
	fmt.Fprintln(s.stderr, s.voice.Say("cli_demo_imported", facts))
	return nil
}

// sampleRules says what the sittings file does not: how long the exam lasts, and places.
func (s *session) sampleRules(org account.Organisation, c admission.Campaign, school sample.School) error {
	minutes := school.Exam.DurationMinutes
	if _, err := admission.SetDuration(s.ctx, s.db, s.actor, c.Slug, school.Exam.Code, &minutes); err != nil {
		return err
	}
	return s.sampleVenues(org, school)
}

// sampleVenues says what the sittings file does not: capacities of centres and rooms, and plans.
func (s *session) sampleVenues(org account.Organisation, school sample.School) error {
	var capacities []seating.VenueCapacity
	for _, centre := range school.Centres {
		if centre.Capacity != nil {
			capacities = append(capacities, seating.VenueCapacity{Centre: centre.Name, Capacity: centre.Capacity})
		}
	}
	for _, room := range school.Rooms {
		if room.Capacity != nil {
			capacities = append(capacities, seating.VenueCapacity{Centre: room.Centre, Room: room.Name, Capacity: room.Capacity})
		}
	}
	if _, err := seating.SetVenueCapacities(s.ctx, s.db, s.actor, org, capacities...); err != nil {
		return err
	}
	for _, plan := range school.RoomPlans {
		seats := make([]venue.Seat, len(plan.Seats))
		for i, x := range plan.Seats {
			seats[i] = venue.Seat{Number: x.Number, Label: x.Label, Zone: x.Zone, Blocked: x.Blocked, Accessible: x.Accessible}
		}
		if err := seating.LayPlan(s.ctx, s.db, s.actor, org, plan.Centre, plan.Room, seats); err != nil {
			return err
		}
	}
	return nil
}

// sampleDecisions applies what came after the payments: reversals and changes of status. What was
// applied by a demo that was killed is not applied again.
func (s *session) sampleDecisions(c admission.Campaign, school sample.School) error {
	for _, reversal := range school.Reversals {
		_, err := payment.Reverse(s.ctx, s.db, s.actor, c.Slug, reversal.Reference, reversal.Receipt, reversal.Reason)
		if err != nil && !problem.Has(err, "payment_none_to_reverse") {
			return err
		}
	}
	for _, change := range school.StatusChanges {
		if _, _, err := admission.ChangeStatus(s.ctx, s.db, s.actor, c.Slug, change.Reference, change.Status); err != nil {
			return err
		}
	}
	return nil
}

// namedIf names a run in a sentence that speaks of it only if there is something to read there.
func namedIf(worthReading bool, runID int64) string {
	if !worthReading {
		return ""
	}
	return fmt.Sprint(runID)
}
