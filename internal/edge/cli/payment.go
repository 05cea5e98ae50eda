package cli

import (
	"cmp"
	"crypto/rand"
	"maps"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/payment"

	"github.com/jedib0t/go-pretty/v6/table"
)

type paymentCommand struct {
	Record  recordPayment  `cmd:"" help:"Record money received for a candidate."`
	Reverse reversePayment `cmd:"" help:"Take a payment back, whole."`
	List    listPayments   `cmd:"" help:"List the payments of a candidate."`
}

type recordPayment struct {
	Campaign  string  `required:"" help:"Short name of the campaign."`
	Candidate string  `arg:"" help:"Reference of the candidate."`
	Amount    string  `arg:"" help:"Amount, as it is written on the receipt."`
	Method    string  `default:"cash" help:"cash, orange_money, …"`
	Receipt   *string `help:"Number of the receipt: the same one again changes nothing."`
}

func (c recordPayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	campaign, err := admission.FindCampaign(s.ctx, s.db, s.actor, c.Campaign)
	if err != nil {
		return err
	}
	amount, err := intake.Amount(c.Amount, campaign.Currency)
	if err != nil {
		return err
	}
	var receipt string
	if c.Receipt != nil {
		if receipt = account.OneLine(*c.Receipt); receipt == "" { // a script whose variable is empty would record anew each time
			return problem.Invalid("receipt_empty", nil)
		}
	}
	taken, err := payment.Record(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, payment.Payment{
		AmountMinor: amount, Method: c.Method, Receipt: receipt,
		IdempotencyKey: rand.Text(),
	}) // typed without a receipt, it is a payment of its own
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(standingAnswer(taken.Standing, map[string]any{"receipt": cmp.Or(taken.Receipt, receipt)}))
	}
	s.sayTaken(taken)
	if taken.Alike != "" {
		s.say("refusal_receipt_perhaps_same", map[string]any{"receipt": receipt, "other": taken.Alike})
	}
	return nil
}

// sayTaken says where somebody stands, and which receipt they get.
func (s *session) sayTaken(taken payment.Taken) {
	if taken.Receipt != "" {
		s.say("cli_receipt_given", map[string]any{"receipt": taken.Receipt})
	}
	standing := taken.Standing
	s.say("cli_standing", map[string]any{
		"paid": standing.Paid, "fee": standing.Fee, "owed": standing.Owed,
		"enough": standing.Enough, "over": standing.Over, "too_much": standing.Over.Minor > 0,
	})
}

// standingAnswer is what somebody has paid and owes, with more that is to be said of it.
func standingAnswer(standing payment.Standing, more map[string]any) map[string]any {
	answer := map[string]any{
		"paid": standing.Enough, "paid_minor": standing.Paid.Minor, "owed_minor": standing.Owed.Minor,
		"over_minor": standing.Over.Minor,
		"currency":   standing.Fee.Currency,
	}
	maps.Copy(answer, more)
	return answer
}

type reversePayment struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
	Receipt   string `help:"Receipt of the payment, or its number as payment list shows it (#12); needed when there are several."`
	Reason    string `required:"" help:"Why: it is kept."`
}

func (c reversePayment) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	taken, err := payment.Reverse(s.ctx, s.db, s.actor, c.Campaign, c.Candidate, c.Receipt, c.Reason)
	if err != nil {
		return err
	}
	seated, err := s.stillSeated(c.Campaign, c.Candidate)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(standingAnswer(taken.Standing, map[string]any{"still_seated": seated, "receipt": taken.Receipt}))
	}
	s.sayTaken(taken)
	s.warnSeated(seated, c.Campaign, c.Candidate)
	return nil
}

type listPayments struct {
	Campaign  string `required:"" help:"Short name of the campaign."`
	Candidate string `arg:"" help:"Reference of the candidate."`
}

func (l listPayments) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	made, err := payment.List(s.ctx, s.db, s.actor, l.Campaign, l.Candidate)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type row struct {
			Number      string    `json:"number"`
			AmountMinor int64     `json:"amount_minor"`
			Currency    string    `json:"currency"`
			Method      string    `json:"method"`
			ReceivedAt  time.Time `json:"received_at"`
			Receipt     string    `json:"receipt"`
			Reversal    string    `json:"reversal_receipt"`
			Reversed    bool      `json:"reversed"`
			Reason      string    `json:"reason"`
		}
		rows := make([]row, len(made))
		for i, m := range made {
			rows[i] = row{m.Number(), m.AmountMinor, m.Currency, m.Method, m.ReceivedAt, m.Receipt, m.Reversal, m.Reversed, m.Reason}
		}
		return s.answer(rows)
	}
	if len(made) == 0 {
		s.say("cli_no_payment", nil)
		return nil
	}
	campaign, err := admission.FindCampaign(s.ctx, s.db, s.actor, l.Campaign)
	if err != nil {
		return err
	}
	rows := make([]table.Row, len(made))
	for i, m := range made {
		reversed := ""
		if m.Reversed {
			reversed = s.voice.Say("cli_reversed", map[string]any{"reason": m.Reason})
		}
		rows[i] = table.Row{
			m.Number(), s.voice.Money(i18n.Money{Minor: m.AmountMinor, Currency: m.Currency}), m.Method,
			s.voice.Instant(i18n.Instant{At: m.ReceivedAt, Zone: campaign.TimeZone}), orDash(m.Receipt), reversed,
		}
	}
	s.table([]string{"cli_number", "cli_amount", "cli_method", "cli_received_at", "cli_receipt", "cli_remark"}, rows, 2)
	return nil
}
