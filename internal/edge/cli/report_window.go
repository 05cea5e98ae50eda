package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
)

// windowLists are the lists of the report of a run of the schedule: what was set aside, and, of one that has not ended, what it
// comes back to.
var windowLists = []run.List{run.ListRefused, run.ListLeft}

func (s *session) itemCells(r run.Refusal) []sheet.Value {
	return []sheet.Value{sheet.Text(r.Reference), sheet.Text(r.Name), sheet.Text(r.Reason), sheet.Text(s.refusal(r))}
}

// itemRow is an item that was not done, as programs read it.
type itemRow struct {
	Reference string `json:"reference"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Sentence  string `json:"sentence"`
}

func (s *session) itemRow(r run.Refusal) itemRow {
	return itemRow{r.Reference, r.Name, r.Reason, s.refusal(r)}
}

// windowEnd is the state of a run of the schedule: one whose holder died waits for the next one.
func windowEnd(state run.State) run.State {
	if state == run.StateInterrupted {
		return run.StateWaiting
	}
	return state
}

// showWindow prints the report of a run of the schedule, for people or as JSON.
func (s *session) showWindow(found run.Run) error {
	progress, whole := run.ReadProgress(found.Counters)
	var before []int64
	err := run.See(s.ctx, s.db, s.actor, found.ID, func(tx pgx.Tx, r run.Run) (err error) {
		before, err = run.Earlier(s.ctx, tx, r)
		return err
	})
	if err != nil {
		return err
	}
	if s.line.JSON {
		return s.answerWindowReport(found, progress, whole, before)
	}
	title := map[string]any{
		"run": fmt.Sprint(found.ID), "task": found.Task, "window": found.Window, "actor": s.starter(found.Actor),
		"started_at": i18n.Instant{At: found.StartedAt, Zone: "UTC"},
	}
	s.say("cli_window_report", title)
	facts := map[string]any{
		"state": s.voice.Say("cli_window_"+string(windowEnd(found.State)), nil), "done": s.voice.Count("cli_window_items", int(progress.Done)),
		"changed": progress.Changed, "refused": progress.Refused, "error": found.Error,
	}
	if found.FinishedAt != nil {
		facts["at"] = i18n.Instant{At: *found.FinishedAt, Zone: "UTC"}
	}
	s.say("cli_window_counts", facts)
	if !whole {
		s.say("cli_window_not_whole", facts)
	}
	if found.Earlier {
		s.say("cli_window_earlier", title)
	}
	if len(before) > 0 {
		runs := make([]string, len(before))
		for i, id := range before {
			runs[i] = fmt.Sprint(id)
		}
		s.say("cli_window_before", map[string]any{"runs": strings.Join(runs, ", "), "usher": s.program()})
	}
	for _, list := range windowLists {
		if err := s.printItems(s.ctx, found.ID, list); err != nil {
			return err
		}
	}
	if !found.Earlier && (found.State == run.StateFailed || found.State == run.StateDone && (progress.Refused > 0 || !whole)) {
		s.say("cli_window_repeat", map[string]any{
			"usher": s.program(), "task": found.Task, "window": found.Window, "again": found.State == run.StateDone,
		})
	}
	return nil
}

// starter is who asked for a run: a person, or nobody.
func (s *session) starter(actor string) string {
	if actor == run.Scheduler {
		return s.voice.Say("cli_by_itself", nil)
	}
	return account.ActorWords(s.voice, actor)
}

// printItems prints the beginning of a list by name, and says how many more there are and where.
func (s *session) printItems(ctx context.Context, runID int64, list run.List) error {
	var rows []table.Row
	count := 0
	err := run.EachRefusal(ctx, s.db, s.actor, runID, list, func(r run.Refusal) error {
		if count++; count <= mostInReport {
			rows = append(rows, table.Row{r.Reference, r.Name, s.refusal(r)})
		}
		return nil
	})
	if err != nil || count == 0 {
		return err
	}
	fmt.Fprintln(s.stdout)
	s.say("cli_window_list_"+string(list), map[string]any{"count": count})
	s.table([]string{"cli_item", "cli_name", "cli_reason"}, rows)
	s.sayMore(count-len(rows), runID)
	return nil
}

// answerWindowReport prints the whole report as JSON, without holding it.
func (s *session) answerWindowReport(found run.Run, progress run.Progress, whole bool, before []int64) error {
	var finished *time.Time
	if found.FinishedAt != nil {
		at := found.FinishedAt.UTC()
		finished = &at
	}
	return s.answerObject(func(o *object) error {
		err := errors.Join(
			o.field("run", found.ID), o.field("task", found.Task), o.field("window", found.Window), o.field("state", windowEnd(found.State)),
			o.field("actor", found.Actor), o.field("started_at", found.StartedAt.UTC()), o.field("finished_at", finished),
			o.field("expected", progress.Expected), o.field("done", progress.Done), o.field("changed", progress.Changed), o.field("error", found.Error),
			o.field("unreadable", !whole), o.field("earlier", found.Earlier), o.field("earlier_runs", append([]int64{}, before...)),
		)
		for _, list := range windowLists {
			if err == nil {
				err = s.answerRefusals(o, string(list), found.ID, list, func(r run.Refusal) any { return s.itemRow(r) })
			}
		}
		return err
	})
}
