package run_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netresearch/go-cron"
	"pgregory.net/rapid"

	"usher/internal/base/problem"
	"usher/internal/domain/run"
)

// plan is a schedule and what its cron means, said in another way.
type plan struct {
	run.Schedule
	zone    *time.Location
	matches func(civil time.Time) bool
	reach   time.Duration // of what a test looks at: less than a thousand windows
}

// everything takes all that is due, so that what is due and what is left out can be looked at apart.
func everything(cronText string, period run.Period, zone string) run.Schedule {
	return run.Schedule{Cron: cronText, Zone: zone, Period: period, CatchUp: run.CatchUpAll, Most: run.MostPlanned}
}

const day = 24 * time.Hour

// drawPlan gives schedules as they are used: of minutes, of quarters, of days, of weekdays, of months, of leap days.
func drawPlan(t *rapid.T) plan {
	minute, hour := rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(0, 23).Draw(t, "hour")
	at := func(c time.Time) bool { return c.Minute() == minute && c.Hour() == hour }
	zone := rapid.SampledFrom(zonesOfInterest).Draw(t, "zone")
	var p plan
	switch rapid.SampledFrom([]string{"minutes", "steps", "days", "twice", "weekdays", "months", "month ends", "leap days"}).Draw(t, "kind") {
	case "minutes":
		p = plan{everything("* * * * *", run.Minute, "UTC"), nil, func(time.Time) bool { return true }, 12 * time.Hour}
	case "steps":
		step := rapid.SampledFrom([]int{5, 10, 15, 30}).Draw(t, "step")
		p = plan{
			everything(fmt.Sprintf("*/%d * * * *", step), run.QuarterHour, "UTC"), nil,
			func(c time.Time) bool { return c.Minute()%step == 0 }, 7 * day,
		}
	case "days":
		p = plan{everything(fmt.Sprintf("%d %d * * *", minute, hour), run.DayBefore, zone), nil, at, 60 * day}
	case "twice":
		p = plan{
			everything(fmt.Sprintf("%d %d,%d * * *", minute, hour, (hour+7)%24), run.DayBefore, zone), nil,
			func(c time.Time) bool { return c.Minute() == minute && (c.Hour() == hour || c.Hour() == (hour+7)%24) }, 40 * day,
		}
	case "weekdays":
		weekday := rapid.IntRange(0, 6).Draw(t, "weekday")
		p = plan{
			everything(fmt.Sprintf("%d %d * * %d", minute, hour, weekday), run.DayBefore, zone), nil,
			func(c time.Time) bool { return at(c) && int(c.Weekday()) == weekday }, 90 * day,
		}
	case "months":
		of := rapid.IntRange(1, 28).Draw(t, "day")
		p = plan{
			everything(fmt.Sprintf("%d %d %d * *", minute, hour, of), run.MonthBefore, zone), nil,
			func(c time.Time) bool { return at(c) && c.Day() == of }, 400 * day,
		}
	case "month ends":
		of := rapid.IntRange(29, 31).Draw(t, "day")
		p = plan{
			everything(fmt.Sprintf("%d %d %d * *", minute, hour, of), run.MonthBefore, zone), nil,
			func(c time.Time) bool { return at(c) && c.Day() == of }, 400 * day,
		}
	case "leap days":
		p = plan{
			everything(fmt.Sprintf("%d %d 29 2 *", minute, hour), run.MonthBefore, zone), nil,
			func(c time.Time) bool { return at(c) && c.Day() == 29 && c.Month() == time.February }, 1500 * day,
		}
	}
	p.PerZone = p.Period != run.Minute && p.Period != run.QuarterHour && rapid.Bool().Draw(t, "per zone")
	p.zone = zoneOf(t, p.Zone)
	if p.PerZone {
		p.Zone = ""
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("%+v: %v", p.Schedule, err)
	}
	return p
}

// due is the oracle: it reads every minute of the civil calendar, forwards, and keeps the first of those that name a window.
func (p plan) due(from, now time.Time) []run.Window {
	var due []run.Window
	met := map[string]bool{}
	const before = 2 * day // so that a window that was due before from is met there
	until := shown(now, p.zone).Add(26 * time.Hour)
	for c := shown(from, p.zone).Truncate(time.Minute).Add(-before); c.Before(until); c = c.Add(time.Minute) {
		if !p.matches(c) {
			continue
		}
		w := p.Period.Window(c, p.zone, p.PerZone)
		if met[w.Key] || w.Start.Equal(w.End) {
			continue
		}
		met[w.Key] = true
		if at := firstMinuteShowing(c, p.zone); at.After(from) && !at.After(now) {
			due = append(due, w)
		}
	}
	return due
}

// drawSpan gives two instants within the plan's reach, with seconds: nobody plans at the full minute.
func (p plan) drawSpan(t *rapid.T) (from, now time.Time) {
	from = drawInstant(t, p.zone, "from").Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "second")) * time.Second)
	span := time.Duration(rapid.Int64Range(0, int64(p.reach/time.Second)).Draw(t, "span")) * time.Second
	return from, from.Add(span)
}

func keysOf(windows []run.Window) []string {
	keys := make([]string, 0, len(windows))
	for _, w := range windows {
		keys = append(keys, w.Key)
	}
	return keys
}

func TestDue_IsWhatTheCalendarSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		from, now := p.drawSpan(rt)
		got, missed := p.Due(p.zone, from, now)
		if want := p.due(from, now); !slices.Equal(got, want) || missed != 0 {
			rt.Fatalf("%q in %s from %v to %v, missed %d:\n%v\nwant\n%v", p.Cron, p.zone, from, now, missed, got, want)
		}
	})
}

// TestDue_AroundAChangeOfClocks has a daily task in the hours of the change, and somebody who plans in the same hours.
func TestDue_AroundAChangeOfClocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		zone := zoneOf(t, rapid.SampledFrom(zonesOfInterest).Draw(rt, "zone"))
		_, change := drawInstant(rt, zone, "before the change").In(zone).ZoneBounds()
		if change.IsZero() {
			return
		}
		near := func(name string) time.Time {
			return change.UTC().Add(time.Duration(rapid.IntRange(-150, 150).Draw(rt, name)) * time.Minute)
		}
		at := shown(near("due"), zone)
		p := plan{
			everything(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()), run.DayBefore, zone.String()), zone,
			func(c time.Time) bool { return c.Minute() == at.Minute() && c.Hour() == at.Hour() }, day,
		}
		from, now := near("from"), near("now")
		want := p.due(from, now)
		if got, _ := p.Due(zone, from, now); !slices.Equal(got, want) {
			rt.Fatalf("%q in %s from %v to %v: %v, want %v", p.Cron, zone, from, now, got, want)
		}
		after := p.due(now, now.Add(2*day)) // Samoa skipped one
		if next := p.Next(zone, now); next != after[0] {
			rt.Fatalf("%q in %s after %v: %+v, want %+v", p.Cron, zone, now, next, after[0])
		}
	})
}

func TestDue_InStepsIsTheSameAsAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		from, now := p.drawSpan(rt)
		atOnce, _ := p.Due(p.zone, from, now)
		var inSteps []run.Window
		for at := from; at.Before(now); {
			step := time.Duration(rapid.Int64Range(int64(p.reach/time.Second)/20, int64(p.reach/time.Second)).Draw(rt, "step")) * time.Second
			if len(atOnce) > 0 && rapid.Bool().Draw(rt, "to the very instant") {
				step = max(time.Nanosecond, rapid.SampledFrom(atOnce).Draw(rt, "of").DueAt.Sub(at))
			}
			next := at.Add(step)
			if next.After(now) {
				next = now
			}
			due, missed := p.Due(p.zone, at, next)
			if missed != 0 {
				rt.Fatalf("missed %d", missed)
			}
			inSteps, at = append(inSteps, due...), next
		}
		if !slices.Equal(inSteps, atOnce) {
			rt.Fatalf("%q in %s from %v to %v:\nin steps %v\nat once %v", p.Cron, p.zone, from, now, keysOf(inSteps), keysOf(atOnce))
		}
	})
}

// TestDue_ClockThatJumps lets several nodes plan with clocks that are set forward and back. Each plans from the last instant
// that anybody planned, and not from its own past.
func TestDue_ClockThatJumps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		from, now := p.drawSpan(rt)
		planned, last := map[string]int{}, from
		seconds := rapid.SliceOfN(rapid.Int64Range(0, max(1, int64(now.Sub(from)/time.Second))), 1, 12).Draw(rt, "clock")
		for _, second := range append(seconds, -1) {
			at := from.Add(time.Duration(second) * time.Second)
			if second < 0 {
				at = now // whatever the clock did, one day it is right
			}
			due, _ := p.Due(p.zone, last, at)
			if !at.After(last) && len(due) > 0 {
				rt.Fatalf("planned %v while the clock stood before what was planned", keysOf(due))
			}
			for _, w := range due {
				planned[w.Key]++
			}
			if at.After(last) {
				last = at
			}
		}
		want, _ := p.Due(p.zone, from, last)
		for _, w := range want {
			if planned[w.Key] != 1 {
				rt.Fatalf("%s was planned %d times", w.Key, planned[w.Key])
			}
		}
		if len(planned) != len(want) {
			rt.Fatalf("planned %v, want %v", planned, keysOf(want))
		}
	})
}

// TestDue_EveryDayOnce goes through whole years: every day that the clocks of a zone have shown, and no other, has one window.
func TestDue_EveryDayOnce(t *testing.T) {
	t.Parallel()
	for _, name := range zonesOfInterest {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone := zoneOf(t, name)
			rapid.Check(t, func(rt *rapid.T) {
				year := rapid.OneOf(rapid.IntRange(1976, 2037), rapid.SampledFrom([]int{1979, 1991, 2010, 2011, 2023, 2026, 2028})).Draw(rt, "year")
				minute, hour := rapid.IntRange(0, 59).Draw(rt, "minute"), rapid.IntRange(0, 23).Draw(rt, "hour")
				s := everything(fmt.Sprintf("%d %d * * *", minute, hour), run.DayBefore, "")
				s.PerZone = true
				begin, end := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
				var want []string
				for at, last := begin.Add(-day), begin; at.Before(end.Add(day)); at = at.Add(time.Hour) {
					if date := shown(at, zone).Truncate(day); date.Year() == year && (len(want) == 0 || date.After(last)) {
						want, last = append(want, date.Format("2006-01-02")), date
					}
				}
				due, missed := s.Due(zone, begin.Add(-3*day), end.Add(3*day))
				joined(rt, due)
				var got []string
				for _, w := range due {
					if key, _, _ := strings.Cut(w.Key, "@"); strings.HasPrefix(key, strconv.Itoa(year)) {
						got = append(got, key)
					}
				}
				if !slices.Equal(got, want) || missed != 0 || len(want) < 364 {
					rt.Fatalf("%q in %s in %d, missed %d: %v, want %v", s.Cron, name, year, missed, got, want)
				}
			})
		})
	}
}

func TestDue_EveryMonthOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		zone := zoneOf(t, rapid.SampledFrom(zonesOfInterest).Draw(rt, "zone"))
		s := everything(fmt.Sprintf("%d %d %d * *", rapid.IntRange(0, 59).Draw(rt, "minute"), rapid.IntRange(0, 23).Draw(rt, "hour"),
			rapid.IntRange(1, 28).Draw(rt, "day")), run.MonthBefore, zone.String())
		year := rapid.IntRange(1976, 2037).Draw(rt, "year")
		due, missed := s.Due(zone, firstMinuteShowing(time.Date(year, 2, 1, 0, 0, 0, 0, time.UTC), zone).Add(-time.Minute),
			firstMinuteShowing(time.Date(year+1, 1, 31, 0, 0, 0, 0, time.UTC), zone))
		joined(rt, due)
		var want []string
		for month := range 12 {
			want = append(want, fmt.Sprintf("%d-%02d", year, month+1))
		}
		if got := keysOf(due); !slices.Equal(got, want) || missed != 0 {
			rt.Fatalf("%q in %s, missed %d: %v, want %v", s.Cron, zone, missed, got, want)
		}
	})
}

// joined wants each window to begin where the one before ends, and to be due when it is over.
func joined(t *rapid.T, due []run.Window) {
	for i, w := range due {
		if !w.Start.Before(w.End) || w.DueAt.Before(w.End) {
			t.Fatalf("due before its end, or empty: %+v", w)
		}
		if i > 0 && (!w.Start.Equal(due[i-1].End) || w.DueAt.Before(due[i-1].DueAt)) {
			t.Fatalf("%+v does not follow %+v", w, due[i-1])
		}
	}
}

// TestDue_AfterAnOutage draws policies, caps and limits: what is run and what is missed are all there was, and what is run is
// the end of it.
func TestDue_AfterAnOutage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		from, now := p.drawSpan(rt)
		all, _ := p.Due(p.zone, from, now)
		s := p.Schedule
		s.CatchUp = rapid.SampledFrom([]run.CatchUp{run.CatchUpAll, run.CatchUpLatest, run.CatchUpNone}).Draw(rt, "policy")
		s.Most = rapid.IntRange(1, 20).Draw(rt, "most")
		s.Late = time.Duration(rapid.Int64Range(0, int64(p.reach/time.Minute)).Draw(rt, "late, minutes")) * time.Minute
		if s.CatchUp == run.CatchUpNone {
			s.Late = max(s.Late, time.Minute)
		}
		most := s.Most
		if s.CatchUp == run.CatchUpLatest {
			most = 1
		}
		var want []run.Window
		for _, w := range all {
			if s.Late == 0 || !w.DueAt.Add(s.Late).Before(now) {
				want = append(want, w)
			}
		}
		want = want[max(0, len(want)-most):]
		if got, missed := s.Due(p.zone, from, now); !slices.Equal(got, want) || len(got)+missed != len(all) {
			rt.Fatalf("%+v: %v and %d missed of %d, want %v", s, keysOf(got), missed, len(all), keysOf(want))
		}
	})
}

func TestDue_AFortnightWithoutScheduler(t *testing.T) {
	t.Parallel()
	from, now := civil("2026-11-15 21:33"), civil("2026-11-29 21:33").Add(20*time.Second)
	daily := everything("0 1 * * *", run.DayBefore, "UTC")
	minutely := everything("* * * * *", run.Minute, "UTC")
	by := func(s run.Schedule, policy run.CatchUp, most int, late time.Duration) run.Schedule {
		s.CatchUp, s.Most, s.Late = policy, most, late
		return s
	}
	const lastMinute = "2026-11-29T21:33Z"
	for name, c := range map[string]struct {
		s           run.Schedule
		first, last string
		due, missed int
	}{
		"all":                    {by(daily, run.CatchUpAll, 31, 0), "2026-11-15", "2026-11-28", 14, 0},
		"all, a cap of ten":      {by(daily, run.CatchUpAll, 10, 0), "2026-11-19", "2026-11-28", 10, 4},
		"all, five days late":    {by(daily, run.CatchUpAll, 31, 5*day), "2026-11-24", "2026-11-28", 5, 9},
		"all, just not too late": {by(daily, run.CatchUpAll, 31, 20*time.Hour+33*time.Minute+20*time.Second), "2026-11-28", "2026-11-28", 1, 13},
		"latest":                 {by(daily, run.CatchUpLatest, 31, 0), "2026-11-28", "2026-11-28", 1, 13},
		"latest, and too late":   {by(daily, run.CatchUpLatest, 31, 20*time.Hour), "", "", 0, 14},
		"none":                   {by(daily, run.CatchUpNone, 31, 21*time.Hour), "2026-11-28", "2026-11-28", 1, 13},
		"none, and too late":     {by(daily, run.CatchUpNone, 31, 20*time.Hour), "", "", 0, 14},
		"minutes, all, capped":   {by(minutely, run.CatchUpAll, 1000, 0), "2026-11-29T04:54Z", lastMinute, 1000, 14*24*60 - 1000},
		"minutes, latest":        {by(minutely, run.CatchUpLatest, 1000, 0), lastMinute, lastMinute, 1, 14*24*60 - 1},
		"minutes, none":          {by(minutely, run.CatchUpNone, 1000, 3*time.Minute), "2026-11-29T21:31Z", lastMinute, 3, 14*24*60 - 3},
		"a month, not due since": {everything("0 5 2 * *", run.MonthBefore, "UTC"), "", "", 0, 0},
	} {
		if err := c.s.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		due, missed := c.s.Due(time.UTC, from, now)
		first, last := "", ""
		if len(due) > 0 {
			first, last = due[0].Key, due[len(due)-1].Key
		}
		if len(due) != c.due || missed != c.missed || first != c.first || last != c.last {
			t.Errorf("%s: %d from %q to %q, %d missed; want %d from %q to %q, %d missed", name,
				len(due), first, last, missed, c.due, c.first, c.last, c.missed)
		}
	}
}

// TestDue_AfterYears looks at so many minutes and no more: it keeps the latest, and says how many it knows to be missed.
func TestDue_AfterYears(t *testing.T) {
	t.Parallel()
	s, now := everything("* * * * *", run.Minute, "UTC"), civil("2026-11-29 21:33")
	for name, from := range map[string]time.Time{"two years": now.AddDate(-2, 0, 0), "never planned": {}} {
		due, missed := s.Due(nil, from, now)
		if len(due) != 1000 || due[999].Key != "2026-11-29T21:33Z" || missed != 200_000-1000 {
			t.Errorf("%s: %d due, %d missed, the last %+v", name, len(due), missed, due[len(due)-1])
		}
	}
	monthly := everything("0 5 2 * *", run.MonthBefore, "UTC")
	if due, missed := monthly.Due(nil, civil("1926-11-29 00:00"), now); len(due) != 1000 || missed != 200 || due[999].Key != "2026-10" {
		t.Errorf("a century of months: %d due, %d missed", len(due), missed)
	}
}

// TestDue_WhereClocksAreOdd names the runs that the library's own walk on the zone's clock loses or doubles: the control shows
// that they are what the walk on the civil calendar is for.
func TestDue_WhereClocksAreOdd(t *testing.T) {
	t.Parallel()
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	for _, c := range []struct {
		zone, cron, from, to string
		want                 []string // when each window is due, in UTC
		control              int      // how often the library would run
	}{
		{"America/Santiago", "0 0 * * *", "2026-09-05T12:00Z", "2026-09-07T12:00Z", []string{"2026-09-06T04:00Z", "2026-09-07T03:00Z"}, 1},
		{"America/Santiago", "30 23 * * *", "2026-04-04T12:00Z", "2026-04-06T12:00Z", []string{"2026-04-05T02:30Z", "2026-04-06T03:30Z"}, 3},
		{"Europe/Paris", "30 2 * * *", "2026-10-24T12:00Z", "2026-10-26T12:00Z", []string{"2026-10-25T00:30Z", "2026-10-26T01:30Z"}, 3},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00Z", "2026-10-05T12:00Z", []string{"2026-10-03T15:30Z", "2026-10-04T15:15Z"}, 1},
		{"Antarctica/Troll", "30 1 * * *", "2026-03-28T12:00Z", "2026-03-30T12:00Z", []string{"2026-03-29T01:00Z", "2026-03-29T23:30Z"}, 1},
		// The 30th never was: the window of the 29th is due as soon as it is over, and the 30th has none.
		{"Pacific/Apia", "0 5 * * *", "2011-12-29T16:00Z", "2011-12-31T16:00Z", []string{"2011-12-30T10:00Z", "2011-12-31T15:00Z"}, 2},
	} {
		from, _ := time.Parse("2006-01-02T15:04Z", c.from)
		to, _ := time.Parse("2006-01-02T15:04Z", c.to)
		zone := zoneOf(t, c.zone)
		due, missed := everything(c.cron, run.DayBefore, c.zone).Due(zone, from, to)
		var got []string
		for _, w := range due {
			got = append(got, w.DueAt.UTC().Format("2006-01-02T15:04Z"))
		}
		if !slices.Equal(got, c.want) || missed != 0 {
			t.Errorf("%q in %s is due %v, want %v", c.cron, c.zone, got, c.want)
		}
		onItsClock, err := parser.Parse(c.cron)
		if err != nil {
			t.Fatal(err)
		}
		times := 0
		for at := onItsClock.Next(from.In(zone)); !at.After(to); at = onItsClock.Next(at) {
			times++
		}
		if times != c.control {
			t.Errorf("%q in %s on the zone's own clock: %d times, and %d when this was written", c.cron, c.zone, times, c.control)
		}
	}
}

func TestNext_IsWhatWillBeDueFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		from, now := p.drawSpan(rt)
		next := p.Next(p.zone, from)
		due, _ := p.Due(p.zone, from, now)
		if len(due) > 0 && next != due[0] || len(due) == 0 && !next.DueAt.After(now) {
			rt.Fatalf("%q in %s after %v: %+v; due until %v: %v", p.Cron, p.zone, from, next, now, keysOf(due))
		}
	})
}

func TestDue_InTheHourThatComesTwice(t *testing.T) {
	t.Parallel()
	paris := zoneOf(t, "Europe/Paris")
	s := everything("30 2 * * *", run.DayBefore, "Europe/Paris")
	// 02:10 for the second time: 02:30 was due the first time that clocks showed it, though they will show it again.
	due, _ := s.Due(paris, civil("2026-10-25 00:29"), civil("2026-10-25 01:10"))
	if !slices.Equal(keysOf(due), []string{"2026-10-24"}) || !due[0].DueAt.Equal(civil("2026-10-25 00:30")) {
		t.Errorf("%+v", due)
	}
	if again, missed := s.Due(paris, civil("2026-10-25 01:10"), civil("2026-10-25 02:10")); len(again)+missed != 0 {
		t.Errorf("the second time: %+v, %d missed", again, missed)
	}
	if next := s.Next(paris, civil("2026-10-25 01:10")); next.Key != "2026-10-25" {
		t.Errorf("next %+v", next)
	}
}

func TestNext_PassesADayThatWasSkipped(t *testing.T) {
	t.Parallel()
	apia := zoneOf(t, "Pacific/Apia")
	next := everything("0 5 * * *", run.DayBefore, "Pacific/Apia").Next(apia, civil("2011-12-30 10:00"))
	if next.Key != "2011-12-31" || !next.DueAt.Equal(civil("2011-12-31 15:00")) {
		t.Errorf("%+v", next)
	}
}

func TestNext_AcrossACenturyWithoutLeapDay(t *testing.T) {
	t.Parallel()
	s := everything("0 5 29 2 *", run.MonthBefore, "UTC")
	if next := s.Next(nil, civil("2096-03-01 00:00")); next.Key != "2104-01" {
		t.Errorf("%+v", next)
	}
	due, _ := s.Due(nil, civil("2095-01-01 00:00"), civil("2104-02-29 05:00"))
	if got := keysOf(due); !slices.Equal(got, []string{"2096-01", "2104-01"}) {
		t.Errorf("%v", got)
	}
}

func TestParseOfASchedule_WantsItsZone(t *testing.T) {
	t.Parallel()
	perZone := run.Schedule{Cron: "0 5 2 * *", PerZone: true, Period: run.MonthBefore}
	if w, err := perZone.Parse("2026-10@Europe/Paris"); err != nil || w.Zone != "Europe/Paris" {
		t.Errorf("%+v, %v", w, err)
	}
	if _, err := perZone.Parse("2026-10"); !problem.Has(err, "window_invalid") {
		t.Error(err)
	}
	if w, err := everything("0 1 * * *", run.DayBefore, "UTC").Parse("2026-11-28"); err != nil || w.Key != "2026-11-28" {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestValidate_RefusesWhatWouldSurprise(t *testing.T) {
	t.Parallel()
	good := run.Schedule{Cron: "0 5 2 * *", PerZone: true, Period: run.MonthBefore, CatchUp: run.CatchUpAll, Most: 12}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*run.Schedule){
		"4 fields":      func(s *run.Schedule) { s.Cron = "0 5 2 *" },
		"6 fields":      func(s *run.Schedule) { s.Cron = "0 0 5 2 * *" },
		"0 fields":      func(s *run.Schedule) { s.Cron = "" },
		"1 fields":      func(s *run.Schedule) { s.Cron = "@monthly" },
		"expected":      func(s *run.Schedule) { s.Cron = "TZ=UTC 0 5 2 *" },
		"day of the":    func(s *run.Schedule) { s.Cron = "0 5 2 * 1" },
		"weekday “or”":  func(s *run.Schedule) { s.Cron = "0 5 */2 * 1" },
		"read the cron": func(s *run.Schedule) { s.Cron = "0 24 2 * *" },
		"never due":     func(s *run.Schedule) { s.Cron = "0 5 30 2 *" },
		"names one":     func(s *run.Schedule) { s.Zone = "UTC" },
		`the zone ""`:   func(s *run.Schedule) { s.PerZone = false },
		"Local":         func(s *run.Schedule) { s.PerZone, s.Zone = false, "Local" },
		"Factory":       func(s *run.Schedule) { s.PerZone, s.Zone = false, "Factory" },
		"Atlantis":      func(s *run.Schedule) { s.PerZone, s.Zone = false, "Africa/Atlantis" },
		"those of UTC":  func(s *run.Schedule) { s.Period = run.Minute },
		"quarter_hour":  func(s *run.Schedule) { s.PerZone, s.Zone, s.Period = false, "Europe/Paris", run.QuarterHour },
		"no period":     func(s *run.Schedule) { s.Period = "" },
		"no policy":     func(s *run.Schedule) { s.CatchUp = "" },
		"on lateness":   func(s *run.Schedule) { s.CatchUp = run.CatchUpNone },
		"cap":           func(s *run.Schedule) { s.Most = 0 },
		"1000":          func(s *run.Schedule) { s.Most = 1001 },
		"negative":      func(s *run.Schedule) { s.Late = -time.Second },
	} {
		s := good
		change(&s)
		says = strings.TrimPrefix(says, "weekday ")
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want a word about %q", s, err, says)
		}
	}
}

func TestDue_WithoutValidate(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(){
		"no cron":        func() { run.Schedule{Cron: "nonsense"}.Due(time.UTC, time.Time{}, civil("2026-11-29 21:33")) },
		"no zone":        func() { run.Schedule{Cron: "0 5 2 * *", PerZone: true}.Next(nil, civil("2026-11-29 21:33")) },
		"another zone":   func() { everything("0 1 * * *", run.DayBefore, "UTC").Next(zoneOf(t, "Europe/Paris"), time.Time{}) },
		"this machine's": func() { run.Schedule{Cron: "0 5 2 * *", PerZone: true}.Next(time.Local, time.Time{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: answered", name)
				}
			}()
			ask()
		}()
	}
}

// BenchmarkPlanMinute is what one node does each minute: it asks a thousand tasks what became due.
func BenchmarkPlanMinute(b *testing.B) {
	zones := make([]*time.Location, 0, len(zonesOfInterest))
	for _, name := range zonesOfInterest {
		zones = append(zones, zoneOf(b, name))
	}
	now := civil("2026-11-29 21:33")
	minutely := everything("* * * * *", run.Minute, "UTC")
	daily := run.Schedule{Cron: "30 4 * * *", PerZone: true, Period: run.DayBefore, CatchUp: run.CatchUpAll, Most: 31}
	monthly := run.Schedule{Cron: "0 5 2 * *", PerZone: true, Period: run.MonthBefore, CatchUp: run.CatchUpAll, Most: 12}
	for b.Loop() {
		due := 0
		for task := range 1000 {
			var windows []run.Window
			switch task % 4 {
			case 0, 1:
				windows, _ = minutely.Due(time.UTC, now.Add(-time.Minute), now)
			case 2:
				windows, _ = daily.Due(zones[task%len(zones)], now.Add(-time.Minute), now)
			case 3:
				windows, _ = monthly.Due(zones[task%len(zones)], now.Add(-time.Minute), now)
			}
			due += len(windows)
		}
		if due != 500 {
			b.Fatalf("%d due", due)
		}
	}
}
