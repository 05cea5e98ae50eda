package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"usher/internal/base/i18n"
	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

const (
	scheduleURL  = "/schedule"
	missedLately = 7 * 24 * time.Hour // windows that were missed are said aloud for as long; after that they are a number
	mostUnseen   = 2                  // holdings that keep nothing before that is said: one may be a database that was restarted
)

// schedulePage is what Usher does on its own, and how it stands.
type schedulePage struct {
	Chrome
	AsOf     string
	Troubles []trouble // what needs somebody, of all tasks
	Count    string    // of them, in words
	Underway underwayPart
	Tasks    []taskCard
	StillURL string // the same page without asking again
}

// taskCard is one task with how it stands in each of its zones.
type taskCard struct {
	Anchor, Title, What, Name string
	When, CatchUp             string
	Relies                    []string // on what: what makes twice once, what it touches, how late is too late
	Latest                    []endedWindow
	Zones                     []zoneLine
}

// zoneLine is how a task stands in one of its zones.
type zoneLine struct {
	Anchor   string
	Zone     string // empty: the task has only one
	Mark     stateMark
	Last     endedWindow
	Underway int // windows that have not ended
	Window   string
	Next     string
	Missed   string // empty: none
	Troubles []trouble
}

// endedWindow is a window, most often one that has ended; without a name there is none yet.
type endedWindow struct {
	Window string
	Mark   stateMark
	At     string // when it ended; of one that has not: how much is done
	Facts  []string
}

// trouble is something that a person must do something about.
type trouble struct {
	Kind     run.State // the sign
	Task     string
	URL      string
	Short    string // as it is said in a list of all
	Text     string
	Do       string
	Commands []string
}

// Kinds of trouble that no state of a run has a word for; they have their own signs.
const (
	markLate    run.State = "late"
	markMissed  run.State = "missed"
	markPartial run.State = "partial" // done, and some were refused
	markNone    run.State = "none"    // there was no window yet
)

// schedule shows what Usher does on its own, to whoever answers for an organisation.
func (s *site) schedule(w http.ResponseWriter, r *http.Request, actor timeline.Actor) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	lines, now, err := run.Overview(ctx, s.db, actor, s.catalogue)
	if err != nil {
		fail(w, r, err)
		return
	}
	latest, err := run.LastWindows(ctx, s.db, actor, s.catalogue)
	if err != nil {
		fail(w, r, err)
		return
	}
	page := schedulePageOf(chrome(w, r), lines, latest, now)
	if len(page.Underway.Windows) > 0 {
		page.StillURL = with(r.URL, "refresh", "off")
		page.Refresh = refreshSeconds
		if r.URL.Query().Get("refresh") == "off" {
			page.Refresh, page.StillURL, page.Underway.URL = 0, "", ""
		}
	}
	show(w, r, http.StatusOK, page)
}

func schedulePageOf(c Chrome, lines []run.Line, latest map[string][]run.WindowRun, now time.Time) schedulePage {
	page := schedulePage{Chrome: c, AsOf: c.Voice.Instant(i18n.Instant{At: now, Zone: "UTC"}), Underway: underwayOf(c, lines, now, 0)}
	page.Title = c.Say("schedule_title", nil)
	for _, line := range lines {
		if n := len(page.Tasks); n == 0 || page.Tasks[n-1].Name != line.Task.Name {
			page.Tasks = append(page.Tasks, taskCardOf(c, line.Task, latest[line.Task.Name]))
		}
		card := &page.Tasks[len(page.Tasks)-1]
		zone := zoneLineOf(c, line, now)
		card.Zones = append(card.Zones, zone)
		page.Troubles = append(page.Troubles, zone.Troubles...)
	}
	page.Count = c.Voice.Count("schedule_troubles", len(page.Troubles))
	return page
}

func taskCardOf(c Chrome, task run.Task, latest []run.WindowRun) taskCard {
	card := taskCard{
		Anchor: "task-" + task.Name, Name: task.Name, Title: taskTitle(c, task), What: c.Say("task_"+task.Name+"_what", nil),
		When: task.When(c.Voice), CatchUp: c.Say("schedule_catch_up_"+string(task.CatchUp), map[string]any{"most": task.Most}),
		Relies: []string{
			c.Say("schedule_relies_once", map[string]any{
				"idempotency": c.Say("task_"+task.Name+"_once", nil), "constraint": task.Constraint, "over": task.Over,
			}),
			c.Say("schedule_relies_tables", map[string]any{"reads": strings.Join(task.Reads, ", "), "writes": strings.Join(task.Writes, ", ")}),
			c.Say("schedule_relies_overdue", map[string]any{"overdue": roughly(task.Overdue)}),
		},
	}
	if task.Late > 0 {
		card.Relies = append(card.Relies, c.Say("cli_task_late", map[string]any{"late": roughly(task.Late)}))
	}
	for _, r := range latest {
		card.Latest = append(card.Latest, windowOf(c, task, r))
	}
	return card
}

func taskTitle(c Chrome, task run.Task) string { return c.Say("task_"+task.Name+"_title", nil) }

func zoneLineOf(c Chrome, line run.Line, now time.Time) zoneLine {
	z := zoneLine{Anchor: "task-" + line.Task.Name, Underway: len(line.Underway)}
	if line.Task.PerZone {
		z.Zone = line.Zone
		z.Anchor += "-" + strings.ReplaceAll(line.Zone, "/", "-")
	}
	if line.Last != nil {
		z.Last = windowOf(c, line.Task, *line.Last)
	}
	if line.Next.Key != "" {
		z.Window = windowWords(c, line.Task, line.Next.Key, line.Zone)
		z.Next = c.Voice.Instant(i18n.Instant{At: line.Next.DueAt, Zone: line.Zone})
	}
	if line.Missed > 0 {
		z.Missed = c.Voice.Count("schedule_missed_count", int(line.Missed))
	}
	z.Troubles = troublesOf(c, line, now)
	for i := range z.Troubles {
		z.Troubles[i].Task, z.Troubles[i].URL = taskTitle(c, line.Task), "#"+z.Anchor
		if z.Zone != "" {
			z.Troubles[i].Task += " (" + z.Zone + ")"
		}
	}
	z.Mark = taskMark(c, line, z)
	return z
}

// taskMark is the worst that can be said of a task, and else what is going on.
func taskMark(c Chrome, line run.Line, z zoneLine) stateMark {
	kind := run.StateDone
	switch {
	case len(z.Troubles) > 0:
		kind = z.Troubles[0].Kind
	case len(line.Underway) > 0:
		kind = run.StateRunning
	case line.Last == nil:
		kind = markNone
	}
	return stateMark{kind, c.Say("schedule_mark_"+string(kind), nil)}
}

// windowWords names a window as people name a day or a month.
func windowWords(c Chrome, task run.Task, key, zone string) string {
	window, err := task.Parse(key)
	if err != nil {
		return key // of an earlier release, which had other windows
	}
	local := i18n.In(i18n.Instant{At: window.Start, Zone: zone})
	switch task.Period {
	case run.DayBefore:
		return c.Voice.Date(local)
	case run.MonthBefore:
		return c.Voice.Month(local)
	case run.Minute, run.QuarterHour:
	}
	return c.Voice.Instant(i18n.Instant{At: window.Start, Zone: zone})
}

func windowOf(c Chrome, task run.Task, r run.WindowRun) endedWindow {
	one := endedWindow{Window: windowWords(c, task, r.Key, r.Zone), Mark: stateMark{r.State, c.Say("state_"+string(r.State), nil)}}
	items := c.Voice.Count("schedule_items", int(r.Progress.Done))
	if r.FinishedAt == nil {
		one.At = items
	} else {
		one.At, one.Facts = c.Voice.Instant(i18n.Instant{At: *r.FinishedAt, Zone: r.Zone}), []string{items}
	}
	if r.State == run.StateDone && r.Progress.Refused > 0 {
		one.Mark = stateMark{markPartial, c.Voice.Count("schedule_done_refused", int(r.Progress.Refused))}
	}
	if r.Progress.Changed > 0 {
		one.Facts = append(one.Facts, c.Voice.Count("schedule_changed", int(r.Progress.Changed)))
	}
	if r.FinishedAt != nil && r.BegunAt != nil {
		one.Facts = append(one.Facts, c.Say("schedule_took", map[string]any{"took": took(c.Voice, r.FinishedAt.Sub(*r.BegunAt))}))
	}
	return one
}

// troublesOf are what somebody must do about a task in a zone, the worst first.
func troublesOf(c Chrome, line run.Line, now time.Time) (all []trouble) {
	if len(line.Failures) > 0 {
		all = append(all, failure(c, line, line.Failures[0]))
	}
	if len(line.Failures) > 1 {
		all = append(all, earlierFailures(c, line))
	}
	for _, r := range line.Unreadable {
		all = append(all, unreadable(c, line, r))
	}
	if line.Unplanned > 0 {
		text := c.Voice.Count("schedule_unplanned", line.Unplanned)
		all = append(all, trouble{Kind: markLate, Short: text, Text: text, Do: c.Say("schedule_unplanned_do", nil), Commands: []string{"usher serve"}})
	}
	for _, r := range line.Underway {
		if r.Overdue {
			all = append(all, lateness(c, line, r))
		}
		if r.Fruitless >= mostUnseen {
			all = append(all, fruitless(c, line, r))
		}
	}
	if len(line.Partials) > 0 && !line.Partials[0].Unreadable {
		all = append(all, partial(c, line, line.Partials[0]))
	}
	if len(line.Partials) > 1 {
		all = append(all, earlierPartials(c, line))
	}
	if line.Missed > 0 && line.MissedAt != nil && now.Sub(*line.MissedAt) < missedLately && line.Task.CatchUp != run.CatchUpLatest {
		all = append(all, missing(c, line))
	}
	return all
}

// missing says that windows came too late. Where the latest window does the work of those before it, that is no trouble; where
// they are not caught up at all, somebody may want to know, and running them now would do harm.
func missing(c Chrome, line run.Line) trouble {
	at := i18n.Instant{At: *line.MissedAt, Zone: line.Zone}
	t := trouble{
		Kind: markMissed, Short: c.Voice.Count("schedule_missed_count", int(line.Missed)),
		Text: c.Voice.Count("schedule_missed", int(line.Missed)), Do: c.Say("schedule_missed_none_do", nil),
	}
	if line.Task.CatchUp == run.CatchUpAll {
		t.Do, t.Commands = c.Say("schedule_missed_do", nil), []string{runAnyCommand(c, line.Task.Name)}
	}
	if keys := namesOf(line.MissedKeys, int(line.Missed)); len(keys) > 0 {
		t.Do = c.Say("schedule_missed_names", map[string]any{"windows": keys}) + " " + t.Do
	}
	t.Do = c.Say("schedule_missed_last", map[string]any{"at": at}) + " " + t.Do
	return t
}

// failure says why a window failed. What stopped it is an error of the program or of the database, which may tell of other
// organisations: it stays in the log and on the command line.
func failure(c Chrome, line run.Line, r run.WindowRun) trouble {
	window := windowWords(c, line.Task, r.Key, line.Zone)
	why := c.Say("schedule_failed_error", nil)
	if line.Task.TooManyRefused(r.Progress) {
		why = c.Voice.Count("schedule_failed_refused", int(r.Progress.Refused))
	}
	return trouble{
		Kind: run.StateFailed, Short: c.Say("schedule_failed_short", map[string]any{"window": window}),
		Text: c.Say("schedule_failed", map[string]any{"window": window, "why": why}), Do: c.Say("schedule_failed_do", nil),
		Commands: []string{reportCommand(r.ID), runCommand(line.Task.Name, r.Key, false)},
	}
}

// earlierFailures names the windows that failed before the last one that did, and that nobody repeated.
func earlierFailures(c Chrome, line run.Line) trouble {
	var keys []string
	for _, r := range line.Failures[1:] {
		keys = append(keys, r.Key)
	}
	keys = namesOf(keys, line.Failed-1)
	text := c.Voice.Count("schedule_failed_earlier", line.Failed-1)
	return trouble{
		Kind: run.StateFailed, Short: text, Text: text, Do: c.Say("schedule_failed_earlier_do", map[string]any{"windows": keys}),
		Commands: []string{runAnyCommand(c, line.Task.Name)},
	}
}

// namesOf are the names of windows, and a sign that there are more.
func namesOf(keys []string, count int) []string {
	if len(keys) == 0 || count <= len(keys) {
		return keys
	}
	return append(slices.Clone(keys), "…")
}

// fruitless says that a run is taken again and again and keeps nothing. What stops it may tell of other organisations.
func fruitless(c Chrome, line run.Line, r run.WindowRun) trouble {
	facts := map[string]any{"window": windowWords(c, line.Task, r.Key, line.Zone), "times": r.Fruitless}
	return trouble{
		Kind: markLate, Short: c.Say("schedule_fruitless_short", facts), Text: c.Say("schedule_fruitless", facts),
		Do: c.Say("schedule_fruitless_do", nil), Commands: []string{reportCommand(r.ID)},
	}
}

// unreadable says that somebody changed the row of a run by hand into what nobody can read: what it did is unknown.
func unreadable(c Chrome, line run.Line, r run.WindowRun) trouble {
	facts := map[string]any{"window": windowWords(c, line.Task, r.Key, line.Zone)}
	return trouble{
		Kind: markPartial, Short: c.Say("schedule_unreadable_short", facts), Text: c.Say("schedule_unreadable", facts),
		Do: c.Say("schedule_unreadable_do", nil), Commands: []string{runCommand(line.Task.Name, r.Key, r.State == run.StateDone)},
	}
}

func lateness(c Chrome, line run.Line, r run.WindowRun) trouble {
	facts := map[string]any{
		"window": windowWords(c, line.Task, r.Key, line.Zone), "due_at": i18n.Instant{At: r.DueAt, Zone: line.Zone}, "holder": r.Holder,
	}
	t := trouble{
		Kind: markLate, Short: c.Say("schedule_late_short", facts), Text: c.Say("schedule_late", facts),
		Do: c.Say("schedule_late_held_do", facts),
	}
	if r.State == run.StateWaiting {
		t.Do, t.Commands = c.Say("schedule_late_waiting_do", nil), []string{"usher serve", runCommand(line.Task.Name, r.Key, false)}
	}
	return t
}

func partial(c Chrome, line run.Line, r run.WindowRun) trouble {
	facts := map[string]any{"window": windowWords(c, line.Task, r.Key, line.Zone)}
	rest := "schedule_refused_of"
	if r.Progress.Done == 0 {
		rest = "schedule_refused_none"
	}
	return trouble{
		Kind: markPartial, Short: c.Voice.Count("schedule_refused_short", int(r.Progress.Refused)),
		Text: c.Voice.Count("schedule_refused", int(r.Progress.Refused)) + " " + c.Say(rest, facts),
		Do:   c.Say("schedule_refused_do", nil), Commands: []string{reportCommand(r.ID), runCommand(line.Task.Name, r.Key, true)},
	}
}

// earlierPartials names the windows that refused something before the last one that did, and that nobody repeated.
func earlierPartials(c Chrome, line run.Line) trouble {
	var keys []string
	for _, r := range line.Partials[1:] {
		keys = append(keys, r.Key)
	}
	text := c.Voice.Count("schedule_refused_earlier", line.Partial-1)
	return trouble{
		Kind: markPartial, Short: text, Text: text,
		Do:       c.Say("schedule_refused_earlier_do", map[string]any{"windows": namesOf(keys, line.Partial-1)}),
		Commands: []string{runAnyCommand(c, line.Task.Name) + " --again"},
	}
}

// Windows are run by whoever administers the installation, in a shell: they concern all organisations.
func runCommand(task, key string, again bool) string {
	command := "usher run " + i18n.ShellWord(task) + " --window " + i18n.ShellWord(key)
	if again {
		command += " --again"
	}
	return command
}

// runAnyCommand leaves the window to whoever types it.
func runAnyCommand(c Chrome, task string) string {
	return "usher run " + i18n.ShellWord(task) + " --window " + c.Say("schedule_key", nil)
}

func reportCommand(id int64) string { return fmt.Sprintf("usher report %d", id) }

// maySeeSchedule tells whether the menu leads to what Usher does on its own.
func (v visitor) maySeeSchedule() bool {
	return v.as.Role != "" && account.May(v.actor(), account.Manage)
}
