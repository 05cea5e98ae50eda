package benchmark

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/intake"
	"usher/internal/domain/sample"
	"usher/internal/domain/schema"
	"usher/internal/domain/timeline"
)

// ImportSizes says what to measure.
type ImportSizes struct {
	Rows   int // candidates; the tenth of them has paid
	Rounds int // pairs of the imports and the limit
}

// candidatesPerPayment is how many rows of candidates there are for one of payments.
const candidatesPerPayment = 10

// importChunk is the chunk of an import, in rows.
const importChunk = 1_000

// ImportResult is what was measured. Rates are rows of files a second; the ratio is the median of
// the paired ratios.
type ImportResult struct {
	Rows           int       `json:"rows"`
	Payments       int       `json:"payments"`
	PerSecond      float64   `json:"per_second"`
	AgainPerSecond float64   `json:"again_per_second"` // the same files once more: nothing changes
	LimitPerSecond float64   `json:"limit_per_second"`
	Ratio          float64   `json:"ratio"`
	Ratios         []float64 `json:"ratios"`
	Seconds        float64   `json:"seconds"`
	PeakRSS        float64   `json:"peak_rss_mb"`
}

// Import brings in a file of candidates and one of payments, and both again, and inserts the rows
// that were written once more, in the same order and chunks, by the same role under the same
// policies, keys, indexes and triggers, with nothing to read and nothing to decide. No table has
// statistics, as when a school begins.
func Import(ctx context.Context, ownerURL string, sizes ImportSizes, say func(string)) (ImportResult, error) {
	result := ImportResult{Rows: sizes.Rows, Payments: max(1, sizes.Rows/candidatesPerPayment)}
	b, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer b.close(context.WithoutCancel(ctx))
	say("writing the files")
	files, err := writeImportFiles(sizes.Rows, result.Payments)
	if err != nil {
		return result, err
	}
	defer files.close()
	if err := b.prepareImport(ctx); err != nil {
		return result, err
	}
	forgetPeak()
	return result, b.importRounds(ctx, sizes, files, &result, say)
}

// importFiles are the files to bring in. They have no name on disk, so that nothing of them stays.
type importFiles struct{ candidates, payments *os.File }

func writeImportFiles(candidates, payments int) (f importFiles, err error) {
	startsOn := time.Now().AddDate(0, 2, 0)
	f.candidates, err = temporary(sample.Load{Candidates: candidates, Sittings: 1, StartsOn: startsOn}.WriteCandidates)
	if err != nil {
		return f, err
	}
	f.payments, err = temporary(sample.Load{Candidates: payments, Sittings: 1, StartsOn: startsOn}.WritePayments)
	if err != nil {
		f.close()
	}
	return f, err
}

func temporary(write func(io.Writer) error) (*os.File, error) {
	file, err := os.CreateTemp("", "usher-bench-*")
	if err != nil {
		return nil, fmt.Errorf("make a file to import: %w", err)
	}
	if err = os.Remove(file.Name()); err == nil {
		err = write(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write a file to import: %w", err)
	}
	return file, nil
}

func (f importFiles) close() {
	for _, file := range []*os.File{f.candidates, f.payments} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// importTables are those that an import writes, in the order in which it does.
var importTables = []string{"candidate", "registration", "payment", "timeline", "refusal", "run"}

// prepareImport makes the school. Autovacuum is off, so that every round finds the same.
func (b *bench) prepareImport(ctx context.Context) error {
	for _, table := range importTables {
		if _, err := b.owner.Exec(ctx, "alter table "+table+" set (autovacuum_enabled = false)"); err != nil {
			return fmt.Errorf("prepare the bench: %w", err)
		}
	}
	org, err := account.AddOrganisation(ctx, b.db, account.Administrator(), account.Organisation{
		Slug: campaignSlug, Name: "Bench", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	if err != nil {
		return err
	}
	var statuses []admission.Status // those that the files name
	for _, status := range sample.Bamako(time.Now()).Statuses {
		statuses = append(statuses, admission.Status{Code: status.Code, Label: status.Label, Advice: status.ToDo, OpensPayment: status.OpensPayment})
	}
	c, err := admission.AddCampaign(ctx, b.db, account.Administrator(), org, admission.Campaign{Slug: campaignSlug, Name: "Bench", FeeMinor: sample.FeeMinor}, statuses)
	if err != nil {
		return err
	}
	return b.db.Tx(ctx, []int64{org.ID}, func(tx pgx.Tx) error { return admission.AddExams(ctx, tx, c, []string{"CONCOURS"}) })
}

func (b *bench) importRounds(ctx context.Context, sizes ImportSizes, files importFiles, result *ImportResult, say func(string)) error {
	rows := float64(result.Rows + result.Payments)
	var speeds, repeats, limits []float64
	var limit importLimit
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		took, err := b.importBoth(ctx, files, result, func(r intake.Result) int { return r.Created })
		if err != nil {
			return err
		}
		again, err := b.importBoth(ctx, files, result, func(r intake.Result) int { return r.Unchanged })
		if err != nil {
			return err
		}
		result.PeakRSS = max(result.PeakRSS, peakMB())
		if round == 0 {
			if limit, err = b.keepImported(ctx); err != nil {
				return err
			}
		}
		if err := b.emptyImported(ctx); err != nil {
			return err
		}
		least, err := b.insertAgain(ctx, limit)
		if err != nil {
			return err
		}
		if err := b.emptyImported(ctx); err != nil {
			return err
		}
		speeds, repeats, limits = append(speeds, rows/took.Seconds()), append(repeats, rows/again.Seconds()), append(limits, rows/least.Seconds())
		result.Ratios = append(result.Ratios, least.Seconds()/took.Seconds())
	}
	result.PerSecond, result.AgainPerSecond, result.LimitPerSecond, result.Ratio = median(speeds), median(repeats), median(limits), median(result.Ratios)
	result.Seconds = rows / result.PerSecond
	return nil
}

type importOf func(context.Context, *pg.DB, timeline.Actor, string, string, io.Reader, intake.Options) (intake.Result, error)

// importBoth imports the two files, and checks that all of their rows became what they should.
func (b *bench) importBoth(ctx context.Context, files importFiles, sizes *ImportResult, became func(intake.Result) int) (took time.Duration, err error) {
	for _, one := range []struct {
		file  *os.File
		bring importOf
		rows  int
	}{{files.candidates, intake.Candidates, sizes.Rows}, {files.payments, intake.Payments, sizes.Payments}} {
		if _, err := one.file.Seek(0, io.SeekStart); err != nil {
			return 0, fmt.Errorf("go back to the beginning of the file: %w", err)
		}
		began := time.Now()
		result, err := one.bring(ctx, b.db, account.Administrator(), campaignSlug, "bench.csv", one.file, intake.Options{})
		took += time.Since(began)
		if err != nil {
			return 0, err
		}
		if done := became(result); done != one.rows {
			return 0, fmt.Errorf("%d of %d rows became what they should: %+v", done, one.rows, result.Rejected[:min(1, len(result.Rejected))])
		}
	}
	return took, nil
}

// importLimit is what to insert again: the statements of each chunk.
type importLimit struct {
	chunks     int
	statements []string
}

// keepImported keeps the rows that the imports wrote, each with the chunk that it was written in:
// those of the payments follow those of the candidates.
func (b *bench) keepImported(ctx context.Context) (importLimit, error) {
	var limit importLimit
	var candidateChunks int
	if err := b.owner.QueryRow(ctx, `select (count(*) - 1) / $1 + 1 from candidate`, importChunk).Scan(&candidateChunks); err != nil {
		return limit, fmt.Errorf("count the chunks: %w", err)
	}
	ranked := func(over string) string {
		return fmt.Sprintf("(row_number() over (order by %s) - 1) / %d", over, importChunk)
	}
	for _, kept := range []struct{ table, chunk, where, order string }{
		{"candidate", ranked("id"), "", "id"},
		{"registration", ranked("candidate_id"), "", "candidate_id"},
		{"payment", ranked("id") + fmt.Sprintf(" + %d", candidateChunks), "", "id"},
		{"timeline", fmt.Sprintf("(row_number() over (partition by kind order by id) - 1) / %d + case kind when 'payment_recorded' then %d else 0 end",
			importChunk, candidateChunks), "where run_id is not null", "id"},
	} {
		_, err := b.owner.Exec(ctx, keptSchema+"create table bench."+kept.table+" as select "+kept.chunk+" as chunk, * from "+kept.table+" "+kept.where+" order by "+kept.order+`;
create index on bench.`+kept.table+" (chunk, "+kept.order+"); grant select on bench."+kept.table+" to usher_app; grant insert on "+kept.table+" to usher_app")
		if err != nil {
			return limit, fmt.Errorf("keep the rows of the imports: %w", err)
		}
		columns, err := b.columnsOf(ctx, kept.table)
		if err != nil {
			return limit, err
		}
		limit.statements = append(limit.statements, "insert into "+kept.table+" ("+columns+") overriding system value select "+columns+
			" from bench."+kept.table+" where chunk = $1 order by "+kept.order)
	}
	if err := b.owner.QueryRow(ctx, `select max(chunk) + 1 from bench.payment`).Scan(&limit.chunks); err != nil {
		return limit, fmt.Errorf("count the chunks: %w", err)
	}
	return limit, nil
}

// columnsOf are the columns of a table that can be written; what a candidate has paid is kept by the
// trigger of payment, in both.
func (b *bench) columnsOf(ctx context.Context, table string) (columns string, err error) {
	err = b.owner.QueryRow(ctx, `
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
 where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'paid_minor'`, table).Scan(&columns)
	if err != nil {
		return "", fmt.Errorf("list the columns of %s: %w", table, err)
	}
	return columns, nil
}

func (b *bench) insertAgain(ctx context.Context, limit importLimit) (time.Duration, error) {
	var org int64
	if err := b.owner.QueryRow(ctx, `select organisation_id from campaign`).Scan(&org); err != nil {
		return 0, fmt.Errorf("find the organisation of the bench: %w", err)
	}
	began := time.Now()
	for chunk := range limit.chunks {
		err := b.db.Tx(ctx, []int64{org}, func(tx pgx.Tx) error {
			for _, statement := range limit.statements {
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

// emptyImported puts the tables back to before the imports.
func (b *bench) emptyImported(ctx context.Context) error {
	for _, table := range importTables {
		if _, err := b.owner.Exec(ctx, "truncate "+table+" cascade"); err != nil {
			return fmt.Errorf("empty %s: %w", table, err)
		}
	}
	if err := b.empty(ctx); err != nil {
		return err
	}
	return b.reconnect(ctx)
}

// reconnect makes new sessions, as every command has them: plans that were kept from large tables, or
// made for empty ones, are no part of the comparison.
func (b *bench) reconnect(ctx context.Context) error {
	b.db.Close()
	db, err := pg.Open(ctx, b.url, schema.Migrations())
	if err != nil {
		return fmt.Errorf("reach the bench's database again: %w", err)
	}
	b.db = db
	return nil
}
