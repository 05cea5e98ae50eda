package reservation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/stripe/stripetest"
	"usher/internal/domain/payment"
	"usher/internal/domain/schema"
)

func TestPay_HeldPaidConfirmed(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1", "A2"))
	s := b.pay(r, "stripe")
	if s.URL == "" || s.Confirmed {
		t.Fatalf("%+v", s)
	}
	b.equal("sent", b.stripe.Received("/v1/checkout/sessions")[0].Form.Get("line_items[0][price_data][unit_amount]"), "4000")
	b.stands("before", r, PaymentStarted, 0, 0, 0)
	paid, _ := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	b.stands("after", r, Confirmed, 4000, 0, 0)
	b.equal("contact", b.read(r).Phone, "+33612345678")
	b.clock(24 * time.Hour)
	b.equal("seats", b.read(r).seats(), []string{"A1", "A2"})
}

// C34: clicked twice, and ten times at once, it is one page; once it is paid there is none.
func TestStartPayment_OnePage(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	urls := make([]string, 10)
	b.must(errors.Join(together(10, func(i int) error {
		s, err := StartPayment(b.Context(), b.db, Buyer, r.Reference, Paying{Gateway: "stripe", Contact: awa, Return: "https://shop.example/"})
		urls[i] = s.URL
		return err
	})...))
	for _, url := range urls {
		if url == "" || url != urls[0] {
			t.Errorf("pages: %v", urls)
		}
	}
	b.equal("pages", len(b.stripe.Sessions()), 1)
	b.equal("checkouts", b.count(`select count(*) from checkout`), 1)
	paid, _ := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	if s := b.pay(r, "stripe"); !s.Confirmed || s.URL != "" {
		t.Errorf("paid: %+v", s)
	}
}

func TestStartPayment_NothingToPay(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.exec(`update price set amount_minor = 0`)
	r := b.hold(chosen("A1"))
	if s := b.pay(r, "stripe"); !s.Confirmed {
		t.Errorf("%+v", s)
	}
	b.stands("free", r, Confirmed, 0, 0, 0)
	b.equal("pages", len(b.stripe.Sessions()), 0)
}

func TestStartPayment_Refusals(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	start := func(gateway string, c Contact) error {
		_, err := StartPayment(t.Context(), b.db, Buyer, r.Reference, Paying{Gateway: gateway, Contact: c, Return: "https://shop.example/"})
		return err
	}
	before := b.digest()
	b.refusedWith(start("stripe", Contact{Email: "awa@example.org"}), "buyer_name_missing")
	b.refusedWith(start("stripe", Contact{Name: "Awa"}), "buyer_email_missing")
	b.refusedWith(start("stripe", Contact{Name: "Awa", Email: "awa"}), "buyer_email_wrong")
	b.refusedWith(start("stripe", Contact{Name: "Awa", Email: "awa@example.org", Phone: "12"}), "candidate_phone_wrong")
	b.refusedWith(start("counter", awa), "gateway_has_no_page")
	b.refusedWith(start("nowhere", awa), "gateway_unknown")
	b.refusedWith(start("", awa), "gateway_to_choose")
	_, err := payment.DisableGateway(t.Context(), b.db, b.admin, b.org, "stripe", false)
	b.must(err)
	b.refusedWith(start("stripe", awa), "gateway_disabled")
	b.exec(`update event set most_per_buyer = 1`)
	other := b.hold(chosen("A2"))
	b.pay(other, "money")
	b.refusedWith(start("money", Contact{Name: "Awa", Email: "AWA@example.org"}), "limit_event")
	_, err = GiveUp(t.Context(), b.db, Buyer, other.Reference)
	b.must(err)
	b.clock(time.Hour)
	b.refusedWith(start("money", awa), "hold_over")
	_, err = StartPayment(t.Context(), b.db, Buyer, "NOBODYS", Paying{Gateway: "money", Contact: awa})
	b.refusedWith(err, "reservation_unknown")
	if before == "" {
		t.Error("nothing was looked at")
	}
	b.equal("untouched", b.read(r).Written, Held)
}

// The gateway says no, or nothing: the buyer may try again while the hold holds.
func TestStartPayment_GatewayFails(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	start := func() error {
		_, err := StartPayment(t.Context(), b.db, Buyer, r.Reference, Paying{Gateway: "stripe", Contact: awa, Return: "https://shop.example/"})
		return err
	}
	b.stripe.Fail(stripetest.Fault{Status: http.StatusBadRequest, Words: "no"})
	b.refusedWith(start(), "gateway_refused")
	b.stands("refused", r, Held, 0, 0, 0)
	b.stripe.Fail(stripetest.Fault{Status: http.StatusServiceUnavailable, Done: true}) // the page is made, and nobody hears of it
	b.refusedWith(start(), "gateway_silent")
	b.stands("silent", r, PaymentStarted, 0, 0, 0)
	b.must(start())
	b.equal("pages", len(b.stripe.Sessions()), 1)
}

// C105: what the gateway received, in its own units.
func TestStartPayment_UnitsOfTheGateway(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	for _, at := range []struct {
		currency string
		minor    int64
		stripe   string
		bridge   string
	}{
		{"XOF", 5000, "5000", "5000"}, {"JPY", 80, "80", "80"}, {"TND", 12_500, "12500", "12.500"}, {"EUR", 2000, "2000", "20.00"}, {"ISK", 300, "30000", "300"},
	} {
		r := b.hold(best(1))
		b.exec(`alter table line disable trigger all`)
		b.exec(`update line set list_minor = $2, price_minor = $2, currency = $3 where reservation_id = $1`, r.ID, at.minor, at.currency)
		b.exec(`update reservation set currency = $2 where id = $1`, r.ID, at.currency)
		b.pay(r, "stripe")
		calls := b.stripe.Received("/v1/checkout/sessions")
		b.equal(at.currency+" at Stripe", calls[len(calls)-1].Form.Get("line_items[0][price_data][unit_amount]"), at.stripe)
		if url := b.pay(r, "money").URL; !strings.Contains(url, "&sum="+at.bridge+"&cur="+at.currency+"&") {
			t.Errorf("%s at the bridge: %s", at.currency, url)
		}
		paid, _ := b.stripe.Pay(b.lastPage())
		b.tell(paid)
		b.stands(at.currency, r, Confirmed, at.minor, 0, 0)
	}
	r := b.hold(best(1))
	b.exec(`update line set list_minor = 12505, price_minor = 12505 where reservation_id = $1`, r.ID)
	b.exec(`update reservation set currency = 'TND' where id = $1`, r.ID)
	_, err := StartPayment(t.Context(), b.db, Buyer, r.Reference, Paying{Gateway: "stripe", Contact: awa, Return: "https://shop.example/"})
	b.refusedWith(err, "gateway_amount")
	b.stands("finer than Stripe takes", r, Held, 0, 0, 0)
}

// C35: the process is killed after the gateway made the page, and the buyer pays there: the look finds it, though the notice was lost.
func TestLook_FindsWhatADeadProcessLeft(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.clock(0)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStartPaymentAndDie$")
	child.Env = append(os.Environ(), "USHER_TEST_PAY_URL="+b.url, "USHER_TEST_PAY_REFERENCE="+r.Reference)
	b.stripe.After(func(string) { _ = child.Process.Signal(syscall.SIGKILL); _, _ = child.Process.Wait() })
	out, err := child.CombinedOutput()
	b.stripe.After(nil)
	if err == nil || len(b.stripe.Sessions()) != 1 {
		t.Fatalf("it was not killed in time: %v, %s", err, out)
	}
	b.equal("what is known", b.count(`select count(*) from checkout where state = 'starting' and gateway_key = ''`), 1)
	b.stripe.Pay(b.lastPage()) // somebody had the address, and no notice comes
	b.clock(time.Minute)
	looked, err := LookAtCheckouts(t.Context(), b.db, 10)
	b.must(errors.Join(append(looked.Errors, err)...))
	b.stands("found", r, Confirmed, 2000, 0, 0)
	b.equal("end unknown", b.count(`select count(*) from checkout where state in ('starting', 'open')`), 0)
}

// TestStartPaymentAndDie is the process that is killed.
func TestStartPaymentAndDie(t *testing.T) {
	url := os.Getenv("USHER_TEST_PAY_URL")
	if url == "" {
		t.Skip("runs as a process of its own")
	}
	db, err := pg.Open(context.Background(), url, schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	s, err := StartPayment(context.Background(), db, Buyer, os.Getenv("USHER_TEST_PAY_REFERENCE"),
		Paying{Gateway: "stripe", Contact: awa, Return: "https://shop.example/"})
	fmt.Println("survived:", s, err)
}

// What the looks do: a page that was never made, one that expired, one at which nobody is to pay any more.
func TestLook_EndsWhatIsOver(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	look := func(want int) {
		t.Helper()
		looked, err := LookAtCheckouts(t.Context(), b.db, 10)
		b.must(errors.Join(append(looked.Errors, err)...))
		b.equal("looked at", looked.Checkouts, want)
	}
	never := b.hold(chosen("A1"))
	b.stripe.Fail(stripetest.Fault{Status: http.StatusServiceUnavailable})
	_, err := StartPayment(t.Context(), b.db, Buyer, never.Reference, Paying{Gateway: "stripe", Contact: awa, Return: "https://shop.example/"})
	b.refusedWith(err, "gateway_silent")
	look(0)
	b.clock(time.Minute)
	look(1)
	b.stands("never made", never, Held, 0, 0, 0)

	other := b.hold(chosen("B1"))
	b.pay(other, "stripe")
	first := b.lastPage()
	b.pay(other, "money") // the page at Stripe is to be ended
	look(1)
	b.equal("a page that nobody is to use", b.stripe.Status(first), "expired")
	b.stands("still to be paid elsewhere", other, PaymentStarted, 0, 0, 0)

	third := b.hold(chosen("C1"))
	b.pay(third, "stripe")
	page := b.lastPage()
	b.clock(time.Hour)
	b.sweep()
	look(2) // also the bridge's, which says nothing by itself
	b.equal("a page of a hold that is over", b.stripe.Status(page), "expired")
	b.stands("over", third, Lapsed, 0, 0, 0)
	expired := b.hold(chosen("C2"))
	b.pay(expired, "stripe")
	b.tell(b.stripe.Expire(b.lastPage()))
	b.stands("expired", expired, Held, 0, 0, 0)
	look(0)
}

// Pages of the one, while both look: the checkout is looked at once.
func TestLook_ByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	b.stripe.Pay(b.lastPage())
	b.clock(2 * time.Minute)
	total := 0
	seen := make([]int, 5)
	b.must(errors.Join(together(5, func(i int) error {
		looked, err := LookAtCheckouts(b.Context(), b.db, 10)
		seen[i] = looked.Checkouts
		return errors.Join(append(looked.Errors, err)...)
	})...))
	for _, n := range seen {
		total += n
	}
	b.equal("looks", total, 1)
	b.stands("found", r, Confirmed, 2000, 0, 0)
}

// Nothing of another organisation is seen or touched.
func TestMoney_OfAnotherOrganisation(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	r, _ := b.bought("A1")
	stranger := b.admin
	stranger.Installation, stranger.OrganisationID, stranger.Role = false, 2, "manager"
	_, err := CancelTickets(t.Context(), b.db, stranger, r.Reference, Cancelling{Reason: "mine"})
	b.refusedWith(err, "reservation_unknown")
	_, err = TakeCash(t.Context(), b.db, stranger, r.Reference, Cash{})
	b.refusedWith(err, "reservation_unknown")
	_, err = FreeSeats(t.Context(), b.db, stranger, r.Reference)
	b.refusedWith(err, "reservation_unknown")
	_, err = CancelEvent(t.Context(), b.db, stranger, "play", "mine")
	b.refusedWith(err, "event_unknown")
	b.refusedWith(Settle(t.Context(), b.db, stranger, b.org, "N1", Settlement{Keep: true}), "organisation_unknown")
	_, err = PaidOut(t.Context(), b.db, stranger, b.org, "R1", "")
	b.refusedWith(err, "organisation_unknown")
	_, err = AskAgain(t.Context(), b.db, stranger, b.org, "R1")
	b.refusedWith(err, "organisation_unknown")
	_, _, err = payment.Open(t.Context(), b.db, stranger, b.org, false, 1)
	b.refusedWith(err, "organisation_unknown")
	_, err = payment.Gateways(t.Context(), b.db, stranger, b.org)
	b.refusedWith(err, "organisation_unknown")
	cashier := stranger
	cashier.OrganisationID, cashier.Role = 1, "door"
	_, err = CancelTickets(t.Context(), b.db, cashier, r.Reference, Cancelling{Reason: "x"})
	b.refusedWith(err, "role_forbids")
	b.stands("untouched", r, Confirmed, 2000, 0, 0)
}

// What a gateway is, is printed without its secrets.
func TestSetup_HidesItsSecrets(t *testing.T) {
	t.Parallel()
	b := newBoxOffice(t)
	b.must(b.db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		s, err := payment.ReadSetup(t.Context(), tx, 1, b.page.ID)
		for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %v", s, s, &s)} {
			if strings.Contains(text, stripetest.Key) || strings.Contains(text, stripetest.Secret) {
				t.Error("a secret is printed")
			}
		}
		return err
	}))
	b.equal("in the timeline", b.count(`select count(*) from timeline where facts::text like '%sk_test%' or facts::text like '%whsec%'`), 0)
	// A rotated secret is taken as long as was promised.
	r := b.hold(chosen("A1"))
	b.pay(r, "stripe")
	_, _, err := payment.RotateGateway(t.Context(), b.db, b.admin, b.org, "stripe", payment.Secrets{SigningSecret: "whsec_new"}, time.Hour)
	b.must(err)
	paid, _ := b.stripe.Pay(b.lastPage())
	b.tell(paid)
	b.clock(time.Hour)
	if err := b.deliver(paid); !errors.Is(err, payment.ErrNotGenuine) {
		t.Errorf("after the overlap: %v", err)
	}
}
