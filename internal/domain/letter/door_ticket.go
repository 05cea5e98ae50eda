package letter

import (
	"context"
	_ "embed" // the statement
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
)

//go:embed ticket_at_door.sql
var readTicketSQL string

// bought is a ticket with all by which a door judges it.
type bought struct {
	ClaimID          int64
	ReservationID    int64
	Line             int
	EventID          int64
	SittingID        int64
	Label            string
	NowID            int64 // the claim that the line has now; 0: none
	Name             string
	What             string
	Kind             string
	Sitting          string
	Centre           string
	Room             string
	Zone             string
	StartsAt         time.Time
	EndsAt           time.Time
	Revision         int
	Transfers        int
	CancelReason     string // empty: the ticket stands
	ReservationState string
	Confirmed        bool
}

func (b bought) seat() Seat {
	return Seat{
		ClaimID: b.ClaimID, SittingID: b.SittingID, ReservationID: b.ReservationID, Line: b.Line, EventID: b.EventID,
		Name: b.Name, What: b.What, Kind: b.Kind, Sitting: b.Sitting, Centre: b.Centre, Room: b.Room, Zone: b.Zone,
		StartsAt: b.StartsAt.UTC(), EndsAt: b.EndsAt.UTC(), Label: b.Label,
	}
}

// readTicket reads the ticket of a claim; nil: the claim is none of a ticket.
func readTicket(ctx context.Context, tx pgx.Tx, organisationID, claimID int64) (*bought, error) {
	rows, err := tx.Query(ctx, readTicketSQL, organisationID, claimID)
	if err != nil {
		return nil, fmt.Errorf("read the ticket of claim %d: %w", claimID, err)
	}
	ticket, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[bought])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ticket of claim %d: %w", claimID, err)
	}
	return ticket, nil
}

// stateOfTicket is the rule for a ticket whose code was written under a number of transfers: what makes it worthless comes first.
// That its sitting was moved since does not: it is for the same seat, and whoever stands at this door has found it.
func stateOfTicket(b bought, transfers int) State {
	switch {
	case b.CancelReason != "":
		return StateReleased
	case b.ReservationState == "cancelled", b.ReservationState == "refunded", b.ReservationState == "charged_back":
		return StateReleased
	case !b.Confirmed:
		return StateUnpaid
	case b.NowID == 0:
		return StateReleased
	case transfers < b.Transfers, b.NowID != b.ClaimID:
		return StateReplaced
	case b.ReservationState == "disputed":
		return StateDisputed
	}
	return StateValid
}

// judgeTicket says what a ticket is worth.
func judgeTicket(ctx context.Context, tx pgx.Tx, organisationID int64, b bought, code reading) (Found, error) {
	transfers := code.Transfers
	if !code.Signed { // the last that was given out: whoever reads the paper compares the name
		transfers = b.Transfers
	}
	found := Found{State: stateOfTicket(b, transfers), Seat: b.seat(), Why: b.CancelReason, Transferred: transfers < b.Transfers}
	if found.Why == "" && found.State == StateReleased {
		found.Why = b.ReservationState
	}
	found.Older = !code.Signed && b.Transfers > 0 && found.State == StateValid
	if found.State != StateReplaced {
		return found, nil
	}
	now := &b
	if b.NowID != b.ClaimID {
		var err error
		if now, err = readTicket(ctx, tx, organisationID, b.NowID); err != nil {
			return found, err
		}
		if now == nil {
			return found, fmt.Errorf("claim %d is not there, though it was a moment ago", b.NowID)
		}
	}
	seat := now.seat()
	if !found.Transferred && seat.SittingID == b.SittingID && seat.Label == b.Label { // taken again: the paper says the same
		found = Found{State: stateOfTicket(*now, transfers), Seat: seat, Renewed: true}
		return found, nil
	}
	found.Now = &seat
	return found, nil
}

// whyEndedWord says at a door why a ticket is worth nothing any more; of reasons that are not the holder's business, only that it was
// cancelled.
func whyEndedWord(reason string) i18n.Word {
	switch reason {
	case "event_cancelled", "charged_back":
		return i18n.Word{ID: "door_why_" + reason}
	case "refunded", "refunded_outside":
		return i18n.Word{ID: "door_why_refunded"}
	}
	return i18n.Word{ID: "door_why_cancelled"}
}

// Begins is the start in the zone in which its people read it.
func (s Seat) Begins() i18n.Instant { return i18n.Instant{At: s.StartsAt, Zone: s.Zone} }
