package payment

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Way is how a buyer may pay: a gateway, as far as everybody may know it.
type Way struct {
	Name string
	Kind GatewayKind
}

// HasPage tells whether a buyer can be sent there to pay.
func (w Way) HasPage() bool { return w.Kind != Counter }

// Ways are the gateways of an organisation to which buyers may turn now: those with a page of their own, by name, then the counters.
func Ways(ctx context.Context, tx pgx.Tx, organisationID int64) ([]Way, error) {
	rows, err := tx.Query(ctx, `
select name, kind from gateway
 where organisation_id = $1 and disabled_at is null and (kind <> 'signed' or checkout_url <> '') order by kind = 'counter', name`, organisationID)
	if err != nil {
		return nil, fmt.Errorf("list the ways to pay: %w", err)
	}
	ways, err := pgx.CollectRows(rows, pgx.RowToStructByName[Way])
	if err != nil {
		return nil, fmt.Errorf("read the ways to pay: %w", err)
	}
	return ways, nil
}
