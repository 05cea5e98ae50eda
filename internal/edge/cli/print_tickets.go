package cli

import (
	"io"
	"path/filepath"

	"usher/internal/domain/letter"
	"usher/internal/domain/reservation"
)

type printTickets struct {
	Reservation string `required:"" help:"Reference of the reservation."`
	Output      string `short:"o" required:"" help:"File to write, .pdf, or a directory."`
}

func (c printTickets) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	tickets, err := reservation.Tickets(s.ctx, s.db, s.actor, c.Reservation)
	if err != nil {
		return err
	}
	file := c.Output
	if isDirectory(file) {
		file = filepath.Join(file, letter.TicketsName(c.Reservation)+".pdf")
	}
	if err := s.writeWhole(file, func(w io.Writer) error { return tickets.WritePDF(w) }); err != nil {
		return err
	}
	byHand := tickets.ByHand()
	if s.line.JSON {
		return s.answer(map[string]any{"reference": c.Reservation, "file": file, "tickets": len(tickets), "by_hand": append([]string{}, byHand...)})
	}
	s.say("cli_tickets_printed", map[string]any{"file": file, "tickets": s.voice.Count("cli_tickets", len(tickets)), "reference": c.Reservation})
	if len(byHand) > 0 {
		s.say("cli_tickets_by_hand", map[string]any{"texts": byHand})
	}
	return nil
}
