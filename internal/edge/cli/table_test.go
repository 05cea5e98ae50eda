package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
)

// At each width, what belongs together stands on one line, and nothing is lost.
func TestTable_BreaksAtOrdinarySpacesAlone(t *testing.T) {
	cell := "Centre\u00a0: il manque 10\u202f000\u00a0francs sur 12\u00a0500, à payer au guichet de Sikasso"
	for _, width := range []string{"20", "25", "30", "40", "60"} {
		var out bytes.Buffer
		t.Setenv("COLUMNS", width)
		s := &session{stdout: &printer{to: &out}, voice: i18n.Speak("fr")}
		s.table([]string{"cli_column"}, []table.Row{{cell}})
		for _, whole := range []string{"Centre\u00a0:", "10\u202f000\u00a0francs", "12\u00a0500,"} {
			if !strings.Contains(out.String(), whole) {
				t.Errorf("%s columns break %q:\n%s", width, whole, &out)
			}
		}
	}
}
