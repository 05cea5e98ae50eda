package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
)

// errTooLong is what ends a chunk that takes longer than a chunk may.
var errTooLong = errors.New("the items took too long")

// chunk does the next items and keeps how far that is, in one transaction that commits only if this holding is still the
// run's and the checkpoint still the one that it began from. It tells whether there is more. Items that fail together, or are too
// many for the time, are tried one by one by the chunks that follow, each in a transaction of its own; one that fails then
// is set aside by name, and the others are done without it.
func (h *holding) chunk(ctx context.Context) (more bool, err error) {
	within, cancel := context.WithTimeoutCause(ctx, h.chunkTime(), errTooLong)
	defer cancel()
	more, err = h.repeatedly(within, h.together)
	if err == nil || ctx.Err() != nil || h.listed == 0 {
		return more, err
	}
	slow := errors.Is(context.Cause(within), errTooLong) || tookTooLong(err)
	switch {
	case !slow && !h.atFault(err) && !pg.MayRepeat(err):
		return more, err
	case h.point.Alone == 0:
		return true, h.narrow(ctx, slow)
	}
	more, err = h.repeatedly(ctx, h.without(h.first, err))
	if errors.Is(err, errAnother) {
		return true, nil
	}
	return more, err
}

// repeatedly tries a chunk again that collided with somebody else's transaction.
func (h *holding) repeatedly(ctx context.Context, do doing) (more bool, err error) {
	for range mostRepeats {
		if more, err = h.tryChunk(ctx, do); !pg.MayRepeat(err) || ctx.Err() != nil {
			break
		}
	}
	return more, err
}

// narrow keeps that as many items as failed together are to be tried one by one, whoever holds the run by then. Where they were too
// many for the time, the chunks after them are half as large.
func (h *holding) narrow(ctx context.Context, slow bool) error {
	next := h.point
	next.Alone = h.listed
	if slow {
		next.Most = max(1, h.listed/2)
	}
	cursor, err := next.text()
	if err != nil {
		return err
	}
	err = h.bounded(ctx, []int64{account.System}, func(tx pgx.Tx) error {
		err := h.keep(ctx, tx, cursor)
		h.at("narrowing")
		return err
	})
	if err == nil {
		h.at("narrowed")
		h.cursor, h.point = cursor, next
	}
	return err
}

// size is how many items the next chunk has at most.
func (h *holding) size() int {
	switch {
	case h.point.Alone > 0:
		return 1
	case h.point.Most > 0:
		return min(h.point.Most, h.task.Work.Chunk)
	}
	return h.task.Work.Chunk
}

// fault is what an item did to the statements that were to do it, while the session stayed whole.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// errTask is a fault of the task itself: it would be the same for the next holder.
type errTask struct{ error }

func (e errTask) Unwrap() error { return e.error }

func (h *holding) atFault(err error) bool {
	var f fault
	return errors.As(err, &f)
}

// doing is how the items of a chunk are done.
type doing func(ctx context.Context, tx pgx.Tx, items []Item) (Outcome, error)

func (h *holding) tryChunk(ctx context.Context, do doing) (more bool, err error) {
	page := h.page()
	next, before := h.point, h.progress
	h.listed = 0
	defer func() {
		if err != nil {
			h.progress = before
		}
	}()
	var cursor string
	var wait bool
	err = h.bounded(ctx, append([]int64{account.System}, page...), func(tx pgx.Tx) error {
		items, err := h.items(ctx, tx, page)
		if err != nil {
			return err
		}
		if h.listed = len(items); h.listed > 0 {
			h.first = items[0].Key
		}
		h.at("listed")
		if more, wait = h.advance(&next, page, items); !more {
			return nil
		}
		if len(items) > 0 {
			outcome, err := do(ctx, tx, items)
			if err != nil {
				return err
			}
			h.at("done")
			if err := h.setAside(ctx, tx, &next, items, outcome); err != nil {
				return err
			}
		}
		if cursor, err = next.text(); err != nil {
			return err
		}
		if err := h.keep(ctx, tx, cursor); err != nil {
			return err
		}
		h.at("kept")
		return nil
	})
	if err != nil || !more {
		return more, err
	}
	h.at("committed")
	h.cursor, h.point = cursor, next
	if wait {
		return true, h.wait(ctx, h.task.Work.Patience)
	}
	return true, nil
}

// bounded runs fn in one transaction that sees these organisations, and that the server ends when the process was stopped in
// the middle of it: so nobody waits for its locks for longer than for its lease.
func bounded(ctx context.Context, db *pg.DB, organisations []int64, fn func(pgx.Tx) error) error {
	return boundedTo(ctx, db, mostStatement, organisations, fn)
}

func boundedTo(ctx context.Context, db *pg.DB, mostStatement time.Duration, organisations []int64, fn func(pgx.Tx) error) error {
	return db.TxWithin(ctx, pg.Limits{Idle: windowLease, Lock: windowLease, Statement: mostStatement}, organisations, fn)
}

// bounded is a transaction of this execution.
func (h *holding) bounded(ctx context.Context, organisations []int64, fn func(pgx.Tx) error) error {
	return boundedTo(ctx, h.db, h.statement(), organisations, fn)
}

// page are the organisations whose items are listed next. On the way back to the items that were locked, their own rows say
// whose they are: left sees to it.
func (h *holding) page() []int64 {
	if h.point.Pass > 0 {
		return nil
	}
	from, _ := slices.BinarySearch(h.orgs, h.point.After.OrganisationID)
	return h.orgs[from:min(from+organisationsOf, len(h.orgs))]
}

// items lists what comes next: of all items on the first way, of those that were locked on the others.
func (h *holding) items(ctx context.Context, tx pgx.Tx, page []int64) ([]Item, error) {
	if h.point.Pass > 0 {
		return h.left(ctx, tx)
	}
	if len(page) == 0 {
		return nil, nil
	}
	items, err := h.task.Work.Next(ctx, tx, h.window, page, h.point.After, h.size())
	if err != nil {
		return nil, fmt.Errorf("list the next items of %s: %w", h.task.Name, err)
	}
	if len(items) > h.size() || !slices.IsSortedFunc(items, compare) || len(items) > 0 && compare(items[0], Item{Key: h.point.After}) <= 0 {
		return nil, errTask{fmt.Errorf("the task %s lists items out of order: some would be passed over, or done for ever", h.task.Name)}
	}
	return items, nil
}

func compare(a, b Item) int {
	return cmp.Or(cmp.Compare(a.OrganisationID, b.OrganisationID), cmp.Compare(a.ID, b.ID))
}

// advance moves the checkpoint behind the items. Where they end, it goes to the next organisations, then to the items that
// were locked, pass after pass until there are none or some passes did not do one. wait: give the others time first.
func (h *holding) advance(next *checkpoint, page []int64, items []Item) (more, wait bool) {
	if len(items) == 0 { // where they were to be tried alone, they are gone
		next.Alone = 0
	}
	next.Alone = max(0, next.Alone-1)
	switch {
	case len(items) > 0 && next.Pass == 0:
		next.After = items[len(items)-1].Key
		return true, false
	case len(items) > 0:
		next.Row = h.lastRow
		return true, false
	case next.Pass == 0 && len(page) > 0 && page[len(page)-1] != h.orgs[len(h.orgs)-1]:
		next.After = Key{OrganisationID: page[len(page)-1], ID: math.MaxInt64}
		return true, false
	case next.Left == 0:
		return false, false
	case next.Pass == 0 || next.Fruitful:
		next.Fruitless = 0
	case next.Fruitless+1 == mostFruitlessly:
		return false, false
	default:
		next.Fruitless++
	}
	next.Pass, next.Row, next.Fruitful = next.Pass+1, 0, false
	return true, true
}

// left lists those items that others had locked, in the order in which they were met, and lets the transaction see whose they
// are: as many as there are organisations that are named at once.
func (h *holding) left(ctx context.Context, tx pgx.Tx) ([]Item, error) {
	rows, err := tx.Query(ctx, `
select id, item, reference, name from refusal
 where organisation_id = $1 and run_id = $2 and list = $3 and id > $4 order by id limit $5`,
		account.System, h.holder.RunID, ListLeft, h.point.Row, h.size())
	if err != nil {
		return nil, fmt.Errorf("list what was left: %w", err)
	}
	var items []Item
	var row int64
	var key string
	var item Item
	whose := []int64{account.System}
	full := false
	_, err = pgx.ForEachRow(rows, []any{&row, &key, &item.Reference, &item.Name}, func() error {
		if full {
			return nil
		}
		organisation, id, _ := strings.Cut(key, "/")
		var err error
		if item.OrganisationID, err = strconv.ParseInt(organisation, 10, 64); err == nil {
			item.ID, err = strconv.ParseInt(id, 10, 64)
		}
		if err != nil {
			return errTask{fmt.Errorf("the item %q names nothing: %w", key, err)}
		}
		if !slices.Contains(whose, item.OrganisationID) {
			if full = len(whose) > organisationsOf; full { // the next chunk begins here
				return nil
			}
			whose = append(whose, item.OrganisationID)
		}
		items, h.lastRow = append(items, item), row
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list what was left: %w", err)
	}
	if len(items) == 0 {
		return nil, nil
	}
	return items, pg.See(ctx, tx, whose...)
}

func (i Item) name() string { return fmt.Sprintf("%d/%d", i.OrganisationID, i.ID) }

func (h *holding) together(ctx context.Context, tx pgx.Tx, items []Item) (Outcome, error) {
	outcome, err := h.task.Work.Do(ctx, tx, h.window, items)
	if err != nil {
		err = fmt.Errorf("do items of %s: %w", h.task.Name, err)
		var refusal *pgconn.PgError
		said := errors.As(err, &refusal)
		if ctx.Err() == nil && !tx.Conn().IsClosed() && (!said || !pg.Interrupted(err) || ofItem(refusal.Code)) {
			err = fault{err}
		}
		return outcome, err
	}
	for i, refused := range outcome.Refused {
		if refused.Reason == "" || refused.Item == "" {
			return outcome, errTask{fmt.Errorf("the task %s refused its item %d without saying which or why", h.task.Name, i)}
		}
	}
	return outcome, nil
}

// ofItem tells whether a refusal that may speak of the server may as well speak of one item: its statement takes too long, or
// its row is damaged. Tried by itself, it shows.
func ofItem(code string) bool { return code == statementTooLong || strings.HasPrefix(code, "XX") }

// statementTooLong is what the server says of a statement that it ended.
const statementTooLong = "57014"

func tookTooLong(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && refusal.Code == statementTooLong
}

// errAnother is the answer to whoever wants to leave an item out that is not the next one any more.
var errAnother = errors.New("another item is the next one by now")

// without does not do the item that failed alone. It is set aside with an incident, under which the log tells why; where somebody
// stands in its way, it is come back to.
func (h *holding) without(failed Key, cause error) doing {
	return func(ctx context.Context, _ pgx.Tx, items []Item) (Outcome, error) {
		switch {
		case len(items) != 1 || items[0].Key != failed:
			return Outcome{}, errAnother
		case pg.MayRepeat(cause):
			return Outcome{Held: items}, nil
		}
		return Outcome{Refused: []Refusal{h.nameFault(ctx, items[0], cause)}}, nil
	}
}

func (h *holding) nameFault(ctx context.Context, item Item, err error) Refusal {
	if said, ok := problem.Of(err); ok {
		facts := problem.Facts{FactProblem: said.Code}
		maps.Copy(facts, said.Facts)
		return item.Refuse(ReasonItemRefused, facts)
	}
	incident := rand.Text()[:8]
	slog.ErrorContext(ctx, "an item of a run failed", "task", h.task.Name, "window", h.window.Key, "run", h.holder.RunID,
		"organisation", item.OrganisationID, "item", item.ID, "incident", incident, "error", err)
	return item.Refuse("item_failed", problem.Facts{"incident": incident})
}

// The reason of an item that met a rule of its own, and the fact that names the problem: its sentence is that problem's.
const (
	ReasonItemRefused = "item_refused"
	FactProblem       = "problem"
)

// Refuse names the item as one that was not done, with the reason.
func (i Item) Refuse(reason string, facts problem.Facts) Refusal {
	return Refusal{List: ListRefused, Item: i.name(), Reference: i.Reference, Name: i.Name, Reason: reason, Facts: facts}
}

// setAside counts what was done and names what was not: refused, or left because somebody else has it locked.
func (h *holding) setAside(ctx context.Context, tx pgx.Tx, next *checkpoint, items []Item, outcome Outcome) error {
	done := len(items) - len(outcome.Held) - len(outcome.Refused) - outcome.Passed
	if done < 0 || outcome.Changed > done {
		return errTask{fmt.Errorf("the task %s did more items than it was given", h.task.Name)}
	}
	h.progress.Done += int64(done)
	h.progress.Changed += int64(outcome.Changed)
	h.progress.Refused += int64(len(outcome.Refused))
	asides := slices.Clone(outcome.Refused)
	if next.Pass == 0 {
		next.Left += len(outcome.Held)
		for _, held := range outcome.Held {
			asides = append(asides, Refusal{
				List: ListLeft, Item: held.name(), Reference: held.Reference, Name: held.Name, Reason: "held_elsewhere",
				Facts: problem.Facts{"task": h.task.Name, "window": h.window.Key},
			})
		}
	} else if len(outcome.Held) < len(items) {
		still := map[string]bool{}
		for _, held := range outcome.Held {
			still[held.name()] = true
		}
		var settled []string
		for _, item := range items {
			if !still[item.name()] {
				settled = append(settled, item.name())
			}
		}
		if _, err := Withdraw(ctx, tx, account.System, h.holder.RunID, ListLeft, settled); err != nil {
			return err
		}
		next.Left, next.Fruitful = next.Left-len(settled), true
	}
	return Refuse(ctx, tx, account.System, h.holder.RunID, asides...)
}

// keep writes how far the run is, if nobody took it meanwhile, nobody moved its checkpoint and its window is still due: otherwise
// nothing of the chunk is kept.
func (h *holding) keep(ctx context.Context, tx pgx.Tx, cursor string) error {
	counters, err := json.Marshal(h.progress)
	if err != nil {
		return fmt.Errorf("write the counters of the run: %w", err)
	}
	tag, err := tx.Exec(ctx, `
update run set cursor = $5, counters = $6, lease_until = clock() + $7::interval, kept_at = clock(), fruitless = 0, error = ''
 where organisation_id = $1 and id = $2 and epoch = $3 and cursor = $4 and state = 'running' and due_at <= clock()`,
		account.System, h.holder.RunID, h.holder.Epoch, h.cursor, cursor, string(counters), windowLease)
	if err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("keep the run %d: %w", h.holder.RunID, ErrLost)
	}
	return nil
}

// refuseLeft names, at the end of a run, those items that stayed locked until then.
func (h *holding) refuseLeft(ctx context.Context, tx pgx.Tx) error {
	if h.point.Left == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, `
update refusal set list = $4 where organisation_id = $1 and run_id = $2 and list = $3`,
		account.System, h.holder.RunID, ListLeft, ListRefused)
	if err != nil {
		return fmt.Errorf("name what was left: %w", err)
	}
	h.progress.Refused += tag.RowsAffected()
	return nil
}
