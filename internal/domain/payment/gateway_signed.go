package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bojanz/currency"

	"usher/internal/base/problem"
	"usher/internal/base/remote"
	"usher/internal/base/webhook"
)

// signedGateway is whatever posts notices that are signed after Standard Webhooks. docs/payments.md says how they are written.
type signedGateway struct{ setup Setup }

// signedPageFor is how long a checkout counts as open after its start: nobody can be asked what became of it.
const signedPageFor = 48 * time.Hour

// Start writes the order into the address of the operator's page.
func (g signedGateway) Start(_ context.Context, o Order) (Page, error) {
	if g.setup.CheckoutURL == "" {
		return Page{}, problem.Refused("gateway_has_no_page", nil)
	}
	return Page{
		URL: strings.NewReplacer("{reference}", url.QueryEscape(o.Key), "{amount}", url.QueryEscape(decimals(o.AmountMinor, o.Currency)),
			"{currency}", url.QueryEscape(o.Currency), "{return}", url.QueryEscape(o.Return)).Replace(g.setup.CheckoutURL),
		LookAt: o.StartedAt.Add(signedPageFor),
	}, nil
}

// decimals writes an amount in whole units with the decimals of its currency: 12.500 for TND, 5000 for XOF.
func decimals(minor int64, code string) string {
	amount, err := currency.NewAmountFromInt64(minor, code)
	if err != nil {
		return strconv.FormatInt(minor, 10)
	}
	return amount.Number()
}

// Look can ask nobody: what was not paid in time counts as expired, and money that comes later has its rule.
func (g signedGateway) Look(_ context.Context, a Attempt) (Fate, error) {
	if !a.Unwanted && a.Now.Before(a.StartedAt.Add(signedPageFor)) {
		return Fate{Open: true}, nil
	}
	return Fate{Notices: []GatewayNotice{{
		Kind: NoticeExpired, Key: "expired " + a.Key, CheckoutKey: a.Key, OccurredAt: a.Now,
	}}}, nil
}

func (signedGateway) Refund(context.Context, Return) (Returned, error) {
	return Returned{}, ErrByHand
}

// signedNotice is a notice as a bridge writes it.
type signedNotice struct {
	Type        NoticeKind `json:"type"`
	ID          string     `json:"id"`           // the operator's name of the movement
	Reference   string     `json:"reference"`    // of the checkout, as it stood in the address; of our refund
	Payment     string     `json:"payment"`      // the id of the payment of which something goes back
	AmountMinor int64      `json:"amount_minor"` // whole minor units of ISO 4217
	FeeMinor    int64      `json:"fee_minor"`    // of a dispute that was lost
	Currency    string     `json:"currency"`
	OccurredAt  time.Time  `json:"occurred_at"`
	Reason      string     `json:"reason"`
}

// signedIDMost bounds the names that an operator gives, in bytes.
const signedIDMost = 200

// Read verifies and reads one notice.
func (g signedGateway) Read(header http.Header, body []byte, now time.Time) ([]GatewayNotice, error) {
	err := webhook.Verify(g.setup.secrets(now), header, body, now)
	if errors.Is(err, webhook.ErrNotGenuine) {
		return nil, ErrNotGenuine
	}
	if err != nil {
		return nil, fmt.Errorf("verify a notice: %w", err)
	}
	var read signedNotice
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, unreadable("it is no JSON object as docs/payments.md has it")
	}
	if err := read.check(); err != nil {
		return nil, err
	}
	n := GatewayNotice{
		Kind: read.Type, Key: string(read.Type) + " " + read.ID, CheckoutKey: read.Reference, GatewayKey: read.ID,
		AmountMinor: read.AmountMinor, FeeMinor: read.FeeMinor, Currency: read.Currency, OccurredAt: read.OccurredAt, Words: remote.Words(read.Reason),
	}
	if read.Payment != "" {
		n.GatewayKey = read.Payment
	}
	if n.OccurredAt.IsZero() {
		n.OccurredAt = now
	}
	return []GatewayNotice{n}, nil
}

func (n signedNotice) check() error {
	moves := n.Type != NoticeFailed && n.Type != NoticeExpired
	_, known := currency.GetDigits(n.Currency)
	switch {
	case !slices.Contains(NoticeKinds, n.Type):
		return unreadable("type is none of those in docs/payments.md")
	case n.ID == "" || len(n.ID) > signedIDMost || len(n.Reference) > signedIDMost || len(n.Payment) > signedIDMost:
		return unreadable("id is missing, or a name is longer than 200 bytes")
	case moves && (n.AmountMinor <= 0 || n.AmountMinor > MostMinor || n.FeeMinor < 0 || n.FeeMinor > MostMinor):
		return unreadable("amount_minor is not a whole number above 0")
	case moves && !known:
		return unreadable("currency is not a code of ISO 4217")
	case moves && n.Type != NoticePaid && n.Payment == "":
		return unreadable("payment is missing")
	}
	return nil
}

// Unreadable is a genuine notice that cannot be understood: its sender reads why.
type Unreadable struct{ Why string }

func (u *Unreadable) Error() string { return "the notice cannot be read: " + u.Why }

func unreadable(why string) error { return &Unreadable{Why: why} }
