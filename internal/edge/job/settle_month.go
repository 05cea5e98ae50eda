package job

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/ledger"
	"usher/internal/domain/outbox"
	"usher/internal/domain/run"
)

// SettleTask is the name of the task that settles.
const SettleTask = "settle-month"

// settleMonth makes the statements of the month before, a day after its end, when every transaction that began in it has long ended. Missed
// months are caught up, each by itself. A commission that nobody said stops that currency of that organisation, and names it; however many
// they are, the others are settled.
func settleMonth() run.Task {
	return run.Task{
		Name:        SettleTask,
		Schedule:    run.Schedule{Cron: "0 5 2 * *", PerZone: true, Period: run.MonthBefore, CatchUp: run.CatchUpAll, Most: 24},
		Idempotency: "one statement an organisation, month and currency",
		Constraint:  "statement_pkey",
		Over:        "statement (organisation_id, month, currency)",
		Reads: []string{
			"organisation", "event", "statement", "commission_rate", "ticket_sold", "ticket_back", "line", "reservation", "payment", "gateway_notice", "correction", "endpoint",
		},
		Writes:  []string{"statement", "entry", "dispatch", "river_job"},
		Overdue: 6 * time.Hour,
		Work: run.Work{
			Chunk: 100, MostRefused: 1_000_000, Count: run.CountOrganisations, Next: run.Organisations,
			Do: func(ctx context.Context, tx pgx.Tx, window run.Window, items []run.Item) (outcome run.Outcome, err error) {
				ids := make([]int64, len(items))
				for i, item := range items {
					ids[i] = item.OrganisationID
				}
				settled, err := ledger.Settle(ctx, tx, ids, window)
				if err != nil {
					return outcome, err
				}
				for _, item := range items {
					made, lacking := of(settled, item.OrganisationID)
					switch {
					case len(lacking) > 0:
						outcome.Refused = append(outcome.Refused, item.Refuse("commission_missing",
							problem.Facts{"organisation": item.Reference, "currencies": lacking, "currency": lacking[0]}))
					case made:
						outcome.Changed++
					}
				}
				return outcome, outbox.PublishAll(ctx, tx, statementEvents(settled)...)
			},
		},
	}
}

// of tells whether an organisation has a new statement, and in which currencies it lacks one.
func of(settled []ledger.Settled, organisationID int64) (made bool, lacking []string) {
	for _, s := range settled {
		switch {
		case s.OrganisationID != organisationID:
		case !s.Missing:
			made = true
		case !slices.Contains(lacking, s.Currency):
			lacking = append(lacking, s.Currency)
		}
	}
	return made, lacking
}

// statementEvent is a statement as other systems read it: what names it, and what it comes to.
type statementEvent struct {
	Month          string `json:"month"`
	Currency       string `json:"currency"`
	TimeZone       string `json:"time_zone"`
	CarriedMinor   int64  `json:"carried_minor"`
	NetMinor       int64  `json:"net_minor"`
	PayableMinor   int64  `json:"payable_minor"`
	CarriedOnMinor int64  `json:"carried_on_minor"`
}

func statementEvents(settled []ledger.Settled) (events []outbox.Of) {
	for _, s := range settled {
		if s.Missing {
			continue
		}
		events = append(events, outbox.Of{OrganisationID: s.OrganisationID, Event: outbox.Event{
			Kind: outbox.StatementSettled, Subject: outbox.StatementSubject(s.Currency),
			Data: statementEvent{s.Month, s.Currency, s.TimeZone, s.CarriedMinor, s.NetMinor, s.PayableMinor, s.CarriedOnMinor},
		}})
	}
	return events
}
