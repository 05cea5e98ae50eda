package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
)

// OwnTicket is one ticket as whoever it is for sees it: nothing else of its reservation.
type OwnTicket struct {
	letter.TicketPaper
	Stands TicketStands
	CameAt *time.Time // when a door let somebody in by it; nil: none did
}

// TicketStands is what a ticket is worth, as it is said to whoever it is for.
type TicketStands string

// How a ticket stands.
const (
	TicketValid    TicketStands = "valid"
	TicketUsed     TicketStands = "used"     // somebody went in by it
	TicketPast     TicketStands = "past"     // its sitting is over
	TicketDisputed TicketStands = "disputed" // whoever answers for the door decides
	TicketUnpaid   TicketStands = "unpaid"   // its money was taken back
	TicketOff      TicketStands = "off"      // the event does not take place
	TicketOver     TicketStands = "over"     // it was given back, or ended otherwise
)

// ReadOwnTicket reads the ticket of whoever has its link.
func ReadOwnTicket(ctx context.Context, db *pg.DB, link string) (own OwnTicket, err error) {
	var organisationID, id int64
	var number int
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select organisation_id, reservation_id, number from find_ticket($1)`, link).Scan(&organisationID, &id, &number)
		if errors.Is(err, pgx.ErrNoRows) {
			return problem.NotFound("ticket_link_unknown", nil)
		}
		if err != nil {
			return fmt.Errorf("find the ticket: %w", err)
		}
		return nil
	})
	if err != nil {
		return own, err
	}
	if err := letter.Prepare(ctx, db, organisationID); err != nil {
		return own, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		of, err := letter.ReadTickets(ctx, tx, organisationID, []int64{id}, now)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(of[id], func(t letter.TicketPaper) bool { return t.Number == number && t.Link == link })
		if at < 0 { // it got another name in between
			return problem.NotFound("ticket_link_unknown", nil)
		}
		own.TicketPaper = of[id][at]
		return own.stand(ctx, tx, now)
	})
	return own, err
}

// stand says how the ticket stands, by the rule of a door.
func (own *OwnTicket) stand(ctx context.Context, tx pgx.Tx, now time.Time) error {
	found, err := letter.Scan(ctx, tx, own.OrganisationID, own.Code)
	if err != nil {
		return err
	}
	err = tx.QueryRow(ctx, `
select min(counts_at) from scan
 where organisation_id = $1 and sitting_id = $2 and reservation_id = $3 and line_number = $4 and let_in and undone_at is null`,
		own.OrganisationID, own.SittingID, own.ReservationID, own.Number).Scan(&own.CameAt)
	if err != nil {
		return fmt.Errorf("read whether somebody went in by the ticket: %w", err)
	}
	own.Stands = standsOf(found, own.CameAt != nil, !own.EndsAt.After(now))
	return nil
}

func standsOf(found letter.Found, used, past bool) TicketStands {
	switch {
	case found.Why == "charged_back", found.State == letter.StateUnpaid:
		return TicketUnpaid
	case found.Why == "event_cancelled":
		return TicketOff
	case found.State != letter.StateValid && found.State != letter.StateDisputed:
		return TicketOver
	case used:
		return TicketUsed
	case past:
		return TicketPast
	case found.State == letter.StateDisputed:
		return TicketDisputed
	}
	return TicketValid
}
