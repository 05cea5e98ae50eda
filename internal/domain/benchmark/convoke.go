// Package benchmark measures what the program does beside the limit of the same database in the
// same run: the ratio is the figure, seconds are noise of the machine. It works in a database of
// its own, which it makes and removes.
package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/convocation"
	"usher/internal/domain/sample"
	"usher/internal/domain/schema"
)

// ConvokeSizes says what to measure.
type ConvokeSizes struct {
	Candidates int
	Sittings   int // of each exam
	Exams      int // that each candidate sits, on days of their own
	Rounds     int // pairs of a run and the limit
	Processes  int // how many processes convoke at once at the end; fewer than two: none
}

// seats is how many seats are to be given.
func (s ConvokeSizes) seats() int { return s.Candidates * s.Exams }

// ConvokeResult is what was measured. Rates are seats a second, which with one exam are candidates; the ratio is the median of
// the paired ratios.
type ConvokeResult struct {
	Candidates       int       `json:"candidates"`
	Sittings         int       `json:"sittings"`
	Exams            int       `json:"exams"`
	PerSecond        float64   `json:"per_second"`
	LimitPerSecond   float64   `json:"limit_per_second"`
	Ratio            float64   `json:"ratio"`
	Ratios           []float64 `json:"ratios"`
	Seconds          float64   `json:"seconds"`
	LimitNoKeys      float64   `json:"limit_without_foreign_keys_per_second"`
	PeakRSS          float64   `json:"peak_rss_mb"`
	Processes        int       `json:"processes,omitempty"`
	ProcessesSeconds float64   `json:"processes_seconds,omitempty"`
	ProcessesRatio   float64   `json:"processes_ratio,omitempty"` // beside one process: 1 is as fast
}

// Spawn starts one more process of the program that convokes the campaign of the database, and
// waits for its end.
type Spawn func(ctx context.Context, databaseURL, campaign string) error

const campaignSlug = "bench"

// Convoke fills a database as a school would have it right after its imports (no statistics),
// convokes everybody, and inserts the rows that were written once more, in the same order and
// chunks, by the same role under the same policies, keys and indexes, with nothing to decide.
func Convoke(ctx context.Context, ownerURL string, sizes ConvokeSizes, spawn Spawn, say func(string)) (ConvokeResult, error) {
	result := ConvokeResult{Candidates: sizes.Candidates, Sittings: sizes.Sittings, Exams: sizes.Exams}
	load := sample.Load{Candidates: sizes.Candidates, Sittings: sizes.Sittings, StartsOn: time.Now().AddDate(0, 2, 0)}
	if err := load.Check(); err != nil {
		return result, err
	}
	bench, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer bench.close(context.WithoutCancel(ctx))
	say("loading")
	if err := bench.load(ctx, load, sizes.Exams); err != nil {
		return result, err
	}
	forgetPeak()
	if err := bench.rounds(ctx, sizes, &result, say); err != nil {
		return result, err
	}
	if sizes.Processes > 1 {
		say("several processes at once")
		if err := bench.processes(ctx, sizes, &result, spawn); err != nil {
			return result, err
		}
	}
	say("the limit without foreign keys")
	if result.LimitNoKeys, err = bench.limitWithoutKeys(ctx, sizes.seats()); err != nil {
		return result, err
	}
	return result, nil
}

type bench struct {
	admin *pgx.Conn // of the server
	owner *pgx.Conn // of the bench's own database
	db    *pg.DB
	name  string
	url   string
}

func open(ctx context.Context, ownerURL string) (*bench, error) {
	admin, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w", err)
	}
	b := &bench{admin: admin, name: fmt.Sprintf("usher_bench_%d", os.Getpid())}
	if _, err := admin.Exec(ctx, "create database "+b.name); err != nil {
		return nil, fmt.Errorf("make a database for the bench: %w", err)
	}
	b.url = pg.Database(ownerURL, b.name)
	if b.db, err = pg.Open(ctx, b.url, schema.Migrations()); err != nil {
		b.close(context.WithoutCancel(ctx))
		return nil, err
	}
	if b.owner, err = pgx.Connect(ctx, b.url); err != nil {
		b.close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("reach the bench's database: %w", err)
	}
	return b, nil
}

func (b *bench) close(ctx context.Context) {
	if b.db != nil {
		b.db.Close()
	}
	if b.owner != nil {
		_ = b.owner.Close(ctx)
	}
	if _, err := b.admin.Exec(ctx, "drop database if exists "+b.name+" with (force)"); err != nil {
		fmt.Fprintln(os.Stderr, "remove the bench's database:", err)
	}
	_ = b.admin.Close(ctx)
}

// load fills the tables as the imports would, by COPY. Autovacuum is off in this database, so
// that every round finds the same: tables without statistics.
func (b *bench) load(ctx context.Context, load sample.Load, exams int) error {
	for _, table := range []string{"candidate", "registration", "payment", "sitting", "claim", "notice", "timeline", "refusal", "run"} {
		if _, err := b.owner.Exec(ctx, "alter table "+table+" set (autovacuum_enabled = false)"); err != nil {
			return fmt.Errorf("prepare the bench: %w", err)
		}
	}
	_, err := b.owner.Exec(ctx, `
insert into organisation (id, slug, name, country, time_zone, locale, currency) values (1, 'bench', 'Bench', 'ML', 'Africa/Bamako', 'fr', 'XOF');
insert into campaign (organisation_id, id, slug, name, fee_minor, currency) values (1, 1, 'bench', 'Bench', 10000, 'XOF');
insert into exam (organisation_id, id, campaign_id, code) values (1, 1, 1, 'CONCOURS');
insert into status (organisation_id, id, campaign_id, position, code, label, opens_payment) values (1, 1, 1, 1, 'accepted', 'Accepted', true)`)
	if err != nil {
		return fmt.Errorf("add the campaign of the bench: %w", err)
	}
	if err := b.loadSittings(ctx, load); err != nil {
		return err
	}
	if err := b.loadExams(ctx, exams); err != nil {
		return err
	}
	next := int64(0)
	err = b.copy(ctx, "candidate", []string{
		"organisation_id", "id", "campaign_id", "reference", "family_name", "given_name",
		"birth_on", "email", "phone", "locale", "status_id", "filed_at",
	}, func(yield func([]any) bool) {
		for c := range load.AllCandidates() {
			next++
			if !yield([]any{1, next, 1, c.Reference, c.FamilyName, c.GivenName, c.BornOn, c.Email, c.Phone, c.Locale, 1, c.FiledAt}) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	_, err = b.owner.Exec(ctx, `
insert into registration (organisation_id, candidate_id, exam_id, campaign_id) select 1, c.id, e.id, 1 from candidate c, exam e order by c.id, e.id;
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, actor)
select 1, 1, id, 10000, 'XOF', 'cash', filed_at, 'bench ' || id, 'bench' from candidate order by id`)
	if err != nil {
		return fmt.Errorf("register and pay: %w", err)
	}
	return nil
}

func (b *bench) loadSittings(ctx context.Context, load sample.Load) error {
	for s := range load.AllSittings() {
		_, err := b.owner.Exec(ctx, `
with c as (insert into centre (organisation_id, name, time_zone) values (1, $1, 'Africa/Bamako') on conflict do nothing returning id),
     known as (select id from c union all select id from centre where organisation_id = 1 and name_key(name) = name_key($1) limit 1),
     r as (insert into room (organisation_id, centre_id, name) select 1, id, $2 from known on conflict do nothing returning id)
insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select 1, 1, 1, coalesce((select id from r), (select id from room where organisation_id = 1 and centre_id = (select id from known) and name_key(name) = name_key($2))),
       'S' || lpad((select count(*) + 1 from sitting)::text, 5, '0'), $3, $4, $5, $5, 'sitting'`,
			s.Centre, s.Room, s.StartsAt, s.EndsAt, load.Places())
		if err != nil {
			return fmt.Errorf("add a sitting: %w", err)
		}
	}
	return nil
}

// loadExams adds the other exams, each with the same sittings a year after those of the one before.
func (b *bench) loadExams(ctx context.Context, exams int) error {
	for number := 2; number <= exams; number++ {
		_, err := b.owner.Exec(ctx, `
with e as (insert into exam (organisation_id, id, campaign_id, code) overriding system value values (1, $1::int, 1, 'EXAM' || $1::int) returning id)
insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select 1, 1, e.id, room_id, reference || '-' || $1::int, starts_at + make_interval(years => $2::int), ends_at + make_interval(years => $2::int), capacity, places, places_from
  from sitting, e where exam_id = 1 order by sitting.id`, number, number-1)
		if err != nil {
			return fmt.Errorf("add exam %d: %w", number, err)
		}
	}
	return nil
}

func (b *bench) copy(ctx context.Context, table string, columns []string, rows func(yield func([]any) bool)) error {
	source := make(chan []any, 1_000)
	go func() {
		defer close(source)
		rows(func(row []any) bool {
			select {
			case source <- row:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	_, err := b.owner.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) { return <-source, nil }))
	if err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}

func (b *bench) rounds(ctx context.Context, sizes ConvokeSizes, result *ConvokeResult, say func(string)) error {
	var speeds, limits []float64
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		if err := b.empty(ctx); err != nil {
			return err
		}
		took, err := b.convoke(ctx, sizes.seats())
		if err != nil {
			return err
		}
		result.PeakRSS = max(result.PeakRSS, peakMB())
		if round == 0 {
			if err := b.keepRows(ctx); err != nil {
				return err
			}
		}
		if err := b.empty(ctx); err != nil {
			return err
		}
		limit, err := b.limit(ctx, b.db.Tx)
		if err != nil {
			return err
		}
		speeds = append(speeds, float64(sizes.seats())/took.Seconds())
		limits = append(limits, float64(sizes.seats())/limit.Seconds())
		result.Ratios = append(result.Ratios, limit.Seconds()/took.Seconds())
	}
	result.PerSecond, result.LimitPerSecond, result.Ratio = median(speeds), median(limits), median(result.Ratios)
	result.Seconds = float64(sizes.seats()) / result.PerSecond
	return nil
}

// median is the middle of the values; of an even number, the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// empty puts the tables back to right after the load.
func (b *bench) empty(ctx context.Context) error {
	if _, err := b.owner.Exec(ctx, `truncate claim, notice, delivery, timeline, refusal, river_job cascade`); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	// Both sides begin with nothing of the other's left to write; only a superuser may ask.
	if _, err := b.owner.Exec(ctx, `checkpoint`); err != nil && !strings.Contains(err.Error(), "42501") {
		return fmt.Errorf("write what is left: %w", err)
	}
	return nil
}

func (b *bench) convoke(ctx context.Context, candidates int) (time.Duration, error) {
	began := time.Now()
	runID, err := convocation.Convoke(ctx, b.db, account.Administrator(), convocation.Target{Campaign: campaignSlug}, convocation.Options{})
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	report, err := convocation.ReadReport(ctx, b.db, account.Administrator(), runID)
	if err == nil && report.Seated != candidates {
		err = fmt.Errorf("%d of %d candidates were seated", report.Seated, candidates)
	}
	return took, err
}

// keptSchema is where rows are kept: beside the tables of the program, each of which has its fence.
const keptSchema = `create schema if not exists bench; grant usage on schema bench to usher_app;`

// keepRows keeps what a run wrote, with the chunk that each row was written in.
func (b *bench) keepRows(ctx context.Context) error {
	_, err := b.owner.Exec(ctx, keptSchema+`
create table bench.claim as select (row_number() over (order by id) - 1) / `+strconv.Itoa(convocation.ChunkSize)+` as chunk, * from claim order by id;
create table bench.timeline as select (row_number() over (order by id) - 1) / `+strconv.Itoa(convocation.ChunkSize)+` as chunk, * from timeline order by id;
create table bench.notice as select (row_number() over (order by id) - 1) / `+strconv.Itoa(convocation.ChunkSize)+` as chunk, * from notice order by id;
create index on bench.claim (chunk, id); create index on bench.timeline (chunk, id); create index on bench.notice (chunk, id);
grant select on bench.claim, bench.timeline, bench.notice to usher_app;
grant insert on claim, notice, timeline to usher_app`)
	if err != nil {
		return fmt.Errorf("keep the rows of the run: %w", err)
	}
	return nil
}

type begin func(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error

// limit inserts the kept rows again, chunk by chunk.
func (b *bench) limit(ctx context.Context, begin begin) (time.Duration, error) {
	var chunks int
	if err := b.owner.QueryRow(ctx, `select max(chunk) + 1 from bench.claim`).Scan(&chunks); err != nil {
		return 0, fmt.Errorf("count the chunks: %w", err)
	}
	statements, err := b.limitStatements(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for chunk := range chunks {
		err := begin(ctx, []int64{1}, func(tx pgx.Tx) error {
			for _, statement := range statements {
				if _, err := tx.Exec(ctx, statement, chunk); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("insert the rows again: %w", err)
		}
	}
	return time.Since(began), nil
}

// limitStatements insert the kept rows of a chunk, one statement a table, with every column that the
// table has: what a run writes to a column that was added later is written here as well.
func (b *bench) limitStatements(ctx context.Context) ([]string, error) {
	var statements []string
	for _, table := range []string{"claim", "timeline", "notice"} {
		var columns string
		err := b.owner.QueryRow(ctx, `
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
 where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`, table).Scan(&columns)
		if err != nil {
			return nil, fmt.Errorf("read the columns of %s: %w", table, err)
		}
		statements = append(statements, "insert into "+table+" ("+columns+") overriding system value select "+columns+
			" from bench."+table+" where chunk = $1 order by id")
	}
	return statements, nil
}

// limitWithoutKeys measures the limit once more without foreign keys, for information.
func (b *bench) limitWithoutKeys(ctx context.Context, candidates int) (float64, error) {
	_, err := b.owner.Exec(ctx, `
do $$ declare k record;
begin
  for k in select conrelid::regclass as of_table, conname from pg_constraint
            where contype = 'f' and conrelid in ('claim'::regclass, 'notice'::regclass, 'timeline'::regclass)
  loop execute format('alter table %s drop constraint %I', k.of_table, k.conname); end loop;
end $$`)
	if err != nil {
		return 0, fmt.Errorf("drop the foreign keys: %w", err)
	}
	if err := b.empty(ctx); err != nil {
		return 0, err
	}
	took, err := b.limit(ctx, b.db.Tx)
	if err != nil {
		return 0, err
	}
	return float64(candidates) / took.Seconds(), nil
}

// processes lets one process convoke the campaign, and then several at once.
func (b *bench) processes(ctx context.Context, sizes ConvokeSizes, result *ConvokeResult, spawn Spawn) error {
	one, err := b.spawn(ctx, 1, spawn)
	if err != nil {
		return err
	}
	all, err := b.spawn(ctx, sizes.Processes, spawn)
	if err != nil {
		return err
	}
	result.Processes, result.ProcessesSeconds, result.ProcessesRatio = sizes.Processes, all.Seconds(), all.Seconds()/one.Seconds()
	var claims, people, seats, notices int
	err = b.owner.QueryRow(ctx, `
select count(*), count(distinct candidate_id), count(distinct (sitting_id, seat_number)), (select count(*) from notice)
  from claim where released_at is null`).Scan(&claims, &people, &seats, &notices)
	if err == nil && (claims != sizes.seats() || people != sizes.Candidates || seats != claims || notices != claims) {
		err = fmt.Errorf("%d claims of %d people on %d seats with %d notices, for %d candidates of %d exams",
			claims, people, seats, notices, sizes.Candidates, sizes.Exams)
	}
	return err
}

// spawn starts so many processes at once on empty tables, and waits for all of them.
func (b *bench) spawn(ctx context.Context, processes int, spawn Spawn) (time.Duration, error) {
	if err := b.empty(ctx); err != nil {
		return 0, err
	}
	ended := make(chan error, processes)
	began := time.Now()
	for range processes {
		go func() { ended <- spawn(ctx, b.url, campaignSlug) }()
	}
	var failed error
	for range processes {
		failed = errors.Join(failed, <-ended)
	}
	if failed != nil {
		return 0, fmt.Errorf("convoke in %d processes: %w", processes, failed)
	}
	return time.Since(began), nil
}

// alone does something once what was written before is on disk, and tells how long it took; the peak of memory is counted anew. A server
// on which a checkpoint is forbidden measures with more noise.
func (b *bench) alone(ctx context.Context, act func(context.Context) error) (time.Duration, error) {
	_, _ = b.owner.Exec(ctx, `checkpoint`)
	debug.FreeOSMemory()
	forgetPeak()
	began := time.Now()
	err := act(ctx)
	return time.Since(began), err
}

// forgetPeak makes the kernel count the peak memory of this process anew, so that the load does
// not stand in it.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// cpuTime is the processor time that this process took since it began; 0 where the kernel does not tell.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peakMB is the peak resident memory of this process in MiB; 0 where the kernel does not tell.
func peakMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			if err != nil {
				return 0
			}
			return kb / 1024
		}
	}
	return 0
}
