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

var passwordShown = regexp.MustCompile(`[a-z2-7]{4}(?:-[a-z2-7]{4}){3}`)

func TestMembers_AddedChangedAndTakenAway(t *testing.T) {
	b := setup(t)
	before := b.page("/members", in("en")).wants(t, "Members", "This is you")
	before.lacks(t, "moussa@ecole.example")
	form := url.Values{"name": {"Moussa <b>Traoré"}, "email": {"moussa@ecole.example"}, "role": {"cashier"}}
	added := b.post("/members", form, in("en")).wants(t, "moussa@ecole.example is cashier now", "It is shown only now", "Moussa &lt;b&gt;Traoré")
	shown := passwordShown.FindString(added.text)
	if shown == "" {
		t.Fatal("no password is shown")
	}
	b.page("/members", in("en")).wants(t, "moussa@ecole.example").lacks(t, shown)
	again := b.post("/members", form, in("en")).wants(t, "is a member already", `role="alert"`, `value="moussa@ecole.example"`)
	if again.StatusCode != http.StatusConflict || passwordShown.MatchString(again.text) {
		t.Errorf("added again: %d", again.StatusCode)
	}
	one := url.Values{"email": {"moussa@ecole.example"}}
	b.post("/members/role", url.Values{"email": one["email"], "role": {"door"}}, in("en")).wants(t, "is door keeper now")
	reset := b.post("/members/password", one, in("en")).wants(t, "has a new password")
	if got := passwordShown.FindString(reset.text); got == "" || got == shown {
		t.Errorf("the new password is %q, the old one %q", got, shown)
	}
	own := b.session
	b.logIn(b.organisation("autre"), account.Manager)
	joined := b.post("/members", form, in("en")).wants(t, "with the login, name and password that they had already")
	if passwordShown.MatchString(joined.text) {
		t.Error("a password is shown of a login that has one")
	}
	b.session = own
	b.page("/members", in("en")).wants(t, "Acts for another organisation too")
	b.post("/members/leave", one, in("en")).wants(t, "does not act for this organisation any more")
	for _, wrong := range []struct {
		path string
		form url.Values
		want int
	}{
		{"/members/leave", one, 404},
		{"/members/burn", one, 404},
		{"/members/role", url.Values{"email": {emailOf(b.org, account.Agent)}}, 422},
		{"/members/leave", url.Values{"email": {emailOf(b.org, account.Manager)}}, 409},
		{"/members", url.Values{"name": {"x"}, "email": {"no address"}, "role": {"agent"}}, 422},
		{"/members", url.Values{"email": {"x@ecole.example"}, "role": {"agent"}}, 422},
	} {
		got := b.post(wrong.path, wrong.form, in("en"))
		if got.StatusCode != wrong.want {
			t.Errorf("%s %v: %d, want %d", wrong.path, wrong.form, got.StatusCode, wrong.want)
		}
	}
	for _, language := range []string{"fr", "es"} {
		if found := regexp.MustCompile(`>\s*members_[a-z_]+`).FindString(b.page("/members", in(language)).text); found != "" {
			t.Errorf("in %s the page shows %q", language, found)
		}
	}
}

func TestMembers_OnlyForManagers(t *testing.T) {
	b := setup(t)
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		b.logIn(b.org, role)
		for path, form := range map[string]url.Values{
			"/members": {"name": {"x"}, "email": {"x@ecole.example"}, "role": {"manager"}}, "/members/leave": {"email": {emailOf(b.org, account.Manager)}},
		} {
			if got := b.post(path, form); got.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %d", role, path, got.StatusCode)
			}
		}
		if got := b.ask("/members"); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s reads: %d", role, got.StatusCode)
		}
	}
	other, _ := b.school("autre", "Autre")
	b.logIn(other, account.Manager)
	b.page("/members").lacks(t, emailOf(b.org, account.Manager))
	if got := b.post("/members/leave", url.Values{"email": {emailOf(b.org, account.Agent)}}); got.StatusCode != http.StatusNotFound {
		t.Errorf("another school takes away: %d", got.StatusCode)
	}
}

func TestLogOutEverywhere_EndsTheOtherSessionsToo(t *testing.T) {
	b := setup(t)
	elsewhere := b.session
	b.session = nil // another browser
	b.session = b.typeLogin(emailOf(b.org, account.Manager), password).sessionCookie()
	b.post("/logout/everywhere", nil).leads(t, "/login?out")
	for name, got := range map[string]int{
		"this one":  b.ask("/members").StatusCode,
		"the other": b.ask("/members", func(r *http.Request) { r.Header.Set("Cookie", elsewhere.Name+"="+elsewhere.Value) }).StatusCode,
	} {
		if got != http.StatusSeeOther {
			t.Errorf("%s goes on: %d", name, got)
		}
	}
}

// TestMembers_InABrowser: a manager adds somebody and takes them away, on a desktop and a telephone.
func TestMembers_InABrowser(t *testing.T) {
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/members"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Manager)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	kept(t, tab, "members")
	do(t, tab, chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), "Nana Akosua Agyemang-Prempeh Kouassi-N'Guessan Diarrassouba"),
		chromedp.SendKeys(chromedp.CSS(`input[name="email"]`), "nana.akosua.agyemang-prempeh.kouassi-nguessan@inscriptions.ecole.example"))
	press(t, tab, ".member-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "members-added")
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Click(chromedp.CSS(".member-change summary")))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "members-390")
	press(t, tab, `form[action="/members/leave"] button`)
	onlyFrom(t, tab, server.URL)
	heard.none(t)
}
