package sms

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
)

// Twilio is a gateway that speaks Twilio's API of 2010-04-01.
type Twilio struct {
	base     string // https://api.twilio.com
	sid      string
	token    string
	from     string
	service  string
	exchange *exchange
}

func parseTwilio(u *url.URL) (Gateway, error) {
	options, err := only(u.Query(), "from", "messaging_service")
	if err != nil {
		return nil, err
	}
	scheme := "https"
	if u.Scheme == "twilio+http" {
		scheme = "http"
	}
	t := &Twilio{base: scheme + "://" + u.Host, from: options["from"], service: options["messaging_service"], exchange: newExchange()}
	if u.User != nil {
		t.sid = u.User.Username()
		t.token, _ = u.User.Password()
		t.exchange.secret = t.token
	}
	switch {
	case t.sid == "" || t.token == "":
		return nil, problem.Invalid("sms_url_login", problem.Facts{"form": "twilio://SID:TOKEN@api.twilio.com?from=…"})
	case (t.from == "") == (t.service == ""):
		return nil, problem.Invalid("sms_url_sender", problem.Facts{"options": "from, messaging_service"})
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return nil, problem.Invalid("sms_url_wrong", nil)
	}
	return t, nil
}

// String is for people and logs: it has no token.
func (t *Twilio) String() string { return "twilio " + t.base }

// GoString keeps the token out of %#v.
func (t *Twilio) GoString() string { return t.String() }

// Idempotent is false: Twilio knows no key for repeats.
func (t *Twilio) Idempotent() bool { return false }

// Send posts one message.
func (t *Twilio) Send(ctx context.Context, m Message) Outcome {
	if wrong := m.check(); wrong != nil {
		return *wrong
	}
	form := url.Values{"To": {m.To}, "Body": {m.Text}}
	if t.from != "" {
		form.Set("From", t.from)
	} else {
		form.Set("MessagingServiceSid", t.service)
	}
	if m.Callback != "" {
		form.Set("StatusCallback", m.Callback)
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	header.Set("Authorization", basic(t.sid, t.token))
	target := t.base + "/2010-04-01/Accounts/" + url.PathEscape(t.sid) + "/Messages.json"
	a, outcome := t.exchange.post(ctx, target, header, form.Encode())
	if outcome != nil {
		return *outcome
	}
	return t.judge(a)
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func (t *Twilio) judge(a answer) Outcome {
	fields, understood := a.fields()
	if a.status/100 == 2 {
		if sid := text(fields, "sid"); understood && sid != "" {
			return Outcome{State: Sent, GatewayID: sid}
		}
		return Outcome{State: Unknown, Reason: ReasonNonsense, Words: a.words()}
	}
	o := Outcome{Words: a.words(), RetryAfter: a.retryAfter}
	o.State, o.Reason = a.state()
	if code := text(fields, "code"); understood && code != "" {
		o.Words = remote.Words(code + " " + text(fields, "message"))
		if state, known := twilioCodes[code]; known && a.status/100 == 4 {
			o.State = state
		}
	}
	if o.State != ChannelDown {
		o.Reason = ReasonGateway
	}
	return o
}

// twilioCodes are errors that come with the status of a bad request and concern more than the
// message, or nothing but the moment (https://www.twilio.com/docs/api/errors).
var twilioCodes = map[string]State{
	"14107": Deferred,    // too many messages
	"20429": Deferred,    // too many requests
	"21611": Deferred,    // the queue of this sender is full
	"20003": ChannelDown, // the account or its token is wrong
	"20005": ChannelDown, // the account is not active
	"21212": ChannelDown, // the sender is no number
	"21603": ChannelDown, // a sender is wanted
	"21606": ChannelDown, // the sender is not the account's
	"21659": ChannelDown, // the sender is not Twilio's
	"21660": ChannelDown, // the sender is another account's
	"21661": ChannelDown, // the sender sends no messages
	"21701": ChannelDown, // there is no such messaging service
	"21703": ChannelDown, // the messaging service has no sender
	"30002": ChannelDown, // the account is suspended
	"63038": ChannelDown, // the account's messages of the day are used up
	// Refused for their number alone, though their status reads as a refusal of the account.
	"21408": Refused, // no permission for this region
	"21610": Refused, // the person asked for no more messages
}

// ErrNotGenuine says that a receipt does not come from the gateway.
var ErrNotGenuine = errors.New("the receipt is not signed by the gateway")

const callbackMax = 64 << 10 // bytes

// ParseCallback reads a status callback: a form, signed with the account's token over the address
// and all of its fields.
func (t *Twilio) ParseCallback(r *http.Request, publicURL string) (Receipt, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, callbackMax)
	if err := r.ParseForm(); err != nil {
		return Receipt{}, fmt.Errorf("read a receipt: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Twilio-Signature"))
	if err != nil || !hmac.Equal(signature, TwilioSignature(t.token, publicURL, r.PostForm)) {
		return Receipt{}, ErrNotGenuine
	}
	receipt := Receipt{GatewayID: remote.Words(r.PostForm.Get("MessageSid")), AddressSigned: true, Words: remote.Words(r.PostForm.Get("ErrorCode") + " " + r.PostForm.Get("ErrorMessage"))}
	switch r.PostForm.Get("MessageStatus") {
	case "delivered", "read":
		receipt.State = ReceiptDelivered
	case "undelivered", "failed":
		receipt.State = ReceiptFailed
	}
	return receipt, nil
}

// TwilioSignature signs a callback as Twilio documents: HMAC-SHA1 over the address, followed by
// each field's name and value in the order of their names.
func TwilioSignature(token, address string, form url.Values) []byte {
	var signed strings.Builder
	signed.WriteString(address)
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Compact(slices.Sorted(slices.Values(form[name])))
		for _, value := range values {
			signed.WriteString(name + value)
		}
	}
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(signed.String()))
	return mac.Sum(nil)
}
