package doorlist_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"usher/internal/domain/doorlist"
)

// Two people whose names are alike are told apart by their reference and, where it is known, the day of their birth. Nobody else's
// stands on the list.
func TestList_TellsNamesakesApart(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", guest{family: "Traoré", given: "Awa"}, guest{family: "TRAORE", given: "Awa"}, guest{family: "Traoré", given: "Moussa"},
		guest{family: "N'Guessan", given: "Éric"}, guest{family: "N’Guessan", given: "Eric"}, guest{family: "Diop", given: "Zoé"})
	d.exec(`update candidate set birth_on = ('2004-03-0' || right(reference, 1))::date where organisation_id = $1 and reference <> 'C005'`, d.org.ID)
	printed := d.print()
	born := map[string]string{}
	for _, p := range printed.Content.People {
		born[p.Reference] = p.Born
	}
	for reference, want := range map[string]string{"C001": "2004-03-01", "C002": "2004-03-02", "C003": "", "C004": "2004-03-04", "C005": "", "C006": ""} {
		if born[reference] != want {
			t.Errorf("%s: born %q, want %q", reference, born[reference], want)
		}
	}
	for _, order := range []doorlist.Order{doorlist.BySeat, doorlist.ByName, doorlist.Both} {
		text := raw(t, d.file(printed, doorlist.PDF, order))
		parts := 1
		if order == doorlist.Both {
			parts = 2
		}
		for want, times := range map[string]int{"né(e) le 01/03/2004": 1, "né(e) le 02/03/2004": 1, "né(e) le 04/03/2004": 1, "C001": 1, "C002": 1, "né(e) le": 3} {
			if n := strings.Count(text, want); n != times*parts {
				t.Errorf("%s: %q stands %d times, want %d:\n%s", order, want, n, times*parts, text)
			}
		}
	}
	if got := columnOf(t, d.file(printed, doorlist.CSV, doorlist.BySeat), 8); !slices.Equal(got, []string{"2004-03-01", "2004-03-02", "", "2004-03-04", "", ""}) {
		t.Errorf("CSV: %q", got)
	}
	sheet := func(p doorlist.Printed) []string {
		t.Helper()
		file, err := excelize.OpenReader(bytes.NewReader(d.file(p, doorlist.XLSX, doorlist.BySeat)))
		d.must(err)
		t.Cleanup(func() { _ = file.Close() })
		rows, err := file.GetRows("Par place")
		d.must(err)
		titles := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "Place" })
		return append(rows[titles][:4], rows[titles+1][:4]...)
	}
	if got := sheet(printed); !slices.Equal(got, []string{
		"Place", "Nom", "Prénom", "Date de naissance (homonymes)", "001", "Traoré", "Awa", "01/03/2004",
	}) {
		t.Errorf("XLSX: %q", got)
	}

	letters, err := d.letters(0)
	d.must(err)
	if letters.Content.People[0].Born != "" {
		t.Error("letters do not show it, and must not become a new version for it")
	}
	d.release("C002")
	d.release("C004")
	second := d.print()
	if slices.ContainsFunc(second.Content.People, func(p doorlist.Person) bool { return p.Born != "" }) {
		t.Errorf("nobody has a namesake any more: %+v", second.Content.People)
	}
	if got := sheet(second); got[3] != "Dossier" {
		t.Errorf("XLSX without namesakes: %q", got)
	}
}
