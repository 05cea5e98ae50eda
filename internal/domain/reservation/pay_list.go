package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/event"
	"usher/internal/domain/payment"
	"usher/internal/domain/timeline"
)

// MostListed bounds a list of reservations.
const MostListed = 1000

// Listed is a reservation in a list.
type Listed struct {
	Reference   string
	State       State // by the clock
	Name        string
	Email       string
	Tickets     int // that were not cancelled
	CostMinor   int64
	KeptMinor   int64
	DueMinor    int64
	Currency    string
	HeldAt      time.Time
	ConfirmedAt *time.Time
}

// Money is an amount of it.
func (l Listed) Money(minor int64) i18n.Money { return i18n.Money{Minor: minor, Currency: l.Currency} }

// Wanted says which reservations are listed.
type Wanted struct {
	Event string // slug; empty: of all
	State State  // empty: all
	Most  int
}

// List reads reservations of an organisation, the latest first, and says how many there are of them.
func List(ctx context.Context, db *pg.DB, actor timeline.Actor, org account.Organisation, w Wanted) (listed []Listed, total int, err error) {
	if !actor.MayActFor(org.ID) {
		return nil, 0, problem.NotFound("organisation_unknown", problem.Facts{"slug": org.Slug})
	}
	if err := account.Allow(actor, account.Sell); err != nil {
		return nil, 0, err
	}
	if _, known := moves[w.State]; !known && w.State != "" {
		return nil, 0, problem.Invalid("reservation_state_unknown", problem.Facts{"state": string(w.State)})
	}
	of := int64(0)
	if w.Event != "" {
		e, err := event.Find(ctx, db, actor, w.Event)
		if err != nil {
			return nil, 0, err
		}
		if of = e.ID; e.OrganisationID != org.ID {
			return nil, 0, problem.NotFound("event_unknown", problem.Facts{"event": w.Event})
		}
	}
	err = db.Read(ctx, []int64{org.ID}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listQuery+` order by r.id desc limit $4`, org.ID, of, w.State, min(w.Most, MostListed))
		if err != nil {
			return fmt.Errorf("list the reservations: %w", err)
		}
		if listed, err = pgx.CollectRows(rows, pgx.RowToStructByName[Listed]); err != nil {
			return fmt.Errorf("list the reservations: %w", err)
		}
		if err := tx.QueryRow(ctx, `select count(*) from (`+listQuery+`) l`, org.ID, of, w.State).Scan(&total); err != nil {
			return fmt.Errorf("count the reservations: %w", err)
		}
		return nil
	})
	return listed, total, err
}

// A hold that is over is lapsed, whether or not that was written down.
const listQuery = `
select r.reference, s.state, r.name, r.email, s.tickets, m.cost_minor, m.received_minor - m.back_minor - m.due_minor as kept_minor, m.due_minor, r.currency,
       r.held_at, r.confirmed_at
  from reservation r
  join reservation_money m on m.organisation_id = r.organisation_id and m.reservation_id = r.id
 cross join lateral (
   select case when r.state in ('held', 'payment_started') and not exists (
                 select from claim k where k.organisation_id = r.organisation_id and k.reservation_id = r.id and k.released_at is null
                    and (k.expires_at is null or k.expires_at > clock())) then 'lapsed' else r.state end as state,
          (select count(*) from line l where l.organisation_id = r.organisation_id and l.reservation_id = r.id and l.cancelled_at is null)::int as tickets) s
 where r.organisation_id = $1 and ($3 = '' or s.state = $3)
   and ($2 = 0 or exists (select from line l where l.organisation_id = r.organisation_id and l.reservation_id = r.id and l.event_id = $2))`

// Shown is a reservation with its money and the attempts to pay it.
type Shown struct {
	Reservation
	Money payment.Money
}

// Show reads a reservation with its money, for somebody who works for its organisation.
func Show(ctx context.Context, db *pg.DB, actor timeline.Actor, reference string) (s Shown, err error) {
	organisationID, id, err := findFor(ctx, db, actor, reference)
	if err != nil {
		return s, err
	}
	if err := account.Allow(actor, account.Sell); err != nil {
		return s, err
	}
	err = db.Read(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		if s.Reservation, err = ReadByID(ctx, tx, organisationID, id); err != nil {
			return err
		}
		s.Money, err = payment.MoneyOf(ctx, tx, organisationID, id)
		return err
	})
	return s, err
}
