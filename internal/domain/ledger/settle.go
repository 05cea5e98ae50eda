package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/run"
)

// Settling is how long after the end of a month its settlement is refused: what was written before the end may be committed after it, and
// would stand on no statement. A statement of the program ends after five minutes; the schedule waits a day.
const Settling = 10 * time.Minute

// mostMissed is how many missed months are settled one by one: two years. What lies further back stands on the first of them.
const mostMissed = 24

// Settled is a statement that was made, or, with Missing, one that cannot be before a commission is said.
type Settled struct {
	OrganisationID int64
	Currency       string
	Missing        bool
	CarriedMinor   int64
	NetMinor       int64
	PayableMinor   int64
	CarriedOnMinor int64
	Month          string `db:"-"` // 2026-10
	TimeZone       string `db:"-"`
}

//go:embed movements.sql
var movementsSQL string

// withMovements puts what moved into a statement that says of which spans.
func withMovements(statement string) string {
	return strings.Replace(statement, "-- movements\n", movementsSQL, 1)
}

//go:embed settle.sql
var settleTemplate string

var settleSQL = withMovements(settleTemplate)

// Settle makes the statements of a month of the organisations, in one statement for all of them, and returns those that it made and those
// that lack a commission. Months that were missed are settled first, each by itself. Of an organisation in which nothing moved, and which
// carries nothing, there is no statement. Settled again, nothing changes and nothing is returned: the unique keys arbitrate.
//
// Whoever tells the outside world of a statement writes that beside this call, for those that it returned.
func Settle(ctx context.Context, tx pgx.Tx, organisations []int64, window run.Window) ([]Settled, error) {
	// Each organisation is looked up, whatever the statistics say: the plan is made while there are no statements, and kept for chunk after
	// chunk, because making it takes as long as what it does.
	if err := pg.WalkIndexes(ctx, tx); err != nil {
		return nil, err
	}
	months, err := monthsToSettle(ctx, tx, organisations, window)
	if err != nil {
		return nil, err
	}
	var all []Settled
	for i, month := range months {
		settled, err := settleMonth(ctx, tx, organisations, month)
		if err != nil {
			return nil, err
		}
		for _, s := range settled {
			if !s.Missing || i == len(months)-1 { // what lacks a commission in a month lacks it in the next, which has both
				all = append(all, s)
			}
		}
	}
	return all, pg.PlanFreely(ctx, tx)
}

// monthsToSettle are the months from the first in which something moved that stands on no statement, up to the one that is asked for.
func monthsToSettle(ctx context.Context, tx pgx.Tx, organisations []int64, window run.Window) ([]run.Window, error) {
	zone, err := time.LoadLocation(window.Zone)
	if err != nil {
		return nil, fmt.Errorf("find the time zone: %w", err)
	}
	var over bool
	var first *time.Time
	err = tx.QueryRow(ctx, firstUnsettled, organisations, window.End, Settling).Scan(&over, &first)
	if err != nil {
		return nil, fmt.Errorf("look which months are to be settled: %w", err)
	}
	month := firstOf(window.Start.In(zone))
	if !over {
		return nil, problem.Refused("month_not_over", problem.Facts{"month": month.Format(keyOfMonth), "zone": window.Zone})
	}
	months := []run.Window{window}
	if first == nil {
		return months, nil
	}
	from := firstOf(first.In(zone))
	if earliest := month.AddDate(0, -mostMissed, 0); from.Before(earliest) {
		from = earliest
	}
	for missed := month.AddDate(0, -1, 0); !missed.Before(from); missed = missed.AddDate(0, -1, 0) {
		one, err := run.MonthBefore.Parse(missed.Format(keyOfMonth)+"@"+window.Zone, nil)
		if err != nil {
			return nil, err
		}
		months = append([]run.Window{one}, months...)
	}
	return months, nil
}

// firstOf is the first day of a civil month, on the clock of UTC.
func firstOf(local time.Time) time.Time {
	return time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// firstUnsettled tells whether the month is over, and when the first thing was written down that is on no statement. What is carried is on
// each statement, also of a month in which nothing moved.
const firstUnsettled = `
select clock() >= $2::timestamptz + $3::interval,
       (select min(least(m.at, case when d.carried_on_minor < 0 then d.from_at end))
          from (select o.id as organisation_id, c.currency, coalesce(last.until_at, '-infinity') as from_at, last.carried_on_minor
                  from organisation o
                 cross join lateral (select e.currency from event e where e.organisation_id = o.id
                                     union
                                     select p.currency from payment p
                                      where p.organisation_id = o.id and p.gateway_id is not null and p.reservation_id is null) c
                  left join lateral (select s.until_at, s.carried_on_minor from statement s where s.organisation_id = o.id and s.currency = c.currency
                                      order by s.month desc limit 1) last on true
                 where o.id = any($1)) d
         cross join lateral (select least(
            (select min(t.at) from ticket_sold t where t.organisation_id = d.organisation_id and t.currency = d.currency and t.at >= d.from_at),
            (select min(p.recorded_at) from payment p
              where p.organisation_id = d.organisation_id and p.currency = d.currency and p.gateway_id is not null and p.recorded_at >= d.from_at),
            (select min(b.at) from ticket_back b where b.organisation_id = d.organisation_id and b.currency = d.currency and b.at >= d.from_at),
            (select min(c.at) from correction c where c.organisation_id = d.organisation_id and c.currency = d.currency and c.at >= d.from_at)) as at) m)`

func settleMonth(ctx context.Context, tx pgx.Tx, organisations []int64, window run.Window) ([]Settled, error) {
	key := window.Key[:len(keyOfMonth)]
	month, err := time.Parse(keyOfMonth, key)
	if err != nil {
		return nil, fmt.Errorf("read the month: %w", err)
	}
	rows, err := tx.Query(ctx, settleSQL, organisations, month, window.End, window.Zone)
	if err != nil {
		return nil, fmt.Errorf("settle the month: %w", err)
	}
	settled, err := pgx.CollectRows(rows, pgx.RowToStructByName[Settled])
	if err != nil {
		return nil, fmt.Errorf("settle the month: %w", err)
	}
	for i := range settled {
		settled[i].Month, settled[i].TimeZone = key, window.Zone
	}
	return settled, nil
}
