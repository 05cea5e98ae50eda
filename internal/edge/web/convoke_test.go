package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/run"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

func (b *bundle) anotherCampaign(slug, name string) {
	b.Helper()
	_, err := admission.AddCampaign(b.Context(), b.db, b.actor, b.org, admission.Campaign{Slug: slug, Name: name, FeeMinor: 1}, nil)
	b.must(err)
}

// runs counts the convocation runs of the installation.
func (b *bundle) runs() (n int) {
	b.Helper()
	b.must(testdb.Owner(b, b.url).QueryRow(b.Context(), `select count(*) from run where task = 'convoke'`).Scan(&n))
	return n
}

func TestConvoke_LeadsToItsProgressAndThenToItsReport(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore")
	id := b.click()
	path := fmt.Sprintf("/runs/%d", id)
	b.page(path, in("en")).wants(t, "Waiting", "Starting", "You may leave this page", `href="/campaigns/enib"`).lacks(t, "Refused")
	b.page("/campaigns/enib", in("en")).wants(t, "A run is going", `href="`+path+`"`).lacks(t, "Generate convocations")
	b.execute(id)
	b.page(path, in("en")).wants(t, "Done", "2 seated · 0 refused", "Back to the calendar", `href="/campaigns/enib/sittings/S001"`).lacks(t, "hx-get")
}

func TestConvoke_TwoClicksAreOneRun(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore")
	const clicks = 6
	led := make([]string, clicks)
	var all sync.WaitGroup
	for i := range clicks {
		all.Go(func() { led[i] = b.post("/campaigns/enib/convoke", url.Values{}).Header.Get("Location") })
	}
	all.Wait()
	for _, to := range led {
		if to == "" || to != led[0] {
			t.Errorf("the clicks lead to %v, want to one run", led)
		}
	}
	if n := b.runs(); n != 1 {
		t.Errorf("%d runs for %d clicks", n, clicks)
	}
	b.execute(b.click())
	if n := b.runs(); n != 1 {
		t.Errorf("a click while the run waits made another: %d", n)
	}
	if b.click(); b.runs() != 2 {
		t.Error("a click after the end of the run made no new one")
	}
}

func TestConvoke_OnlyWhoMay(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	for _, role := range account.Roles {
		if role != account.Manager { // who is logged in already
			b.logIn(b.org, role)
		}
		may := role == account.Manager || role == account.Agent
		page := b.page("/campaigns/enib", in("en"))
		posted := b.post("/campaigns/enib/convoke", url.Values{}, in("en"))
		if may {
			if posted.StatusCode != http.StatusSeeOther {
				t.Errorf("%s: %d, want 303", role, posted.StatusCode)
			}
			continue
		}
		page.lacks(t, "Generate convocations")
		if posted.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", role, posted.StatusCode)
		}
		posted.wants(t, "<h1>", "</main>").lacks(t, "no value", "role_", "act_")
	}
}

func TestConvoke_WithoutSomebodyToExecuteIt(t *testing.T) {
	b := setup(t)
	b.timetable()
	b.page("/campaigns/enib", in("en")).lacks(t, "Generate convocations")
	posted := b.post("/campaigns/enib/convoke", url.Values{}, in("en"))
	if posted.StatusCode != http.StatusServiceUnavailable || b.runs() != 0 {
		t.Errorf("%d, and %d runs", posted.StatusCode, b.runs())
	}
	posted.wants(t, "usher convoke")
}

func TestConvoke_RefusesWhatIsNoTarget(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	for _, form := range []url.Values{{"sitting": {"S999"}}, {"exam": {"NONE"}}, {"sitting": {"\x00"}}, {"exam": {"\xff"}}} {
		posted := b.post("/campaigns/enib/convoke", form, in("en"))
		if posted.StatusCode != http.StatusNotFound && posted.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d", form, posted.StatusCode)
		}
	}
	if get := b.ask("/campaigns/enib/convoke"); get.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("reading the button's address answers %d, want 405", get.StatusCode)
	}
	if n := b.runs(); n != 0 {
		t.Errorf("%d runs began", n)
	}
}

func TestProgress_IsAPartUntilTheRunHasEnded(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore")
	id := b.click()
	path := fmt.Sprintf("/runs/%d/progress", id)
	asked := func(r *http.Request) { r.Header.Set("HX-Request", "true") }
	b.page(path, in("en"), asked).wants(t, "Starting", `<progress value="0" max="2"`)
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update run set counters = '{"total": 40, "seated": 12}' where id = $1`, id)
	b.must(err)
	part := b.page(path, in("en"), asked)
	part.wants(t, "12 of 40", `<progress value="12" max="40"`, "12 seated").lacks(t, "<html", "<h1")
	if part.Header.Get("HX-Refresh") != "" {
		t.Error("a run that is going sends its reader away")
	}
	b.ask(path).leads(t, fmt.Sprintf("/runs/%d", id))
	b.execute(id)
	if refresh := b.page(path, asked).Header.Get("HX-Refresh"); refresh != "true" {
		t.Errorf("a run that has ended answers HX-Refresh %q", refresh)
	}
}

// The pages may be served where nothing executes runs, or what does may be down.
func TestReport_OfARunThatWaitsSaysWhatFor(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	address := b.post("/campaigns/enib/convoke", url.Values{}).Header.Get("Location")
	part := address + "/progress"
	asked := func(r *http.Request) { r.Header.Set("HX-Request", "true") }
	refresh := func(path string) string { return b.page(path, asked).Header.Get("HX-Refresh") }
	b.page(address, in("en")).wants(t, "Waiting", "Starting", `hx-get="`+part+`?awaited"`).lacks(t, "usher serve", "Interrupted")

	owner := testdb.Owner(t, b.url)
	_, err := owner.Exec(t.Context(), `update run set started_at = clock() - interval '1 hour'`)
	b.must(err)
	b.page(address, in("en")).wants(t, "Waiting", "waits for a server", "usher serve").lacks(t, "Interrupted", "Run again")
	b.page(address, in("fr")).wants(t, "En attente", "attend un serveur")
	b.page(address, in("es")).wants(t, "En espera", "espera un servidor")
	b.page("/campaigns/enib", in("en")).wants(t, "See the progress")
	b.page("/runs", in("en")).wants(t, "Waiting")
	if told := refresh(part + "?awaited"); told != "" {
		t.Errorf("while it waits, its page is told to load anew: %q", told)
	}
	if again := b.post("/campaigns/enib/convoke", url.Values{}).Header.Get("Location"); again != address || b.runs() != 1 {
		t.Errorf("asked again, it leads to %s of %d runs, not to %s", again, b.runs(), address)
	}

	_, err = owner.Exec(t.Context(), `update run set epoch = 1, lease_until = clock() + interval '2 minutes'`)
	b.must(err)
	if told := refresh(part + "?awaited"); told != "true" {
		t.Errorf("when it has begun, its page is not told to load anew: %q", told)
	}
	if told := refresh(part); told != "" {
		t.Errorf("while it goes on, its page is told to load anew: %q", told)
	}
	b.page(address, in("en")).wants(t, "Running", `hx-get="`+part+`"`).lacks(t, "Waiting")
}

func TestReport_OfAnInterruptedRunOffersTheButtonThatRepeatsIt(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	first := b.post("/campaigns/enib/convoke", url.Values{"sitting": {"S001"}})
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update run set lease_until = clock() - interval '1 minute'`)
	b.must(err)
	page := b.page(first.Header.Get("Location"), in("en"))
	page.wants(t, "Interrupted", "Run again", `action="/campaigns/enib/convoke"`, `name="sitting" value="S001"`)
	page.lacks(t, "hx-get", `http-equiv="refresh"`, "usher convoke")
	b.page("/campaigns/enib", in("en")).wants(t, "Interrupted", "Generate convocations")

	again := b.post("/campaigns/enib/convoke", url.Values{"sitting": {"S001"}})
	if again.StatusCode != http.StatusSeeOther {
		t.Fatalf("the repeat answers %d", again.StatusCode)
	}
	var id int64
	if _, err := fmt.Sscanf(again.Header.Get("Location"), "/runs/%d", &id); err != nil {
		t.Fatal(err)
	}
	b.execute(id)
	report, err := convocation.ReadReport(t.Context(), b.db, b.actor, id)
	b.must(err)
	if report.State != run.StateDone || report.Target.Sitting != "S001" {
		t.Errorf("the repeat ends as %s for %+v", report.State, report.Target)
	}
	b.logIn(b.org, account.Cashier)
	b.page(first.Header.Get("Location"), in("en")).lacks(t, "Run again")
}

func TestPreview_NamesWhoWouldBeSeatedAndKeepsNothing(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita", "Traore", "Diarra")
	page := b.page("/campaigns/enib/forecast", in("en"))
	page.wants(t, "Who would be seated", "3 seats", "3 e-mails", "Keita Awa", "Diarra Awa", "Amphi 1, Kayes", "001", "Generate convocations")
	page.lacks(t, "Refused")
	if b.runs() != 0 {
		t.Error("looking began a run")
	}
	b.page("/campaigns/enib", in("en")).counts(t, map[string]string{"wait for a seat": "3"})
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update sitting set places = 0, capacity = 0 where reference <> 'S001'`)
	b.must(err)
	b.page("/campaigns/enib/forecast", in("en")).wants(t, "2 seats", "1 refused", "All sittings")
	b.page("/campaigns/enib", in("en")).wants(t, "At most", "2 seats")
}

func TestPreview_OfNobody(t *testing.T) {
	b := setup(t).console()
	b.page("/campaigns/enib/forecast", in("en")).wants(t, "Nobody would be seated", "0 seats")
}

func TestConsole_NeedsALogin(t *testing.T) {
	b := setup(t)
	b.handler = web.Handler(b.db, web.Options{})
	b.session = nil
	for _, path := range consolePaths {
		if answer := b.ask(fmt.Sprintf(path, "enib")); answer.StatusCode != http.StatusSeeOther && answer.StatusCode != http.StatusFound {
			t.Errorf("%s answers %d to a stranger", path, answer.StatusCode)
		}
	}
}
