package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/domain/intake"
	"usher/internal/domain/reservation"
)

type reservationCommand struct {
	List      listReservations  `cmd:"" help:"List reservations, the latest first."`
	Show      showReservation   `cmd:"" help:"Show one: tickets, seats and money."`
	Pay       payReservation    `cmd:"" help:"Record money taken at a counter for a reservation."`
	Cancel    cancelTickets     `cmd:"" help:"Give tickets of a paid reservation back, by the rule under which they were sold."`
	Dispute   closeDispute      `cmd:"" help:"Say what became of a dispute, where the gateway does not."`
	Attendee  nameAttendee      `cmd:"" help:"Put a ticket that is paid in the name of whoever it is for. Papers with another name are out of date then."`
	FreeSeats freeReservedSeats `cmd:"" name:"free-seats" help:"Free the seats of a reservation whose payment the payer's bank took back."`
}

type listReservations struct {
	Event        string `help:"Short name of the event; else all."`
	State        string `help:"held, payment_started, confirmed, lapsed, cancelled, refunded, disputed or charged_back; else all."`
	Organisation string `help:"Short name of the organisation; needed when there are several."`
}

func (l listReservations) Run(s *session) error {
	org, err := s.organisationOf(l.Organisation)
	if err != nil {
		return err
	}
	wanted := reservation.Wanted{Event: l.Event, State: reservation.State(l.State), Most: mostPrinted}
	if s.line.JSON {
		wanted.Most = reservation.MostListed
	}
	listed, total, err := reservation.List(s.ctx, s.db, s.actor, org, wanted)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type row struct {
			Reference   string            `json:"reference"`
			State       reservation.State `json:"state"`
			Name        string            `json:"name"`
			Email       string            `json:"email"`
			Tickets     int               `json:"tickets"`
			CostMinor   int64             `json:"cost_minor"`
			KeptMinor   int64             `json:"kept_minor"`
			DueMinor    int64             `json:"due_minor"`
			Currency    string            `json:"currency"`
			HeldAt      time.Time         `json:"held_at"`
			ConfirmedAt *time.Time        `json:"confirmed_at"`
		}
		rows := make([]row, len(listed))
		for i, r := range listed {
			rows[i] = row(r)
		}
		return s.answer(map[string]any{"total": total, "reservations": rows})
	}
	if total == 0 {
		s.say("cli_reservation_none", nil)
		return nil
	}
	rows := make([]table.Row, len(listed))
	for i, r := range listed {
		rows[i] = table.Row{
			r.Reference, s.voice.Say("reservation_state_"+string(r.State), nil), orDash(r.Name), s.number(r.Tickets),
			s.voice.Money(r.Money(r.CostMinor)), s.voice.Money(r.Money(r.KeptMinor)), s.voice.Money(r.Money(r.DueMinor)),
		}
	}
	s.table([]string{
		"cli_reservation_reference", "cli_reservation_state", "cli_reservation_buyer", "cli_reservation_tickets", "cli_reservation_cost",
		"cli_reservation_kept", "cli_reservation_due",
	}, rows, 4, 5, 6, 7)
	if total > len(listed) {
		s.say("cli_reservation_more", map[string]any{"shown": len(listed), "total": total})
	}
	return nil
}

// reservationName names a reservation.
type reservationName struct {
	Reservation string `arg:"" help:"Reference of the reservation."`
}

type showReservation struct{ reservationName }

func (c showReservation) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	shown, err := reservation.Show(s.ctx, s.db, s.actor, c.Reservation)
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answer(reservationAsJSON(shown))
	}
	fee := shown.FeeMinor(shown.Money)
	money := func(minor int64) i18n.Money { return i18n.Money{Minor: minor, Currency: shown.Currency} }
	s.say("cli_reservation_shown", map[string]any{
		"reference": shown.Reference, "state": s.voice.Say("reservation_state_"+string(shown.State), nil), "name": orDash(shown.Name),
		"email": orDash(shown.Email), "cost": money(shown.TotalMinor()), "paid": money(shown.Money.ReceivedMinor), "fee": money(fee), "tickets": money(shown.Money.Kept() - fee),
		"back": money(shown.Money.BackMinor), "due": money(shown.Money.DueMinor),
	})
	rows := make([]table.Row, len(shown.Lines))
	for i, line := range shown.Lines {
		state := ""
		if line.Cancelled {
			state = s.voice.Say("cli_ticket_cancelled", nil)
		}
		rows[i] = table.Row{
			s.number(line.Number), line.EventName, s.voice.Instant(line.Begins()), line.Place, line.Seat, line.KindName, s.voice.Money(money(line.PriceMinor)), state,
		}
	}
	s.table([]string{
		"cli_ticket_number", "cli_ticket_event", "cli_ticket_begins", "cli_ticket_place", "cli_ticket_seat", "cli_ticket_kind", "cli_ticket_price", "cli_remark",
	}, rows, 1, 7)
	return nil
}

func reservationAsJSON(shown reservation.Shown) any {
	type ticket struct {
		Number      int       `json:"number"`
		Event       string    `json:"event"`
		Sitting     string    `json:"sitting"`
		StartsAt    time.Time `json:"starts_at"`
		Seat        string    `json:"seat"`
		Kind        string    `json:"kind"`
		PriceMinor  int64     `json:"price_minor"`
		Cancelled   bool      `json:"cancelled"`
		RefundMinor *int64    `json:"refund_minor"`
	}
	tickets := make([]ticket, len(shown.Lines))
	for i, l := range shown.Lines {
		tickets[i] = ticket{l.Number, l.Event, l.Sitting, l.StartsAt, l.Seat, l.Kind, l.PriceMinor, l.Cancelled, l.RefundMinor}
	}
	return map[string]any{
		"reference": shown.Reference, "state": shown.State, "name": shown.Name, "email": shown.Email, "phone": shown.Phone, "currency": shown.Currency,
		"cost_minor": shown.Money.CostMinor, "received_minor": shown.Money.ReceivedMinor, "kept_minor": shown.Money.Kept(),
		"fee_minor": shown.FeeMinor(shown.Money),
		"due_minor": shown.Money.DueMinor, "back_minor": shown.Money.BackMinor, "ends_at": shown.EndsAt, "tickets": tickets,
	}
}

type payReservation struct {
	reservationName
	Gateway string `help:"Name of the counter; needed when there are several gateways."`
	Amount  string `help:"What was taken, as it stands on the receipt; else what is left to pay."`
	Receipt string `help:"Number of the receipt: the same one again changes nothing."`
}

func (c payReservation) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	shown, err := reservation.Show(s.ctx, s.db, s.actor, c.Reservation)
	if err != nil {
		return err
	}
	cash := reservation.Cash{Gateway: c.Gateway, Receipt: c.Receipt}
	if c.Amount != "" {
		if cash.AmountMinor, err = intake.Amount(c.Amount, shown.Currency); err != nil {
			return err
		}
	}
	taken, err := reservation.TakeCash(s.ctx, s.db, s.actor, c.Reservation, cash)
	if err != nil {
		return err
	}
	said := map[string]any{
		"reference": c.Reservation, "state": s.voice.Say("reservation_state_"+string(taken.Reservation.State), nil), "left": taken.Left,
	}
	if taken.Due.Minor > 0 {
		said["due"] = taken.Due
	}
	return s.done("cli_reservation_paid", said, map[string]any{
		"reference": c.Reservation, "state": taken.Reservation.State, "left_minor": taken.Left.Minor, "due_minor": taken.Due.Minor, "currency": shown.Currency,
	})
}

type cancelTickets struct {
	reservationName
	Ticket []int  `help:"Number of a ticket, as reservation show gives it; again for each further one. Without it: all."`
	Reason string `required:"" help:"Why: it is kept."`
	NoFee  bool   `help:"Give the whole price back."`
	DryRun bool   `help:"Say what would be given back, and change nothing."`
}

func (c cancelTickets) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	cancelled, err := reservation.CancelTickets(s.ctx, s.db, s.actor, c.Reservation, reservation.Cancelling{
		Tickets: c.Ticket, Reason: c.Reason, WithoutFee: c.NoFee, Preview: c.DryRun,
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		type ticket struct {
			Number      int    `json:"number"`
			Event       string `json:"event"`
			Seat        string `json:"seat"`
			PriceMinor  int64  `json:"price_minor"`
			FeeMinor    int64  `json:"fee_minor"`
			RefundMinor int64  `json:"refund_minor"`
			Currency    string `json:"currency"`
		}
		tickets := make([]ticket, len(cancelled))
		for i, t := range cancelled {
			tickets[i] = ticket{t.Number, t.Event, t.Seat, t.Price.Minor, t.Fee.Minor, t.Refund.Minor, t.Price.Currency}
		}
		return s.answer(map[string]any{"reference": c.Reservation, "dry_run": c.DryRun, "cancelled": tickets})
	}
	if len(cancelled) == 0 {
		s.say("cli_tickets_cancelled_already", nil)
		return nil
	}
	sentence := "cli_ticket_given_back"
	if c.DryRun {
		sentence = "cli_ticket_would_be_given_back"
	}
	for _, t := range cancelled {
		s.say(sentence, map[string]any{"number": t.Number, "event": t.Event, "seat": t.Seat, "price": t.Price, "fee": t.Fee, "refund": t.Refund})
	}
	return nil
}

type cancelEvent struct {
	Event  string `arg:"" help:"Short name of the event."`
	Reason string `required:"" help:"Why: it is kept."`
}

func (c cancelEvent) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	done, err := reservation.CancelEvent(s.ctx, s.db, s.actor, c.Event, c.Reason)
	if err != nil {
		return err
	}
	return s.done("cli_event_cancelled",
		map[string]any{"event": c.Event, "already": done.Already, "tickets": done.Tickets, "reservations": done.Reservations, "due": done.Due},
		map[string]any{
			"event": c.Event, "already": done.Already, "tickets": done.Tickets, "reservations": done.Reservations, "due_minor": done.Due.Minor,
			"currency": done.Due.Currency,
		})
}

type closeDispute struct {
	reservationName
	End string `arg:"" enum:"won,lost" help:"won: the money stays, and the tickets are as before; lost: the bank took it."`
}

func (c closeDispute) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := reservation.CloseDispute(s.ctx, s.db, s.actor, c.Reservation, c.End == "won"); err != nil {
		return err
	}
	return s.done("cli_dispute_"+c.End, map[string]any{"reference": c.Reservation}, map[string]any{"reference": c.Reservation, "dispute": c.End})
}

type freeReservedSeats struct{ reservationName }

func (c freeReservedSeats) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	freed, err := reservation.FreeSeats(s.ctx, s.db, s.actor, c.Reservation)
	if err != nil {
		return err
	}
	return s.done("cli_seats_freed", map[string]any{"seats": freed}, map[string]any{"reference": c.Reservation, "freed": freed})
}
