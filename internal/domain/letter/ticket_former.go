package letter

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/mail"
	"usher/internal/domain/notice"
)

//go:embed ticket_former.sql
var readFormerSQL string

// former is whoever had a ticket, as they were told of it.
type former struct {
	Address    string // empty: they never were
	Name       string
	BuyerEmail string
}

// composeFormer words notices to those who had a ticket: it is in another name, or lets nobody in any more. Who was never told that it
// was theirs is told nothing, nor is the buyer, who has a message of their own.
func composeFormer(ctx context.Context, tx pgx.Tx, organisationID int64, due []notice.Due) ([]notice.Message, error) {
	papers, now, err := ticketsOfClaims(ctx, tx, organisationID, due)
	if err != nil {
		return nil, err
	}
	claims, transfers := make([]int64, len(due)), make([]int, len(due))
	for i, d := range due {
		claims[i], transfers[i] = d.SubjectID, d.Revision
	}
	had, err := all[former](ctx, tx, readFormerSQL, organisationID, claims, transfers)
	if err == nil && len(had) != len(due) {
		err = fmt.Errorf("%d of %d are there", len(had), len(due))
	}
	if err != nil {
		return nil, fmt.Errorf("read who had tickets: %w", err)
	}
	messages := make([]notice.Message, len(due))
	for i, d := range due {
		one, who := papers[d.SubjectID], had[i]
		lost := one.Ended && one.Transfers == d.Revision
		if d.Kind == notice.KindTicketPassedOn {
			lost = !strings.EqualFold(one.AttendeeEmail, who.Address) // it may be theirs again
		}
		switch {
		case who.Address == "" || !lost || strings.EqualFold(who.Address, who.BuyerEmail):
			messages[i].Verdict = notice.VerdictWithdrawn
		case !one.EndsAt.After(now):
			messages[i].Verdict = notice.VerdictTooLate
		default:
			if messages[i], err = one.lost(d.Kind, who); err != nil {
				return nil, err
			}
		}
	}
	return messages, nil
}

// lost is what whoever had a ticket is told, with its cancelled entry for their calendar.
func (t TicketPaper) lost(kind notice.Kind, who former) (notice.Message, error) {
	lead := "ticket_lost_over"
	switch {
	case kind == notice.KindTicketPassedOn:
		t.Attendee, lead = who.Name, "ticket_lost_passed_on"
	case t.EndReason == "event_cancelled":
		lead = "ticket_lost_off"
	}
	t.Ended, t.Reference = true, "" // the reservation is the buyer's business, whose name it may be in by now
	return t.mail(t.body("ticket_lost_subject", lead), who.Address, func() ([]mail.Attachment, error) {
		calendar, err := calendarFile(TicketsName(t.Short()), t.entry())
		return []mail.Attachment{calendar}, err
	})
}
