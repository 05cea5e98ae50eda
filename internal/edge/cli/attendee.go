package cli

import "usher/internal/domain/reservation"

type nameAttendee struct {
	reservationName
	Ticket int    `arg:"" help:"Number of the ticket, as reservation show gives it."`
	Name   string `required:"" help:"Name of whoever goes in."`
	Email  string `help:"Their address: they are told, with their own ticket. Without it the buyer alone is."`
}

func (c nameAttendee) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	n, err := reservation.NameAttendee(s.ctx, s.db, s.actor, c.Reservation, c.Ticket, reservation.Attendee{Name: c.Name, Email: c.Email})
	if err != nil {
		return err
	}
	sentence := "cli_attendee_named"
	if !n.Changed {
		sentence = "cli_attendee_same"
	}
	return s.done(sentence,
		map[string]any{"seat": n.Line.Seat, "event": n.Line.EventName, "before": n.Before, "name": n.Now, "told": n.Told},
		map[string]any{"reference": c.Reservation, "ticket": c.Ticket, "before": n.Before, "name": n.Now, "told": n.Told, "changed": n.Changed})
}
