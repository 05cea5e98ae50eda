package web

import (
	"context"
	"net/http"
	"os"
	"strconv"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/reservation"
	"usher/internal/domain/timeline"
)

// The files of a reservation that is paid, under its own address.
const (
	ticketsFile  = "tickets.pdf"
	calendarFile = "calendar.ics"
	ticketFile   = "ticket.pdf" // of one ticket, under its own
)

// The types of those files.
const (
	typePDF      = "application/pdf"
	typeCalendar = "text/calendar; charset=utf-8"
)

// ticketsPDF sends the tickets of a reservation to whoever knows its reference. They are gathered on disk first: a file that fails
// half way would look like fewer tickets.
func (s *site) ticketsPDF(w http.ResponseWriter, r *http.Request) {
	s.ticketsFile(w, r, reservation.Tickets, typePDF, ".pdf", func(tickets letter.Tickets, file *os.File) error { return tickets.WritePDF(file) })
}

// ticketsCalendar sends the sittings of a reservation for a calendar, those too that are over for it.
func (s *site) ticketsCalendar(w http.ResponseWriter, r *http.Request) {
	s.ticketsFile(w, r, reservation.TicketsEver, typeCalendar, ".ics", func(tickets letter.Tickets, file *os.File) error { return tickets.WriteCalendar(file) })
}

// nameAttendee puts a ticket in the name of whoever it is for.
func (s *site) nameAttendee(w http.ResponseWriter, r *http.Request) {
	s.onCart(w, r, cartPage{}, func(ctx context.Context, reference string) (string, error) {
		number, err := strconv.Atoi(r.PostFormValue("line"))
		if err != nil {
			return "", problem.NotFound("line_unknown", problem.Facts{"line": shortened(r.PostFormValue("line")), "reservation": reference})
		}
		_, err = reservation.NameAttendee(ctx, s.db, reservation.Buyer, reference, number, reservation.Attendee{
			Name: r.PostFormValue("name"), Email: r.PostFormValue("email"),
		})
		return reservationURL(reference), err
	})
}

// readTickets is a use case that reads the tickets of a reservation.
type readTickets func(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (letter.Tickets, error)

func (s *site) ticketsFile(
	w http.ResponseWriter, r *http.Request, read readTickets, kind, ending string, write func(tickets letter.Tickets, file *os.File) error,
) {
	sendTickets(w, r, kind, func(ctx context.Context, file *os.File) (string, error) {
		reference := r.PathValue("reference")
		tickets, err := read(ctx, s.db, reservation.Buyer, reference)
		if err != nil {
			return "", err
		}
		return letter.TicketsName(reference) + ending, write(tickets, file)
	})
}

// sendTickets sends what is written about tickets, under the name that it gets.
func sendTickets(w http.ResponseWriter, r *http.Request, kind string, write func(ctx context.Context, file *os.File) (name string, err error)) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	err := gathered(r, func(file *os.File) error {
		name, err := write(ctx, file)
		if err != nil {
			return err
		}
		return send(w, r, file, kind, name)
	})
	if err != nil {
		failShop(w, r, err)
	}
}
