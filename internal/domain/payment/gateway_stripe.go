package payment

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/stripe"
)

// stripeGateway has people pay on Stripe's own pages.
type stripeGateway struct{ setup Setup }

// Times of a page at Stripe.
const (
	pageMargin  = time.Minute     // between our clock and Stripe's
	searchSpan  = 5 * time.Minute // around the instant at which a page was to be made
	firstLookIn = time.Minute     // after its call began: by then it has ended, whatever came of it
)

func (g stripeGateway) client() *stripe.Client { return stripe.Open(g.setup.apiKey, g.setup.APIURL) }

// Start makes the page. It lasts half an hour at least, which is longer than most holds: when the hold is over, the look ends it.
func (g stripeGateway) Start(ctx context.Context, o Order) (Page, error) {
	amount, err := stripe.ToUnits(o.AmountMinor, o.Currency)
	if err != nil {
		return Page{}, problem.Refused("gateway_amount", problem.Facts{"gateway": g.setup.Name, "currency": o.Currency})
	}
	client := g.client()
	defer client.Close()
	until := o.StartedAt.Add(stripe.PageLeast + pageMargin)
	if latest := o.StartedAt.Add(stripe.PageMost - pageMargin); o.Until.After(until) {
		until = o.Until
		if until.After(latest) {
			until = latest
		}
	}
	made, err := client.MakePage(ctx, stripe.NewPage{
		IdempotencyKey: o.Key, Reference: o.Key, Title: o.Title, Amount: amount, Currency: o.Currency, Email: o.Email, Locale: o.Locale,
		ExpiresAt: until, SuccessURL: o.Return, CancelURL: o.Return,
	})
	if err != nil {
		return Page{}, stripeFailure(err)
	}
	return Page{URL: made.URL, GatewayKey: made.ID}, nil
}

// Look finds the page, by its name or, for who died before it was kept, among those that were made at that time.
func (g stripeGateway) Look(ctx context.Context, a Attempt) (Fate, error) {
	client := g.client()
	defer client.Close()
	page, found := stripe.Page{}, true
	var err error
	if a.GatewayKey != "" {
		page, err = client.FindPage(ctx, a.GatewayKey)
	} else {
		page, found, err = client.FindPageByReference(ctx, a.Key, a.StartedAt.Add(-searchSpan), a.StartedAt.Add(searchSpan))
	}
	if err != nil {
		return Fate{}, stripeFailure(err)
	}
	if !found {
		return Fate{Unknown: true}, nil
	}
	if page.Status == "open" && a.Unwanted {
		if page, err = client.EndPage(ctx, page.ID); err != nil {
			return Fate{}, stripeFailure(err) // paid at this moment, perhaps: the next look knows
		}
	}
	fate := Fate{GatewayKey: page.ID, URL: page.URL}
	fate.Notices, err = pageNotices(page, a.Now)
	// Complete and not paid: a bank takes its days, and an event says what came of it.
	fate.Open = page.Status != "expired" && !page.Paid
	return fate, err
}

// pageNotices are what the state of a page says.
func pageNotices(page stripe.Page, at time.Time) ([]GatewayNotice, error) {
	n := GatewayNotice{CheckoutKey: page.Reference, PageKey: page.ID, GatewayKey: page.ID, Currency: page.Currency, OccurredAt: at}
	switch {
	case page.Paid:
		// A page is paid once; where a payment without a name of its own is possible (nothing to pay), none is made here.
		n.Kind, n.Key, n.GatewayKey = NoticePaid, "paid "+page.PaymentIntent, page.PaymentIntent
	case page.Status == "expired":
		n.Kind, n.Key = NoticeExpired, "expired "+page.ID
	default:
		return nil, nil
	}
	var err error
	if n.AmountMinor, err = stripe.FromUnits(page.Amount, page.Currency); err != nil {
		return nil, err
	}
	return []GatewayNotice{n}, nil
}

// Refund asks for it. What came of it is said by the answer, or by a later event where a bank takes its days.
func (g stripeGateway) Refund(ctx context.Context, r Return) (Returned, error) {
	amount, err := stripe.ToUnits(r.AmountMinor, r.Currency)
	if err != nil {
		return Returned{}, &GatewayFailure{Final: true, Words: err.Error()}
	}
	client := g.client()
	defer client.Close()
	made, err := client.GiveBack(ctx, r.Key, r.PaymentKey, amount, r.Again)
	if err != nil {
		return Returned{}, stripeFailure(err)
	}
	notices, err := refundNotices(made, made.CreatedAt)
	return Returned{GatewayKey: made.ID, Notices: notices}, err
}

func refundNotices(r stripe.Refund, at time.Time) ([]GatewayNotice, error) {
	n := GatewayNotice{CheckoutKey: r.Reference, GatewayKey: r.PaymentIntent, Currency: r.Currency, OccurredAt: at, Words: r.FailureReason}
	switch r.Status {
	case "succeeded":
		n.Kind, n.Key = NoticeRefunded, "refunded "+r.ID
	case "failed", "canceled":
		n.Kind, n.Key = NoticeRefundFailed, "refund_failed "+r.ID
	default:
		return nil, nil
	}
	var err error
	if n.AmountMinor, err = stripe.FromUnits(r.Amount, r.Currency); err != nil {
		return nil, err
	}
	return []GatewayNotice{n}, nil
}

// Read reads one of Stripe's events. A page that was not made here, by whatever else uses the account, says nothing to us.
func (g stripeGateway) Read(header http.Header, body []byte, now time.Time) ([]GatewayNotice, error) {
	event, err := stripe.ReadEvent(body, header.Get("Stripe-Signature"), g.setup.secrets(now), now)
	if errors.Is(err, stripe.ErrNotGenuine) {
		return nil, ErrNotGenuine
	}
	if err != nil {
		return nil, unreadable(err.Error())
	}
	switch {
	case event.Page != nil && !strings.HasPrefix(event.Page.Reference, checkoutPrefix):
		return nil, nil
	case event.Type == "checkout.session.async_payment_failed":
		return []GatewayNotice{{
			Kind: NoticeFailed, Key: "failed " + event.Page.ID, CheckoutKey: event.Page.Reference, GatewayKey: event.Page.ID, PageKey: event.Page.ID,
			Currency: event.Page.Currency, OccurredAt: event.At,
		}}, nil
	case event.Page != nil:
		return understood(pageNotices(*event.Page, event.At))
	case event.Refund != nil:
		return understood(refundNotices(*event.Refund, event.At))
	case event.Dispute != nil:
		return understood(disputeNotices(*event.Dispute, event))
	}
	return nil, nil
}

// understood is what an event says, unless its amount is none of its currency: it says the same however often it is sent.
func understood(notices []GatewayNotice, err error) ([]GatewayNotice, error) {
	if err != nil {
		return nil, unreadable(err.Error())
	}
	return notices, nil
}

// disputeNotices: an inquiry that ended without a dispute is won. What is neither begun nor over says nothing new.
func disputeNotices(d stripe.Dispute, event stripe.Event) ([]GatewayNotice, error) {
	n := GatewayNotice{GatewayKey: d.PaymentIntent, Currency: d.Currency, OccurredAt: event.At}
	switch {
	case event.Type == "charge.dispute.created":
		n.Kind = NoticeDisputeOpened
	case event.Type == "charge.dispute.closed" && d.Status == "lost":
		n.Kind = NoticeDisputeLost
	case event.Type == "charge.dispute.closed":
		n.Kind = NoticeDisputeWon
	default:
		return nil, nil
	}
	n.Key = string(n.Kind) + " " + d.ID
	var err error
	if n.AmountMinor, err = stripe.FromUnits(d.Amount, d.Currency); err != nil {
		return nil, err
	}
	if n.Kind == NoticeDisputeLost && d.Fee > 0 {
		if d.FeeCurrency == d.Currency {
			n.FeeMinor, err = stripe.FromUnits(d.Fee, d.Currency)
		} else {
			n.Words = "fee " + d.FeeCurrency // of another currency than the payment: a person looks it up
		}
	}
	return []GatewayNotice{n}, err
}

func stripeFailure(err error) error {
	var failure *stripe.Failure
	if errors.As(err, &failure) {
		return &GatewayFailure{Final: failure.Final, Words: failure.Words}
	}
	return err
}
