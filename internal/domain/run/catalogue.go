package run

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/promise"
)

// Task is what Usher does on its own. Its schedule says when a window of it becomes due, its work what is done with the
// items of a window; the rest is what a person who answers for the installation wants to know.
type Task struct {
	Name string
	Schedule
	Idempotency string        // what makes twice once, in words
	Constraint  string        // the unique index or constraint that backs it: without it the program does not start; empty: a row's lock and its state do
	Over        string        // what that covers, as "run (organisation_id, task, window_key)": another of its name backs nothing
	Reads       []string      // tables
	Writes      []string      // tables
	Overdue     time.Duration // a run that has not ended this long after it was due raises an alarm
	Work        Work
}

// Work is what a task does with its items, set by set.
type Work struct {
	Chunk       int           // items of one transaction
	Pause       time.Duration // between chunks, to leave the database to people; 0: none
	Patience    time.Duration // before items that somebody else had locked are tried again; 0: one second
	MostRefused int           // more items refused than that: the run ends as failed; 0: one hundred

	// Count foresees how many items there are, for the remaining time that is shown; nil: unknown.
	Count func(ctx context.Context, tx pgx.Tx, window Window, organisations []int64) (int64, error)
	// Next lists at most so many items of the organisations after a key, in the order of their keys. It may leave out what
	// has nothing to be done; it locks nothing.
	Next func(ctx context.Context, tx pgx.Tx, window Window, organisations []int64, after Key, most int) ([]Item, error)
	// Do does the items in a number of statements that does not depend on theirs. It does not wait for an item that
	// somebody else has locked (skip locked), but returns it as held. Done twice, an item changes nothing. What it did must be
	// judged by the end of it: a constraint that is deferred to the commit could name no item, and fails the run.
	Do func(ctx context.Context, tx pgx.Tx, window Window, items []Item) (Outcome, error)
}

// TooManyRefused tells whether a run of the task ends as failed because of how many items it set aside.
func (t Task) TooManyRefused(p Progress) bool {
	return p.Refused > int64(t.Work.withDefaults().MostRefused)
}

// Key is the place of an item in the order of a run.
type Key struct {
	OrganisationID int64
	ID             int64
}

// Item is one of the things that a run does, with the words by which it is named when it is not done.
type Item struct {
	Key
	Reference string
	Name      string
}

// Outcome is what became of the items that were handed over. Whatever is neither held, passed over nor refused was done.
type Outcome struct {
	Changed int       // items that were not as they are now
	Passed  int       // locked by somebody else, who does what is to be done, or leaves it to the next window: counted as not done, and not named
	Held    []Item    // locked by somebody else
	Refused []Refusal // judged: not to be done, with the reason. List and Item are filled in by the run.
}

// Bounds of the work of a task.
const (
	mostChunk          = 10_000
	defaultMostRefused = 100
	defaultPatience    = time.Second
)

func (w Work) withDefaults() Work {
	if w.MostRefused == 0 {
		w.MostRefused = defaultMostRefused
	}
	if w.Patience == 0 {
		w.Patience = defaultPatience
	}
	return w
}

// Catalogue is everything that Usher does on its own.
type Catalogue []Task

// Find finds a task by its name.
func (c Catalogue) Find(name string) (Task, error) {
	known := make([]string, len(c))
	for i, task := range c {
		if task.Name == name {
			return task, nil
		}
		known[i] = task.Name
	}
	return Task{}, problem.NotFound("task_unknown", problem.Facts{"task": name, "known": known})
}

// Check tells what is wrong with the catalogue itself: a fault of the program.
func (c Catalogue) Check() error {
	seen := map[string]bool{}
	for _, task := range c {
		switch {
		case task.Name == "" || seen[task.Name]:
			return fmt.Errorf("the task %q has no name of its own", task.Name)
		case task.Idempotency == "" || (task.Constraint == "") != (task.Over == "") || len(task.Reads) == 0 || len(task.Writes) == 0:
			return fmt.Errorf("the task %s does not say what makes twice once, or what it touches", task.Name)
		case task.Overdue <= 0:
			return fmt.Errorf("the task %s does not say when it is overdue", task.Name)
		case task.Work.Next == nil || task.Work.Do == nil || task.Work.Chunk < 1 || task.Work.Chunk > mostChunk:
			return fmt.Errorf("the task %s does not say how it works", task.Name)
		}
		if err := task.Validate(); err != nil {
			return fmt.Errorf("the schedule of the task %s: %w", task.Name, err)
		}
		seen[task.Name] = true
	}
	return nil
}

// What makes a window one run, whatever its task: the engine's own key.
const (
	windowKey     = "run_window_key"
	windowKeyOver = "run (organisation_id, task, window_key)"
)

// guards are what the schedule itself and the tasks rely on, with whose each is.
func (c Catalogue) guards() (guards []promise.Guard, tasks []string) {
	guards, tasks = []promise.Guard{{Name: windowKey, Over: windowKeyOver}}, []string{"schedule"}
	for _, task := range c {
		if task.Constraint == "" {
			continue
		}
		guards, tasks = append(guards, promise.Guard{Name: task.Constraint, Over: task.Over}), append(tasks, task.Name)
	}
	return guards, tasks
}

// CheckConstraints refuses to go on when the database lacks a constraint on which a task or the schedule itself relies, holds it
// invalid, or has another under its name.
func (c Catalogue) CheckConstraints(ctx context.Context, db *pg.DB) error {
	guards, tasks := c.guards()
	var missing []int
	err := db.Read(ctx, nil, func(tx pgx.Tx) (err error) {
		missing, err = promise.Missing(ctx, tx, guards)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for the constraints of the schedule: %w", err)
	}
	if len(missing) > 0 {
		first := missing[0]
		return problem.Unavailable("schedule_constraint_missing", problem.Facts{
			"task": tasks[first], "constraint": guards[first].Name, "covers": guards[first].Over,
		})
	}
	return nil
}

const (
	// zonesApart is more than the clocks of two zones can lie apart beyond the shortest day: of two days of one name, the one of a
	// zone may be over before the other begins.
	zonesApart = 4 * time.Hour
	// zoneKept is for how long a zone has windows after the last of its organisations left it: the longest window begins a month
	// before it is due, and may be due on any of the next; and a month more, for a schedule that nobody worked on.
	zoneKept = 93 * 24 * time.Hour
)

// zonesInUse are the zones of the organisations, each once, and those that one of them left so lately that a window of it may still be
// for them. One that this program does not know, and that nobody has any more, was a slip.
func zonesInUse(ctx context.Context, tx pgx.Tx) (zones []string, err error) {
	rows, err := tx.Query(ctx, `select zone, in_use from zones_of_windows($1)`, zoneKept)
	if err != nil {
		return nil, fmt.Errorf("read the zones in use: %w", err)
	}
	var zone string
	var inUse bool
	if _, err = pgx.ForEachRow(rows, []any{&zone, &inUse}, func() error {
		if _, unknown := time.LoadLocation(zone); unknown == nil || inUse {
			zones = append(zones, zone)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the zones in use: %w", err)
	}
	return zones, nil
}

// zones are the zones in which a task has windows of their own.
func (t Task) zones(inUse []string) []string {
	if t.PerZone {
		return inUse
	}
	return []string{t.Zone}
}

// organisationsOf is the zone whose organisations a window is for; empty: all of them. It is for those that have the zone when it
// is run, and for those that had it at any time since the window began: an organisation that moves to another zone is in the windows of
// both, and in at least one of each name. That it is done once is the task's own key, which therefore names no zone.
func (t Task) organisationsOf(zone string) string {
	if t.PerZone {
		return zone
	}
	return ""
}
