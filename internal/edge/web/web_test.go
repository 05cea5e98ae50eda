package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/edge/web"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bundle is a school with one campaign, and a browser.
type bundle struct {
	*testing.T
	db       *pg.DB
	url      string // of the database's owner
	actor    timeline.Actor
	org      account.Organisation
	campaign admission.Campaign
	handler  http.Handler
	session  *http.Cookie // nil: nobody is logged in
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{T: t, actor: account.Administrator()}
	b.db, b.url = testdb.NewWithURL(t)
	b.org, b.campaign = b.school("enib", "Concours d'entrée 2026")
	b.handler = web.Handler(b.db, web.Options{AllowedHosts: []string{"usher.school.example"}})
	b.logIn(b.org, account.Manager)
	return b
}

func (b *bundle) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bundle) school(slug, campaign string) (account.Organisation, admission.Campaign) {
	b.Helper()
	org := b.organisation(slug)
	c, err := admission.AddCampaign(b.Context(), b.db, b.actor, org, admission.Campaign{Slug: slug, Name: campaign, FeeMinor: 10_000}, nil)
	b.must(err)
	return org, c
}

func (b *bundle) organisation(slug string) account.Organisation {
	b.Helper()
	org, err := account.AddOrganisation(b.Context(), b.db, b.actor, account.Organisation{
		Slug: slug, Name: slug, Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	b.must(err)
	return org
}

// start begins a run of the campaign and leaves it going.
func (b *bundle) start(target convocation.Target) int64 {
	b.Helper()
	target.Campaign = b.campaign.Slug
	id, err := run.Start(b.Context(), b.db, b.actor, b.org.ID, convocation.Task, b.campaign.ID, target)
	b.must(err)
	return id
}

// refuse adds people to a run's lists.
func (b *bundle) refuse(runID int64, refusals ...run.Refusal) {
	b.Helper()
	for i := range refusals {
		refusals[i].Item = fmt.Sprint(refusals[i].Reference, "/", i)
	}
	b.must(b.db.Tx(b.Context(), []int64{b.org.ID}, func(tx pgx.Tx) error {
		return run.Refuse(b.Context(), tx, b.org.ID, runID, refusals...)
	}))
}

// outcome is what a convocation run keeps at its end.
type outcome struct {
	Total         int                `json:"total"`
	Seated        int                `json:"seated"`
	AlreadySeated int                `json:"already_seated"`
	ToldNow       int                `json:"told_now"`
	Sittings      []convocation.Fill `json:"sittings"`
}

func (b *bundle) finish(runID int64, kept outcome) {
	b.Helper()
	b.must(b.db.Tx(b.Context(), []int64{b.org.ID}, func(tx pgx.Tx) error {
		return run.Finish(b.Context(), tx, b.org.ID, runID, kept)
	}))
}

// done is a finished run with two reasons among those refused.
func (b *bundle) done(refused int) int64 {
	b.Helper()
	id := b.start(convocation.Target{})
	refusals := make([]run.Refusal, 0, refused)
	for i := range refused {
		r := run.Refusal{
			List: run.ListRefused, Reference: fmt.Sprintf("R%04d", i+1), Name: fmt.Sprintf("KƆNƐ Ŋaɲa %04d", i+1),
			Reason: "room_full", Facts: problem.Facts{"exam": "ENG", "centre": "Lycée Badalabougou", "rank": 201 + i, "places": 200},
		}
		if i%3 == 2 {
			r.Reason, r.Facts = "no_sitting_at_centre", problem.Facts{"exam": "ENG"}
		}
		refusals = append(refusals, r)
	}
	b.refuse(id, refusals...)
	b.finish(id, outcome{Total: 12_500, Seated: 12_345, AlreadySeated: 7, ToldNow: 2, Sittings: []convocation.Fill{
		fill("S001", "Amphi 1", time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC), 200, 200, "bound"),
		fill("S002", "Amphi 1", time.Date(2026, 12, 7, 14, 0, 0, 0, time.UTC), 120, 150, "room"),
	}})
	return id
}

func fill(sitting, room string, at time.Time, seated, capacity int, from string) convocation.Fill {
	return convocation.Fill{
		Sitting: sitting, Exam: "ENG", Centre: "Kaédi", Room: room, StartsAt: i18n.Instant{At: at, Zone: "Africa/Bamako"},
		Seated: seated, Added: seated, Capacity: capacity, PlacesFrom: from,
	}
}

// answer is what the browser got.
type answer struct {
	*http.Response
	text string
}

// ask sends one request to localhost, changed as the test wants.
func (b *bundle) ask(path string, change ...func(*http.Request)) answer {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost:8080"
	if b.session != nil {
		r.AddCookie(b.session)
	}
	for _, apply := range change {
		apply(r)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	response := w.Result()
	body, err := io.ReadAll(response.Body)
	b.must(err)
	return answer{response, string(body)}
}

func (b *bundle) page(path string, change ...func(*http.Request)) answer {
	b.Helper()
	a := b.ask(path, change...)
	if a.StatusCode != http.StatusOK {
		b.Fatalf("%s answers %d: %s", path, a.StatusCode, a.text)
	}
	return a
}

func in(language string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept-Language", language) }
}

func (a answer) wants(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("the page lacks %q:\n%s", text, a.text)
		}
	}
	return a
}

func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.text, text) {
			t.Errorf("the page has %q:\n%s", text, a.text)
		}
	}
}

func TestReport_SpeaksTheReadersLanguage(t *testing.T) {
	b := setup(t)
	id := b.done(9)
	for language, want := range map[string][]string{
		"en-GB,en;q=0.9":      {`lang="en"`, "12,345 seated · 7 already seated · 9 refused", "Room full", "no capacity given: at most 200 assumed", "Monday 7 December 2026"},
		"fr-ML,fr;q=0.9":      {`lang="fr"`, "12\u202f345 placés · 7 déjà placés · 9 refusés", "Salle complète", "La séance au centre Lycée Badalabougou de l&#39;épreuve ENG est complète\u00a0: rang 201, places 200", "lundi 7 décembre 2026"},
		"de;q=0.9,es;q=0.5":   {`lang="es"`, "12\u202f345 con asiento · 7 ya con asiento · 9 rechazados", "Sala completa", "lunes 7 de diciembre de 2026"},
		"de":                  {`lang="en"`},
		"not, a;; language=(": {`lang="en"`},
	} {
		b.page(fmt.Sprintf("/runs/%d", id), in(language)).wants(t, want...)
	}
}

func TestLanguage_ChosenByALinkIsKept(t *testing.T) {
	b := setup(t)
	id := b.done(1)
	path := fmt.Sprintf("/runs/%d", id)
	chosen := b.page(path+"?lang=es", in("fr"))
	chosen.wants(t, `lang="es"`)
	kept := chosen.cookie("lang")
	if kept == nil || kept.Value != "es" || !kept.HttpOnly || kept.SameSite != http.SameSiteLaxMode {
		t.Fatalf("cookies %v", chosen.Cookies())
	}
	b.page(path, in("fr"), func(r *http.Request) { r.AddCookie(kept) }).wants(t, `lang="es"`)
	unknown := b.page(path+"?lang=xx", in("fr"))
	unknown.wants(t, `lang="fr"`)
	if unknown.cookie("lang") != nil {
		t.Errorf("a language that is not spoken is kept: %v", unknown.Cookies())
	}
}

func TestReport_TellsWhatTheRunDid(t *testing.T) {
	b := setup(t)
	id := b.done(25)
	b.refuse(id, run.Refusal{
		List: run.ListNotCalled, Reference: "N1", Name: "Touré Awa", Reason: "status_closed",
		Facts: problem.Facts{"status": "Déposé", "paid": i18n.Money{Minor: 10_000, Currency: "XOF"}},
	})
	page := b.page(fmt.Sprintf("/runs/%d", id), in("en"))
	page.wants(t, "Concours d&#39;entrée 2026", "administrator (", "(Africa/Bamako)", "of 12,500 eligible",
		"KƆNƐ Ŋaɲa 0001", "KƆNƐ Ŋaɲa 0020", "Show all 25", "/runs/1/lists/refused?reason=no_sitting_at_centre",
		"Has paid XOF\u00a010,000, but the status “Déposé” does not open payment.",
		"120 of 150", "200 of 200, full", "Local time: Africa/Bamako", "2 people who were seated before")
	page.lacks(t, "KƆNƐ Ŋaɲa 0021", "<no value>", "refusal_", "reason_room", "list_", `http-equiv="refresh"`)
}

func TestReport_EmptyListsSayWhatThatMeans(t *testing.T) {
	b := setup(t)
	id := b.start(convocation.Target{})
	b.finish(id, outcome{Sittings: []convocation.Fill{}})
	b.page(fmt.Sprintf("/runs/%d", id), in("en")).wants(t, "0 seated · 0 refused",
		"Everyone who was eligible has a seat.", "Everyone who has paid was called.", "There is nothing to decide.", "no sitting to fill")
}

func TestReport_OfARunThatIsGoingAsksAgain(t *testing.T) {
	b := setup(t)
	path := fmt.Sprintf("/runs/%d", b.start(convocation.Target{}))
	page := b.page(path, in("en"))
	page.wants(t, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, "Running", "Starting", `hx-get="`+path+`/progress"`, path+"?refresh=off")
	b.page(path+"?refresh=off", in("en")).lacks(t, "http-equiv=\"refresh\"", "asks again")
}

func TestReport_OfAnInterruptedRunSaysHowToRepeatIt(t *testing.T) {
	b := setup(t)
	id := b.start(convocation.Target{Exam: "Maths & co", Sitting: "S001"})
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update run set lease_until = clock() - interval '1 minute'`)
	b.must(err)
	page := b.page(fmt.Sprintf("/runs/%d", id), in("en"))
	page.wants(t, "Interrupted", "nobody is seated or told twice", "usher convoke --campaign enib --exam &#39;Maths &amp; co&#39; --sitting S001", "Not known")
	page.lacks(t, `http-equiv="refresh"`, "has a seat.")
}

func TestReport_OfAFailedRunKeepsTheErrorInTheLog(t *testing.T) {
	b := setup(t)
	id := b.start(convocation.Target{})
	b.must(run.Fail(t.Context(), b.db, b.org.ID, id, outcome{}, fmt.Errorf("ERROR: claim_seat_key (SQLSTATE 23505)")))
	page := b.page(fmt.Sprintf("/runs/%d", id), in("en"))
	page.wants(t, "Failed", "stopped at an error, which is in the log", "usher convoke --campaign enib")
	page.lacks(t, "SQLSTATE", "claim_seat_key")
}

func TestReport_OfLongNamesIsEscapedAndWhole(t *testing.T) {
	b := setup(t)
	id := b.start(convocation.Target{})
	long := strings.Repeat("ƐɔŊɲ", 45) + "<b>N'Kó̰nɛ&"
	b.refuse(id, run.Refusal{List: run.ListRefused, Reference: "<i>1", Name: long, Reason: "clash", Facts: problem.Facts{"exam": "<script>"}})
	b.finish(id, outcome{})
	page := b.page(fmt.Sprintf("/runs/%d", id))
	page.wants(t, strings.Repeat("ƐɔŊɲ", 45)+"&lt;b&gt;N&#39;Kó̰nɛ&amp;", "&lt;i&gt;1", "&lt;script&gt;")
	page.lacks(t, "<b>", "<i>", "<script>")
}

func TestRuns(t *testing.T) {
	b := setup(t)
	b.page("/runs", in("en")).wants(t, "Nobody was convoked yet", "usher convoke --campaign enib")
	first, second := b.done(3), b.start(convocation.Target{})
	page := b.page("/runs", in("en"))
	page.wants(t, fmt.Sprintf(`href="/runs/%d"`, first), fmt.Sprintf(`href="/runs/%d"`, second), "Running", "Done", "12,345 seated")
	if strings.Index(page.text, fmt.Sprintf("/runs/%d\"", second)) > strings.Index(page.text, fmt.Sprintf("/runs/%d\"", first)) {
		t.Error("the older run stands first")
	}
}

func TestList_IsPagedAndFiltered(t *testing.T) {
	b := setup(t)
	path := fmt.Sprintf("/runs/%d/lists/refused", b.done(250))
	first := b.page(path, in("en"))
	first.wants(t, "KƆNƐ Ŋaɲa 0001", "KƆNƐ Ŋaɲa 0100", "1–100 of 250", `href="`+path+`?page=2"`)
	first.lacks(t, "KƆNƐ Ŋaɲa 0101", `rel="prev"`)
	last := b.page(path + "?page=3&lang=en")
	last.wants(t, "KƆNƐ Ŋaɲa 0201", "KƆNƐ Ŋaɲa 0250", "201–250 of 250", `href="`+path+`?page=2" rel="prev"`)
	last.lacks(t, `rel="next"`)

	filtered := b.page(path+"?reason=room_full", in("en"))
	filtered.wants(t, "1–100 of 167", "KƆNƐ Ŋaɲa 0149", `href="`+path+`?page=2&amp;reason=room_full"`)
	filtered.lacks(t, "KƆNƐ Ŋaɲa 0003", "KƆNƐ Ŋaɲa 0151")
	b.page(path+"?reason=room_full&page=2", in("en")).wants(t, "101–167 of 167", "KƆNƐ Ŋaɲa 0151", "KƆNƐ Ŋaɲa 0250")
}

func TestList_Empty(t *testing.T) {
	b := setup(t)
	b.page(fmt.Sprintf("/runs/%d/lists/attention", b.done(1)), in("en")).wants(t, "There is nothing to decide.")
	b.page(fmt.Sprintf("/runs/%d/lists/attention", b.start(convocation.Target{})), in("en")).wants(t, "Nobody so far.")
}

func TestDownload_HasEveryRowAndSaysHowMany(t *testing.T) {
	b := setup(t)
	id := b.done(250)
	b.refuse(id, run.Refusal{List: run.ListRefused, Reference: "=1+1", Name: "@Keïta; \"Bɔ\"", Reason: "fault", Facts: problem.Facts{"incident": "9-1"}})
	file := b.page(fmt.Sprintf("/runs/%d/lists/refused.csv", id), in("fr"))
	if name := file.Header.Get("Content-Disposition"); name != fmt.Sprintf(`attachment; filename=enib-run-%d-refused-251-rows.csv`, id) {
		t.Errorf("the file is called %s", name)
	}
	if rows := file.Header.Get("Usher-Rows"); rows != "251" {
		t.Errorf("%s rows are stated", rows)
	}
	if length := file.Header.Get("Content-Length"); length != fmt.Sprint(len(file.text)) {
		t.Errorf("the length is stated as %s and is %d", length, len(file.text))
	}
	file.wants(t, "'=1+1;", `"'@Keïta; ""Bɔ"""`)
	if _, err := sheet.Open("refused.csv", strings.NewReader(file.text), int64(len(file.text)), sheet.Limits{}); err != nil {
		t.Fatalf("our own import cannot read it: %v", err)
	}
	if lines := strings.Count(file.text, "\r\n"); lines != 252 {
		t.Errorf("%d lines, want 251 and the titles", lines)
	}
}

func TestOtherOrganisationsRun_AnswersLikeOneThatDoesNotExist(t *testing.T) {
	b := setup(t)
	id := b.done(3)
	other, _ := b.school("other", "Other")
	b.logIn(other, account.Manager)
	for _, path := range []string{"/runs/%d", "/runs/%d/lists/refused", "/runs/%d/lists/refused.csv"} {
		theirs, none := b.ask(fmt.Sprintf(path, id), in("en")), b.ask(fmt.Sprintf(path, 987654), in("en"))
		if theirs.StatusCode != http.StatusNotFound || none.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d and %d, want 404 twice", path, theirs.StatusCode, none.StatusCode)
		}
		said := strings.ReplaceAll(theirs.text, fmt.Sprint(id), "X")
		if said != strings.ReplaceAll(none.text, "987654", "X") && !strings.Contains(theirs.text, fmt.Sprintf("There is no run %d.", id)) {
			t.Errorf("%s tells that it exists:\n%s", path, theirs.text)
		}
	}
	b.page("/runs", in("en")).wants(t, "Nobody was convoked yet", "usher convoke --campaign other").lacks(t, "enib")
}

func TestHome_WithoutACampaign(t *testing.T) {
	t.Parallel()
	b := &bundle{T: t, db: testdb.New(t), actor: account.Administrator()}
	b.handler = web.Handler(b.db, web.Options{})
	b.logIn(b.organisation("new"), account.Manager)
	b.page("/", in("en")).wants(t, "There is no campaign yet", "usher demo")
}

// rawID is a sentence that was not found: its id is shown in its place.
var rawID = regexp.MustCompile(`(?m)(?:>|^)\s*(?:list|card|about|nobody|state|stopped|headline|column|reason|refusal|table|fact|page|sittings|bound|taken|legend|runs|console)_[a-z_]+`)

func TestPages_SayEverythingInEveryLanguage(t *testing.T) {
	b := setup(t)
	id := b.done(3)
	for _, list := range []run.List{run.ListRefused, run.ListNotCalled, run.ListNotReachable, run.ListAttention} {
		for _, reason := range []string{
			"no_sitting", "no_sitting_at_centre", "room_full", "centre_full", "exam_full", "clash", "seat_taken", "changing", "fault",
			"status_closed", "not_registered", "no_address", "seated_unpaid", "seated_status_closed", "no_accessible_seat", "other_centre",
		} {
			b.refuse(id, run.Refusal{List: list, Reference: reason, Name: "Diarra", Reason: reason})
		}
	}
	going, dead, failed := b.start(convocation.Target{}), b.start(convocation.Target{}), b.start(convocation.Target{})
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update run set lease_until = clock() - interval '1 minute' where id = $1`, dead)
	b.must(err)
	b.must(run.Fail(t.Context(), b.db, b.org.ID, failed, outcome{}, io.ErrUnexpectedEOF))
	for _, language := range i18n.Languages {
		for _, path := range []string{
			"/runs", "/campaigns", fmt.Sprintf("/runs/%d", id), fmt.Sprintf("/runs/%d", going), fmt.Sprintf("/runs/%d", dead),
			fmt.Sprintf("/runs/%d", failed), fmt.Sprintf("/runs/%d/lists/attention", id),
		} {
			page := b.page(path, in(language))
			if found := rawID.FindString(page.text); found != "" || strings.Contains(page.text, "no value") {
				t.Errorf("%s in %s shows %q:\n%s", path, language, found, page.text)
			}
		}
	}
}

func TestWrongAddresses_AnswerInWords(t *testing.T) {
	b := setup(t)
	id := b.done(3)
	importRun, err := run.Start(t.Context(), b.db, b.actor, b.org.ID, "import", b.campaign.ID, map[string]string{})
	b.must(err)
	for path, want := range map[string]string{
		"/runs/abc":                                      "There is no run abc",
		"/runs/0":                                        "There is no run 0",
		"/runs/-1":                                       "There is no run -1",
		"/runs/99999999999999999999":                     "There is no run 99999999999999999999",
		"/runs/%00":                                      "There is no run",
		"/runs/%ff%fe":                                   "There is no run",
		"/runs/" + strings.Repeat("9", 300):              "…",
		fmt.Sprintf("/runs/%d", importRun):               "There is no run",
		fmt.Sprintf("/runs/%d/lists/nobody", id):         "A report has no list “nobody”",
		fmt.Sprintf("/runs/%d/lists/rejected", id):       "A report has no list",
		fmt.Sprintf("/runs/%d/lists/refused?page=2", id): "this list ends at page 1",
		fmt.Sprintf("/runs/%d/lists/refused?page=x", id): "There is no page x",
		fmt.Sprintf("/runs/%d/lists/refused?page=99999999999999999999", id): "There is no page",
		fmt.Sprintf("/runs/%d/lists/refused?reason=%%27%%3B--", id):         "Nobody stands in this list",
		"/nothing":         "No page has this address",
		"/assets/":         "No page has this address",
		"/assets/web.go":   "No page has this address",
		"/assets/..%2fweb": "No page has this address",
	} {
		answer := b.ask(path, in("en"))
		if answer.StatusCode != http.StatusNotFound || !strings.Contains(answer.text, want) {
			t.Errorf("%s: %d, want 404 and %q:\n%s", path, answer.StatusCode, want, answer.text)
		}
	}
}

func TestHost_OnlyOurs(t *testing.T) {
	b := setup(t)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST.:80": 200, "127.0.0.1:8080": 200, "127.8.9.1": 200, "[::1]:8080": 200, "[::1]": 200,
		"usher.school.example": 200, "Usher.School.Example:443": 200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "10.0.0.1:8080": 421, "0.0.0.0:8080": 421, "": 421, "127.0.0.1.evil.example": 421,
	} {
		answer := b.ask("/runs", in("en"), func(r *http.Request) { r.Host = host })
		if answer.StatusCode != want {
			t.Errorf("host %q: %d, want %d", host, answer.StatusCode, want)
		}
		if want == http.StatusMisdirectedRequest {
			answer.wants(t, "do not answer under the name")
		}
	}
}

func TestMethods_OnlyReading(t *testing.T) {
	b := setup(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "QUERY"} {
		answer := b.ask("/runs", func(r *http.Request) { r.Method = method })
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, allowed %q", method, answer.StatusCode, answer.Header.Get("Allow"))
		}
	}
	b.page("/runs", func(r *http.Request) { r.Method = http.MethodHead })
}

// everyAddress answers pages, a file, a refusal and a download.
func (b *bundle) everyAddress() []string {
	id := b.done(120)
	running := b.start(convocation.Target{})
	return []string{
		"/campaigns", "/campaigns/enib", "/runs", fmt.Sprintf("/runs/%d", id), fmt.Sprintf("/runs/%d", running), fmt.Sprintf("/runs/%d/lists/refused", id),
		fmt.Sprintf("/runs/%d/lists/refused.csv", id), "/runs/0", "/nothing", "/healthz", "/assets/usher.css",
	}
}

func TestHeaders_StandOnEveryAnswer(t *testing.T) {
	b := setup(t)
	for _, path := range b.everyAddress() {
		h := b.ask(path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		} {
			if !strings.HasPrefix(h.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		if kind := h.Get("Content-Type"); strings.HasPrefix(kind, "text/html") && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: a page with names may be kept: %q", path, h.Get("Cache-Control"))
		}
	}
}

// Whoever comes by https once is kept there by the browser; where people come without, nothing keeps them out.
func TestHeaders_KeepPeopleOnTLS(t *testing.T) {
	b := setup(t)
	for address, want := range map[string]string{"https://usher.ecole.example": "max-age=15552000", "http://usher.ecole.example": "", "": ""} {
		var options web.Options
		if address != "" {
			public, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			options.PublicURL = public
		}
		for _, path := range []string{"/log-in", "/nothing"} {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Host = "usher.ecole.example"
			web.Handler(b.db, options).ServeHTTP(recorder, request)
			if got := recorder.Header().Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s%s: %q, want %q", address, path, got, want)
			}
		}
	}
}

var (
	ownFile = regexp.MustCompile(`<script src="/assets/[^"]+" defer></script>`)
	inline  = regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=|javascript:`)
	foreign = regexp.MustCompile(`(?:href|src)="(?:https?:)?//`)
)

func TestPages_HoldNothingInlineAndNothingFromElsewhere(t *testing.T) {
	b := setup(t)
	for _, path := range b.everyAddress() {
		page := b.ask(path)
		if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if found := inline.FindString(ownFile.ReplaceAllString(page.text, "")); found != "" {
			t.Errorf("%s has %q inline", path, found)
		}
		if found := foreign.FindString(page.text); found != "" {
			t.Errorf("%s loads from elsewhere: %q", path, found)
		}
		page.wants(t, `<main id="main"`, `href="#main"`, "<h1>", `aria-current="true"`)
	}
}

func TestAssets(t *testing.T) {
	b := setup(t)
	links := regexp.MustCompile(`href="(/assets/[^"]+)"`).FindAllStringSubmatch(b.page("/runs").text, -1)
	if len(links) != 6 {
		t.Fatalf("%d assets are linked, want 6", len(links))
	}
	for _, link := range links {
		file := b.page(link[1])
		if !strings.Contains(file.Header.Get("Cache-Control"), "immutable") || file.text == "" {
			t.Errorf("%s: cache %q, %d bytes", link[1], file.Header.Get("Cache-Control"), len(file.text))
		}
	}
	b.page("/assets/usher.css").wants(t, ":focus-visible", "prefers-color-scheme: dark", "@media print")
	b.page("/assets/pico.LICENSE.md").wants(t, "MIT License")
}

func TestHealth(t *testing.T) {
	b := setup(t)
	b.page("/healthz").wants(t, "ok")
	b.db.Close()
	if answer := b.ask("/healthz"); answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(answer.text, "pool") {
		t.Errorf("without a database: %d %q", answer.StatusCode, answer.text)
	}
}

func TestFailure_NamesAnIncidentAndNothingElse(t *testing.T) {
	b := setup(t)
	closed := b.handler
	b.db.Close()
	panics := web.Panics()
	for name, handler := range map[string]http.Handler{"an error": closed, "a panic": panics} {
		b.handler = handler
		answer := b.ask("/runs", in("en"))
		if answer.StatusCode != http.StatusInternalServerError {
			t.Errorf("%s: %d, want 500", name, answer.StatusCode)
		}
		if !regexp.MustCompile(`Incident: <code>[A-Z2-7]{8}</code>`).MatchString(answer.text) {
			t.Errorf("%s: no incident on the page:\n%s", name, answer.text)
		}
		answer.lacks(t, "closed pool", "nil pointer", "goroutine")
	}
}

func TestServer_BoundsTheClient(t *testing.T) {
	t.Parallel()
	server := web.Server("127.0.0.1:0", http.NotFoundHandler())
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 || server.MaxHeaderBytes <= 0 {
		t.Errorf("a slow client is waited for: %+v", server)
	}
}
