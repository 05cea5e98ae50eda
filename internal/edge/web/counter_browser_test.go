package web_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"usher/internal/domain/account"
)

// keys types without a mouse: into whatever has the focus.
func keys(t *testing.T, tab context.Context, text string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	do(t, tab, chromedp.KeyEvent(text))
}

// enter presses the key that leads to another page, and waits for it.
func enter(t *testing.T, tab context.Context) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	if _, err := chromedp.Run(tab, chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.KeyEvent(kb.Enter))); err != nil {
		t.Fatalf("press Enter at %s: %v", location(t, tab), err)
	}
}

// focus waits until what is to be used next has the focus: a browser gives it a moment after the page is there.
func focus(t *testing.T, tab context.Context, selector string) { //nolint:revive // t comes first, as in every helper of a test
	t.Helper()
	if err := chromedp.Do(tab, chromedp.Poll[chromedp.Void](`document.activeElement.matches(`+strconv.Quote(selector)+`)`)); err != nil {
		t.Fatalf("%s has no focus at %s: %v", selector, location(t, tab), err)
	}
}

// TestCounter_ByKeyboardAlone: two people pay, one found by the reference and one by the name, without a mouse: the reference, Enter,
// Enter for the amount that is proposed, Enter for the receipt, and the next may be typed.
func TestCounter_ByKeyboardAlone(t *testing.T) {
	b := setup(t)
	b.owing("Kɔ̀ɔ̀nyɛ́", "Traoré", "Traoré-Keïta")
	b.cashier()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/campaigns/enib/counter"),
		chromedp.SetValue(chromedp.CSS("#email"), emailOf(b.org, account.Cashier)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	for i, who := range []string{"A-1", "traor"} {
		focus(t, tab, "#q")
		keys(t, tab, who)
		enter(t, tab)
		if i == 1 { // one of the two is chosen: the first has the focus
			focus(t, tab, `.found a[href$="/A-2"]`)
			enter(t, tab)
		}
		focus(t, tab, "#amount")
		enter(t, tab)
		if !strings.Contains(location(t, tab), "/receipts/") {
			t.Fatalf("after the money: %s", location(t, tab))
		}
		focus(t, tab, ".receipt-acts .button")
		keys(t, tab, kb.Enter)
		focus(t, tab, "#q")
	}
	if n := b.count(`payment where method = 'cash' and amount_minor = 10000`); n != 2 {
		t.Errorf("%d payments, want 2", n)
	}
	if n := b.count(`receipt where printed_at is not null`); n != 2 {
		t.Errorf("%d receipts were printed, want 2", n)
	}
	heard.none(t)
}

// TestCounter_InABrowser: the same on a desktop and a telephone, with the mouse, without JavaScript, and what it looks like.
func TestCounter_InABrowser(t *testing.T) {
	b := setup(t)
	long := "Ouédraogo-Nikièma de la Fontaine-Sanogho Kɔ̀ɔ̀nyɛ́ Wend-Kuni"
	b.owing(long, "Traoré", "Traoré Diarra", "Traoré-Keïta")
	b.cashier()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	tab := browser(t)
	heard := listen(t, tab)
	do(t, tab, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/campaigns/enib/counter"),
		chromedp.SendKeys(chromedp.CSS("#email"), emailOf(b.org, account.Cashier)), chromedp.SendKeys(chromedp.CSS("#password"), password))
	press(t, tab, ".gate-form button")
	both := func(name, at string) {
		t.Helper()
		for _, size := range []struct {
			name          string
			width, height int64
		}{{"", 1280, 900}, {"-390", 390, 844}} {
			do(t, tab, chromedp.EmulateViewport(size.width, size.height), chromedp.Navigate(server.URL+at))
			onlyFrom(t, tab, server.URL)
			kept(t, tab, name+size.name)
		}
	}
	both("counter-empty", "/campaigns/enib/counter")
	both("counter-found", "/campaigns/enib/counter?q=traore")
	both("counter-nobody", "/campaigns/enib/counter?q=Zo%C3%A9")
	both("counter-closed", "/campaigns/enib/counter/F-1")
	both("counter-person", "/campaigns/enib/counter/A-1")
	do(t, tab, chromedp.SetValue(chromedp.CSS("#amount"), "4000"))
	press(t, tab, ".take-button")
	receipt := location(t, tab)
	if !strings.Contains(receipt, "/receipts/") || !strings.Contains(reads(t, tab, "#slip"), "Ouédraogo") {
		t.Fatalf("after the money: %s", receipt)
	}
	both("counter-receipt", strings.TrimPrefix(receipt, server.URL))
	both("counter-part-paid", "/campaigns/enib/counter/A-1")
	both("drawer-open", "/drawer")
	do(t, tab, chromedp.SetValue(chromedp.CSS(`input[name="float"]`), "25000"), chromedp.SetValue(chromedp.CSS(`input[name="counted"]`), "28500"),
		chromedp.SetValue(chromedp.CSS(`input[name="note"]`), "Un billet déchiré, rendu à la banque par M. Ouédraogo"))
	press(t, tab, ".count-form button")
	if said := reads(t, tab, ".till"); !strings.Contains(said, "500") {
		t.Errorf("the drawer says %q", said)
	}
	both("drawer-counted", "/drawer")
	heard.none(t)
}
