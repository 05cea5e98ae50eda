package payment

import (
	"usher/internal/domain/admission"
	"usher/internal/domain/outbox"
)

// moneyEvent is money as other systems read it. The reason of a reversal is not said: people write there
// what is nobody else's business.
type moneyEvent struct {
	Campaign    string `json:"campaign"`
	Candidate   string `json:"candidate"` // reference
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Method      string `json:"method,omitempty"`
	Receipt     string `json:"receipt"` // empty: none was given
}

func eventOf(kind outbox.Kind, c admission.Campaign, reference string, p Payment) outbox.Event {
	return outbox.Event{Kind: kind, Subject: outbox.CandidateSubject(c.Slug, reference), Data: moneyEvent{
		Campaign: c.Slug, Candidate: reference, AmountMinor: p.AmountMinor, Currency: c.Currency, Method: p.Method, Receipt: p.Receipt,
	}}
}
