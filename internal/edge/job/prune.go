package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
)

// prune takes away what is kept no longer: what the schedule itself did, and events that other systems took. The run of a day does the work of all
// that were missed. The installation's own rows come first, since it is organisation 0.
func prune() run.Task {
	return run.Task{
		Name: "prune",
		Schedule: run.Schedule{
			Cron: "30 2 * * *", Zone: "UTC", Period: run.DayBefore, CatchUp: run.CatchUpLatest, Most: 1,
		},
		// No constraint has to keep it from doing something twice: a row that is gone is not there to be taken away again.
		Idempotency: "a row that is gone is found no more, and its key is given to no other",
		Reads:       []string{"dispatch", "run", "missed_window", "schedule"},
		Writes:      []string{"dispatch", "run", "refusal", "missed_window", "schedule"},
		Overdue:     6 * time.Hour,
		Work: run.Work{
			Chunk: 500, Pause: 20 * time.Millisecond, Next: old, Do: takeAway,
		},
	}
}

// old lists runs and missed windows of the installation, and then events of the organisations.
func old(ctx context.Context, tx pgx.Tx, window run.Window, organisations []int64, after run.Key, most int) (items []run.Item, err error) {
	if after.OrganisationID == account.System {
		if items, err = run.ListOld(ctx, tx, window.End, after.ID, most); err != nil || len(items) == most {
			return items, err
		}
		after.ID = 0
	}
	events, err := outbox.ListOld(ctx, tx, organisations, window.End, outbox.Old{OrganisationID: after.OrganisationID, ID: after.ID}, most-len(items))
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		items = append(items, run.Item{Key: run.Key{OrganisationID: e.OrganisationID, ID: e.ID}, Reference: e.MessageID})
	}
	return items, nil
}

// takeAway takes both away.
func takeAway(ctx context.Context, tx pgx.Tx, window run.Window, items []run.Item) (outcome run.Outcome, err error) {
	var runs []run.Item
	var events []outbox.Old
	for _, item := range items {
		if item.OrganisationID == account.System {
			runs = append(runs, item)
		} else {
			events = append(events, outbox.Old{OrganisationID: item.OrganisationID, ID: item.ID, MessageID: item.Reference})
		}
	}
	if len(runs) > 0 {
		if outcome, err = run.Prune(ctx, tx, window.End, runs); err != nil {
			return outcome, err
		}
	}
	taken, held, err := outbox.Prune(ctx, tx, events)
	outcome.Changed += taken
	for _, e := range held {
		outcome.Held = append(outcome.Held, run.Item{Key: run.Key{OrganisationID: e.OrganisationID, ID: e.ID}, Reference: e.MessageID})
	}
	return outcome, err
}
