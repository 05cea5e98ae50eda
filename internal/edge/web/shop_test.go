package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/testdb"
	"usher/internal/edge/web"
)

// playhouse is an organiser with a play that is on sale: sitting S1 in a room of rows A to C of ten seats, of which C-1 is accessible
// and C-10 blocked, and S2 in one without a plan. It is paid at a page that stands for an operator's, or at a counter.
type playhouse struct {
	*bundle
	owner  *pgx.Conn
	server *httptest.Server
}

func newPlayhouse(t *testing.T) *playhouse {
	t.Helper()
	t.Parallel()
	h := &playhouse{bundle: &bundle{T: t, actor: account.Administrator()}}
	h.db, h.url = testdb.NewWithURL(t)
	h.owner = testdb.Owner(t, h.url)
	h.server = httptest.NewUnstartedServer(nil)
	h.org = h.organisation("theatre")
	h.exec(`
update organisation set name = 'Théâtre du Fleuve', time_zone = 'Europe/Paris', country = 'FR', contact_email = 'caisse@theatre.example' where slug = 'theatre';
insert into centre (organisation_id, id, name, time_zone) select o.id, 901, 'Odéon', 'Europe/Paris' from (select id from organisation where slug = 'theatre') o;
insert into room (organisation_id, id, centre_id, name) select o.id, r.id, 901, r.name from (select id from organisation where slug = 'theatre') o, (values (901, 'Grande salle'), (902, 'Studio')) r(id, name);
insert into seat (organisation_id, room_id, number, label, zone, row_label, row_order, position, accessible, blocked)
select o.id, 901, (r.nth - 1) * 10 + n, r.label || '-' || n, case when r.label = 'A' then 'Stalls' else 'Balcony' end, r.label, r.nth, n + (n > 5)::int,
       r.label = 'C' and n = 1, r.label = 'C' and n = 10
  from (select id from organisation where slug = 'theatre') o, unnest(array['A', 'B', 'C']) with ordinality r(label, nth), generate_series(1, 10) n;
insert into event (organisation_id, id, slug, name, description, state, currency, time_zone)
select o.id, 901, 'phedre', 'Phèdre', E'A tragedy.\n\nIn five acts.', 'on_sale', 'EUR', 'Europe/Paris' from (select id from organisation where slug = 'theatre') o;
insert into ticket_kind (organisation_id, id, event_id, code, name, position)
select o.id, k.id, 901, k.code, k.name, k.id from (select id from organisation where slug = 'theatre') o, (values (901, 'full', 'Full price'), (902, 'child', 'Child')) k(id, code, name);
insert into price (organisation_id, event_id, kind_id, zone, amount_minor)
select o.id, 901, p.kind, p.zone, p.minor from (select id from organisation where slug = 'theatre') o, (values (901, 'Stalls', 3000), (901, '', 2000), (902, '', 1000)) p(kind, zone, minor);
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select o.id, s.id, 901, s.room, s.reference, clock() + interval '30 days', clock() + interval '30 days 2 hours', s.places, s.source
  from (select id from organisation where slug = 'theatre') o, (values (901, 901, 'S1', 30, 'room'), (902, 902, 'S2', 5, 'sitting')) s(id, room, reference, places, source)`)
	page := &web.PayPage{Home: "http://" + h.server.Listener.Addr().String()}
	bridge, secret, err := payment.AddGateway(t.Context(), h.db, h.actor, h.org, payment.Setup{Name: "momo", Kind: payment.Signed, CheckoutURL: page.Address()}, payment.Secrets{})
	h.must(err)
	page.Hook, page.Secret = bridge.Hook, secret
	_, _, err = payment.AddGateway(t.Context(), h.db, h.actor, h.org, payment.Setup{Name: "desk", Kind: payment.Counter}, payment.Secrets{})
	h.must(err)
	h.handler = web.Handler(h.db, web.Options{PayPage: page})
	h.server.Config.Handler = h.handler
	h.server.Start()
	t.Cleanup(h.server.Close)
	return h
}

func (h *playhouse) exec(statement string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(h.Context(), statement, args...); err != nil {
		h.Fatalf("%s: %v", statement, err)
	}
}

// later moves the clock of everybody.
func (h *playhouse) later(by time.Duration) {
	h.Helper()
	h.exec(fmt.Sprintf(`create or replace function clock() returns timestamptz language sql volatile parallel safe as $$ select clock_timestamp() + interval '%d seconds' $$`,
		int(by.Seconds())))
}

// buyer is a browser without scripts.
type buyer struct {
	*playhouse
	cookies map[string]string
}

func (h *playhouse) buyer() *buyer { return &buyer{h, map[string]string{}} }

// send posts a form, or reads where there is none, and follows to where it leads.
func (b *buyer) send(path string, form url.Values) answer {
	b.Helper()
	got := b.once(path, form)
	for range 3 {
		if got.StatusCode != http.StatusSeeOther {
			return got
		}
		path = got.Header.Get("Location")
		got = b.once(path, nil)
	}
	b.Fatalf("%s leads on and on", path)
	return got
}

func (b *buyer) once(path string, form url.Values) answer {
	b.Helper()
	got := b.ask(path, in("en"), func(r *http.Request) {
		if form != nil {
			posted := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
			r.Method, r.Body, r.ContentLength = posted.Method, posted.Body, posted.ContentLength
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for name, value := range b.cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	})
	for _, cookie := range got.Cookies() {
		b.cookies[cookie.Name] = cookie.Value
	}
	if got.StatusCode == http.StatusInternalServerError {
		b.Fatalf("%s: %s", path, got.text)
	}
	return got
}

var formKey = regexp.MustCompile(`name="key" value="([^"]+)"`)

// choose opens the page of a sitting and sends what was chosen on it, as its forms would.
func (b *buyer) choose(sitting string, fields url.Values) (form url.Values, cart answer) {
	b.Helper()
	path := "/e/phedre/" + sitting
	page := b.send(path, nil)
	key := formKey.FindStringSubmatch(page.text)
	if key == nil {
		b.Fatalf("%s has no form: %s", path, page.text)
	}
	fields.Set("key", key[1])
	for _, hidden := range []string{"cart", "tickets"} {
		if found := regexp.MustCompile(`name="` + hidden + `" value="([^"]+)"`).FindStringSubmatch(page.text); found != nil {
			fields.Set(hidden, found[1])
		}
	}
	return fields, b.send(path, fields)
}

var referenceShown = regexp.MustCompile(`<code class="reference">([^<]+)</code>`)

func (a answer) reference(t *testing.T) string {
	t.Helper()
	found := referenceShown.FindStringSubmatch(a.text)
	if found == nil {
		t.Fatalf("%d: this is no reservation: %s", a.StatusCode, a.text)
	}
	return found[1]
}

var contact = url.Values{"name": {"Awa Diarra"}, "email": {"awa@example.org"}, "gateway": {"momo"}}

var goTo = regexp.MustCompile(`id="go" href="([^"]+)"`)

func TestShop_HoldAndPayWithoutScripts(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	b.send("/e/phedre", nil).wants(t, "Phèdre", "<p class=\"shop-text\">In five acts.</p>", "(Europe/Paris)", "29 places left", "5 places left", "EUR\u00a030.00", "Stalls", "Théâtre du Fleuve")
	b.send("/e/phedre/S1", nil).wants(t, `aria-label="A-1"`, `aria-label="C-10, not given"`, "wheelchair place", `aria-label="Row A, Stalls"`)

	form, cart := b.choose("S1", url.Values{"seat": {"1", "2"}, "kind": {"full"}})
	reference := cart.reference(t)
	cart.wants(t, "A-1", "A-2", "EUR\u00a060.00", "Pay at the counter", "Your reservation")
	if again := b.send("/e/phedre/S1", form); again.reference(t) != reference {
		t.Errorf("sent twice, it is %s and %s", reference, again.reference(t))
	}
	b.send("/r/"+reference+"/kind", url.Values{"line": {"2"}, "kind": {"child"}}).wants(t, "EUR\u00a040.00")
	added, cart := b.choose("S1", url.Values{"way": {"best"}, "n-child": {"1"}, "zone": {"=Balcony"}})
	cart.wants(t, "B-1", "EUR\u00a050.00")
	if got := b.send("/e/phedre/S1", added); got.StatusCode != http.StatusConflict {
		t.Errorf("a repeat of what was added is answered %d", got.StatusCode)
	}
	b.send("/r/"+reference+"/give-up", url.Values{"line": {"1"}}).wants(t, "EUR\u00a020.00").lacks(t, "A-1<")
	b.send("/r/"+reference+"/give-up", url.Values{"line": {"1"}}).wants(t, "EUR\u00a020.00")

	b.send("/r/"+reference+"/pay", url.Values{"name": {"Awa"}, "email": {"no address"}, "gateway": {"momo"}}).wants(t, `role="alert"`, `value="Awa"`)
	pay := b.send("/r/"+reference+"/pay", contact)
	leads := goTo.FindStringSubmatch(pay.text)
	if leads == nil {
		t.Fatalf("nothing leads to where it is paid: %s", pay.text)
	}
	if again := goTo.FindStringSubmatch(b.send("/r/"+reference+"/pay", contact).text); again == nil || again[1] != leads[1] {
		t.Errorf("asked twice, it is paid at %s and at %v", leads[1], again)
	}
	b.send("/r/"+reference, nil).wants(t, "Your payment", `<noscript><meta http-equiv="refresh"`)
	b.pays(leads[1], "pay").wants(t, "Your tickets", "these seats are yours", "A-2", "B-1")
	b.pays(leads[1], "pay").wants(t, "Your tickets").lacks(t, "goes back")
	b.send("/r/"+reference+"/pay", contact).wants(t, "Your tickets")
	b.send("/e/phedre/S1", nil).wants(t, `aria-label="A-2, sold"`).lacks(t, "You hold")
}

// pays goes to the page of the operator and presses a button there.
func (b *buyer) pays(address, act string) answer {
	b.Helper()
	at, err := url.Parse(strings.ReplaceAll(address, "&amp;", "&"))
	b.must(err)
	b.send(at.RequestURI(), nil).wants(b.T, "DEMO", "No money moves")
	query := at.Query()
	query.Set("act", act)
	return b.send(web.DemoPay, query)
}

func TestShop_LostSeatsAreOfferedOthers(t *testing.T) {
	h := newPlayhouse(t)
	first, second := h.buyer(), h.buyer()
	page := second.send("/e/phedre/S1", nil)
	first.choose("S1", url.Values{"seat": {"1", "2"}, "kind": {"full"}})
	form := url.Values{"key": {formKey.FindStringSubmatch(page.text)[1]}, "seat": {"2", "3"}, "kind": {"full"}}
	lost := second.send("/e/phedre/S1", form)
	if lost.StatusCode != http.StatusConflict {
		t.Errorf("lost seats are answered %d", lost.StatusCode)
	}
	lost.wants(t, "Others were faster", "A-2", "Take these instead", `name="label" value="A-6"`, `name="label" value="A-7"`, `aria-label="A-2, in somebody&#39;s cart"`, `value="3" aria-label="A-3" checked`)
	form = url.Values{"key": {formKey.FindStringSubmatch(lost.text)[1]}, "label": {"A-6", "A-7"}, "kind": {"full"}}
	second.send("/e/phedre/S1", form).wants(t, "A-6", "A-7", "Your reservation")
}

func TestShop_LapsedAndPaidLate(t *testing.T) {
	h := newPlayhouse(t)
	b, other := h.buyer(), h.buyer()
	_, cart := b.choose("S1", url.Values{"seat": {"1"}, "kind": {"full"}})
	lapsed := cart.reference(t)
	_, cart = b.choose("S2", url.Values{"way": {"best"}, "n-full": {"1"}})
	if cart.reference(t) != lapsed {
		t.Fatal("what is chosen next is another reservation")
	}
	h.later(31 * time.Minute)
	b.send("/r/"+lapsed, nil).wants(t, "not held any more", "Hold the same seats again")
	again := b.send("/r/"+lapsed+"/renew", url.Values{}).wants(t, "Your reservation", "A-1")
	if again.reference(t) == lapsed {
		t.Error("a hold that was over is held again as itself")
	}
	pay := b.send("/r/"+again.reference(t)+"/pay", contact)
	h.later(70 * time.Minute)
	b.send("/r/"+again.reference(t), nil).wants(t, "We wait for your payment", "the whole sum goes back")
	other.choose("S1", url.Values{"seat": {"1"}, "kind": {"full"}})
	b.pays(goTo.FindStringSubmatch(pay.text)[1], "pay").wants(t, "Your money goes back", "EUR\u00a050.00: paid when the seats were gone", "It goes back to you")
}

func TestShop_RefusedByTheBank(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	_, cart := b.choose("S2", url.Values{"way": {"best"}, "n-full": {"2"}})
	pay := b.send("/r/"+cart.reference(t)+"/pay", contact)
	b.pays(goTo.FindStringSubmatch(pay.text)[1], "refuse").wants(t, "Your reservation", "did not go through", "Pay EUR\u00a040.00")
	b.send("/r/"+cart.reference(t)+"/give-up", url.Values{}).wants(t, "Reservation given up")
}

func TestShop_StatesOfAnEvent(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	for _, state := range []struct {
		change, undo string
		status       int
		wants        []string
	}{
		{`update event set state = 'draft'`, `update event set state = 'on_sale'`, http.StatusNotFound, []string{"no event “phedre”"}},
		{`update event set opens_at = '2099-05-01 10:00Z'`, `update event set opens_at = null`, http.StatusOK, []string{"Friday 1 May 2099, 12:00 (Europe/Paris)"}},
		{`update event set state = 'closed'`, `update event set state = 'on_sale'`, http.StatusOK, []string{"sold no more"}},
		{`update event set state = 'cancelled', cancelled_at = clock()`, `update event set state = 'on_sale', cancelled_at = null`, http.StatusOK, []string{"was cancelled"}},
		{`update sitting set places = 0 where reference = 'S1'`, `update sitting set places = 30 where reference = 'S1'`, http.StatusOK, []string{"Sold out", "5 places left"}},
	} {
		h.exec(state.change)
		page := b.send("/e/phedre", nil)
		if page.StatusCode != state.status {
			t.Errorf("%s: %d", state.change, page.StatusCode)
		}
		page.wants(t, state.wants...)
		chosen := regexp.MustCompile(`name="(way|label)"`) // a page that sells nothing may let people wait
		if seats := b.send("/e/phedre/S1", nil); chosen.MatchString(seats.text) {
			t.Errorf("%s: seats can be chosen", state.change)
		}
		h.exec(state.undo)
		if seats := b.send("/e/phedre/S1", nil); !chosen.MatchString(seats.text) {
			t.Errorf("%s: seats cannot be chosen afterwards", state.undo)
		}
	}
	if none := b.send("/e/nothing", nil); none.StatusCode != http.StatusNotFound {
		t.Errorf("an event that does not exist: %d", none.StatusCode)
	}
	if none := b.send("/r/NOTHING", nil); none.StatusCode != http.StatusNotFound {
		t.Errorf("a reservation that does not exist: %d", none.StatusCode)
	}
}

func TestShop_NobodyHoldsEverything(t *testing.T) {
	h := newPlayhouse(t)
	h.exec(`update sitting set places = 5000 where reference = 'S2'`)
	b := h.buyer()
	for range 2 {
		if _, cart := b.choose("S2", url.Values{"way": {"best"}, "n-full": {"50"}}); cart.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", cart.StatusCode, cart.text)
		}
		delete(b.cookies, "usher_cart")
	}
	if _, refused := b.choose("S2", url.Values{"way": {"best"}, "n-full": {"1"}}); refused.StatusCode != http.StatusConflict {
		t.Errorf("the 101st ticket of a browser is answered %d", refused.StatusCode)
	} else {
		refused.wants(t, "100 tickets that nobody has paid yet")
	}
	for range 6 {
		if _, cart := h.buyer().choose("S2", url.Values{"way": {"best"}, "n-full": {"50"}}); cart.StatusCode != http.StatusOK {
			t.Fatalf("another browser: %d: %s", cart.StatusCode, cart.text)
		}
	}
	if _, refused := h.buyer().choose("S2", url.Values{"way": {"best"}, "n-full": {"1"}}); refused.StatusCode != http.StatusConflict {
		t.Errorf("the 401st ticket of an address is answered %d", refused.StatusCode)
	}
}

// rawShopID is a sentence that was not found: its id is shown in its place.
var rawShopID = regexp.MustCompile(`(?:>|")\s*(?:shop|seats|seat|cart|pay_demo|problem)_[a-z_]+\s*(?:<|")`)

func TestShop_SaysEverythingInEveryLanguage(t *testing.T) {
	h := newPlayhouse(t)
	b := h.buyer()
	_, cart := b.choose("S1", url.Values{"seat": {"1"}, "kind": {"full"}})
	for _, language := range i18n.Languages {
		for _, path := range []string{"/e/phedre", "/e/phedre/S1", "/e/phedre/S2", "/r/" + cart.reference(t), web.DemoPay + "?ref=1&amount=5.00&currency=EUR"} {
			page := h.page(path, in(language))
			if found := rawShopID.FindString(page.text); found != "" || strings.Contains(page.text, "no value") {
				t.Errorf("%s in %s shows %q", path, language, found)
			}
			if cached := page.Header.Get("Cache-Control"); cached != "no-store" {
				t.Errorf("%s may be kept: %s", path, cached)
			}
		}
	}
}
