package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// How much a report shows before a link shows the rest.
const (
	namedFirst     = 20  // people of each list
	openedSittings = 100 // with more sittings than these, centres are folded
	refreshSeconds = 5   // of a run that is going
)

// lists are those of a convocation report, in the order of what needs doing first.
var lists = []run.List{run.ListRefused, run.ListNotCalled, run.ListNotReachable, run.ListAttention}

// reportPage is one run: what it did, and whom it left out.
type reportPage struct {
	Chrome
	Report   convocation.Report
	Headline string
	State    stateMark
	Stopped  string // what to read when the run did not end well
	Repeat   string // the command that does it again
	Again    repeatForm
	// MayConvoke: the button that does it again stands in the place of the command.
	MayConvoke bool
	Progress   progressPart // while it goes
	Actor      string
	Started    string
	Took       string
	Cards      []card
	Lists      []listPart
	Centres    []centreFill
	Folded     bool
	Bound      string // that capacities were not given; empty: all were
	Exams      bool   // more than one: sittings say which
	StillURL   string // the same page without asking again
}

// stateMark is the state of a run in a word and a sign, so that no colour is needed to read it.
type stateMark struct {
	Kind run.State
	Text string
}

// card is one number of the report.
type card struct {
	Kind  string
	Label string
	Count int
	Note  string
	URL   string
	// Unknown: the run did not get as far as to know it, and 0 would be read as nobody.
	Unknown bool
}

// listPart is the beginning of one list.
type listPart struct {
	List    run.List
	Title   string
	About   string
	Empty   string
	Count   int
	URL     string
	CSV     string
	Reasons []reasonCount
	People  []person
}

type reasonCount struct {
	Reason  string
	Title   string
	Count   int
	URL     string
	Current bool
}

// person is one row of a list.
type person struct {
	Reference, Name, Reason, Sentence string
}

// report shows one run.
func (s *site) report(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	id, err := runID(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	report, err := convocation.ReadReport(ctx, s.db, actor, id)
	if err != nil {
		fail(w, r, err)
		return
	}
	page := reportPageOf(chrome(w, r), report)
	page.MayConvoke = s.mayConvoke(actor)
	if page.Refresh > 0 {
		if page.Progress, err = s.progressOf(ctx, page.Chrome, actor, report); err != nil {
			fail(w, r, err)
			return
		}
		page.StillURL = with(r.URL, "refresh", "off")
		if r.URL.Query().Get("refresh") == "off" {
			page.Refresh, page.StillURL = 0, ""
		}
	}
	for i := range page.Lists {
		part := &page.Lists[i]
		if part.Count == 0 {
			continue
		}
		refusals, err := convocation.Refusals(ctx, s.db, actor, id, part.List, 0, namedFirst)
		if err != nil {
			fail(w, r, err)
			return
		}
		part.People = people(page.Voice, refusals)
	}
	show(w, r, http.StatusOK, page)
}

func reportPageOf(c Chrome, report convocation.Report) reportPage {
	page := reportPage{Chrome: c, Report: report}
	page.Title = c.Say("run_number", map[string]any{"run": strconv.FormatInt(report.Run, 10)})
	page.Headline = headline(c.Voice, report)
	page.State = stateMark{report.State, c.Say("state_"+string(report.State), nil)}
	page.Repeat, page.Again = convokeCommand(report.Target), repeatOf(report)
	page.Started = c.Voice.Instant(i18n.Instant{At: report.StartedAt, Zone: report.Zone})
	page.Actor = account.ActorWords(c.Voice, report.Actor)
	page.Took = took(c.Voice, report.Duration)
	switch report.State {
	case run.StateWaiting, run.StateRunning:
		page.Refresh = refreshSeconds
	case run.StateInterrupted, run.StateFailed:
		page.Stopped = c.Say("stopped_"+string(report.State), nil)
	case run.StateDone:
	}
	page.Cards = cards(c, report)
	for _, list := range lists {
		page.Lists = append(page.Lists, listPartOf(c, report, list))
	}
	page.Centres = byCentre(c.Voice, report.Sittings)
	page.Folded = len(report.Sittings) > openedSittings
	page.Exams = severalExams(report.Sittings)
	if n := len(report.OnBound()); n > 0 {
		page.Bound = c.Voice.Count("bound_sittings", n)
	}
	return page
}

// headline says the whole report in one line; what nobody fell under is left out, but not the refused.
func headline(v i18n.Voice, report convocation.Report) string {
	parts := []string{v.Count("headline_seated", report.Seated)}
	if report.AlreadySeated > 0 {
		parts = append(parts, v.Count("headline_already_seated", report.AlreadySeated))
	}
	for _, list := range lists {
		if n := report.Count(list); n > 0 || list == run.ListRefused {
			parts = append(parts, v.Count("headline_"+string(list), n))
		}
	}
	return strings.Join(parts, " · ")
}

func cards(c Chrome, report convocation.Report) []card {
	note := ""
	if report.Total > 0 {
		note = c.Voice.Count("card_of_eligible", report.Total)
	}
	all := []card{
		{Kind: "seated", Label: c.Say("card_seated", nil), Count: report.Seated, Note: note, URL: "#sittings"},
		{Kind: "already_seated", Label: c.Say("card_already_seated", nil), Count: report.AlreadySeated, Note: c.Say("card_already_seated_note", nil), URL: "#sittings"},
	}
	for _, list := range lists {
		all = append(all, card{
			Kind: string(list), Label: c.Say("list_"+string(list), nil), Count: report.Count(list),
			Note: c.Say("card_"+string(list)+"_note", nil), URL: "#" + string(list),
		})
	}
	for i := range all {
		counted := all[i].Kind == "seated" || all[i].Kind == string(run.ListRefused)
		all[i].Unknown = report.State != run.StateDone && all[i].Count == 0 && !counted
	}
	return all
}

func listPartOf(c Chrome, report convocation.Report, list run.List) listPart {
	part := listPart{
		List: list, Title: c.Say("list_"+string(list), nil), About: c.Say("about_"+string(list), nil),
		Empty: nobody(c, report, list), Count: report.Count(list), URL: listURL(report.Run, list),
	}
	part.CSV = part.URL + ".csv"
	part.Reasons = reasonsOf(c, report, list, "")
	return part
}

// nobody says what an empty list means: only a run that is done knows that it is empty.
func nobody(c Chrome, report convocation.Report, list run.List) string {
	switch report.State {
	case run.StateDone:
		if list == run.ListNotCalled && report.Count(run.ListRefused) > 0 {
			return c.Say("nobody_not_called_refused", nil)
		}
		return c.Say("nobody_"+string(list), nil)
	case run.StateWaiting, run.StateRunning:
		return c.Say("nobody_yet", nil)
	case run.StateFailed, run.StateInterrupted:
	}
	return c.Say("nobody_unfinished", nil)
}

// reasonsOf counts a list by reason, each with the link to its people.
func reasonsOf(c Chrome, report convocation.Report, list run.List, current string) []reasonCount {
	var reasons []reasonCount
	for _, count := range report.Counts {
		if count.List == list {
			reasons = append(reasons, reasonCount{
				Reason: count.Reason, Title: c.Say("reason_"+count.Reason, nil), Count: count.Count,
				URL: listURL(report.Run, list) + "?reason=" + count.Reason, Current: count.Reason == current,
			})
		}
	}
	return reasons
}

func listURL(runID int64, list run.List) string { return fmt.Sprintf("/runs/%d/lists/%s", runID, list) }

func people(v i18n.Voice, refusals []run.Refusal) []person {
	named := make([]person, len(refusals))
	for i, r := range refusals {
		named[i] = person{
			Reference: r.Reference, Name: r.Name,
			Reason: v.Say("reason_"+r.Reason, nil), Sentence: v.Say("refusal_"+r.Reason, r.Facts),
		}
	}
	return named
}

// took writes how long a run was, as exactly as anybody cares: 2.4 s, 3 min 12 s, 1 h 05 min.
func took(v i18n.Voice, d time.Duration) string {
	switch {
	case d < time.Minute:
		return v.Decimal(max(d.Seconds(), 0), 1) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// runID reads the number in the address; what is no number is a run that does not exist.
func runID(r *http.Request) (int64, error) {
	text := r.PathValue("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, problem.NotFound("run_unknown", problem.Facts{"run": shortened(text)})
	}
	return id, nil
}

// taken is how many of the places are given, and in words when none is left.
func (p reportPage) taken(b bar) string {
	facts := map[string]any{"seated": b.Seated, "places": b.Capacity}
	if b.Capacity > 0 && b.Free() == 0 {
		return p.Say("taken_full", facts)
	}
	return p.Say("taken", facts)
}

// columns is how wide a day's heading is.
func (p reportPage) columns() string {
	if p.Exams {
		return "5"
	}
	return "4"
}

func anyCurrent(reasons []reasonCount) bool {
	return slices.ContainsFunc(reasons, func(reason reasonCount) bool { return reason.Current })
}
