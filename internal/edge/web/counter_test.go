package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"usher/internal/domain/account"
	"usher/internal/domain/intake"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// owing files accepted candidates who have paid nothing, and one whose status takes no money.
func (b *bundle) owing(names ...string) {
	b.Helper()
	b.bring(intake.Sittings, sittingTitles, "ENG,Bamako,Amphi 1,9,2099-12-07 08:00,2099-12-07 11:00")
	rows := []string{"reference,family_name,given_name,email,status,exams", "F-1,Keïta,Moussa,,filed,ENG"}
	for i, name := range names {
		rows = append(rows, fmt.Sprintf("A-%d,%s,Awa,,accepted,ENG", i+1, name))
	}
	b.bring(intake.Candidates, rows...)
}

// cashier is the school with a cashier before the browser.
func (b *bundle) cashier() *bundle {
	b.Helper()
	b.handler = web.Handler(b.db, web.Options{})
	b.logIn(b.org, account.Cashier)
	return b
}

var paymentKey = regexp.MustCompile(`name="key" value="([A-Z2-7]+)"`)

// take presses the button of a person's form.
func (b *bundle) take(path, key string, form url.Values) answer {
	b.Helper()
	form.Set("key", key)
	return b.post(path, form)
}

func TestCounter_TakesMoneyAndGivesAReceipt(t *testing.T) {
	b := setup(t)
	b.owing("Traoré", "Traoré-Diallo")
	b.cashier()
	b.page("/campaigns/enib/counter", in("en")).wants(t, "Counter", `name="q"`)
	// One who is found is shown at once; several are named.
	b.ask("/campaigns/enib/counter?q=a-1").leads(t, "/campaigns/enib/counter/A-1")
	b.ask("/campaigns/enib/counter?q=traore-d").leads(t, "/campaigns/enib/counter/A-2")
	b.page("/campaigns/enib/counter?q=TRAORE", in("en")).wants(t, "Traoré Awa", "Traoré-Diallo Awa", "XOF")
	b.page("/campaigns/enib/counter?q=Zoé", in("en")).wants(t, "Zoé", `role="alert"`, "Check the reference")
	person := b.page("/campaigns/enib/counter/A-1", in("en")).wants(t, "Traoré Awa", `value="10000"`, "Take the money")
	key := paymentKey.FindStringSubmatch(person.text)[1]

	// Two presses are one payment, and lead to one receipt.
	var receipts []string
	for range 2 {
		taken := b.take("/campaigns/enib/counter/A-1", key, url.Values{"amount": {"4 000"}, "method": {"cash"}})
		if taken.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d\n%s", taken.StatusCode, taken.text)
		}
		receipts = append(receipts, taken.Header.Get("Location"))
	}
	if receipts[0] != receipts[1] || !strings.HasSuffix(receipts[0], "-000001?new=1") {
		t.Fatalf("two presses lead to %q", receipts)
	}
	at := strings.TrimSuffix(receipts[0], "?new=1")
	b.page(receipts[0], in("en")).wants(t, "received", "Traoré Awa", "4")
	b.page("/campaigns/enib/counter/A-1", in("en")).wants(t, `value="6000"`, "Payments").lacks(t, "Nothing is owed")

	// The first paper is the original, the second a duplicate; a page that prints itself gets the part.
	original := b.post(at+"/print", nil)
	if kind := original.Header.Get("Content-Type"); kind != "application/pdf" || !strings.HasPrefix(original.text, "%PDF-") {
		t.Errorf("printed as %s", kind)
	}
	part := b.post(at+"/print", nil, func(r *http.Request) { r.Header.Set("HX-Request", "true") })
	part.wants(t, `id="slip"`, "DUPLICATA")
	part.lacks(t, "<html")
	// The number of a receipt leads to it.
	b.ask("/campaigns/enib/counter?q="+strings.TrimPrefix(at, "/receipts/")).leads(t, at)

	// What is given back has a receipt too, also where the button is pressed twice.
	number := regexp.MustCompile(`name="payment" value="(#\d+)"`).FindStringSubmatch(b.page("/campaigns/enib/counter/A-1").text)[1]
	for i, want := range []string{"-000002?new=1", "-000002"} {
		back := b.post("/campaigns/enib/counter/A-1/reverse", url.Values{"payment": {number}, "reason": {"Wrong <b>person"}})
		if !strings.HasSuffix(back.Header.Get("Location"), want) {
			t.Errorf("press %d leads to %q, want %s\n%s", i+1, back.Header.Get("Location"), want, back.text)
		}
	}
	b.page("/campaigns/enib/counter/A-1", in("en")).wants(t, "Taken back", "Wrong &lt;b&gt;person", `value="10000"`)
}

func TestCounter_RefusesInWords(t *testing.T) {
	b := setup(t)
	b.owing("Traoré")
	b.cashier()
	closed := b.page("/campaigns/enib/counter/F-1", in("en")).wants(t, "Take no money", "Keïta Moussa")
	closed.lacks(t, `name="amount"`)
	for amount, status := range map[string]int{"": 422, "0": 422, "x": 422, "-5": 422, "1e9": 422, "99999999999999999999": 422} {
		refused := b.take("/campaigns/enib/counter/A-1", "K", url.Values{"amount": {amount}})
		if refused.StatusCode != status || !strings.Contains(refused.text, `role="alert"`) || !strings.Contains(refused.text, `name="amount"`) {
			t.Errorf("%q: %d\n%s", amount, refused.StatusCode, refused.text)
		}
	}
	if refused := b.take("/campaigns/enib/counter/F-1", "K", url.Values{"amount": {"10000"}}); refused.StatusCode != http.StatusConflict {
		t.Errorf("a status that opens no payment: %d", refused.StatusCode)
	}
	if refused := b.take("/campaigns/enib/counter/A-1", "", url.Values{"amount": {"10000"}}); refused.StatusCode != 422 {
		t.Errorf("a form without its key: %d", refused.StatusCode)
	}
	for path, status := range map[string]int{"/receipts/2026-000001": 404, "/campaigns/enib/counter/X": 404, "/campaigns/none/counter": 404, "/drawer?date=x": 422, "/drawer/day.txt": 404} {
		if got := b.ask(path); got.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, got.StatusCode, status)
		}
	}
}

func TestCounter_OnlyWhoMayTakeMoney(t *testing.T) {
	b := setup(t)
	b.owing("Traoré")
	b.cashier()
	taken := b.take("/campaigns/enib/counter/A-1", "K", url.Values{"amount": {"10000"}})
	receipt := strings.TrimSuffix(taken.Header.Get("Location"), "?new=1")
	b.page(receipt)
	b.logIn(b.org, account.Door)
	for _, path := range []string{"/campaigns/enib/counter", "/campaigns/enib/counter?q=A-1", "/campaigns/enib/counter/A-1", receipt, "/drawer", "/drawer/day.csv"} {
		if got := b.ask(path); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s for a door keeper: %d", path, got.StatusCode)
		}
	}
	b.page("/campaigns/enib").lacks(t, "/counter\"", "/drawer")
	// Another school has neither the person nor the receipt.
	other, _ := b.school("autre", "Autre")
	b.logIn(other, account.Manager)
	for _, path := range []string{"/campaigns/enib/counter", "/campaigns/enib/counter/A-1", receipt} {
		if got := b.ask(path); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s for another school: %d", path, got.StatusCode)
		}
	}
	b.page("/drawer").lacks(t, "Traor")
}

func TestDrawer_IsCountedAndExported(t *testing.T) {
	b := setup(t)
	b.owing("Traoré")
	b.cashier()
	b.page("/drawer", in("en")).wants(t, "Nothing was taken")
	b.take("/campaigns/enib/counter/A-1", "K", url.Values{"amount": {"10000"}})
	page := b.page("/drawer", in("en")).wants(t, "Cash to be in it", "Traoré Awa")
	hidden := url.Values{}
	for _, field := range regexp.MustCompile(`type="hidden" name="(date|cashier|currency|after)" value="([^"]*)"`).FindAllStringSubmatch(page.text, -1) {
		hidden.Set(field[1], field[2])
	}
	count := func(counted, note string) answer {
		form := url.Values{"float": {"2000"}, "counted": {counted}, "note": {note}}
		for name, values := range hidden {
			form[name] = values
		}
		return b.post("/drawer", form)
	}
	for range 2 { // pressed twice
		if kept := count("11500", "=1+1"); kept.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d\n%s", kept.StatusCode, kept.text)
		}
	}
	b.page("/drawer", in("en")).wants(t, "missing", "=1+1", "Count again")
	if refused := count("12000", ""); refused.StatusCode != http.StatusConflict || !strings.Contains(refused.text, `role="alert"`) {
		t.Errorf("a count that does not know of the first: %d", refused.StatusCode)
	}
	if refused := count("much", ""); refused.StatusCode != 422 {
		t.Errorf("a count that is no number: %d", refused.StatusCode)
	}
	csv := b.ask("/drawer/day.csv?date=" + hidden.Get("date"))
	if csv.StatusCode != http.StatusOK || !strings.Contains(csv.text, ";10000;XOF;") {
		t.Errorf("%d %q", csv.StatusCode, csv.text)
	}
	if workbook := b.ask("/drawer/day.xlsx"); workbook.StatusCode != http.StatusOK || !strings.HasPrefix(workbook.text, "PK") {
		t.Errorf("the workbook: %d", workbook.StatusCode)
	}
}

// counterIDs are names of sentences that nobody wrote, where words should be.
var counterIDs = regexp.MustCompile(`>\s*(?:counter|drawer|receipt|day|method)_[a-z_]+`)

// count is how many rows there are.
func (b *bundle) count(of string) (n int) {
	b.Helper()
	b.must(testdb.Owner(b.T, b.url).QueryRow(b.Context(), "select count(*) from "+of).Scan(&n))
	return n
}

func TestCounter_SpeaksEveryLanguage(t *testing.T) {
	b := setup(t)
	b.owing("Traoré", "Traoré-Diallo")
	b.cashier()
	taken := b.take("/campaigns/enib/counter/A-1", "K", url.Values{"amount": {"10000"}}).Header.Get("Location")
	for _, language := range []string{"en", "fr", "es"} {
		for _, path := range []string{"/campaigns/enib/counter", "/campaigns/enib/counter?q=traore", "/campaigns/enib/counter/A-1", "/campaigns/enib/counter/F-1", taken, "/drawer"} {
			page := b.page(path, in(language))
			if found := counterIDs.FindString(page.text); found != "" || strings.Contains(page.text, "no value") {
				t.Errorf("%s in %s shows %q", path, language, found)
			}
		}
	}
}
