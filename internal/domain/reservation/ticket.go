package reservation

import (
	"context"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/letter"
	"usher/internal/domain/timeline"
)

// Tickets are the good tickets of a reservation that was paid, for whoever knows its reference.
func Tickets(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (letter.Tickets, error) {
	all, err := TicketsEver(ctx, db, actor, reference)
	if err != nil {
		return nil, err
	}
	good := all.Good()
	if len(good) == 0 {
		return nil, problem.Refused("tickets_none", problem.Facts{"reservation": reference})
	}
	return good, nil
}

// TicketsEver are all tickets that a reservation had once it was paid, with those that ended since: a calendar is told of them too.
func TicketsEver(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (tickets letter.Tickets, err error) {
	organisationID, id, err := find(ctx, db, reference)
	if err != nil {
		return nil, err
	}
	if err := allow(actor, organisationID, unknown(reference)); err != nil {
		return nil, err
	}
	if err := letter.Prepare(ctx, db, organisationID); err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		now, err := pg.Now(ctx, tx)
		if err != nil {
			return err
		}
		of, err := letter.ReadTickets(ctx, tx, organisationID, []int64{id}, now)
		if err != nil {
			return err
		}
		if tickets = of[id]; len(tickets) == 0 {
			return problem.Refused("tickets_unpaid", problem.Facts{"reservation": reference})
		}
		return nil
	})
	return tickets, err
}
