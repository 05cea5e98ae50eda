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
	"usher/internal/domain/account"
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
	s.Corrections = []Corrected{{Month: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), AmountMinor: 1000, Reason: "Facture 2026-118", At: at}}
	from, most := time.Date(2026, 9, 12, 0, 0, 0, 0, time.UTC), int64(500)
	s.Rates = []account.Commission{{Currency: "EUR", FromAt: &from, Permyriad: 500, MostMinor: &most}, {Currency: "EUR"}}
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
		"en": {
			"Statement of October 2026", "What the month leaves", "10,000.00", "Théâtre du Fleuve", "[…] n° 0", "Settled on", "12 tickets", "September 2026: Facture 2026-118",
			"held: 0 % of the price in EUR; 5 % of the price in EUR, at most EUR 5.00", "a ticket from Saturday 12 September 2026, 02:00",
		},
		"fr": {"Relevé · octobre 2026 · EUR", "À verser à l'organisateur", "9 933,50", "Billets vendus", "septembre 2026 : Facture 2026-118"},
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

// What gateways have more is, account by account, what others own of it.
func TestRows_BothHalvesMeet(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	org := b.organiser(1, "Africa/Bamako", "XOF")
	b.rate(1, "XOF", 500, nil)
	b.at("2026-10-10T12:00:00Z")
	b.back(1, b.sold(1, "XOF", 5000, 5000, 3000), "ticket_cancelled", 5000, 1)
	b.exec(`insert into payment (organisation_id, kind, gateway_id, amount_minor, currency, method, received_at, idempotency_key, actor) values (1, 'received', 1, 700, 'XOF', 'g', clock(), 'stray', 'a')`)
	b.at("2026-11-02T05:00:00Z").settled("2026-10@Africa/Bamako", []int64{1}, "1 XOF net 7600 carried 0 pays 7600")
	for _, reason := range []string{"the hall was dark", "the heating failed"} {
		_, _, err := Correct(t.Context(), b.db, b.admin, org, Correcting{Month: "2026-10", AmountMinor: -250, Reason: reason})
		b.must(err)
	}
	b.at("2026-12-02T05:00:00Z").settled("2026-11@Africa/Bamako", []int64{1}, "1 XOF net -500 carried 0 pays 0")
	for month, want := range map[string][]string{
		"2026-10": {
			"Tickets sold|3 tickets|XOF 13,000", " house-1-xof|3 tickets|XOF 13,000", "Tickets given back|1 ticket|-XOF 5,000", " house-1-xof|1 ticket|-XOF 5,000",
			"Commission|3 tickets|-XOF 650", " house-1-xof|3 tickets|-XOF 650", "Commission of what went back|1 ticket|XOF 250", " house-1-xof|1 ticket|XOF 250",
			"What the month leaves||XOF 7,600", "To be paid to the organiser||XOF 7,600",
			"Received for reservations|1 movement|XOF 13,000", "Went back to buyers|1 movement|-XOF 5,000", "Received, and nobody's yet|1 movement|XOF 700",
			"What gateways and counters have more||XOF 8,700",
			" of it, what the month leaves to the organiser||XOF 7,600", " of it, commission, after corrections||XOF 400", " of it, nobody's yet||XOF 700",
		},
		"2026-11": {
			"Corrections of earlier months|2 corrections|-XOF 500", " October 2026: the hall was dark||-XOF 250", " October 2026: the heating failed||-XOF 250",
			"What the month leaves||-XOF 500", "Carried to the next statement||-XOF 500", "What gateways and counters have more||XOF 0",
			" of it, what the month leaves to the organiser||-XOF 500", " of it, commission, after corrections||XOF 500",
		},
	} {
		all, err := Show(t.Context(), b.db, b.admin, org, month, "")
		b.must(err)
		var said []string
		voice := i18n.Speak("en")
		for _, row := range all[0].Rows(voice) {
			text := row.Text
			if row.Part {
				text = " " + text
			}
			said = append(said, strings.ReplaceAll(text+"|"+row.Counted(voice)+"|"+voice.Money(row.Money), "\u00a0", " "))
		}
		b.equal(month, strings.Join(said, "\n"), strings.Join(want, "\n"))
		if all[0].Balance(Gateways) != all[0].Balance(Organiser)+all[0].Balance(Usher)+all[0].Balance(Buyers)+all[0].Balance(Nobody) {
			t.Errorf("%s does not balance", month)
		}
	}
}

// A spreadsheet has a sheet for each currency, with amounts to count with.
func TestPaper_XLSX(t *testing.T) {
	t.Parallel()
	p := paperOf("en", 3)
	p.Statements[1].Currency = "XOF"
	sold := time.Date(2026, 10, 24, 23, 30, 0, 0, time.UTC)
	p.Lines = [][]Line{{{Kind: Sale, At: sold, Event: "e", EventName: "La soirée", Reservation: "R1", Pieces: 2, AmountMinor: 123450, CommissionMinor: -6173}}, nil}
	var out bytes.Buffer
	if err := p.WriteXLSX(&out); err != nil {
		t.Fatal(err)
	}
	file, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	if kind, err := file.GetCellType("2026-10 XOF", "E6"); err != nil || kind == excelize.CellTypeSharedString || kind == excelize.CellTypeInlineString {
		t.Errorf("an amount is of the type %v, %v", kind, err)
	}
	opened, err := file.GetRows("lines 2026-10 EUR")
	if err != nil || len(opened) < 2 {
		t.Fatalf("%v, %v", opened, err)
	}
	if got := strings.Join(opened[len(opened)-1], "|"); got != "Tickets sold|2026-10-25 01:30:00 +02:00|La soirée|R1|2|1,234.50 EUR|-61.73 EUR" {
		t.Errorf("a line reads %s", got)
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
	for _, want := range []string{"Statement of October 2026 · XOF", "What for|Number|Of what|Amount|To count with", "What the month leaves|||XOF 1,000,000|1,000,000 XOF"} {
		if !strings.Contains(all, want) {
			t.Errorf("it lacks %q:\n%s", want, all)
		}
	}
}
