package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/convocation"
)

// calendarFilter is what a reader wants to see of a calendar. It stands in the address, so that it can be sent to a colleague.
type calendarFilter struct {
	Exam    string
	Centre  int64
	Day     string // civil, at the centre: 2026-12-07
	State   string // a mark, or free
	Exams   choices
	Centres choices
	Days    choices
	States  choices
	Clear   string // the address without a filter; empty: there is none
	path    string
}

// choices are those of one list of the filter.
type choices struct {
	Name, Label, All string
	Choices          []choice
}

type choice struct {
	Value, Text string
	Current     bool
}

// What stands beside the marks.
const (
	stateFree  = "free"  // places are left at a sitting to come
	stateBound = "bound" // nobody said how many places there are
)

var filterStates = []string{stateFree, markFull, markEmpty, markPast, stateBound}

// filterOf reads the filter of an address; what it names must be there.
func filterOf(c Chrome, at *url.URL, calendar convocation.Calendar) (calendarFilter, error) {
	query := at.Query()
	f := calendarFilter{
		Exam: query.Get("exam"), Day: query.Get("day"), State: query.Get("state"), path: calendarURL(calendar.Slug),
		Exams:   choices{Name: "exam", Label: c.Say("console_filter_exam", nil), All: c.Say("console_all_exams", nil)},
		Centres: choices{Name: "centre", Label: c.Say("console_filter_centre", nil), All: c.Say("console_all_centres", nil)},
		Days:    choices{Name: "day", Label: c.Say("console_filter_day", nil), All: c.Say("console_all_days", nil)},
		States:  choices{Name: "state", Label: c.Say("console_filter_state", nil), All: c.Say("console_all_states", nil)},
	}
	centre := query.Get("centre")
	for _, sitting := range calendar.Sittings {
		begins := i18n.In(sitting.Begins())
		f.Exams.add(sitting.Exam, sitting.Exam, f.Exam)
		f.Centres.add(strconv.FormatInt(sitting.CentreID, 10), sitting.Centre, centre)
		f.Days.add(begins.Format(dayForm), c.Voice.Date(begins), f.Day)
	}
	for _, state := range filterStates {
		f.States.add(state, c.Say("console_state_"+state, nil), f.State)
	}
	byText := func(a, b choice) int { return strings.Compare(a.Text, b.Text) }
	slices.SortStableFunc(f.Exams.Choices, byText)
	slices.SortStableFunc(f.Centres.Choices, byText)
	slices.SortStableFunc(f.Days.Choices, func(a, b choice) int { return strings.Compare(a.Value, b.Value) })
	for _, list := range []choices{f.Exams, f.Centres, f.Days, f.States} {
		if wanted := query.Get(list.Name); wanted != "" && !slices.ContainsFunc(list.Choices, func(one choice) bool { return one.Current }) {
			return f, problem.NotFound("filter_unknown", problem.Facts{"filter": list.Label, "value": shortened(wanted)})
		}
	}
	f.Centre, _ = strconv.ParseInt(centre, 10, 64) // a number, since it is among the choices
	if f.Exam != "" || centre != "" || f.Day != "" || f.State != "" {
		f.Clear = f.path
	}
	return f, nil
}

func (list *choices) add(value, text, wanted string) {
	if !slices.ContainsFunc(list.Choices, func(one choice) bool { return one.Value == value }) {
		list.Choices = append(list.Choices, choice{value, text, value == wanted})
	}
}

func (f calendarFilter) matches(sitting convocation.Timetabled, now time.Time) bool {
	switch {
	case f.Exam != "" && sitting.Exam != f.Exam,
		f.Centre != 0 && sitting.CentreID != f.Centre,
		f.Day != "" && i18n.In(sitting.Begins()).Format(dayForm) != f.Day:
		return false
	case f.State == "":
		return true
	case f.State == stateFree:
		return sitting.StartsAt.After(now) && sitting.Left() > 0
	case f.State == stateBound:
		return sitting.OnBound()
	}
	return markOf(sitting, now) == f.State
}

// withDay is the address of one day, with the rest of the filter.
func (f calendarFilter) withDay(day string) string {
	query := url.Values{"day": {day}}
	if f.Exam != "" {
		query.Set("exam", f.Exam)
	}
	if f.Centre != 0 {
		query.Set("centre", strconv.FormatInt(f.Centre, 10))
	}
	if f.State != "" {
		query.Set("state", f.State)
	}
	return f.path + "?" + query.Encode() + "#calendar"
}

// centreName is that of the centre chosen; empty: all.
func (f calendarFilter) centreName() string {
	for _, one := range f.Centres.Choices {
		if one.Current {
			return one.Text
		}
	}
	return ""
}

// lists are those that have something to choose from.
func (f calendarFilter) lists() []choices {
	var worth []choices
	for _, list := range []choices{f.Days, f.Centres, f.Exams, f.States} {
		if len(list.Choices) > 1 {
			worth = append(worth, list)
		}
	}
	return worth
}
