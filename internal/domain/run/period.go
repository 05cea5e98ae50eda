package run

import (
	"fmt"
	"strings"
	"time"

	"usher/internal/base/problem"
	"usher/internal/domain/account"
)

// Window is the business period that identifies a run of the schedule. It is the window that makes a run one, and not the
// moment at which somebody got round to it: planned twice, late or by several nodes, it has the same key.
type Window struct {
	// Key names the window within its task: "2026-11-29T21:33Z" (a minute or a quarter of an hour), "2026-11-28" (a day),
	// "2026-10" (a month). Where each zone has a window of its own, the zone follows: "2026-10@Africa/Bamako".
	Key  string
	Zone string // the IANA name of the zone whose clocks bound it
	// The window is [Start, End): the end belongs to the next window. Instants are in UTC, so that equal windows are ==.
	Start, End time.Time
	// DueAt is the instant at which the window became due; zero when the window was read from a key.
	DueAt time.Time
}

// Period is how an instant at which a task is due names a window. A day and a month are those of a zone, as its clocks and
// calendar have them, and not 24 hours.
type Period string

// The periods. A task is due in the minute or the quarter of an hour that is its window, and after the day or the month.
const (
	Minute      Period = "minute"       // the minute that begins, in UTC
	QuarterHour Period = "quarter_hour" // the quarter of an hour that begins, in UTC
	DayBefore   Period = "day_before"   // the civil day before the one in which the task is due
	MonthBefore Period = "month_before" // the civil month before the one in which the task is due
)

const (
	keyOfMinute = "2006-01-02T15:04Z"
	keyOfDay    = time.DateOnly
	keyOfMonth  = "2006-01"
)

// subDaily tells whether a day has many such windows. They are in UTC: in the hour that clocks repeat, civil time would
// give two of them one name.
func (p Period) subDaily() bool { return p == Minute || p == QuarterHour }

// layout is how the period writes its key, for package time.
func (p Period) layout() string {
	switch p {
	case Minute, QuarterHour:
		return keyOfMinute
	case DayBefore:
		return keyOfDay
	case MonthBefore:
		return keyOfMonth
	}
	panic(fmt.Sprintf("run: no such period: %q", string(p)))
}

// Window gives the window of a task that is due when the clocks of the zone show civil, which is written on the clock of UTC:
// so it has a value also where the zone has no such time. With perZone the key names the zone. Only a day that the zone
// skipped (Pacific/Apia, 2011-12-30) gives an empty window, whose start is its end: no task has anything to do in it.
func (p Period) Window(civil time.Time, zone *time.Location, perZone bool) Window {
	w := p.holding(p.first(civil), zone, perZone)
	w.DueAt = instantOf(civil, zone)
	return w
}

// first is the first civil moment of the window that is due at civil.
func (p Period) first(civil time.Time) time.Time {
	switch p {
	case Minute:
		return civil.Truncate(time.Minute)
	case QuarterHour:
		return civil.Truncate(15 * time.Minute)
	case DayBefore:
		return time.Date(civil.Year(), civil.Month(), civil.Day()-1, 0, 0, 0, 0, time.UTC)
	case MonthBefore: // from the first of the month: a month before the 31st may have no such day
		return time.Date(civil.Year(), civil.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	}
	panic(fmt.Sprintf("run: no such period: %q", string(p)))
}

// after is the first civil moment after the window that begins at first.
func (p Period) after(first time.Time) time.Time {
	switch p {
	case Minute:
		return first.Add(time.Minute)
	case QuarterHour:
		return first.Add(15 * time.Minute)
	case DayBefore:
		return first.AddDate(0, 0, 1)
	case MonthBefore:
		return first.AddDate(0, 1, 0)
	}
	panic(fmt.Sprintf("run: no such period: %q", string(p)))
}

// holding builds the window that begins at the civil moment first.
func (p Period) holding(first time.Time, zone *time.Location, perZone bool) Window {
	w := Window{
		Key: first.Format(p.layout()), Zone: zone.String(),
		Start: instantOf(first, zone), End: instantOf(p.after(first), zone),
	}
	if perZone {
		w.Key += "@" + w.Zone
	}
	return w
}

// empty tells whether the zone skipped the whole window.
func (w Window) empty() bool { return !w.End.After(w.Start) }

// example is a key as the period writes it, for a sentence that says how.
func (p Period) example(perZone bool) string {
	example := time.Date(2026, time.October, 31, 21, 30, 0, 0, time.UTC).Format(p.layout())
	if perZone {
		example += "@Africa/Bamako"
	}
	return example
}

// Parse reads the key of a window: of a task with windows for each zone when zone is nil ("2026-10@Africa/Bamako"), else of a
// task of that zone ("2026-10"). A key has one spelling, since it is an identity. The window may be of the future: whether it
// has ended is for the caller, who knows the time. Refusals: window_invalid, time_zone_unknown, window_skipped (a day that
// does not exist in the zone).
func (p Period) Parse(key string, zone *time.Location) (Window, error) {
	perZone := zone == nil
	invalid := problem.Invalid("window_invalid", problem.Facts{"key": key, "form": p.example(perZone)})
	text := key
	if perZone {
		var name string
		var found bool
		if text, name, found = strings.Cut(key, "@"); !found {
			return Window{}, invalid
		}
		var err error
		if zone, err = zoneNamed(name); err != nil {
			return Window{}, problem.Invalid("time_zone_unknown", problem.Facts{"zone": name}).Because(err)
		}
	}
	first, err := time.Parse(p.layout(), text)
	if err != nil {
		return Window{}, invalid.Because(err)
	}
	if p == QuarterHour && first.Minute()%15 != 0 {
		return Window{}, invalid
	}
	w := p.holding(first, zone, perZone)
	if w.Key != key { // package time reads an hour of one digit as well
		return Window{}, invalid
	}
	if w.empty() {
		return Window{}, problem.Invalid("window_skipped", problem.Facts{"day": text, "zone": w.Zone})
	}
	return w, nil
}

// zoneNamed finds a zone by its IANA name.
func zoneNamed(name string) (*time.Location, error) {
	if err := account.CheckTimeZone(name); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("find the time zone: %w", err)
	}
	return zone, nil
}

// farthest is more than the clocks of any zone have ever been from UTC, in either direction (Manila and Alaska, before the
// date line was drawn around them: almost 16 hours).
const farthest = 16 * time.Hour

// instantOf gives the first instant at which the clocks of the zone show civil (written on the clock of UTC) or more. In the
// hour that clocks repeat that is the first of two; in one that they skip, the moment at which they jump. So each civil moment
// is exactly one instant, and a later one is never an earlier instant; time.Date promises neither.
func instantOf(civil time.Time, zone *time.Location) time.Time {
	if zone == time.UTC {
		return civil.UTC()
	}
	from := civil.Add(-farthest).In(zone) // the clocks cannot have shown civil before
	for {
		_, offset := from.Zone()
		_, until := from.ZoneBounds() // as long as the offset stays
		at := civil.Add(-time.Duration(offset) * time.Second)
		if at.Before(from) {
			at = from // the clocks jumped over it
		}
		if until.IsZero() || at.Before(until) {
			return at.UTC()
		}
		from = until
	}
}
