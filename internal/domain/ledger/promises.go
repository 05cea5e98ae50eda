package ledger

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// Promises are what holds of the months of organisations at any moment: each is settled once, and whole.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "months_add_up", Statement: of["months_add_up"], Guards: []promise.Guard{
			{Name: "statement_pkey", Over: "statement (organisation_id, month, currency)"},
			{Name: "statement_chain", Over: "statement (organisation_id, currency, from_at)"},
			{Name: "entry_key", Over: "entry (organisation_id, month, currency, kind, event_id) NULLS NOT DISTINCT"},
			{Name: "statement_adds_up", Over: "trigger statement"},
			{Name: "entry_adds_up", Over: "trigger entry"},
		}},
		{Name: "months_whole", Statement: withMovements(of["months_whole"]), Guards: []promise.Guard{
			{Name: "reservation_sold", Over: "trigger reservation"},
			{Name: "line_goes_back", Over: "trigger line"},
		}},
	}
}
