package payment

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"usher/internal/base/stripe"
	"usher/internal/base/webhook"
)

var fuzzedAt = time.Date(2026, 11, 29, 15, 46, 2, 0, time.UTC)

// understoodOrSaid fails unless what was posted is refused in words, or can be kept as it stands.
func understoodOrSaid(t *testing.T, body []byte, notices []GatewayNotice, err error) {
	t.Helper()
	var unread *Unreadable
	if err != nil {
		if !errors.As(err, &unread) {
			t.Errorf("%q: %v", body, err)
		}
		return
	}
	for _, n := range notices {
		for _, text := range []string{string(body), n.Key, n.CheckoutKey, n.GatewayKey, n.PageKey, n.Currency, n.Words} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("%q is to be kept", text)
			}
		}
		if n.AmountMinor < 0 || n.FeeMinor < 0 || n.AmountMinor > MostMinor || n.FeeMinor > MostMinor || n.Key == "" || n.OccurredAt.Year() < 1970 {
			t.Errorf("%+v", n)
		}
	}
}

func FuzzReadNotices_Signed(f *testing.F) {
	secret := webhook.NewSecret()
	setup := Setup{Kind: Signed, signingSecret: secret}
	for _, body := range []string{
		`{"type":"paid","id":"op1","reference":"k1","amount_minor":5000,"currency":"XOF","occurred_at":"2026-11-29T15:46:02Z"}`,
		`{"type":"dispute_lost","id":"d1","payment":"op1","amount_minor":5000,"fee_minor":100,"currency":"XOF"}`,
		`{"type":"failed","id":"op2","amount_minor":-5}`, `{"type":"paid","id":"a\u0000b","amount_minor":1,"currency":"XOF"}`,
		"{\"type\":\"failed\",\"id\":\"op3\",\"reason\":\"\xff\"}", `{"type":"failed","id":"x","occurred_at":"0001-01-02T00:00:00Z"}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		header, err := webhook.SignedHeader([]string{secret}, "msg_1", fuzzedAt, body)
		if err != nil {
			t.Skip()
		}
		notices, err := ReadNotices(setup, header, body, fuzzedAt)
		understoodOrSaid(t, body, notices, err)
	})
}

func FuzzReadNotices_Stripe(f *testing.F) {
	const secret = "whsec_fuzz"
	setup := Setup{Kind: Stripe, apiKey: "sk", signingSecret: secret}
	for _, body := range []string{
		`{"id":"e1","object":"event","type":"checkout.session.completed","created":1796053562,"data":{"object":{"id":"cs1","client_reference_id":"usher_k1","payment_status":"paid","amount_total":2000,"currency":"eur","payment_intent":"pi1"}}}`,
		`{"id":"e2","type":"refund.updated","created":1796053562,"data":{"object":{"id":"re1","amount":2000,"currency":"xxx","status":"succeeded","payment_intent":"pi1"}}}`,
		`{"id":"e3","type":"charge.dispute.closed","created":99999999999999,"data":{"object":{"id":"dp1","amount":-1,"currency":"eur","status":"lost","payment_intent":"pi\u0000"}}}`,
		`{"id":"e4","type":"charge.dispute.created","created":1796053562,"data":{"object":{}}}`, `{"type":"refund.created","data":{"object":null}}`, `{}`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		notices, err := ReadNotices(setup, http.Header{"Stripe-Signature": {stripe.Signature(body, secret, fuzzedAt)}}, body, fuzzedAt)
		understoodOrSaid(t, body, notices, err)
	})
}
