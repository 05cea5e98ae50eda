// Package stripe speaks to Stripe: pages on which somebody pays (Checkout), money that goes back, and the signed events by
// which Stripe says what happened. It decides in which units amounts travel and what an answer means; what a payment is for, and
// what is done about it, is decided by its caller.
package stripe

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/webhook"

	"usher/internal/base/remote"
)

// Bounds of the exchange.
const (
	answerTimeout = 20 * time.Second // of one call altogether
	listMost      = 1000             // objects that are looked through for one
	pageSize      = 100              // Stripe gives no more at once
)

// PageLeast is how long a page lasts at least after it was made, and PageMost at most (Stripe, expires_at of a Checkout Session).
const (
	PageLeast = 30 * time.Minute
	PageMost  = 24 * time.Hour
)

// Tolerance is how far the instant of an event's signature may lie from ours, as in Stripe's own libraries.
const Tolerance = webhook.DefaultTolerance

// ErrNotGenuine says that an event was not signed with one of the secrets, or not lately.
var ErrNotGenuine = errors.New("the signature is not one of the secret, or it is too old")

// Failure is a call that did not do what it was asked. Nothing is known of what Stripe did, unless it is Final.
type Failure struct {
	Final bool   // Stripe refuses it, and would again
	Words string // of Stripe or of the network, for a person, without the key
}

func (f *Failure) Error() string { return "stripe: " + f.Words }

// Client calls Stripe with one account's key.
type Client struct {
	api    *sdk.Client
	key    string
	client *http.Client
}

// Open prepares calls; url is empty for Stripe's own address. Nothing is connected yet.
func Open(key, url string) *Client {
	c := &Client{key: key, client: &http.Client{Timeout: answerTimeout}}
	config := &sdk.BackendConfig{
		HTTPClient:        c.client,
		MaxNetworkRetries: sdk.Int64(0), // who calls repeats, with the same idempotency key
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull},
		EnableTelemetry:   sdk.Bool(false),
	}
	if url != "" {
		config.URL = sdk.String(url)
	}
	c.api = sdk.NewClient(key, sdk.WithBackends(sdk.NewBackendsWithConfig(config)))
	return c
}

// Close gives up the connections that are idle.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Page is a Checkout Session: a page of Stripe's on which one sum is paid.
type Page struct {
	ID            string
	URL           string // empty once it ended
	Reference     string // client_reference_id: what its maker called it
	Status        string // open, complete, expired
	Paid          bool   // the money came in
	PaymentIntent string // Stripe's name of the payment; empty before there is one
	Amount        int64  // in Stripe's units
	Currency      string // ISO 4217
	CreatedAt     time.Time
}

// NewPage says what page is wanted.
type NewPage struct {
	IdempotencyKey string // the same again gives the same page
	Reference      string
	Title          string // what is paid for
	Amount         int64  // in Stripe's units: ToUnits
	Currency       string // ISO 4217
	Email          string
	Locale         string
	ExpiresAt      time.Time // PageLeast to PageMost from now
	SuccessURL     string
	CancelURL      string
}

// MakePage makes a page.
func (c *Client) MakePage(ctx context.Context, p NewPage) (Page, error) {
	params := &sdk.CheckoutSessionCreateParams{
		Mode:              sdk.String(string(sdk.CheckoutSessionModePayment)),
		ClientReferenceID: sdk.String(p.Reference),
		ExpiresAt:         sdk.Int64(p.ExpiresAt.Unix()),
		SuccessURL:        sdk.String(p.SuccessURL),
		Locale:            sdk.String(p.Locale),
		LineItems: []*sdk.CheckoutSessionCreateLineItemParams{{
			Quantity: sdk.Int64(1),
			PriceData: &sdk.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: sdk.String(strings.ToLower(p.Currency)), UnitAmount: sdk.Int64(p.Amount),
				ProductData: &sdk.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: sdk.String(p.Title)},
			},
		}},
	}
	if p.CancelURL != "" {
		params.CancelURL = sdk.String(p.CancelURL)
	}
	if p.Email != "" {
		params.CustomerEmail = sdk.String(p.Email)
	}
	params.SetIdempotencyKey(p.IdempotencyKey)
	session, err := c.api.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return Page{}, c.failure(err)
	}
	return pageOf(session), nil
}

// FindPage reads a page by its id.
func (c *Client) FindPage(ctx context.Context, id string) (Page, error) {
	session, err := c.api.V1CheckoutSessions.Retrieve(ctx, id, nil)
	if err != nil {
		return Page{}, c.failure(err)
	}
	return pageOf(session), nil
}

// FindPageByReference looks for the page of a reference among those that were made between two instants, for who died before
// its id was kept. Where more than a thousand were made in that time it says that nothing is known.
func (c *Client) FindPageByReference(ctx context.Context, reference string, from, until time.Time) (page Page, found bool, err error) {
	params := &sdk.CheckoutSessionListParams{CreatedRange: &sdk.RangeQueryParams{GreaterThanOrEqual: from.Unix(), LesserThanOrEqual: until.Unix()}}
	params.Limit = sdk.Int64(pageSize)
	looked := 0
	for session, err := range c.api.V1CheckoutSessions.List(ctx, params) {
		if err != nil {
			return Page{}, false, c.failure(err)
		}
		if session.ClientReferenceID == reference {
			return pageOf(session), true, nil
		}
		if looked++; looked >= listMost {
			return Page{}, false, &Failure{Words: "too many pages were made at that time to find one"}
		}
	}
	return Page{}, false, nil
}

// EndPage ends a page, so that nobody pays on it any more. One that has ended is a failure.
func (c *Client) EndPage(ctx context.Context, id string) (Page, error) {
	session, err := c.api.V1CheckoutSessions.Expire(ctx, id, nil)
	if err != nil {
		return Page{}, c.failure(err)
	}
	return pageOf(session), nil
}

func pageOf(s *sdk.CheckoutSession) Page {
	p := Page{
		ID: s.ID, URL: s.URL, Reference: s.ClientReferenceID, Status: string(s.Status), Amount: s.AmountTotal,
		Paid:     s.PaymentStatus == sdk.CheckoutSessionPaymentStatusPaid,
		Currency: strings.ToUpper(string(s.Currency)), CreatedAt: time.Unix(s.Created, 0),
	}
	if s.PaymentIntent != nil {
		p.PaymentIntent = s.PaymentIntent.ID
	}
	return p
}

// Refund is money that went back, or is on its way.
type Refund struct {
	ID            string
	Reference     string // metadata: what its maker called it; empty: made in Stripe's own screen
	PaymentIntent string
	Amount        int64
	Currency      string
	Status        string // pending, succeeded, failed, canceled, requires_action
	FailureReason string
	CreatedAt     time.Time
}

// reference is the name under which our name of a refund stands in its metadata.
const reference = "reference"

// GiveBack gives a part of a payment back, or the whole. Stripe forgets idempotency keys after a day: with again the refunds of
// the payment are looked through first, and one that has the key as its reference is the answer.
func (c *Client) GiveBack(ctx context.Context, key, paymentIntent string, amount int64, again bool) (Refund, error) {
	if again {
		found, is, err := c.findRefund(ctx, key, paymentIntent)
		if is || err != nil {
			return found, err
		}
	}
	params := &sdk.RefundCreateParams{PaymentIntent: sdk.String(paymentIntent), Amount: sdk.Int64(amount)}
	params.AddMetadata(reference, key)
	params.SetIdempotencyKey(key)
	made, err := c.api.V1Refunds.Create(ctx, params)
	if err != nil {
		return Refund{}, c.failure(err)
	}
	return refundOf(made), nil
}

func (c *Client) findRefund(ctx context.Context, key, paymentIntent string) (Refund, bool, error) {
	params := &sdk.RefundListParams{PaymentIntent: sdk.String(paymentIntent)}
	params.Limit = sdk.Int64(pageSize)
	looked := 0
	for made, err := range c.api.V1Refunds.List(ctx, params) {
		if err != nil {
			return Refund{}, false, c.failure(err)
		}
		if made.Metadata[reference] == key {
			return refundOf(made), true, nil
		}
		if looked++; looked >= listMost {
			return Refund{}, false, &Failure{Words: "the payment has too many refunds to find one"}
		}
	}
	return Refund{}, false, nil
}

func refundOf(r *sdk.Refund) Refund {
	made := Refund{
		ID: r.ID, Reference: r.Metadata[reference], Amount: r.Amount, Currency: strings.ToUpper(string(r.Currency)), Status: string(r.Status),
		FailureReason: string(r.FailureReason), CreatedAt: time.Unix(r.Created, 0),
	}
	if r.PaymentIntent != nil {
		made.PaymentIntent = r.PaymentIntent.ID
	}
	return made
}

// Dispute is a payment that its payer's bank asks back.
type Dispute struct {
	ID            string
	PaymentIntent string
	Amount        int64
	Currency      string
	Status        string
	Fee           int64  // what Stripe took for it so far, in FeeCurrency
	FeeCurrency   string // of the account; empty: none was taken
}

// Event is what Stripe says happened; one of Page, Refund and Dispute is set where it speaks of one.
type Event struct {
	ID      string
	Type    string // checkout.session.completed, refund.updated …
	At      time.Time
	Page    *Page
	Refund  *Refund
	Dispute *Dispute
}

// ReadEvent verifies an event with any of the secrets, within Tolerance of now, and reads it.
func ReadEvent(body []byte, signature string, secrets []string, now time.Time) (Event, error) {
	if !signed(body, signature, secrets, now) {
		return Event{}, ErrNotGenuine
	}
	var event sdk.Event
	if err := json.Unmarshal(body, &event); err != nil || event.Data == nil {
		return Event{}, errors.New("the event is not one of Stripe's")
	}
	read := Event{ID: event.ID, Type: string(event.Type), At: time.Unix(event.Created, 0)}
	var err error
	switch {
	case strings.HasPrefix(read.Type, "checkout.session."):
		var session sdk.CheckoutSession
		err = json.Unmarshal(event.Data.Raw, &session)
		page := pageOf(&session)
		read.Page = &page
	case strings.HasPrefix(read.Type, "refund."), event.Type == sdk.EventTypeChargeRefundUpdated:
		var made sdk.Refund
		err = json.Unmarshal(event.Data.Raw, &made)
		refund := refundOf(&made)
		read.Refund = &refund
	case strings.HasPrefix(read.Type, "charge.dispute."):
		var dispute sdk.Dispute
		err = json.Unmarshal(event.Data.Raw, &dispute)
		read.Dispute = disputeOf(&dispute)
	}
	if err != nil {
		return Event{}, errors.New("what the event speaks of cannot be read")
	}
	return read, nil
}

// signed tells whether one of the secrets made the signature, and when.
func signed(body []byte, signature string, secrets []string, now time.Time) bool {
	at, ok := instantOf(signature)
	if off := now.Sub(at); !ok || off > Tolerance || off < -Tolerance {
		return false
	}
	for _, secret := range secrets {
		if secret != "" && webhook.ValidatePayloadIgnoringTolerance(body, signature, secret) == nil {
			return true
		}
	}
	return false
}

// instantOf reads the instant in a Stripe-Signature: t=1492774577,v1=…
func instantOf(signature string) (time.Time, bool) {
	for part := range strings.SplitSeq(signature, ",") {
		if text, is := strings.CutPrefix(strings.TrimSpace(part), "t="); is {
			var seconds int64
			err := json.Unmarshal([]byte(text), &seconds)
			return time.Unix(seconds, 0), err == nil
		}
	}
	return time.Time{}, false
}

func disputeOf(d *sdk.Dispute) *Dispute {
	read := &Dispute{ID: d.ID, Amount: d.Amount, Currency: strings.ToUpper(string(d.Currency)), Status: string(d.Status)}
	if d.PaymentIntent != nil {
		read.PaymentIntent = d.PaymentIntent.ID
	}
	for _, moved := range d.BalanceTransactions {
		if moved.Fee != 0 {
			read.Fee += moved.Fee
			read.FeeCurrency = strings.ToUpper(string(moved.Currency))
		}
	}
	return read
}

// failure judges an error of the library. The key is taken out of its words.
func (c *Client) failure(err error) *Failure {
	var refused *sdk.Error
	if !errors.As(err, &refused) {
		return &Failure{Words: "no answer of Stripe came"} // the network's words repeat the address
	}
	words := refused.Msg
	if c.key != "" {
		words = strings.ReplaceAll(words, c.key, "…")
	}
	f := &Failure{Words: remote.Words(words)}
	switch refused.HTTPStatusCode {
	case http.StatusConflict, http.StatusTooManyRequests: // the same call is under way; too many calls
	case http.StatusUnauthorized, http.StatusForbidden: // the key: somebody can put another in
	default:
		f.Final = refused.HTTPStatusCode/100 == 4 && refused.Type != sdk.ErrorTypeIdempotency
	}
	return f
}

// Signature signs an event as Stripe does, for a server that stands in for it.
func Signature(body []byte, secret string, at time.Time) string {
	return "t=" + decimal(at.Unix()) + ",v1=" + hex.EncodeToString(webhook.ComputeSignature(at, body, secret))
}
