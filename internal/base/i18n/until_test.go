package i18n_test

import (
	"testing"
	"time"

	"usher/internal/base/i18n"
)

func TestUntil_NamesTheDayOnlyWhereItIsAnother(t *testing.T) {
	t.Parallel()
	begins := i18n.Instant{At: time.Date(2027, 12, 31, 22, 0, 0, 0, time.UTC), Zone: "Africa/Bamako"}
	for lasts, want := range map[time.Duration]string{
		time.Hour: "23:00", 3 * time.Hour: "samedi 1er janvier 2028, 01:00", 366 * 24 * time.Hour: "dimanche 31 décembre 2028, 22:00",
	} {
		if got := i18n.Speak("fr").Until(begins, i18n.Instant{At: begins.At.Add(lasts), Zone: begins.Zone}); got != want {
			t.Errorf("after %s: %q, want %q", lasts, got, want)
		}
	}
	// The zone of the beginning decides: half past eleven to half past one in Paris is one day in UTC.
	paris := i18n.Instant{At: time.Date(2027, 6, 1, 21, 30, 0, 0, time.UTC), Zone: "Europe/Paris"}
	if got := i18n.Speak("en").Until(paris, i18n.Instant{At: paris.At.Add(2 * time.Hour), Zone: paris.Zone}); got != "Wednesday 2 June 2027, 01:30" {
		t.Error(got)
	}
}
