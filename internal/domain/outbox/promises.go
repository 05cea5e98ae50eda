package outbox

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// Promises are what holds of events for other systems at any moment: each is written with its cause, and those of a subject go in order.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "events_in_order", Statement: of["events_in_order"], Guards: []promise.Guard{
			{Name: "dispatch_under_way", Over: "dispatch (organisation_id, endpoint_id, subject) WHERE (state = 'sending'::text)"},
		}},
		{Name: "events_written", Statement: of["events_written"]},
	}
}
