package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/reservation"
)

// HoldSizes say what to measure.
type HoldSizes struct {
	Places  int // of the one sitting
	Holds   int // of one seat each, a round
	Clients int // that hold at once
	Rounds  int // pairs of holding and the limit
}

// HoldResult is what was measured. Rates are holds a second; the ratio is the median of the paired ratios. Times are those of one hold, as its
// client waits for it.
type HoldResult struct {
	Places         int       `json:"places"`
	Holds          int       `json:"holds"`
	Clients        int       `json:"clients"`
	Rounds         int       `json:"rounds"`
	Through        string    `json:"through"` // the way that was measured
	PerSecond      float64   `json:"per_second"`
	LimitPerSecond float64   `json:"limit_per_second"`
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	P50            float64   `json:"p50_ms"`
	P99            float64   `json:"p99_ms"`
	LimitP50       float64   `json:"limit_p50_ms"`
	LimitP99       float64   `json:"limit_p99_ms"`
	Refused        int       `json:"refused_while_free"` // must be 0, else the bench fails
	Doubled        int       `json:"double_seats"`       // likewise
	PeakRSS        float64   `json:"peak_rss_mb"`
}

// HoldOne holds the best seat there is, as the nth client of the round. A refusal is a problem, or is ErrRefused where the way only shows one.
type HoldOne func(ctx context.Context, n int) error

// ErrRefused is what a way answers that was refused a seat, and knows no more than that.
var ErrRefused = errors.New("the seat is refused")

// HoldThrough opens a way to hold seats of a database: HoldEvent and HoldSitting name what is sold there. It says how many hold at once; close
// ends it.
type HoldThrough struct {
	Name string
	Open func(ctx context.Context, db *pg.DB, clients int) (hold HoldOne, close func() error, err error)
}

// What the bench sells.
const (
	HoldEvent   = "bench"
	HoldSitting = "S1"
	HoldKind    = "full"
)

// ThroughDesk is the way of the domain itself.
var ThroughDesk = HoldThrough{"domain", func(_ context.Context, db *pg.DB, _ int) (HoldOne, func() error, error) {
	desk := reservation.NewDesk(db)
	return func(ctx context.Context, n int) error {
		_, err := desk.Hold(ctx, reservation.Buyer, reservation.Request{Key: holdKey(n), Locale: "en", Parts: []reservation.Part{{
			Event: HoldEvent, Sitting: HoldSitting, Best: &reservation.Best{Kinds: []string{HoldKind}},
		}}})
		return err
	}, func() error { return nil }, nil
}}

// holdKey is the key of the nth request of a round.
func holdKey(n int) string { return fmt.Sprint("hold ", n) }

// rowSeats is how many seats a row of the bench's plan has.
const rowSeats = 100

type holding struct {
	*bench
	sizes HoldSizes
}

// Hold lets clients hold the best seat of one sitting at once, and beside it the same number of clients insert the same rows, one transaction a
// hold, with nothing to choose.
func Hold(ctx context.Context, ownerURL string, sizes HoldSizes, through HoldThrough, say func(string)) (HoldResult, error) {
	result := HoldResult{Places: sizes.Places, Holds: sizes.Holds, Clients: sizes.Clients, Rounds: sizes.Rounds, Through: through.Name}
	opened, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer opened.close(context.WithoutCancel(ctx))
	b := &holding{bench: opened, sizes: sizes}
	if err := b.prepare(ctx); err != nil {
		return result, err
	}
	forgetPeak()
	var speeds, limits []float64
	var ours, plain []time.Duration
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		took, each, err := b.hold(ctx, through, &result)
		if err != nil {
			return result, err
		}
		result.PeakRSS = max(result.PeakRSS, peakMB())
		limit, eachPlain, err := b.limit(ctx)
		if err != nil {
			return result, err
		}
		ours, plain = append(ours, each...), append(plain, eachPlain...)
		speeds, limits = append(speeds, float64(sizes.Holds)/took.Seconds()), append(limits, float64(sizes.Holds)/limit.Seconds())
		result.Ratios = append(result.Ratios, limit.Seconds()/took.Seconds())
	}
	result.PerSecond, result.LimitPerSecond, result.Ratio = median(speeds), median(limits), median(result.Ratios)
	result.P50, result.P99 = percentile(ours, 50), percentile(ours, 99)
	result.LimitP50, result.LimitP99 = percentile(plain, 50), percentile(plain, 99)
	return result, nil
}

// percentile is in milliseconds.
func percentile(times []time.Duration, percent int) float64 {
	slices.Sort(times)
	return float64(times[(len(times)-1)*percent/100].Microseconds()) / 1000
}

func (b *holding) prepare(ctx context.Context) error {
	_, err := b.owner.Exec(ctx, `
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'bench', 'Bench', 'FR', 'Europe/Paris', 'fr', 'EUR');
insert into centre (organisation_id, id, name, time_zone) values (1, 1, 'Arena', 'Europe/Paris');
insert into room (organisation_id, id, centre_id, name) values (1, 1, 1, 'Arena');
insert into event (organisation_id, id, slug, name, state, currency, time_zone, hold_seconds, hold_most_seconds)
values (1, 1, '`+HoldEvent+`', 'Bench', 'on_sale', 'EUR', 'Europe/Paris', 3600, 7200);
insert into ticket_kind (organisation_id, id, event_id, code, name) values (1, 1, 1, '`+HoldKind+`', 'Full');
insert into price (organisation_id, event_id, kind_id, amount_minor) values (1, 1, 1, 2000)`)
	if err == nil {
		_, err = b.owner.Exec(ctx, `
insert into seat (organisation_id, room_id, number, label, row_label, row_order, position)
select 1, 1, n + 1, (n / $2 + 1) || '-' || (n % $2 + 1), (n / $2 + 1)::text, n / $2 + 1, n % $2 + 1 from generate_series(0, $1::int - 1) n`,
			b.sizes.Places, rowSeats)
	}
	if err == nil {
		_, err = b.owner.Exec(ctx, `
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
values (1, 1, 1, 1, '`+HoldSitting+`', clock() + interval '60 days', clock() + interval '60 days 3 hours', $1, 'room')`, b.sizes.Places)
	}
	for _, table := range []string{"claim", "line", "reservation", "timeline"} {
		if err == nil {
			_, err = b.owner.Exec(ctx, "alter table "+table+" set (autovacuum_enabled = false)")
		}
	}
	if err != nil {
		return fmt.Errorf("prepare the bench: %w", err)
	}
	return nil
}

func (b *holding) empty(ctx context.Context) error {
	if _, err := b.owner.Exec(ctx, `truncate claim, line, reservation, timeline cascade`); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	// Both sides begin with nothing of the other's left to write; only a superuser may ask.
	if _, err := b.owner.Exec(ctx, `checkpoint`); err != nil && !strings.Contains(err.Error(), "42501") {
		return fmt.Errorf("write what is left: %w", err)
	}
	return nil
}

// crowd lets the clients do so many acts at once, and gives the time that each took.
func (b *holding) crowd(ctx context.Context, act func(ctx context.Context, n int) error) (took time.Duration, each []time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each = make([]time.Duration, b.sizes.Holds)
	var next atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for range b.sizes.Clients {
		clients.Go(func() {
			for n := int(next.Add(1)) - 1; n < b.sizes.Holds; n = int(next.Add(1)) - 1 {
				from := time.Now()
				if err := act(ctx, n); err != nil {
					cancel(fmt.Errorf("hold %d: %w", n, err))
					return
				}
				each[n] = time.Since(from)
			}
		})
	}
	clients.Wait()
	return time.Since(began), each, context.Cause(ctx)
}

// hold lets the clients hold, and counts what must not be: a refusal while seats are free, and a seat that is two people's.
func (b *holding) hold(ctx context.Context, through HoldThrough, result *HoldResult) (time.Duration, []time.Duration, error) {
	if err := b.empty(ctx); err != nil {
		return 0, nil, err
	}
	hold, closeWay, err := through.Open(ctx, b.db, b.sizes.Clients)
	if err != nil {
		return 0, nil, err
	}
	var refused atomic.Int64
	took, each, err := b.crowd(ctx, func(ctx context.Context, n int) error {
		err := hold(ctx, n)
		if _, is := problem.Of(err); is || errors.Is(err, ErrRefused) {
			refused.Add(1)
			return nil
		}
		return err
	})
	if err = errors.Join(err, closeWay()); err != nil {
		return took, each, err
	}
	var held, seats, reservations int
	err = b.owner.QueryRow(ctx, `
select count(*), count(distinct seat_number), (select count(*) from reservation) from claim where released_at is null`).Scan(&held, &seats, &reservations)
	if err != nil {
		return took, each, fmt.Errorf("count the seats: %w", err)
	}
	result.Refused, result.Doubled = result.Refused+int(refused.Load()), result.Doubled+held-seats
	if refused.Load() != 0 || held != b.sizes.Holds || seats != held || reservations != held {
		return took, each, fmt.Errorf("%d refused while seats were free; %d claims on %d seats and %d reservations for %d holds",
			refused.Load(), held, seats, reservations, b.sizes.Holds)
	}
	return took, each, nil
}

// limit inserts the same rows, by the same role under the same policies, keys and indexes.
func (b *holding) limit(ctx context.Context) (time.Duration, []time.Duration, error) {
	var digest, reference, facts string
	err := b.owner.QueryRow(ctx, `
select encode(r.request_digest, 'hex'), r.reference, t.facts::text from reservation r join timeline t on t.reservation_id = r.id limit 1`).
		Scan(&digest, &reference, &facts)
	if err != nil {
		return 0, nil, fmt.Errorf("read the rows of a hold: %w", err)
	}
	if err := b.empty(ctx); err != nil {
		return 0, nil, err
	}
	end := time.Now().Add(time.Hour)
	return b.crowd(ctx, func(ctx context.Context, n int) error {
		return b.db.Tx(ctx, []int64{1}, func(tx pgx.Tx) error {
			return b.insert(ctx, tx, n, digest, fmt.Sprintf("%.8s%08d", reference, n), facts, end)
		})
	})
}

func (b *holding) insert(ctx context.Context, tx pgx.Tx, n int, digest, reference, facts string, end time.Time) error {
	var id int64
	err := tx.QueryRow(ctx, `
insert into reservation (organisation_id, reference, request_key, request_digest, currency, locale, hold_most_at, actor)
values (1, $1, $2, decode($3, 'hex'), 'EUR', 'en', $4, 'buyer') returning id`, reference, holdKey(n), digest, end).Scan(&id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
insert into line (organisation_id, reservation_id, number, event_id, kind_id, zone, list_minor, price_minor, commission_minor, cancel_fee_minor, currency,
  time_zone) values (1, $1, 1, 1, 1, '', 2000, 2000, 0, 0, 'EUR', 'Europe/Paris')`, id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, event_id, reservation_id, line_number, expires_at)
values (1, 1, $1, $2, $3, 1, $4, 1, $5)`, b.sizes.Places, n+1, fmt.Sprintf("%d-%d", n/rowSeats+1, n%rowSeats+1), id, end)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
insert into timeline (organisation_id, actor, kind, sitting_id, event_id, reservation_id, facts) values (1, 'buyer', 'reservation_held', 1, 1, $1, $2::jsonb)`,
		id, facts)
	return err
}
