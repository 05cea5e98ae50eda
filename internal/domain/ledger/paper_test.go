package ledger

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"usher/internal/base/i18n"
)

// paperOf is the statement of a month with everything that may stand on one, and with more events than a page holds.
func paperOf(lang string, events int) Paper {
	at := time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)
	s := Statement{
		Month: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), Currency: "EUR", TimeZone: "Europe/Paris", UntilAt: at, SettledAt: at.Add(29 * time.Hour),
		CarriedMinor: -6650, NetMinor: 1_000_000, PayableMinor: 993_350,
	}
	for _, kind := range Kinds {
		s.Entries = append(s.Entries, Entry{Kind: kind, AmountMinor: 1000, Pieces: 1, Debit: Buyers, Credit: Organiser})
	}
	for n := range events {
		s.Entries = append(s.Entries, Entry{
			Kind: Sale, Event: fmt.Sprint("e", n), EventName: fmt.Sprintf("La très longue soirée de l'orchestre 漢字 n° %d", n),
			AmountMinor: 123_456, Pieces: 12, Debit: Buyers, Credit: Organiser,
		})
	}
	return Paper{Organisation: "Théâtre du Fleuve", Month: "2026-10", Statements: []Statement{s, s}, Voice: i18n.Speak(lang)}
}

// The paper says what the statement says, in the reader's language, on as many pages as it takes; the same statements give the same bytes.
func TestPaper_PDF(t *testing.T) {
	t.Parallel()
	reader, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Fatal("pdftotext is needed (package poppler-utils)")
	}
	for lang, want := range map[string][]string{
		"en": {"Statement of October 2026", "What the month leaves", "10,000.00", "Théâtre du Fleuve", "[…] n° 0", "Settled on"},
		"fr": {"Relevé · octobre 2026 · EUR", "À verser à l'organisateur", "9 933,50", "Billets vendus"},
		"es": {"Extracto de octubre de 2026", "A pagar al organizador", "Entradas vendidas"},
	} {
		var first, again bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &again} {
			if err := paperOf(lang, 120).WritePDF(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Errorf("%s: the same statements give other bytes", lang)
		}
		file := filepath.Join(t.TempDir(), "s.pdf")
		if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := exec.CommandContext(t.Context(), reader, "-layout", file, "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		said := strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(string(text))
		for _, one := range want {
			if !strings.Contains(said, one) {
				t.Errorf("%s lacks %q:\n%.3000s", lang, one, said)
			}
		}
		if pages := strings.Count(string(text), "\f"); pages < 4 {
			t.Errorf("%s: %d pages", lang, pages)
		}
	}
	if err := (Paper{}).WritePDF(&bytes.Buffer{}); err == nil {
		t.Error("a paper of nothing was drawn")
	}
}

// A spreadsheet has a sheet for each currency, with amounts to count with.
func TestPaper_XLSX(t *testing.T) {
	t.Parallel()
	p := paperOf("en", 3)
	p.Statements[1].Currency = "XOF"
	var out bytes.Buffer
	if err := p.WriteXLSX(&out); err != nil {
		t.Fatal(err)
	}
	file, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := file.GetRows("2026-10 XOF")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, row := range rows {
		said = append(said, strings.Join(row, "|"))
	}
	all := strings.ReplaceAll(strings.Join(said, "\n"), "\u00a0", " ")
	for _, want := range []string{"Statement of October 2026 · XOF", "What for|Number|Amount|Minor units", "What the month leaves||XOF 1,000,000|1000000"} {
		if !strings.Contains(all, want) {
			t.Errorf("it lacks %q:\n%s", want, all)
		}
	}
}
