package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// node is a step of a plan, as explain (analyze, format json) tells it: rows are those of one loop.
type node struct {
	Type      string  `json:"Node Type"`
	Index     string  `json:"Index Name"`
	Rows      float64 `json:"Actual Rows"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Unjoined  float64 `json:"Rows Removed by Join Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Loops     float64 `json:"Actual Loops"`
	Plans     []node  `json:"Plans"`
}

// looked counts the rows that a plan had in its hands.
func (n node) looked() float64 {
	sum := (n.Rows + n.Filtered + n.Unjoined + n.Rechecked) * n.Loops
	for _, below := range n.Plans {
		sum += below.looked()
	}
	return sum
}

// work executes a statement as the program does, takes it back, and gives how many rows its plan had in its hands.
func (w *world) work(statement string, args ...any) float64 {
	w.t.Helper()
	return w.workAfter(func(context.Context, pgx.Tx) error { return nil }, statement, args...)
}

// workAfter is work in a transaction that was prepared.
func (w *world) workAfter(prepare func(context.Context, pgx.Tx) error, statement string, args ...any) float64 {
	w.t.Helper()
	var text []byte
	undo := errors.New("taken back")
	err := w.db.Tx(w.t.Context(), []int64{w.org.ID}, func(tx pgx.Tx) error {
		w.must(prepare(w.t.Context(), tx))
		err := tx.QueryRow(w.t.Context(), "explain (analyze, timing off, format json) "+statement, append([]any{pg.PlanAnew}, args...)...).Scan(&text)
		w.must(err)
		return undo
	})
	if !errors.Is(err, undo) {
		w.t.Fatal(err)
	}
	var plans []struct{ Plan node }
	w.must(json.Unmarshal(text, &plans))
	return plans[0].Plan.looked()
}

// withoutStatistics keeps autovacuum from gathering any.
func (w *world) withoutStatistics(table string) {
	w.t.Helper()
	w.do(`alter table ` + table + ` set (autovacuum_enabled = false)`)
}

// letters writes dead letters of as many subjects, each followed by two events that were delivered.
func (w *world) letters(endpointID int64, many int) {
	w.t.Helper()
	w.do(`
insert into dispatch (organisation_id, endpoint_id, kind, subject, data, written_at, next_attempt_at, ended_at, state)
select $1, $2, 'candidate.seated', 'candidate concours ' || n, '{}', clock(), clock(), clock(), case when turn = 1 then 'dead' else 'delivered' end
  from generate_series(1, 3) turn, generate_series(1, $3) n order by turn, n`, w.org.ID, endpointID, many)
}

// Ten times as many letters are ten times as much work, and not a hundred times, when nobody has counted the rows yet.
func TestReplay_IsLinearWithoutStatistics(t *testing.T) {
	t.Parallel()
	var looked []float64
	for _, many := range []int{2_000, 20_000} {
		w := newWorld(t)
		w.withoutStatistics("dispatch")
		r := w.listen(fmt.Sprint("crm", many), nil)
		w.letters(r.id, many)
		equal(t, "tables with statistics", w.number(`select count(*) from pg_statistic s where s.starelid = 'dispatch'::regclass`), 0)
		looked = append(looked, w.work(replayLetters, w.org.ID, r.id, ""))
		again, err := Replay(t.Context(), w.db, w.actor, w.org, r.name, "")
		w.must(err)
		equal(t, "the replay", again, Replayed{Events: many, OutOfOrder: many})
	}
	t.Logf("rows looked at: %.0f and %.0f", looked[0], looked[1])
	if ratio := looked[1] / looked[0]; ratio > 12 {
		t.Errorf("ten times as many letters are %.1f times as much work (%.0f rows and %.0f)", ratio, looked[0], looked[1])
	}
}

// The control of the one above: without its index the statement reads everything for each letter.
func TestReplay_IsLinearWithoutStatistics_Control(t *testing.T) {
	t.Parallel()
	var looked []float64
	for _, many := range []int{200, 2_000} {
		w := newWorld(t)
		w.withoutStatistics("dispatch")
		w.do(`drop index dispatch_delivered`)
		r := w.listen("crm", nil)
		w.letters(r.id, many)
		looked = append(looked, w.work(replayLetters, w.org.ID, r.id, ""))
	}
	if ratio := looked[1] / looked[0]; ratio < 50 {
		t.Errorf("without the index ten times as many letters are %.1f times as much work: the test above shows nothing", ratio)
	}
}
