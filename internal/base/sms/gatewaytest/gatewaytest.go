// Package gatewaytest is an SMS gateway for tests. It speaks Twilio's API and the generic one, does
// what real gateways do at bad moments, remembers what it took, and posts signed receipts.
package gatewaytest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"usher/internal/base/sms"
)

// TB is what of a test this package uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// The account that the gateway knows.
const (
	SID    = "AC00000000000000000000000000000000"
	Token  = "0123456789abcdef"
	Secret = "shared-secret"
)

// Message is a message that the gateway took.
type Message struct {
	ID       string
	From     string
	To       string
	Text     string
	Key      string // of the generic form
	Callback string
}

// Act is what the gateway does with a message.
type Act struct {
	Status     int    // of the answer; 0: 201, and the message is taken
	Body       string // of the answer; empty: the gateway's own
	Code       int    // of Twilio's error
	RetryAfter string
	Location   string
	Take       bool // takes the message, whatever it answers
	Hang       bool // does not answer
	Cut        bool // ends the connection without an answer
}

// Gateway is a running gateway.
type Gateway struct {
	server *httptest.Server
	ending chan struct{}

	mu       sync.Mutex
	act      func(m Message, try int) Act
	taken    []Message
	keys     map[string]string
	tries    map[string]int
	requests int
}

// Start starts a gateway that ends with the test. act decides what is done with a message at its
// try, counted for each number from 1; nil: it is taken.
func Start(t TB, act func(m Message, try int) Act) *Gateway {
	t.Helper()
	g := &Gateway{ending: make(chan struct{}), keys: map[string]string{}, tries: map[string]int{}}
	g.Follow(act)
	routes := http.NewServeMux()
	routes.HandleFunc("POST /2010-04-01/Accounts/{sid}/Messages.json", g.twilio)
	routes.HandleFunc("POST /send", g.generic)
	g.server = httptest.NewServer(routes)
	t.Cleanup(func() {
		close(g.ending)
		g.server.Close()
	})
	return g
}

// Follow makes the gateway act otherwise from now on.
func (g *Gateway) Follow(act func(m Message, try int) Act) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if act == nil {
		act = func(Message, int) Act { return Act{} }
	}
	g.act = act
}

// Refuse refuses numbers as Twilio does, by its error code: 21211 no number, 21610 unsubscribed …
func Refuse(numbers map[string]int) func(Message, int) Act {
	return func(m Message, _ int) Act {
		if code := numbers[m.To]; code != 0 {
			return Act{Status: http.StatusBadRequest, Code: code}
		}
		return Act{}
	}
}

// Always does the same with every message.
func Always(act Act) func(Message, int) Act {
	return func(Message, int) Act { return act }
}

// TwilioURL is the address of the gateway that sms.ParseURL reads.
func (g *Gateway) TwilioURL() string {
	return "twilio+http://" + SID + ":" + Token + "@" + g.host() + "?from=%2B15005550006"
}

// GenericURL is the same in the generic form, which takes idempotency keys.
func (g *Gateway) GenericURL() string {
	return "http://" + Token + "@" + g.host() + "/send?channel=7#idempotent=yes&sender=USHER&secret=" + Secret
}

func (g *Gateway) host() string { return strings.TrimPrefix(g.server.URL, "http://") }

// Messages are those that the gateway took, in their order.
func (g *Gateway) Messages() []Message {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.taken)
}

// Requests says how many came, whatever became of them.
func (g *Gateway) Requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests
}

func (g *Gateway) twilio(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != SID || password != Token || r.PathValue("sid") != SID {
		answerTwilioError(w, http.StatusUnauthorized, 20003, "Authenticate")
		return
	}
	if err := r.ParseForm(); err != nil {
		answerTwilioError(w, http.StatusBadRequest, 20001, "Unreadable")
		return
	}
	form := r.PostForm
	g.handle(w, Message{
		From: form.Get("From") + form.Get("MessagingServiceSid"), To: form.Get("To"), Text: form.Get("Body"), Callback: form.Get("StatusCallback"),
	}, true)
}

func (g *Gateway) generic(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Token || r.URL.Query().Get("channel") != "7" {
		http.Error(w, `{"error":"unauthorized"}`, http.StatusUnauthorized)
		return
	}
	var fields struct{ To, Text, Reference, From, Callback string }
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
		http.Error(w, `{"error":"unreadable"}`, http.StatusBadRequest)
		return
	}
	g.handle(w, Message{From: fields.From, To: fields.To, Text: fields.Text, Key: r.Header.Get("Idempotency-Key"), Callback: fields.Callback}, false)
}

func (g *Gateway) handle(w http.ResponseWriter, m Message, twilio bool) {
	act, id := g.decide(m)
	if act.Cut {
		cut(w)
		return
	}
	if act.Hang {
		<-g.ending
		return
	}
	if act.RetryAfter != "" {
		w.Header().Set("Retry-After", act.RetryAfter)
	}
	if act.Location != "" {
		w.Header().Set("Location", act.Location)
	}
	switch {
	case act.Status == 0 && act.Body == "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"sid":%q,"id":%q,"status":"queued","error_code":null}`, id, id)
	case act.Body == "" && twilio:
		answerTwilioError(w, act.Status, act.Code, "refused")
	default:
		w.WriteHeader(max(act.Status, http.StatusOK))
		fmt.Fprint(w, act.Body)
	}
}

func cut(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// decide asks what to do, and takes the message where it is taken; a key that was seen takes nothing.
func (g *Gateway) decide(m Message) (Act, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	g.tries[m.To]++
	act := g.act(m, g.tries[m.To])
	if act.Status != 0 && !act.Take || (act.Cut || act.Hang) && !act.Take {
		return act, ""
	}
	if id := g.keys[m.Key]; m.Key != "" && id != "" {
		return act, id
	}
	m.ID = fmt.Sprintf("SM%032d", len(g.taken)+1)
	g.taken = append(g.taken, m)
	g.keys[m.Key] = m.ID
	return act, m.ID
}

func answerTwilioError(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%d,"message":%q,"more_info":"https://www.twilio.com/docs/errors/%d","status":%d}`, code, message, code, status)
}

// TwilioReceipt is the request with which Twilio tells what became of a message.
func TwilioReceipt(t TB, m Message, status string, code int) *http.Request {
	t.Helper()
	form := url.Values{"MessageSid": {m.ID}, "AccountSid": {SID}, "MessageStatus": {status}, "To": {m.To}}
	if code != 0 {
		form.Set("ErrorCode", fmt.Sprint(code))
	}
	request := post(t, m.Callback, form.Encode(), "application/x-www-form-urlencoded")
	request.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(sms.TwilioSignature(Token, m.Callback, form)))
	return request
}

// GenericReceipt is the request with which the generic gateway tells it.
func GenericReceipt(t TB, m Message, status, words string) *http.Request {
	t.Helper()
	body, err := json.Marshal(map[string]string{"id": m.ID, "status": status, "error": words})
	if err != nil {
		t.Fatalf("write a receipt: %v", err)
	}
	request := post(t, m.Callback, string(body), "application/json")
	request.Header.Set(sms.SignatureHeader, "sha256="+hex.EncodeToString(sms.GenericSignature(Secret, body)))
	return request
}

func post(t TB, address, body, kind string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, io.NopCloser(bytes.NewReader([]byte(body))))
	if err != nil {
		t.Fatalf("write a receipt: %v", err)
	}
	request.Header.Set("Content-Type", kind)
	return request
}

// Post sends a receipt to where it goes, and gives the status of the answer.
func Post(t TB, receipt *http.Request) int {
	t.Helper()
	response, err := http.DefaultClient.Do(receipt)
	if err != nil {
		t.Fatalf("post a receipt: %v", err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
