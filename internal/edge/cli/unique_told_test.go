package cli

import (
	"bytes"
	"strings"
	"testing"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
)

// In a file, who is waited for stands once, however often it is looked, and again when it is somebody else.
func TestUniqueTeller_NamesWhomItWaitsForOnce(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	tell := (&session{stderr: &errs, voice: i18n.Speak("en")}).uniqueTeller()
	one, other := []pg.Blocker{{PID: 7, User: "awa"}}, []pg.Blocker{{PID: 8, User: "issa"}}
	tell(pg.UniqueStep{At: pg.UniqueBuilds})
	for range 3 {
		tell(pg.UniqueStep{At: pg.UniqueWaits, Waits: one})
	}
	tell(pg.UniqueStep{At: pg.UniqueWaits, Waits: other})
	for try := range 3 {
		tell(pg.UniqueStep{At: pg.UniqueEvaded, Waits: other, Try: try + 1})
	}
	lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "7 (awa") || !strings.Contains(lines[1], "8 (issa") || !strings.Contains(lines[2], "attempt 1") {
		t.Errorf("it writes\n%s", errs.String())
	}
}
