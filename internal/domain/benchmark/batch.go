package benchmark

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// BatchSizes say how much a bench of chunked work does.
type BatchSizes struct {
	Rows   int
	Chunk  int
	Rounds int
	// How often a process that works on a run is killed, how often it is stopped, and how often its network is cut, to see how soon
	// another goes on.
	Takeovers int
}

// BatchResult is what was measured of a run of the schedule beside one plain statement that does the same to the same rows, and
// beside the same chunks without checkpoint, fence or lease. Ratios are medians of the paired ratios.
type BatchResult struct {
	Rows           int       `json:"rows"`
	Chunk          int       `json:"chunk"`
	PerSecond      float64   `json:"per_second"`
	LimitPerSecond float64   `json:"limit_per_second"` // one plain statement
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	BarePerSecond  float64   `json:"bare_per_second"`  // the same chunks, without checkpoint, fence or lease
	CheckpointCost float64   `json:"checkpoint_cost"`  // share of a run's time that those take
	Costs          []float64 `json:"checkpoint_costs"` // of each round
	Noisy          bool      `json:"noisy"`            // the rounds differ too much for the cost to say anything
	IdleMB         float64   `json:"idle_mb"`
	PeakRSS        float64   `json:"peak_rss_mb"`
	AboveIdleMB    float64   `json:"above_idle_mb"`
	// From the signal to the next chunk that another process committed: the longest of all, and what is wanted.
	Takeover        float64   `json:"takeover_seconds,omitempty"`
	TakeoverLimit   float64   `json:"takeover_limit_seconds"`
	TakeoverKilled  []float64 `json:"takeover_killed_seconds,omitempty"`
	TakeoverStopped []float64 `json:"takeover_stopped_seconds,omitempty"`
	TakeoverCut     []float64 `json:"takeover_cut_seconds,omitempty"` // the network between it and the database
	// Planning one minute with a thousand tasks that are due: the median of the looks, and what is wanted.
	Plan      float64   `json:"plan_ms"`
	PlanLimit float64   `json:"plan_limit_ms"`
	PlanLooks []float64 `json:"plan_looks_ms"`
}

// mostCostSpread is how far the costs of the rounds may lie apart before they are called noise: twice the cost that is allowed.
const mostCostSpread = 0.10

// batching is a bench of chunked work under way.
type batching struct {
	*bench
	sizes         BatchSizes
	actor         timeline.Actor
	organisations []int64
}

// batchOrganisations share the rows.
const batchOrganisations = 10

// Batch marks rows as done: as a run of the schedule, as the same chunks with nothing kept, and as one plain statement, in turn. Then it
// plans a minute at which much is due, and stops processes that work on a run.
func Batch(ctx context.Context, ownerURL string, sizes BatchSizes, nodes Nodes, say func(string)) (BatchResult, error) {
	result := BatchResult{Rows: sizes.Rows, Chunk: sizes.Chunk, TakeoverLimit: TakeoverLimit, PlanLimit: PlanLimit}
	opened, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer opened.close(context.WithoutCancel(ctx))
	b := &batching{bench: opened, sizes: sizes, actor: timeline.Actor{Name: "bench", Installation: true}}
	if err := b.prepare(ctx); err != nil {
		return result, err
	}
	debug.FreeOSMemory()
	forgetPeak()
	result.IdleMB = peakMB()
	var ours, bare, limits []float64
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		took, peak, err := b.round(ctx, round)
		if err != nil {
			return result, err
		}
		result.PeakRSS = max(result.PeakRSS, peak)
		ours, bare, limits = append(ours, took["run"].Seconds()), append(bare, took["bare"].Seconds()), append(limits, took["plain"].Seconds())
		result.Ratios = append(result.Ratios, took["plain"].Seconds()/took["run"].Seconds())
		result.Costs = append(result.Costs, 1-took["bare"].Seconds()/took["run"].Seconds())
	}
	rows := float64(sizes.Rows)
	result.PerSecond, result.LimitPerSecond, result.BarePerSecond = rows/median(ours), rows/median(limits), rows/median(bare)
	result.Ratio, result.CheckpointCost = median(result.Ratios), median(result.Costs)
	result.Noisy = slices.Max(result.Costs)-slices.Min(result.Costs) > mostCostSpread
	result.AboveIdleMB = result.PeakRSS - result.IdleMB
	return result, b.schedule(ctx, nodes, &result, say)
}

// schedule measures what is no matter of rows.
func (b *batching) schedule(ctx context.Context, nodes Nodes, result *BatchResult, say func(string)) (err error) {
	if _, err := b.owner.Exec(ctx, `truncate bench_item`); err != nil {
		return fmt.Errorf("empty the table: %w", err)
	}
	say("planning")
	if result.PlanLooks, err = b.plan(ctx, nodes.Enqueue); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	result.Plan = median(result.PlanLooks)
	if b.sizes.Takeovers == 0 {
		return nil
	}
	if err := b.prepareTakeovers(ctx, nodes.Daily); err != nil {
		return err
	}
	say("killing a process that works")
	if result.TakeoverKilled, err = b.takeovers(ctx, nodes, bySignal(syscall.SIGKILL)); err != nil {
		return err
	}
	say("stopping a process that works")
	if result.TakeoverStopped, err = b.takeovers(ctx, nodes, bySignal(syscall.SIGSTOP)); err != nil {
		return err
	}
	say("cutting the network of a process that works")
	if result.TakeoverCut, err = b.takeovers(ctx, nodes, byCut()); err != nil {
		return err
	}
	result.Takeover = slices.Max(slices.Concat(result.TakeoverKilled, result.TakeoverStopped, result.TakeoverCut))
	return nil
}

// round measures each way once, in another order each time: what the machine does meanwhile, and what the way before left in
// its caches, must not always meet the same one.
func (b *batching) round(ctx context.Context, nth int) (took map[string]time.Duration, peak float64, err error) {
	took = map[string]time.Duration{}
	ways := []struct {
		name string
		act  func(context.Context) error
	}{{"run", b.run}, {"bare", b.bare}, {"plain", b.plain}}
	for i := range ways {
		way := ways[(i+nth)%len(ways)]
		if took[way.name], err = b.measure(ctx, way.act); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", way.name, err)
		}
		if way.name == "run" {
			peak = peakMB()
		}
	}
	return took, peak, nil
}

func (b *batching) prepare(ctx context.Context) error {
	for n := range batchOrganisations {
		org, err := account.AddOrganisation(ctx, b.db, b.actor, account.Organisation{
			Slug: fmt.Sprint("bench-", n), Name: "Bench", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
		})
		if err != nil {
			return err
		}
		b.organisations = append(b.organisations, org.ID)
	}
	for _, statement := range []string{
		`create table bench_item (
  organisation_id bigint not null references organisation, id bigint not null, name text not null,
  done boolean not null default false, changed_at timestamptz, primary key (organisation_id, id))`,
		`call fence_tenant('bench_item')`,
		`alter table bench_item set (autovacuum_enabled = false)`,
		`grant select, update (done, changed_at) on bench_item to usher_app`,
	} {
		if _, err := b.owner.Exec(ctx, statement); err != nil {
			return fmt.Errorf("prepare the bench: %w", err)
		}
	}
	return nil
}

// measure does it once on rows that nobody has touched, and looks that all of them are done then.
func (b *batching) measure(ctx context.Context, act func(context.Context) error) (time.Duration, error) {
	for _, statement := range []string{`truncate bench_item`, `delete from refusal`, `delete from run`} {
		if _, err := b.owner.Exec(ctx, statement); err != nil {
			return 0, fmt.Errorf("empty the tables: %w", err)
		}
	}
	_, err := b.owner.Exec(ctx, `
insert into bench_item (organisation_id, id, name) select o.id, n, 'item ' || n
  from unnest($1::bigint[]) with ordinality o(id, nth), generate_series(1, $2::int) n where n % $3 = o.nth - 1`,
		b.organisations, b.sizes.Rows, batchOrganisations)
	if err != nil {
		return 0, fmt.Errorf("fill the table: %w", err)
	}
	if _, err := b.owner.Exec(ctx, `vacuum analyze bench_item`); err != nil {
		return 0, fmt.Errorf("settle the table: %w", err)
	}
	took, err := b.alone(ctx, act)
	if err != nil {
		return 0, err
	}
	var left int
	if err := b.owner.QueryRow(ctx, `select count(*) from bench_item where not done`).Scan(&left); err != nil || left != 0 {
		return 0, fmt.Errorf("%d rows are not done: %w", left, err)
	}
	return took, nil
}

func (b *batching) task() run.Task {
	return run.Task{
		Name:        "bench",
		Schedule:    run.Schedule{Cron: "0 1 * * *", Zone: "UTC", Period: run.DayBefore, CatchUp: run.CatchUpAll, Most: 1},
		Idempotency: "an item is done once", Constraint: "run_window_key", Over: "run (organisation_id, task, window_key)", Reads: []string{"bench_item"}, Writes: []string{"bench_item"},
		Overdue: time.Hour,
		Work:    run.Work{Chunk: b.sizes.Chunk, Count: b.count, Next: nextBenchItems, Do: doBenchItems},
	}
}

func (b *batching) count(context.Context, pgx.Tx, run.Window, []int64) (int64, error) {
	return int64(b.sizes.Rows), nil
}

func (b *batching) run(ctx context.Context) error {
	executor := run.Executor{Catalogue: run.Catalogue{b.task()}, Holder: "bench"}
	results, err := executor.Run(ctx, b.db, b.actor, run.Wanted{Task: "bench"})
	if err == nil && (len(results) != 1 || results[0].Progress.Changed != int64(b.sizes.Rows)) {
		err = fmt.Errorf("the run did not do all of the rows: %+v", results)
	}
	return err
}

// bare goes through the same chunks in the same transactions, by the same statements with the same arguments, and keeps nothing
// of how far it is. Organisations that lie behind are named no more, as in a run: named, each of them would be read again from
// its first row to its last for each chunk.
func (b *batching) bare(ctx context.Context) error {
	for after, more := (run.Key{}), true; more; {
		from, _ := slices.BinarySearch(b.organisations, after.OrganisationID)
		page := b.organisations[from:]
		err := b.db.Tx(ctx, page, func(tx pgx.Tx) error {
			items, err := nextBenchItems(ctx, tx, run.Window{}, page, after, b.sizes.Chunk)
			if more = len(items) > 0; err != nil || !more {
				return err
			}
			after = items[len(items)-1].Key
			_, err = doBenchItems(ctx, tx, run.Window{}, items)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plain does the same to all rows in one statement, by the same role under the same policies.
func (b *batching) plain(ctx context.Context) error {
	return b.db.Tx(ctx, b.organisations, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `set local statement_timeout = 0`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update bench_item set done = true, changed_at = clock() where organisation_id = any($1) and not done`, b.organisations)
		return err
	})
}

func nextBenchItems(ctx context.Context, tx pgx.Tx, _ run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
	rows, err := tx.Query(ctx, `
select organisation_id, id, name from bench_item
 where organisation_id = any($1) and (organisation_id, id) > ($2, $3) order by organisation_id, id limit $4`,
		organisations, after.OrganisationID, after.ID, most)
	if err != nil {
		return nil, err
	}
	items := make([]run.Item, 0, most)
	var item run.Item
	_, err = pgx.ForEachRow(rows, []any{&item.OrganisationID, &item.ID, &item.Name}, func() error { items = append(items, item); return nil })
	return items, err
}

// doBenchItems is shaped as a task should be: it locks what is free, in order, and changes what is not as it should be.
func doBenchItems(ctx context.Context, tx pgx.Tx, _ run.Window, items []run.Item) (outcome run.Outcome, err error) {
	organisations, ids := make([]int64, len(items)), make([]int64, len(items))
	for i, item := range items {
		organisations[i], ids[i] = item.OrganisationID, item.ID
	}
	var free int
	err = tx.QueryRow(ctx, `
with free as (
  select t.organisation_id, t.id, t.done
    from unnest($1::bigint[], $2::bigint[]) w(organisation_id, id) join bench_item t using (organisation_id, id)
   order by t.organisation_id, t.id for no key update of t skip locked),
done as (
  update bench_item t set done = true, changed_at = clock() from free
   where t.organisation_id = free.organisation_id and t.id = free.id and not free.done returning 1)
select (select count(*) from free), (select count(*) from done)`, organisations, ids).Scan(&free, &outcome.Changed)
	if err == nil && free < len(items) {
		err = fmt.Errorf("%d items are locked, in a database of its own", len(items)-free)
	}
	return outcome, err
}
