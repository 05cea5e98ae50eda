package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// CatchUp is what becomes of windows that fell due while nobody planned.
type CatchUp string

// The policies.
const (
	CatchUpAll    CatchUp = "all"    // each of them is run
	CatchUpLatest CatchUp = "latest" // the last one is run: it does the work of the others, which are not named as missed
	CatchUpNone   CatchUp = "none"   // only those are run that are hardly late: later they would do harm, or nothing
)

// Schedule is when a task is due and which windows it then has. It is a pure rule: what is due is a question about two
// instants, whoever asks, as often as they ask.
type Schedule struct {
	// Cron says when the task is due: minute, hour, day of the month, month, day of the week, as the clocks of its zone show
	// them. A time that they skip is due when they jump, one that they repeat the first time. So a task of each day is due
	// once on each day, whatever the clocks do.
	Cron string
	// PerZone: the task has a window for each zone of the organisations; Zone is then empty.
	PerZone bool
	Zone    string // the IANA name of the one zone of the task, as "UTC"
	Period  Period
	CatchUp CatchUp
	Most    int           // how many windows are planned at once, at most: 1 to MostPlanned
	Late    time.Duration // a window that has been due for longer is missed and not run; 0: it is never too late
}

const (
	// MostPlanned is the largest cap: so many rows of runs are written in one transaction without harm.
	MostPlanned = 1000
	// mostWalked is how many times at which a task was due are looked at in one go: four months of minutes.
	mostWalked = 200_000
	// searchYears is how far apart two times of one cron may lie: a 29 February and the next one across the year 2100.
	searchYears = 9
)

// parser reads exactly five fields and no other form. Only its reading of the fields is used, on the clock of UTC: on the
// clock of a zone it loses what is due in a skipped hour and doubles what is due in a repeated one. It remembers what it read:
// the crons are those of the catalogue, and are read each minute.
var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).WithMaxSearchYears(searchYears).WithCache()

// read parses the cron.
func (s Schedule) read() (*cron.SpecSchedule, error) {
	fields := strings.Fields(s.Cron)
	if len(fields) != 5 {
		return nil, fmt.Errorf("the cron %q has %d fields and not five", s.Cron, len(fields))
	}
	if set(fields[2]) && set(fields[4]) {
		return nil, fmt.Errorf("the cron %q sets the day of the month and the day of the week: some programs read that as "+
			"“or”, others as “and”; set one of them", s.Cron)
	}
	parsed, err := parser.Parse(s.Cron)
	if err != nil {
		return nil, fmt.Errorf("read the cron %q: %w", s.Cron, err)
	}
	fires, ok := parsed.(*cron.SpecSchedule)
	if !ok || fires.Location != time.Local { // time.Local: the cron itself names no zone
		return nil, fmt.Errorf("the cron %q is more than five fields", s.Cron)
	}
	return fires, nil
}

// set tells whether a field of a cron says which days; a star with a step does, too.
func set(field string) bool { return field != "*" && field != "?" }

// Validate tells what is wrong with a schedule of the catalogue, all of it at once, for whoever wrote it.
func (s Schedule) Validate() error {
	var wrong []error
	refuse := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if fires, err := s.read(); err != nil {
		wrong = append(wrong, err)
	} else if fires.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		refuse("the cron %q is never due: there is no such day", s.Cron)
	}
	if s.PerZone && s.Zone != "" {
		refuse("the schedule is for each zone and names one, %s: it can be only one of them", s.Zone)
	}
	if !s.PerZone {
		if _, err := zoneNamed(s.Zone); err != nil {
			refuse("the zone %q: %w", s.Zone, err)
		}
	}
	switch s.Period {
	case DayBefore, MonthBefore:
	case Minute, QuarterHour:
		if s.PerZone || s.Zone != "UTC" {
			refuse("windows of a %s are those of UTC: the clocks of a zone show some of them twice and others never", s.Period)
		}
	default:
		refuse("there is no period %q", string(s.Period))
	}
	switch s.CatchUp {
	case CatchUpAll, CatchUpLatest:
	case CatchUpNone:
		if s.Late <= 0 {
			refuse("a task that is not caught up needs a limit on lateness: nothing is planned at the very instant")
		}
	default:
		refuse("there is no policy of catching up %q", string(s.CatchUp))
	}
	if s.Most < 1 || s.Most > MostPlanned {
		refuse("the cap of windows planned at once is %d and not between 1 and %d", s.Most, MostPlanned)
	}
	if s.Late < 0 {
		refuse("the limit on lateness is negative, %v", s.Late)
	}
	return errors.Join(wrong...)
}

// Due gives the windows that became due after from and not after now, oldest first, as far as they are to be run, and how many
// others the policy, the limit on lateness or the cap leave out; of those that the cap concerns, the latest are kept. A window
// is due once, at the first time of the cron that names it: what is due between two instants is the same in one step or in
// many. Nothing is due when now is not after from, as when the clock was set back.
//
// The zone is that of the organisations when the schedule is for each zone; else the schedule's own, or nil to have it looked
// up. At most 200,000 times of the cron are looked at, from the latest back: missed is then what is known to be missed.
//
// Due panics on a schedule that Validate refuses: the catalogue is checked when the program starts.
func (s Schedule) Due(zone *time.Location, from, now time.Time) (due []Window, missed int) {
	due, missed, _ = s.due(zone, from, now)
	return due, missed
}

// due is Due, and names the latest of those that are missed, oldest first, at most MostPlanned.
func (s Schedule) due(zone *time.Location, from, now time.Time) (due []Window, missed int, named []Window) {
	zone, fires := s.mustRead(zone)
	var before Window // the window met last: the one that is due next after the one looked at
	keep := func() {
		switch {
		case before.Key == "":
		case len(due) < s.most() && (s.Late == 0 || now.Sub(before.DueAt) <= s.Late):
			due = append(due, before)
		default:
			if missed++; missed <= MostPlanned {
				named = append(named, before)
			}
		}
	}
	if !now.After(from) {
		return nil, 0, nil
	}
	civil := latest(fires, civilCeiling(now, zone))
	for range mostWalked {
		if civil.IsZero() {
			break
		}
		w := s.Period.Window(civil, zone, s.PerZone)
		civil = latest(fires, civil.Add(-time.Minute))
		if w.DueAt.After(now) || w.empty() {
			continue
		}
		if !w.DueAt.After(from) {
			if w.Key == before.Key {
				before = Window{} // it was due before from: this was a repetition
			}
			break
		}
		if w.Key != before.Key {
			keep()
		}
		before = w // the same window at an earlier time of the cron: that is when it became due
	}
	keep()
	slices.Reverse(due)
	slices.Reverse(named)
	return due, missed, named
}

// most is the number of windows that the policy allows at once.
func (s Schedule) most() int {
	if s.CatchUp == CatchUpLatest {
		return 1
	}
	return s.Most
}

// Next gives the first window that becomes due after now; zero when the cron has come to the end of time. The zone is as in Due.
func (s Schedule) Next(zone *time.Location, now time.Time) Window {
	zone, fires := s.mustRead(zone)
	last := s.last(zone, fires, now)
	_, offset := now.In(zone).Zone()
	civil := now.UTC().Add(time.Duration(offset) * time.Second)
	for range mostWalked {
		if civil = fires.Next(civil); civil.IsZero() {
			break
		}
		if w := s.Period.Window(civil, zone, s.PerZone); w.DueAt.After(now) && w.Key != last.Key && !w.empty() {
			return w
		}
	}
	return Window{}
}

// last is the window that the latest time of the cron until now names.
func (s Schedule) last(zone *time.Location, fires *cron.SpecSchedule, now time.Time) Window {
	civil := latest(fires, civilCeiling(now, zone))
	for range mostWalked {
		if civil.IsZero() {
			break
		}
		if w := s.Period.Window(civil, zone, s.PerZone); !w.DueAt.After(now) && !w.empty() {
			return w
		}
		civil = latest(fires, civil.Add(-time.Minute))
	}
	return Window{}
}

// Parse reads the key of a window of the task, as a person types it; see Period.Parse.
func (s Schedule) Parse(key string) (Window, error) {
	var zone *time.Location
	if !s.PerZone {
		var err error
		if zone, err = zoneNamed(s.Zone); err != nil {
			return Window{}, err
		}
	}
	return s.Period.Parse(key, zone)
}

// mustRead gives what Due and Next walk by.
func (s Schedule) mustRead(zone *time.Location) (*time.Location, *cron.SpecSchedule) {
	fires, err := s.read()
	if err == nil && !s.PerZone && zone == nil {
		zone, err = zoneNamed(s.Zone)
	}
	switch {
	case err != nil:
		panic(fmt.Sprintf("run: a schedule that was not validated: %v", err))
	case zone == nil || zone.String() == "Local":
		panic("run: a schedule for each zone was asked without a zone")
	case !s.PerZone && zone.String() != s.Zone:
		panic(fmt.Sprintf("run: a schedule of %s was asked for %s", s.Zone, zone))
	}
	return zone, fires
}

// civilCeiling is not before anything that the clocks of the zone have shown until now, written on the clock of UTC: when they
// were put back lately, they have shown more than they show. Clocks were never put back by more than a day.
func civilCeiling(now time.Time, zone *time.Location) time.Time {
	const repeated = 26 * time.Hour
	_, offset := now.In(zone).Zone()
	_, earlier := now.Add(-repeated).In(zone).Zone()
	return now.UTC().Add(time.Duration(max(offset, earlier)) * time.Second)
}

// latest is the latest time of the cron that is not after civil; zero when there is none.
func latest(fires *cron.SpecSchedule, civil time.Time) time.Time {
	// Times of a cron are whole minutes, and Prev looks before the second that it is given.
	return fires.Prev(civil.Truncate(time.Minute).Add(time.Second))
}
