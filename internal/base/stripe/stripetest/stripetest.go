// Package stripetest stands in for Stripe: a local server that speaks the parts of its API that are used here (Checkout
// Sessions, refunds, disputes, idempotency keys, errors) and signs events as Stripe does. What a test looks at is what it
// received.
package stripetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"usher/internal/base/stripe"
)

// Key and Secret are those that the server takes, and signs with.
const (
	Key    = "sk_test_stand_in"
	Secret = "whsec_stand_in"
)

// Server is Stripe for one test.
type Server struct {
	URL string

	t        testing.TB
	mu       sync.Mutex
	count    int
	now      func() time.Time
	sessions []*session
	intents  map[string]*intent
	refunds  []map[string]any
	answers  map[string]answer // by idempotency key
	received []Request
	faults   []Fault
	after    func(path string) // called when a call is done, before it is answered
	pending  bool              // refunds stay pending
}

type session struct {
	id, reference, currency, status, intent string
	amount, created, expires                int64
	paid                                    bool
}

type intent struct {
	id, currency string
	amount, back int64
}

type answer struct {
	form   string
	status int
	body   any
}

// Request is a call that changes something, as it was received.
type Request struct {
	Path string
	Key  string // idempotency
	Form url.Values
}

// Fault is what goes wrong with the next call that changes something. What is refused, or breaks inside, stays so under its key, as at
// Stripe, until that forgets it.
type Fault struct {
	Status int    // that is answered; 0: the line breaks
	Done   bool   // the call is done all the same
	Words  string // of the error
}

// New starts the server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, now: time.Now, intents: map[string]*intent{}, answers: map[string]answer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/checkout/sessions", s.changing(s.makeSession))
	mux.HandleFunc("POST /v1/checkout/sessions/{id}/expire", s.changing(s.expireSession))
	mux.HandleFunc("POST /v1/refunds", s.changing(s.makeRefund))
	mux.HandleFunc("GET /v1/checkout/sessions/{id}", s.reading(s.oneSession))
	mux.HandleFunc("GET /v1/checkout/sessions", s.reading(s.listSessions))
	mux.HandleFunc("GET /v1/refunds", s.reading(s.listRefunds))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// SetNow sets the server's clock.
func (s *Server) SetNow(now time.Time) { s.lock(func() { s.now = func() time.Time { return now } }) }

// Fail has the next calls that change something go wrong, in this order.
func (s *Server) Fail(faults ...Fault) { s.lock(func() { s.faults = append(s.faults, faults...) }) }

// After has f called when a call was done and before it is answered.
func (s *Server) After(f func(path string)) { s.lock(func() { s.after = f }) }

// HoldRefunds has refunds stay pending, as those of some banks do.
func (s *Server) HoldRefunds() { s.lock(func() { s.pending = true }) }

// ForgetKeys is what Stripe does with idempotency keys after a day.
func (s *Server) ForgetKeys() { s.lock(func() { s.answers = map[string]answer{} }) }

// Received are the calls that change something, repeats included.
func (s *Server) Received(path string) (found []Request) {
	s.lock(func() {
		for _, r := range s.received {
			if r.Path == path {
				found = append(found, r)
			}
		}
	})
	return found
}

// Sessions are the ids of the pages that were made, in their order.
func (s *Server) Sessions() (ids []string) {
	s.lock(func() {
		for _, one := range s.sessions {
			ids = append(ids, one.id)
		}
	})
	return ids
}

// GivenBack is how much of a payment went back, in Stripe's units.
func (s *Server) GivenBack(paymentIntent string) (units int64) {
	s.lock(func() { units = s.intents[paymentIntent].back })
	return units
}

// Status is where a page stands: open, complete, expired.
func (s *Server) Status(id string) (status string) {
	s.lock(func() { status = s.session(id).status })
	return status
}

// Pay is what a buyer does on a page. It gives the event that says so, and Stripe's name of the payment.
func (s *Server) Pay(id string) (event []byte, paymentIntent string) {
	s.t.Helper()
	s.lock(func() {
		one := s.session(id)
		if one == nil || one.status != "open" {
			s.t.Errorf("nobody can pay on the page %s", id)
			return
		}
		paid := &intent{id: s.id("pi"), currency: one.currency, amount: one.amount}
		s.intents[paid.id] = paid
		one.status, one.paid, one.intent = "complete", true, paid.id
		event, paymentIntent = s.event("checkout.session.completed", one.object()), paid.id
	})
	return event, paymentIntent
}

// Expire is what time does to a page.
func (s *Server) Expire(id string) (event []byte) {
	s.lock(func() {
		one := s.session(id)
		one.status = "expired"
		event = s.event("checkout.session.expired", one.object())
	})
	return event
}

// GiveBack is a refund that somebody makes in Stripe's own screen.
func (s *Server) GiveBack(paymentIntent string, units int64) (event []byte) {
	s.lock(func() {
		made, refusal := s.refund(paymentIntent, units, nil)
		if refusal != "" {
			s.t.Errorf("give %d of %s back: %s", units, paymentIntent, refusal)
		}
		event = s.event("refund.created", made)
	})
	return event
}

// FailRefund is what a bank does to a refund that Stripe had called done.
func (s *Server) FailRefund(id string) (event []byte) {
	s.lock(func() {
		for _, made := range s.refunds {
			if made["id"] == id {
				made["status"], made["failure_reason"] = "failed", "expired_or_canceled_card"
				s.intents[made["payment_intent"].(string)].back -= made["amount"].(int64)
				event = s.event("refund.failed", made)
			}
		}
	})
	return event
}

// Settle ends a refund that was pending.
func (s *Server) Settle(id string) (event []byte) {
	s.lock(func() {
		for _, made := range s.refunds {
			if made["id"] == id {
				made["status"] = "succeeded"
				event = s.event("refund.updated", made)
			}
		}
	})
	return event
}

// Refunds are the ids of the refunds that were made.
func (s *Server) Refunds() (ids []string) {
	s.lock(func() {
		for _, made := range s.refunds {
			ids = append(ids, made["id"].(string))
		}
	})
	return ids
}

// Dispute is a bank that asks a payment back; fee is what Stripe takes for it. The status is needs_response, won or lost.
func (s *Server) Dispute(id, paymentIntent, status string, units, fee int64) (event []byte) {
	s.lock(func() {
		kind := "charge.dispute.created"
		if status == "won" || status == "lost" {
			kind = "charge.dispute.closed"
		}
		of := s.intents[paymentIntent]
		event = s.event(kind, map[string]any{
			"id": id, "object": "dispute", "amount": units, "currency": of.currency, "payment_intent": paymentIntent, "status": status,
			"created":              s.now().Unix(),
			"balance_transactions": []any{map[string]any{"id": "txn_1", "object": "balance_transaction", "amount": -units, "fee": fee, "currency": of.currency}},
		})
	})
	return event
}

// Notify posts an event to an address, signed at an instant, and gives the status of the answer.
func Notify(ctx context.Context, address string, event []byte, at time.Time) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(event))
	if err != nil {
		return 0, fmt.Errorf("post an event: %w", err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", stripe.Signature(event, Secret, at))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post an event: %w", err)
	}
	return response.StatusCode, response.Body.Close()
}

// Header is what Stripe sends beside an event.
func Header(event []byte, at time.Time) http.Header {
	return http.Header{"Stripe-Signature": {stripe.Signature(event, Secret, at)}}
}

func (s *Server) lock(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Server) id(prefix string) string {
	s.count++
	return prefix + "_test_" + strconv.Itoa(s.count)
}

func (s *Server) event(kind string, object any) []byte {
	body, err := json.Marshal(map[string]any{
		"id": s.id("evt"), "object": "event", "type": kind, "created": s.now().Unix(), "api_version": "2026-02-25.clover",
		"data": map[string]any{"object": object},
	})
	if err != nil {
		s.t.Error(err)
	}
	return body
}

func (s *Server) session(id string) *session {
	for _, one := range s.sessions {
		if one.id == id {
			return one
		}
	}
	return nil
}

func (o *session) object() map[string]any {
	object := map[string]any{
		"id": o.id, "object": "checkout.session", "client_reference_id": o.reference, "status": o.status, "payment_status": "unpaid",
		"amount_total": o.amount, "currency": o.currency, "created": o.created, "expires_at": o.expires, "mode": "payment", "url": nil,
	}
	if o.status == "open" {
		object["url"] = "https://checkout.stripe.example/c/pay/" + o.id
	}
	if o.paid {
		object["payment_status"], object["payment_intent"] = "paid", o.intent
	}
	return object
}

// changing wraps a call that changes something: key, idempotency, faults.
func (s *Server) changing(do func(r *http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !authorised(w, r) {
			return
		}
		if err := r.ParseForm(); err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		key := r.Header.Get("Idempotency-Key")
		s.received = append(s.received, Request{r.URL.Path, key, r.PostForm})
		var fault *Fault
		if len(s.faults) > 0 {
			fault, s.faults = &s.faults[0], s.faults[1:]
		}
		var a answer
		switch {
		case fault == nil || fault.Done:
			a = s.once(r, key, do)
		case slices.Contains(keptStatuses, fault.Status):
			s.once(r, key, func(*http.Request) (int, any) { return fault.Status, failure("api_error", fault.Words) })
		}
		after := s.after
		s.mu.Unlock()
		if after != nil {
			after(r.URL.Path)
		}
		switch {
		case fault == nil:
			write(w, a.status, a.body)
		case fault.Status == 0:
			panic(http.ErrAbortHandler)
		default:
			write(w, fault.Status, failure("api_error", fault.Words))
		}
	}
}

// keptStatuses are those with which a call is refused once it was begun: its key has this answer from then on.
var keptStatuses = []int{http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound, http.StatusInternalServerError}

// once does a call, or repeats the answer that the key had.
func (s *Server) once(r *http.Request, key string, do func(r *http.Request) (int, any)) answer {
	form := r.URL.Path + "?" + r.PostForm.Encode()
	if known, is := s.answers[key]; is && key != "" {
		if known.form != form {
			return answer{status: http.StatusBadRequest, body: failure("idempotency_error", "Keys for idempotent requests can only be used with the same parameters they were first used with.")}
		}
		return known
	}
	status, body := do(r)
	a := answer{form, status, body}
	if key != "" {
		s.answers[key] = a
	}
	return a
}

func (s *Server) reading(do func(r *http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !authorised(w, r) {
			return
		}
		s.mu.Lock()
		status, body := do(r)
		s.mu.Unlock()
		write(w, status, body)
	}
}

func authorised(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer "+Key {
		return true
	}
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	write(w, http.StatusUnauthorized, failure("invalid_request_error", "Invalid API Key provided: "+given))
	return false
}

func failure(kind, words string) map[string]any {
	return map[string]any{"error": map[string]any{"type": kind, "message": words}}
}

func invalid(words string) (int, any) {
	return http.StatusBadRequest, failure("invalid_request_error", words)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever is gone gets nothing
}

// unit refuses what Stripe refuses of an amount.
func unit(amount int64, currency string) string {
	switch {
	case amount <= 0:
		return "Invalid positive integer"
	case slices.Contains([]string{"bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"}, currency) && amount%10 != 0:
		return "Amounts in this currency must be rounded to the nearest ten"
	case slices.Contains([]string{"isk", "ugx"}, currency) && amount%100 != 0:
		return "Amounts in this currency must be evenly divisible by 100"
	case currency != strings.ToLower(currency) || len(currency) != 3:
		return "Invalid currency"
	}
	return ""
}

func (s *Server) makeSession(r *http.Request) (int, any) {
	amount, err := strconv.ParseInt(r.PostForm.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	if err != nil {
		return invalid("Invalid integer: unit_amount")
	}
	currency := r.PostForm.Get("line_items[0][price_data][currency]")
	if refusal := unit(amount, currency); refusal != "" {
		return invalid(refusal)
	}
	expires, err := strconv.ParseInt(r.PostForm.Get("expires_at"), 10, 64)
	left := time.Unix(expires, 0).Sub(s.now())
	if err != nil || left < stripe.PageLeast || left > stripe.PageMost {
		return invalid("The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.")
	}
	if r.PostForm.Get("mode") != "payment" || r.PostForm.Get("success_url") == "" || r.PostForm.Get("line_items[0][price_data][product_data][name]") == "" {
		return invalid("Missing required param")
	}
	one := &session{
		id: s.id("cs"), reference: r.PostForm.Get("client_reference_id"), currency: currency, status: "open", amount: amount,
		created: s.now().Unix(), expires: expires,
	}
	s.sessions = append(s.sessions, one)
	return http.StatusOK, one.object()
}

func (s *Server) expireSession(r *http.Request) (int, any) {
	one := s.session(r.PathValue("id"))
	if one == nil {
		return http.StatusNotFound, failure("invalid_request_error", "No such checkout.session")
	}
	if one.status != "open" {
		return invalid("Only Checkout Sessions with a status in [\"open\"] can be expired.")
	}
	one.status = "expired"
	return http.StatusOK, one.object()
}

func (s *Server) oneSession(r *http.Request) (int, any) {
	one := s.session(r.PathValue("id"))
	if one == nil {
		return http.StatusNotFound, failure("invalid_request_error", "No such checkout.session")
	}
	return http.StatusOK, one.object()
}

func (s *Server) listSessions(r *http.Request) (int, any) {
	from, _ := strconv.ParseInt(r.URL.Query().Get("created[gte]"), 10, 64)
	until, _ := strconv.ParseInt(r.URL.Query().Get("created[lte]"), 10, 64)
	data := []any{}
	for _, one := range slices.Backward(s.sessions) { // the latest first, as Stripe does
		if one.created >= from && one.created <= until {
			data = append(data, one.object())
		}
	}
	return http.StatusOK, map[string]any{"object": "list", "url": "/v1/checkout/sessions", "has_more": false, "data": data}
}

func (s *Server) makeRefund(r *http.Request) (int, any) {
	amount, err := strconv.ParseInt(r.PostForm.Get("amount"), 10, 64)
	if err != nil {
		return invalid("Invalid integer: amount")
	}
	metadata := map[string]any{}
	for name, values := range r.PostForm {
		if key, is := strings.CutPrefix(name, "metadata["); is {
			metadata[strings.TrimSuffix(key, "]")] = values[0]
		}
	}
	made, refusal := s.refund(r.PostForm.Get("payment_intent"), amount, metadata)
	if refusal != "" {
		return invalid(refusal)
	}
	return http.StatusOK, made
}

func (s *Server) refund(paymentIntent string, amount int64, metadata map[string]any) (map[string]any, string) {
	of := s.intents[paymentIntent]
	if of == nil {
		return nil, "No such payment_intent"
	}
	if refusal := unit(amount, of.currency); refusal != "" {
		return nil, refusal
	}
	if of.back+amount > of.amount {
		return nil, "Refund amount is greater than unrefunded amount on charge"
	}
	of.back += amount
	status := "succeeded"
	if s.pending {
		status = "pending"
	}
	made := map[string]any{
		"id": s.id("re"), "object": "refund", "amount": amount, "currency": of.currency, "payment_intent": paymentIntent, "status": status,
		"created": s.now().Unix(), "metadata": metadata,
	}
	s.refunds = append(s.refunds, made)
	return made, ""
}

func (s *Server) listRefunds(r *http.Request) (int, any) {
	data := []any{}
	for _, made := range slices.Backward(s.refunds) {
		if made["payment_intent"] == r.URL.Query().Get("payment_intent") {
			data = append(data, made)
		}
	}
	return http.StatusOK, map[string]any{"object": "list", "url": "/v1/refunds", "has_more": false, "data": data}
}
