package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
)

// closeSittings closes what is over, at an hour at which nobody sits anywhere. The run of a day closes everything that has ended by then, of whichever
// day, and so of all that were missed.
func closeSittings() run.Task {
	return run.Task{
		Name:        "close-sittings",
		Schedule:    run.Schedule{Cron: "30 4 * * *", PerZone: true, Period: run.DayBefore, CatchUp: run.CatchUpLatest, Most: 1},
		Idempotency: "open → closed is one step, taken once under the sitting's row",
		Reads:       []string{"sitting", "event", "reservation", "claim", "line", "endpoint"},
		Writes:      []string{"sitting", "event", "reservation", "claim", "timeline", "dispatch", "river_job"},
		Overdue:     6 * time.Hour,
		Work: run.Work{
			Chunk: 50, Next: reservation.ListEnded,
			Do: func(ctx context.Context, tx pgx.Tx, _ run.Window, items []run.Item) (run.Outcome, error) {
				return reservation.CloseSittings(ctx, tx, itself, items)
			},
		},
	}
}
