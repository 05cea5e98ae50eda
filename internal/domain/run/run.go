// Package run keeps the executions of batches: who asked for what, how far it is, how it ended,
// and by name whom or what it did not do. What a run does is decided by its task; this package
// makes sure that it leaves a trace that outlives a crash.
package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/timeline"
)

// lease is how long a run is believed to be alive without a sign; every chunk gives one.
const lease = "2 minutes"

// State of a run, as it is shown.
type State string

// The states. A running run that gave no sign for longer than its lease is interrupted: its
// process died, and the same request may be made again.
const (
	StateRunning     State = "running"
	StateDone        State = "done"
	StateFailed      State = "failed"
	StateInterrupted State = "interrupted"
)

// Run is one execution.
type Run struct {
	OrganisationID int64
	ID             int64
	Task           string
	CampaignID     *int64
	Request        json.RawMessage
	Actor          string
	State          State
	Counters       json.RawMessage
	StartedAt      time.Time
	FinishedAt     *time.Time
	Error          string
}

// Start writes the row of a run that a person asks for. Its request is its identity: every press
// of the button is a new one.
func Start(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID int64, task string, campaignID int64, request any) (int64, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("write the request of the run: %w", err)
	}
	var id int64
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
insert into run (organisation_id, task, window_key, campaign_id, request, actor, lease_until)
values ($1, $2, $3, nullif($4, 0), $5, $6, clock() + $7::interval) returning id`,
			organisationID, task, "request "+rand.Text(), campaignID, string(text), actor.Name, lease).Scan(&id)
	})
	if err != nil {
		return 0, fmt.Errorf("start the run: %w", err)
	}
	return id, nil
}

// Keep writes how far the run is, in the transaction of the chunk that brought it there, and
// renews its lease.
func Keep(ctx context.Context, tx pgx.Tx, organisationID, runID int64, counters any) error {
	text, err := json.Marshal(counters)
	if err != nil {
		return fmt.Errorf("write the counters of the run: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update run set counters = $3, lease_until = clock() + $4::interval
 where organisation_id = $1 and id = $2 and state = 'running'`, organisationID, runID, string(text), lease)
	if err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("keep the run: run %d is not running any more", runID)
	}
	return nil
}

// Finish ends the run as done, in the transaction that wrote its last words.
func Finish(ctx context.Context, tx pgx.Tx, organisationID, runID int64, counters any) error {
	return end(ctx, tx, organisationID, runID, StateDone, counters, "")
}

// Fail ends the run with what stopped it.
func Fail(ctx context.Context, db *pg.DB, organisationID, runID int64, counters any, cause error) error {
	return db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		return end(ctx, tx, organisationID, runID, StateFailed, counters, cause.Error())
	})
}

func end(ctx context.Context, tx pgx.Tx, organisationID, runID int64, state State, counters any, why string) error {
	text, err := json.Marshal(counters)
	if err != nil {
		return fmt.Errorf("write the counters of the run: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update run set state = $3, counters = $4, finished_at = clock(), error = $5
 where organisation_id = $1 and id = $2 and state = 'running'`, organisationID, runID, state, string(text), why)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("run %d is not running any more", runID)
	}
	if err != nil {
		return fmt.Errorf("end the run: %w", err)
	}
	return nil
}

const columns = `
select organisation_id, id, task, campaign_id, request, actor,
       case when state = 'running' and lease_until < clock() then 'interrupted' else state end as state,
       counters, started_at, finished_at, error
  from run`

// Find reads a run of the organisations that the transaction sees.
func Find(ctx context.Context, tx pgx.Tx, id int64) (Run, error) {
	rows, err := tx.Query(ctx, columns+` where id = $1`, id)
	if err != nil {
		return Run{}, fmt.Errorf("find the run: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Run])
	if errors.Is(err, pgx.ErrNoRows) {
		return Run{}, problem.NotFound("run_unknown", problem.Facts{"run": fmt.Sprint(id)})
	}
	if err != nil {
		return Run{}, fmt.Errorf("read the run: %w", err)
	}
	return found, nil
}

// MostListed is how many runs a list shows.
const MostListed = 100

// Latest lists the latest runs of a task (empty: of all), newest first; of any campaign when
// campaignID is zero.
func Latest(ctx context.Context, tx pgx.Tx, task string, campaignID int64) ([]Run, error) {
	rows, err := tx.Query(ctx, columns+` where ($1 = '' or task = $1) and ($2 = 0 or campaign_id = $2) order by id desc limit $3`,
		task, campaignID, MostListed)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowToStructByName[Run])
	if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	return runs, nil
}
