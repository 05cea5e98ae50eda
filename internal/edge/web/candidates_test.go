package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/intake"
)

// filed is a campaign with people whose names are hard to type, of whom some have paid.
func (b *bundle) filed() {
	b.Helper()
	b.timetable()
	b.bring(intake.Candidates, "reference,family_name,given_name,email,phone,status,exams",
		"2026-00147,TRAORÉ,Awa,awa.traore@ecole.example,+223 76 12 34 56,accepted,ENG",
		"2026-00148,Traoré,Modibo,modibo@ecole.example,,accepted,ENG",
		"2026-00149,Kɔ̀ɔ̀nyɛ́,Ŋaɲa,,,filed,ENG",
		"2026-00150,N'Diaye-Ould-Sidi-Mohamed-Abdallahi,Fatou Bintou Marie-Thérèse Aïssatou,fatou.bintou.marie.therese@universite-des-sciences.example,,accepted,ENG",
		"2026-00151,Keïta,,,,rejected,")
	b.bring(intake.Payments, "candidate,amount,method,receipt", "2026-00147,10000,cash,R-1", "2026-00148,4000,cash,R-2")
}

func TestCandidates_FindsAndTellsWhereTheyStand(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	page := b.page("/campaigns/enib/candidates?q=traore", in("en"))
	page.wants(t, "TRAORÉ Awa", `href="/campaigns/enib/candidates/2026-00147"`, "Seat 001", "Owes XOF\u00a06,000", `value="traore"`, "Without a seat")
	page.lacks(t, "Keïta", "similar")
	b.page("/campaigns/enib/candidates?q=kieta", in("en")).wants(t, "Keïta", "Nobody is written like that", "similar", "Without a seat")
	b.page("/campaigns/enib/candidates?paid=yes", in("en")).wants(t, "2026-00147").lacks(t, "2026-00148")
	b.page("/campaigns/enib/candidates?q=zzzz", in("en")).wants(t, "Nobody is found", "Show all")
	b.page("/campaigns/enib/candidates?q=z", in("en")).wants(t, "One more letter")
	b.page("/campaigns/enib/candidates", in("fr")).wants(t, "dans l&#39;ordre de dépôt", "Doit")
	b.page("/campaigns/enib", in("en")).wants(t, `href="/campaigns/enib/candidates"`)
	for _, wrong := range []string{"paid=perhaps", "status=nowhere", "after=nobody"} {
		if a := b.ask("/campaigns/enib/candidates?"+wrong, in("en")); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d", wrong, a.StatusCode)
		}
	}
	other := b.organisation("other")
	b.logIn(other, account.Manager)
	if a := b.ask("/campaigns/enib/candidates?q=traore"); a.StatusCode != http.StatusNotFound || strings.Contains(a.text, "Awa T") {
		t.Errorf("another organisation: %d", a.StatusCode)
	}
}

func TestCandidates_EmptySaysWhatToDo(t *testing.T) {
	b := setup(t)
	b.page("/campaigns/enib/candidates", in("en")).wants(t, "No candidates yet", "usher import candidates --campaign enib")
}

// TestCandidates_InABrowser: an agent types a name as they hear it and sees who it is, with scripts and without, on a desk and on a
// telephone.
func TestCandidates_InABrowser(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	b.logIn(b.org, account.Agent)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/campaigns/enib/candidates"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Agent)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "candidates")
	do(t, tab, chromedp.SendKeys(chromedp.CSS("#find-text"), "koonye"), chromedp.WaitNotPresent(chromedp.CSS(`#found a[href$="/candidates/2026-00147"]`)))
	if said := reads(t, tab, "#found"); !strings.Contains(said, "Kɔ̀ɔ̀nyɛ́") {
		t.Errorf("as one types, it shows %q", said)
	}
	if at := location(t, tab); !strings.Contains(at, "q=koonye") {
		t.Errorf("what is looked for is not in the address: %s", at)
	}
	kept(t, tab, "candidates-found")
	do(t, tab, chromedp.EmulateViewport(390, 844))
	for name, path := range map[string]string{"": "", "-similar": "?q=kieta", "-nobody": "?q=zzzz"} {
		do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib/candidates"+path))
		onlyFrom(t, tab, server.URL)
		kept(t, tab, "candidates-phone"+name)
	}
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib"))
	kept(t, tab, "calendar-phone")
	heard.none(t)
}
