package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// settled writes the statement of October, with an event of a long name.
func (b *bundle) settled() {
	b.Helper()
	b.exec(`
insert into event (organisation_id, slug, name, time_zone, currency)
select id, 'nuit', 'Nuit des griots du Mandé, hommage à Aïssatou N''Guessan Kouyaté et à l''orchestre du Fleuve', 'Africa/Bamako', 'XOF' from organisation where slug = 'enib';
with written as (
  insert into statement (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor)
  select id, '2026-10-01', 'XOF', 'Africa/Bamako', '-infinity', '2026-11-01Z', -5000, 93100 from organisation where slug = 'enib')
insert into entry (organisation_id, month, currency, kind, event_id, amount_minor, pieces)
select o.id, '2026-10-01', 'XOF', kind, e.id, minor, 28
  from organisation o join event e on e.organisation_id = o.id, (values ('sale', 98000), ('commission', 4900), ('received', 98000)) v(kind, minor)
 where o.slug = 'enib'`)
}

func TestStatements_ShownAndSent(t *testing.T) {
	b := setup(t)
	b.page("/statements", in("en")).wants(t, "No month is settled yet")
	b.settled()
	b.page("/statements", in("en")).wants(t, "October 2026", "XOF\u00a093,100", "XOF\u00a088,100")
	b.page("/statements/2026-10", in("en")).wants(t, "Statement of October 2026", "Tickets sold", "Nuit des griots du Mandé", "28 tickets", "XOF\u00a098,000", "-XOF\u00a04,900",
		"What the month leaves", "XOF\u00a088,100")
	for ending, begins := range map[string]string{".pdf": "%PDF-", ".xlsx": "PK"} {
		got := b.ask("/statements/2026-10" + ending)
		if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.text, begins) || !strings.Contains(got.Header.Get("Content-Disposition"), ending) {
			t.Errorf("%s: %d, %q", ending, got.StatusCode, got.Header)
		}
	}
	for path, want := range map[string]int{"/statements/2026-09": 404, "/statements/2026-09.pdf": 404, "/statements/october": 422, "/statements/2026-10.doc": 422} {
		if got := b.ask(path); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, got.StatusCode, want)
		}
	}
	for _, language := range []string{"fr", "es"} {
		for _, path := range []string{"/statements", "/statements/2026-10"} {
			if found := regexp.MustCompile(`>\s*(?:statements|ledger|cli)_[a-z_]+`).FindString(b.page(path, in(language)).text); found != "" {
				t.Errorf("in %s %s shows %q", language, path, found)
			}
		}
	}
	other, _ := b.school("autre", "Autre")
	b.logIn(other, account.Manager)
	b.page("/statements", in("en")).wants(t, "No month is settled yet")
	if got := b.ask("/statements/2026-10.pdf"); got.StatusCode != http.StatusNotFound {
		t.Errorf("another organisation: %d", got.StatusCode)
	}
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		b.logIn(b.org, role)
		for _, path := range []string{"/statements", "/statements/2026-10", "/statements/2026-10.xlsx"} {
			if got := b.ask(path); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s reads %s: %d", role, path, got.StatusCode)
			}
		}
	}
}

func TestStatements_InABrowser(t *testing.T) {
	b := setup(t)
	b.settled()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/statements"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	kept(t, tab, "statements")
	do(t, tab, chromedp.Navigate(server.URL+"/statements/2026-10"))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "statement")
	do(t, tab, chromedp.EmulateViewport(390, 844))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "statement-390")
	heard.none(t)
}
