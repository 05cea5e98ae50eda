package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The kinds of notice about whose name a ticket is in.
const (
	KindTicketNamed    Kind = "ticket_named"     // to whoever it is for: it is theirs
	KindTicketPassedOn Kind = "ticket_passed_on" // to whoever it was for: it is in another name now
	KindTicketEnded    Kind = "ticket_ended"     // to whoever it was for: it lets nobody in any more
	KindTicketMoved    Kind = "ticket_moved"     // to whoever it is for: its sitting is elsewhere, or at another time
	KindTicketsRenamed Kind = "tickets_renamed"  // to the buyer: earlier papers are out of date
	KindTicketsMoved   Kind = "tickets_moved"    // to the buyer: a sitting is elsewhere, or at another time
)

// SubjectTicket says that a notice is about one ticket, by its claim, and to whoever that is for.
const SubjectTicket = "ticket"

// renamedSoFar counts the names that the tickets of a reservation changed. The day is that of its confirmation: a change leaves no
// instant of its own.
const renamedSoFar = `select r.confirmed_at as at, (select sum(transfers)::int from line where organisation_id = $1 and reservation_id = r.id) as revision`

// movedSoFar counts how often the sittings of a reservation's tickets moved, also those of tickets that ended: it only grows. The day is
// that of the confirmation, as for names.
const movedSoFar = `select r.confirmed_at as at, coalesce(sum(s.revision)::int, 0) as revision
  from (select distinct sitting_id from claim where organisation_id = $1 and reservation_id = r.id) k
 cross join lateral (select revision from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s`

// TellAttendees adds a notice to each who has an address of their own for one of these tickets, by their claims, and the jobs that send
// it. It is called in the transaction of the cause, by whoever holds the reservation's row: before another name is written for whoever had
// the ticket, after it for whoever has it now. The transfers tell one name from the next, the revision of its sitting one place from
// the next.
func TellAttendees(ctx context.Context, tx pgx.Tx, organisationID int64, kind Kind, claimIDs ...int64) error {
	_, err := tx.Exec(ctx, `
insert into notice (organisation_id, reservation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
select $1, k.reservation_id, $2, $3, k.id, case $2 when 'ticket_moved' then (s.starts_at at time zone 'UTC')::date else (coalesce(l.cancelled_at, clock()) at time zone 'UTC')::date end,
       case $2 when 'ticket_moved' then s.revision else l.transfers end, 'pending', 'unreachable', case $2 when 'ticket_named' then 1 else 0 end
  from unnest($4::bigint[]) w(id)
 cross join lateral (select id, reservation_id, line_number, sitting_id from claim where organisation_id = $1 and id = w.id offset 0) k
 cross join lateral (select starts_at, revision from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select cancelled_at, transfers, attendee_email from line
                      where organisation_id = $1 and reservation_id = k.reservation_id and number = k.line_number offset 0) l
 where l.attendee_email <> ''
 order by k.id
on conflict do nothing`, organisationID, kind, SubjectTicket, claimIDs)
	if err != nil {
		return fmt.Errorf("write the notices about tickets: %w", err)
	}
	return wake(ctx, tx, true, false)
}
