package stripe_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"usher/internal/base/stripe"
	"usher/internal/base/stripe/stripetest"
)

func page(key string) stripe.NewPage {
	return stripe.NewPage{
		IdempotencyKey: key, Reference: key, Title: "Concert", Amount: 5000, Currency: "XOF", Email: "awa@ecole.example", Locale: "fr",
		ExpiresAt: time.Now().Add(31 * time.Minute), SuccessURL: "https://usher.example/r/x", CancelURL: "https://usher.example/r/x",
	}
}

func opened(t *testing.T) (*stripetest.Server, *stripe.Client) {
	t.Helper()
	server := stripetest.New(t)
	client := stripe.Open(stripetest.Key, server.URL)
	t.Cleanup(client.Close)
	return server, client
}

func TestPage_MadeOnceFoundPaidAndEnded(t *testing.T) {
	t.Parallel()
	server, client := opened(t)
	wanted := page("pay_1")
	made, err := client.MakePage(t.Context(), wanted)
	if err != nil || made.URL == "" || made.Status != "open" || made.Amount != 5000 || made.Currency != "XOF" || made.Reference != "pay_1" {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := client.MakePage(t.Context(), wanted)
	if err != nil || again.ID != made.ID || len(server.Sessions()) != 1 {
		t.Errorf("a repeat: %+v, %v; pages: %v", again, err, server.Sessions())
	}
	if sent := server.Received("/v1/checkout/sessions")[0].Form.Get("line_items[0][price_data][currency]"); sent != "xof" {
		t.Errorf("the currency travels as %q", sent)
	}
	found, is, err := client.FindPageByReference(t.Context(), "pay_1", time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
	if err != nil || !is || found.ID != made.ID {
		t.Errorf("by its reference: %+v, %v, %v", found, is, err)
	}
	if _, is, err := client.FindPageByReference(t.Context(), "pay_2", time.Now().Add(-time.Minute), time.Now().Add(time.Minute)); is || err != nil {
		t.Errorf("one that was never made: %v, %v", is, err)
	}
	event, payment := server.Pay(made.ID)
	read, err := stripe.ReadEvent(event, stripetest.Header(event, time.Now()).Get("Stripe-Signature"), []string{stripetest.Secret}, time.Now())
	if err != nil || read.Page == nil || !read.Page.Paid || read.Page.PaymentIntent != payment || read.Page.Reference != "pay_1" {
		t.Errorf("%+v, %v", read, err)
	}
	var failure *stripe.Failure
	if _, err := client.EndPage(t.Context(), made.ID); !errors.As(err, &failure) || !failure.Final {
		t.Errorf("end a paid page: %v", err)
	}
	other, err := client.MakePage(t.Context(), page("pay_3"))
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := client.EndPage(t.Context(), other.ID); err != nil || ended.Status != "expired" {
		t.Errorf("%+v, %v", ended, err)
	}
}

func TestGiveBack_OnceThoughTheKeyIsForgotten(t *testing.T) {
	t.Parallel()
	server, client := opened(t)
	made, err := client.MakePage(t.Context(), page("pay_1"))
	if err != nil {
		t.Fatal(err)
	}
	_, payment := server.Pay(made.ID)
	server.Fail(stripetest.Fault{Status: http.StatusBadGateway, Done: true}) // it is done, and nobody hears of it
	if _, err := client.GiveBack(t.Context(), "rf_1", payment, 1000, false); err == nil {
		t.Fatal("a bad gateway is no answer")
	}
	server.ForgetKeys()
	back, err := client.GiveBack(t.Context(), "rf_1", payment, 1000, true)
	if err != nil || back.Status != "succeeded" || back.Reference != "rf_1" || server.GivenBack(payment) != 1000 {
		t.Errorf("%+v, %v; given back %d", back, err, server.GivenBack(payment))
	}
	var failure *stripe.Failure
	if _, err := client.GiveBack(t.Context(), "rf_2", payment, 4001, false); !errors.As(err, &failure) || !failure.Final {
		t.Errorf("more than there is: %v", err)
	}
}

// What may be tried again and what may not; and no words repeat the key.
func TestFailures(t *testing.T) {
	t.Parallel()
	for status, final := range map[int]bool{0: false, 402: true, 409: false, 429: false, 500: false, 503: false} {
		server, client := opened(t)
		server.Fail(stripetest.Fault{Status: status, Words: "no: " + stripetest.Key})
		_, err := client.MakePage(t.Context(), page("pay_1"))
		var failure *stripe.Failure
		if !errors.As(err, &failure) || failure.Final != final || strings.Contains(failure.Words, stripetest.Key) {
			t.Errorf("%d: got %v", status, err)
		}
	}
	server := stripetest.New(t)
	wrong := stripe.Open("sk_test_other", server.URL)
	defer wrong.Close()
	_, err := wrong.MakePage(t.Context(), page("pay_1"))
	if err == nil || strings.Contains(fmt.Sprint(err), "sk_test_other") {
		t.Errorf("a wrong key: %v", err)
	}
	_, client := opened(t)
	if _, err := client.MakePage(t.Context(), page("pay_1")); err != nil {
		t.Fatal(err)
	}
	other := page("pay_1")
	other.Amount = 1
	var failure *stripe.Failure
	if _, err := client.MakePage(t.Context(), other); !errors.As(err, &failure) || failure.Final {
		t.Errorf("one key for two pages: %v", err)
	}
}

func TestReadEvent_OnlyWhatIsSigned(t *testing.T) {
	t.Parallel()
	body, now := []byte(`{"id":"evt_1","object":"event","type":"payout.paid","created":1,"data":{"object":{}}}`), time.Unix(1_795_967_164, 0)
	header := http.Header{"Stripe-Signature": {stripe.Signature(body, stripetest.Secret, now)}}.Get("Stripe-Signature")
	for name, at := range map[string]struct {
		body    []byte
		header  string
		secret  []string
		now     time.Time
		genuine bool
	}{
		"signed":              {body, header, []string{stripetest.Secret}, now, true},
		"with a former one":   {body, header, []string{"whsec_new", stripetest.Secret}, now, true},
		"by another":          {body, header, []string{"whsec_new", ""}, now, false},
		"changed":             {[]byte(`{}`), header, []string{stripetest.Secret}, now, false},
		"old":                 {body, header, []string{stripetest.Secret}, now.Add(stripe.Tolerance + time.Second), false},
		"of the future":       {body, header, []string{stripetest.Secret}, now.Add(-stripe.Tolerance - time.Second), false},
		"unsigned":            {body, "", []string{stripetest.Secret}, now, false},
		"signed with nothing": {body, stripe.Signature(body, "", now), []string{""}, now, false},
	} {
		read, err := stripe.ReadEvent(at.body, at.header, at.secret, at.now)
		if at.genuine && (err != nil || read.Type != "payout.paid") || !at.genuine && !errors.Is(err, stripe.ErrNotGenuine) {
			t.Errorf("%s: got %+v, %v", name, read, err)
		}
	}
}
