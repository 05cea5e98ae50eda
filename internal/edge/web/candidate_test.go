package web_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
)

const fileOfAwa = "/campaigns/enib/candidates/2026-00147"

// does fills in a form of a candidate's file and wants it done.
func (b *bundle) does(act string, form url.Values) answer {
	b.Helper()
	a := b.post(fileOfAwa+"/"+act, form, in("en"))
	if a.StatusCode != http.StatusSeeOther {
		b.Fatalf("%s %v answers %d: %s", act, form, a.StatusCode, a.text)
	}
	return b.page(a.Header.Get("Location"), in("en"))
}

// refuses wants an act refused, in words on the same page.
func (b *bundle) refuses(act string, form url.Values, status int, said ...string) {
	b.Helper()
	a := b.post(fileOfAwa+"/"+act, form, in("en"))
	if a.StatusCode != status {
		b.Errorf("%s %v answers %d, want %d", act, form, a.StatusCode, status)
	}
	a.wants(b.T, append(said, `role="alert"`, "TRAORÉ Awa")...)
}

func TestCandidate_SaysEverythingOfOne(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	b.page(fileOfAwa, in("en")).wants(t, "TRAORÉ Awa", "Seat 001", "Amphi 1, Kayes", "Monday 7 December 2099", "On its way", "XOF\u00a010,000 of XOF\u00a010,000", "R-1",
		"awa.traore@ecole.example", "+22376123456", "Filed from a list, line 2", "XOF\u00a010,000 received, receipt R-1", "Seat 001: ENG, Amphi 1, Kayes", "Send the convocation again", "Move to another seat")
	b.page("/campaigns/enib/candidates/2026-00148", in("en")).wants(t, "XOF\u00a06,000", "Give a seat by hand").lacks(t, "Send the convocation again")
	if a := b.ask("/campaigns/enib/candidates/nobody"); a.StatusCode != http.StatusNotFound {
		t.Errorf("nobody's file answers %d", a.StatusCode)
	}
}

func TestCandidate_ActsFromTheFile(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.logIn(b.org, account.Agent)
	b.refuses("tell", nil, http.StatusConflict)
	b.refuses("letters.pdf", nil, http.StatusConflict, "has no seat, and so no letter")
	b.refuses("seat", url.Values{"sitting": {"S001"}, "seat": {"9"}}, http.StatusNotFound, "9")
	b.does("seat", url.Values{"sitting": {"S001"}, "seat": {"2"}}).wants(t, "The seat is given", "Seat 002")
	b.refuses("seat", url.Values{"sitting": {"S001"}}, http.StatusConflict)
	b.does("move", url.Values{"exam": {"ENG"}, "sitting": {"S003"}}).wants(t, "Salle &lt;B&gt;")
	b.refuses("release", url.Values{"exam": {"ENG"}, "reason": {" "}}, http.StatusUnprocessableEntity)
	letter := b.post(fileOfAwa+"/letters.pdf", nil)
	if letter.StatusCode != http.StatusOK || !bytes.HasPrefix([]byte(letter.text), []byte("%PDF-")) {
		t.Errorf("the letter answers %d", letter.StatusCode)
	}
	b.does("release", url.Values{"exam": {"ENG"}, "reason": {"withdrew"}}).wants(t, "The seat is taken back", "Seat taken back (withdrew)")
	b.does("status", url.Values{"status": {"rejected"}}).wants(t, "The status is changed", "Status: from ")
	b.refuses("seat", url.Values{"sitting": {"S001"}}, http.StatusConflict)
	b.refuses("status", url.Values{"status": {"nowhere"}}, http.StatusNotFound, "nowhere")
	b.does("edit", url.Values{"family_name": {"Traoré"}, "given_name": {"Awa"}, "email": {"awa@ecole.example"}, "phone": {""}}).
		wants(t, "The file is corrected", "<h1><bdi>Traoré Awa", "awa@ecole.example", "phone: +22376123456 → nothing")
	b.refusesEdit()
}

// refusesEdit keeps what was typed when a correction is refused.
func (b *bundle) refusesEdit() {
	b.Helper()
	a := b.post(fileOfAwa+"/edit", url.Values{"family_name": {"Traoré"}, "given_name": {"Awa"}, "email": {"no address"}}, in("en"))
	if a.StatusCode != http.StatusUnprocessableEntity {
		b.Errorf("no address answers %d", a.StatusCode)
	}
	a.wants(b.T, `value="no address"`, `role="alert"`)
}

// Each role sees what it may do, and no more is done for it.
func TestCandidate_EachRoleItsActs(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	b.logIn(b.org, account.Cashier)
	b.page(fileOfAwa, in("en")).wants(t, "Seat 001", "R-1").lacks(t, "awa.traore@", "76123456", "Correct the file", "Take the seat back", "Print the letter", "New status")
	for act, form := range map[string]url.Values{
		"status": {"status": {"rejected"}}, "edit": {"family_name": {"X"}}, "seat": {"sitting": {"S001"}}, "move": {"exam": {"ENG"}, "sitting": {"S003"}},
		"release": {"exam": {"ENG"}, "reason": {"x"}}, "tell": nil, "letters.pdf": nil,
	} {
		b.refuses(act, form, http.StatusForbidden, "As cashier you may not")
	}
	if a := b.post(fileOfAwa+"/fly", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("an act that there is none of answers %d", a.StatusCode)
	}
	b.logIn(b.organisation("other"), account.Manager)
	if a := b.post(fileOfAwa+"/status", url.Values{"status": {"rejected"}}); a.StatusCode != http.StatusNotFound || strings.Contains(a.text, "TRAOR") {
		t.Errorf("another organisation: %d", a.StatusCode)
	}
	if a := b.ask(fileOfAwa); a.StatusCode != http.StatusNotFound {
		t.Errorf("another organisation reads: %d", a.StatusCode)
	}
}

// TestCandidate_InABrowser: an agent corrects a file, moves somebody and is refused in words, on a desk and on a telephone.
func TestCandidate_InABrowser(t *testing.T) {
	b := setup(t).console()
	b.filed()
	b.execute(b.click())
	b.logIn(b.org, account.Agent)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+fileOfAwa),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Agent)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "file")
	do(t, tab, chromedp.Click(chromedp.CSS(`.file-main details.by-hand summary`)), chromedp.SetValue(chromedp.CSS(`form[action$="/move"] select`), "S003"))
	press(t, tab, `form[action$="/move"] button`)
	if said := reads(t, tab, ".note-good"); !strings.Contains(said, "new one") {
		t.Errorf("after the move it says %q", said)
	}
	if said := reads(t, tab, ".seat-big"); !strings.Contains(said, "Salle <B>") {
		t.Errorf("after the move they sit %q", said)
	}
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Click(chromedp.CSS(`.file-side details.by-hand summary`)), chromedp.SetValue(chromedp.CSS(`input[name="email"]`), "none"))
	kept(t, tab, "file-phone")
	press(t, tab, `form[action$="/edit"] button`)
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "file-phone-refused")
	do(t, tab, chromedp.Navigate(server.URL+"/campaigns/enib/candidates/2026-00150"))
	onlyFrom(t, tab, server.URL)
	kept(t, tab, "file-phone-long")
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/campaigns/enib/candidates/2026-00150?lang=fr"))
	kept(t, tab, "file-long")
	heard.texts = slices.DeleteFunc(heard.texts, func(text string) bool { return strings.Contains(text, "422") }) // the refusal itself
	heard.none(t)
}
