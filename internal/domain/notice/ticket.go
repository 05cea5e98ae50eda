package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The kinds of notice about whose name a ticket is in.
const (
	KindTicketNamed    Kind = "ticket_named"    // to whoever it is for: it is theirs
	KindTicketsRenamed Kind = "tickets_renamed" // to the buyer: earlier papers are out of date
)

// SubjectTicket says that a notice is about one ticket, by its claim, and to whoever that is for.
const SubjectTicket = "ticket"

// renamedSoFar counts the names that the tickets of a reservation changed. The day is that of its confirmation: a change leaves no
// instant of its own.
const renamedSoFar = `select r.confirmed_at as at, (select sum(transfers)::int from line where organisation_id = $1 and reservation_id = r.id) as revision`

// TellAttendee adds a notice to whoever a ticket is for now, and the job that sends it. It is called in the transaction that named
// them, by whoever holds the reservation's row; the transfers tell one name from the next.
func TellAttendee(ctx context.Context, tx pgx.Tx, organisationID, reservationID, claimID int64, transfers int) error {
	_, err := tx.Exec(ctx, `
insert into notice (organisation_id, reservation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
values ($1, $2, $3, $4, $5, (clock() at time zone 'UTC')::date, $6, 'pending', 'unreachable', 1)
on conflict do nothing`, organisationID, reservationID, KindTicketNamed, SubjectTicket, claimID, transfers)
	if err != nil {
		return fmt.Errorf("write the notice about a ticket: %w", err)
	}
	return wake(ctx, tx, true, false)
}
