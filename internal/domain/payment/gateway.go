package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"usher/internal/base/problem"
)

// GatewayKind is how money reaches an organisation.
type GatewayKind string

// The kinds.
const (
	Counter GatewayKind = "counter" // an agent takes it and records it; nothing is asked over a network
	Stripe  GatewayKind = "stripe"  // a page of Stripe's, and its events
	Signed  GatewayKind = "signed"  // whatever posts signed notices: a bridge to mobile money
)

// GatewayKinds are all of them.
var GatewayKinds = []GatewayKind{Counter, Stripe, Signed}

// Gateway takes money and gives it back. Every call may be made again with the same key, by whoever does not know what became
// of it, and is done once. No call is made inside a transaction.
type Gateway interface {
	// Start makes the page on which an order is paid.
	Start(ctx context.Context, o Order) (Page, error)
	// Look asks what became of a checkout.
	Look(ctx context.Context, a Attempt) (Fate, error)
	// Refund gives money back. A person does it where the answer is ErrByHand.
	Refund(ctx context.Context, r Return) (Returned, error)
	// Read verifies what the gateway sent by itself, and translates it; ErrNotGenuine where it did not come from there. What
	// says nothing about money has no notices.
	Read(header http.Header, body []byte, now time.Time) ([]GatewayNotice, error)
}

// Order is what is to be paid.
type Order struct {
	Key         string // of the checkout: the idempotency key, and what comes back in notices
	AmountMinor int64
	Currency    string
	Title       string // what the buyer reads there
	Email       string
	Locale      string
	StartedAt   time.Time
	Until       time.Time // of the hold
	Return      string    // address to which the buyer comes back
}

// Page is where an order is paid.
type Page struct {
	URL        string
	GatewayKey string // the gateway's own name of it; empty: it has none
	LookAt     time.Time
}

// Attempt is a checkout whose end is not known.
type Attempt struct {
	Key        string
	GatewayKey string // empty: it was not kept, or the gateway has no name of it
	StartedAt  time.Time
	Now        time.Time
	Unwanted   bool // nobody is to pay there any more: it is ended if it still can be
}

// Fate is what became of a checkout.
type Fate struct {
	Open       bool            // it can still be paid
	Unknown    bool            // the gateway never heard of it
	GatewayKey string          // its name there
	URL        string          // of the page, while it is open
	Notices    []GatewayNotice // what the gateway would have said
}

// Return is money that is to go back.
type Return struct {
	Key         string // of the refund: the idempotency key
	PaymentKey  string // the gateway's name of the payment
	AmountMinor int64
	Currency    string
	Again       bool // it was asked before
}

// Returned is what came of it. Without a notice it is under way, and a notice follows.
type Returned struct {
	GatewayKey string
	Notices    []GatewayNotice
}

// ErrByHand says that the gateway gives nothing back by itself: a person pays it out and records it.
var ErrByHand = errors.New("a person gives it back")

// ErrNotGenuine says that a notice was not signed by the gateway, or not lately.
var ErrNotGenuine = errors.New("the notice is not the gateway's")

// GatewayFailure is a call of a gateway that failed. Unless it is Final, nothing is known of what was done, and the same call may
// be made again.
type GatewayFailure struct {
	Final bool
	Words string // for a person
}

func (f *GatewayFailure) Error() string { return "the gateway: " + f.Words }

// Open is the gateway that a setup describes.
func (s Setup) Open() Gateway {
	switch s.Kind {
	case Stripe:
		return stripeGateway{setup: s}
	case Signed:
		return signedGateway{setup: s}
	}
	return counter{}
}

// ByHand tells whether a person gives money back that came through it.
func (k GatewayKind) ByHand() bool { return k != Stripe }

// counter is an agent with a cash box.
type counter struct{}

func (counter) Start(context.Context, Order) (Page, error) {
	return Page{}, problem.Refused("gateway_has_no_page", nil)
}

func (counter) Look(context.Context, Attempt) (Fate, error)      { return Fate{Unknown: true}, nil }
func (counter) Refund(context.Context, Return) (Returned, error) { return Returned{}, ErrByHand }

func (counter) Read(http.Header, []byte, time.Time) ([]GatewayNotice, error) {
	return nil, ErrNotGenuine
}
