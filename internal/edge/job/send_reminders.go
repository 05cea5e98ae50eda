package job

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/notice"
	"usher/internal/domain/run"
)

// mostUnreachable is more people than sit anywhere within a day: that somebody has no address is named, and is no failure of the run.
const mostUnreachable = 1_000_000

// sendReminders has people told, within the 24 hours before their sitting begins, where and when it is. It writes the notices; they are sent, and
// their state is read again, by whoever drains the channels.
func sendReminders() run.Task {
	return run.Task{
		Name:        "send-reminders",
		Schedule:    run.Schedule{Cron: "*/15 * * * *", Zone: "UTC", Period: run.QuarterHour, CatchUp: run.CatchUpLatest, Most: 1},
		Idempotency: "one notice a subject, kind, date and revision of the sitting",
		Constraint:  "notice_once",
		Over:        "notice (organisation_id, subject, subject_id, kind, on_date, revision)",
		Reads:       []string{"sitting", "room", "centre", "event", "campaign", "claim", "candidate", "reservation", "notice"},
		Writes:      []string{"notice", "river_job"},
		Overdue:     time.Hour,
		Work: run.Work{
			Chunk: 500, MostRefused: mostUnreachable,
			Next: func(ctx context.Context, tx pgx.Tx, _ run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
				due, err := notice.ListReminders(ctx, tx, organisations, notice.Reminder{OrganisationID: after.OrganisationID, ClaimID: after.ID}, most)
				items := make([]run.Item, len(due))
				for i, r := range due {
					items[i] = run.Item{Key: run.Key{OrganisationID: r.OrganisationID, ID: r.ClaimID}, Reference: r.Reference, Name: r.Name}
				}
				return items, err
			},
			Do: func(ctx context.Context, tx pgx.Tx, _ run.Window, items []run.Item) (outcome run.Outcome, err error) {
				reminders := make([]notice.Reminder, len(items))
				of := make(map[run.Key]run.Item, len(items)) // two organisations may have a claim of one number
				for i, item := range items {
					reminders[i] = notice.Reminder{OrganisationID: item.OrganisationID, ClaimID: item.ID}
					of[item.Key] = item
				}
				written, unreachable, err := notice.Remind(ctx, tx, reminders)
				outcome.Changed = written
				for _, r := range unreachable {
					outcome.Refused = append(outcome.Refused, of[run.Key{OrganisationID: r.OrganisationID, ID: r.ClaimID}].Refuse("reminder_no_address", nil))
				}
				return outcome, err
			},
		},
	}
}
