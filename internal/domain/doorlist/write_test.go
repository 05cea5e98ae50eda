package doorlist_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/domain/doorlist"
	"usher/internal/domain/testdb"
)

func day(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPDF_SaysWhatADoorNeeds(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 60)
	d.seat("S001", five()...)
	for i := range 40 {
		d.seat("S001", guest{family: fmt.Sprintf("Coulibaly %02d", i), given: "Moussa"})
	}
	printed := d.print()
	text := strings.ReplaceAll(d.read(d.file(printed, doorlist.PDF, doorlist.Both)), "\u00a0", " ")
	pages := strings.Split(strings.TrimSuffix(text, "\f"), "\f")
	for _, want := range []string{
		"École d'ingénieurs · Concours d'entrée", "Liste d'émargement · Séance S001", "Salle 1, Badalabougou",
		"MATHS · lundi 7 décembre 2099 à 08:00 (Africa/Bamako), jusqu'à 10:00", "45 personnes (places : 60) · Version 1, imprimée le",
		"Fauteuil", "roulant", "Par place, à signer", "001 – 0",
	} {
		if !strings.Contains(pages[0], want) {
			t.Errorf("the first page lacks %q:\n%s", want, pages[0])
		}
	}
	for i, page := range pages {
		for _, want := range []string{
			fmt.Sprintf("Page %d sur %d", i+1, len(pages)), "S001 · Version 1, imprimée le", "Salle 1, Badalabougou", "Dossier", "Besoins",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("page %d lacks %q:\n%s", i+1, want, page)
			}
		}
	}
	if n := strings.Count(text, "Fin de la liste. 45 personnes."); n != 2 {
		t.Errorf("%d parts end with their count, want 2", n)
	}
	if signed, found := strings.Count(text, "Signature"), strings.Count(text, "Par nom, pour trouver une place"); signed == 0 || found == 0 || signed+found != len(pages) {
		t.Errorf("%d pages to sign and %d to find a seat, of %d", signed, found, len(pages))
	}
	for _, family := range []string{"Traoré", "N'Guessan", "Kɔ̀ɔ̀nyɛ́", "d'Ormesson", `=HYPERLINK("x")`} {
		if n := strings.Count(text, family); n < 2 {
			t.Errorf("%s stands %d times, want once in each part", family, n)
		}
	}
	if strings.Contains(text, "�") {
		t.Error("a letter is lost")
	}
}

// TestPDF_LongNames: a name without end shrinks, wraps and goes on; no letter is lost.
func TestPDF_LongNames(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	long, endless := strings.Repeat("Rakotomalala-", 15)+"Fin", strings.Repeat("ɔbaŋ", 600)
	d.seat("S001", guest{family: long, given: "Awa"}, guest{family: endless, given: "Zoé"})
	text := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\f' {
			return -1
		}
		return r
	}, raw(t, d.file(d.print(), doorlist.PDF, doorlist.BySeat)))
	if !strings.Contains(text, long) {
		t.Errorf("a letter of a long name is lost:\n%s", text)
	}
	if n := strings.Count(text, "ɔ"); n != 600 {
		t.Errorf("%d of 600 parts of a name without end", n)
	}
}

// raw gives the text of a PDF in the order in which it was drawn.
func raw(t *testing.T, pdf []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "raw.pdf")
	if err := os.WriteFile(file, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("pdftotext", "-raw", file, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// C77: what the typefaces lack is never a box and never left out: it is listed, and sheets have it.
func TestUndrawable_IsListed(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", guest{family: "王", given: "芳"}, guest{family: "محمد", given: "Ali"}, guest{family: "Nguyễn Thị", given: "Łukasz"})
	printed := d.print()
	var listed []string
	for _, u := range printed.Undrawable() {
		listed = append(listed, u.Reference+" "+u.Seat+" "+u.Text)
	}
	slices.Sort(listed)
	if want := []string{"C001 001 王 芳", "C002 002 محمد Ali"}; !slices.Equal(listed, want) {
		t.Errorf("listed %q, want %q", listed, want)
	}
	text := strings.ReplaceAll(d.read(d.file(printed, doorlist.PDF, doorlist.Both)), "\u00a0", " ")
	for _, want := range []string{"Ce que ce papier ne peut pas montrer", "C001 (place 001)", "C002 (place 002)", "(à écrire à la main)", "Nguyễn Thị", "Łukasz"} {
		if !strings.Contains(text, want) {
			t.Errorf("the PDF lacks %q:\n%s", want, text)
		}
	}
	if got := columnOf(t, d.file(printed, doorlist.CSV, doorlist.BySeat), 2); !slices.Equal(got, []string{"王", "محمد", "Nguyễn Thị"}) {
		t.Errorf("in the CSV: %q", got)
	}
}

func TestCSV_OpensInAFrenchSpreadsheet(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	printed := d.print()
	file := d.file(printed, doorlist.CSV, doorlist.ByName)
	if !bytes.HasPrefix(file, []byte("\xEF\xBB\xBFSéance;Place;Nom;")) {
		t.Errorf("begins with %q", file[:30])
	}
	if got := columnOf(t, file, 2)[0]; got != `'=HYPERLINK("x")` {
		t.Errorf("a formula is written as %q", got)
	}
	if got := columnOf(t, file, 1); len(got) != printed.People || !slices.Contains(got, "001") {
		t.Errorf("%d rows of %d people: %q", len(got), printed.People, got)
	}
	if got := columnOf(t, file, 6); slices.ContainsFunc(got, func(v string) bool { return v != "1" }) {
		t.Errorf("versions %q", got)
	}
	if got := columnOf(t, file, 7)[0]; got != printed.PrintedAt.Format(time.RFC3339) { // Bamako is at UTC
		t.Errorf("printed at %q, want %s", got, printed.PrintedAt)
	}
}

func TestXLSX_HasBothOrdersAndTheChanges(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.print()
	d.release("C001")
	printed := d.print()
	names, sheets := readWorkbook(t, d.file(printed, doorlist.XLSX, doorlist.Both))
	if got := strings.Join(names, "|"); got != "Par place|Par nom|Changements" {
		t.Errorf("sheets %s", got)
	}
	list := sheets["Par place"]
	titles := 1
	for ; list[fmt.Sprint("A", titles)].text != "Place"; titles++ {
		if titles > 20 {
			t.Fatal("there are no titles")
		}
	}
	preface := ""
	for row := 1; row < titles; row++ {
		preface += strings.ReplaceAll(list[fmt.Sprint("A", row)].text, "\u00a0", " ") + "\n"
	}
	for _, want := range []string{
		"Salle 1, Badalabougou", "lundi 7 décembre 2099 à 08:00 (Africa/Bamako)", "Version 2, imprimée le", "Depuis la version 1",
		"Retirés de la liste (1)", "Par nom : feuille « Changements »",
	} {
		if !strings.Contains(preface, want) {
			t.Errorf("above the titles there is no %q: %s", want, preface)
		}
	}
	for i, person := range printed.Content.People {
		row := titles + 1 + i
		for column, want := range map[string]string{"A": person.Seat, "B": person.FamilyName, "D": person.Reference, "E": person.Letter} {
			if got := list[fmt.Sprint(column, row)]; got.text != want || !got.isText() {
				t.Errorf("%s%d is %q of type %q, want the text %q", column, row, got.text, got.kind, want)
			}
		}
	}
	if over := list[fmt.Sprint("A", titles+1+printed.People)]; over.text != "" {
		t.Errorf("below the people stands %q", over.text)
	}
	changes := sheets["Changements"]
	last := 1
	for changes[fmt.Sprint("A", last+1)].text != "" || last < 3 {
		last++
	}
	for column, want := range map[string]string{"A": "Retiré de la liste", "B": "Traoré Awa", "C": "C001", "D": "001"} {
		if got := changes[fmt.Sprint(column, last)]; got.text != want || !got.isText() {
			t.Errorf("changes %s%d: %q of type %q, want the text %q", column, last, got.text, got.kind, want)
		}
	}
}

// TestList_SeatsAtTheDoor: one part by name, with the seat to be written down.
func TestList_SeatsAtTheDoor(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.exec(`update sitting set seats_at_door = true where organisation_id = $1`, d.org.ID)
	d.seat("S001", five()...)
	printed := d.print()
	text := strings.ReplaceAll(d.read(d.file(printed, doorlist.PDF, doorlist.Both)), "\u00a0", " ")
	for _, want := range []string{"Les places sont données à l'entrée", "Par nom, à signer", "Signature", "Fin de la liste. 5 personnes."} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q stands %d times, want 1:\n%s", want, strings.Count(text, want), text)
		}
	}
}

func TestFileName_IsSafeAndReadable(t *testing.T) {
	t.Parallel()
	d := openDoor(t, testdb.New(t), "ecole", "fr")
	d.sit("Salle 1/B: « L'été »", "../Centre \\ *d'Éric*", "Africa/Bamako", "2099-12-07T08:00:00Z", 5)
	d.seat("S001", guest{family: "A"})
	if got, want := d.print().FileName(doorlist.PDF), "S001_2099-12-07-08h00_Centre-d-Éric_Salle-1-B-L-été_emargement_v1.pdf"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
