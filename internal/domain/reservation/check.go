package reservation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// mostFaults bounds what a check names of each kind.
const mostFaults = 1000

// Faults is what a check found that no rule allows: a fault of the program, or somebody who wrote into its tables.
type Faults struct {
	Money    []payment.Imbalance
	Unseated []Unseated
}

// None tells that nothing was found.
func (f Faults) None() bool { return len(f.Money)+len(f.Unseated) == 0 }

// Unseated is a ticket that is paid and whose seat is not its own for good.
type Unseated struct {
	Reservation string // reference
	Ticket      int
	Event       string // slug
	Sitting     string // reference
	Seat        string // label of the latest that it had
}

// Check looks whether all money of an organisation's reservations has its owner, and each ticket that is paid its seat.
func Check(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation) (f Faults, err error) {
	if err := account.Allow(actor, account.Pay); err != nil {
		return f, err
	}
	if !actor.MayActFor(org.ID) {
		return f, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	err = db.Moment(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		if f.Money, err = payment.Imbalances(ctx, tx, org.ID, mostFaults); err != nil {
			return err
		}
		f.Unseated, err = unseated(ctx, tx, org.ID, mostFaults)
		return err
	})
	return f, err
}

// unseatedSQL names the tickets of the organisations $1 that are paid and whose seats are not their own for good.
const unseatedSQL = `
select r.organisation_id, r.id, r.reference as reservation, l.number as ticket, e.slug as event, coalesce(s.reference, '') as sitting, coalesce(k.seat_label, '') as seat
  from reservation r
  join line l on (l.organisation_id, l.reservation_id) = (r.organisation_id, r.id) and l.cancelled_at is null
  join event e on (e.organisation_id, e.id) = (l.organisation_id, l.event_id)
  left join lateral (select * from claim c where c.organisation_id = l.organisation_id and c.reservation_id = l.reservation_id and c.line_number = l.number
                      order by c.id desc limit 1) k on true
  left join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
 where r.organisation_id = any($1) and r.state in ('confirmed', 'disputed') and (k.id is null or k.released_at is not null or k.expires_at is not null)`

func unseated(ctx context.Context, tx pgx.Tx, organisationID int64, most int) ([]Unseated, error) {
	rows, err := tx.Query(ctx, `select reservation, ticket, event, sitting, seat from (`+unseatedSQL+`) u order by id, ticket limit $2`, []int64{organisationID}, most)
	if err != nil {
		return nil, fmt.Errorf("look for tickets without a seat: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Unseated])
	if err != nil {
		return nil, fmt.Errorf("look for tickets without a seat: %w", err)
	}
	return found, nil
}
