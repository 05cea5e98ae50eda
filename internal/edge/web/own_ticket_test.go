package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// link is the address of a ticket that was put in somebody's name, for them alone.
func (h *playhouse) link(reference string, line int) (path string) {
	h.Helper()
	h.must(h.owner.QueryRow(h.Context(), `
select coalesce('/t/' || attendee_link, '') from line where number = $2 and reservation_id = (select id from reservation where reference = $1)`, reference, line).Scan(&path))
	return path
}

// Whoever a ticket is for sees that ticket by its link, and nothing else of the reservation; nobody cancels there.
func TestOwnTicket(t *testing.T) {
	h := newPlayhouse(t)
	h.exec(`update event set self_cancel_hours = 24`)
	b := h.buyer()
	reference := b.bought("1", "2")
	if none := h.link(reference, 1); none != "" {
		t.Errorf("a ticket that was given to nobody has the link %s", none)
	}
	name := url.Values{"line": {"2"}, "name": {"Sira & <Fils>"}, "email": {"sira@example.org"}}
	b.send("/r/"+reference+"/attendee", name)
	path := h.link(reference, 2)
	b.send("/r/"+reference+"/attendee", name)
	if again := h.link(reference, 2); again != path || len(path) < 20 {
		t.Errorf("the same name again changes the link %s to %s", path, again)
	}
	own := h.buyer()
	page := own.send(path, nil).wants(t, "Phèdre", "Grande salle", "Odéon", "A-2", "Stalls", "Sira &amp; &lt;Fils&gt;", "This ticket is good", "Tell Awa Diarra", path+"/ticket.pdf")
	page.lacks(t, reference, "A-1", "<form", "give-back", "/r/", "fils@")
	for _, file := range []answer{page, own.send(path+"/ticket.pdf", nil), own.send(path+"/calendar.ics", nil)} {
		if file.StatusCode != http.StatusOK || file.Header.Get("Cache-Control") != "no-store" || !strings.Contains(file.Header.Get("X-Robots-Tag"), "noindex") {
			t.Errorf("%d %v", file.StatusCode, file.Header)
		}
	}
	if pages := pagesOf(t, own.send(path+"/ticket.pdf", nil).text); len(pages) != 1 || !strings.Contains(pages[0], "A-2") || strings.Contains(pages[0], reference) {
		t.Errorf("the ticket says %q", pages)
	}
	own.send(path+"/calendar.ics", nil).wants(t, "STATUS:CONFIRMED", "A-2").lacks(t, "A-1", reference)
	for _, act := range []string{"", "/give-back", "/attendee", "/ticket.pdf"} {
		if got := own.send(path+act, url.Values{"line": {"2"}}); got.StatusCode != http.StatusMethodNotAllowed && got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusSeeOther &&
			!strings.Contains(got.text, "password") {
			t.Errorf("%s posted is answered %d", act, got.StatusCode)
		}
	}
	for _, unknown := range []string{"/t/NOBODY", "/t/NOBODY/ticket.pdf", "/t/" + reference, "/t/%00", "/t/%ff", path[:len(path)-1], strings.ToLower(path)} {
		if got := own.send(unknown, nil); got.StatusCode != http.StatusNotFound || !strings.Contains(got.text, "leads to no ticket") {
			t.Errorf("%s is answered %d: %s", unknown, got.StatusCode, got.text)
		}
	}
	b.send("/r/"+reference, nil).wants(t, "Sira")

	b.send("/r/"+reference+"/attendee", url.Values{"line": {"2"}, "name": {"Kofi"}, "email": {"kofi@example.org"}})
	if got := own.send(path, nil).wants(t, "in another name by now"); got.StatusCode != http.StatusNotFound || strings.Contains(got.text, "Kofi") {
		t.Errorf("whoever had the ticket before is answered %d", got.StatusCode)
	}
	own.send(h.link(reference, 2), nil).wants(t, "Kofi").lacks(t, "Sira")
}

// The page says in words how the ticket stands.
func TestOwnTicket_SaysHowItStands(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	reference := b.bought("1")
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"1"}, "name": {"Sira"}, "email": {"sira@example.org"}})
	path := h.link(reference, 1)
	says := func(sentence string) answer { t.Helper(); return b.send(path, nil).wants(t, sentence) }
	h.exec(`update reservation set state = 'disputed'`)
	says("The payment of this ticket is in question").wants(t, "ticket.pdf")
	h.exec(`update reservation set state = 'confirmed'`)
	h.exec(`
insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, claim_id, reservation_id, line_number, scanned_at, received_at, counts_at,
                  offline, let_in, verdict, actor, facts)
select organisation_id, 'door', '1', '', 'short', sitting_id, id, reservation_id, line_number, at, at, at, false, true, 'in', 'keeper', '{}'
  from claim, (values (timestamptz '2030-05-03 20:25+02')) came(at)`)
	says("somebody went in by it on Friday 3 May 2030").wants(t, "20:25")
	h.exec(`update scan set undone_at = clock(), undone_by = 'keeper'`)
	says("This ticket is good")
	h.later(31 * 24 * time.Hour)
	says("This is over. Nobody went in by this ticket.").lacks(t, "Tell Awa")
	h.later(0)
	for reason, sentence := range map[string]string{
		"ticket_cancelled": "This ticket was given back", "event_cancelled": "does not take place", "charged_back": "no longer paid", "refunded": "This ticket was given back",
	} {
		h.exec(`update line set cancelled_at = clock(), cancel_reason = $1, refund_minor = 0`, reason)
		says(sentence).lacks(t, "ticket.pdf", "Tell Awa")
	}
	if got := b.send(path+"/ticket.pdf", nil).wants(t, "there is nothing to print"); got.StatusCode != http.StatusConflict {
		t.Errorf("a ticket that ended is answered %d", got.StatusCode)
	}
	b.send(path+"/calendar.ics", nil).wants(t, "STATUS:CANCELLED")
}

func TestOwnTicket_InABrowser(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	reference := b.bought("1")
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"1"}, "name": {strings.Repeat("Donaudampfschifffahrt", 9)}, "email": {"sira@example.org"}})
	tab := browser(t)
	heard := listen(t, tab)
	for name, width := range map[string]int64{"phone": 390, "desk": 1280} {
		do(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(h.server.URL+h.link(reference, 1)+"?lang=fr"))
		onlyFrom(t, tab, h.server.URL)
		kept(t, tab, "own-ticket-"+name)
	}
	heard.none(t)
}
