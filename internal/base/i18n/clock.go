package i18n

import (
	"fmt"
	"time"
)

// Clock is the hour of an instant that is already in its zone, as the clock on the wall shows it: 08:00.
// When clocks are put back one hour comes twice; there, and only there, the offset says which of the two
// is meant: 02:30 UTC+2.
func Clock(local time.Time) string {
	hour := local.Format("15:04")
	if comesTwice(local) {
		hour += " " + Offset(local)
	}
	return hour
}

// comesTwice tells whether the civil time of an instant is that of another instant as well.
func comesTwice(local time.Time) bool {
	_, offset := local.Zone()
	since, until := local.ZoneBounds()
	if !since.IsZero() {
		_, before := since.Add(-time.Nanosecond).Zone()
		if local.Sub(since) < time.Duration(before-offset)*time.Second {
			return true
		}
	}
	if until.IsZero() {
		return false
	}
	_, after := until.Zone()
	return until.Sub(local) <= time.Duration(offset-after)*time.Second
}

// Offset is what the clocks of a zone are ahead of UTC at an instant: UTC+2, UTC-3:30.
func Offset(local time.Time) string {
	_, seconds := local.Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	text := fmt.Sprintf("UTC%s%d", sign, seconds/3600)
	if minutes := seconds / 60 % 60; minutes > 0 {
		text += fmt.Sprintf(":%02d", minutes)
	}
	return text
}
