package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// How much a calendar shows before the reader chooses.
const (
	sittingsShown = 200 // with more sittings than these only their days are listed; also the size of a page of one day
	dayForm       = "2006-01-02"
)

// calendarPage is the home of a campaign: what waits to be done, and its sittings day by day.
type calendarPage struct {
	Chrome
	Calendar   convocation.Calendar
	Forecast   forecast
	Latest     *runGlance // nil: nobody was convoked yet
	Going      bool       // the newest run has not ended
	MayConvoke bool       // sees the button
	MayImport  bool
	Filter     calendarFilter
	Days       []calendarDay
	Sum        bar    // of what is listed
	Listed     int    // sittings that match the filter
	Overview   bool   // too many to list: each day is a link
	Zone       string // that all centres share; empty: they differ
	Exams      bool   // several: each sitting says which
	Centres    bool
	OnBound    string // that capacities were not given; empty: all were
	Pages      pages
	Paused     []string // channels that are not used for a while
	Told       []tile
	Papers     []paper // of all sittings of the centre chosen
}

// tile is one number of what waits to be done.
type tile struct {
	Label string
	Count int
	URL   string // empty: it leads nowhere
	Warn  bool
}

// calendarDay is one civil day at its centres.
type calendarDay struct {
	Date     string // 2026-12-07
	Title    string
	URL      string
	Past     bool
	Today    bool
	Sum      bar
	Sittings []calendarSitting
	Count    int
	Papers   []paper // of all its sittings; none for who may not print
}

// calendarSitting is one line of a day.
type calendarSitting struct {
	convocation.Timetabled
	URL   string
	Hours string
	Zone  string // when the centres differ
	// SameHours: they are those of the line before.
	SameHours  bool
	SameCentre bool   // and those
	Mark       string // past, full, empty; empty: none of them
	Bar        bar
}

// runGlance is a run in one line.
type runGlance struct {
	URL, Started, Headline string
	State                  stateMark
}

// campaignsPage lists campaigns.
type campaignsPage struct {
	Chrome
	Campaigns []convocation.Overview
}

// home is the calendar of the only campaign there is, else the list of them.
func (s *site) home(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	s.showCampaigns(w, r, actor, true)
}

// campaigns lists them, also the only one.
func (s *site) campaigns(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	s.showCampaigns(w, r, actor, false)
}

func (s *site) showCampaigns(w http.ResponseWriter, r *http.Request, actor timeline.Actor, goOn bool) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	campaigns, err := convocation.Overviews(ctx, s.db, actor)
	if err != nil {
		fail(w, r, err)
		return
	}
	page := campaignsPage{Chrome: chrome(w, r), Campaigns: campaigns} // keeps a language that was chosen here
	if goOn && len(campaigns) == 1 {
		w.Header().Set("Cache-Control", "no-store") // tomorrow there are two
		http.Redirect(w, r, calendarURL(campaigns[0].Slug), http.StatusSeeOther)
		return
	}
	page.Title = page.Say("console_campaigns", nil)
	show(w, r, http.StatusOK, page)
}

// campaignHome shows the calendar of a campaign.
func (s *site) campaignHome(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	calendar, err := convocation.ReadCalendar(ctx, s.db, actor, named(r, "slug"))
	if err != nil {
		fail(w, r, err)
		return
	}
	page := calendarPage{Chrome: chrome(w, r), Calendar: calendar, MayConvoke: s.mayConvoke(actor), MayImport: mayImport(actor)}
	page.Title = calendar.Name
	page.Forecast = forecastOf(page.Voice, calendar.AtMost)
	if calendar.LatestRun != 0 {
		report, err := convocation.ReadReport(ctx, s.db, actor, calendar.LatestRun)
		if err != nil {
			fail(w, r, err)
			return
		}
		page.Latest = glanceOf(page.Chrome, report)
		page.Going = !ended(report.State)
	}
	if page.Filter, err = filterOf(page.Chrome, r.URL, calendar); err != nil {
		fail(w, r, err)
		return
	}
	if err := page.list(r.URL); err != nil {
		fail(w, r, err)
		return
	}
	page.Told = toldTiles(page.Chrome, calendar, account.May(actor, account.Reach))
	if account.May(actor, account.Print) {
		page.addPapers()
	}
	if page.Paused, err = s.pauses(ctx, page.Chrome, calendar.Zone); err != nil {
		fail(w, r, err)
		return
	}
	show(w, r, http.StatusOK, page)
}

// toldTiles count seats by how far their people know. Those whom nothing reached lead to their names, for who tells them.
func toldTiles(c Chrome, calendar convocation.Calendar, mayTell bool) []tile {
	of := calendar.Notices
	if of.Told+of.Pending+of.Waiting+of.Written+of.Untold == 0 {
		return nil
	}
	tiles := []tile{{Label: c.Say("console_told", nil), Count: of.Told}}
	add := func(stage notice.Stage, label string, always, warn bool) {
		n := countOf(of, stage)
		if n == 0 && !always {
			return
		}
		one := tile{Label: c.Say(label, nil), Count: n, Warn: warn && n > 0}
		if mayTell && n > 0 {
			one.URL = untoldURL(calendar.Slug, stage)
		}
		tiles = append(tiles, one)
	}
	add(notice.StageHalf, "console_half_told", false, true)
	add(notice.StagePending, "console_untold", of.Waiting == 0, false)
	add(notice.StageWaiting, "console_untold_waits", false, false)
	add(notice.StageWritten, "console_untold_written", false, true)
	add(notice.StageUntold, "console_unreached", true, true)
	return tiles
}

// addPapers offers the papers of each day that is shown, at the centre chosen; and without a day, those of the whole centre.
func (p *calendarPage) addPapers() {
	centre := p.Filter.centreName()
	links := func(day string) []paper {
		return []paper{
			{URL: papersURL(p.Calendar.Slug, "door-lists.zip", day, centre), Text: p.Say("console_print_lists", nil), Kind: "ZIP"},
			{URL: papersURL(p.Calendar.Slug, "letters.zip", day, centre), Text: p.Say("console_print_letters", nil), Kind: "ZIP"},
		}
	}
	for i := range p.Days {
		if day := &p.Days[i]; day.Sum.Seated > 0 {
			day.Papers = links(day.Date)
		}
	}
	if centre != "" && p.Filter.Day == "" && p.Sum.Seated > 0 {
		p.Papers = links("")
	}
}

func glanceOf(c Chrome, report convocation.Report) *runGlance {
	return &runGlance{
		URL: runURL(report.Run), Headline: headline(c.Voice, report),
		Started: c.Voice.Instant(i18n.Instant{At: report.StartedAt, Zone: report.Zone}),
		State:   stateMark{report.State, c.Say("state_"+string(report.State), nil)},
	}
}

// list fills in the days with the sittings that match the filter.
func (p *calendarPage) list(at *url.URL) error {
	p.Exams, p.Centres = len(p.Filter.Exams.Choices) > 1, len(p.Filter.Centres.Choices) > 1
	p.Zone = sharedZone(p.Calendar.Sittings)
	matching := make([]convocation.Timetabled, 0, len(p.Calendar.Sittings))
	bound := 0
	for _, sitting := range p.Calendar.Sittings {
		if !p.Filter.matches(sitting, p.Calendar.Now) {
			continue
		}
		matching = append(matching, sitting)
		p.Sum = p.Sum.plus(barOf(sitting))
		if sitting.OnBound() && sitting.StartsAt.After(p.Calendar.Now) {
			bound++
		}
	}
	if bound > 0 && p.Filter.State != stateBound {
		p.OnBound = p.Voice.Count("console_on_bound", bound)
	}
	p.Listed = len(matching)
	p.Overview = p.Listed > sittingsShown && p.Filter.Day == ""
	if !p.Overview {
		var err error
		if p.Pages, err = pagesOf(at, p.Listed, sittingsShown); err != nil {
			return err
		}
		matching = matching[p.Pages.First-1 : p.Pages.Last]
	}
	p.Days = p.days(matching)
	return nil
}

// days groups sittings, which come in the order in which they are filled, by the day at their centre.
func (p *calendarPage) days(sittings []convocation.Timetabled) []calendarDay {
	var days []calendarDay
	nth := map[string]int{}
	for _, sitting := range sittings {
		begins := i18n.In(sitting.Begins())
		date := begins.Format(dayForm)
		at, known := nth[date]
		if !known {
			at = len(days)
			nth[date] = at
			days = append(days, calendarDay{
				Date: date, Title: capitalised(p.Voice.Date(begins)), URL: p.Filter.withDay(date),
				Past: true, Today: date == p.Calendar.Now.In(begins.Location()).Format(dayForm),
			})
		}
		day := &days[at]
		day.Count++
		day.Sum = day.Sum.plus(barOf(sitting))
		line := p.line(sitting)
		day.Past = day.Past && line.Mark == markPast
		if !p.Overview {
			if n := len(day.Sittings); n > 0 {
				before := day.Sittings[n-1]
				line.SameHours = before.Hours == line.Hours && before.Zone == line.Zone
				line.SameCentre = line.SameHours && before.CentreID == line.CentreID
			}
			day.Sittings = append(day.Sittings, line)
		}
	}
	return days
}

// The marks of a sitting; each has its word in every language.
const (
	markPast  = "past"
	markGoing = "going"
	markFull  = "full"
	markEmpty = "empty"
)

func (p *calendarPage) line(sitting convocation.Timetabled) calendarSitting {
	line := calendarSitting{
		Timetabled: sitting, URL: sittingURL(p.Calendar.Slug, sitting.Reference),
		Hours: hours(p.Voice, sitting), Mark: markOf(sitting, p.Calendar.Now), Bar: barOf(sitting),
	}
	if p.Zone == "" {
		line.Zone = i18n.In(sitting.Begins()).Location().String()
	}
	return line
}

// markOf is the one thing about a sitting that a reader must see without reading.
func markOf(sitting convocation.Timetabled, now time.Time) string {
	switch {
	case !sitting.EndsAt.After(now):
		return markPast
	case !sitting.StartsAt.After(now):
		return markGoing
	case sitting.Left() == 0:
		return markFull
	case sitting.Seated == 0:
		return markEmpty
	}
	return ""
}

// barOf draws all who are seated in the colour of what was given.
func barOf(sitting convocation.Timetabled) bar {
	return bar{Seated: sitting.Seated, Added: sitting.Seated, Capacity: sitting.Usable}
}

// hours are those of the centre's clock; that a sitting ends on another day is said behind them, where the line may break.
func hours(v i18n.Voice, sitting convocation.Timetabled) string {
	begins := i18n.In(sitting.Begins())
	ends := sitting.EndsAt.In(begins.Location())
	text := i18n.Clock(begins) + "\u202f–\u202f" + i18n.Clock(ends)
	if !i18n.SameDay(begins, ends) {
		text += " (" + v.Weekday(ends.Weekday()) + ")"
	}
	return text
}

// sharedZone is the zone of all centres; empty: they differ.
func sharedZone(sittings []convocation.Timetabled) string {
	zone := ""
	for i, sitting := range sittings {
		if i > 0 && sitting.Zone != zone {
			return ""
		}
		zone = sitting.Zone
	}
	return zone
}

// capitalised begins a heading with a capital, as French and Spanish dates do not by themselves.
func capitalised(text string) string {
	for i, letter := range text {
		return strings.ToUpper(string(letter)) + text[i+len(string(letter)):]
	}
	return text
}

// calendarURL is the home of a campaign.
func calendarURL(slug string) string { return "/campaigns/" + url.PathEscape(slug) }

// named is a part of the address, as what it may be the name of.
func named(r *http.Request, part string) string { return typed(r.PathValue(part)) }

// typed is what somebody sent, without the bytes that no name has and no database takes.
func typed(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "�"), "�")
}

// taken is how many of the places are given.
func taken(c Chrome, b bar) string {
	return c.Say("taken", map[string]any{"seated": b.Seated, "places": b.Capacity})
}

// pages are those of a list that is longer than a page shows.
type pages struct {
	Page, Pages    int
	First, Last    int // counted from 1
	Of             int
	Previous, Next string // links; empty: there is none
}

// pagesOf reads which page is asked for.
func pagesOf(at *url.URL, of, size int) (pages, error) {
	p := pages{Page: 1, Pages: max(1, (of+size-1)/size), Of: of}
	if text := at.Query().Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > p.Pages {
			return p, problem.NotFound("page_unknown", problem.Facts{"page": shortened(text), "pages": p.Pages})
		}
		p.Page = n
	}
	p.First, p.Last = (p.Page-1)*size+1, min(p.Page*size, of)
	if p.Page > 1 {
		p.Previous = with(at, "page", strconv.Itoa(p.Page-1))
	}
	if p.Page < p.Pages {
		p.Next = with(at, "page", strconv.Itoa(p.Page+1))
	}
	return p, nil
}
