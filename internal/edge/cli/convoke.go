package cli

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
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
	fmt.Fprintln(s.stderr, s.voice.Say("cli_forecast", forecastFacts(forecast)))
	bar := s.progress("cli_convoking")
	runID, err := convocation.Convoke(s.ctx, s.db, s.actor, target, convocation.Options{
		Total:    forecast.Eligible,
		Progress: func(p convocation.Progress) { bar.to(p.Done, p.Total) },
	})
	bar.end()
	return runID, err
}

func forecastFacts(f convocation.Forecast) map[string]any {
	return map[string]any{"eligible": f.Eligible, "emails": f.Emails, "sms": f.SMS}
}

func (c convokeCommand) try(s *session, target convocation.Target) error {
	trial, err := convocation.Try(s.ctx, s.db, s.actor, target)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type proposed struct {
			Candidate string    `json:"candidate"`
			Name      string    `json:"name"`
			Sitting   string    `json:"sitting"`
			Room      string    `json:"room"`
			StartsAt  time.Time `json:"starts_at"`
			Seat      string    `json:"seat"`
		}
		seated := make([]proposed, len(trial.Seated))
		for i, p := range trial.Seated {
			seated[i] = proposed{p.Reference, p.Name, p.Sitting.Reference, p.Sitting.Place(), p.Sitting.StartsAt, p.Seat}
		}
		return s.answer(map[string]any{
			"dry_run": true, "campaign": target.Campaign, "would_seat": len(seated), "seated": seated,
			"emails": trial.Forecast.Emails, "sms": trial.Forecast.SMS, "refused": s.refusedRows(trial.Refused),
		})
	}
	s.say("cli_dry_run", nil)
	s.say("cli_would_seat", map[string]any{
		"seated": len(trial.Seated), "refused": len(trial.Refused),
		"emails": trial.Forecast.Emails, "sms": trial.Forecast.SMS,
	})
	rows := make([]table.Row, 0, mostPrinted)
	for _, p := range trial.Seated[:min(mostPrinted, len(trial.Seated))] {
		rows = append(rows, table.Row{p.Reference, p.Name, p.Sitting.Reference, p.Sitting.Place(), s.voice.Instant(p.Sitting.Begins()), orDash(p.Seat)})
	}
	if len(rows) > 0 {
		s.table([]string{"cli_candidate", "cli_name", "cli_sitting", "cli_room", "cli_starts_at", "cli_seat"}, rows)
	}
	s.sayMore(len(trial.Seated)-len(rows), 0)
	s.printRefused("cli_list_refused", trial.Refused[:min(mostPrinted, len(trial.Refused))], len(trial.Refused), 0)
	return nil
}

type refusedRow struct {
	Candidate string `json:"candidate"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Sentence  string `json:"sentence"`
}

func (s *session) refusedRow(r run.Refusal) refusedRow {
	return refusedRow{r.Reference, r.Name, r.Reason, s.voice.Say("refusal_"+r.Reason, r.Facts)}
}

func (s *session) refusedRows(refusals []run.Refusal) []refusedRow {
	rows := make([]refusedRow, len(refusals))
	for i, r := range refusals {
		rows[i] = s.refusedRow(r)
	}
	return rows
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
		rows[i] = table.Row{r.Reference, r.Name, s.voice.Say("refusal_"+r.Reason, r.Facts)}
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
		s.say("cli_more_rows", map[string]any{"count": more, "run": fmt.Sprint(runID)})
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
	fmt.Fprintln(s.stdout)
	s.say("cli_report_title", map[string]any{
		"run": fmt.Sprint(report.Run), "campaign": report.CampaignName, "actor": report.Actor,
		"started_at": i18n.Instant{At: report.StartedAt, Zone: report.Zone}, "seconds": fmt.Sprintf("%.1f", report.Duration.Seconds()),
	})
	if report.State != run.StateDone {
		s.say("cli_state_"+string(report.State), map[string]any{"campaign": report.Campaign})
	}
	s.say("cli_report_counts", map[string]any{
		"seated": report.Seated, "already_seated": report.AlreadySeated,
		"refused": report.Count(run.ListRefused), "not_called": report.Count(run.ListNotCalled),
		"not_reachable": report.Count(run.ListNotReachable), "attention": report.Count(run.ListAttention),
	})
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

// answerReport prints the whole report as JSON.
func (s *session) answerReport(report convocation.Report) error {
	lists := map[run.List][]refusedRow{}
	for _, list := range reportLists {
		lists[list] = []refusedRow{}
		err := run.EachRefusal(s.ctx, s.db, s.actor, report.Run, list, func(r run.Refusal) error {
			lists[list] = append(lists[list], s.refusedRow(r))
			return nil
		})
		if err != nil {
			return err
		}
	}
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
	return s.answer(map[string]any{
		"run": report.Run, "campaign": report.Campaign, "state": report.State, "seated": report.Seated,
		"already_seated": report.AlreadySeated, "told_now": report.ToldNow, "refused": lists[run.ListRefused],
		"not_called": lists[run.ListNotCalled], "not_reachable": lists[run.ListNotReachable], "attention": lists[run.ListAttention],
		"sittings": sittings, "duration_ms": report.Duration.Milliseconds(),
	})
}
