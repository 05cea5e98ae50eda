// Package scheduled finds what runs by the clock on a machine or in a repository: crontabs, cron directories, systemd timers, schedules
// inside images, of clusters and of builds. It says where each stands, what it runs on what, and which of them do the same; what
// that means for anybody is decided elsewhere. It runs nothing and reaches nothing but files.
package scheduled

import (
	"regexp"
	"strings"
)

// Kind is what an entry was found in.
type Kind string

// The kinds.
const (
	KindCrontab    Kind = "crontab"    // of a user
	KindSystem     Kind = "cron.d"     // with a user in each line
	KindPeriodic   Kind = "periodic"   // a script in cron.daily and its like
	KindAnacrontab Kind = "anacrontab" //
	KindImage      Kind = "image"      // a crontab that a Dockerfile or a script lays
	KindLabel      Kind = "label"      // of a container, for a scheduler beside it
	KindVariable   Kind = "variable"   // of a container whose image schedules itself
	KindTimer      Kind = "timer"      // of systemd
	KindCluster    Kind = "cluster"    // a CronJob of Kubernetes and its like
	KindBuild      Kind = "build"      // of a CI service
)

// Off says why an entry never runs; empty: it does.
type Off string

// Why an entry never runs.
const (
	OffSuspended     Off = "suspended"
	OffNotExecutable Off = "not_executable" // cron's directories run what may be executed
	OffName          Off = "name"           // and what has no dot in its name
	OffSystemd       Off = "systemd"        // the command ends at once where systemd runs, which has a timer for it
)

// Entry is one schedule.
type Entry struct {
	Kind      Kind
	File      string // as it was reached from what was asked for; "-" is the standard input
	Line      int
	When      string // as written: five fields, @daily, an OnCalendar
	Wrong     bool   // cron would not understand When
	Elsewhere bool   // the hour stands in the settings of the CI service, and not in the file
	Zone      string
	User      string
	Name      string // of the job, where it has one
	Command   string // without passwords, cut to mostCommand
	Actions   []Action
	Why       string // what somebody wrote about it; empty: nobody explains it
	Off       Off

	job int // of several times of one, which do not double each other; 0: of its own
}

// Unread is what could not be looked at, or only in part.
type Unread struct {
	File   string
	Line   int
	Reason Reason
	Detail string
}

// Reason is why something was not read.
type Reason string

// The reasons.
const (
	ReasonUnreadable Reason = "unreadable"
	ReasonLarge      Reason = "large"
	ReasonDeep       Reason = "deep"
	ReasonMany       Reason = "many"
	ReasonTemplate   Reason = "template" // a YAML file with placeholders: what it becomes is known when it is rendered
	ReasonYAML       Reason = "yaml"
	ReasonCopied     Reason = "copied"  // a Dockerfile copies a crontab that is not there
	ReasonService    Reason = "service" // a timer whose service is not there
	ReasonBinary     Reason = "binary"  // a program, or a text of two bytes a character
	ReasonUnknown    Reason = "unknown" // a file that was named, and holds no schedule of a known form
)

// Bounds of one search.
const (
	MostFiles   = 100_000 // looked at by name
	MostDepth   = 40      // directories below each other
	MostBytes   = 1 << 20 // of one file
	MostEntries = 10_000
	mostCommand = 300 // characters that are kept of a command
	mostNested  = 8   // commands inside commands: bash -c "docker exec … sh -c …"
)

// Found is what a search found.
type Found struct {
	Entries []Entry
	Unread  []Unread
	Files   int // that were opened
}

// Doubles lists for each entry the others that run the same program on the same target, by their places. An entry that never runs
// doubles nothing.
func Doubles(entries []Entry) [][]int {
	doubles := make([][]int, len(entries))
	byProgram := map[string][]int{}
	for i, e := range entries {
		seen := map[string]bool{}
		for _, a := range e.Actions {
			if e.Off == "" && !seen[a.Program] {
				seen[a.Program] = true
				byProgram[a.Program] = append(byProgram[a.Program], i)
			}
		}
	}
	for i, e := range entries {
		seen := map[int]bool{i: true}
		for _, a := range e.Actions {
			if e.Off != "" {
				continue
			}
			for _, j := range byProgram[a.Program] {
				if !seen[j] && (e.job == 0 || e.job != entries[j].job) && doesSame(a, entries[j].Actions) && (a.isSaid() || e.File == entries[j].File) {
					seen[j] = true
					doubles[i] = append(doubles[i], j)
				}
			}
		}
	}
	return doubles
}

func doesSame(a Action, others []Action) bool {
	for _, other := range others {
		if a.Same(other) {
			return true
		}
	}
	return false
}

// endsBeside finds a command that goes on only where systemd does not run, endsWithout one that ends there.
var (
	endsBeside  = regexp.MustCompile(`!\s*-[de]\s+/run/systemd/system|/run/systemd/system/?\s*\]*\s*(?:\|\||(?:;\s*then\b[\s;]*|&&\s*)exit\b)`)
	endsWithout = regexp.MustCompile(`!\s*-[de]\s+/run/systemd/system/?\s*\]*\s*(?:;\s*then\b[\s;]*|&&\s*)exit\b|(?:^|[^!\s])\s*-[de]\s+/run/systemd/system/?\s*\]*\s*\|\|\s*exit\b`)
)

// stepsAside tells whether a command ends at once on a machine that systemd runs: packages bring both, and one of them works.
func stepsAside(command string) Off {
	if endsBeside.MatchString(command) && !endsWithout.MatchString(command) {
		return OffSystemd
	}
	return ""
}

// shorten keeps the beginning of a command, on one line and without passwords.
func shorten(command string) string {
	runes := []rune(mask(strings.Join(strings.Fields(command), " ")))
	if len(runes) > mostCommand {
		return string(runes[:mostCommand-1]) + "…"
	}
	return string(runes)
}
