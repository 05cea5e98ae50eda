package sheet

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The years that are believed. A birth, a filing and an exam all lie between them; 0208 and 20008 do not.
const (
	minYear = 1900
	maxYear = 2199
)

// DateOrder is the written order of the dates of one file. Year first is read in both.
type DateOrder int

// The orders. The zero value is the one that French, Spanish and British people write.
const (
	DayFirst DateOrder = iota
	MonthFirst
)

// Code names the order; translations are keyed by it.
func (o DateOrder) Code() string {
	if o == MonthFirst {
		return "month_first"
	}
	return "day_first"
}

// String shows the order as people write it down.
func (o DateOrder) String() string {
	if o == MonthFirst {
		return "month/day/year"
	}
	return "day/month/year"
}

// Basis says what an order rests on.
type Basis string

// The bases.
const (
	NotNeeded    Basis = "not_needed"   // no date that depends on the order
	Assumed      Basis = "assumed"      // every date could be read both ways: day first
	Proved       Basis = "proved"       // some dates fit one order only, none the other only
	Contradicted Basis = "contradicted" // some dates fit month first only, and do not suffice: day first
)

// DateEvidence gathers all the cells of a column (or of all date columns of a file, which one hand wrote), so that
// the order is settled before the first of them is read.
type DateEvidence struct {
	DayFirst   int // cells such as 22/04/2008
	MonthFirst int // cells such as 04/22/2008
	Either     int // cells such as 11/04/2008
}

// Add takes a cell into account. What is not a date, and what is year first, says nothing.
func (e *DateEvidence) Add(cell string) {
	written, err := readDate(cell)
	if err != nil || written.yearFirst {
		return
	}
	first, second := written.first, written.second
	switch {
	case first > 12 && second <= 12:
		e.DayFirst++
	case first <= 12 && second > 12:
		e.MonthFirst++
	case first <= 12 && second <= 12 && first != second:
		e.Either++
	}
}

// Few month-first cells in a file of dates that could be read both ways are typing mistakes, and
// the whole file must not be turned round by them.
const (
	leastMonthFirst = 2 // cells that prove month first
	eitherPerProof  = 2 // cells that could be either, for each of those
)

// Order settles the order for the whole file: month first only where enough cells prove it and none
// proves the contrary. The cells that do not fit are refused when they are read.
func (e *DateEvidence) Order() (DateOrder, Basis) {
	switch {
	case e.DayFirst+e.MonthFirst+e.Either == 0:
		return DayFirst, NotNeeded
	case e.DayFirst+e.MonthFirst == 0:
		return DayFirst, Assumed
	case e.MonthFirst == 0:
		return DayFirst, Proved
	case e.DayFirst == 0 && e.MonthFirst >= leastMonthFirst && e.MonthFirst*eitherPerProof >= e.Either:
		return MonthFirst, Proved
	default:
		return DayFirst, Contradicted
	}
}

// writtenDate is a cell cut into its parts, before anybody has said which is the month.
type writtenDate struct {
	text          string
	yearFirst     bool // or the month is named: no order is needed
	shortYear     bool // of two digits
	year          int
	first, second int
	clock         string
}

var (
	dateShape  = regexp.MustCompile(`^(\d{1,4})([-/.])(\d{1,2})([-/.])(\d{1,4})(?:(?:[Tt]|,? )(.+))?$`)
	clockShape = regexp.MustCompile(`^(\d{1,2})(?::(\d{2})(?::(\d{2})([.,]\d{1,9})?)?| ?[hH] ?(\d{2})?) ?([Zz]|[+-]\d{2}(?::?\d{2})?)?$`)
)

func readDate(cell string) (writtenDate, error) {
	text := Clean(cell)
	m := dateShape.FindStringSubmatch(text)
	if named, ok := readNamed(text); ok {
		if named.shortYear {
			return writtenDate{}, &Error{Code: TwoDigitYear, Value: text}
		}
		return named, nil
	}
	if m == nil || m[2] != m[4] {
		return writtenDate{}, &Error{Code: NotADate, Value: text}
	}
	written := writtenDate{text: text, clock: m[6]}
	a, b, c := number(m[1]), number(m[3]), number(m[5])
	switch {
	case len(m[1]) == 4 && len(m[5]) <= 2:
		written.yearFirst, written.year, written.first, written.second = true, a, b, c
	case len(m[1]) <= 2 && len(m[5]) == 4:
		written.year, written.first, written.second = c, a, b
	case len(m[1]) <= 2 && len(m[5]) == 2:
		return writtenDate{}, &Error{Code: TwoDigitYear, Value: text}
	default:
		return writtenDate{}, &Error{Code: NotADate, Value: text}
	}
	return written, nil
}

// number reads digits that a pattern has found; there are too few of them to overflow.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// civil settles which part is which, and refuses days that no calendar has.
func (o DateOrder) civil(cell string) (day time.Time, written writtenDate, err error) {
	if written, err = readDate(cell); err != nil {
		return time.Time{}, written, err
	}
	month, dayOfMonth := written.second, written.first
	if o == MonthFirst || written.yearFirst {
		month, dayOfMonth = dayOfMonth, month
	}
	if written.year < minYear || written.year > maxYear {
		return time.Time{}, written, &Error{Code: YearOutside, Value: written.text}
	}
	day = time.Date(written.year, time.Month(month), dayOfMonth, 0, 0, 0, 0, time.UTC)
	if month >= 1 && month <= 12 && day.Day() == dayOfMonth && int(day.Month()) == month {
		return day, written, nil
	}
	if !written.yearFirst && month > 12 && dayOfMonth <= 12 {
		return time.Time{}, written, &Error{Code: WrongOrder, Value: written.text, Names: []string{o.String()}}
	}
	return time.Time{}, written, &Error{Code: NoSuchDay, Value: written.text}
}

// Day reads a cell as a day without a zone, returned as midnight UTC. A time of day is refused, apart from the
// midnight that spreadsheets add.
func (o DateOrder) Day(cell string) (time.Time, error) {
	day, written, err := o.civil(cell)
	if err != nil || written.clock == "" {
		return day, err
	}
	clock, err := readClock(written)
	if err != nil {
		return time.Time{}, err
	}
	if clock.sinceMidnight != 0 || clock.zone != "" {
		return time.Time{}, &Error{Code: TimeOfDayMore, Value: written.text}
	}
	return day, nil
}

// Instant reads a cell as an instant, returned in the zone given. A cell that names an offset (ISO only)
// is taken at its word. Else the time is the zone's local one: one that its clocks skip is refused, and of one that they
// show twice the earlier is meant (Later tells the other). Without a time of day, timed is false and the instant is the first of that day.
func (o DateOrder) Instant(cell string, zone *time.Location) (at time.Time, timed bool, err error) {
	day, written, err := o.civil(cell)
	if err != nil {
		return time.Time{}, false, err
	}
	if written.clock == "" {
		return startOfDay(day, zone), false, nil
	}
	clock, err := readClock(written)
	if err != nil {
		return time.Time{}, false, err
	}
	naive := day.Add(clock.sinceMidnight)
	if clock.zone != "" {
		return naive.Add(-clock.offset).In(zone), true, nil
	}
	at, _, ok := localInstants(naive, zone)
	if !ok {
		return time.Time{}, true, &Error{Code: SkippedTime, Value: written.text, Names: []string{zone.String()}}
	}
	return at, true, nil
}

type clock struct {
	sinceMidnight time.Duration
	zone          string
	offset        time.Duration
}

func readClock(written writtenDate) (clock, error) {
	m := clockShape.FindStringSubmatch(written.clock)
	if m == nil {
		return clock{}, &Error{Code: NotADate, Value: written.text}
	}
	hours, minutes, seconds := number(m[1]), number(m[2]+m[5]), number(m[3])
	if hours > 23 || minutes > 59 || seconds > 59 {
		return clock{}, &Error{Code: NoSuchTime, Value: written.text}
	}
	read := clock{zone: m[6]}
	read.sinceMidnight = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
	if m[4] != "" {
		read.sinceMidnight += time.Duration(number((m[4][1:] + "000000000")[:9]))
	}
	if read.zone == "" {
		return read, nil
	}
	if !written.yearFirst {
		return clock{}, &Error{Code: NotADate, Value: written.text}
	}
	return read, read.readOffset(written.text)
}

func (c *clock) readOffset(text string) error {
	digits := strings.ReplaceAll(strings.Trim(c.zone, "+-Zz"), ":", "") + "0000"
	hours, minutes := number(digits[:2]), number(digits[2:4])
	if hours > 14 || minutes > 59 {
		return &Error{Code: NoSuchTime, Value: text}
	}
	c.offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if c.zone[0] == '-' {
		c.offset = -c.offset
	}
	return nil
}

// Later is the second instant that a cell may mean: the clocks of the zone are put back and show its time of day twice.
// A cell that names its offset, or no time of day, means one instant only.
func (o DateOrder) Later(cell string, zone *time.Location) (later time.Time, twice bool) {
	day, written, err := o.civil(cell)
	if err != nil || written.clock == "" {
		return time.Time{}, false
	}
	clock, err := readClock(written)
	if err != nil || clock.zone != "" {
		return time.Time{}, false
	}
	earlier, later, ok := localInstants(day.Add(clock.sinceMidnight), zone)
	return later, ok && later.After(earlier)
}

// InstantAfter is what a cell means that names the end of something: of an hour that comes twice the first that comes after
// the start, and the first of all where neither does. Its errors are those of Instant.
func (o DateOrder) InstantAfter(cell string, zone *time.Location, start time.Time) (at time.Time, timed bool, err error) {
	at, timed, err = o.Instant(cell, zone)
	if later, twice := o.Later(cell, zone); twice && !at.After(start) && later.After(start) {
		at = later
	}
	return at, timed, err
}

// writtenLayout is read back by Instant in any zone and any order of dates: the year first, and the offset.
const writtenLayout = "2006-01-02 15:04:05.999999-07:00"

// WriteInstant writes an instant, in the zone it carries, so that Instant reads the same one.
func WriteInstant(at time.Time) string {
	return strings.Replace(at.Format(writtenLayout), at.Format("15:04")+":00"+at.Format("-07:00"), at.Format("15:04-07:00"), 1)
}

// localInstants finds the first and the last instant at which the clocks of a zone show the naive time. time.Date does not
// say which of two it takes, and shifts one that does not exist. A zone's offset changes at most once within a day
// on each side.
func localInstants(naive time.Time, zone *time.Location) (first, last time.Time, ok bool) {
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := naive.Add(near).In(zone).Zone()
		candidate := naive.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, actual := candidate.Zone(); actual != offset {
			continue
		}
		if !ok || candidate.Before(first) {
			first = candidate
		}
		if !ok || candidate.After(last) {
			last = candidate
		}
		ok = true
	}
	return first, last, ok
}

// startOfDay is midnight, or the first time that the clocks show where they skip midnight.
func startOfDay(day time.Time, zone *time.Location) time.Time {
	for quarter := range 24 * 4 {
		if at, _, ok := localInstants(day.Add(time.Duration(quarter)*15*time.Minute), zone); ok {
			return at
		}
	}
	// A day that a zone left out as a whole (Samoa, 30 December 2011): its successor begins there.
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
}
