package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/edge/web"
)

// password is that of every login of the tests.
const password = "une place pour chacun"

// emailOf names the login of an organisation and role.
func emailOf(org account.Organisation, role timeline.Role) string {
	return string(role) + "@" + org.Slug + ".example"
}

// logIn adds a login of the organisation and gives the browser its session.
func (b *bundle) logIn(org account.Organisation, role timeline.Role) account.Login {
	b.Helper()
	login, err := account.AddLogin(b.Context(), b.db, b.actor, org, account.NewLogin{
		Email: emailOf(org, role), Name: "Awa Diarra", Password: password, Role: role,
	})
	b.must(err)
	b.session = nil
	answer := b.typeLogin(login.Email, password)
	if answer.StatusCode != http.StatusSeeOther {
		b.Fatalf("the login answers %d:\n%s", answer.StatusCode, answer.text)
	}
	b.session = answer.sessionCookie()
	if b.session == nil {
		b.Fatal("the login gives no session")
	}
	return login
}

// typeLogin fills in the form.
func (b *bundle) typeLogin(email, password string, change ...func(*http.Request)) answer {
	b.Helper()
	return b.post("/login", url.Values{"email": {email}, "password": {password}}, change...)
}

// post sends a form, as a browser sends one from our own page.
func (b *bundle) post(path string, form url.Values, change ...func(*http.Request)) answer {
	b.Helper()
	filled := func(r *http.Request) {
		body := strings.NewReader(form.Encode())
		posted, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.URL.String(), body)
		b.must(err)
		r.Method, r.Body, r.ContentLength = http.MethodPost, posted.Body, posted.ContentLength
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return b.ask(path, append([]func(*http.Request){filled}, change...)...)
}

func (a answer) cookie(name string) *http.Cookie {
	for _, cookie := range a.Cookies() {
		if cookie.Name == name {
			return cookie
		}
	}
	return nil
}

func (a answer) sessionCookie() *http.Cookie { return a.cookie("usher_session") }

// leads wants a redirect to this address.
func (a answer) leads(t *testing.T, to string) answer {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != to {
		t.Errorf("%d to %q, want 303 to %q:\n%s", a.StatusCode, a.Header.Get("Location"), to, a.text)
	}
	return a
}

func with(session *http.Cookie) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Cookie")
		r.AddCookie(session)
	}
}

// exec changes what the program itself would not.
func (b *bundle) exec(statement string, arguments ...any) {
	b.Helper()
	_, err := testdb.Owner(b.T, b.url).Exec(b.Context(), statement, arguments...)
	b.must(err)
}

func TestEveryAddress_NeedsALogin(t *testing.T) {
	b := setup(t)
	addresses := b.everyAddress()
	b.session = nil
	for _, path := range addresses {
		answer := b.ask(path)
		if path == "/healthz" || strings.HasPrefix(path, "/assets/") {
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %d", path, answer.StatusCode)
			}
			continue
		}
		want := "/login?next=" + url.QueryEscape(path)
		if path == "/" {
			want = "/login"
		}
		answer.leads(t, want)
		answer.lacks(t, "KƆNƐ", "Concours")
		if answer.sessionCookie() != nil {
			t.Errorf("%s gives a stranger a session", path)
		}
	}
	b.post("/runs/1", url.Values{}).lacks(t, "KƆNƐ")
	b.post("/language", url.Values{"lang": {"fr"}}).leads(t, "/login")
	b.post("/organisation", url.Values{"organisation": {"1"}}).leads(t, "/login")
	b.ask("/organisation").leads(t, "/login")
	part := b.ask("/runs", func(r *http.Request) { r.Header.Set("HX-Request", "true") })
	if part.StatusCode != http.StatusUnauthorized || part.Header.Get("HX-Refresh") != "true" || part.text != "" {
		t.Errorf("a part of a page: %d %v %s", part.StatusCode, part.Header, part.text)
	}
	var sessions int
	b.must(testdb.Owner(t, b.url).QueryRow(t.Context(), `select count(*) from session`).Scan(&sessions))
	if sessions != 1 {
		t.Errorf("%d sessions: strangers leave rows", sessions)
	}
}

func TestLogin_GoesOnToThePageAskedFor(t *testing.T) {
	b := setup(t)
	path := fmt.Sprintf("/runs/%d?lang=fr", b.done(3))
	login := emailOf(b.org, account.Manager)
	b.session = nil
	asked := b.ask(path)
	page := b.page(asked.Header.Get("Location"), in("fr"))
	page.wants(t, "<title>Connexion · Usher</title>", `name="next" value="`+path+`"`, "accéder à la page demandée", `autocomplete="current-password"`)
	answer := b.post("/login", url.Values{"email": {login}, "password": {password}, "next": {path}}).leads(t, path)
	session := answer.sessionCookie()
	if session == nil || !session.HttpOnly || session.SameSite != http.SameSiteLaxMode || session.Secure || session.Path != "/" || session.MaxAge != 0 {
		t.Fatalf("the cookie: %v", session)
	}
	b.session = session
	b.page(path).wants(t, "KƆNƐ Ŋaɲa 0001", "Awa Diarra", login, "responsable", "Se déconnecter") //nolint:misspell // French
	b.ask("/login?next=%2Fruns").leads(t, "/runs")                                                // there is nothing to log in for
}

func TestLogin_OverHTTPSKeepsTheCookieToIt(t *testing.T) {
	b := setup(t)
	b.handler = web.Handler(b.db, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "usher.ecole.example"}})
	b.session = nil
	answer := b.typeLogin(emailOf(b.org, account.Manager), password, func(r *http.Request) {
		r.Host = "usher.ecole.example"
		r.Header.Del("Sec-Fetch-Site") // a browser that is too old for it says at least where it comes from
		r.Header.Set("Origin", "https://usher.ecole.example")
	}).leads(t, "/")
	session := answer.cookie("__Host-usher_session")
	if session == nil || !session.Secure || session.Domain != "" || session.Path != "/" {
		t.Errorf("cookies %v", answer.Cookies())
	}
}

func TestLogin_WrongIsSaidTheSameWay(t *testing.T) {
	b := setup(t)
	b.session = nil
	known := b.typeLogin(emailOf(b.org, account.Manager), "not the password", in("en"))
	unknown := b.typeLogin("nobody@ecole.example", "not the password", in("en"))
	for _, answer := range []answer{known, unknown} {
		answer.wants(t, "This e-mail address and password do not belong together", `role="alert"`, `aria-invalid="true"`)
		answer.lacks(t, "not the password")
		if answer.StatusCode != http.StatusUnprocessableEntity || answer.sessionCookie() != nil {
			t.Errorf("%d, cookies %v", answer.StatusCode, answer.Cookies())
		}
	}
	if strings.ReplaceAll(known.text, emailOf(b.org, account.Manager), "X") != strings.ReplaceAll(unknown.text, "nobody@ecole.example", "X") {
		t.Errorf("a login that exists is told from one that does not:\n%s\n%s", known.text, unknown.text)
	}
	b.typeLogin(`"><script>alert(1)</script>`, "x", in("en")).lacks(t, "<script>")
	b.post("/login", nil, in("en")).wants(t, "do not belong together")
	b.typeLogin(strings.Repeat("x", 100_000), "x") // more than a form may hold
	for _, language := range []string{"fr", "es"} {
		b.typeLogin("nobody@ecole.example", "x", in(language)).wants(t, `lang="`+language+`"`).lacks(t, "problem_", "login_")
	}
}

func TestLogin_GuessesAtOnceStayBounded(t *testing.T) {
	b := setup(t)
	b.session = nil
	const guesses, allowed = 24, 10
	statuses := make([]answer, guesses)
	var all sync.WaitGroup
	for i := range guesses {
		all.Go(func() {
			statuses[i] = b.typeLogin(emailOf(b.org, account.Manager), fmt.Sprint("guess number ", i), in("en"))
		})
	}
	all.Wait()
	looked := 0
	for _, answer := range statuses {
		switch answer.StatusCode {
		case http.StatusUnprocessableEntity:
			looked++
		case http.StatusTooManyRequests:
			answer.wants(t, "Too many attempts. Try again in 15 min")
			if answer.Header.Get("Retry-After") != "900" {
				t.Errorf("Retry-After %q", answer.Header.Get("Retry-After"))
			}
		default:
			t.Errorf("%d: %s", answer.StatusCode, answer.text)
		}
	}
	if looked != allowed {
		t.Errorf("%d guesses of %d were looked at, want %d", looked, guesses, allowed)
	}
	right := b.typeLogin(emailOf(b.org, account.Manager), password, in("fr"))
	if right.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the right password, guessed too late: %d", right.StatusCode)
	}
	right.wants(t, "Réessayez dans 15\u00a0min")
}

// TestLogin_CountsWhomAServerInFrontNames: and nobody else may choose under which address they are counted.
func TestLogin_CountsWhomAServerInFrontNames(t *testing.T) {
	b := setup(t)
	b.session = nil
	from := func(peer, forwarded string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = peer
			r.Header.Set("X-Forwarded-For", forwarded)
		}
	}
	counted := func() (addresses, most int) {
		b.must(testdb.Owner(t, b.url).QueryRow(t.Context(), `select count(*), max(guesses) from login_attempt where kind = 'address'`).Scan(&addresses, &most))
		return addresses, most
	}
	b.exec(`delete from login_attempt`)
	b.typeLogin("a@ecole.example", "x", from("127.0.0.1:5000", "203.0.113.1"))
	b.typeLogin("b@ecole.example", "x", from("127.0.0.1:5000", "203.0.113.2"))
	if addresses, most := counted(); addresses != 1 || most != 2 {
		t.Errorf("with no server in front, the header is believed: %d addresses", addresses)
	}
	b.handler = web.Handler(b.db, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "localhost"}})
	b.exec(`delete from login_attempt`)
	b.typeLogin("c@ecole.example", "x", from("127.0.0.1:5000", "198.51.100.9, 203.0.113.1"))
	b.typeLogin("d@ecole.example", "x", from("127.0.0.1:5000", "198.51.100.8, 203.0.113.2"))
	b.typeLogin("e@ecole.example", "x", from("192.0.2.4:5000", "203.0.113.3"))
	b.typeLogin("f@ecole.example", "x", from("192.0.2.4:5000", "203.0.113.4"))
	if addresses, most := counted(); addresses != 3 || most != 2 {
		t.Errorf("behind a server: %d addresses with %d guesses at most", addresses, most)
	}
}

// TestLogin_RenewsTheToken: a session that somebody planted before the login is worth nothing after it.
func TestLogin_RenewsTheToken(t *testing.T) {
	b := setup(t)
	old := b.session
	again := b.post("/login", url.Values{"email": {emailOf(b.org, account.Manager)}, "password": {password}}).leads(t, "/")
	renewed := again.sessionCookie()
	if renewed == nil || renewed.Value == old.Value {
		t.Fatalf("the token stays: %v", renewed)
	}
	b.ask("/runs", with(old)).leads(t, "/login?next=%2Fruns")
	planted := &http.Cookie{Name: "usher_session", Value: "planted-by-somebody"}
	b.session = planted
	fresh := b.typeLogin(emailOf(b.org, account.Manager), password).sessionCookie()
	if fresh == nil || fresh.Value == planted.Value {
		t.Errorf("a planted token is taken: %v", fresh)
	}
	var stored string
	b.must(testdb.Owner(t, b.url).QueryRow(t.Context(), `select string_agg(token, ' ') from session`).Scan(&stored))
	if strings.Contains(stored, renewed.Value) || strings.Contains(stored, fresh.Value) {
		t.Error("a token stands in the database as it is")
	}
}

// minutesLeft is until when the one session lasts, by the database's clock.
func (b *bundle) minutesLeft() float64 {
	b.Helper()
	var left float64
	b.must(testdb.Owner(b.T, b.url).QueryRow(b.Context(), `select extract(epoch from lapses_at - clock()) / 60 from session`).Scan(&left))
	return left
}

// TestSession_Lapses: a pause ends it, and each request moves that on; a working day ends it however busy it is. The database's
// clock judges both.
func TestSession_Lapses(t *testing.T) {
	b := setup(t)
	b.exec(`update session set lapses_at = clock() + interval '1 minute'`)
	b.page("/runs")
	if left := b.minutesLeft(); left < 119 || left > 120 {
		t.Errorf("after a request it lapses in %.1f minutes, want 120", left)
	}
	b.exec(`update session set ends_at = clock() + interval '30 minutes', lapses_at = clock() + interval '1 minute'`)
	b.page("/runs")
	if left := b.minutesLeft(); left < 29 || left > 30 {
		t.Errorf("it is moved past its end: %.1f minutes, want 30", left)
	}
	b.exec(`update session set lapses_at = clock()`)
	b.ask("/runs").leads(t, "/login?next=%2Fruns")
	b.ask("/runs").leads(t, "/login?next=%2Fruns") // asking does not bring it back
	b.exec(`update session set lapses_at = ends_at`)
	b.page("/runs")
	b.exec(`update session set data = 'nonsense'`)
	if broken := b.ask("/runs", in("en")); broken.StatusCode != http.StatusInternalServerError || !strings.Contains(broken.text, "Incident") {
		t.Errorf("a session that cannot be read: %d", broken.StatusCode)
	}
}

// TestSession_IsNotBroughtBack: a page that was being read while the session ended, or while its organisation was changed, does
// not write what it had found.
func TestSession_IsNotBroughtBack(t *testing.T) {
	b := setup(t)
	other := b.organisation("lycee")
	_, err := account.SetRole(t.Context(), b.db, b.actor, other, emailOf(b.org, account.Manager), account.Door)
	b.must(err)
	meanwhile := func(act func()) {
		t.Helper()
		done := make(chan struct{})
		reached, goOn := make(chan struct{}), make(chan struct{})
		slow := slowWriter{httptest.NewRecorder(), func() { close(reached); <-goOn }}
		r := httptest.NewRequest(http.MethodGet, "/runs", nil)
		r.Host = "localhost"
		r.AddCookie(b.session)
		go func() { defer close(done); b.handler.ServeHTTP(&slow, r) }()
		<-reached
		act()
		close(goOn)
		<-done
	}
	meanwhile(func() {
		b.post("/organisation", url.Values{"organisation": {fmt.Sprint(other.ID)}}).leads(t, "/")
	})
	b.page("/runs", in("en")).wants(t, "lycee · door keeper")
	meanwhile(func() { b.post("/logout", nil).leads(t, "/login?out") })
	b.ask("/runs").leads(t, "/login?next=%2Fruns")
}

// slowWriter waits when the page is made: the session was read, which left a header, and nothing of it is written yet.
type slowWriter struct {
	*httptest.ResponseRecorder
	wait func()
}

func (w *slowWriter) Header() http.Header {
	if wait := w.wait; wait != nil && w.ResponseRecorder.Header().Get("Vary") != "" {
		w.wait = nil
		wait()
	}
	return w.ResponseRecorder.Header()
}

func TestSession_EndsWithTheLogin(t *testing.T) {
	for name, end := range map[string]func(*bundle, string) error{
		"disabled": func(b *bundle, email string) error {
			_, err := account.Disable(b.Context(), b.db, b.actor, email)
			return err
		},
		"another password": func(b *bundle, email string) error {
			_, err := account.SetPassword(b.Context(), b.db, b.actor, email, "another password")
			return err
		},
		"no role": func(b *bundle, email string) error {
			_, err := account.SetRole(b.Context(), b.db, b.actor, b.org, email, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.page("/runs")
			b.must(end(b, emailOf(b.org, account.Manager)))
			answer := b.ask("/runs").leads(t, "/login?next=%2Fruns")
			if ended := answer.sessionCookie(); ended == nil || ended.MaxAge >= 0 {
				t.Errorf("the cookie stays: %v", answer.Cookies())
			}
			var sessions int
			b.must(testdb.Owner(t, b.url).QueryRow(t.Context(), `select count(*) from session`).Scan(&sessions))
			if sessions != 0 {
				t.Errorf("%d sessions stay", sessions)
			}
		})
	}
}

func TestLogin_Disabled(t *testing.T) {
	b := setup(t)
	b.session = nil
	_, err := account.Disable(t.Context(), b.db, b.actor, emailOf(b.org, account.Manager))
	b.must(err)
	b.typeLogin(emailOf(b.org, account.Manager), password, in("fr")).wants(t, "Ce compte est désactivé")
	b.typeLogin(emailOf(b.org, account.Manager), "some other password", in("fr")).lacks(t, "désactivé")
}

func TestLogout(t *testing.T) {
	b := setup(t)
	session := b.session
	b.post("/logout", nil).leads(t, "/login?out")
	b.ask("/runs", with(session)).leads(t, "/login?next=%2Fruns")
	b.session = nil
	b.page("/login?out", in("en")).wants(t, "You are logged out.")
	b.post("/logout", nil).leads(t, "/login?out") // twice is once
	if got := b.ask("/logout"); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "POST" {
		t.Errorf("a link logs out: %d", got.StatusCode)
	}
}

func TestForms_OfOtherSitesAreRefused(t *testing.T) {
	b := setup(t)
	for name, foreign := range map[string]func(*http.Request){
		"another site":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a neighbour":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"an older browser":  func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
		"a page of nowhere": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
	} {
		for _, path := range []string{"/login", "/logout", "/language", "/organisation", "/runs"} {
			answer := b.post(path, url.Values{"email": {emailOf(b.org, account.Manager)}, "password": {password}, "lang": {"es"}}, foreign, in("en"))
			if answer.StatusCode != http.StatusForbidden || answer.sessionCookie() != nil {
				t.Errorf("%s to %s: %d", name, path, answer.StatusCode)
			}
			answer.wants(t, "Another site asked for this on your behalf")
		}
	}
	b.page("/runs", in("en")).wants(t, `lang="en"`)
}

func TestLogin_GoesOnToOwnPagesOnly(t *testing.T) {
	b := setup(t)
	b.session = nil
	for next, want := range map[string]string{
		"/runs": "/runs", "/runs/1?page=2&reason=a": "/runs/1?page=2&reason=a", "/r?u=https://x.example": "/r?u=https://x.example",
		"": "/", "//evil.example": "/", "/\\evil.example": "/", "\\evil.example": "/", "https://evil.example": "/", "javascript:alert(1)": "/",
		"/\t/evil.example": "/", "/%2f/evil.example": "/", "/%2Fevil.example": "/", "\n/evil": "/", "evil": "/", "/login": "/", "/logout": "/", "/login?next=/x": "/",
		"http:/evil.example": "/", "/" + strings.Repeat("x", 2000): "/", "/\x7f": "/",
	} {
		b.post("/login", url.Values{"email": {emailOf(b.org, account.Manager)}, "password": {password}, "next": {next}}).leads(t, want)
	}
	b.page("/login?next=//evil.example").wants(t, `name="next" value="/"`).lacks(t, `href="//`, `value="//`)
}

func TestOrganisations_OfOneLogin(t *testing.T) {
	b := setup(t)
	first := b.done(3)
	other := b.organisation("lycee")
	email := emailOf(b.org, account.Manager)
	_, err := account.SetRole(t.Context(), b.db, b.actor, other, email, account.Door)
	b.must(err)
	stranger := b.organisation("stranger")
	b.page(fmt.Sprintf("/runs/%d", first)) // the session goes on for the one that it was for

	b.session = nil
	b.session = b.post("/login", url.Values{"email": {email}, "password": {password}, "next": {"/runs"}}).
		leads(t, "/organisation?next=%2Fruns").sessionCookie()
	b.ask("/runs/5").leads(t, "/organisation?next=%2Fruns%2F5")
	b.page("/organisation?next=%2Fruns", in("en")).wants(t, "Choose an organisation", "enib", "lycee", "manager", "door keeper", `name="next" value="/runs"`).lacks(t, "stranger")
	choose := func(org account.Organisation) answer {
		return b.post("/organisation", url.Values{"organisation": {fmt.Sprint(org.ID)}, "next": {"/runs"}})
	}
	choose(b.org).leads(t, "/runs")
	b.page(fmt.Sprintf("/runs/%d", first), in("en")).wants(t, "KƆNƐ", "enib · manager")
	choose(other).leads(t, "/runs")
	if hidden := b.ask(fmt.Sprintf("/runs/%d", first)); hidden.StatusCode != http.StatusNotFound {
		t.Errorf("the other organisation's run: %d", hidden.StatusCode)
	}
	b.page("/runs", in("en")).wants(t, "lycee · door keeper")
	if refused := choose(stranger); refused.StatusCode != http.StatusNotFound {
		t.Errorf("an organisation of others: %d", refused.StatusCode)
	}
	for _, nonsense := range []string{"", "x", "-1", "99999999999999999999"} {
		if refused := b.post("/organisation", url.Values{"organisation": {nonsense}}); refused.StatusCode != http.StatusNotFound {
			t.Errorf("organisation %q: %d", nonsense, refused.StatusCode)
		}
	}
	_, err = account.SetRole(t.Context(), b.db, b.actor, other, email, "")
	b.must(err)
	b.page(fmt.Sprintf("/runs/%d", first)).wants(t, "KƆNƐ") // one is left: it is the one
}

func TestLanguage_OfTheLogin(t *testing.T) {
	b := setup(t)
	b.page("/runs", in("es")).wants(t, `lang="es"`)
	b.post("/language", url.Values{"lang": {"fr"}, "next": {"/runs?page=1"}}).leads(t, "/runs?page=1")
	b.page("/runs", in("es")).wants(t, `lang="fr"`, `name="lang" value="fr" lang="fr" aria-current="true"`)
	if wrong := b.post("/language", url.Values{"lang": {"xx"}}); wrong.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a language that is not spoken: %d", wrong.StatusCode)
	}
	b.page("/runs", in("es")).wants(t, `lang="fr"`)
}

// TestRoles_AreRefusedWhereTheyAct: the page says it with a status of its own, whatever buttons it showed.
func TestRoles_AreRefusedWhereTheyAct(t *testing.T) {
	b := setup(t)
	enqueued := func(context.Context, pgx.Tx, int64, int64) error { return nil }
	b.handler = web.Handler(b.db, web.Options{EnqueueConvoke: enqueued})
	for role, want := range map[timeline.Role]int{
		account.Agent: http.StatusSeeOther, account.Cashier: http.StatusForbidden, account.Door: http.StatusForbidden,
	} {
		b.logIn(b.org, role)
		answer := b.post("/campaigns/"+b.campaign.Slug+"/convoke", url.Values{}, in("en"))
		if answer.StatusCode != want {
			t.Errorf("%s convokes: %d, want %d:\n%s", role, answer.StatusCode, want, answer.text)
		}
		if want == http.StatusForbidden {
			answer.wants(t, "you may not convoke. Ask a manager of your organisation")
		}
		b.page("/runs")
	}
}

func TestHeader_HasNoVisitorWhereNobodyIs(t *testing.T) {
	b := setup(t)
	b.session = nil
	page := b.page("/login", in("en"))
	page.lacks(t, "Log out", "<details")
	page.wants(t, `hreflang="fr"`)
	if found := regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=`).FindString(page.text); found != "" {
		t.Errorf("the login needs %q", found)
	}
	for _, language := range []string{"en", "fr", "es"} {
		for _, text := range []string{b.page("/login", in(language)).text, b.typeLogin("x", "y", in(language)).text} {
			if found := regexp.MustCompile(`>\s*(login|account|organisation|problem|role)_[a-z_]+`).FindString(text); found != "" {
				t.Errorf("%s shows %q", language, found)
			}
		}
	}
}
