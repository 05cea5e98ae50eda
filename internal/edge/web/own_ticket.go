package web

import (
	"context"
	"net/http"
	"os"

	"github.com/a-h/templ"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/reservation"
)

// ownTicketPage is a ticket as whoever it is for sees it. Nothing is done there: what becomes of a ticket is decided by whoever bought it.
type ownTicketPage struct {
	shopChrome
	reservation.OwnTicket
	Came string // when somebody went in by it; empty: nobody did
}

func (p ownTicketPage) component() templ.Component { return ownTicketView(p) }

// Good tells whether the ticket still leads somewhere.
func (p ownTicketPage) Good() bool {
	return !p.Ended && p.Stands != reservation.TicketPast
}

// showTicket shows a ticket to whoever has its link.
func (s *site) showTicket(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	own, err := reservation.ReadOwnTicket(ctx, s.db, named(r, "link"))
	if err != nil {
		failShop(w, r, err)
		return
	}
	page := ownTicketPage{shopChrome: shopChrome{Chrome: chrome(w, r), Organiser: own.Organisation, Contact: own.Contact}, OwnTicket: own}
	page.Title, page.Here = page.Say("own_ticket_title", nil), letter.TicketPath+own.Link
	if own.CameAt != nil {
		page.Came = page.Voice.Instant(i18n.Instant{At: *own.CameAt, Zone: own.Zone})
	}
	show(w, r, http.StatusOK, page)
}

// ticketPDF sends a ticket that is still good as a page to print.
func (s *site) ticketPDF(w http.ResponseWriter, r *http.Request) {
	s.ownTicketFile(w, r, typePDF, ".pdf", func(own reservation.OwnTicket, file *os.File) error {
		if own.Ended {
			return problem.Refused("own_ticket_ended", problem.Facts{"event": own.Event})
		}
		return letter.Tickets{own.TicketPaper}.WritePDF(file)
	})
}

// ticketCalendar sends a ticket for a calendar, one too that ended: there its entry is then cancelled.
func (s *site) ticketCalendar(w http.ResponseWriter, r *http.Request) {
	s.ownTicketFile(w, r, typeCalendar, ".ics", func(own reservation.OwnTicket, file *os.File) error { return own.WriteCalendar(file) })
}

func (s *site) ownTicketFile(w http.ResponseWriter, r *http.Request, kind, ending string, write func(own reservation.OwnTicket, file *os.File) error) {
	sendTickets(w, r, kind, func(ctx context.Context, file *os.File) (string, error) {
		own, err := reservation.ReadOwnTicket(ctx, s.db, named(r, "link"))
		if err != nil {
			return "", err
		}
		return letter.TicketsName(own.Short()) + ending, write(own, file)
	})
}
