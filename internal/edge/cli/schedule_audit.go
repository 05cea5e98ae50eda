package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/scheduled"
	"usher/internal/domain/run"
	"usher/internal/edge/job"
)

type scheduleAudit struct {
	Paths   []string `arg:"" optional:"" help:"Files and directories to look through, as /etc /var/spool/cron or a repository; - reads what crontab -l prints."`
	Crontab bool     `help:"Also what crontab -l says, of the user who asks."`
}

const (
	crontabWithin  = 10 * time.Second
	mostNamedPaths = 5
	mostAudited    = 1000 // schedules that are printed for people, and all that are done twice; --json has them all
)

// Run lists what was found, and ends with 1 when something is done twice. It needs no database.
func (c scheduleAudit) Run(s *session) error {
	if len(c.Paths) == 0 && !c.Crontab {
		return problem.Invalid("audit_nothing_asked", nil)
	}
	for _, path := range c.Paths {
		if path == "" { // as a script gives it whose variable is empty: not the directory in which it runs
			return problem.Invalid("audit_nothing_asked", nil)
		}
	}
	found, err := scheduled.Find(s.ctx, c.Paths, os.Stdin)
	if err != nil {
		return err
	}
	if c.Crontab {
		more, err := ownCrontab(s.ctx)
		if err != nil {
			return err
		}
		found.Entries, found.Unread, found.Files = append(found.Entries, notIn(found.Entries, more.Entries)...), append(found.Unread, more.Unread...), found.Files+more.Files
	}
	a := audit{found: found}
	a.judged, a.doubles = job.Judge(found.Entries, s.line.Database)
	for _, j := range a.judged {
		if j.IsDouble() {
			a.doubled++
		}
		if j.IsUnexplained() {
			if a.unexplained++; len(j.Doubles) > 0 || neverRuns(j) {
				a.elsewhere++
			}
		}
	}
	missing := a.missing()
	if only := found.Files == 0 && len(found.Unread) == len(missing); len(missing) == 0 || !only {
		if err := s.showAudit(a); err != nil {
			return err
		}
	}
	if len(missing) > 0 { // a mistyped path must not look like one that holds nothing
		return problem.NotFound("audit_paths_missing", problem.Facts{"paths": missing})
	}
	if a.doubled > 0 {
		return problem.Refused("schedules_doubled", problem.Facts{"count": a.doubled})
	}
	if unseen := a.unseen(); len(unseen) > 0 { // nothing was found where nothing was seen
		return problem.NotFound("audit_not_all_read", problem.Facts{"paths": unseen[:min(mostNamedPaths, len(unseen))], "count": len(unseen), "more": len(unseen) > mostNamedPaths})
	}
	return nil
}

// audit is what was found, and what it means.
type audit struct {
	found       scheduled.Found
	judged      []job.Judged
	doubles     []job.Double
	doubled     int // schedules that are in one of them
	unexplained int
	elsewhere   int // of these, that stand under another heading
}

// unseen are the places of which nothing, or not all, was looked at.
func (a audit) unseen() (paths []string) {
	for _, u := range a.found.Unread {
		switch u.Reason {
		case scheduled.ReasonUnreadable, scheduled.ReasonLarge, scheduled.ReasonMany, scheduled.ReasonDeep:
			paths = append(paths, u.File)
		}
	}
	return paths
}

// missing are paths that were named and are not there.
func (a audit) missing() (paths []string) {
	for _, u := range a.found.Unread {
		if u.Reason == scheduled.ReasonMissing {
			paths = append(paths, u.File)
		}
	}
	return paths
}

func (s *session) showAudit(a audit) error {
	if s.line.JSON {
		return s.answer(s.answerAudit(a))
	}
	s.printAudit(a)
	return nil
}

// ownCrontab asks cron for the crontab of whoever asks. That they have none is an answer, too.
func ownCrontab(ctx context.Context) (scheduled.Found, error) {
	ctx, end := context.WithTimeout(ctx, crontabWithin)
	defer end()
	command := exec.CommandContext(ctx, "crontab", "-l")
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return scheduled.Found{}, problem.Refused("audit_no_crontab_program", nil)
	case errors.As(err, &exit) && strings.Contains(strings.ToLower(errs.String()), "no crontab"):
		return scheduled.Found{}, nil
	case err != nil:
		return scheduled.Found{}, problem.Refused("audit_crontab_failed", problem.Facts{"why": strings.TrimSpace(errs.String())}).Because(err)
	}
	found, err := scheduled.Find(ctx, []string{"-"}, strings.NewReader(string(out)))
	for i := range found.Entries {
		found.Entries[i].File = "crontab -l"
	}
	return found, err
}

// notIn leaves of the crontab of whoever asks the lines that do not stand in the same crontab where cron keeps it, if that was named,
// too: they would double themselves.
func notIn(all, own []scheduled.Entry) []scheduled.Entry {
	who, err := user.Current()
	if err != nil { // then nothing is known to be theirs
		return own
	}
	type line struct{ when, command string }
	kept := map[line]bool{}
	for _, e := range all {
		if e.Kind == scheduled.KindCrontab && e.User == who.Username {
			kept[line{e.When, e.Command}] = true
		}
	}
	return slices.DeleteFunc(own, func(e scheduled.Entry) bool { return kept[line{e.When, e.Command}] })
}

func neverRuns(j job.Judged) bool { return !j.Runs() && j.Off != scheduled.OffSystemd }

func (s *session) printAudit(a audit) {
	s.printDoubles(a)
	sections := []struct {
		heading string
		holds   func(job.Judged) bool
	}{
		{"cli_audit_section_unexplained", func(j job.Judged) bool { return !neverRuns(j) && j.IsUnexplained() }},
		{"cli_audit_section_never", neverRuns},
		{"cli_audit_section_rest", func(j job.Judged) bool { return !neverRuns(j) && !j.IsUnexplained() }},
	}
	printed := 0
	for _, j := range a.judged {
		if len(j.Doubles) > 0 {
			printed++
		}
	}
	for _, section := range sections {
		headed := false
		for _, j := range a.judged {
			if len(j.Doubles) > 0 || !section.holds(j) || printed >= mostAudited {
				continue
			}
			printed++
			if !headed {
				fmt.Fprintf(s.stdout, "%s\n\n", s.voice.Say(section.heading, nil))
				headed = true
			}
			s.printJudged(j)
		}
	}
	if len(a.judged) > printed {
		s.say("cli_audit_more", map[string]any{"count": len(a.judged) - printed})
	}
	for _, u := range a.found.Unread[:min(mostAudited, len(a.found.Unread))] {
		s.say("cli_audit_unread", map[string]any{"file": unreadPlace(u), "why": s.unreadWhy(u)})
	}
	if more := len(a.found.Unread) - mostAudited; more > 0 {
		s.say("cli_audit_unread_more", map[string]any{"count": more})
	}
	elsewhere := ""
	if a.elsewhere > 0 {
		elsewhere = strconv.Itoa(a.elsewhere)
	}
	s.say("cli_audit_sum", map[string]any{
		"schedules": s.voice.Count("cli_audit_schedules", len(a.judged)), "files": s.voice.Count("cli_audit_files", a.found.Files), "unexplained": a.unexplained, "elsewhere": elsewhere,
	})
}

// printDoubles prints each job that is done more than once, with all of its places, and each that may be. These are never left out.
func (s *session) printDoubles(a audit) {
	shown := map[int]int{} // in which group a schedule stands
	heading := ""
	for n, d := range a.doubles {
		of := "cli_audit_section_double"
		if d.Perhaps {
			of = "cli_audit_section_perhaps"
		}
		if of != heading {
			heading = of
			fmt.Fprintf(s.stdout, "%s\n\n", s.voice.Say(heading, nil))
		}
		fmt.Fprintf(s.stdout, "%d. %s\n", n+1, s.doubleWords(d))
		fmt.Fprintln(s.stdout)
		for _, i := range d.Places {
			if at := shown[i]; at > 0 { // it does more than one thing, and stands above with all of it
				fmt.Fprintf(s.stdout, "%s  %s\n\n", s.judgedHead(a.judged[i]), s.voice.Say("cli_audit_see", map[string]any{"group": at}))
				continue
			}
			shown[i] = n + 1
			s.printJudged(a.judged[i])
		}
	}
}

// doubleWords says what is done more than once, and by how many.
func (s *session) doubleWords(d job.Double) string {
	schedules := s.voice.Count("cli_audit_schedules", len(d.Places))
	if d.Task != "" {
		return s.voice.Say("cli_audit_double_task", map[string]any{"task": d.Task, "title": s.voice.Say("task_"+d.Task+"_title", nil), "schedules": schedules})
	}
	return s.voice.Say("cli_audit_double", map[string]any{"runs": runsWords(d), "schedules": schedules})
}

func runsWords(d job.Double) []string {
	runs := make([]string, len(d.Runs))
	for i, a := range d.Runs {
		runs[i] = strings.TrimSpace(a.Program + " " + a.Target())
	}
	return runs
}

func unreadPlace(u scheduled.Unread) string {
	if u.Line == 0 {
		return u.File
	}
	return u.File + ":" + strconv.Itoa(u.Line)
}

func place(e scheduled.Entry) string {
	return e.File + ":" + strconv.Itoa(e.Line)
}

// judgedHead says where a schedule stands, when it runs and as whom.
func (s *session) judgedHead(j job.Judged) string {
	head := []string{place(j.Entry), s.auditWhen(j.Entry)}
	if j.User != "" {
		head = append(head, s.voice.Say("cli_audit_as", map[string]any{"user": j.User}))
	}
	return strings.Join(head, "  ")
}

// printJudged prints one schedule: where and when, what it runs, what that means, where it belongs.
func (s *session) printJudged(j job.Judged) {
	fmt.Fprintln(s.stdout, s.judgedHead(j))
	for _, a := range j.Actions {
		s.indented(a.Program + " " + a.Target())
	}
	if j.Command != "" {
		s.indented("$ " + j.Command)
	}
	verdict := s.auditVerdict(j)
	if len(verdict) > 1 {
		s.indented(strings.Join(verdict[:len(verdict)-1], " "))
	}
	s.indented("→ " + verdict[len(verdict)-1])
	fmt.Fprintln(s.stdout)
}

// indented prints a text as wide as the terminal, two columns in.
func (s *session) indented(text string) {
	for line := range strings.Lines(wrap(strings.TrimSpace(text), max(narrowest, widthOf(s.stdout)-4))) {
		fmt.Fprintln(s.stdout, "  "+strings.TrimRight(line, " \n"))
	}
}

func (s *session) auditVerdict(j job.Judged) []string {
	var said []string
	if j.Task != "" && (!j.Certain || !j.IsDouble()) { // else it stands above
		id := "cli_audit_task_perhaps"
		if j.Certain {
			id = "cli_audit_task"
		}
		said = append(said, s.voice.Say(id, map[string]any{"task": j.Task, "title": s.voice.Say("task_"+j.Task+"_title", nil)}))
	}
	if j.Why != "" {
		said = append(said, s.voice.Say("cli_audit_why", map[string]any{"why": j.Why}))
	} else if j.IsUnexplained() {
		said = append(said, s.voice.Say("cli_audit_unexplained", nil))
	}
	if j.Under != "" {
		said = append(said, s.voice.Say("cli_audit_under", map[string]any{"why": j.Under}))
	}
	if j.Dotted {
		said = append(said, s.voice.Say("cli_audit_dotted", nil))
	}
	if j.Off != "" {
		said = append(said, s.voice.Say("cli_audit_off_"+string(j.Off), nil))
	}
	return append(said, s.voice.Say("cli_audit_belongs_"+string(j.Belongs), map[string]any{"task": j.Task}))
}

func (s *session) unreadWhy(u scheduled.Unread) string {
	return s.voice.Say("cli_audit_unread_"+string(u.Reason), map[string]any{
		"detail": u.Detail, "line": fmt.Sprint(u.Line), "most": scheduled.MostBytes >> 20, "depth": scheduled.MostDepth, "file": u.File, "files": scheduled.MostFiles, "entries": scheduled.MostEntries,
	})
}

// fiveFields are what cron's words stand for.
var fiveFields = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// auditWhen says in words when a schedule runs.
func (s *session) auditWhen(e scheduled.Entry) string {
	facts := map[string]any{"when": e.When}
	switch {
	case e.Templated:
		return s.voice.Say("cli_audit_when_template", facts)
	case e.Elsewhere:
		return s.voice.Say("cli_audit_when_settings", nil)
	case e.Wrong:
		return s.voice.Say("cli_audit_when_wrong", facts)
	case e.Kind == scheduled.KindTimer:
		return s.voice.Say("cli_audit_when_timer", facts)
	case e.When == "@reboot":
		return s.voice.Say("cli_audit_when_reboot", nil)
	case (e.Kind == scheduled.KindPeriodic || e.Kind == scheduled.KindAnacrontab) && fiveFields[e.When] != "":
		return s.voice.Say("cli_audit_when_"+strings.TrimPrefix(e.When, "@"), nil)
	}
	if every, is := strings.CutPrefix(e.When, "@every "); is {
		return s.voice.Say("cli_audit_when_every", map[string]any{"every": every})
	}
	zone := e.Zone
	if zone == "" {
		zone = s.voice.Say("cli_audit_zone_machine", nil)
		if e.Kind == scheduled.KindCluster || e.Kind == scheduled.KindBuild {
			zone = "UTC"
		}
	}
	cron := e.When
	if five := fiveFields[cron]; five != "" {
		cron = five
	}
	return s.cronWords(cron, zone)
}

// cronWords adds to the words that the catalogue has for its own schedules those that people's have.
func (s *session) cronWords(cron, zone string) string {
	fields := strings.Fields(cron)
	if len(fields) == 5 && fields[2] == "*" && fields[3] == "*" {
		minute, minuteErr := strconv.Atoi(fields[0])
		hour, hourErr := strconv.Atoi(fields[1])
		facts := map[string]any{"at": fmt.Sprintf("%02d:%02d", hour, minute), "zone": zone}
		every, isEvery := strings.CutPrefix(fields[0], "*/")
		switch day, dayErr := strconv.Atoi(fields[4]); {
		case minuteErr == nil && hourErr == nil && dayErr == nil && day >= 0 && day <= 7:
			facts["day"] = s.voice.Weekday(time.Weekday(day % 7))
			return s.voice.Say("cli_audit_when_weekday", facts)
		case minuteErr == nil && hourErr == nil && fields[4] == "1-5":
			return s.voice.Say("cli_audit_when_workdays", facts)
		case isEvery && every == "1" && fields[1] == "*" && fields[4] == "*":
			cron = "* * * * *"
		case isEvery && every != "15" && fields[1] == "*" && fields[4] == "*":
			return s.voice.Say("cli_audit_when_minutes", map[string]any{"minutes": every})
		}
	}
	return run.Schedule{Cron: cron, Zone: zone}.When(s.voice)
}

// auditAnswer is what was found, as programs read it.
type auditAnswer struct {
	Schedules   []auditRow    `json:"schedules"`
	Groups      []auditDouble `json:"groups"` // jobs that are done more than once, for certain or perhaps
	Unread      []unreadRow   `json:"unread"`
	Files       int           `json:"files"`
	Doubles     int           `json:"doubles"` // schedules that are for certain in one of the groups
	Unexplained int           `json:"unexplained"`
}

type auditDouble struct {
	Task    string        `json:"task,omitempty"` // of the catalogue, which does it besides
	Perhaps bool          `json:"perhaps"`        // they may be on different targets
	Runs    []auditAction `json:"runs"`
	Places  []string      `json:"places"` // file:line
}

type auditRow struct {
	File     string         `json:"file"`
	Line     int            `json:"line"`
	Kind     scheduled.Kind `json:"kind"`
	When     string         `json:"when"`
	Words    string         `json:"words"`
	Valid    bool           `json:"valid"`    // cron understands it
	Template bool           `json:"template"` // the hour is known when the file is rendered
	Runs     bool           `json:"runs_ever"`
	Zone     string         `json:"zone,omitempty"`
	User     string         `json:"user,omitempty"`
	Name     string         `json:"name,omitempty"`
	Command  string         `json:"command"`
	Actions  []auditAction  `json:"runs"`
	Why      string         `json:"why,omitempty"`
	Under    string         `json:"under,omitempty"` // a comment above it that is about another line
	Off      scheduled.Off  `json:"off,omitempty"`
	Task     string         `json:"task,omitempty"`    // of the catalogue, which it does
	Perhaps  string         `json:"perhaps,omitempty"` // or seems to do
	Groups   []int          `json:"groups"`            // of which it is one, from 1
	Explains bool           `json:"explained"`
	Belongs  job.Belongs    `json:"belongs"`
	Advice   string         `json:"advice"`
}

type auditAction struct {
	Program string `json:"program"`
	Target  string `json:"target"`
}

type unreadRow struct {
	File   string           `json:"file"`
	Line   int              `json:"line,omitempty"`
	Reason scheduled.Reason `json:"reason"`
	Why    string           `json:"why"`
}

func answerActions(all []scheduled.Action) []auditAction {
	actions := make([]auditAction, len(all))
	for i, a := range all {
		actions[i] = auditAction{a.Program, a.Target()}
	}
	return actions
}

func (s *session) answerAudit(a audit) auditAnswer {
	answer := auditAnswer{
		Schedules: []auditRow{}, Groups: []auditDouble{}, Unread: []unreadRow{}, Files: a.found.Files, Doubles: a.doubled, Unexplained: a.unexplained,
	}
	for _, d := range a.doubles {
		double := auditDouble{Task: d.Task, Perhaps: d.Perhaps, Runs: answerActions(d.Runs)}
		for _, i := range d.Places {
			double.Places = append(double.Places, place(a.judged[i].Entry))
		}
		answer.Groups = append(answer.Groups, double)
	}
	for _, j := range a.judged {
		row := auditRow{
			File: j.File, Line: j.Line, Kind: j.Kind, When: j.When, Words: s.auditWhen(j.Entry), Valid: !j.Wrong, Template: j.Templated, Runs: j.Runs(),
			Zone: j.Zone, User: j.User, Name: j.Name, Command: j.Command, Actions: answerActions(j.Actions), Why: j.Why, Under: j.Under, Off: j.Off, Groups: []int{}, Explains: !j.IsUnexplained(), Belongs: j.Belongs,
			Advice: s.voice.Say("cli_audit_belongs_"+string(j.Belongs), map[string]any{"task": j.Task}),
		}
		if row.Perhaps = j.Task; j.Certain {
			row.Task, row.Perhaps = j.Task, ""
		}
		for _, n := range j.Doubles {
			row.Groups = append(row.Groups, n+1)
		}
		answer.Schedules = append(answer.Schedules, row)
	}
	for _, u := range a.found.Unread {
		answer.Unread = append(answer.Unread, unreadRow{u.File, u.Line, u.Reason, s.unreadWhy(u)})
	}
	return answer
}
