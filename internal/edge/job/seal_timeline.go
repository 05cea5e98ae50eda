package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// sealTimeline seals the day before of each organisation: whatever is changed in it later shows. It is due an hour after the
// day's end, when every transaction that began in it has long ended. All missed days are caught up, each with its own
// seal, whichever of their runs comes first: a list that was printed in between names the seal of its own day. Other systems, and the
// organisation by mail, are told of the seal in the transaction that makes it: what has left the machine, nobody on it can make again.
func sealTimeline() run.Task {
	return run.Task{
		Name: SealTask,
		Schedule: run.Schedule{
			Cron: "0 1 * * *", Zone: "UTC", Period: run.DayBefore, CatchUp: run.CatchUpAll, Most: 31,
		},
		Idempotency: "one seal an organisation and day",
		Constraint:  "timeline_seal_pkey",
		Over:        "timeline_seal (organisation_id, day)",
		Reads:       []string{"organisation", "timeline", "timeline_seal", "endpoint"},
		Writes:      []string{"timeline_seal", "timeline_seal_aside", "timeline", "dispatch", "notice", "river_job"},
		Overdue:     2 * time.Hour,
		Work: run.Work{
			Chunk: 50, Count: run.CountOrganisations, Next: run.Organisations,
			Do: func(ctx context.Context, tx pgx.Tx, window run.Window, items []run.Item) (run.Outcome, error) {
				ids := make([]int64, len(items))
				for i, item := range items {
					ids[i] = item.OrganisationID
				}
				sealed, err := timeline.Seal(ctx, tx, ids, window.Start)
				if err != nil {
					return run.Outcome{}, err
				}
				changed := map[int64]bool{} // one may have missed days before
				for _, seal := range sealed {
					changed[seal.OrganisationID] = true
				}
				if err := notice.TellSeals(ctx, tx, sealed); err != nil {
					return run.Outcome{}, err
				}
				return run.Outcome{Changed: len(changed)}, outbox.PublishAll(ctx, tx, sealEvents(sealed)...)
			},
		},
	}
}

// SealTask is the name of the task that seals.
const SealTask = "seal-timeline"

// SealedUntil is the day up to which the runs of the schedule say that an organisation is sealed; zero: they say nothing.
func SealedUntil(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID int64) (time.Time, error) {
	return run.DoneFor(ctx, db, actor, SealTask, organisationID)
}

// sealEvent is a seal as other systems keep it, to compare with what usher says of the day later.
type sealEvent struct {
	Day         string `json:"day"` // in UTC
	Rows        int64  `json:"rows"`
	Digest      string `json:"digest"` // SHA-256, in hexadecimal
	ShortDigest string `json:"short_digest"`
}

func sealEvents(sealed []timeline.Sealed) []outbox.Of {
	events := make([]outbox.Of, len(sealed))
	for i, s := range sealed {
		events[i] = outbox.Of{OrganisationID: s.OrganisationID, Event: outbox.Event{
			Kind: outbox.TimelineSealed, Subject: outbox.TimelineSubject,
			Data: sealEvent{Day: s.Day.Format(time.DateOnly), Rows: s.Rows, Digest: s.Digest.String(), ShortDigest: s.Digest.Short()},
		}}
	}
	return events
}
