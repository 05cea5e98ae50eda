package web_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// complaints are what a browser says of our pages that nobody sees.
type complaints struct {
	mu    sync.Mutex
	texts []string
}

func (c *complaints) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

func (c *complaints) none(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.texts {
		t.Errorf("the browser complains: %s", text)
	}
}

// listen hears errors and warnings of the console, and exceptions.
func listen(t *testing.T, tab context.Context) *complaints { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	heard := &complaints{}
	err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				heard.add(e.Entry.Text + " " + e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			heard.add(e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				heard.add("console." + string(e.Type))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return heard
}

// loads are the addresses of everything that a page asked for.
func loads(t *testing.T, tab context.Context) []string { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	urls, err := chromedp.Run(tab, chromedp.Evaluate[[]string](`performance.getEntriesByType("resource").map(entry => entry.name)`))
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

// onlyFrom fails when a page loaded something from another host, or wider than the window.
func onlyFrom(t *testing.T, tab context.Context, home string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	urls := loads(t, tab)
	if len(urls) == 0 {
		t.Errorf("%s loaded nothing at all", location(t, tab))
	}
	for _, url := range urls {
		if !strings.HasPrefix(url, home+"/") {
			t.Errorf("%s loads %s", location(t, tab), url)
		}
	}
	wide, err := chromedp.Run(tab, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > window.innerWidth`))
	if err != nil {
		t.Fatal(err)
	}
	if wide {
		t.Errorf("%s is wider than the window", location(t, tab))
	}
}

// TestConsole_InABrowser: a manager logs in, sees what waits, generates convocations with an impatient click, watches the progress
// until it is the report, reads who was refused, and looks at a sitting; the same on a telephone.
func TestConsole_InABrowser(t *testing.T) {
	b := setup(t)
	b.timetable()
	names := make([]string, 204)
	for i := range names {
		names[i] = "Kɔ̀ɔ̀nyɛ́ " + strings.Repeat("a", 1+i/26) + string(rune('a'+i%26))
	}
	b.file(names...)
	asked := make(chan int64, 1)
	b.handler = web.Handler(b.db, web.Options{EnqueueConvoke: func(_ context.Context, _ pgx.Tx, _, runID int64) error {
		asked <- runID
		return nil
	}})
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	if at := location(t, tab); at != server.URL+"/campaigns/enib" {
		t.Fatalf("after the login: %s", at)
	}
	if said := reads(t, tab, ".numbers"); !strings.Contains(said, "204") || !strings.Contains(said, "203") {
		t.Errorf("the calendar says %q", said)
	}
	onlyFrom(t, tab, server.URL)

	do(t, tab, chromedp.SetValue(chromedp.CSS("#filter-state"), "bound"),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("#filter-state").dispatchEvent(new Event("change", {bubbles: true}))`),
		chromedp.WaitNotPresent(chromedp.CSS(`a[href$="/sittings/S001"]`)))
	if at := location(t, tab); !strings.Contains(at, "state=bound") {
		t.Errorf("the filter is not in the address: %s", at)
	}
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib"))

	do(t, tab, chromedp.DoubleClick(chromedp.CSS(`form[action="/campaigns/enib/convoke"] button`)), chromedp.WaitVisible(chromedp.CSS("#progress")))
	if n := b.runs(); n != 1 {
		t.Fatalf("two clicks made %d runs", n)
	}
	onlyFrom(t, tab, server.URL)
	b.execute(<-asked)
	do(t, tab, chromedp.WaitVisible(chromedp.CSS("#refused"))) // it comes by itself
	if said := reads(t, tab, "#refused"); !strings.Contains(said, "Kɔ̀ɔ̀nyɛ́") || !strings.Contains(said, "203") {
		t.Errorf("the report says of the refused %q", said)
	}
	onlyFrom(t, tab, server.URL)

	press(t, tab, `a[href="/campaigns/enib/sittings/S001"]`)
	if said := reads(t, tab, ".plan"); !strings.Contains(said, "001") || !strings.Contains(said, "002") {
		t.Errorf("the plan shows %q", said)
	}
	press(t, tab, `.orders li:last-child a`)
	if at := location(t, tab); !strings.Contains(at, "order=surname") {
		t.Errorf("the other order is at %s", at)
	}
	onlyFrom(t, tab, server.URL)

	do(t, tab, chromedp.EmulateViewport(390, 844))
	for _, path := range []string{"/campaigns/enib", "/campaigns/enib/sittings/S001", "/campaigns/enib/sittings/S003", "/campaigns/enib/forecast", "/runs", "/campaigns"} {
		do(t, tab, chromedp.Navigate(server.URL+path))
		onlyFrom(t, tab, server.URL)
	}
	heard.none(t)
}

// TestProgress_InABrowserWhoseSessionEnds asks for the login and comes back, and does not show the login within the page.
func TestProgress_InABrowserWhoseSessionEnds(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Keita")
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	logIn := func() {
		t.Helper()
		do(t, tab, chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
		press(t, tab, ".gate-form button")
	}
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib"))
	logIn()
	press(t, tab, `form[action="/campaigns/enib/convoke"] button`)
	at := location(t, tab)
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `delete from session`)
	b.must(err)
	do(t, tab, chromedp.WaitVisible(chromedp.CSS(".gate-form")))
	if shown := location(t, tab); !strings.HasPrefix(shown, server.URL+"/login?next=") {
		t.Fatalf("the login is shown at %s", shown)
	}
	logIn()
	if back := location(t, tab); back != at {
		t.Errorf("after the login: %s, want %s", back, at)
	}
}
