package payment

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Imbalance is money that has no owner, or a reservation whose money is not what it should be.
type Imbalance struct {
	Reference     string // of the reservation; of money that belongs to none, its number (#12)
	State         string // of the reservation; empty: none
	Currency      string
	CostMinor     int64 // what its tickets cost in the end
	ReceivedMinor int64
	BackMinor     int64 // went back, or was charged back
	DueMinor      int64 // is to go back
	SparedMinor   int64 // went back for no ticket, because the organiser wanted it so
}

//go:embed balance.sql
var balanceSQL string

// Imbalances are where the rule of money does not hold in an organisation, at most so many. The rule: what was received for a
// reservation and neither went back nor is to go back is what its tickets cost (while it is being paid, no more than that; once it
// lapsed or was cancelled, nothing), and money that belongs to none is due back or in the list of what a person must look at.
func Imbalances(ctx context.Context, tx pgx.Tx, organisationID int64, most int) ([]Imbalance, error) {
	rows, err := tx.Query(ctx, `
select reference, state, currency, cost_minor, received_minor, back_minor, due_minor, spared_minor from (`+balanceSQL+`) b
 order by reference limit $2`, []int64{organisationID}, most)
	if err != nil {
		return nil, fmt.Errorf("balance the money: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Imbalance])
	if err != nil {
		return nil, fmt.Errorf("balance the money: %w", err)
	}
	return found, nil
}

// Money is what a reservation's money comes to, in its currency.
type Money struct {
	CostMinor     int64
	ReceivedMinor int64
	BackMinor     int64
	DueMinor      int64
	SparedMinor   int64
}

// Kept is what was received and is neither back nor due.
func (m Money) Kept() int64 { return m.ReceivedMinor - m.BackMinor - m.DueMinor }

// Left is what is still to be paid; 0 when nothing is.
func (m Money) Left() int64 { return max(0, m.CostMinor-m.Kept()) }

// MoneyOf reads what a reservation's money comes to.
func MoneyOf(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) (m Money, err error) {
	err = tx.QueryRow(ctx, `
select cost_minor, received_minor, back_minor, due_minor, spared_minor from reservation_money
 where organisation_id = $1 and reservation_id = $2`, organisationID, reservationID).Scan(
		&m.CostMinor, &m.ReceivedMinor, &m.BackMinor, &m.DueMinor, &m.SparedMinor)
	if err != nil {
		return m, fmt.Errorf("read the reservation's money: %w", err)
	}
	return m, nil
}

// KeptOf is what is kept of those of the reservations for which something is.
func KeptOf(ctx context.Context, tx pgx.Tx, organisationID int64, reservations []int64) (map[int64]int64, error) {
	rows, err := tx.Query(ctx, `
select reservation_id, received_minor - back_minor - due_minor from reservation_money
 where organisation_id = $1 and reservation_id = any($2) and received_minor > back_minor + due_minor`, organisationID, reservations)
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	kept := map[int64]int64{}
	var id, minor int64
	if _, err = pgx.ForEachRow(rows, []any{&id, &minor}, func() error { kept[id] = minor; return nil }); err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	return kept, nil
}
