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

// lease is how long a run is believed to be alive without a sign; every chunk gives one. A run that
// waits to be taken has none, and so it is never taken for dead.
const lease = "2 minutes"

// alive is the condition of a lease that lasts. One that ends later than any that is given now was given before the clock was set
// back: whoever gave it is believed no longer.
const alive = `(lease_until >= clock() and lease_until <= clock() + interval '4 minutes')` // twice the lease

// State of a run, as it is shown.
type State string

// The states. A run that waits was handed over, and nobody has taken it yet. A running run that gave no
// sign for longer than its lease is interrupted: its process died, and the same request may be made again.
const (
	StateWaiting     State = "waiting"
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
	Window         string // the key of the window, of a run of the schedule; else empty
	Earlier        bool   // an earlier execution of the window, which was begun anew since: its report stays
	CampaignID     *int64
	Request        json.RawMessage
	Actor          string
	State          State
	Counters       json.RawMessage
	StartedAt      time.Time
	FinishedAt     *time.Time
	Error          string
}

// Start writes the row of a run that a person asks for, in a transaction of its own. Its request
// is its identity: every press of the button is a new one.
func Start(ctx context.Context, db *pg.DB, actor timeline.Actor, organisationID int64, task string, campaignID int64, request any) (id int64, err error) {
	err = db.Tx(ctx, []int64{organisationID}, func(tx pgx.Tx) error {
		id, err = Add(ctx, tx, actor, organisationID, task, campaignID, request)
		return err
	})
	return id, err
}

// Add writes the row of a run in the transaction that asks for it, for a process that begins at once.
func Add(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, task string, campaignID int64, request any) (int64, error) {
	return add(ctx, tx, actor, organisationID, task, campaignID, request, lease)
}

// AddWaiting writes the row of a run that the same transaction hands over to somebody else: it waits
// until it is taken, however long that lasts.
func AddWaiting(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, task string, campaignID int64, request any) (int64, error) {
	return add(ctx, tx, actor, organisationID, task, campaignID, request, "")
}

func add(ctx context.Context, tx pgx.Tx, actor timeline.Actor, organisationID int64, task string, campaignID int64, request any, until string) (int64, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("write the request of the run: %w", err)
	}
	var id int64
	err = tx.QueryRow(ctx, `
insert into run (organisation_id, task, window_key, campaign_id, request, actor, lease_until)
values ($1, $2, $3, nullif($4, 0), $5, $6, clock() + nullif($7, '')::interval) returning id`,
		organisationID, task, "request "+rand.Text(), campaignID, string(text), actor.Name, until).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("start the run: %w", err)
	}
	return id, nil
}

// doneSince is the condition of a run r that the same was asked for again, and done: whatever became of r, nothing of it is left to do.
const doneSince = `exists (select from run again
  where again.organisation_id = r.organisation_id and again.task = r.task and again.id > r.id and again.state = 'done'
    and again.campaign_id is not distinct from r.campaign_id and again.request = r.request)`

// UnderWay finds a run of a campaign with the same request that waits to be executed or is being
// executed, unless the same was done since: its executor may be dead, which shows only later; 0: there is none. That it is the only one is the caller's lock. A run that has waited for
// longer than a lease, or since a clock that was ahead, may have been handed over to somebody who lost it: it is overdue.
func UnderWay(ctx context.Context, tx pgx.Tx, organisationID int64, task string, campaignID int64, request any) (id int64, overdue bool, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return 0, false, fmt.Errorf("write the request of the run: %w", err)
	}
	err = tx.QueryRow(ctx, `
select id, lease_until is null and (started_at < clock() - $5::interval or started_at > clock()) from run r
 where organisation_id = $1 and task = $2 and campaign_id = $3 and request = $4::jsonb and state = 'running'
   and (lease_until is null or `+alive+`) and not `+doneSince+`
 order by id limit 1`,
		organisationID, task, campaignID, string(text), lease).Scan(&id, &overdue)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for a run under way: %w", err)
	}
	return id, overdue, nil
}

// Holder is whoever executes a run. The epoch is the fence: when somebody else took the run
// meanwhile, because this holder gave no sign for too long, nothing that it writes is kept.
type Holder struct {
	OrganisationID int64
	RunID          int64
	Epoch          int
}

// Take makes the caller the holder of a run, unless it has ended or somebody else holds it and is
// alive. It gives back the counters that an earlier holder kept.
func Take(ctx context.Context, tx pgx.Tx, organisationID, runID int64) (h Holder, counters json.RawMessage, taken bool, err error) {
	h = Holder{OrganisationID: organisationID, RunID: runID}
	err = tx.QueryRow(ctx, `
update run set epoch = epoch + 1, lease_until = clock() + $3::interval
 where organisation_id = $1 and id = $2 and state = 'running' and (epoch = 0 or not `+alive+`)
returning epoch, counters`, organisationID, runID, lease).Scan(&h.Epoch, &counters)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, nil, false, nil
	}
	if err != nil {
		return h, nil, false, fmt.Errorf("take the run: %w", err)
	}
	return h, counters, true, nil
}

// Keep writes how far the run is, in the transaction of the chunk that brought it there, and
// renews its lease.
func (h Holder) Keep(ctx context.Context, tx pgx.Tx, counters any) error {
	text, err := json.Marshal(counters)
	if err != nil {
		return fmt.Errorf("write the counters of the run: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update run set counters = $4, lease_until = clock() + $5::interval
 where organisation_id = $1 and id = $2 and epoch = $3 and state = 'running'`,
		h.OrganisationID, h.RunID, h.Epoch, string(text), lease)
	if err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("keep the run %d: %w", h.RunID, ErrLost)
	}
	return nil
}

// ErrLost is the answer to a holder of a run that has ended, or that somebody else holds by now.
var ErrLost = errors.New("the run is held no more")

// Finish ends the run as done, in the transaction that wrote its last words.
func (h Holder) Finish(ctx context.Context, tx pgx.Tx, counters any) error {
	return h.end(ctx, tx, StateDone, counters, "")
}

// Fail ends the run with what stopped it.
func (h Holder) Fail(ctx context.Context, db *pg.DB, counters any, cause error) error {
	return db.Tx(ctx, []int64{h.OrganisationID}, func(tx pgx.Tx) error {
		return h.end(ctx, tx, StateFailed, counters, cause.Error())
	})
}

func (h Holder) end(ctx context.Context, tx pgx.Tx, state State, counters any, why string) error {
	text, err := json.Marshal(counters)
	if err != nil {
		return fmt.Errorf("write the counters of the run: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update run set state = $4, counters = $5, finished_at = clock(), error = $6
 where organisation_id = $1 and id = $2 and epoch = $3 and state = 'running'`,
		h.OrganisationID, h.RunID, h.Epoch, state, string(text), why)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("end the run %d: %w", h.RunID, err)
	}
	return nil
}

// Keep is Holder.Keep of a run that never leaves the process that began it.
func Keep(ctx context.Context, tx pgx.Tx, organisationID, runID int64, counters any) error {
	return Holder{OrganisationID: organisationID, RunID: runID}.Keep(ctx, tx, counters)
}

// Finish is Holder.Finish of a run that never leaves the process that began it.
func Finish(ctx context.Context, tx pgx.Tx, organisationID, runID int64, counters any) error {
	return Holder{OrganisationID: organisationID, RunID: runID}.Finish(ctx, tx, counters)
}

// Fail is Holder.Fail of a run that never leaves the process that began it.
func Fail(ctx context.Context, db *pg.DB, organisationID, runID int64, counters any, cause error) error {
	return Holder{OrganisationID: organisationID, RunID: runID}.Fail(ctx, db, counters, cause)
}

// holds is alive of a run whose holder gives signs in the seconds of windowLease, or in the minutes of lease.
const holds = `case when window_start is null then ` + alive + ` else not ` + lapsed + ` end`

// Twin finds another run of the campaign that was asked for the same, goes on or ended within the last minute, and has that counter:
// the one with the highest. Found is false where there is none.
func Twin(ctx context.Context, tx pgx.Tx, organisationID, runID int64, counter string) (twin, value int64, found bool, err error) {
	err = tx.QueryRow(ctx, `
select id, (counters->>$3)::bigint from run
 where organisation_id = $1 and id <> $2 and counters->>$3 is not null
   and (campaign_id, task, request) = (select campaign_id, task, request from run where organisation_id = $1 and id = $2)
   and (state = 'done' and finished_at > clock() - interval '1 minute' or state = 'running' and `+alive+`)
 order by 2 desc, 1 limit 1`, organisationID, runID, counter).Scan(&twin, &value)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("look for a run beside this one: %w", err)
	}
	return twin, value, true, nil
}

const columns = `
select organisation_id, id, task, case when window_start is not null then window_key else earlier_of end as window, earlier_of <> '' as earlier, campaign_id, request, actor,
       case when state <> 'running' then state when lease_until is null then 'waiting'
            when ` + holds + ` then state else 'interrupted' end as state,
       counters, started_at, finished_at, error
  from run`

// Find reads a run of one of the organisations.
func Find(ctx context.Context, tx pgx.Tx, organisations []int64, id int64) (Run, error) {
	rows, err := tx.Query(ctx, columns+` where organisation_id = any($1) and id = $2`, organisations, id)
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

// Latest lists the latest runs of organisations and of a task (empty: of all), newest first; of any campaign when
// campaignID is zero.
func Latest(ctx context.Context, tx pgx.Tx, organisations []int64, task string, campaignID int64) ([]Run, error) {
	rows, err := tx.Query(ctx, columns+`
 where organisation_id = any($1) and ($2 = '' or task = $2) and ($3 = 0 or campaign_id = $3) order by id desc limit $4`,
		organisations, task, campaignID, MostListed)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	runs, err := pgx.CollectRows(rows, pgx.RowToStructByName[Run])
	if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	return runs, nil
}
