package web_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	chromium "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/intake"
)

// TestPapers_InABrowser: a button prints, the file arrives under its name, and the page stays where it is.
func TestPapers_InABrowser(t *testing.T) {
	b := setup(t).console()
	b.bring(intake.Sittings, sittingTitles, "ENG,Kayes,Amphi 1,5,2099-12-07 08:00,2099-12-07 11:00")
	b.file("Keita", "محمد")
	b.execute(b.click())
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab, folder := browser(t), t.TempDir()
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/campaigns/enib"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	announced := true
	do(t, tab, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, chromium.SetDownloadBehavior, chromium.SetDownloadBehaviorParams{
			Behavior: chromium.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder, EventsEnabled: &announced,
		})
		return err
	}))
	arrives := func(at, selector, ending, begins string) {
		t.Helper()
		do(t, tab, chromedp.Navigate(server.URL+at))
		progress := chromedp.Events(tab, chromium.DownloadProgress)
		do(t, tab, chromedp.Click(chromedp.CSS(selector)))
		for event, err := range progress {
			if err != nil {
				t.Fatal(err)
			}
			if event.State == chromium.DownloadProgressStateCompleted {
				break
			}
		}
		files, err := filepath.Glob(filepath.Join(folder, "*"+ending))
		b.must(err)
		if len(files) != 1 {
			t.Fatalf("%s: %d files end with %s", selector, len(files), ending)
		}
		content, err := os.ReadFile(files[0])
		b.must(err)
		if !strings.HasPrefix(string(content), begins) {
			t.Errorf("%s does not begin with %q", files[0], begins)
		}
		if now := location(t, tab); now != server.URL+at {
			t.Errorf("after printing the page is %s", now)
		}
	}
	arrives("/campaigns/enib/sittings/S001", `form[action$="/letters.pdf"] button`, ".pdf", "%PDF-")
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib/sittings/S001"))
	kept(t, tab, "papers-sitting")
	arrives("/campaigns/enib", `form[action*="/papers/door-lists.zip"] button`, ".zip", "PK")
	kept(t, tab, "papers-calendar")
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Navigate(server.URL+"/campaigns/enib/sittings/S001"))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "papers-sitting-390")
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib"))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "papers-calendar-390")
	heard.none(t)
}
