package convocation

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// campaigns are the parts of which those are asked that speak of where candidates stand.
const campaigns = `select organisation_id, id from campaign where organisation_id = any($1) order by organisation_id, id`

// Promises are what holds of calling people at any moment: nobody is left out in silence, or passed over.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "seated_called", Parts: campaigns, Statement: of["seated_called"]},
		{Name: "filing_order", Parts: campaigns, Statement: of["filing_order"]},
		{Name: "nobody_left_out", Parts: campaigns, Statement: of["nobody_left_out"]},
		{Name: "timeline_kept", Statement: of["timeline_kept"]},
	}
}
