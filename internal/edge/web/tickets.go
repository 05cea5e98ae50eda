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
)

// ticketsPDF sends the tickets of a reservation to whoever knows its reference. They are gathered on disk first: a file that fails
// half way would look like fewer tickets.
func (s *site) ticketsPDF(w http.ResponseWriter, r *http.Request) {
	s.ticketFile(w, r, reservation.Tickets, "application/pdf", ".pdf", func(tickets letter.Tickets, file *os.File) error { return tickets.WritePDF(file) })
}

// ticketsCalendar sends the sittings of a reservation for a calendar, those too that are over for it.
func (s *site) ticketsCalendar(w http.ResponseWriter, r *http.Request) {
	s.ticketFile(w, r, reservation.TicketsEver, "text/calendar; charset=utf-8", ".ics", func(tickets letter.Tickets, file *os.File) error { return tickets.WriteCalendar(file) })
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

func (s *site) ticketFile(
	w http.ResponseWriter, r *http.Request, read readTickets, kind, ending string, write func(tickets letter.Tickets, file *os.File) error,
) {
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	reference := r.PathValue("reference")
	tickets, err := read(ctx, s.db, reservation.Buyer, reference)
	if err == nil {
		err = gathered(r, func(file *os.File) error {
			if err := write(tickets, file); err != nil {
				return err
			}
			return send(w, r, file, kind, letter.TicketsName(reference)+ending)
		})
	}
	if err != nil {
		failShop(w, r, err)
	}
}
