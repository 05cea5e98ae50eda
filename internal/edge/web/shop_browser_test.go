package web_test

import (
	"strings"
	"testing"
	"time"

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
