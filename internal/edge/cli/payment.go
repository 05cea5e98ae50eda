package cli

import (
	"crypto/rand"
	"maps"

	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
)

type paymentCommand struct {
	Record  recordPayment  `cmd:"" help:"Record money received for a candidate."`
	Reverse reversePayment `cmd:"" help:"Take a payment back, whole."`
}

type recordPayment struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Amount    string `arg:"" help:"Amount, as it is written on the receipt."`
	Method    string `default:"cash" help:"cash, orange_money, …"`
	Receipt   string `help:"Number of the receipt: the same one again changes nothing."`
}

func (c recordPayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	campaign, err := admission.FindCampaign(s.ctx, s.db, s.actor, c.Campaign)
	if err != nil {
		return err
	}
	amount, err := amountMinor(c.Amount, campaign.Currency)
	if err != nil {
		return err
	}
	standing, err := payment.Record(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, payment.Payment{
		AmountMinor: amount, Method: c.Method, Receipt: c.Receipt,
		IdempotencyKey: rand.Text(),
	}) // typed without a receipt, it is a payment of its own
	if err != nil {
		return err
	}
	return s.standing(standing)
}

func (s *session) standing(standing payment.Standing) error {
	if s.line.JSON {
		return s.answer(standingAnswer(standing, nil))
	}
	s.say("cli_standing", map[string]any{"paid": standing.Paid, "fee": standing.Fee, "owed": standing.Owed, "enough": standing.Enough})
	return nil
}

// standingAnswer is what somebody has paid and owes, with more that is to be said of it.
func standingAnswer(standing payment.Standing, more map[string]any) map[string]any {
	answer := map[string]any{
		"paid": standing.Enough, "paid_minor": standing.Paid.Minor, "owed_minor": standing.Owed.Minor,
		"currency": standing.Fee.Currency,
	}
	maps.Copy(answer, more)
	return answer
}

type reversePayment struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Receipt   string `help:"Receipt of the payment; needed when there are several."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c reversePayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	standing, err := payment.Reverse(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Receipt, c.Reason)
	if err != nil {
		return err
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(standingAnswer(standing, map[string]any{"still_seated": seated}))
	}
	if err := s.standing(standing); err != nil {
		return err
	}
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}
