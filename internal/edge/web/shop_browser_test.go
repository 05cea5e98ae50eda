package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestShop_InABrowser: on a telephone, seats are ticked on the plan and paid at the operator's page; while the page waits, it finds out by
// itself what became of the payment. Of two tabs the other one shows the same tickets.
func TestShop_InABrowser(t *testing.T) {
	h := newPlayhouse(t)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Navigate(h.server.URL+"/e/phedre?lang=en"))
	onlyFrom(t, tab, h.server.URL)
	press(t, tab, ".shop-sitting a[role=button]")
	onlyFrom(t, tab, h.server.URL)
	do(t, tab, chromedp.Click(chromedp.CSS(`label:has(input[aria-label="A-1"])`)), chromedp.Click(chromedp.CSS(`label:has(input[aria-label="A-2"])`)))
	if said := reads(t, tab, "#seats-sum"); !strings.Contains(said, "A-1, A-2") || !strings.Contains(said, "60.00") {
		t.Errorf("what is chosen is said to be %q", said)
	}
	press(t, tab, "#plan-form button")
	onlyFrom(t, tab, h.server.URL)
	cart := location(t, tab)
	if left := reads(t, tab, "#countdown"); !strings.Contains(left, "9:5") && !strings.Contains(left, "10:00") {
		t.Errorf("the hold is said to last %q", left)
	}
	do(t, tab, chromedp.SendKeys(chromedp.CSS("[name=name]"), "Awa Diarra"), chromedp.SendKeys(chromedp.CSS("[name=email]"), "awa@example.org"))
	do(t, tab, chromedp.Click(chromedp.CSS(".cart-pay form button")), chromedp.WaitVisible(chromedp.CSS(".demo-acts")))
	onlyFrom(t, tab, h.server.URL)
	pay := location(t, tab)
	do(t, tab, chromedp.Navigate(cart), chromedp.WaitVisible(chromedp.CSS("#countdown")))

	other := h.buyer() // pays in another browser
	if paid := other.pays(strings.TrimPrefix(pay, h.server.URL), "pay"); !strings.Contains(paid.text, "Your tickets") {
		t.Errorf("it is not paid: %s", paid.text)
	}
	do(t, tab, chromedp.WaitVisible(chromedp.CSS(".note-done")))
	if said := reads(t, tab, "h1"); said != "Your tickets" {
		t.Errorf("after the payment the page says %q", said)
	}
	onlyFrom(t, tab, h.server.URL)
	heard.none(t)
}

// TestShop_InABrowser_Lapses: a page that is open says so when the hold is over, and gives the seats again.
func TestShop_InABrowser_Lapses(t *testing.T) {
	h := newPlayhouse(t)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.server.URL+"/e/phedre/S2?lang=en"))
	press(t, tab, ".seats-best button")
	cart := location(t, tab)
	h.later(31 * time.Minute)
	do(t, tab, chromedp.Evaluate[chromedp.Void](`window.dispatchEvent(new Event("pageshow"))`), chromedp.WaitVisible(chromedp.CSS(`[data-stage="lapsed"] button`)))
	press(t, tab, `[data-stage="lapsed"] button`)
	if at := location(t, tab); at == cart || !strings.HasPrefix(reads(t, tab, "h1"), "Your reservation") {
		t.Errorf("held again, it is at %s", at)
	}
	heard.none(t)
}

// oldTab is another tab of the same browser, whose page stays as it is until somebody presses something: no script of it asks again.
func oldTab(t *testing.T, tab context.Context, at string) context.Context { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	other, cancel := chromedp.NewContext(tab)
	t.Cleanup(cancel)
	do(t, other, chromedp.EmulateViewport(1280, 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}), chromedp.Navigate(at))
	return other
}

// cartOf opens a tab that holds.
func cartOf(t *testing.T, h *playhouse) (tab context.Context, cart string) {
	t.Helper()
	tab = browser(t)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(h.server.URL+"/e/phedre/S1?lang=en"))
	do(t, tab, chromedp.Click(chromedp.CSS(`label:has(input[aria-label="A-1"])`)), chromedp.Click(chromedp.CSS(`label:has(input[aria-label="A-2"])`)))
	press(t, tab, "#plan-form button")
	return tab, location(t, tab)
}

// goBack goes so many pages back, and waits for what stands there. A page that the browser kept as it was is loaded no second time, so that no
// event tells of it: the page that is left is marked instead, and the page itself is asked.
func goBack(t *testing.T, tab context.Context, pages int, selector string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	leave := fmt.Sprintf(`document.body.classList.add("left"); setTimeout(() => history.go(-%d))`, pages)
	do(t, tab, chromedp.Evaluate[chromedp.Void](leave))
	there := fmt.Sprintf(`document.querySelector("body:not(.left) %s") !== null`, selector)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); time.Since(began) < browserPatience/3; <-look.C {
		// While one page goes and the other comes there is none to ask.
		if found, err := chromedp.Run(tab, chromedp.Evaluate[bool](there)); err == nil && found {
			return
		}
	}
	t.Fatalf("%d pages back at %s there is no %s", pages, location(t, tab), selector)
}

// says fails when a page has not this title, or not this sentence.
func says(t *testing.T, tab context.Context, title, selector, sentence string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	if said := reads(t, tab, "h1"); said != title {
		t.Errorf("the page is called %q, not %q", said, title)
	}
	if said := reads(t, tab, selector); !strings.Contains(said, sentence) {
		t.Errorf("the page says %q, not %q", said, sentence)
	}
}

// sold fails when other than so many seats are held or sold, or other than so many payments were kept.
func (h *playhouse) sold(seats, payments int) {
	h.Helper()
	var claims, kept int
	err := h.owner.QueryRow(h.Context(), `select (select count(*) from claim where released_at is null), (select count(*) from payment)`).Scan(&claims, &kept)
	h.must(err)
	if claims != seats || kept != payments {
		h.Errorf("%d seats and %d payments, not %d and %d", claims, kept, seats, payments)
	}
}

// TestShop_InTwoTabs_Paid: one tab pays. Whatever is pressed in the other, which still shows the cart, in the tab that went back, or on the
// operator's page once more, says that it is paid, and changes nothing.
func TestShop_InTwoTabs_Paid(t *testing.T) {
	h := newPlayhouse(t)
	tab, cart := cartOf(t, h)
	heard := listen(t, tab)
	giving, paying := oldTab(t, tab, cart), oldTab(t, tab, cart)
	do(t, tab, chromedp.SendKeys(chromedp.CSS("[name=name]"), "Awa Diarra"), chromedp.SendKeys(chromedp.CSS("[name=email]"), "awa@example.org"))
	do(t, tab, chromedp.Click(chromedp.CSS(".cart-pay form button")), chromedp.WaitVisible(chromedp.CSS(".demo-acts")))
	press(t, tab, ".demo-acts [value=pay]")
	const done = "Everything is done"
	says(t, tab, "Your tickets", ".note-done", done)
	h.sold(2, 1)

	press(t, giving, ".cart-give-up button")
	says(t, giving, "Your tickets", ".note-done", done)
	if said := reads(t, giving, "#problem"); !strings.Contains(said, "paid") {
		t.Errorf("giving up what is paid is answered %q", said)
	}
	do(t, paying, chromedp.SendKeys(chromedp.CSS("[name=name]"), "Awa Diarra"), chromedp.SendKeys(chromedp.CSS("[name=email]"), "awa@example.org"))
	press(t, paying, ".cart-pay form button")
	says(t, paying, "Your tickets", ".note-done", done)
	h.sold(2, 1)

	do(t, tab, chromedp.Reload())
	says(t, tab, "Your tickets", ".note-done", done)
	goBack(t, tab, 1, ".demo-acts")
	again := chromedp.Evaluate[chromedp.Void](`document.querySelector(".demo-acts [value=pay]").click()`)
	if _, err := chromedp.Run(tab, chromedp.WaitEvent(page.LoadEventFired, nil, again)); err != nil {
		t.Fatal("press the operator's button again: ", err)
	}
	says(t, tab, "Your tickets", ".note-done", done)
	goBack(t, tab, 2, ".note-done") // to the cart as it was before it was paid
	says(t, tab, "Your tickets", ".note-done", done)
	if at := location(t, tab); at != cart {
		t.Errorf("before the operator's page came %s", at)
	}
	h.sold(2, 1)
	heard.none(t)
}

// TestShop_InTwoTabs_GivenUp: one tab gives the seats up. The other one cannot pay for them, renew them or change them, and says so.
func TestShop_InTwoTabs_GivenUp(t *testing.T) {
	h := newPlayhouse(t)
	tab, cart := cartOf(t, h)
	heard := listen(t, tab)
	others := map[string]context.Context{}
	for _, act := range []string{".cart-pay form button", ".hold form button", ".ticket-off-form button", ".cart-give-up button"} {
		others[act] = oldTab(t, tab, cart)
	}
	press(t, tab, ".cart-give-up button")
	const over = "Nothing is held and nothing is to be paid."
	says(t, tab, "Reservation given up", ".note-quiet", over)
	for act, other := range others {
		if act == ".cart-pay form button" {
			do(t, other, chromedp.SendKeys(chromedp.CSS("[name=name]"), "Awa Diarra"), chromedp.SendKeys(chromedp.CSS("[name=email]"), "awa@example.org"))
		}
		press(t, other, act)
		says(t, other, "Reservation given up", ".note-quiet", over)
		h.sold(0, 0)
	}
	do(t, tab, chromedp.Reload())
	says(t, tab, "Reservation given up", ".note-quiet", over)
	heard.none(t)
}
