package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
)

type convokeCommand struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Exam     string `help:"Code of the exam; else all of the campaign."`
	Sitting  string `help:"Reference of a sitting; else all to come."`
	DryRun   bool   `name:"dry-run" help:"Show who would be seated; write nothing at all."`
}

func (c convokeCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	target := convocation.Target{Campaign: c.Campaign, Exam: c.Exam, Sitting: c.Sitting}
	if c.DryRun {
		return c.try(s, target)
	}
	runID, err := s.convoke(target)
	if err != nil {
		return err
	}
	return s.showReport(runID)
}

// convoke says how many messages a run will send at most, and runs it.
func (s *session) convoke(target convocation.Target) (int64, error) {
	forecast, err := convocation.Foresee(s.ctx, s.db, s.actor, target)
	if err != nil {
		return 0, err
	}
	facts := forecastFacts(forecast)
	c, err := admission.FindCampaign(s.ctx, s.db, s.actor, target.Campaign)
	if err != nil {
		return 0, err
	}
	if c.NoticesWait {
		facts["waits"] = c.Slug
	}
	fmt.Fprintln(s.stderr, s.voice.Say("cli_forecast", facts))
	bar := s.progress("cli_convoking")
	runID, err := convocation.Convoke(s.ctx, s.db, s.actor, target, convocation.Options{
		Total:    forecast.Seats,
		Progress: func(p convocation.Progress) { bar.to(p.Done, p.Total) },
	})
	bar.end()
	return runID, err
}

func forecastFacts(f convocation.Forecast) map[string]any {
	return map[string]any{"eligible": f.Seats, "emails": f.Emails, "sms": f.SMS}
}

func (c convokeCommand) try(s *session, target convocation.Target) error {
	if s.line.JSON {
		return s.answerTrial(target)
	}
	var seated []table.Row
	var refused []run.Refusal
	missing := 0
	forecast, err := convocation.Rehearse(s.ctx, s.db, s.actor, target, func(turn convocation.Turn) error {
		switch p := turn.Seat; {
		case p == nil:
			if missing++; len(refused) < mostPrinted {
				refused = append(refused, *turn.Refusal)
			}
		case len(seated) < mostPrinted:
			seated = append(seated, table.Row{p.Reference, p.Name, p.Sitting.Reference, p.Sitting.Place(), s.voice.Instant(p.Sitting.Begins()), orDash(p.Seat)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.say("cli_dry_run", nil)
	if forecast.Nothing() && missing == 0 {
		s.say("cli_would_seat_nobody", map[string]any{"campaign": c.Campaign})
		return nil
	}
	s.say("cli_would_seat", map[string]any{
		"seated": forecast.Seats, "refused": missing, "emails": forecast.Emails, "sms": forecast.SMS,
	})
	if len(seated) > 0 {
		s.table([]string{"cli_candidate", "cli_name", "cli_sitting", "cli_room", "cli_starts_at", "cli_seat"}, seated)
	}
	s.sayMore(forecast.Seats-len(seated), 0)
	s.printRefused("cli_list_refused", refused, missing, 0)
	return nil
}

// answerTrial prints a trial as JSON while it goes on: once through everybody for those who would be
// seated, once for those who would be refused.
func (s *session) answerTrial(target convocation.Target) error {
	type proposed struct {
		Candidate string    `json:"candidate"`
		Name      string    `json:"name"`
		Sitting   string    `json:"sitting"`
		Room      string    `json:"room"`
		StartsAt  time.Time `json:"starts_at"`
		Seat      string    `json:"seat"`
	}
	return s.answerObject(func(o *object) error {
		if err := errors.Join(o.field("dry_run", true), o.field("campaign", target.Campaign)); err != nil {
			return err
		}
		seated, refused := o.begin("seated"), o.begin("refused")
		forecast, err := convocation.Rehearse(s.ctx, s.db, s.actor, target, func(turn convocation.Turn) error {
			if p := turn.Seat; p != nil {
				return seated.add(proposed{p.Reference, p.Name, p.Sitting.Reference, p.Sitting.Place(), p.Sitting.StartsAt, p.Seat})
			}
			return nil
		}, func(turn convocation.Turn) error {
			if turn.Refusal == nil {
				return nil
			}
			if err := seated.end(); err != nil {
				return err
			}
			return refused.add(s.refusedRow(*turn.Refusal))
		})
		return errors.Join(err, seated.end(), refused.end(), o.field("would_seat", forecast.Seats),
			o.field("emails", forecast.Emails), o.field("sms", forecast.SMS))
	})
}

type refusedRow struct {
	Candidate string `json:"candidate"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Sentence  string `json:"sentence"`
}

func (s *session) refusedRow(r run.Refusal) refusedRow {
	return refusedRow{r.Reference, r.Name, r.Reason, s.refusal(r)}
}

// refusal is the sentence of a refusal: of a rule of the run, or of one that the item itself met.
func (s *session) refusal(r run.Refusal) string {
	if code, ok := r.Facts[run.FactProblem].(string); ok && r.Reason == run.ReasonItemRefused {
		return s.voice.Sentence(problem.Refused(code, r.Facts))
	}
	return s.voice.Say("refusal_"+r.Reason, r.Facts)
}

// printRefused prints a part of a list by name, and says how many more there are and where.
func (s *session) printRefused(title string, refusals []run.Refusal, count int, runID int64) {
	if count == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.say(title, map[string]any{"count": count})
	rows := make([]table.Row, len(refusals))
	for i, r := range refusals {
		rows[i] = table.Row{r.Reference, r.Name, s.refusal(r)}
	}
	s.table([]string{"cli_candidate", "cli_name", "cli_reason"}, rows)
	s.sayMore(count-len(refusals), runID)
}

// sayMore says how many rows were not printed, and how to get them; a trial keeps none.
func (s *session) sayMore(more int, runID int64) {
	switch {
	case more <= 0:
	case runID == 0:
		s.say("cli_more", map[string]any{"count": more})
	default:
		s.say("cli_more_rows", map[string]any{"count": more, "run": fmt.Sprint(runID), "usher": s.program()})
	}
}

// reportLists are the lists of a report in the order in which somebody must read them.
var reportLists = []run.List{run.ListRefused, run.ListAttention, run.ListNotCalled, run.ListNotReachable}

// showReport prints the report of a run, for people or as JSON.
func (s *session) showReport(runID int64) error {
	report, err := convocation.ReadReport(s.ctx, s.db, s.actor, runID)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answerReport(report)
	}
	title := map[string]any{
		"run": fmt.Sprint(report.Run), "campaign": report.CampaignName, "actor": account.ActorWords(s.voice, report.Actor),
		"started_at": i18n.Instant{At: report.StartedAt, Zone: report.Zone},
	}
	if hasDuration(report) {
		title["seconds"] = s.voice.Decimal(report.Duration.Seconds(), 1)
	}
	fmt.Fprintln(s.stdout)
	s.say("cli_report_title", title)
	if report.State != run.StateDone {
		s.say("cli_state_"+string(report.State), map[string]any{"campaign": report.Campaign})
	}
	counts := map[string]any{
		"seated":         s.voice.Count("cli_count_seated", report.Seated),
		"already_seated": s.voice.Count("cli_count_already_seated", report.AlreadySeated),
	}
	for _, list := range reportLists {
		counts[string(list)] = s.voice.Count("cli_count_"+string(list), report.Count(list))
	}
	s.say("cli_report_counts", counts)
	if report.ToldNow > 0 {
		s.say("cli_told_now", map[string]any{"count": report.ToldNow})
	}
	if bound := report.OnBound(); len(bound) > 0 {
		names := make([]string, len(bound))
		for i, fill := range bound {
			names[i] = fill.Sitting
		}
		s.say("cli_on_bound", map[string]any{"count": len(bound), "sittings": names})
	}
	s.printCounts(report)
	for _, list := range reportLists {
		count := report.Count(list)
		refusals, err := convocation.Refusals(s.ctx, s.db, s.actor, runID, list, 0, mostInReport)
		if err != nil {
			return err
		}
		s.printRefused("cli_list_"+string(list), refusals, count, runID)
	}
	return nil
}

// hasDuration tells whether it is known how long a run lasted, or lasts already: of one whose process died
// it is not, and one that waits has not begun.
func hasDuration(report convocation.Report) bool {
	return report.State != run.StateInterrupted && report.State != run.StateWaiting
}

// mostInReport is how many people of each list the printed report names.
const mostInReport = 20

func (s *session) printCounts(report convocation.Report) {
	if len(report.Counts) == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	var rows []table.Row
	for _, list := range reportLists {
		for _, count := range report.Counts {
			if count.List == list {
				rows = append(rows, table.Row{s.voice.Say("cli_short_"+string(list), nil), s.voice.Say("reason_"+count.Reason, nil), s.number(count.Count)})
			}
		}
	}
	s.table([]string{"cli_list", "cli_reason_title", "cli_people"}, rows, 3)
}

// answerReport prints the whole report as JSON, without holding it.
func (s *session) answerReport(report convocation.Report) error {
	type sitting struct {
		Sitting    string    `json:"sitting"`
		Exam       string    `json:"exam"`
		Centre     string    `json:"centre"`
		Room       string    `json:"room"`
		StartsAt   time.Time `json:"starts_at"`
		Zone       string    `json:"zone"`
		Seated     int       `json:"seated"`
		Added      int       `json:"added"`
		Capacity   int       `json:"capacity"`
		PlacesFrom string    `json:"places_from"`
	}
	sittings := make([]sitting, len(report.Sittings))
	for i, f := range report.Sittings {
		sittings[i] = sitting{f.Sitting, f.Exam, f.Centre, f.Room, f.StartsAt.At, f.StartsAt.Zone, f.Seated, f.Added, f.Capacity, f.PlacesFrom}
	}
	var duration *int64
	if ms := report.Duration.Milliseconds(); hasDuration(report) {
		duration = &ms
	}
	return s.answerObject(func(o *object) error {
		err := errors.Join(
			o.field("run", report.Run), o.field("campaign", report.Campaign), o.field("state", report.State),
			o.field("seated", report.Seated), o.field("already_seated", report.AlreadySeated), o.field("told_now", report.ToldNow),
			o.field("sittings", sittings), o.field("duration_ms", duration),
		)
		for _, list := range reportLists {
			if err == nil {
				err = s.answerRefusals(o, string(list), report.Run, list, func(r run.Refusal) any { return s.refusedRow(r) })
			}
		}
		return err
	})
}

// answerRefusals prints one list of a run as a field.
func (s *session) answerRefusals(o *object, name string, runID int64, list run.List, row func(run.Refusal) any) error {
	rows := o.begin(name)
	err := run.EachRefusal(s.ctx, s.db, s.actor, runID, list, func(r run.Refusal) error { return rows.add(row(r)) })
	return errors.Join(err, rows.end())
}
