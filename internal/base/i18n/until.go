package i18n

import "time"

// Until writes the end of something that begins: its hour, and its day only where that is another one. Both are
// shown in the zone of the beginning.
func (v Voice) Until(begins, ends Instant) string {
	from := In(begins)
	to := ends.At.In(from.Location())
	hour := Clock(to)
	if SameDay(from, to) {
		return hour
	}
	return v.Date(to) + ", " + hour
}

// SameDay tells whether two instants, each in its zone, are of one civil day.
func SameDay(a, b time.Time) bool { return a.Year() == b.Year() && a.YearDay() == b.YearDay() }
