package i18n_test

import (
	"strings"
	"testing"
	"time"

	"usher/internal/base/i18n"
)

func TestClock_SaysTheOffsetOnlyOfAnHourThatComesTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, at, want string }{
		{"Europe/Paris", "2027-10-31T00:30:00Z", "02:30 UTC+2"},
		{"Europe/Paris", "2027-10-31T01:30:00Z", "02:30 UTC+1"},
		{"Europe/Paris", "2027-10-31T00:00:00Z", "02:00 UTC+2"},
		{"Europe/Paris", "2027-10-30T23:59:00Z", "01:59"},
		{"Europe/Paris", "2027-10-31T01:59:00Z", "02:59 UTC+1"},
		{"Europe/Paris", "2027-10-31T02:00:00Z", "03:00"},
		{"Europe/Paris", "2027-03-28T01:30:00Z", "03:30"}, // an hour that is left out is no hour that comes twice
		{"Europe/Paris", "2027-06-01T00:30:00Z", "02:30"},
		{"America/New_York", "2027-11-07T05:30:00Z", "01:30 UTC-4"},
		{"America/New_York", "2027-11-07T06:30:00Z", "01:30 UTC-5"},
		{"Australia/Lord_Howe", "2027-04-03T14:45:00Z", "01:45 UTC+11"}, // clocks go back half an hour
		{"Australia/Lord_Howe", "2027-04-03T15:15:00Z", "01:45 UTC+10:30"},
		{"Africa/Bamako", "2027-10-31T02:30:00Z", "02:30"},
		{"Asia/Kolkata", "2027-10-31T02:30:00Z", "08:00"},
		{"UTC", "2027-10-31T02:30:00Z", "02:30"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		instant := i18n.Instant{At: at, Zone: c.zone}
		if got := i18n.Clock(i18n.In(instant)); got != c.want {
			t.Errorf("%s in %s is %q, want %q", c.at, c.zone, got, c.want)
		}
		for _, lang := range i18n.Languages {
			if got := i18n.Speak(lang).Instant(instant); !strings.HasSuffix(got, c.want+" ("+c.zone+")") {
				t.Errorf("%s writes %s as %q, want the hour %q", lang, c.at, got, c.want)
			}
		}
	}
}

func TestNumber_PartsDigitsAsMoneyDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lang string
		n    int64
		want string
	}{
		{"en", 999, "999"},
		{"en", 1334, "1,334"},
		{"en", 10826, "10,826"},
		{"en", 1234567, "1,234,567"},
		{"fr", 999, "999"},
		{"fr", 1334, "1\u202f334"},
		{"fr", 10826, "10\u202f826"},
		{"es", 999, "999"},
		{"es", 1334, "1334"},
		{"es", 10826, "10\u202f826"},
	} {
		if got := i18n.Speak(c.lang).Number(c.n); got != c.want {
			t.Errorf("%s writes %d as %q, want %q", c.lang, c.n, got, c.want)
		}
	}
	for lang, want := range map[string]string{"en": "0.1", "fr": "0,1", "es": "0,1"} {
		if got := i18n.Speak(lang).Decimal(0.1, 1); got != want {
			t.Errorf("%s writes a tenth as %q, want %q", lang, got, want)
		}
	}
}
