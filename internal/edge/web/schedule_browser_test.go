package web_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/edge/web"
)

// TestSchedule_InABrowser: a manager finds the page in the menu, watches a window until it has ended, and reads what failed; the
// same on a telephone, with names that are long. With USHER_SCREENSHOTS, what is seen is kept in that folder.
func TestSchedule_InABrowser(t *testing.T) {
	b := scheduled(t, sealing())
	_, err := account.AddOrganisation(b.Context(), b.db, b.actor, account.Organisation{
		Slug: "rosso", Name: "N", Country: "MR", TimeZone: "Africa/Nouakchott", Locale: "fr", Currency: "MRU",
	})
	b.must(err)
	id := b.window(sealing(), "2026-11-28")
	b.window(sealing(), "2026-11-27")
	b.going(id, "node-1/17", morning.Add(-20*time.Minute))
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/runs"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	do(t, tab, chromedp.Click(chromedp.CSS(".account summary")), chromedp.WaitVisible(chromedp.CSS(`.account a[href="/schedule"]`)))
	kept(t, tab, "menu")
	press(t, tab, `.account a[href="/schedule"]`)
	if said := reads(t, tab, "#underway"); !strings.Contains(said, "1,200 of 4,800") || !strings.Contains(said, "node-1/17") {
		t.Errorf("of the window under way it says %q", said)
	}
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "underway")
	do(t, tab, chromedp.EmulateViewport(390, 844))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "underway-phone")

	b.exec(`update run set counters = '{"expected": 4800, "done": 4400, "changed": 9, "refused": 4}' where id = $1`, id)
	do(t, tab, chromedp.WaitVisible(chromedp.CSS(`#underway progress[value="4404"]`))) // it comes by itself
	b.exec(`update run set state = 'done', finished_at = clock() where id = $1`, id)
	do(t, tab, chromedp.WaitNotPresent(chromedp.CSS("#underway")))
	if said := reads(t, tab, "#task-seal-timeline .stands"); !strings.Contains(said, "Done, 4 refused") {
		t.Errorf("after its end the task says %q", said)
	}
	kept(t, tab, "refused-phone")

	b.exec(`update run set state = 'failed' where id <> $1`, id)
	b.look(morning.AddDate(0, 0, -9), sealing())
	b.look(morning.Add(-8*time.Hour), sealing())
	b.going(b.window(sealing(), "2026-11-26"), strings.Repeat("noeud-de-calcul-", 8)+"/4711", morning.Add(-9*time.Hour))
	for _, language := range []string{"fr", "es", "en"} {
		for name, width := range map[string]int64{"": 1280, "-phone": 390} {
			do(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(server.URL+"/schedule?lang="+language))
			onlyFrom(t, tab, server.URL)
			kept(t, tab, "troubles-"+language+name)
			do(t, tab, chromedp.Click(chromedp.CSS(".relies > summary")), chromedp.WaitVisible(chromedp.CSS(".relies li")))
			onlyFrom(t, tab, server.URL)
			kept(t, tab, "relies-"+language+name)
		}
	}
	monthly := sealing()
	monthly.Cron, monthly.Zone, monthly.PerZone, monthly.Period = "30 2 1 * *", "", true, run.MonthBefore
	b.window(monthly, "2026-10@Africa/Bamako")
	server.Config.Handler = web.Handler(b.db, web.Options{Catalogue: run.Catalogue{monthly}})
	for name, width := range map[string]int64{"": 1280, "-phone": 390} {
		do(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(server.URL+"/schedule"))
		onlyFrom(t, tab, server.URL)
		kept(t, tab, "zones"+name)
	}
	heard.none(t)
}

// kept keeps what the browser shows, for people to look at.
func kept(t *testing.T, tab context.Context, name string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	folder := os.Getenv("USHER_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
