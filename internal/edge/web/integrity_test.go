package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// writtenByHand is a row of the timeline about a seat that there is none of: somebody wrote into the database.
const writtenByHand = `insert into timeline (organisation_id, actor, kind, claim_id, facts) select id, 'x', 'seated', 999999, '{}' from organisation where slug = 'enib'`

func TestIntegrity_VerifiedOnDemand(t *testing.T) {
	b := setup(t)
	b.page("/integrity", in("en")).wants(t, "What is promised", "Verify now")
	b.post("/integrity", url.Values{}, in("en")).wants(t, "Every promise holds", "These hold", `role="status"`)
	b.exec(writtenByHand)
	b.post("/integrity", url.Values{}, in("en")).wants(t, "Promises are broken. Found: 1", "broken: 1", `role="alert"`, "speaks of a seat that there is not")
	for _, language := range []string{"fr", "es"} {
		for _, got := range []answer{b.page("/integrity", in(language)), b.post("/integrity", url.Values{}, in(language))} {
			if found := regexp.MustCompile(`>\s*(?:integrity|promise|verify)_[a-z_]+`).FindString(got.text); found != "" {
				t.Errorf("in %s the page shows %q", language, found)
			}
		}
	}
	other, _ := b.school("autre", "Autre")
	b.logIn(other, account.Manager)
	b.post("/integrity", url.Values{}, in("en")).wants(t, "Every promise holds").lacks(t, "speaks of a seat")
}

func TestIntegrity_OnlyForManagers(t *testing.T) {
	b := setup(t)
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		b.logIn(b.org, role)
		if read, asked := b.ask("/integrity").StatusCode, b.post("/integrity", nil).StatusCode; read != http.StatusForbidden || asked != http.StatusForbidden {
			t.Errorf("%s reads: %d, asks: %d", role, read, asked)
		}
	}
}

// TestIntegrity_InABrowser: on a desktop sound, on a telephone broken.
func TestIntegrity_InABrowser(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/integrity"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	kept(t, tab, "integrity")
	press(t, tab, ".verify-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "integrity-sound")
	b.exec(writtenByHand)
	do(t, tab, chromedp.EmulateViewport(390, 844))
	press(t, tab, ".verify-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "integrity-broken-390")
	heard.none(t)
}
