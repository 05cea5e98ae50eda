package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/run"
	"usher/internal/domain/waiting"
)

// offerPlaces offers what came free, however it did, to those who wait. Each queue is a chunk of its own, because it is gone through under its
// sitting's lock.
func offerPlaces() run.Task {
	return run.Task{
		Name:        "offer-places",
		Schedule:    run.Schedule{Cron: "* * * * *", Zone: "UTC", Period: run.Minute, CatchUp: run.CatchUpLatest, Most: 1},
		Idempotency: "one live place in a queue an address and sitting, one offer a place",
		Constraint:  "waiting_offer_key",
		Over:        "waiting (organisation_id, reservation_id) WHERE (reservation_id IS NOT NULL)",
		Reads:       []string{"waiting", "event", "ticket_kind", "price", "sitting", "claim", "reservation"},
		Writes:      []string{"waiting", "reservation", "line", "claim", "notice", "timeline", "river_job"},
		Overdue:     15 * time.Minute,
		Work: run.Work{
			Chunk: 1, Next: waiting.ListAwaited,
			Do: func(ctx context.Context, tx pgx.Tx, _ run.Window, items []run.Item) (outcome run.Outcome, err error) {
				for _, sitting := range items {
					done, err := waiting.OfferIn(ctx, tx, waiting.System, sitting)
					if err != nil {
						return outcome, err
					}
					if len(done.Offered)+done.Missed+done.Over > 0 {
						outcome.Changed++
					}
				}
				return outcome, nil
			},
		},
	}
}
