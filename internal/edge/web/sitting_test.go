package web_test

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
	"usher/internal/domain/venue"
)

// lay lays a plan of one row of a room at Kayes.
func (b *bundle) lay(room string, seats ...venue.Seat) {
	b.Helper()
	b.must(seating.LayPlan(b.Context(), b.db, b.actor, b.org, "Kayes", room, seats))
}

func TestSitting_ShowsItsSeatsAndPeople(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,5,2099-12-07 08:00,2099-12-07 11:00")
	b.lay("Amphi 1",
		venue.Seat{Number: 1, Label: "A-1", Zone: "Avant"}, venue.Seat{Number: 2, Label: "A-2", Zone: "Avant", Blocked: true},
		venue.Seat{Number: 3, Label: "B-1", Zone: "Avant"}, venue.Seat{Number: 4, Label: "B-2", Zone: "Fond", Accessible: true},
		venue.Seat{Number: 5, Label: "B-3", Zone: "Fond"}, venue.Seat{Number: 6, Label: "B-4", Zone: "Fond"})
	b.file("Zongo", "Élodie")
	b.execute(b.click())
	page := b.page("/campaigns/enib/sittings/S001", in("en"))
	page.wants(t, "<h1><bdi>Amphi 1</bdi></h1>", "Kayes", "Monday 7 December 2099", "08:00\u202f–\u202f11:00", "(Africa/Bamako)", "2 of 4",
		"Avant", "Fond", "blocked", "accessible", "C-Zongo", "Zongo Awa", "On its way", "door-list.pdf", "door-list.xlsx", "door-list.csv", "letters.pdf")
	page.lacks(t, "B-4", "no value")
	for state, want := range map[string]int{"seat seat-taken": 2, "seat seat-blocked": 1, "seat seat-free": 2, "seat-accessible\"": 2, "seat-first": 1} {
		if got := strings.Count(page.text, state); got != want {
			t.Errorf("%d times %q, want %d:\n%s", got, state, want, page.text)
		}
	}
}

var named = regexp.MustCompile(`<th scope="row" class="col-name">\s*<bdi>([^<]+)</bdi>`)

// people are the names of the list, in its order.
func (a answer) people() string {
	var names []string
	for _, match := range named.FindAllStringSubmatch(a.text, -1) {
		names = append(names, strings.TrimSuffix(match[1], " Awa"))
	}
	return strings.Join(names, " ")
}

func TestSitting_ListsPeopleBySeatOrBySurname(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,9,2099-12-07 08:00,2099-12-07 11:00")
	b.file("Zongo", "Keita", "Élodie", "Eba", "Koné")
	b.execute(b.click())
	if got := b.page("/campaigns/enib/sittings/S001").people(); got != "Zongo Keita Élodie Eba Koné" {
		t.Errorf("by seat: %s", got)
	}
	if got := b.page("/campaigns/enib/sittings/S001?order=surname").people(); got != "Eba Élodie Keita Koné Zongo" {
		t.Errorf("by surname: %s", got)
	}
	if wrong := b.ask("/campaigns/enib/sittings/S001?order=age", in("en")); wrong.StatusCode != http.StatusNotFound {
		t.Errorf("another order answers %d, want 404", wrong.StatusCode)
	}
}

func TestSitting_WithoutPeople(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	page := b.page("/campaigns/enib/sittings/s003", in("en"))
	page.wants(t, "Salle &lt;B&gt;", "Nobody sits here", "there is nothing to print", "0 of 200", "200 is a bound",
		"usher sitting capacity --campaign enib S003 NUMBER", ">200</span>").lacks(t, "<B>")
	refused := b.post("/campaigns/enib/sittings/S003/door-list.pdf", url.Values{}, in("en"))
	if refused.StatusCode != http.StatusConflict || !strings.HasPrefix(refused.Header.Get("Content-Type"), "text/html") {
		t.Errorf("an empty list answers %d as %s", refused.StatusCode, refused.Header.Get("Content-Type"))
	}
	refused.lacks(t, "no value", "problem_")
}

func TestSitting_OfFiveHundredSeatsAndLongNames(t *testing.T) {
	b := setup(t).console()
	room := strings.Repeat("Amphithéâtre ", 4) + "n° 12"
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,"+room+",500,2099-12-07 08:00,2099-12-07 11:00")
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("Kɔ̀ɔ̀nyɛ́-%03d", i)
	}
	b.file(names...)
	b.execute(b.click())
	page := b.page("/campaigns/enib/sittings/S001", in("en"))
	page.wants(t, "Kɔ̀ɔ̀nyɛ́-000 Awa", "Kɔ̀ɔ̀nyɛ́-499 Awa", "500 of 500", "Full")
	if got := strings.Count(page.text, "seat seat-taken"); got != 500 {
		t.Errorf("%d seats are drawn as taken, want 500", got)
	}
}

func TestSitting_Unknown(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	for _, reference := range []string{"S999", "x", "%00", "%ff", "S001%00", "..%2f..", strings.Repeat("9", 300)} {
		answer := b.ask("/campaigns/enib/sittings/"+reference, in("en"))
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", reference, answer.StatusCode)
		}
	}
	for _, campaign := range []string{"none", "ENIB", "%00", "%ff", "enib%00"} {
		if answer := b.ask("/campaigns/"+campaign, in("en")); answer.StatusCode != http.StatusNotFound {
			t.Errorf("the campaign %s answers %d, want 404", campaign, answer.StatusCode)
		}
	}
	for _, paper := range []string{"door-list.doc", "letters.csv", "letters.xlsx", "x"} {
		if answer := b.ask("/campaigns/enib/sittings/S001/" + paper); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", paper, answer.StatusCode)
		}
		if answer := b.post("/campaigns/enib/sittings/S001/"+paper, url.Values{}); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s posted answers %d, want 404", paper, answer.StatusCode)
		}
	}
}

// print presses a button that prints.
func (b *bundle) print(path string, change ...func(*http.Request)) answer {
	b.Helper()
	a := b.post(path, url.Values{}, change...)
	if a.StatusCode != http.StatusOK {
		b.Fatalf("%s answers %d: %s", path, a.StatusCode, a.text)
	}
	return a
}

func TestPapers_AreDownloadedUnderAName(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore")
	b.execute(b.click())
	for paper, begins := range map[string]string{"door-list.pdf": "%PDF-", "letters.pdf": "%PDF-", "door-list.xlsx": "PK", "door-list.csv": "\ufeff"} {
		path := "/campaigns/enib/sittings/S001/" + paper
		file := b.print(path)
		_, named, err := mime.ParseMediaType(file.Header.Get("Content-Disposition"))
		if err != nil || !strings.HasSuffix(named["filename"], paper[strings.LastIndex(paper, "."):]) || !strings.Contains(named["filename"], "S001") {
			t.Errorf("%s is called %v (%v)", paper, named, err)
		}
		if !strings.HasPrefix(file.text, begins) || file.Header.Get("Content-Length") != fmt.Sprint(len(file.text)) {
			t.Errorf("%s begins %q and has %d bytes, stated %s", paper, file.text[:8], len(file.text), file.Header.Get("Content-Length"))
		}
		if again := b.print(path); again.text != file.text {
			t.Errorf("%s asked for again is another file", paper)
		}
	}
	b.logIn(b.org, account.Cashier)
	b.page("/campaigns/enib/sittings/S001", in("en")).lacks(t, "door-list.pdf")
	if refused := b.post("/campaigns/enib/sittings/S001/door-list.pdf", url.Values{}, in("en")); refused.StatusCode != http.StatusForbidden {
		t.Errorf("a cashier gets %d, want 403", refused.StatusCode)
	}
}
