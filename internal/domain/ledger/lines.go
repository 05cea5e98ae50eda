package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Line is one thing of which the entries of a statement are the sum.
type Line struct {
	Kind            Kind
	At              time.Time // when it was written down
	Event           string    // short name; empty: it is of no single event
	EventName       string
	Reservation     string // its reference; empty: it is of none
	Pieces          int
	AmountMinor     int64  // as on the statement: less than nothing, it went from the organiser, or, of money, from gateways
	CommissionMinor int64  // less than nothing: the organiser owes it; else it came back to them
	Reason          string // of a correction, with its month
}

//go:embed lines.sql
var linesSQL string

// EachLine goes through what the statements of a month are the sum of, statement by statement: reservations with their price and commission, what
// went back of each ticket, movements of money, and corrections, each kind in the order in which it was written down. It refuses what Show refuses.
func EachLine(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, month, currency string, each func(Statement, Line) error) error {
	if err := allow(actor, org); err != nil {
		return err
	}
	return db.Moment(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		all, err := show(ctx, tx, org, month, currency)
		if err != nil {
			return err
		}
		for _, s := range all {
			if err := s.eachLine(ctx, tx, org.ID, func(l Line) error { return each(s, l) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s Statement) eachLine(ctx context.Context, tx pgx.Tx, organisationID int64, each func(Line) error) error {
	rows, err := tx.Query(ctx, linesSQL, pg.PlanAnew, organisationID, s.Currency, s.FromAt, s.UntilAt, kindNames())
	if err != nil {
		return fmt.Errorf("read the lines of a statement: %w", err)
	}
	var l Line
	var e Entry
	_, err = pgx.ForEachRow(rows, []any{
		&l.Kind, &l.At, &l.Event, &l.EventName, &l.Reservation, &l.Pieces, &e.AmountMinor, &l.CommissionMinor, &l.Reason, &e.Debit, &e.Credit,
	}, func() error {
		if l.AmountMinor = e.to(Gateways); e.Debit == Organiser || e.Credit == Organiser {
			l.AmountMinor = e.to(Organiser)
		}
		return each(l)
	})
	if err != nil {
		return fmt.Errorf("read the lines of a statement: %w", err)
	}
	return nil
}
