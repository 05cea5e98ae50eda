package payment

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Dispute is a payment of a reservation that the payer's bank asks back, and of which it has not said yet what came of it.
type Dispute struct {
	GatewayID   int64
	PaymentKey  string // the gateway's name of the payment
	Key         string // the gateway's name of the dispute
	AmountMinor int64
	Currency    string
}

// Disputes are those of a reservation that are open, in the order in which their payments are locked.
func Disputes(ctx context.Context, tx pgx.Tx, organisationID, reservationID int64) ([]Dispute, error) {
	rows, err := tx.Query(ctx, `
select distinct o.gateway_id, o.gateway_key as payment_key, substr(o.key, 16) as key, o.amount_minor, o.currency
  from payment p
  join gateway_notice o on o.gateway_id = p.gateway_id and o.gateway_key = p.gateway_key and o.kind = 'dispute_opened' and o.organisation_id = p.organisation_id
 where p.organisation_id = $1 and p.reservation_id = $2 and p.kind = 'received' and p.gateway_key <> ''
   and not exists (select from payment u where u.organisation_id = p.organisation_id and u.reverses_id = p.id)
   and not exists (select from gateway_notice e
                    where e.organisation_id = o.organisation_id and e.gateway_id = o.gateway_id
                      and e.key in ('dispute_won' || substr(o.key, 15), 'dispute_lost' || substr(o.key, 15)))
 order by 1, 2, 3`, organisationID, reservationID)
	if err != nil {
		return nil, fmt.Errorf("find the disputes: %w", err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByName[Dispute])
	if err != nil {
		return nil, fmt.Errorf("find the disputes: %w", err)
	}
	return open, nil
}
