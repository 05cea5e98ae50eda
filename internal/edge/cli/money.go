package cli

import (
	"cmp"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
)

type moneyCommand struct {
	List     listMoney   `cmd:"" help:"List the money that somebody must look at, and what is to go back."`
	Assign   assignMoney `cmd:"" help:"Put money that belongs to nobody to a reservation, or say for which ticket a part went back."`
	GiveBack giveBack    `cmd:"" name:"give-back" help:"Have money that belongs to nobody go back."`
	Keep     keepMoney   `cmd:"" help:"Say that something was looked at and that nothing is to be done."`
	Retry    retryMoney  `cmd:"" help:"Do again what the program could not do about a notice."`
	Check    checkMoney  `cmd:"" help:"Say whether all money has its owner and each paid ticket its seat; name what has not."`
	Refund   moneyRefund `cmd:"" help:"What is to go back: record that it was paid out, or have the gateway asked again."`
}

type moneyRefund struct {
	Done  refundDone  `cmd:"" help:"Record that somebody paid out what was to go back."`
	Again refundAgain `cmd:"" help:"Have the gateway asked again for what failed."`
}

type listMoney struct {
	Open         bool   `help:"Only what is open; without it also what was settled and what went back."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l listMoney) Run(s *session) error {
	org, err := s.organisationOf(l.Organisation)
	if err != nil {
		return err
	}
	most := mostPrinted
	if s.line.JSON {
		most = payment.MostOpen
	}
	items, total, err := payment.Open(s.ctx, s.db, s.actor, org, !l.Open, most)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(map[string]any{"total": total, "items": s.moneyAsJSON(items)})
	}
	if total == 0 {
		s.say("cli_money_none", nil)
		return nil
	}
	rows := make([]table.Row, len(items))
	for i, o := range items {
		rows[i] = table.Row{
			o.Number, s.voice.Money(o.Money()), o.Gateway, orDash(o.Reservation), s.voice.Instant(i18n.Instant{At: o.At, Zone: org.TimeZone}), s.moneyWhy(o),
		}
	}
	s.table([]string{"cli_number", "cli_amount", "cli_gateway_name", "cli_money_reservation", "cli_money_since", "cli_money_why"}, rows, 2)
	if total > len(items) {
		s.say("cli_reservation_more", map[string]any{"shown": len(items), "total": total})
	}
	s.say("cli_money_what_to_do", nil)
	return nil
}

// moneyWhy says what an item is, and what it waits for.
func (s *session) moneyWhy(o payment.OpenItem) string {
	if o.What != "refund" {
		return s.voice.Say("money_why_"+cmp.Or(o.Reason, "applied"), nil)
	}
	why := s.voice.Say("refund_why_"+o.Reason, nil)
	state := "refund_state_" + o.State
	if o.GatewayKind.ByHand() && o.State == string(payment.RefundDue) {
		state = "refund_state_by_hand"
	}
	return why + " " + s.voice.Say(state, map[string]any{"words": o.Failure})
}

func (s *session) moneyAsJSON(items []payment.OpenItem) any {
	type item struct {
		Number      string     `json:"number"`
		What        string     `json:"what"`
		State       string     `json:"state"`
		Reason      string     `json:"reason"`
		Sentence    string     `json:"sentence"`
		AmountMinor int64      `json:"amount_minor"`
		Currency    string     `json:"currency"`
		Gateway     string     `json:"gateway"`
		Reservation string     `json:"reservation"`
		At          time.Time  `json:"at"`
		SettledAt   *time.Time `json:"settled_at"`
		SettledBy   string     `json:"settled_by"`
	}
	list := make([]item, len(items))
	for i, o := range items {
		list[i] = item{
			o.Number, o.What, o.State, o.Reason, s.moneyWhy(o), o.AmountMinor, o.Currency, o.Gateway, o.Reservation, o.At, o.SettledAt, o.SettledBy,
		}
	}
	return list
}

// moneyNumber names an item of the list.
type moneyNumber struct {
	Number       string `arg:"" help:"Number in usher money list (N12, R12)."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (s *session) settle(of moneyNumber, how reservation.Settlement) error {
	org, err := s.organisationOf(of.Organisation)
	if err != nil {
		return err
	}
	if err := reservation.Settle(s.ctx, s.db, s.actor, org, of.Number, how); err != nil {
		return err
	}
	return s.done("cli_money_settled", map[string]any{"number": of.Number}, map[string]any{"number": of.Number, "settled": true})
}

type assignMoney struct {
	moneyNumber
	Reservation string `help:"Reference of the reservation that it was paid for."`
	Ticket      int    `help:"Number of the ticket for which a part went back; it ends."`
}

func (a assignMoney) Run(s *session) error {
	if (a.Reservation == "") == (a.Ticket == 0) {
		return problem.Invalid("money_assign_what", nil)
	}
	return s.settle(a.moneyNumber, reservation.Settlement{Reservation: a.Reservation, Ticket: a.Ticket})
}

type giveBack struct{ moneyNumber }

func (g giveBack) Run(s *session) error {
	return s.settle(g.moneyNumber, reservation.Settlement{GiveBack: true})
}

type keepMoney struct{ moneyNumber }

func (k keepMoney) Run(s *session) error {
	return s.settle(k.moneyNumber, reservation.Settlement{Keep: true})
}

type retryMoney struct{ moneyNumber }

func (r retryMoney) Run(s *session) error {
	return s.settle(r.moneyNumber, reservation.Settlement{Retry: true})
}

type checkMoney struct {
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (c checkMoney) Run(s *session) error {
	org, err := s.organisationOf(c.Organisation)
	if err != nil {
		return err
	}
	faults, err := reservation.Check(s.ctx, s.db, s.actor, org)
	if err != nil {
		return err
	}
	if s.line.JSON {
		if err := s.answer(faultsAsJSON(faults)); err != nil {
			return err
		}
	}
	for _, f := range faults.Money {
		money := func(minor int64) i18n.Money { return i18n.Money{Minor: minor, Currency: f.Currency} }
		s.say("cli_money_wrong_sum", map[string]any{
			"reference": f.Reference, "cost": money(f.CostMinor), "received": money(f.ReceivedMinor), "back": money(f.BackMinor), "due": money(f.DueMinor),
		})
	}
	for _, u := range faults.Unseated {
		s.say("cli_money_unseated", map[string]any{"reference": u.Reservation, "ticket": u.Ticket, "event": u.Event, "sitting": u.Sitting, "seat": u.Seat})
	}
	if faults.None() {
		s.say("cli_money_sound", nil)
		return nil
	}
	return problem.Refused("money_wrong", problem.Facts{"count": len(faults.Money) + len(faults.Unseated)})
}

func faultsAsJSON(f reservation.Faults) any {
	type sum struct {
		Reference     string `json:"reference"`
		State         string `json:"state"`
		Currency      string `json:"currency"`
		CostMinor     int64  `json:"cost_minor"`
		ReceivedMinor int64  `json:"received_minor"`
		BackMinor     int64  `json:"back_minor"`
		DueMinor      int64  `json:"due_minor"`
		SparedMinor   int64  `json:"spared_minor"`
	}
	type ticket struct {
		Reservation string `json:"reservation"`
		Ticket      int    `json:"ticket"`
		Event       string `json:"event"`
		Sitting     string `json:"sitting"`
		Seat        string `json:"seat"`
	}
	sums, tickets := make([]sum, len(f.Money)), make([]ticket, len(f.Unseated))
	for i, m := range f.Money {
		sums[i] = sum(m)
	}
	for i, u := range f.Unseated {
		tickets[i] = ticket(u)
	}
	return map[string]any{"ok": f.None(), "money": sums, "unseated": tickets}
}

type refundDone struct {
	moneyNumber
	Receipt string `help:"What the person has of it: the number of a receipt or of a transfer."`
}

func (r refundDone) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	f, err := reservation.PaidOut(s.ctx, s.db, s.actor, org, r.Number, r.Receipt)
	if err != nil {
		return err
	}
	return s.done("cli_refund_done", map[string]any{"number": r.Number, "amount": f.Money()},
		map[string]any{"number": r.Number, "amount_minor": f.AmountMinor, "currency": f.Currency, "done": true})
}

type refundAgain struct{ moneyNumber }

func (r refundAgain) Run(s *session) error {
	org, err := s.organisationOf(r.Organisation)
	if err != nil {
		return err
	}
	f, err := reservation.AskAgain(s.ctx, s.db, s.actor, org, r.Number)
	if err != nil {
		return err
	}
	return s.done("cli_refund_again", map[string]any{"number": r.Number, "amount": f.Money()},
		map[string]any{"number": r.Number, "amount_minor": f.AmountMinor, "currency": f.Currency})
}
