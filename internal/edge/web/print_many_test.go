package web_test

import (
	"archive/zip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/testdb"
)

// bringOne adds one sitting with one place.
func (b *bundle) bringOne() {
	b.Helper()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,1,2099-12-07 08:00,2099-12-07 11:00")
}

func runPath(id int64) string { return fmt.Sprintf("/runs/%d", id) }

// unzip reads an archive: its files by name.
func (a answer) unzip(t *testing.T) map[string]string {
	t.Helper()
	if kind := a.Header.Get("Content-Type"); kind != "application/zip" {
		t.Fatalf("it is %s", kind)
	}
	archive, err := zip.NewReader(strings.NewReader(a.text), int64(len(a.text)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range archive.File {
		file, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name] = string(content)
	}
	return files
}

func TestPapers_OfADayAreOneArchiveThatNamesWhatIsMissing(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,2,2099-12-07 08:00,2099-12-07 11:00",
		"ENG,Kayes,Amphi 2,1,2099-12-07 08:00,2099-12-07 11:00", "ENG,Kayes,Amphi 3,9,2099-12-07 14:00,2099-12-07 17:00",
		"ENG,Bamako,Salle 1,9,2099-12-08 14:00,2099-12-08 17:00")
	b.file("Keita", "Traore", "Diarra")
	b.execute(b.click())
	b.page("/campaigns/enib", in("en")).wants(t, "/campaigns/enib/papers/door-lists.zip?day=2099-12-07", "/campaigns/enib/papers/letters.zip?day=2099-12-07").
		lacks(t, "day=2099-12-08\"")
	for _, path := range []string{"door-lists.zip?day=2099-12-07", "letters.zip?day=2099-12-07", "door-lists.zip?centre=Kayes", "door-lists.zip?day=2099-12-07&centre=kayes"} {
		answer := b.print("/campaigns/enib/papers/"+path, in("en"))
		papers, missing := 0, ""
		for name, content := range answer.unzip(t) {
			if strings.HasPrefix(content, "%PDF-") && (strings.HasPrefix(name, "S001_") || strings.HasPrefix(name, "S002_")) {
				papers++
			}
			if name == "not-printed.txt" {
				missing = content
			}
		}
		if papers != 2 || !strings.Contains(missing, "S003") || strings.Contains(missing, "S001") {
			t.Errorf("%s holds %d papers and says %q", path, papers, missing)
		}
	}
	for path, want := range map[string]int{
		"door-lists.zip?day=2099-12-08": http.StatusConflict, // nobody sits there
		"door-lists.zip?day=2099-12-09": http.StatusNotFound,
		"door-lists.zip?day=tomorrow":   http.StatusUnprocessableEntity,
		"door-lists.zip?centre=Gao":     http.StatusNotFound,
		"lists.zip?day=2099-12-07":      http.StatusNotFound,
	} {
		answer := b.post("/campaigns/enib/papers/"+path, url.Values{}, in("en"))
		if answer.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, answer.StatusCode, want)
		}
		answer.lacks(t, "no value", "problem_")
	}
	b.logIn(b.org, account.Cashier)
	b.page("/campaigns/enib").lacks(t, ".zip")
	if answer := b.post("/campaigns/enib/papers/door-lists.zip?day=2099-12-07", url.Values{}); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a cashier gets %d, want 403", answer.StatusCode)
	}
}

// Somebody whose name the typeface lacks has a page as everybody, and is named where it is printed and in the archive.
func TestPapers_NameWhatMustBeWrittenByHand(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,5,2099-12-07 08:00,2099-12-07 11:00")
	b.file("Keita", "محمد")
	b.execute(b.click())
	b.page("/campaigns/enib/sittings/S001", in("en")).wants(t, "must be written by hand", "محمد Awa (C-محمد)").lacks(t, "Keita Awa (")
	for bundle, says := range map[string]string{"letters.zip": "have an empty line", "door-lists.zip": "must be written by hand"} {
		files := b.print("/campaigns/enib/papers/"+bundle+"?day=2099-12-07", in("en")).unzip(t)
		if said := files["to-write-by-hand.txt"]; len(files) != 2 || !strings.Contains(said, says) || !strings.Contains(said, "S001_") ||
			!strings.Contains(said, "محمد Awa (C-محمد)") || strings.Contains(said, "Keita") {
			t.Errorf("%s: %d files, to write by hand: %q", bundle, len(files), said)
		}
	}
	paper := b.print("/campaigns/enib/sittings/S001/letters.pdf")
	if n := strings.Count(paper.text, "/Type /Page\n") + strings.Count(paper.text, "/Type /Page\r"); n != 2 {
		t.Errorf("%d letters for 2 people", n)
	}
}

// Printing keeps a version, so that nothing is printed by what only reads: scanners of links, previews, pages of others.
func TestPapers_ArePrintedByPostAlone(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	b.execute(b.click())
	kept := func() (n int) {
		b.must(testdb.Owner(b, b.url).QueryRow(b.Context(),
			`select (select count(*) from printing) + (select count(*) from drawing) + (select count(*) from timeline where kind = 'printed')`).Scan(&n))
		return n
	}
	paths := []string{
		"/campaigns/enib/sittings/S001/door-list.pdf", "/campaigns/enib/sittings/S001/door-list.xlsx", "/campaigns/enib/sittings/S001/letters.pdf",
		"/campaigns/enib/papers/letters.zip?day=2099-12-07", "/campaigns/enib/papers/door-lists.zip?day=2099-12-07",
	}
	from := func(site, method string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method = method
			r.Header.Set("Sec-Fetch-Site", site)
		}
	}
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, site := range []string{"same-origin", "none", "cross-site"} {
				answer := b.ask(path, from(site, method))
				if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != http.MethodPost {
					t.Errorf("%s %s from %s: %d, Allow %q", method, path, site, answer.StatusCode, answer.Header.Get("Allow"))
				}
			}
		}
		if answer := b.post(path, url.Values{}, from("cross-site", http.MethodPost)); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s posted from another site: %d, want 403", path, answer.StatusCode)
		}
	}
	if n := kept(); n != 0 {
		t.Errorf("%d rows were kept by reading", n)
	}
	b.print("/campaigns/enib/sittings/S001/door-list.xlsx")
	before := kept()
	if before == 0 {
		t.Fatal("printing keeps nothing")
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if answer := b.ask("/campaigns/enib/sittings/S001/printed-list.pdf", from("same-origin", method)); answer.StatusCode != http.StatusOK {
			t.Errorf("%s of what was printed last: %d", method, answer.StatusCode)
		}
	}
	if n := kept(); n != before {
		t.Errorf("reading what was printed last kept %d rows", n-before)
	}
	if answer := b.post("/campaigns/enib/sittings/S001/printed-list.pdf", url.Values{}); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("posting to what was printed last: %d, want 405", answer.StatusCode)
	}
}

func TestPapers_OfTooManySittingsAreRefused(t *testing.T) {
	b := setup(t).console()
	lines := []string{sittingTitles}
	for i := range 201 {
		lines = append(lines, fmt.Sprintf("ENG,Kayes,Salle %d,1,2099-12-07 08:00,2099-12-07 11:00", i))
	}
	b.bring(intake.Sittings, lines...)
	answer := b.post("/campaigns/enib/papers/door-lists.zip?day=2099-12-07", url.Values{}, in("en"))
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("201 sittings answer %d, want 409", answer.StatusCode)
	}
	answer.wants(t, "at most 200")
}

func TestSitting_AfterAMoveSaysWhereItWasAndThatTheListIsOld(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,5,2099-12-07 08:00,2099-12-07 11:00", "ENG,Kayes,Amphi 2,5,2099-12-09 08:00,2099-12-09 11:00")
	b.file("Keita")
	b.execute(b.click())
	const path = "/campaigns/enib/sittings/S001"
	b.page(path, in("en")).lacks(t, "Printed last", "Moved on")
	printed := b.print(path + "/door-list.pdf")
	b.page(path, in("en")).wants(t, "Printed last: version 1", "Nothing has changed since").lacks(t, "Moved on")
	_, err := convocation.MoveSitting(b.Context(), b.db, b.actor, "enib", "S001", convocation.SittingMove{Centre: "Kayes", Room: "Amphi 2"})
	b.must(err)
	b.page(path, in("en")).wants(t, "Moved on", "Before: Amphi 1, Kayes, Monday 7 December 2099, 08:00 (Africa/Bamako), until 11:00",
		"Printed last: version 1", "The list has changed since", "Amphi 1, Kayes.")

	b.logIn(b.org, account.Door)
	b.page(path, in("en")).wants(t, "printed-list.pdf").lacks(t, "door-list.pdf", "letters.pdf")
	if last := b.page(path + "/printed-list.pdf"); last.text != printed.text {
		t.Error("the door keeper gets another list than was printed")
	}
	if refused := b.post(path+"/door-list.pdf", url.Values{}, in("fr")); refused.StatusCode != http.StatusForbidden {
		t.Errorf("a door keeper prints: %d", refused.StatusCode)
	} else {
		refused.wants(t, "«\u00a0agent d&#39;accueil\u00a0»")
	}
	if none := b.ask("/campaigns/enib/sittings/S002/printed-list.pdf", in("en")); none.StatusCode != http.StatusNotFound {
		t.Errorf("what was never printed answers %d, want 404", none.StatusCode)
	} else {
		none.wants(t, "has not been printed yet")
	}
}
