package web_test

import (
	"bytes"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/chromedp/chromedp"
)

// pagesOf is the text of each page of a PDF.
func pagesOf(t *testing.T, pdf string) []string {
	t.Helper()
	command := exec.Command("pdftotext", "-", "-")
	command.Stdin = strings.NewReader(pdf)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("pdftotext (package poppler-utils): %v: %.200s", err, pdf)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\f"), "\f")
}

// bought is a reservation of these seats of S1 that is paid.
func (b *buyer) bought(seats ...string) (reference string) {
	b.Helper()
	_, cart := b.choose("S1", url.Values{"seat": seats, "kind": {"full"}})
	reference = cart.reference(b.T)
	leads := goTo.FindStringSubmatch(b.send("/r/"+reference+"/pay", contact).text)
	if leads == nil {
		b.Fatal("nothing leads to where it is paid")
	}
	b.pays(leads[1], "pay").wants(b.T, "these seats are yours")
	return reference
}

// Whoever knows the reference of a reservation that is paid has its tickets; before, and without it, nobody has.
func TestShop_TicketsOfWhatIsPaid(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	_, cart := b.choose("S1", url.Values{"seat": {"3"}, "kind": {"full"}})
	held := cart.reference(t)
	cart.lacks(t, "tickets.pdf")
	for _, file := range []string{"/tickets.pdf", "/calendar.ics"} {
		got := b.send("/r/"+held+file, nil)
		if got.StatusCode != http.StatusConflict {
			t.Errorf("%s of what is held is answered %d", file, got.StatusCode)
		}
		got.wants(t, "is not paid, so there are no tickets yet")
		if got := b.send("/r/NOBODYKNOWS"+file, nil); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s of nothing is answered %d", file, got.StatusCode)
		}
	}
	reference := h.buyer().bought("1", "2")
	other := h.buyer()
	other.send("/r/"+reference, nil).wants(t, `href="/r/`+reference+`/tickets.pdf"`, `href="/r/`+reference+`/calendar.ics"`)
	got := other.send("/r/"+reference+"/tickets.pdf", nil)
	if kind := got.Header.Get("Content-Type"); kind != "application/pdf" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("tickets are sent as %s, %s", kind, got.Header.Get("Cache-Control"))
	}
	pages := pagesOf(t, got.text)
	if len(pages) != 2 || !strings.Contains(pages[0], "A-1") || !strings.Contains(pages[1], "A-2") || !strings.Contains(pages[0], "Awa Diarra") {
		t.Errorf("the pages say %q", pages)
	}
	got = other.send("/r/"+reference+"/calendar.ics", nil)
	calendar, err := ics.ParseCalendar(bytes.NewReader([]byte(got.text)))
	h.must(err)
	if events := calendar.Events(); len(events) != 1 || events[0].GetProperty(ics.ComponentPropertySummary).Value != "Phèdre" {
		t.Errorf("the calendar has %v", events)
	}

	h.exec(`update line set cancelled_at = clock(), cancel_reason = 'ticket_cancelled', refund_minor = 0 where reservation_id = (select id from reservation where reference = $1)`, reference)
	if got := other.send("/r/"+reference+"/tickets.pdf", nil).wants(t, "has no tickets any more"); got.StatusCode != http.StatusConflict {
		t.Errorf("tickets that ended are answered %d", got.StatusCode)
	}
	if got := other.send("/r/"+reference+"/calendar.ics", nil); !strings.Contains(got.text, "STATUS:CANCELLED") {
		t.Errorf("the calendar of what ended: %s", got.text)
	}
}

// A buyer puts each ticket in a name, without scripts; what is refused is said on the page.
func TestShop_NamesOnTickets(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	reference := b.bought("1", "2")
	b.send("/r/"+reference, nil).wants(t, "Change the name", `aria-label="Change the name of the ticket for seat A-1"`)
	name := url.Values{"line": {"1"}, "name": {"Awa N'Guessan & <Fils>"}, "email": {"fils@example.org"}}
	b.send("/r/"+reference+"/attendee", name).wants(t, "Awa N&#39;Guessan &amp; &lt;Fils&gt;", "Awa Diarra")
	b.send("/r/"+reference+"/attendee", name).wants(t, "Awa N&#39;Guessan &amp; &lt;Fils&gt;")
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"1"}, "name": {" "}}).wants(t, `role="alert"`, "the ticket needs a name")
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"x"}, "name": {"Sira"}}).wants(t, `role="alert"`)
	pages := pagesOf(t, b.send("/r/"+reference+"/tickets.pdf", nil).text)
	if len(pages) != 2 || !strings.Contains(pages[0], "Awa N'Guessan & <Fils>") || strings.Contains(pages[0], reference) || !strings.Contains(pages[1], reference) {
		t.Errorf("the pages say %q", pages)
	}
	h.later(30*24*time.Hour + time.Hour)
	b.send("/r/"+reference, nil).lacks(t, "Change the name")
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"2"}, "name": {"Sira"}}).wants(t, `role="alert"`, "has begun")
}

// Seven tickets with long names fit a telephone and a desk; a name is changed there by a form that opens where it is asked for.
func TestShop_TicketsInABrowser(t *testing.T) {
	h := newPlayhouse(t)
	reference := h.buyer().bought("1", "2", "3", "4", "5", "6", "7")
	h.exec(`update line set attendee = rpad('', 200, 'Nguyễn-Wärtsilä '), transfers = 1 where number = 3`)
	h.exec(`update line set attendee = rpad('', 200, 'Donaudampfschifffahrt'), transfers = 1 where number = 4`)
	tab := browser(t)
	heard := listen(t, tab)
	for name, width := range map[string]int64{"phone": 360, "desk": 1280} {
		do(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(h.server.URL+"/r/"+reference+"?lang=en"))
		do(t, tab, chromedp.Evaluate[chromedp.Void](`document.querySelector(".ticket-name details").open = true`))
		onlyFrom(t, tab, h.server.URL)
		kept(t, tab, "tickets-"+name)
	}
	do(t, tab, chromedp.SendKeys(chromedp.CSS(".ticket-name [name=name]"), "Awa N'Guessan"))
	press(t, tab, ".ticket-name button")
	if said := reads(t, tab, ".ticket-name"); !strings.Contains(said, "Awa N'Guessan") {
		t.Errorf("the ticket says %q", said)
	}
	onlyFrom(t, tab, h.server.URL)
	heard.none(t)
}
