package payment

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/timeline"
)

// The example of docs/payments.md is one: it verifies with the secret that stands there, and is read as the table says.
func TestSigned_AsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/payments.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	message := regexp.MustCompile(`(?m)^Webhook-Id: (.*)\nWebhook-Timestamp: (.*)\nWebhook-Signature: (.*)\n\n(.*)$`).FindStringSubmatch(page)
	secret := regexp.MustCompile("`(whsec_[^`]+)`, and is there to try").FindStringSubmatch(page)
	if message == nil || secret == nil {
		t.Fatal("there is no message to try")
	}
	seconds, err := strconv.ParseInt(message[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Webhook-Id": {message[1]}, "Webhook-Timestamp": {message[2]}, "Webhook-Signature": {message[3]}}
	gateway := Setup{Kind: Signed, signingSecret: secret[1]}.Open()
	notices, err := gateway.Read(header, []byte(message[4]), time.Unix(seconds, 0))
	if err != nil || len(notices) != 1 {
		t.Fatalf("%v, %v", notices, err)
	}
	n := notices[0]
	if n.Kind != NoticePaid || n.AmountMinor != 5000 || n.Currency != "XOF" || n.CheckoutKey != "pay_q3fvk2n7c5xw4zjt6yhb2mlsra" ||
		n.Key != "paid MP261129.1546.A00017" || !n.OccurredAt.Equal(time.Date(2026, 11, 29, 15, 46, 2, 0, time.UTC)) {
		t.Errorf("%+v", n)
	}
	for _, kind := range NoticeKinds {
		if !strings.Contains(page, "`"+string(kind)+"`") {
			t.Errorf("%s is not described", kind)
		}
	}
}

// What is genuine and cannot be understood says why; what is not genuine says nothing.
func TestSigned_Read(t *testing.T) {
	t.Parallel()
	secret, now := webhook.NewSecret(), time.Unix(1_795_967_164, 0)
	gateway := Setup{Kind: Signed, signingSecret: secret}.Open()
	for body, want := range map[string]string{
		`{"type":"paid","id":"1","amount_minor":5,"currency":"XOF"}`:                                "paid 1",
		`{"type":"failed","id":"1","reference":"pay_1","reason":"no money"}`:                        "failed 1",
		`{"type":"refunded","id":"2","payment":"1","amount_minor":5,"currency":"XOF"}`:              "refunded 2",
		`{"type":"refunded","id":"2","amount_minor":5,"currency":"XOF"}`:                            "",
		`{"type":"paid","id":"","amount_minor":5,"currency":"XOF"}`:                                 "",
		`{"type":"paid","id":"1","amount_minor":0,"currency":"XOF"}`:                                "",
		`{"type":"paid","id":"1","amount_minor":-5,"currency":"XOF"}`:                               "",
		`{"type":"paid","id":"1","amount_minor":5.5,"currency":"XOF"}`:                              "",
		`{"type":"paid","id":"1","amount_minor":5,"currency":"FCFA"}`:                               "",
		`{"type":"paid","id":"` + strings.Repeat("x", 201) + `","amount_minor":5,"currency":"XOF"}`: "",
		`{"type":"seen","id":"1","amount_minor":5,"currency":"XOF"}`:                                "",
		`paid`: "", ``: "", `[]`: "",
	} {
		header, err := webhook.SignedHeader([]string{secret}, "msg_1", now, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		notices, err := gateway.Read(header, []byte(body), now)
		var unreadable *Unreadable
		switch {
		case want == "" && !errors.As(err, &unreadable):
			t.Errorf("%s: got %v, %v", body, notices, err)
		case want != "" && (err != nil || len(notices) != 1 || notices[0].Key != want):
			t.Errorf("%s: got %v, %v", body, notices, err)
		}
		if _, err := gateway.Read(header, []byte(body+" "), now); !errors.Is(err, ErrNotGenuine) {
			t.Errorf("%s, changed: got %v", body, err)
		}
	}
}

func TestSetup_Refusals(t *testing.T) {
	t.Parallel()
	installation, manager := timeline.Actor{Installation: true}, timeline.Actor{OrganisationID: 1, Role: "manager"}
	for _, at := range []struct {
		setup Setup
		given Secrets
		actor timeline.Actor
		want  string
	}{
		{Setup{Kind: Counter}, Secrets{}, manager, ""},
		{Setup{Kind: "bank"}, Secrets{}, manager, "gateway_kind_unknown"},
		{Setup{Kind: Counter}, Secrets{APIKey: "sk_1"}, manager, "gateway_needs_no_keys"},
		{Setup{Kind: Counter, CheckoutURL: "https://x.example/{reference}"}, Secrets{}, manager, "gateway_needs_no_page"},
		{Setup{Kind: Stripe, apiKey: "pk_1", signingSecret: "whsec_1"}, Secrets{}, manager, "gateway_stripe_key"},
		{Setup{Kind: Stripe, apiKey: "sk_1", signingSecret: "sk_1"}, Secrets{}, manager, "gateway_stripe_secret"},
		{Setup{Kind: Stripe, apiKey: "sk_1", signingSecret: "whsec_1"}, Secrets{}, manager, ""},
		{Setup{Kind: Stripe, apiKey: "rk_1", signingSecret: "whsec_1", APIURL: "https://x.example"}, Secrets{}, manager, "gateway_only_administrator"},
		{Setup{Kind: Stripe, apiKey: "rk_1", signingSecret: "whsec_1", APIURL: "http://x.example"}, Secrets{}, installation, "webhook_url_plain"},
		{Setup{Kind: Stripe, apiKey: "sk_" + strings.Repeat("x", 500), signingSecret: "whsec_1"}, Secrets{}, manager, "gateway_secret_long"},
		{Setup{Kind: Signed, CheckoutURL: "https://x.example/?r={reference}&a={amount}&c={currency}&b={return}"}, Secrets{}, manager, ""},
		{Setup{Kind: Signed, CheckoutURL: "https://x.example/"}, Secrets{}, manager, "gateway_page_unreadable"},
		{Setup{Kind: Signed, CheckoutURL: "http://x.example/{reference}"}, Secrets{}, manager, "gateway_page_unreadable"},
		{Setup{Kind: Signed, CheckoutURL: "https://x.example/{reference}/{secret}"}, Secrets{}, manager, "gateway_page_unreadable"},
	} {
		err := at.setup.check(at.actor, at.given)
		if at.want == "" && err != nil || at.want != "" && !problem.Has(err, at.want) {
			t.Errorf("%s %s: got %v, want %q", at.setup, at.setup.CheckoutURL, err, at.want)
		}
	}
}
