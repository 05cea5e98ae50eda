package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/base/webhook"
	"usher/internal/domain/payment"
)

// DemoPay is where the page of a demonstration's operator is, at which no money moves.
const DemoPay = "/demo/pay"

// PayPage stands for the operator of a signed gateway, so that a demonstration can be paid in a browser. What is pressed on it comes back
// as a signed notice, through the gateway's hook like any other.
type PayPage struct {
	Home   string // address at which this process answers
	Hook   string // of the gateway
	Secret string // of the gateway
}

// Address is the gateway's page, with what an order fills in.
func (p PayPage) Address() string {
	return p.Home + DemoPay + "?ref={reference}&amount={amount}&currency={currency}&back={return}"
}

// demoTimeout bounds a notice to ourselves.
const demoTimeout = 10 * time.Second

// payDemoPage asks whether an order is paid.
type payDemoPage struct {
	shopChrome
	Reference, Amount, Currency, Back string
	Said                              string // the amount, as the reader writes it
	Problem                           string
}

func (p payDemoPage) component() templ.Component { return payDemoView(p) }

// payDemo shows the page, or says what was pressed on it.
func (s *site) payDemo(w http.ResponseWriter, r *http.Request) {
	page := payDemoPage{
		shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: "DEMO"}, Reference: r.FormValue("ref"), Amount: r.FormValue("amount"),
		Currency: r.FormValue("currency"), Back: r.FormValue("back"),
	}
	page.Title, page.Back = page.Say("pay_demo_title", nil), s.payPage.back(page.Back)
	amount, err := currency.NewAmount(page.Amount, page.Currency)
	if err != nil || page.Reference == "" {
		failShop(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	minor, err := amount.Int64()
	if err != nil {
		failShop(w, r, problem.NotFound("address_unknown", nil))
		return
	}
	page.Said = page.Voice.Money(i18n.Money{Minor: minor, Currency: page.Currency})
	if r.Method == http.MethodPost {
		kind := payment.NoticePaid
		if r.PostFormValue("act") == "refuse" {
			kind = payment.NoticeFailed
		}
		err := s.tellDemo(r.Context(), kind, page.Reference, minor, page.Currency)
		if err == nil {
			http.Redirect(w, r, page.Back, http.StatusSeeOther)
			return
		}
		logIncident(r, newIncident(), "a notice of the demonstration was not taken", err)
		page.Problem = page.Say("pay_demo_failed", nil)
	}
	show(w, r, http.StatusOK, page)
}

// back is where the buyer goes on: a page of ours, whatever the address says.
func (p PayPage) back(said string) string {
	parsed, err := url.Parse(said)
	if err != nil {
		return "/"
	}
	return ownPath(parsed.RequestURI())
}

// tellDemo posts a notice to the gateway's hook, signed at the instant of the one clock. Its id follows from the order: pressed twice it
// is one.
func (s *site) tellDemo(ctx context.Context, kind payment.NoticeKind, reference string, minor int64, code string) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	var now time.Time
	if err := s.db.Tx(ctx, nil, func(tx pgx.Tx) (err error) { now, err = pg.Now(ctx, tx); return err }); err != nil {
		return err
	}
	id := "demo_" + reference
	body, err := json.Marshal(map[string]any{
		"type": kind, "id": id, "reference": reference, "amount_minor": minor, "currency": code, "reason": "demo",
	})
	if err != nil {
		return fmt.Errorf("write the notice: %w", err)
	}
	header, err := webhook.SignedHeader([]string{s.payPage.Secret}, string(kind)+id, now, body)
	if err != nil {
		return fmt.Errorf("sign the notice: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.payPage.Home+GatewayHooks+s.payPage.Hook, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write the notice: %w", err)
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("post the notice: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the notice is answered %s", answer.Status)
	}
	return nil
}
