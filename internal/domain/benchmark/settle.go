package benchmark

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// SettleSizes say how much a bench of the month's settlement does.
type SettleSizes struct {
	Lines         int // tickets that were sold in the month
	Organisations int // that sold them, each as many
	Rounds        int // pairs of a run and the limit
}

// SettleResult is what was measured of a run of the schedule that settles a month, beside one statement that sums up and inserts the same for
// all organisations at once. Rates are tickets a second; the ratio is the median of the paired ratios.
type SettleResult struct {
	Lines          int       `json:"lines"`
	Organisations  int       `json:"organisations"`
	Rounds         int       `json:"rounds"`
	Chunk          int       `json:"chunk"` // organisations of one transaction
	PerSecond      float64   `json:"per_second"`
	LimitPerSecond float64   `json:"limit_per_second"`
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	Seconds        []float64 `json:"seconds"`
	LimitSeconds   []float64 `json:"limit_seconds"`
	IdleMB         float64   `json:"idle_mb"`
	PeakRSS        float64   `json:"peak_rss_mb"`
	AboveIdleMB    float64   `json:"above_idle_mb"`
}

// What the bench settles.
const (
	settleMonth   = "2025-01"
	settleTickets = 2  // of a reservation
	settleBack    = 50 // each such ticket went back
)

type settling struct {
	*bench
	sizes SettleSizes
	task  run.Task
	actor timeline.Actor
}

// Settle settles the month by the task of the schedule, and by one statement, in turn, and looks each time that both leave the same.
func Settle(ctx context.Context, ownerURL string, sizes SettleSizes, task run.Task, say func(string)) (SettleResult, error) {
	result := SettleResult{Lines: sizes.Lines, Organisations: sizes.Organisations, Rounds: sizes.Rounds, Chunk: task.Work.Chunk}
	opened, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer opened.close(context.WithoutCancel(ctx))
	b := &settling{bench: opened, sizes: sizes, task: task, actor: timeline.Actor{Name: "bench", Installation: true}}
	say("selling")
	if err := b.prepare(ctx); err != nil {
		return result, err
	}
	debug.FreeOSMemory()
	forgetPeak()
	result.IdleMB = peakMB()
	var ours, limits []float64
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		var took, limit time.Duration
		ways := []func() error{
			func() (err error) {
				took, err = b.measure(ctx, b.run)
				result.PeakRSS = max(result.PeakRSS, peakMB())
				return err
			},
			func() (err error) { limit, err = b.measure(ctx, b.plain); return err },
		}
		for i := range ways {
			if err := ways[(i+round)%len(ways)](); err != nil {
				return result, err
			}
		}
		result.Seconds, result.LimitSeconds = append(result.Seconds, took.Seconds()), append(result.LimitSeconds, limit.Seconds())
		ours, limits = append(ours, float64(sizes.Lines)/took.Seconds()), append(limits, float64(sizes.Lines)/limit.Seconds())
		result.Ratios = append(result.Ratios, limit.Seconds()/took.Seconds())
	}
	result.PerSecond, result.LimitPerSecond, result.Ratio = median(ours), median(limits), median(result.Ratios)
	result.AboveIdleMB = result.PeakRSS - result.IdleMB
	return result, nil
}

// prepare writes what a month of sales leaves: reservations of two tickets at a price of their own, what was paid for them, and some tickets
// that went back.
func (b *settling) prepare(ctx context.Context) error {
	for _, statement := range []string{
		`insert into organisation (id, slug, name, country, time_zone, locale, currency)
select n, 'bench-' || n, 'Bench', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(1, $1::int) n where $2::int > 0`,
		`insert into event (organisation_id, id, slug, name, state, currency, time_zone)
select n, n, 'bench-' || n, 'Bench', 'on_sale', 'XOF', 'Africa/Bamako' from generate_series(1, $1::int) n where $2::int > 0`,
		`insert into ticket_kind (organisation_id, id, event_id, code, name) select n, n, n, 'full', 'Full' from generate_series(1, $1::int) n where $2::int > 0`,
		`insert into gateway (organisation_id, id, name, kind, hook) select n, n, 'g', 'counter', 'h' || n from generate_series(1, $1::int) n where $2::int > 0`,
		`insert into reservation (organisation_id, id, reference, request_key, request_digest, currency, state, locale, hold_most_at, confirmed_at, actor)
select 1 + n % $1::int, n, 'r' || n, 'k' || n, '', 'XOF', 'confirmed', 'fr', '2025-01-02', '2025-01-02'::timestamptz + n % 2000000 * interval '1 second', 'a'
  from generate_series(1, $2::int) n`,
		`insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency,
  time_zone, cancelled_at, cancel_reason, refund_minor)
select r.organisation_id, r.id, t, r.organisation_id, r.organisation_id, '', 5000 + r.id % 100, 5000 + r.id % 100, 125, 0, 'XOF', 'Africa/Bamako',
       case when b.back then r.confirmed_at + interval '1 hour' end, case when b.back then 'ticket_cancelled' end, case when b.back then 5000 end
  from reservation r, generate_series(1, ` + fmt.Sprint(settleTickets) + `) t cross join lateral (select (r.id * 2 + t) % ` + fmt.Sprint(settleBack) + ` = 0 as back) b
 where $1::int + $2::int > 0`,
		`insert into ticket_sold (organisation_id, reservation_id, event_id, currency, at, pieces, price_minor, commission_minor)
select r.organisation_id, r.id, l.event_id, r.currency, r.confirmed_at, count(*), sum(l.price_minor), sum(l.commission_minor)
  from reservation r join line l on l.organisation_id = r.organisation_id and l.reservation_id = r.id where $1::int + $2::int > 0
 group by r.organisation_id, r.id, l.event_id`,
		`insert into ticket_back (organisation_id, reservation_id, line_number, currency, before_minor, after_minor, at)
select organisation_id, reservation_id, number, currency, 0, refund_minor, cancelled_at from line where refund_minor > 0 and $1::int + $2::int > 0`,
		`insert into payment (organisation_id, kind, reservation_id, gateway_id, amount_minor, currency, method, received_at, recorded_at, idempotency_key, actor)
select organisation_id, 'received', id, organisation_id, 10000 + id % 100 * 2, 'XOF', 'g', confirmed_at, confirmed_at, 'in ' || id, 'a' from reservation
 where $1::int + $2::int > 0`,
	} {
		if _, err := b.owner.Exec(ctx, statement, b.sizes.Organisations, b.sizes.Lines/settleTickets); err != nil {
			return fmt.Errorf("prepare the bench: %w", err)
		}
	}
	if _, err := b.owner.Exec(ctx, `vacuum analyze`); err != nil {
		return fmt.Errorf("settle the tables: %w", err)
	}
	return nil
}

// measure does it once where nothing is settled, and looks that everything is then.
func (b *settling) measure(ctx context.Context, act func(context.Context) error) (time.Duration, error) {
	for _, statement := range []string{`truncate entry, correction, statement`, `delete from refusal`, `delete from run`} {
		if _, err := b.owner.Exec(ctx, statement); err != nil {
			return 0, fmt.Errorf("empty the tables: %w", err)
		}
	}
	took, err := b.alone(ctx, act)
	if err != nil {
		return 0, err
	}
	var statements int
	var wrong bool
	err = b.owner.QueryRow(ctx, `
select (select count(*) from statement),
       (select sum(net_minor) from statement) is distinct from
       (select sum(price_minor - coalesce(refund_minor, 0) - commission_left(commission_minor, price_minor, coalesce(refund_minor, 0))) from line)
       or (select sum(amount_minor) from entry where kind = 'received') is distinct from (select sum(amount_minor) from payment)`).Scan(&statements, &wrong)
	if err != nil || statements != b.sizes.Organisations || wrong {
		return 0, fmt.Errorf("%d statements were made, or they do not come to what was sold: %w", statements, err)
	}
	return took, nil
}

func (b *settling) run(ctx context.Context) error {
	executor := run.Executor{Catalogue: run.Catalogue{b.task}, Holder: "bench"}
	results, err := executor.Run(ctx, b.db, b.actor, run.Wanted{Task: b.task.Name, Key: settleMonth})
	if err == nil && (len(results) != 1 || results[0].Progress.Changed != int64(b.sizes.Organisations)) {
		err = fmt.Errorf("the run did not settle all of the organisations: %+v", results)
	}
	return err
}

// plain sums up and inserts the same for all organisations in one statement, which decides nothing: not what was settled before, nor what a
// row's organisation may see, as the owner of the tables.
func (b *settling) plain(ctx context.Context) error {
	_, err := b.owner.Exec(ctx, `
with sold as (
  select organisation_id, event_id, sum(pieces) as pieces, sum(price_minor) as price_minor, sum(commission_minor) as commission_minor
    from ticket_sold where at >= $1 and at < $2 group by 1, 2),
back as (
  select l.organisation_id, l.event_id, count(*) as pieces, sum(b.after_minor) as price_minor,
         sum(l.commission_minor - commission_left(l.commission_minor, l.price_minor, b.after_minor)) as commission_minor
    from ticket_back b join line l on l.organisation_id = b.organisation_id and l.reservation_id = b.reservation_id and l.number = b.line_number
   where b.at >= $1 and b.at < $2 group by 1, 2),
moved as (select organisation_id, count(*) as pieces, sum(amount_minor) as amount_minor from payment where recorded_at >= $1 and recorded_at < $2 group by 1),
entries as materialized (
  select organisation_id, 'sale' as kind, event_id, price_minor as amount_minor, pieces from sold
  union all select organisation_id, 'commission', event_id, commission_minor, pieces from sold
  union all select organisation_id, 'ticket_refunded', event_id, price_minor, pieces from back
  union all select organisation_id, 'commission_back', event_id, commission_minor, pieces from back
  union all select organisation_id, 'received', null, amount_minor, pieces from moved),
made as (
  insert into statement (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor)
  select organisation_id, '2025-01-01', 'XOF', 'Africa/Bamako', '-infinity', $2, 0, sum(entry_net(kind, amount_minor::bigint)) from entries group by 1)
insert into entry (organisation_id, month, currency, kind, event_id, amount_minor, pieces)
select organisation_id, '2025-01-01', 'XOF', kind, event_id, amount_minor, pieces from entries`,
		time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return fmt.Errorf("settle by one statement: %w", err)
	}
	return nil
}
