package i18n_test

import (
	"testing"
	"time"

	"usher/internal/base/i18n"
)

func TestMonth(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{"en": "August 2027", "fr": "août 2027", "es": "agosto de 2027"} {
		if got := i18n.Speak(language).Month(time.Date(2027, 8, 31, 23, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}
