package run_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones below, also on a machine that has none

	"pgregory.net/rapid"

	"usher/internal/base/problem"
	"usher/internal/domain/run"
)

// zonesOfInterest have clocks that behave in every way that clocks have: none at all, at midnight, by half an hour, by two
// hours, at one minute past midnight (St John's, until 2011), around Ramadan, over the date line, and by a decree of the week.
var zonesOfInterest = []string{
	"UTC", "Africa/Bamako", "Europe/Paris", "America/Santiago", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe",
	"Asia/Kathmandu", "Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "Antarctica/Troll", "Asia/Tehran", "Asia/Beirut",
}

func zoneOf(t interface {
	Helper()
	Fatal(...any)
}, name string,
) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// civil writes what clocks show on the clock of UTC.
func civil(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return at
}

// shown is what the clocks of the zone show at an instant, written on the clock of UTC.
func shown(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// firstMinuteShowing watches the clocks of the zone, minute after minute, until they show at least civil: the oracle.
func firstMinuteShowing(civil time.Time, zone *time.Location) time.Time {
	if zone == time.UTC {
		return civil
	}
	at := civil.Add(-15 * time.Hour)
	for shown(at, zone).Before(civil) {
		at = at.Add(time.Minute)
	}
	return at
}

// drawInstant gives a minute between 1975 and 2040, every second time one within hours of a change of the zone's clocks.
func drawInstant(t *rapid.T, zone *time.Location, name string) time.Time {
	from := time.Date(1975, time.January, 1, 0, 0, 0, 0, time.UTC)
	at := from.Add(time.Duration(rapid.IntRange(0, 65*365*24*60).Draw(t, name)) * time.Minute)
	if _, change := at.In(zone).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, name+" near a change of clocks") {
		at = change.UTC().Add(time.Duration(rapid.IntRange(-30*60, 30*60).Draw(t, name+", minutes from it")) * time.Minute)
	}
	return at
}

func TestWindow_IsBoundedByTheClocksOfItsZone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		zone := zoneOf(t, rapid.SampledFrom(zonesOfInterest).Draw(rt, "zone"))
		due := shown(drawInstant(rt, zone, "due"), zone)
		day := due.Truncate(24 * time.Hour)
		month := day
		for month.Day() != 1 {
			month = month.Add(-24 * time.Hour)
		}
		monthBefore := month.Add(-24 * time.Hour)
		for monthBefore.Day() != 1 {
			monthBefore = monthBefore.Add(-24 * time.Hour)
		}
		for _, want := range []struct {
			period     run.Period
			first, end time.Time
			key        string
		}{
			{run.DayBefore, day.Add(-24 * time.Hour), day, day.Add(-24 * time.Hour).Format("2006-01-02")},
			{run.MonthBefore, monthBefore, month, monthBefore.Format("2006-01")},
		} {
			got := want.period.Window(due, zone, true)
			if got.Key != want.key+"@"+zone.String() || got.Zone != zone.String() ||
				!got.Start.Equal(firstMinuteShowing(want.first, zone)) || !got.End.Equal(firstMinuteShowing(want.end, zone)) ||
				!got.DueAt.Equal(firstMinuteShowing(due, zone)) || got.DueAt.Before(got.End) {
				rt.Fatalf("%s due when the clocks of %s show %v: %+v", want.period, zone, due, got)
			}
			if alone := want.period.Window(due, zone, false); alone.Key != want.key {
				rt.Fatalf("key %q, want %q: a task of one zone does not name it", alone.Key, want.key)
			}
		}
	})
}

func TestWindow_OfAMinute(t *testing.T) {
	t.Parallel()
	for period, want := range map[run.Period]run.Window{
		run.Minute:      {Key: "2026-11-29T21:33Z", Start: civil("2026-11-29 21:33"), End: civil("2026-11-29 21:34")},
		run.QuarterHour: {Key: "2026-11-29T21:30Z", Start: civil("2026-11-29 21:30"), End: civil("2026-11-29 21:45")},
	} {
		want.Zone, want.DueAt = "UTC", civil("2026-11-29 21:33")
		if got := period.Window(civil("2026-11-29 21:33"), time.UTC, false); got != want {
			t.Errorf("%s: %+v, want %+v", period, got, want)
		}
	}
}

// TestWindow_WhereClocksAreOdd has instants that were looked up, not calculated.
func TestWindow_WhereClocksAreOdd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		period             run.Period
		zone, due          string
		key                string
		start, end, reason string
	}{
		{run.MonthBefore, "Africa/Bamako", "2026-03-31 05:00", "2026-02", "2026-02-01T00:00Z", "2026-03-01T00:00Z", "the 31st"},
		{run.MonthBefore, "Africa/Bamako", "2026-01-02 05:00", "2025-12", "2025-12-01T00:00Z", "2026-01-01T00:00Z", "last year"},
		{run.MonthBefore, "Europe/Paris", "2028-03-02 05:00", "2028-02", "2028-01-31T23:00Z", "2028-02-29T23:00Z", "a leap year"},
		{run.DayBefore, "Europe/Paris", "2028-03-01 04:30", "2028-02-29", "2028-02-28T23:00Z", "2028-02-29T23:00Z", "a leap day"},
		{run.DayBefore, "Europe/Paris", "2026-03-30 04:30", "2026-03-29", "2026-03-28T23:00Z", "2026-03-29T22:00Z", "23 hours"},
		{run.DayBefore, "Europe/Paris", "2026-10-26 04:30", "2026-10-25", "2026-10-24T22:00Z", "2026-10-25T23:00Z", "25 hours"},
		{run.DayBefore, "Australia/Lord_Howe", "2026-10-05 04:30", "2026-10-04", "2026-10-03T13:30Z", "2026-10-04T13:00Z", "23½ hours"},
		{run.DayBefore, "America/Santiago", "2026-09-07 04:30", "2026-09-06", "2026-09-06T04:00Z", "2026-09-07T03:00Z", "no midnight"},
		{run.DayBefore, "Africa/Cairo", "2026-04-25 04:30", "2026-04-24", "2026-04-23T22:00Z", "2026-04-24T21:00Z", "no midnight"},
		{run.DayBefore, "Asia/Beirut", "2026-03-30 04:30", "2026-03-29", "2026-03-28T22:00Z", "2026-03-29T21:00Z", "no midnight"},
		{run.DayBefore, "America/Havana", "2026-03-09 04:30", "2026-03-08", "2026-03-08T05:00Z", "2026-03-09T04:00Z", "no midnight"},
		{run.DayBefore, "America/Havana", "2026-11-02 04:30", "2026-11-01", "2026-11-01T04:00Z", "2026-11-02T05:00Z", "two midnights"},
		{run.DayBefore, "America/St_Johns", "2010-11-08 04:30", "2010-11-07", "2010-11-07T02:30Z", "2010-11-08T03:30Z", "back by a day"},
		{run.DayBefore, "Pacific/Apia", "2011-12-30 04:30", "2011-12-29", "2011-12-29T10:00Z", "2011-12-30T10:00Z", "a day before none"},
		{run.DayBefore, "Pacific/Apia", "2011-12-31 04:30", "2011-12-30", "2011-12-30T10:00Z", "2011-12-30T10:00Z", "no such day"},
		{run.MonthBefore, "Pacific/Apia", "2012-01-02 04:30", "2011-12", "2011-12-01T10:00Z", "2011-12-31T10:00Z", "a month of 30 days"},
	} {
		w := c.period.Window(civil(c.due), zoneOf(t, c.zone), false)
		got := [3]string{w.Key, w.Start.UTC().Format("2006-01-02T15:04Z"), w.End.UTC().Format("2006-01-02T15:04Z")}
		if got != [3]string{c.key, c.start, c.end} {
			t.Errorf("%s, %s, due %s (%s): %v, want %v", c.period, c.zone, c.due, c.reason, got, [3]string{c.key, c.start, c.end})
		}
	}
}

func TestParse_ReadsWhatWindowsAreCalled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		period := rapid.SampledFrom([]run.Period{run.Minute, run.QuarterHour, run.DayBefore, run.MonthBefore}).Draw(rt, "period")
		zone, perZone := time.UTC, false
		if period == run.DayBefore || period == run.MonthBefore {
			zone = zoneOf(t, rapid.SampledFrom(zonesOfInterest).Draw(rt, "zone"))
			perZone = rapid.Bool().Draw(rt, "per zone")
		}
		w := period.Window(shown(drawInstant(rt, zone, "due"), zone), zone, perZone)
		given := zone
		if perZone {
			given = nil
		}
		read, err := period.Parse(w.Key, given)
		if w.Start.Equal(w.End) {
			if !problem.Has(err, "window_skipped") {
				rt.Fatalf("a day that was skipped, %s, gives %+v, %v", w.Key, read, err)
			}
			return
		}
		w.DueAt = time.Time{} // a key does not say when
		if err != nil || read != w {
			rt.Fatalf("%s read as %+v, %v; was %+v", w.Key, read, err, w)
		}
	})
}

func TestParse_RefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	bamako := zoneOf(t, "Africa/Bamako")
	for _, c := range []struct {
		period    run.Period
		zone      *time.Location
		key       string
		code      string
		wantsForm string
	}{
		{run.MonthBefore, nil, "2026-10", "window_invalid", "2026-10@Africa/Bamako"},
		{run.MonthBefore, nil, "2026-13@Africa/Bamako", "window_invalid", "2026-10@Africa/Bamako"},
		{run.MonthBefore, nil, "@", "time_zone_unknown", ""},
		{run.MonthBefore, nil, "2026-10@", "time_zone_unknown", ""},
		{run.MonthBefore, nil, "2026-10@Local", "time_zone_unknown", ""},
		{run.MonthBefore, nil, "2026-10@Africa/Atlantis", "time_zone_unknown", ""},
		{run.MonthBefore, nil, "2026-10@../../etc/passwd", "time_zone_unknown", ""},
		{run.MonthBefore, nil, "2026-10@Africa/Bamako ", "time_zone_unknown", ""},
		{run.MonthBefore, bamako, "2026-10@Africa/Bamako", "window_invalid", "2026-10"},
		{run.MonthBefore, bamako, "", "window_invalid", "2026-10"},
		{run.MonthBefore, bamako, "2026-1", "window_invalid", "2026-10"},
		{run.MonthBefore, bamako, " 2026-10", "window_invalid", "2026-10"},
		{run.MonthBefore, bamako, "2026-10-01", "window_invalid", "2026-10"},
		{run.DayBefore, bamako, "2026-10", "window_invalid", "2026-10-31"},
		{run.DayBefore, bamako, "2026-02-29", "window_invalid", "2026-10-31"},
		{run.DayBefore, nil, "2011-12-30@Pacific/Apia", "window_skipped", ""},
		{run.Minute, time.UTC, "2026-11-29T21:33", "window_invalid", "2026-10-31T21:30Z"},
		{run.Minute, time.UTC, "2026-11-29T1:33Z", "window_invalid", "2026-10-31T21:30Z"},
		{run.Minute, time.UTC, "2026-11-29T21:33:00Z", "window_invalid", "2026-10-31T21:30Z"},
		{run.QuarterHour, time.UTC, "2026-11-29T21:33Z", "window_invalid", "2026-10-31T21:30Z"},
	} {
		w, err := c.period.Parse(c.key, c.zone)
		p, _ := problem.Of(err)
		if !problem.Has(err, c.code) || c.wantsForm != "" && p.Facts["form"] != c.wantsForm {
			t.Errorf("%s %q: %+v, %v; want %s, written like %q", c.period, c.key, w, err, c.code, c.wantsForm)
		}
	}
}

// TestParse_OneSpelling: whatever is typed, what is taken is what windows are called. A key with two spellings would be two runs.
func TestParse_OneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		period := rapid.SampledFrom([]run.Period{run.Minute, run.QuarterHour, run.DayBefore, run.MonthBefore}).Draw(rt, "period")
		almost := rapid.StringMatching(`[+-]?[0-9]{1,5}-[0-9]{1,2}(-[0-9]{1,2})?([T ][0-9]{1,2}:[0-9]{1,2}(:00)?Z?)?`)
		key := rapid.OneOf(rapid.String(), almost).Draw(rt, "key")
		if w, err := period.Parse(key, time.UTC); err == nil && w.Key != key {
			rt.Fatalf("%q was read as %q", key, w.Key)
		}
	})
}
