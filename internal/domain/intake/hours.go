package intake

import (
	"regexp"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// What an hour means is decided here, for a cell of a file as for what somebody types: it is local time
// of its zone unless it names an offset. One over which the clocks are put forward is refused. Of one
// that comes twice, because they are put back, the first is meant, and for an end the second where the
// sitting would else be over before it starts; that it was so is said, and how the other is written.

// Hour is what was understood of a written hour.
type Hour struct {
	At    time.Time
	Timed bool // false: it names a day alone, and At is the beginning of it

	text   string
	reason string
	facts  problem.Facts
}

// Doubt is the warning that the hour comes twice, as a reason and its facts; ok is false where it does not.
func (h Hour) Doubt() (reason string, facts problem.Facts, ok bool) {
	return h.reason, h.facts, h.reason != ""
}

// ReadHour reads an hour. Its errors are those of sheet.
func ReadHour(order sheet.DateOrder, text string, zone *time.Location) (Hour, error) {
	at, timed, err := order.Instant(text, zone)
	if err != nil {
		return Hour{Timed: timed}, err
	}
	h := Hour{At: at, Timed: timed, text: text}
	if later, twice := order.Later(text, zone); twice {
		h.doubt("time_comes_twice", later, zone)
	}
	return h, nil
}

// clockOnly is an end that names the hour alone: it is meant on the day of the start.
var clockOnly = regexp.MustCompile(`^\d{1,2} ?([:hH]) ?(\d{2})?(:\d{2})?$`)

// ReadEnd reads the end of a sitting whose start is known.
func ReadEnd(order sheet.DateOrder, text string, zone *time.Location, startsAt time.Time) (Hour, error) {
	if clockOnly.MatchString(text) {
		text = startsAt.In(zone).Format(time.DateOnly) + " " + text
	}
	h, err := ReadHour(order, text, zone)
	if err != nil {
		return h, err
	}
	at, _, err := order.InstantAfter(text, zone, startsAt)
	if err != nil {
		return h, err
	}
	if earlier := h.At; !at.Equal(earlier) {
		h.At = at
		h.doubt("time_comes_twice_later", earlier, zone)
	}
	return h, nil
}

func (h *Hour) doubt(reason string, other time.Time, zone *time.Location) {
	h.reason = reason
	h.facts = problem.Facts{
		"zone": zone.String(), "understood": sheet.WriteInstant(h.At.In(zone)), "other": sheet.WriteInstant(other.In(zone)),
	}
}
