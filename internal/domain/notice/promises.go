package notice

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// Promises are what holds of telling people at any moment: each is told what is true, once.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "told_as_it_is", Statement: of["told_as_it_is"]},
		{Name: "told_once", Statement: of["told_once"], Guards: []promise.Guard{
			{Name: "notice_once", Over: "notice (organisation_id, subject, subject_id, kind, on_date, revision)"},
			{Name: "delivery_attempt_key", Over: "delivery (organisation_id, notice_id, channel, request, attempt)"},
		}},
		{Name: "telling_goes_on", Statement: of["telling_goes_on"], Guards: []promise.Guard{
			{Name: "delivery_under_way", Over: "delivery (organisation_id, notice_id, channel) WHERE (state = 'sending'::text)"},
		}},
	}
}
