package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
)

// Bounds of a holding.
const (
	windowLease     = 5 * time.Second // without a sign of life for longer, somebody else takes the run
	renewEvery      = windowLease / 4
	renewalTimeout  = windowLease / 2
	endingTimeout   = 10 * time.Second
	mostRepeats     = 3           // of a chunk that collided with somebody else's transaction
	mostFruitlessly = 3           // passes over the items that others had locked, without one of them done
	mostStatement   = time.Minute // where the executor says nothing else; one that takes longer is ended by the server
	statementsApart = 5           // of a holding besides its chunks: to take it, to look for whom it is, to count, to narrow, to end
	organisationsOf = 500         // organisations that one transaction names at once
)

// lapsed is the condition of a run that nobody holds. A lease that ends later than any that is given now was given before the
// clock was set back: its holder, should it live, is fenced out.
const lapsed = `(lease_until is null or lease_until < clock() or lease_until > clock() + interval '10 seconds')` // twice the lease

// Executor executes runs of the schedule.
type Executor struct {
	Catalogue Catalogue
	Enqueue   Enqueue         // hands the run over when this one stops before its end
	Holder    string          // names this process to whoever asks who holds a run
	Budget    time.Duration   // after that, the run is handed over, so that others get their turn; 0: none
	Statement time.Duration   // of a chunk, at most; items whose statement takes longer are tried one by one; 0: a minute
	Stop      <-chan struct{} // closed: finish the chunk, hand the run over, and return; nil: never
	Progress  func(Progress)  // called after each chunk; nil: nobody looks

	step func(name string) // called at each named step, where a test may end the process
	wait func(ctx context.Context, d time.Duration) error
}

func (e Executor) statement() time.Duration { return cmp.Or(e.Statement, mostStatement) }

// chunkTime is how long a chunk may take with all its statements, and tried again after it collided with somebody: a little
// longer than one statement, whose end by the server leaves the session whole.
func (e Executor) chunkTime() time.Duration { return e.statement() * 3 / 2 }

// Longest is how long an execution with a budget lasts at most, whatever its items do: the last chunk begins just within it. Whoever
// ends an execution from outside waits for longer, or what is slow would never be named.
func (e Executor) Longest() time.Duration {
	return e.Budget + e.chunkTime() + statementsApart*e.statement() + endingTimeout
}

// Progress is how far a run is. What the check run_counters_whole demands of its row.
type Progress struct {
	Expected int64 `json:"expected,omitempty"` // items, as far as that can be known before; 0: unknown
	Done     int64 `json:"done"`               // items that are as they should be
	Changed  int64 `json:"changed"`            // … and were not before
	Refused  int64 `json:"refused"`            // items set aside by name
}

// ReadProgress reads the counters of a run of the schedule; whole: they are what this program writes, and nobody changed them by
// hand into something else.
func ReadProgress(counters json.RawMessage) (p Progress, whole bool) {
	var read Progress
	if err := json.Unmarshal(counters, &read); err != nil || min(read.Expected, read.Done, read.Changed, read.Refused) < 0 {
		return Progress{}, false
	}
	return read, true
}

// How an execution ended.
const (
	EndedDone   = "done"
	EndedFailed = "failed" // too much was refused, or nothing was ever kept
	EndedOver   = "over"   // handed over: its budget was spent, or the process stops
	EndedBusy   = "busy"   // somebody else holds the run: nothing was done
	EndedStale  = "stale"  // the run has ended already or is not due any more, or the job is of an earlier holding: nothing was done
)

// Ended says how an execution ended.
type Ended struct {
	How  string
	Held Held // by whom, when it is busy
}

// Held is who holds a run.
type Held struct {
	Holder  string
	Since   time.Time
	Overdue bool // longer than its task ever should
}

// checkpoint is how far a run is: after which item of which pass. It is compared as it is written, so that nobody commits
// on top of a chunk that they did not see; the check run_cursor_whole has its form.
type checkpoint struct {
	After     Key   `json:"after"`
	Left      int   `json:"left,omitempty"`      // items that others had locked when it came by
	Pass      int   `json:"pass,omitempty"`      // over those; 0: the first way through all
	Row       int64 `json:"row,omitempty"`       // the last of them that this pass met
	Fruitful  bool  `json:"fruitful,omitempty"`  // this pass did one of them
	Fruitless int   `json:"fruitless,omitempty"` // passes before it that did none
	Alone     int   `json:"alone,omitempty"`     // items, of those that come next, that failed together: each is tried by itself
	Most      int   `json:"most,omitempty"`      // items of one chunk, since as many as the task wants took too long; 0: as many
}

// text is the checkpoint as it is kept.
func (c checkpoint) text() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write the checkpoint of the run: %w", err)
	}
	return string(text), nil
}

// holding is one execution under way.
type holding struct {
	Executor
	db       *pg.DB
	task     Task
	window   Window
	holder   Holder
	cursor   string
	point    checkpoint
	progress Progress
	orgs     []int64
	lastRow  int64
	listed   int // items of the chunk that was tried last
	first    Key // … and the first of them

	unreadable string // what of the row cannot be read
}

func (e Executor) at(step string) {
	if e.step != nil {
		e.step(step)
	}
}

// Execute takes the run, if nobody holds it and the epoch is still the one given, and works on it until it ends, its budget
// is spent or the process stops. Whatever stops it in between, the next holder goes on from the last chunk that was kept.
// An error says what broke off; the planner has the run driven again.
func (e Executor) Execute(ctx context.Context, db *pg.DB, ready Ready) (Ended, error) {
	h := &holding{Executor: e, db: db}
	if h.wait == nil {
		h.wait = sleep
	}
	ended, err := h.take(ctx, ready)
	if err != nil || ended.How != "" {
		return ended, err
	}
	h.at("taken")
	working, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	renewed := make(chan struct{})
	go func() { defer close(renewed); h.renew(working, lost) }()
	how, err := h.work(working)
	if cause := context.Cause(working); err != nil && errors.Is(cause, ErrLost) {
		err = cause
	}
	lost(nil)
	<-renewed
	switch {
	case err == nil:
		return Ended{How: how}, nil
	case errors.Is(err, ErrLost):
		return Ended{}, err
	}
	return h.broken(ctx, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take makes this process the holder, by a compare-and-set: whoever reads the same epoch takes it once. A window that is not due,
// because the clock was set back since it was planned, is not begun.
func (h *holding) take(ctx context.Context, ready Ready) (Ended, error) {
	var ended Ended
	err := bounded(ctx, h.db, []int64{account.System}, func(tx pgx.Tx) error {
		var name, counters string
		h.holder = Holder{OrganisationID: account.System, RunID: ready.RunID}
		var fruitless int
		var last string
		err := tx.QueryRow(ctx, `
update run set epoch = epoch + 1, lease_until = clock() + $3::interval, holder = $4, taken_at = clock(),
       begun_at = coalesce(begun_at, clock()), fruitless = fruitless + 1
 where organisation_id = $1 and id = $2 and state = 'running' and epoch = $5 and due_at <= clock() and `+lapsed+`
returning epoch, task, window_key, zone, window_start, window_end, due_at, cursor, counters, fruitless, error`,
			account.System, ready.RunID, windowLease, h.Holder, ready.Epoch).
			Scan(&h.holder.Epoch, &name, &h.window.Key, &h.window.Zone, &h.window.Start, &h.window.End, &h.window.DueAt, &h.cursor, &counters,
				&fruitless, &last)
		if errors.Is(err, pgx.ErrNoRows) {
			ended, err = h.busy(ctx, tx, ready)
			return err
		}
		if err != nil {
			return fmt.Errorf("take the run: %w", err)
		}
		if h.task, err = h.Catalogue.Find(name); err != nil {
			return err
		}
		h.task.Work = h.task.Work.withDefaults()
		if err := h.resume(ctx, tx, counters); err != nil {
			return err
		}
		if h.unreadable != "" {
			ended = Ended{How: EndedFailed}
			return h.holder.end(ctx, tx, StateFailed, h.progress, h.unreadable)
		}
		if fruitless > mostFruitless {
			ended = Ended{How: EndedFailed}
			return h.holder.end(ctx, tx, StateFailed, h.progress,
				fmt.Sprintf("it was taken %d times, and no chunk was kept any more: %s", fruitless-1, cmp.Or(last, "its holders died")))
		}
		h.at("taking")
		return nil
	})
	return ended, err
}

// resume goes on from the checkpoint. Without one, whether or not there has been one, the run begins: nothing is counted, and
// nobody is named. A checkpoint that somebody made unreadable would stop every holder: h.unreadable says so, and the run ends.
func (h *holding) resume(ctx context.Context, tx pgx.Tx, counters string) error {
	if h.cursor == "" {
		return Forget(ctx, tx, account.System, h.holder.RunID)
	}
	var whole bool
	if h.progress, whole = ReadProgress([]byte(counters)); !whole {
		h.unreadable = "its counters cannot be read: somebody changed its row; run it again"
	}
	if err := json.Unmarshal([]byte(h.cursor), &h.point); err != nil {
		h.unreadable = "its checkpoint cannot be read: somebody changed its row; run it again"
	}
	return nil
}

// busy says who holds a run that could not be taken, and counts that somebody came.
func (h *holding) busy(ctx context.Context, tx pgx.Tx, ready Ready) (Ended, error) {
	var held Held
	var task string
	var due, now time.Time
	err := tx.QueryRow(ctx, `
update run set skips = skips + 1
 where organisation_id = $1 and id = $2 and state = 'running' and not `+lapsed+`
returning holder, coalesce(taken_at, started_at), task, due_at, clock()`,
		account.System, ready.RunID).Scan(&held.Holder, &held.Since, &task, &due, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return Ended{How: EndedStale}, nil
	}
	if err != nil {
		return Ended{}, fmt.Errorf("ask who holds the run: %w", err)
	}
	if known, err := h.Catalogue.Find(task); err == nil {
		held.Overdue = now.Sub(held.Since) > known.Overdue && now.Sub(due) > known.Overdue
	}
	return Ended{How: EndedBusy, Held: held}, nil
}

// renew keeps the lease while a chunk is under way. When somebody else holds the run, or when the database gave no answer
// for as long as the lease lasts, the work is stopped: what it still commits would be refused.
func (h *holding) renew(ctx context.Context, lost context.CancelCauseFunc) {
	last := time.Now()
	for sleep(ctx, renewEvery) == nil {
		asked := time.Now()
		err := h.sign(ctx)
		switch {
		case err == nil:
			last = asked
		case errors.Is(err, ErrLost), time.Since(last) > windowLease && ctx.Err() == nil:
			lost(fmt.Errorf("renew the lease of the run %d: %w", h.holder.RunID, ErrLost))
			return
		}
	}
}

// sign renews the lease once; somebody else's is left as it is, and answered with ErrLost, and so is that of a window that is not due
// any more.
func (h *holding) sign(ctx context.Context) error {
	renewal, cancel := context.WithTimeout(ctx, renewalTimeout)
	defer cancel()
	return bounded(renewal, h.db, []int64{account.System}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(renewal, `
update run set lease_until = clock() + $4::interval where organisation_id = $1 and id = $2 and epoch = $3 and state = 'running' and due_at <= clock()`,
			account.System, h.holder.RunID, h.holder.Epoch, windowLease)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrLost
		}
		return err
	})
}

// work goes through all items, then through those that others had locked, and ends the run.
func (h *holding) work(ctx context.Context) (string, error) {
	began := time.Now()
	if err := h.organisations(ctx); err != nil {
		return "", err
	}
	for {
		more, err := h.chunk(ctx)
		if err != nil {
			return "", err
		}
		if h.Progress != nil {
			h.Progress(h.progress)
		}
		switch {
		case h.progress.Refused > int64(h.task.Work.MostRefused), !more && h.progress.Refused+int64(h.point.Left) > int64(h.task.Work.MostRefused):
			return EndedFailed, h.end(ctx, StateFailed,
				"more than "+strconv.Itoa(h.task.Work.MostRefused)+" items were refused: look at the first ones, then run it again")
		case !more:
			return EndedDone, h.end(ctx, StateDone, "")
		}
		if h.stopping() || h.Budget > 0 && time.Since(began) > h.Budget {
			return EndedOver, h.handOver(ctx)
		}
		if h.task.Work.Pause > 0 {
			if err := h.wait(ctx, h.task.Work.Pause); err != nil {
				return "", err
			}
		}
	}
}

func (h *holding) stopping() bool {
	select {
	case <-h.Stop:
		return true
	default:
		return false
	}
}

// organisations reads for whom the window is, and, at its very beginning, how much there is to do.
func (h *holding) organisations(ctx context.Context) error {
	err := h.bounded(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select organisations_of_zone($1, $2)`, h.task.organisationsOf(h.window.Zone), h.window.Start.Add(-zonesApart))
		if err != nil {
			return err
		}
		h.orgs, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil {
		return fmt.Errorf("look what the run is for: %w", err)
	}
	if h.task.Work.Count == nil || h.cursor != "" {
		return nil
	}
	within, cancel := context.WithTimeoutCause(ctx, h.chunkTime(), errTooLong)
	defer cancel()
	err = h.bounded(within, []int64{account.System}, func(tx pgx.Tx) error { return h.count(within, tx) })
	if err != nil && ctx.Err() == nil && (errors.Is(context.Cause(within), errTooLong) || tookTooLong(err)) {
		// How much there is would only have been shown: what takes too long to be counted may still be done, chunk by chunk.
		h.progress.Expected = 0
		slog.WarnContext(ctx, "it takes too long to count what a run has to do: its remaining time is unknown", "task", h.task.Name,
			"window", h.window.Key, "run", h.holder.RunID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("count what the run has to do: %w", err)
	}
	return nil
}

// count foresees how much there is to do, for a bounded number of organisations at once.
func (h *holding) count(ctx context.Context, tx pgx.Tx) error {
	h.progress.Expected = 0
	for page := range slices.Chunk(h.orgs, organisationsOf) {
		if err := pg.See(ctx, tx, append([]int64{account.System}, page...)...); err != nil {
			return err
		}
		n, err := h.task.Work.Count(ctx, tx, h.window, page)
		if err != nil {
			return err
		}
		h.progress.Expected += n
	}
	return nil
}

// end writes the last words of the run.
func (h *holding) end(ctx context.Context, state State, why string) error {
	h.at("ending")
	err := bounded(ctx, h.db, []int64{account.System}, func(tx pgx.Tx) error {
		if err := h.refuseLeft(ctx, tx); err != nil {
			return err
		}
		if err := h.holder.end(ctx, tx, state, h.progress, why); err != nil {
			return err
		}
		h.at("closing")
		return nil
	})
	if err == nil {
		h.at("ended")
	}
	return err
}

// handOver gives the run back before its end, with the job that has somebody else go on at once.
func (h *holding) handOver(ctx context.Context) error {
	err := bounded(ctx, h.db, []int64{account.System}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
update run set lease_until = null, holder = '', driven_at = clock(), driven_epoch = epoch
 where organisation_id = $1 and id = $2 and epoch = $3 and state = 'running'`, account.System, h.holder.RunID, h.holder.Epoch)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrLost
		}
		if err == nil && h.Enqueue != nil {
			err = h.Enqueue(ctx, tx, []Ready{{RunID: h.holder.RunID, Epoch: h.holder.Epoch}})
		}
		h.at("handing over")
		return err
	})
	if err != nil {
		return fmt.Errorf("hand the run over: %w", err)
	}
	h.at("handed over")
	return nil
}

// broken decides what becomes of a run whose chunk failed. What the database or the way to it did to this session is no
// fault of the run: it is given back, with what happened, and taken again. Anything else would fail again, and ends it.
func (h *holding) broken(ctx context.Context, cause error) (Ended, error) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingTimeout)
	defer cancel()
	var wrong errTask
	if !errors.As(cause, &wrong) && (pg.Interrupted(cause) || pg.MayRepeat(cause)) {
		err := bounded(ending, h.db, []int64{account.System}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ending, `
update run set lease_until = clock(), error = $4 where organisation_id = $1 and id = $2 and epoch = $3 and state = 'running'`,
				account.System, h.holder.RunID, h.holder.Epoch, cause.Error())
			return err
		})
		return Ended{}, errors.Join(cause, err)
	}
	return Ended{How: EndedFailed}, errors.Join(cause, h.holder.Fail(ending, h.db, h.progress, cause))
}
