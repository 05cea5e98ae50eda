package web

import (
	"context"
	"fmt"
	"net/http"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// runsShown is how many runs the first page lists, newest first.
const runsShown = 20

// runsPage lists the latest runs.
type runsPage struct {
	Chrome
	Runs     []runLine
	More     string   // that there are older ones; empty: there are none
	Start    string   // how to begin when there is no run
	Commands []string // what to type then
}

// runLine is one run at a glance.
type runLine struct {
	URL      string
	Number   int64
	Campaign string
	Headline string
	Started  string
	Actor    string
	State    stateMark
}

// runs lists the latest runs.
func (s *site) runs(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	found, err := convocation.Runs(ctx, s.db, actor)
	if err != nil {
		fail(w, r, err)
		return
	}
	s.showRuns(ctx, w, r, actor, found)
}

func (s *site) showRuns(ctx context.Context, w http.ResponseWriter, r *http.Request, actor timeline.Actor, found []run.Run) {
	page := runsPage{Chrome: chrome(w, r)}
	page.Title = page.Say("runs_title", nil)
	if len(found) == 0 {
		if err := s.beginning(ctx, actor, &page); err != nil {
			fail(w, r, err)
			return
		}
	}
	if len(found) > runsShown {
		found, page.More = found[:runsShown], page.Say("runs_more", map[string]any{"count": runsShown})
	}
	for _, of := range found {
		line, err := s.runLine(ctx, actor, page.Voice, of)
		if err != nil {
			fail(w, r, err)
			return
		}
		page.Runs = append(page.Runs, line)
	}
	show(w, r, http.StatusOK, page)
}

// beginning tells how to start the first run: a command for each campaign, or how to add one.
func (s *site) beginning(ctx context.Context, actor timeline.Actor, page *runsPage) error {
	campaigns, err := convocation.Overviews(ctx, s.db, actor)
	if err != nil {
		return err
	}
	if len(campaigns) == 0 {
		page.Start, page.Commands = page.Say("runs_no_campaign", nil), []string{"usher demo", "usher campaign add --help"}
		return nil
	}
	page.Start = page.Say("runs_none", nil)
	for _, campaign := range campaigns[:min(len(campaigns), runsShown)] {
		page.Commands = append(page.Commands, convokeCommand(convocation.Target{Campaign: campaign.Slug}))
	}
	return nil
}

func (s *site) runLine(ctx context.Context, actor timeline.Actor, v i18n.Voice, of run.Run) (runLine, error) {
	report, err := convocation.ReadReport(ctx, s.db, actor, of.ID)
	if err != nil {
		return runLine{}, err
	}
	return runLine{
		URL: runURL(of.ID), Number: of.ID, Campaign: report.CampaignName, Headline: headline(v, report),
		Started: v.Instant(i18n.Instant{At: report.StartedAt, Zone: report.Zone}), Actor: account.ActorWords(v, report.Actor),
		State: stateMark{report.State, v.Say("state_"+string(report.State), nil)},
	}, nil
}

func runURL(id int64) string { return fmt.Sprintf("/runs/%d", id) }
