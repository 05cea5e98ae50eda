package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/run"
	"usher/internal/edge/job"
)

type scheduleCommand struct {
	Show  scheduleShow  `cmd:"" default:"withargs" help:"What Usher does on its own, and how it stands; with the name of a task, its latest windows."`
	Audit scheduleAudit `cmd:"" help:"Find schedules that stand elsewhere (crontabs, timers, images, clusters, builds), which of them double another or a task of Usher, and which nobody explains."`
}

type scheduleShow struct {
	Task string `arg:"" optional:"" help:"Name of a task: what it relies on is said, its latest windows are listed, and what came of each."`
}

// Run prints what Usher does on its own, and how it stands; or the latest windows of a task.
func (c scheduleShow) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	catalogue, err := s.catalogue()
	if err != nil {
		return err
	}
	if c.Task != "" {
		return s.listWindows(catalogue, c.Task)
	}
	lines, now, err := run.Overview(s.ctx, s.db, s.actor, catalogue)
	if err != nil {
		return err
	}
	if s.line.JSON {
		rows := make([]scheduleRow, len(lines))
		for i, line := range lines {
			rows[i] = answerLine(line)
		}
		return s.answer(rows)
	}
	rows := make([]table.Row, len(lines))
	for i, line := range lines {
		rows[i] = table.Row{
			s.taskTitle(line.Task) + "\n" + line.Task.Name, line.Task.When(s.voice), line.Zone, s.lastRun(line), s.underway(line),
			s.next(line), s.missed(line),
		}
	}
	s.table([]string{"cli_task", "cli_cron", "cli_zone", "cli_last_run", "cli_underway", "cli_next_run", "cli_missed"}, rows)
	for _, line := range lines {
		s.sayLine(line)
	}
	s.say("cli_schedule_at", map[string]any{"now": i18n.Instant{At: now, Zone: "UTC"}, "usher": s.program()})
	return nil
}

// catalogue is everything that Usher does on its own, once the database has all that it relies on.
func (s *session) catalogue() (run.Catalogue, error) {
	catalogue := job.Catalogue()
	return catalogue, errors.Join(catalogue.Check(), catalogue.CheckConstraints(s.ctx, s.db))
}

// scheduleRow is a task in one of its zones, as programs read it.
type scheduleRow struct {
	Task        string       `json:"task"`
	Cron        string       `json:"cron"`
	Zone        string       `json:"zone"`
	Window      run.Period   `json:"window"`
	Idempotency string       `json:"idempotency"`
	Constraint  string       `json:"constraint"`
	CatchUp     run.CatchUp  `json:"catch_up"`
	CatchUpMost int          `json:"catch_up_most"`
	LateSeconds float64      `json:"late_seconds,omitempty"`
	Reads       []string     `json:"reads"`
	Writes      []string     `json:"writes"`
	Last        *windowRow   `json:"last"`
	Running     []windowRow  `json:"running"`
	Next        *windowOfRow `json:"next"`
	Missed      int64        `json:"missed"`
	MissedAt    *time.Time   `json:"missed_at"`
	MissedKeys  []string     `json:"missed_windows"` // the latest of them, by key
	Failed      int          `json:"failed"`
	Failures    []string     `json:"failed_windows"`  // the latest of them, by key
	Partial     int          `json:"partial"`         // windows that refused something, and that were not repeated
	Partials    []string     `json:"partial_windows"` // the latest of them, by key
	Unplanned   int          `json:"unplanned"`       // windows that are due, and that no node has looked at
	Unreadable  []string     `json:"unreadable"`      // windows whose rows somebody changed into what cannot be read, by key
}

type windowOfRow struct {
	Window string    `json:"window"`
	DueAt  time.Time `json:"due_at"`
}

type windowRow struct {
	Run        int64      `json:"run"`
	Window     string     `json:"window"`
	State      run.State  `json:"state"`
	DueAt      time.Time  `json:"due_at"`
	Actor      string     `json:"actor"`
	Holder     string     `json:"holder,omitempty"`
	HeldSince  *time.Time `json:"held_since,omitempty"`
	KeptAt     *time.Time `json:"kept_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	run.Progress
	PerSecond        float64  `json:"per_second,omitempty"`
	RemainingSeconds *float64 `json:"remaining_seconds,omitempty"`
	Skips            int      `json:"skips"`
	Fruitless        int      `json:"fruitless,omitempty"` // holdings in a row that kept nothing
	Overdue          bool     `json:"overdue"`
	Error            string   `json:"error,omitempty"`
	Unreadable       bool     `json:"unreadable,omitempty"` // somebody changed its counters by hand: they are unknown
}

func answerLine(l run.Line) scheduleRow {
	row := scheduleRow{
		Task: l.Task.Name, Cron: l.Task.Cron, Zone: l.Zone, Window: l.Task.Period, Idempotency: l.Task.Idempotency,
		Constraint: l.Task.Constraint, CatchUp: l.Task.CatchUp, CatchUpMost: l.Task.Most, LateSeconds: l.Task.Late.Seconds(),
		Reads: l.Task.Reads, Writes: l.Task.Writes, Running: []windowRow{}, Missed: l.Missed, MissedAt: l.MissedAt, Failed: l.Failed,
		Failures: []string{}, Partial: l.Partial, Partials: []string{}, MissedKeys: l.MissedKeys, Unplanned: l.Unplanned,
		Unreadable: keysOf(l.Unreadable),
	}
	for _, partial := range l.Partials {
		row.Partials = append(row.Partials, partial.Key)
	}
	for _, failed := range l.Failures {
		row.Failures = append(row.Failures, failed.Key)
	}
	if l.Next.Key != "" {
		row.Next = &windowOfRow{l.Next.Key, l.Next.DueAt.UTC()}
	}
	if l.Last != nil {
		last := answerWindow(*l.Last)
		row.Last = &last
	}
	for _, r := range l.Underway {
		row.Running = append(row.Running, answerWindow(r))
	}
	return row
}

func answerWindow(r run.WindowRun) windowRow {
	row := windowRow{
		Run: r.ID, Window: r.Key, State: r.State, DueAt: r.DueAt.UTC(), Actor: r.Actor, Holder: r.Holder, KeptAt: r.KeptAt,
		FinishedAt: r.FinishedAt, Progress: r.Progress, PerSecond: r.Speed, Skips: r.Skips, Fruitless: r.Fruitless, Overdue: r.Overdue, Error: r.Error,
		Unreadable: r.Unreadable,
	}
	if r.State == run.StateRunning {
		row.HeldSince = r.TakenAt
	}
	if r.Remaining != nil {
		seconds := r.Remaining.Seconds()
		row.RemainingSeconds = &seconds
	}
	return row
}

func (s *session) next(l run.Line) string {
	if l.Next.Key == "" {
		return orDash("")
	}
	return s.voice.Instant(i18n.Instant{At: l.Next.DueAt, Zone: l.Zone})
}

func (s *session) lastRun(l run.Line) string {
	if l.Last == nil {
		return orDash("")
	}
	return s.voice.Say("cli_window_ended", map[string]any{
		"window": l.Last.Key, "state": s.windowState(*l.Last), "at": i18n.Instant{At: *l.Last.FinishedAt, Zone: l.Zone},
	})
}

// windowState says in words how a run stands; one that left somebody or something undone does not read as a success.
func (s *session) windowState(r run.WindowRun) string {
	if r.Unreadable {
		return s.voice.Say("cli_window_unreadable", map[string]any{"state": s.voice.Say("cli_window_"+string(r.State), nil)})
	}
	if r.Early {
		return s.voice.Say("cli_window_early", map[string]any{"until": i18n.Instant{At: r.DueAt, Zone: r.Zone}})
	}
	if r.State == run.StateDone && r.Progress.Refused > 0 {
		return s.voice.Count("cli_window_done_refused", int(r.Progress.Refused))
	}
	return s.voice.Say("cli_window_"+string(r.State), nil)
}

func (s *session) underway(l run.Line) string {
	if len(l.Underway) == 0 {
		return orDash("")
	}
	rows := make([]string, len(l.Underway))
	for i, r := range l.Underway {
		rows[i] = s.voice.Say("cli_window_underway", map[string]any{"window": r.Key, "progress": s.windowProgress(r)})
	}
	return strings.Join(rows, "\n")
}

func (s *session) windowProgress(r run.WindowRun) string {
	parts := []string{s.windowState(r)}
	if r.State == run.StateRunning {
		parts = append(parts, r.Holder)
	}
	if done := r.Progress.Done + r.Progress.Refused; done > 0 || r.Progress.Expected > 0 {
		parts = append(parts, s.voice.Say("cli_window_progress", map[string]any{
			"done": s.voice.Number(done), "expected": s.voice.Number(r.Progress.Expected), "known": r.Progress.Expected > 0,
		}))
	}
	if r.Fruitless > 0 {
		parts = append(parts, s.voice.Say("cli_window_fruitless", map[string]any{"times": r.Fruitless}))
	}
	if r.Speed > 0 {
		parts = append(parts, s.voice.Say("cli_window_speed", map[string]any{"speed": s.voice.Decimal(r.Speed, 0)}))
	}
	if r.Remaining != nil {
		parts = append(parts, s.voice.Say("cli_window_remaining", map[string]any{"remaining": r.Remaining.String()}))
	}
	return strings.Join(parts, ", ")
}

func (s *session) missed(l run.Line) string {
	if l.Missed == 0 {
		return orDash("")
	}
	return s.voice.Number(l.Missed)
}

// sayLine says what somebody must do about a task.
func (s *session) sayLine(l run.Line) {
	facts := map[string]any{"task": l.Task.Name, "usher": s.program(), "zone": l.Zone}
	if l.Failed > 0 {
		facts["count"] = l.Failed
		if len(l.Failures) > 0 { // one may have been repeated in between
			facts["window"], facts["error"] = l.Failures[0].Key, l.Failures[0].Error
		}
		s.say("cli_schedule_failed", facts)
	}
	for _, r := range l.Unreadable {
		facts["window"], facts["run"] = r.Key, fmt.Sprint(r.ID)
		s.say("cli_schedule_unreadable", facts)
	}
	if len(l.Partials) > 0 && !l.Partials[0].Unreadable {
		latest := l.Partials[0]
		facts["window"], facts["run"], facts["state"] = latest.Key, fmt.Sprint(latest.ID), s.windowState(latest)
		s.say("cli_schedule_partial", facts)
	}
	if len(l.Partials) > 1 {
		facts["count"], facts["windows"] = l.Partial-1, s.names(keysOf(l.Partials[1:]), l.Partial-1)
		s.say("cli_schedule_partial_earlier", facts)
	}
	if l.Unplanned > 0 {
		facts["unplanned"] = s.voice.Count("schedule_unplanned", l.Unplanned)
		s.say("cli_schedule_unplanned", facts)
	}
	for _, r := range l.Underway {
		if r.Overdue {
			facts["window"], facts["due_at"], facts["holder"] = r.Key, i18n.Instant{At: r.DueAt, Zone: l.Zone}, ""
			if r.State == run.StateRunning { // else its last holder holds it no more
				facts["holder"] = r.Holder
			}
			s.say("cli_schedule_overdue", facts)
		}
		if r.Fruitless > 0 {
			facts["window"], facts["times"], facts["error"] = r.Key, r.Fruitless, r.Error
			s.say("cli_schedule_fruitless", facts)
		}
	}
	if l.Missed > 0 && l.MissedAt != nil {
		facts["count"], facts["at"] = l.Missed, i18n.Instant{At: *l.MissedAt, Zone: l.Zone}
		facts["windows"], facts["window"], facts["most"] = s.names(l.MissedKeys, int(l.Missed)), "", l.Task.Most
		if len(l.MissedKeys) > 0 {
			facts["window"] = l.MissedKeys[0]
		}
		s.say("cli_schedule_missed", facts)
	}
}

// names are the names of windows, and a sign that there are more.
func (s *session) names(keys []string, count int) string {
	text := strings.Join(keys, ", ")
	if len(keys) > 0 && count > len(keys) {
		text += ", …"
	}
	return text
}

func keysOf(runs []run.WindowRun) []string {
	keys := make([]string, len(runs))
	for i, r := range runs {
		keys[i] = r.Key
	}
	return keys
}

func (s *session) taskTitle(task run.Task) string {
	return s.voice.Say("task_"+task.Name+"_title", nil)
}

// listWindows prints the latest windows of a task in all its zones, the latest first.
func (s *session) listWindows(catalogue run.Catalogue, name string) error {
	task, err := catalogue.Find(name)
	if err != nil {
		return err
	}
	runs, err := run.Windows(s.ctx, s.db, s.actor, task)
	if err != nil {
		return err
	}
	if s.line.JSON {
		rows := make([]windowRow, len(runs))
		for i, r := range runs {
			rows[i] = answerWindow(r)
		}
		return s.answer(rows)
	}
	s.describe(task)
	if len(runs) == 0 {
		s.say("cli_no_windows", map[string]any{"task": name})
		return nil
	}
	rows := make([]table.Row, len(runs))
	for i, r := range runs {
		state := s.windowProgress(r)
		if r.FinishedAt != nil {
			state = s.voice.Say("cli_window_ended", map[string]any{
				"window": s.windowState(r), "state": s.voice.Count("cli_window_items", int(r.Progress.Done)),
				"at": i18n.Instant{At: *r.FinishedAt, Zone: r.Zone},
			})
		}
		rows[i] = table.Row{r.ID, r.Key, state, s.starter(r.Actor)}
	}
	s.table([]string{"cli_run", "cli_window", "cli_state", "cli_actor"}, rows, 1)
	s.say("cli_windows_latest", map[string]any{"task": name, "most": run.MostWindows, "usher": s.program()})
	return nil
}

// describe says what a task is for, and on what it relies.
func (s *session) describe(task run.Task) {
	s.say("cli_task_described", map[string]any{
		"title": s.taskTitle(task), "task": task.Name, "what": s.voice.Say("task_"+task.Name+"_what", nil), "when": task.When(s.voice),
		"catch_up":    s.voice.Say("schedule_catch_up_"+string(task.CatchUp), map[string]any{"most": task.Most}),
		"idempotency": s.voice.Say("task_"+task.Name+"_once", nil), "constraint": task.Constraint, "over": task.Over,
		"reads": strings.Join(task.Reads, ", "), "writes": strings.Join(task.Writes, ", "),
	})
	if task.Late > 0 {
		s.say("cli_task_late", map[string]any{"late": task.Late.String()})
	}
	fmt.Fprintln(s.stdout)
}

type runCommand struct {
	Task   string  `arg:"" help:"Name of the task; usher schedule lists them."`
	Window *string `placeholder:"KEY" help:"The window, as 2026-11-28 or 2026-10@Africa/Bamako; without a zone, those of all zones. Without it, the one that became due last."`
	Again  bool    `help:"Also when the window is done: from its beginning, which changes nothing that is as it should be. The earlier report stays."`
}

// Run runs or repeats a window by hand.
func (c runCommand) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	catalogue, err := s.catalogue()
	if err != nil {
		return err
	}
	wanted := run.Wanted{Task: c.Task, Again: c.Again}
	if c.Window != nil {
		if wanted.Key = *c.Window; wanted.Key == "" { // as a script gives it whose variable is not set: not the latest window
			return noKey(catalogue, c.Task)
		}
	}
	// Told to stop, it finishes the chunk and hands over; the work itself is not cut off.
	executor := job.Executor(s.ctx.Done())
	working := context.WithoutCancel(s.ctx)
	progress := s.progress("cli_running_window")
	executor.Progress = func(p run.Progress) { progress.to(int(p.Done+p.Refused), int(p.Expected)) }
	results, err := executor.Run(working, s.db, s.actor, wanted)
	progress.end()
	answers := make([]runAnswer, len(results))
	for i, result := range results {
		answers[i] = answerRun(c.Task, result)
		if err == nil {
			err = s.tellResult(working, c.Task, result, &answers[i])
		}
	}
	switch {
	case s.line.JSON && len(answers) == 1:
		err = errors.Join(err, s.answer(answers[0]))
	case s.line.JSON:
		err = errors.Join(err, s.answer(answers))
	case err == nil && len(answers) == 0:
		s.say("cli_ran_no_window", map[string]any{"task": c.Task})
	}
	for _, result := range results {
		if err == nil {
			err = s.notDone(c.Task, result)
		}
	}
	return err
}

// notDone says what is left of a window that was begun here.
func (s *session) notDone(task string, r run.Result) error {
	switch {
	case r.Ended.How == run.EndedOver:
		return problem.Refused("run_handed_over", problem.Facts{
			"task": task, "window": r.Window.Key, "done": s.voice.Count("cli_window_items", int(r.Progress.Done)),
		})
	case r.State == run.StateFailed:
		return problem.Refused("window_failed", problem.Facts{"task": task, "window": r.Window.Key, "error": r.Error})
	}
	return nil
}

// noKey tells what the windows of a task are called.
func noKey(catalogue run.Catalogue, name string) error {
	task, err := catalogue.Find(name)
	if err == nil {
		_, err = task.Parse("")
	}
	return err
}

// runAnswer is a run of a window, as programs read it.
type runAnswer struct {
	Run       int64      `json:"run"`
	Task      string     `json:"task"`
	Window    string     `json:"window"`
	State     string     `json:"state"` // done, failed; waiting: handed over; running: somebody else holds it, and nothing was done; left: it cannot be run, and others were
	Already   bool       `json:"already"`
	Done      int64      `json:"done"`
	Changed   int64      `json:"changed"`
	Refused   []itemRow  `json:"refused"`
	Holder    string     `json:"holder,omitempty"`
	HeldSince *time.Time `json:"held_since,omitempty"`
	Overdue   bool       `json:"overdue,omitempty"`
	Error     string     `json:"error,omitempty"`
}

// stateLeft is what a window is that was named along with others and cannot be run.
const stateLeft = "left"

func answerRun(task string, r run.Result) runAnswer {
	answer := runAnswer{
		Run: r.RunID, Task: task, Window: r.Window.Key, State: string(r.State), Already: r.Already, Done: r.Progress.Done,
		Changed: r.Progress.Changed, Refused: []itemRow{}, Error: r.Error,
	}
	if r.Left != nil {
		answer.State = stateLeft
	}
	switch r.Ended.How {
	case run.EndedBusy:
		answer.Holder, answer.HeldSince, answer.Overdue = r.Ended.Held.Holder, &r.Ended.Held.Since, r.Ended.Held.Overdue
	case run.EndedOver:
		answer.State = string(run.StateWaiting)
	}
	return answer
}

// tellResult says what came of a window, and names what was refused, at most mostInReport of them to people.
func (s *session) tellResult(ctx context.Context, task string, r run.Result, answer *runAnswer) error {
	facts := map[string]any{
		"task": task, "window": r.Window.Key, "run": fmt.Sprint(r.RunID), "done": s.voice.Count("cli_window_items", int(r.Progress.Done)),
		"changed": s.voice.Number(r.Progress.Changed), "refused": s.voice.Number(r.Progress.Refused), "some": r.Progress.Refused > 0,
		"holder": r.Ended.Held.Holder, "since": i18n.Instant{At: r.Ended.Held.Since, Zone: r.Window.Zone},
	}
	switch {
	case r.Left != nil:
		answer.Error = s.voice.Sentence(r.Left)
		fmt.Fprintln(s.stderr, s.voice.Say("cli_ran_left", map[string]any{"task": task, "window": r.Window.Key, "why": answer.Error}))
		return nil
	case r.Already:
		s.say("cli_ran_already", facts)
	case r.Ended.How == run.EndedBusy:
		s.say("cli_ran_skip", facts)
		if r.Ended.Held.Overdue {
			fmt.Fprintln(s.stderr, s.voice.Say("cli_ran_held_long", facts))
		}
		return nil
	case r.Ended.How == run.EndedOver:
		return nil // notDone says it
	case r.State == run.StateDone:
		s.say("cli_ran_done", facts)
	}
	if !s.line.JSON {
		return s.printItems(ctx, r.RunID, run.ListRefused)
	}
	return run.EachRefusal(ctx, s.db, s.actor, r.RunID, run.ListRefused, func(refusal run.Refusal) error {
		answer.Refused = append(answer.Refused, s.itemRow(refusal))
		return nil
	})
}
