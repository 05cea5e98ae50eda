package doorlist_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/domain/doorlist"
	"usher/internal/domain/testdb"
)

// A code that is genuine may have been copied from a friend's letter: the number of each one's own stands on the list.
func TestList_HasTheNumberOfEachLetter(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	letters, err := d.letters(0)
	d.must(err)
	printed := d.print()
	text := d.read(d.file(printed, doorlist.PDF, doorlist.Both))
	column := columnOf(t, d.file(printed, doorlist.CSV, doorlist.BySeat), 10)
	for i, l := range letters.Content.Letters {
		if printed.Content.People[i].Reference != l.Reference || column[i] != l.Short() || strings.Count(text, l.Short()) != 2 {
			t.Errorf("%s has letter %s: in the CSV %q, %d times on paper", l.Reference, l.Short(), column[i], strings.Count(text, l.Short()))
		}
	}
}

// A list that was printed before letters had numbers on it stays the version that it is while nobody changes; and nobody counts
// as corrected when somebody does.
func TestList_PrintedBeforeLettersHadNumbersStaysItsVersion(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	d.print()
	_, err := testdb.Owner(t, d.url).Exec(t.Context(), `update printing set content = jsonb_set(content, '{people}', (select jsonb_agg(p - 'letter' order by n)
  from jsonb_array_elements(content->'people') with ordinality of(p, n))) where organisation_id = $1`, d.org.ID)
	d.must(err)
	if again := d.print(); again.IsNew || again.Version != 1 {
		t.Errorf("nobody changed, and version %d was made", again.Version)
	}
	d.release("C001")
	second := d.print()
	if second.Version != 2 || len(second.Changes.Left) != 1 || len(second.Changes.Corrected) != 0 || second.Content.People[0].Letter == "" {
		t.Errorf("version %d: %+v", second.Version, second.Changes)
	}
}

// Each row of a CSV says what changed of its person; who was taken off has no row, so that rows are people.
func TestCSV_SaysWhatChanged(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", five()...)
	first := d.print()
	for _, column := range []int{11, 12} {
		if got := columnOf(t, d.file(first, doorlist.CSV, doorlist.BySeat), column); slices.ContainsFunc(got, func(v string) bool { return v != "" }) {
			t.Errorf("a first version says of changes %q", got)
		}
	}
	d.release("C001")
	d.release("C002")
	d.take("C002", "S001", "9")
	d.seat("S001", guest{family: "Zerbo", given: "Ali"})
	d.exec(`update candidate set given_name = 'Nouveau' where organisation_id = $1 and reference = 'C003'`, d.org.ID)
	printed := d.print()
	file := d.file(printed, doorlist.CSV, doorlist.BySeat)
	references, changes, besides := columnOf(t, file, 4), columnOf(t, file, 11), columnOf(t, file, 12)
	if len(references) != printed.People {
		t.Errorf("%d rows of %d people", len(references), printed.People)
	}
	said := map[string]string{}
	for i, reference := range references {
		said[reference] = changes[i]
		if b := strings.ReplaceAll(besides[i], "\u00a0", " "); !strings.HasPrefix(b, "Depuis la version 1, ") || !strings.Contains(b, "Retirés de la liste (1) : Traoré Awa (place 001)") {
			t.Errorf("besides: %q", b)
		}
	}
	for reference, want := range map[string]string{"C002": "Autre place (002 → 009)", "C003": "Corrigé", "C004": "", "C006": "Ajouté"} {
		if said[reference] != want {
			t.Errorf("%s: %q, want %q", reference, said[reference], want)
		}
	}
}

// C75, C88: a list has the day and the hours of its centre, in its text, its file name and its data.
func TestList_HasTheCentresDayAndHour(t *testing.T) {
	t.Parallel()
	for zone, c := range map[string]struct{ starts, when, until, file, offset string }{
		"Asia/Kathmandu":   {"2099-12-07T20:30:00Z", "mardi 8 décembre 2099 à 02:15 (Asia/Kathmandu)", "jusqu'à 04:15", "S002_2099-12-08-02h15_", "+05:45"},
		"America/St_Johns": {"2099-12-07T01:00:00Z", "dimanche 6 décembre 2099 à 21:30 (America/St_Johns)", "jusqu'à 23:30", "S002_2099-12-06-21h30_", "-03:30"},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			d := newDoor(t, 10)
			d.sit("Salle 2", "Loin", zone, c.starts, 5)
			d.seat("S002", guest{family: "Diop", given: "Awa"})
			request := d.request()
			request.Sitting = "S002"
			printed, err := doorlist.Print(t.Context(), d.db, d.actor, request)
			d.must(err)
			if name := printed.FileName(doorlist.PDF); !strings.HasPrefix(name, c.file) {
				t.Errorf("the file is called %s", name)
			}
			location, err := time.LoadLocation(zone)
			d.must(err)
			stamp := printed.PrintedAt.In(location)
			text := strings.ReplaceAll(d.read(d.file(printed, doorlist.PDF, doorlist.Both)), "\u00a0", " ")
			for _, want := range []string{c.when, c.until, stamp.Format("15:04") + " (" + zone + ")"} {
				if !strings.Contains(text, want) {
					t.Errorf("the list lacks %q:\n%s", want, text)
				}
			}
			at := columnOf(t, d.file(printed, doorlist.CSV, doorlist.BySeat), 7)[0]
			if read, err := time.Parse(time.RFC3339, at); err != nil || !read.Equal(printed.PrintedAt.Truncate(time.Second)) || !strings.HasSuffix(at, c.offset) {
				t.Errorf("printed at %s, want the instant %s with %s (%v)", at, printed.PrintedAt, c.offset, err)
			}
			_, sheets := readWorkbook(t, d.file(printed, doorlist.XLSX, doorlist.Both))
			if got := strings.ReplaceAll(sheets["Par place"]["A2"].text, "\u00a0", " "); !strings.Contains(got, c.when) {
				t.Errorf("above the sheet stands %q", got)
			}
			request.Document = doorlist.Letters
			letters, err := doorlist.Print(t.Context(), d.db, d.actor, request)
			d.must(err)
			if name := letters.FileName(doorlist.PDF); !strings.HasPrefix(name, c.file) {
				t.Errorf("the letters are called %s", name)
			}
			if !bytes.Contains([]byte(d.read(d.file(letters, doorlist.PDF, doorlist.Both))), []byte(zone)) {
				t.Error("the letter does not name its zone")
			}
		})
	}
}
