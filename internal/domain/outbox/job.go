package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
)

// LookEvery is how often the endpoints are looked at: what is due for another attempt, what a lost
// job left, and what somebody who is gone had claimed.
const LookEvery = 5 * time.Second

// mostAtOnce bounds the endpoints of one look; the next finds the rest.
const mostAtOnce = 1000

// The queues. An endpoint that failed last waits in another queue than those that work: however many fail, they take no place
// of one that is well.
const (
	QueueWorking = "webhooks"
	QueueFailing = "webhooks_failing"
)

// Dispatch is the job that drains an endpoint. One is inserted with each transaction's events; any
// number of them may run, and they change nothing when there is nothing to deliver.
type Dispatch struct {
	OrganisationID int64 `json:"organisation_id"`
	EndpointID     int64 `json:"endpoint_id"`
	Failing        bool  `json:"-"` // the endpoint failed last
}

// Kind names the job.
func (Dispatch) Kind() string { return "dispatch" }

// InsertOpts has it tried once: the next look repeats it.
func (d Dispatch) InsertOpts() river.InsertOpts {
	of := QueueWorking
	if d.Failing {
		of = QueueFailing
	}
	return river.InsertOpts{Queue: of, MaxAttempts: 1}
}

var _ queue.Job = Dispatch{}

// Enqueue queues a job for each endpoint at which something is to be done now.
func Enqueue(ctx context.Context, db *pg.DB) (endpoints int, err error) {
	err = db.Tx(ctx, nil, func(tx pgx.Tx) error {
		found, err := toDrain(ctx, tx)
		if err != nil {
			return fmt.Errorf("look at the endpoints: %w", err)
		}
		jobs := make([]queue.Job, len(found))
		for i, one := range found {
			jobs[i] = one
		}
		endpoints = len(jobs)
		return queue.Insert(ctx, tx, jobs...)
	})
	return endpoints, err
}

// toDrain finds the keys over the fence, and reads then, of those organisations alone, which ones failed last.
func toDrain(ctx context.Context, tx pgx.Tx) ([]Dispatch, error) {
	var organisations, ids []int64
	var organisationID, id int64
	rows, err := tx.Query(ctx, `select organisation_id, endpoint_id from endpoints_to_drain($1)`, mostAtOnce)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&organisationID, &id}, func() error {
		organisations, ids = append(organisations, organisationID), append(ids, id)
		return nil
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	slices.Sort(organisations)
	organisations = slices.Compact(organisations)
	if err := pg.See(ctx, tx, organisations...); err != nil {
		return nil, err
	}
	rows, err = tx.Query(ctx, `
select organisation_id, id as endpoint_id, failures > 0 as failing from endpoint where organisation_id = any($1) and id = any($2) order by id`,
		organisations, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Dispatch])
}
