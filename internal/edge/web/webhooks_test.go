package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
)

// secretShown is the secret of an endpoint, as a page shows it.
var secretShown = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)

func TestWebhooks_AddedTriedAndSentAgain(t *testing.T) {
	b := setup(t)
	b.page("/webhooks", in("en")).wants(t, "No other system is told")
	added := b.post("/webhooks", url.Values{"name": {"office"}, "url": {"https://office.invalid/hook"}}, in("en"))
	added.wants(t, "Added the endpoint office", "It is shown only now")
	if !secretShown.MatchString(added.text) {
		t.Error("the secret is not shown")
	}
	page := b.page("/webhooks", in("en")).wants(t, "https://office.invalid/hook", "Send a test event")
	page.lacks(t, secretShown.FindString(added.text))
	again := b.post("/webhooks", url.Values{"name": {"office"}, "url": {"https://office.invalid/other"}}, in("en"))
	if again.StatusCode != http.StatusConflict || !strings.Contains(again.text, `role="alert"`) || !strings.Contains(again.text, "office.invalid/other") {
		t.Errorf("the same name again: %d\n%s", again.StatusCode, again.text)
	}
	// A manager speaks for the school, not for the machine.
	if local := b.post("/webhooks", url.Values{"name": {"here"}, "url": {"http://127.0.0.1:9/"}}); local.StatusCode != http.StatusConflict && local.StatusCode != 422 {
		t.Errorf("an address of this machine: %d", local.StatusCode)
	}
	// One event was given up.
	b.exec(`insert into dispatch (organisation_id, endpoint_id, kind, subject, data, state, written_at, next_attempt_at, attempts, first_attempt_at, ended_at, status, reason, words)
select organisation_id, id, 'payment.recorded', 'candidate enib/1', '{}', 'dead', clock(), clock(), 15, clock(), clock(), 500, 'status', '<b>no' from endpoint`)
	b.page("/webhooks", in("en")).wants(t, "Dead letters", "payment.recorded", "&lt;b&gt;no", "Attempts: 15.", "Send 1 dead letter again")
	off := url.Values{"name": {"office"}}
	b.post("/webhooks/disable", off, in("en")).wants(t, "The endpoint office is disabled")
	if refused := b.post("/webhooks/replay", off, in("en")); refused.StatusCode != http.StatusConflict {
		t.Errorf("a replay of one that is disabled: %d", refused.StatusCode)
	}
	b.post("/webhooks/enable", off, in("en")).wants(t, "The endpoint office is on")
	b.post("/webhooks/replay", off, in("en")).wants(t, "Sent again from now on: 1")
	b.post("/webhooks/replay", off, in("en")).wants(t, "Sent again from now on: 0")
	b.page("/webhooks", in("en")).lacks(t, "title-dead")
	for path, form := range map[string]url.Values{"/webhooks/test": {"name": {"nobody"}}, "/webhooks/burn": off} {
		if got := b.post(path, form); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	for _, language := range []string{"fr", "es"} {
		if found := regexp.MustCompile(`>\s*(?:cli_)?webhooks?_[a-z_]+`).FindString(b.page("/webhooks", in(language)).text); found != "" {
			t.Errorf("in %s the page shows %q", language, found)
		}
	}
}

func TestWebhooks_OnlyForManagersOfTheSchool(t *testing.T) {
	b := setup(t)
	b.post("/webhooks", url.Values{"name": {"office"}, "url": {"https://office.invalid/hook"}})
	for _, role := range []struct {
		as   string
		want int
	}{{"agent", 403}, {"cashier", 403}, {"door", 403}} {
		for _, candidate := range account.Roles {
			if string(candidate) == role.as {
				b.logIn(b.org, candidate)
			}
		}
		if got := b.ask("/webhooks"); got.StatusCode != role.want {
			t.Errorf("%s: %d, want %d", role.as, got.StatusCode, role.want)
		}
		if got := b.post("/webhooks/disable", url.Values{"name": {"office"}}); got.StatusCode != role.want {
			t.Errorf("%s disables: %d, want %d", role.as, got.StatusCode, role.want)
		}
	}
	other, _ := b.school("autre", "Autre")
	b.logIn(other, account.Manager)
	b.page("/webhooks").lacks(t, "office.invalid")
	if got := b.post("/webhooks/disable", url.Values{"name": {"office"}}); got.StatusCode != http.StatusNotFound {
		t.Errorf("another school disables: %d", got.StatusCode)
	}
}

// TestWebhooks_InABrowser: a manager adds an endpoint and disables it, on a desktop and a telephone.
func TestWebhooks_InABrowser(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/webhooks"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	do(t, tab, chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), "comptabilite-de-l-ecole"),
		chromedp.SendKeys(chromedp.CSS(`input[name="url"]`), "https://office.invalid/"+strings.Repeat("a-very-long-path/", 8)))
	press(t, tab, ".webhook-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "webhooks-added")
	b.exec(`insert into dispatch (organisation_id, endpoint_id, kind, subject, data, state, written_at, next_attempt_at, attempts, first_attempt_at, ended_at, status, reason, words)
select organisation_id, id, 'payment.recorded', 'candidate enib/1', '{}', 'dead', clock(), clock(), 15, clock(), clock(), 500, 'status', 'Internal Server Error' from endpoint`)
	press(t, tab, `form[action="/webhooks/disable"] button`)
	do(t, tab, chromedp.EmulateViewport(390, 844))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "webhooks-disabled-390")
	heard.none(t)
}
