package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/sample"
	"usher/internal/domain/timeline"
	"usher/internal/domain/verify"
)

// VerifySizes says what to measure.
type VerifySizes struct {
	Claims int // of as many candidates, all of them paid, convoked and with a message to go
	Rounds int // pairs of a verification and the limit
}

// claimsPerSitting is how many are seated at each sitting of the bench.
const claimsPerSitting = 200

// VerifyResult is what was measured. Rates are claims a second; the ratio is the median of the paired ratios.
type VerifyResult struct {
	Claims         int                `json:"claims"`
	Checks         int                `json:"checks"`
	PerSecond      float64            `json:"per_second"`
	LimitPerSecond float64            `json:"limit_per_second"`
	Ratio          float64            `json:"ratio"`
	Ratios         []float64          `json:"ratios"`
	Seconds        float64            `json:"seconds"`
	Analysed       float64            `json:"seconds_with_statistics"`
	Slowest        map[string]float64 `json:"seconds_of_checks"` // of the last round
	PeakRSS        float64            `json:"peak_rss_mb"`
}

// verifyTables are those through which a verification of a school goes.
var verifyTables = []string{"candidate", "registration", "payment", "sitting", "claim", "notice", "timeline", "refusal", "run"}

// Verify asks whether every promise holds of a school right after its first run, whose timeline is sealed, and counts the rows of the same
// tables, each once, by the same role under the same policies. No table has statistics; at the end all have, and it is asked once more.
func Verify(ctx context.Context, ownerURL string, sizes VerifySizes, schedule verify.Schedule, say func(string)) (VerifyResult, error) {
	result := VerifyResult{Claims: sizes.Claims, Slowest: map[string]float64{}}
	load := sample.Load{Candidates: sizes.Claims, Sittings: max(1, sizes.Claims/claimsPerSitting), StartsOn: time.Now().AddDate(0, 2, 0)}
	if err := load.Check(); err != nil {
		return result, err
	}
	b, err := open(ctx, ownerURL)
	if err != nil {
		return result, err
	}
	defer b.close(context.WithoutCancel(ctx))
	say("loading")
	if err := b.load(ctx, load, 1); err != nil {
		return result, err
	}
	say("convoking")
	if _, err := b.convoke(ctx, sizes.Claims); err != nil {
		return result, err
	}
	b.db = b.db.At(time.Now().AddDate(0, 0, 2)) // when the day of the run is over
	say("sealing")
	err = b.db.Tx(ctx, []int64{1}, func(tx pgx.Tx) error {
		_, err := timeline.Seal(ctx, tx, []int64{1}, time.Now())
		return err
	})
	if err != nil {
		return result, err
	}
	forgetPeak()
	return result, b.verifyRounds(ctx, sizes, schedule, &result, say)
}

func (b *bench) verifyRounds(ctx context.Context, sizes VerifySizes, schedule verify.Schedule, result *VerifyResult, say func(string)) error {
	var speeds, limits []float64
	for round := range sizes.Rounds {
		say(fmt.Sprintf("round %d of %d", round+1, sizes.Rounds))
		took, err := b.verify(ctx, schedule, result)
		if err != nil {
			return err
		}
		limit, err := b.countRows(ctx)
		if err != nil {
			return err
		}
		speeds = append(speeds, float64(sizes.Claims)/took.Seconds())
		limits = append(limits, float64(sizes.Claims)/limit.Seconds())
		result.Ratios = append(result.Ratios, limit.Seconds()/took.Seconds())
	}
	result.PerSecond, result.LimitPerSecond, result.Ratio = median(speeds), median(limits), median(result.Ratios)
	result.Seconds = float64(sizes.Claims) / result.PerSecond
	say("with statistics")
	if _, err := b.owner.Exec(ctx, "analyze"); err != nil {
		return fmt.Errorf("gather statistics: %w", err)
	}
	took, err := b.verify(ctx, schedule, result)
	result.Analysed = took.Seconds()
	result.PeakRSS = peakMB()
	return err
}

var errNotWhole = errors.New("what the program did itself is broken")

func (b *bench) verify(ctx context.Context, schedule verify.Schedule, result *VerifyResult) (time.Duration, error) {
	began := time.Now()
	report, err := verify.Verify(ctx, b.db, account.Administrator(), schedule, "", nil)
	took := time.Since(began)
	if err == nil && !report.OK() {
		err = errNotWhole
		for _, c := range report.Checks {
			if c.Found.Broken > 0 {
				err = fmt.Errorf("%w: %s, %d", err, c.Name, c.Found.Broken)
			}
		}
	}
	result.Checks = len(report.Checks)
	for _, c := range report.Checks {
		result.Slowest[c.Name] = c.Took.Seconds()
	}
	return took, err
}

// countRows reads every row of the tables once.
func (b *bench) countRows(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := b.db.Read(ctx, []int64{1}, func(tx pgx.Tx) error {
		for _, table := range verifyTables {
			var rows int64
			if err := tx.QueryRow(ctx, "select count(*) from "+table, pg.PlanAnew).Scan(&rows); err != nil {
				return fmt.Errorf("count the rows of %s: %w", table, err)
			}
		}
		return nil
	})
	return time.Since(began), err
}
