package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"usher/internal/domain/convocation"
	"usher/internal/domain/testdb"
)

// cutServer answers until its network is cut: then each connection is broken off before anything is said.
type cutServer struct {
	*httptest.Server
	cut   atomic.Bool
	asked atomic.Int64
}

func newCutServer(t *testing.T, handler http.Handler) *cutServer {
	t.Helper()
	s := &cutServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		s.asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// evaluate is what a page's script gives, also one that takes its time.
func evaluate[T any](t *testing.T, tab context.Context, script string) T { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value
}

// picture keeps how a page looks, for whoever wants to look: USHER_SHOTS names the folder.
func picture(t *testing.T, tab context.Context, name string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	folder := os.Getenv("USHER_SHOTS")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOwnPage_WithoutANetwork: a page that was opened once opens when the network is gone, with its styles, its letter, and the line that says from
// when it is; with a network the network is asked; a link that was replaced is forgotten; no other page is kept.
func TestOwnPage_WithoutANetwork(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	path := b.ownPath("2026-00147")
	server := newCutServer(t, b.handler)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Navigate(server.URL+path+"?lang=fr"), chromedp.WaitVisible(chromedp.CSS("#keeps")))
	onlyFrom(t, tab, server.URL)
	heard.none(t)
	picture(t, tab, "seated-390")
	if caches := evaluate[string](t, tab, `(async () => (await (await caches.open("usher-candidate-1")).keys()).map((r) => new URL(r.url).pathname).join(" "))()`); !strings.Contains(caches, path+"/convocation.pdf") ||
		!strings.Contains(caches, path+"/calendar.ics") || !strings.Contains(caches, "/assets/own.css") {
		t.Errorf("kept are %s", caches)
	}

	server.cut.Store(true)
	do(t, tab, chromedp.Navigate(server.URL+path), chromedp.WaitVisible(chromedp.CSS("#kept")))
	if said := reads(t, tab, "#kept"); !strings.Contains(said, "Pas de connexion") || !strings.Contains(said, "Ce qui a changé depuis n'y est pas") {
		t.Errorf("without a network the page says %q", said)
	}
	if seat := reads(t, tab, ".own-number dd"); seat != "001" {
		t.Errorf("without a network the seat is %q", seat)
	}
	if ground := evaluate[string](t, tab, `getComputedStyle(document.querySelector(".own-code svg")).backgroundColor`); ground != "rgb(255, 255, 255)" {
		t.Errorf("without a network it is drawn without its styles: %s", ground)
	}
	if letter := evaluate[string](t, tab, `fetch("`+path+`/convocation.pdf").then((r) => r.text()).then((t) => t.slice(0, 5))`); letter != "%PDF-" {
		t.Errorf("without a network the letter begins %q", letter)
	}
	picture(t, tab, "kept-390")
	if other := evaluate[string](t, tab, `fetch("/login").then(() => "answered", () => "no network")`); other != "no network" {
		t.Errorf("without a network the page to log in is %s", other)
	}

	// With a network, what it says counts at once.
	server.cut.Store(false)
	_, err := testdb.Owner(t, b.url).Exec(t.Context(), `update candidate set given_name = 'Aïssata' where reference = '2026-00147'`)
	b.must(err)
	do(t, tab, chromedp.Navigate(server.URL+path), chromedp.WaitVisible(chromedp.CSS("#keeps")))
	if name := reads(t, tab, "h1"); name != "TRAORÉ Aïssata" {
		t.Errorf("with a network the page is of %q", name)
	}
	if said := evaluate[bool](t, tab, `document.getElementById("kept").hidden`); !said {
		t.Error("with a network the page says that there is none")
	}

	// A link that leads nowhere any more is forgotten.
	_, err = testdb.Owner(t, b.url).Exec(t.Context(), `update candidate set link_epoch = 2 where reference = '2026-00147'`)
	b.must(err)
	do(t, tab, chromedp.Navigate(server.URL+path), chromedp.WaitVisible(chromedp.CSS(".problem")))
	gone := evaluate[bool](t, tab, `(async () => { for (let i = 0; i < 100; i++) { if (!(await (await caches.open("usher-candidate-1")).match("`+path+`"))) return true; await new Promise((r) => setTimeout(r, 20)); } return false; })()`)
	if !gone {
		t.Error("a page that there is no more is kept")
	}
	if scope := evaluate[string](t, tab, `navigator.serviceWorker.getRegistrations().then((all) => all.map((r) => new URL(r.scope).pathname).join(" "))`); scope != "/c/" {
		t.Errorf("the worker answers for %s", scope)
	}
}

// TestOwnPage_InABrowser: each state on a telephone and a desk, without scripts as with them; nothing is wider than the screen, whatever the names.
func TestOwnPage_InABrowser(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	owner := testdb.Owner(t, b.url)
	server := newCutServer(t, b.handler)
	tab := browser(t)
	look := func(name, reference string) {
		t.Helper()
		for width, at := range map[int]string{390: "390", 1280: "1280"} {
			do(t, tab, chromedp.EmulateViewport(int64(width), 844), chromedp.Navigate(server.URL+b.ownPath(reference)+"?lang=fr"))
			if wide := evaluate[int](t, tab, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("%s is %d wide on a screen of %d", name, wide, width)
			}
			picture(t, tab, name+"-"+at)
		}
	}
	do(t, tab, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	exec := func(statement string) {
		t.Helper()
		_, err := owner.Exec(t.Context(), statement)
		b.must(err)
	}
	look("seated", "2026-00147")
	look("unpaid", "2026-00148")
	look("filed", "2026-00149")
	exec(`update candidate set fee_waived_at = clock(), fee_waived_by = 'x', fee_waived_reason = 'x' where reference = '2026-00150'`)
	look("waiting-long-name", "2026-00150")
	exec(`update organisation set name = 'École nationale supérieure polytechnique des ingénieurs de la République', contact_email = 'secretariat.des.concours@ecole-nationale-superieure.example'`)
	exec(`update campaign set name = 'Concours d''entrée en première année du cycle préparatoire intégré, session de rattrapage', instructions = E'Apportez un stylo noir.\nLes calculatrices sont interdites.'`)
	exec(`update centre set name = 'Lycée Kénédougou-Kura-Donaudaudampfschifffahrtselektrizitätenhauptbetriebswerk' where name = 'Kayes'`)
	exec(`update candidate set family_name = 'N''Diaye-Ould-Sidi-Mohamed-Abdallahi', given_name = 'Fatou Bintou Marie-Thérèse Aïssatou' where reference = '2026-00147'`)
	exec(`update notice set email_state = 'sent', told_at = clock()`)
	exec(`insert into room (organisation_id, centre_id, name) select organisation_id, id, 'Grand gymnase couvert du bâtiment pédagogique' from centre where name like 'Lyc%'`)
	_, err := convocation.MoveSitting(t.Context(), b.db, b.actor, b.campaign.Slug, "S001", convocation.SittingMove{Room: "Grand gymnase couvert du bâtiment pédagogique"})
	b.must(err)
	look("moved-long", "2026-00147")
	b.clockAt("2099-12-08 11:00+00")
	look("over", "2026-00147")
}
