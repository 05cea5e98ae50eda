package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// itself is who does what nobody asked for.
var itself = timeline.Actor{Name: "system (schedule)", Installation: true}

// expireHolds writes down which holds are over. Their seats are free for whoever asks without it; it is what other systems are told by, what
// has money for half a cart go back, and what keeps the rows that are open few. One run after an outage does the work of all that were missed.
func expireHolds() run.Task {
	return run.Task{
		Name:        "expire-holds",
		Schedule:    run.Schedule{Cron: "* * * * *", Zone: "UTC", Period: run.Minute, CatchUp: run.CatchUpLatest, Most: 1},
		Idempotency: "held → lapsed is one step, taken once under the reservation's row",
		Reads:       []string{"claim", "reservation", "line", "payment", "checkout", "endpoint"},
		Writes:      []string{"claim", "reservation", "timeline", "dispatch", "river_job"},
		Overdue:     15 * time.Minute,
		Work: run.Work{
			Chunk: 200, Next: reservation.ListOver,
			Do: func(ctx context.Context, tx pgx.Tx, _ run.Window, items []run.Item) (run.Outcome, error) {
				expired, passed, err := reservation.Expire(ctx, tx, itself, items)
				return run.Outcome{Changed: expired, Passed: passed}, err
			},
		},
	}
}
