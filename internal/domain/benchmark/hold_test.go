package benchmark

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"usher/internal/base/pg"
	"usher/internal/domain/testdb"
)

// Not beside other benches of this process: each makes the database that is named after it.
func TestHold_TellsBothRates(t *testing.T) {
	_, url := testdb.NewWithURL(t)
	sizes := HoldSizes{Places: 1_500, Holds: 1_500, Clients: 16, Rounds: 1}
	result, err := Hold(t.Context(), url, sizes, ThroughDesk, func(string) {})
	if err != nil || result.PerSecond <= 0 || result.LimitPerSecond <= 0 || result.P50 > result.P99 || result.P50 <= 0 {
		t.Errorf("%+v, %v", result, err)
	}
	t.Logf("%+v", result)
}

// A refusal while seats are free fails the bench, and so does a way that holds less than it says.
func TestHold_FailsForWhatMustNotBe(t *testing.T) {
	for wrong, lose := range map[string]error{"1 refused while seats were free": ErrRefused, "0 refused": nil} {
		_, url := testdb.NewWithURL(t)
		var asked atomic.Int64
		through := HoldThrough{"losing", func(ctx context.Context, db *pg.DB, clients int) (HoldOne, func() error, error) {
			hold, end, err := ThroughDesk.Open(ctx, db, clients)
			return func(ctx context.Context, n int) error {
				if asked.Add(1) == 7 {
					return lose
				}
				return hold(ctx, n)
			}, end, err
		}}
		_, err := Hold(t.Context(), url, HoldSizes{Places: 200, Holds: 20, Clients: 3, Rounds: 1}, through, func(string) {})
		if err == nil || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), "19 claims") {
			t.Errorf("got %v, want %s", err, wrong)
		}
	}
}
