package webhook_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"usher/internal/base/webhook"
)

// What the library of the specification signs is taken; whatever was changed, is old, or was signed by another is not.
func TestVerify(t *testing.T) {
	t.Parallel()
	secret, other := webhook.NewSecret(), webhook.NewSecret()
	now := time.Unix(1_795_967_164, 0)
	body := []byte(`{"type":"paid"}`)
	signed := func(secret string, at time.Time, body []byte) http.Header {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := signer.Sign("msg_1", at, body)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		header.Set("webhook-id", "msg_1")
		header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
		header.Set("webhook-signature", signature)
		return header
	}
	for name, at := range map[string]struct {
		header  http.Header
		secrets []string
		genuine bool
	}{
		"signed":                       {signed(secret, now, body), []string{secret}, true},
		"at the edge before":           {signed(secret, now.Add(-webhook.Tolerance), body), []string{secret}, true},
		"at the edge after":            {signed(secret, now.Add(webhook.Tolerance), body), []string{secret}, true},
		"with the former secret":       {signed(secret, now, body), []string{other, secret}, true},
		"old":                          {signed(secret, now.Add(-webhook.Tolerance-time.Second), body), []string{secret}, false},
		"of the future":                {signed(secret, now.Add(webhook.Tolerance+time.Second), body), []string{secret}, false},
		"by another":                   {signed(other, now, body), []string{secret}, false},
		"of another body":              {signed(secret, now, []byte(`{}`)), []string{secret}, false},
		"unsigned":                     {http.Header{}, []string{secret}, false},
		"with no secret to hold it to": {signed(secret, now, body), nil, false},
	} {
		err := webhook.Verify(at.secrets, at.header, body, now)
		if at.genuine && err != nil || !at.genuine && !errors.Is(err, webhook.ErrNotGenuine) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	stamped := signed(secret, now, body)
	stamped.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)) // the instant is signed, too
	if err := webhook.Verify([]string{secret}, stamped, body, now); !errors.Is(err, webhook.ErrNotGenuine) {
		t.Errorf("with another instant: got %v", err)
	}
}
