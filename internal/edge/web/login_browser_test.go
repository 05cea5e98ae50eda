package web_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/edge/web"
)

// browserPatience is how long a browser may take on a busy machine.
const browserPatience = 90 * time.Second

// browser is a Chromium with nothing in it, without a network of its own.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("chromium is not on this machine (apt-get install chromium): the pages were not tried in a browser")
	}
	if err != nil {
		t.Fatal("chromium is missing: ", err)
	}
	allocator, cancel := chromedp.NewExecAllocator(t.Context(),
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("host-resolver-rules", "MAP usher.test 127.0.0.1"), chromedp.Flag("disable-features", "HttpsUpgrades"),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(cancel)
	tab, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() { _ = chromedp.Cancel(tab) })
	t.Cleanup(cancel)
	limited, cancel := context.WithTimeout(tab, browserPatience)
	t.Cleanup(cancel)
	return limited
}

// press clicks what leads to another page, and waits for it.
func press(t *testing.T, tab context.Context, selector string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	_, err := chromedp.Run(tab, chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.Click(chromedp.CSS(selector))))
	if err != nil {
		t.Fatalf("press %s: %v", selector, err)
	}
}

// reads is what a person sees of a part of the page.
func reads(t *testing.T, tab context.Context, selector string) string { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	text, err := chromedp.Run(tab, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		t.Fatalf("read %s: %v", selector, err)
	}
	return text
}

func location(t *testing.T, tab context.Context) string { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	at, err := chromedp.Run(tab, chromedp.Location())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func do(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

// TestLogin_InABrowser: from a page that was asked for, over a slip, to that page, through the menu, and out again.
func TestLogin_InABrowser(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	do(t, tab, chromedp.Navigate(server.URL+"/runs"))
	if at := location(t, tab); at != server.URL+"/login?next=%2Fruns" {
		t.Fatalf("a stranger is led to %s", at)
	}
	fill := func(password string) {
		t.Helper()
		do(t, tab,
			chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)),
			chromedp.SendKeys(chromedp.CSS("#password"), password))
		press(t, tab, ".gate-form button")
	}
	fill("not the password")
	if said := reads(t, tab, "#login-problem"); !strings.Contains(said, "do not belong together") {
		t.Errorf("a slip is answered with %q", said)
	}
	fill(password)
	if at := location(t, tab); at != server.URL+"/runs" {
		t.Fatalf("after the login: %s", at)
	}
	do(t, tab, chromedp.Click(chromedp.CSS(".account summary")))
	if who := reads(t, tab, ".account-who"); !strings.Contains(who, "Awa Diarra") || !strings.Contains(who, "manager") {
		t.Errorf("the menu says %q", who)
	}
	press(t, tab, `.account-languages button[value="fr"]`)
	if at := location(t, tab); at != server.URL+"/runs" {
		t.Errorf("another language leads to %s", at)
	}
	do(t, tab, chromedp.Click(chromedp.CSS(".account summary")))
	press(t, tab, `form[action="/logout"] button`)
	if said := reads(t, tab, ".gate"); !strings.Contains(said, "You are logged out") {
		t.Errorf("after leaving: %q", said)
	}
	do(t, tab, chromedp.Navigate(server.URL+"/runs"))
	if at := location(t, tab); at != server.URL+"/login?next=%2Fruns" {
		t.Errorf("who left still gets to %s", at)
	}
}

// TestLogin_InABrowserWithoutHTTPS: on a plain network a browser says less of where a form comes from, and must still be let in.
func TestLogin_InABrowserWithoutHTTPS(t *testing.T) {
	b := setup(t)
	b.handler = web.Handler(b.db, web.Options{PublicURL: &url.URL{Scheme: "http", Host: "usher.test"}})
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "127.0.0.1", "usher.test", 1)
	tab := browser(t)
	do(t, tab, chromedp.Navigate(address+"/runs"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)),
		chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	if at := location(t, tab); at != address+"/runs" {
		t.Errorf("after the login: %s, %s", at, reads(t, tab, "main"))
	}
}
