package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"usher/internal/domain/account"
	"usher/internal/domain/letter"
	"usher/internal/domain/testdb"
)

// A sitting of candidates shows who came; who is absent can be had as a file once it has begun, and not before.
func TestPresence_OfCandidates(t *testing.T) {
	b := setup(t).console()
	b.timetable()
	b.file("Zongo", "Keita")
	b.execute(b.click())
	owner := testdb.Owner(t, b.url)
	var claim int64
	var sitting string
	b.must(owner.QueryRow(t.Context(), `
select k.id, s.reference from claim k join sitting s on s.id = k.sitting_id join candidate c on c.id = k.candidate_id where c.family_name = 'Zongo' limit 1`).Scan(&claim, &sitting))
	at := "/campaigns/enib/sittings/" + sitting
	b.page(at, in("en")).lacks(t, "/presence")
	b.page(at+"/presence", in("en")).wants(t, "So far 0 of 2 came.", "No code was read", "Zongo Awa", "Keita Awa").lacks(t, "absent.csv")
	if early := b.ask(at+"/absent.csv", in("en")).wants(t, "before that nobody is absent"); early.StatusCode != http.StatusConflict {
		t.Errorf("a list before it begins is answered %d", early.StatusCode)
	}
	scan := fmt.Sprintf(`{"campaign":"enib","scans":[{"device":"door 1","nonce":"1","code":%q,"sitting":%q}]}`, letter.Letter{ClaimID: claim}.Short(), sitting)
	for range 2 {
		if status, answer := b.scan(scan); status != http.StatusOK {
			t.Fatal(status, answer)
		}
		b.page(at, in("en")).wants(t, "So far 1 of 2 came.", at+"/presence")
	}
	_, err := owner.Exec(t.Context(), `
create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select timestamptz '2099-12-31' $$`)
	b.must(err)
	b.logIn(b.org, account.Door)
	page := b.page(at+"/presence", in("en")).wants(t, "1 of 2 came, 1 did not.", "door 1", at+"/absent.csv")
	absent, present, _ := strings.Cut(page.text, `id="present"`)
	if strings.Contains(absent, "Zongo") || !strings.Contains(absent, "Keita") || strings.Contains(present, "Keita") || !strings.Contains(present, "Zongo") {
		t.Errorf("the page says %s", page.text)
	}
	file := b.ask(at+"/absent.csv", in("en")).wants(t, "C-Keita", "Keita Awa")
	file.lacks(t, "Zongo")
	if file.Header.Get("Cache-Control") != "no-store" || !strings.Contains(file.Header.Get("Content-Disposition"), "absent") {
		t.Errorf("it is sent with %v", file.Header)
	}
	for _, unknown := range []string{"/campaigns/enib/sittings/S999/presence", "/campaigns/none/sittings/S001/absent.csv", "/events/none/sittings/S1/presence"} {
		if got := b.ask(unknown, in("en")); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s is answered %d", unknown, got.StatusCode)
		}
	}
}

// A sitting of an event shows the same of its tickets, to its own people alone.
func TestPresence_OfTickets(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	reference := b.bought("1", "2")
	long := strings.Repeat("Donaudampfschifffahrt", 9)
	b.send("/r/"+reference+"/attendee", url.Values{"line": {"2"}, "name": {long}})
	h.exec(`
insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, claim_id, reservation_id, line_number, scanned_at, received_at, counts_at,
                  offline, let_in, verdict, actor, facts)
select organisation_id, 'Porte Nord', '1', '', 'short', sitting_id, id, reservation_id, line_number, at, at, at, false, true, 'in', 'keeper', '{}'
  from claim, (values (clock())) came(at) where line_number = 2`)
	at := "/events/phedre/sittings/S1"
	if stranger := b.ask(at+"/presence", in("en")); stranger.StatusCode == http.StatusOK {
		t.Error("a stranger sees who came")
	}
	h.later(30*24*time.Hour + time.Hour)
	h.logIn(h.org, account.Door)
	page := h.page(at+"/presence", in("en")).wants(t, "So far 1 of 2 came.", "Not come so far", "Awa Diarra", long, "Porte Nord", "Full price", at+"/absent.csv")
	page.lacks(t, reference)
	h.ask(at+"/absent.csv", in("en")).wants(t, "Awa Diarra", "A-1", "Full price").lacks(t, "Donau")
	tab := browser(t)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.server.URL+at+"/presence"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(h.org, account.Door)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	for name, width := range map[string]int64{"phone": 390, "desk": 1280} {
		do(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(h.server.URL+at+"/presence"))
		onlyFrom(t, tab, h.server.URL)
		kept(t, tab, "presence-"+name)
	}
}
