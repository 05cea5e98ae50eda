package reservation

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/notice"
	"usher/internal/domain/timeline"
)

// Attendee is whoever a ticket is for.
type Attendee struct {
	Name  string
	Email string // empty: only the buyer is told
}

// mostTransfers is how often a ticket gets another name: each of them sends messages to addresses that nobody has confirmed.
const mostTransfers = 20

// Naming is what came of putting a ticket in a name.
type Naming struct {
	Line    Line
	Before  string // the name that it was in; empty: none
	Now     string
	Told    bool // whoever it is for now is told, with their ticket
	Changed bool // false: it was in that name already
}

// kindAttendeeNamed is the row of the timeline that says so.
const kindAttendeeNamed timeline.Kind = "attendee_named"

// NameAttendee puts a ticket of a reservation that is paid in a name, until its sitting begins and as long as nobody went in by it.
// Papers that bear another name are out of date from then on. The same name and address again change nothing.
func NameAttendee(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string, number int, who Attendee) (n Naming, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return n, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return n, err
	}
	if err := who.read(); err != nil {
		return n, err
	}
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		r, err := lock(ctx, tx, organisationID, id)
		if err != nil {
			return err
		}
		n, err = r.name(ctx, tx, actor, number, who)
		return err
	})
	return n, err
}

// read brings what was typed into the form in which it is kept.
func (a *Attendee) read() (err error) {
	a.Name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(a.Name, " "))), " ")
	switch {
	case a.Name == "":
		return problem.Invalid("attendee_name_missing", nil)
	case utf8.RuneCountInString(a.Name) > mostName:
		return problem.Invalid("attendee_name_long", problem.Facts{"most": mostName})
	}
	a.Email, err = readEmail(a.Email)
	return err
}

// named is what a ticket's name depends on, beside its reservation.
type named struct {
	Attendee  string
	Email     string
	Transfers int
	Used      bool // somebody went in by it
}

func (r Reservation) name(ctx context.Context, tx pgx.Tx, actor timeline.Actor, number int, who Attendee) (n Naming, err error) {
	of := slices.IndexFunc(r.Lines, func(l Line) bool { return l.Number == number })
	if of < 0 {
		return n, problem.NotFound("line_unknown", problem.Facts{"line": number, "reservation": r.Reference})
	}
	n.Line = r.Lines[of]
	// A door holds the reservation's row while it lets somebody in: what is read here stays so.
	var was named
	err = tx.QueryRow(ctx, `
select attendee, attendee_email, transfers,
       exists (select from scan where organisation_id = $1 and reservation_id = $2 and line_number = $3 and let_in and undone_at is null)
  from line where organisation_id = $1 and reservation_id = $2 and number = $3`, r.OrganisationID, r.ID, number).
		Scan(&was.Attendee, &was.Email, &was.Transfers, &was.Used)
	if err != nil {
		return n, fmt.Errorf("read whose ticket it is: %w", err)
	}
	n.Before, n.Now = cmp.Or(was.Attendee, r.Name), who.Name
	err = r.checkNaming(n.Line, was)
	if same := who.Name == n.Before && (who.Email == "" || who.Email == was.Email); same && (err == nil || problem.Has(err, "attendee_often")) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	return r.rename(ctx, tx, actor, n, was, who)
}

// checkNaming refuses another name where it is too late for one.
func (r Reservation) checkNaming(line Line, was named) error {
	facts := problem.Facts{"reservation": r.Reference, "seat": line.Seat, "event": line.EventName}
	switch {
	case r.State == Disputed:
		return problem.Refused("reservation_disputed", facts)
	case r.State != Confirmed && !r.State.Over():
		return problem.Refused("tickets_unpaid", facts)
	case line.Cancelled || r.State != Confirmed || !line.Live:
		return problem.Refused("attendee_ticket_over", facts)
	case was.Used:
		return problem.Refused("attendee_came", facts)
	case !r.ReadAt.Before(line.StartsAt):
		return problem.Refused("attendee_late", facts)
	case was.Transfers >= mostTransfers:
		facts["most"] = mostTransfers
		return problem.Refused("attendee_often", facts)
	}
	return nil
}

func (r Reservation) rename(ctx context.Context, tx pgx.Tx, actor timeline.Actor, n Naming, was named, who Attendee) (Naming, error) {
	if !strings.EqualFold(who.Email, was.Email) {
		if err := notice.TellAttendees(ctx, tx, r.OrganisationID, notice.KindTicketPassedOn, n.Line.ClaimID); err != nil {
			return n, err
		}
	}
	_, err := tx.Exec(ctx, `
update line set attendee = $4, attendee_email = $5, attendee_link = case when $5 <> '' then $6 end, transfers = transfers + 1
 where organisation_id = $1 and reservation_id = $2 and number = $3`,
		r.OrganisationID, r.ID, n.Line.Number, who.Name, who.Email, rand.Text())
	if err != nil {
		return n, fmt.Errorf("put a ticket in a name: %w", err)
	}
	n.Changed, n.Told = true, who.Email != ""
	err = timeline.Record(ctx, tx, r.OrganisationID, actor, timeline.Entry{
		Kind: kindAttendeeNamed, Subject: timeline.Subject{ReservationID: r.ID, EventID: n.Line.EventID, SittingID: n.Line.SittingID},
		Facts: map[string]any{"reservation": r.Reference, "ticket": n.Line.Number, "seat": n.Line.Seat, "before": n.Before, "now": n.Now},
	})
	if err != nil {
		return n, err
	}
	if err := notice.TellAttendees(ctx, tx, r.OrganisationID, notice.KindTicketNamed, n.Line.ClaimID); err != nil {
		return n, err
	}
	return n, notice.TellBuyers(ctx, tx, r.OrganisationID, notice.KindTicketsRenamed, r.ID)
}
