package web_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/intake"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/edge/web"
)

// console lets the pages ask for runs; a test executes them when it wants to.
func (b *bundle) console() *bundle {
	b.Helper()
	b.handler = web.Handler(b.db, web.Options{EnqueueConvoke: func(context.Context, pgx.Tx, int64, int64) error { return nil }})
	return b
}

// execute does what the job of a run does.
func (b *bundle) execute(runID int64) {
	b.Helper()
	b.must(convocation.Execute(b.Context(), b.db, b.actor, b.org.ID, runID, convocation.Options{}))
}

// importer is an import of one kind of file.
type importer func(context.Context, *pg.DB, timeline.Actor, string, string, io.Reader, intake.Options) (intake.Result, error)

func (b *bundle) bring(bring importer, lines ...string) {
	b.Helper()
	result, err := bring(b.Context(), b.db, b.actor, b.campaign.Slug, "file.csv", strings.NewReader(strings.Join(lines, "\n")), intake.Options{})
	b.must(err)
	if result.RejectedCount > 0 || result.Created != len(lines)-1 {
		b.Fatalf("of %d rows %d came in and %d were rejected", len(lines)-1, result.Created, result.RejectedCount)
	}
}

const sittingTitles = "exam,centre,room,capacity,starts_at,ends_at"

// timetable is three sittings on two days: two places in the first, one in the second, none said of the third.
func (b *bundle) timetable() {
	b.Helper()
	b.bring(intake.Sittings, sittingTitles,
		"ENG,Kayes,Amphi 1,2,2099-12-07 08:00,2099-12-07 11:00",
		"ENG,Kayes,Amphi 2,1,2099-12-07 08:00,2099-12-07 11:00",
		"ENG,Bamako,Salle <B>,,2099-12-08 14:00,2099-12-08 17:00")
}

// file files accepted candidates, all of them with an e-mail, and pays for them.
func (b *bundle) file(names ...string) {
	b.Helper()
	candidates, payments := []string{"reference,family_name,given_name,email,status,exams"}, []string{"candidate,amount,method,receipt"}
	for i, name := range names {
		reference := "C-" + name
		candidates = append(candidates, fmt.Sprintf("%s,%s,Awa,a%d@example.org,accepted,ENG", reference, name, i))
		payments = append(payments, fmt.Sprintf("%s,10000,cash,R-%s", reference, reference))
	}
	b.bring(intake.Candidates, candidates...)
	b.bring(intake.Payments, payments...)
}

var number = regexp.MustCompile(`<dt>\s*(?:<a [^>]*>)?([^<]+?)\s*(?:</a>)?</dt>\s*<dd>([^<]*)</dd>`)

// numbers are those at the top of a calendar, by their words.
func (a answer) numbers() map[string]string {
	found := map[string]string{}
	for _, match := range number.FindAllStringSubmatch(a.text, -1) {
		found[html.UnescapeString(match[1])] = match[2]
	}
	return found
}

func (a answer) counts(t *testing.T, want map[string]string) {
	t.Helper()
	got := a.numbers()
	for word, n := range want {
		if got[word] != n {
			t.Errorf("%q is %q, want %s (of %v)", word, got[word], n, got)
		}
	}
}

func TestCalendar_SaysWhatWaitsToBeDone(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore", "Diarra", "Coulibaly")
	page := b.page("/campaigns/enib", in("en"))
	page.counts(t, map[string]string{"wait for a seat": "4", "have paid": "4", "places left": "203"})
	page.wants(t, "<h1><bdi>Concours d&#39;entrée 2026</bdi></h1>", "Generate convocations", "4 seats", "4 e-mails", "0 SMS",
		"Monday 7 December 2099", "Tuesday 8 December 2099", "08:00\u202f–\u202f11:00", "Local time: Africa/Bamako",
		`href="/campaigns/enib/sittings/S003"><bdi>Salle &lt;B&gt;`, "0 of 2", "200 assumed", "Empty", "1 sitting to come has no capacity")
	page.lacks(t, "convocations received", "Last run", `http-equiv="refresh"`)

	b.execute(b.click())
	b.file("Sanogo", "Toure")
	page = b.page("/campaigns/enib", in("en"))
	page.counts(t, map[string]string{
		"wait for a seat": "2", "have paid since the last run": "2", "places left": "199", "convocations received": "0", "on their way": "4", "reached nobody": "0",
	})
	page.wants(t, "Last run", "4 seated · 0 refused", "2 of 2", "Full", "1 of 200")
}

// click presses the button and returns the run to which it leads.
func (b *bundle) click() int64 {
	b.Helper()
	answer := b.post("/campaigns/enib/convoke", url.Values{})
	var id int64
	if _, err := fmt.Sscanf(answer.Header.Get("Location"), "/runs/%d", &id); err != nil || answer.StatusCode != http.StatusSeeOther {
		b.Fatalf("the button answers %d to %q:\n%s", answer.StatusCode, answer.Header.Get("Location"), answer.text)
	}
	return id
}

func TestCalendar_IsFiltered(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	for query, want := range map[string]struct{ has, lacks string }{
		"day=2099-12-08":                {"Salle &lt;B&gt;", "Amphi 1"},
		"state=bound":                   {"Salle &lt;B&gt;", "Amphi 1"},
		"state=empty&day=2099-12-07":    {"Amphi 2", "Salle"},
		"centre=" + b.centre("Kayes"):   {"Amphi 1", "Salle"},
		"state=&day=&centre=&exam=":     {"Amphi 1", "Show all"},
		"day=2099-12-07&state=":         {"Show all", "Salle"},
		"state=free&page=1":             {"Amphi 2", `rel="next"`},
		"day=2099-12-07&page=1&lang=en": {"Amphi 2", "Salle"},
	} {
		b.page("/campaigns/enib?"+query, in("en")).wants(t, want.has).lacks(t, want.lacks)
	}
	b.page("/campaigns/enib?day=2099-12-08&centre="+b.centre("Kayes"), in("en")).wants(t, "No sitting is like that")
	for _, query := range []string{"day=2099-12-09", "day=x", "centre=0", "centre=x", "state=bad", "exam=%00", "page=2", "page=x"} {
		answer := b.ask("/campaigns/enib?"+query, in("en"))
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d, want 404", query, answer.StatusCode)
		}
		answer.lacks(t, "Amphi", "no value")
	}
}

// centre is the number of a centre, as the filter says it.
func (b *bundle) centre(name string) string {
	b.Helper()
	var id string
	b.must(testdb.Owner(b, b.url).QueryRow(b.Context(), `select id::text from centre where name = $1`, name).Scan(&id))
	return id
}

func TestCalendar_OfManySittingsListsDays(t *testing.T) {
	b := setup(t).console()
	lines := []string{sittingTitles}
	for day := range 25 {
		for room := range 40 {
			lines = append(lines, fmt.Sprintf("ENG,Centre %d,Salle %d,40,2099-03-%02d 08:00,2099-03-%02d 11:00", room/10, room, day+1, day+1))
		}
	}
	b.bring(intake.Sittings, lines...)
	page := b.page("/campaigns/enib", in("en"))
	page.wants(t, "Choose a day", "40 sittings", "0 of 1,600", "/campaigns/enib?day=2099-03-25#calendar").lacks(t, "Salle 7")
	const most = 64 << 10
	if len(page.text) > most {
		t.Errorf("the page has %d bytes, want at most %d", len(page.text), most)
	}
	b.page("/campaigns/enib?day=2099-03-25", in("en")).wants(t, "Salle 0<", "Salle 39<", "40 sittings")
	b.page("/campaigns/enib?centre="+b.centre("Centre 3"), in("en")).wants(t, "Choose a day", "10 sittings")
}

func TestCalendar_OfADayWithManySittingsHasPages(t *testing.T) {
	b := setup(t).console()
	lines := []string{sittingTitles}
	for room := range 205 {
		lines = append(lines, fmt.Sprintf("ENG,Kayes,Salle %d,40,2099-03-01 08:00,2099-03-01 11:00", room+1))
	}
	b.bring(intake.Sittings, lines...)
	b.page("/campaigns/enib?day=2099-03-01", in("en")).wants(t, "Salle 200<", "1–200 of 205", `rel="next"`).lacks(t, "Salle 201<")
	b.page("/campaigns/enib?day=2099-03-01&page=2", in("en")).wants(t, "Salle 205<", "201–205 of 205", `rel="prev"`).lacks(t, "Salle 200<")
}

func TestCalendar_WithoutSittingsTellsWhatToDo(t *testing.T) {
	b := setup(t).console()
	b.page("/campaigns/enib", in("en")).wants(t, "The calendar is empty", "usher import sittings --campaign enib sittings.csv").lacks(t, "Generate convocations")
	b.page("/campaigns/enib", in("fr")).wants(t, "Le calendrier est vide", "seances.csv")
}

func TestCalendar_MarksWhatIsOver(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `
update sitting set starts_at = clock() - interval '50 hours', ends_at = clock() - interval '48 hours' where reference = 'S001';
update sitting set starts_at = date_trunc('day', clock(), 'UTC'), ends_at = date_trunc('day', clock(), 'UTC') + interval '24 hours' where reference = 'S002'`)
	b.must(err) // all of today, whatever the hour is: in Bamako the day is that of UTC
	page := b.page("/campaigns/enib", in("en"))
	page.wants(t, `mark-past">Ended`, `mark-going">Now`, "Today").counts(t, map[string]string{"places left": "200"})
	b.page("/campaigns/enib?state=past", in("en")).wants(t, "Amphi 1").lacks(t, "Amphi 2")
	b.page("/campaigns/enib?state=free", in("en")).wants(t, "Salle").lacks(t, "Amphi")
}

func TestCalendar_SpeaksEveryLanguage(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore", "Diarra", "Coulibaly")
	b.execute(b.click())
	b.file("Sanogo")
	going := b.click()
	for _, language := range i18n.Languages {
		for _, path := range []string{
			"/campaigns/enib", "/campaigns/enib?day=2099-12-08&state=bound", "/campaigns/enib/forecast", "/campaigns/enib/sittings/S001",
			"/campaigns/enib/sittings/S003?order=surname", fmt.Sprintf("/runs/%d", going),
		} {
			page := b.page(path, in(language))
			if found := rawID.FindString(page.text); found != "" || strings.Contains(page.text, "no value") {
				t.Errorf("%s in %s shows %q:\n%s", path, language, found, page.text)
			}
			if n := strings.Count(page.text, "<h1"); n != 1 {
				t.Errorf("%s has %d h1", path, n)
			}
		}
	}
}

// consolePaths are those of a campaign that an organisation keeps to itself.
var consolePaths = []string{
	"/campaigns/%s", "/campaigns/%s/forecast", "/campaigns/%s/sittings/S001", "/campaigns/%s/sittings/S001?order=surname",
	"/campaigns/%s/sittings/S001/printed-list.pdf",
}

// printPaths print papers of a campaign, by POST.
var printPaths = []string{
	"/campaigns/%s/sittings/S001/door-list.pdf", "/campaigns/%s/sittings/S001/letters.pdf", "/campaigns/%s/papers/letters.zip",
}

func TestOtherOrganisationsCampaign_AnswersLikeOneThatDoesNotExist(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	other, _ := b.school("other", "Other")
	b.logIn(other, account.Manager)
	for i, path := range slices.Concat(consolePaths, printPaths) {
		ask := func(slug string) answer {
			if i >= len(consolePaths) {
				return b.post(fmt.Sprintf(path, slug), url.Values{}, in("en"))
			}
			return b.ask(fmt.Sprintf(path, slug), in("en"))
		}
		theirs, none := ask("enib"), ask("none")
		if theirs.StatusCode != http.StatusNotFound || none.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d and %d, want 404 twice", path, theirs.StatusCode, none.StatusCode)
		}
		if strings.ReplaceAll(theirs.text, "enib", "X") != strings.ReplaceAll(none.text, "none", "X") {
			t.Errorf("%s tells that it exists:\n%s", path, theirs.text)
		}
	}
	if posted := b.post("/campaigns/enib/convoke", url.Values{}); posted.StatusCode != http.StatusNotFound {
		t.Errorf("the button answers %d, want 404", posted.StatusCode)
	}
	b.page("/campaigns", in("en")).wants(t, "Other").lacks(t, "enib")
}

func TestHome_LeadsToTheOnlyCampaign(t *testing.T) {
	b := setup(t)
	b.ask("/").leads(t, "/campaigns/enib")
	b.page("/campaigns", in("en")).wants(t, `href="/campaigns/enib"`)
	b.anotherCampaign("rentree", "Rentrée 2099")
	b.page("/", in("en")).wants(t, `href="/campaigns/enib"`, `href="/campaigns/rentree"`, "Rentrée 2099")
}
