package sms

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// Generic is any gateway that takes a message as JSON. Its receipts are JSON too,
// {"id":…,"status":"delivered"|"failed",…,"error":…}, with the header
// X-Signature: sha256=<hex of the HMAC-SHA256 of the body under the shared secret>.
type Generic struct {
	name          string
	target        string
	authorization string
	fields        map[string]string // our name of a field: the gateway's
	sender        string
	secret        string
	idempotent    bool
	exchange      *exchange
}

// SignatureHeader carries the signature of a receipt of the generic gateway.
const SignatureHeader = "X-Signature"

func parseGeneric(u *url.URL) (Gateway, error) {
	own, err := url.ParseQuery(u.EscapedFragment())
	if err != nil {
		return nil, problem.Invalid("sms_url_wrong", nil)
	}
	options, err := only(own, "to", "text", "reference", "id", "callback", "sender", "sender_field", "idempotent", "secret")
	if err != nil {
		return nil, err
	}
	g := &Generic{sender: options["sender"], secret: options["secret"], exchange: newExchange()}
	switch options["idempotent"] {
	case "yes":
		g.idempotent = true
	case "", "no":
	default:
		return nil, problem.Invalid("sms_url_option", problem.Facts{"options": "idempotent=yes, idempotent=no"})
	}
	g.fields = map[string]string{"to": "to", "text": "text", "reference": "reference", "id": "id", "callback": "callback", "sender_field": "from"}
	for name := range g.fields {
		if other := options[name]; other != "" {
			g.fields[name] = other
		}
	}
	if u.User != nil {
		g.authorization, g.exchange.secret = "Bearer "+u.User.Username(), u.User.Username()
		if password, given := u.User.Password(); given {
			g.authorization, g.exchange.secret = basic(u.User.Username(), password), password
		}
	}
	bare := *u
	bare.User, bare.Fragment, bare.RawFragment = nil, "", ""
	g.name, g.target = "gateway "+u.Scheme+"://"+u.Host, bare.String()
	return g, nil
}

// String is for people and logs: paths and queries of gateways hold tokens, too.
func (g *Generic) String() string { return g.name }

// GoString keeps the token out of %#v.
func (g *Generic) GoString() string { return g.String() }

// Idempotent tells whether the gateway promised that a repeated key sends nothing twice.
func (g *Generic) Idempotent() bool { return g.idempotent }

// Send posts one message.
func (g *Generic) Send(ctx context.Context, m Message) Outcome {
	if wrong := m.check(); wrong != nil {
		return *wrong
	}
	fields := map[string]string{g.fields["to"]: m.To, g.fields["text"]: m.Text, g.fields["reference"]: m.Key}
	if g.sender != "" {
		fields[g.fields["sender_field"]] = g.sender
	}
	if m.Callback != "" {
		fields[g.fields["callback"]] = m.Callback
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return Outcome{State: Refused, Reason: ReasonText, Words: remote.Words(err.Error())}
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	header.Set("Idempotency-Key", m.Key)
	if g.authorization != "" {
		header.Set("Authorization", g.authorization)
	}
	a, outcome := g.exchange.post(ctx, g.target, header, string(body))
	if outcome != nil {
		return *outcome
	}
	return g.judge(a)
}

func (g *Generic) judge(a answer) Outcome {
	fields, understood := a.fields()
	if a.status/100 == 2 {
		if id := text(fields, g.fields["id"]); understood && id != "" {
			return Outcome{State: Sent, GatewayID: id}
		}
		return Outcome{State: Unknown, Reason: ReasonNonsense, Words: a.words()}
	}
	o := Outcome{Words: a.words(), RetryAfter: a.retryAfter}
	o.State, o.Reason = a.state()
	return o
}

// ParseCallback reads a receipt. Without a shared secret none is genuine.
func (g *Generic) ParseCallback(r *http.Request, _ string) (Receipt, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, callbackMax))
	if err != nil {
		return Receipt{}, fmt.Errorf("read a receipt: %w", err)
	}
	signature, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get(SignatureHeader), "sha256="))
	if err != nil || g.secret == "" || !hmac.Equal(signature, GenericSignature(g.secret, body)) {
		return Receipt{}, ErrNotGenuine
	}
	fields, understood := answer{body: body}.fields()
	if !understood {
		return Receipt{}, fmt.Errorf("read a receipt: it is no JSON object")
	}
	receipt := Receipt{GatewayID: text(fields, g.fields["id"]), Key: text(fields, g.fields["reference"]), Words: text(fields, "error")}
	switch strings.ToLower(text(fields, "status")) {
	case "delivered":
		receipt.State = ReceiptDelivered
	case "failed", "undelivered", "rejected", "expired":
		receipt.State = ReceiptFailed
	}
	return receipt, nil
}

// GenericSignature signs the body of a receipt of the generic gateway.
func GenericSignature(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
