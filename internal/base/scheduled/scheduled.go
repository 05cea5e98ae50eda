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
	OffName          Off = "name"           // and what has no dot in its name, where the machine is Debian's; an old copy nowhere
	OffSystemd       Off = "systemd"        // the command ends at once where systemd runs, which has a timer for it
	OffNever         Off = "never"          // no day is like that: 31 February
	OffDisabled      Off = "disabled"       // a timer that its machine does not start, among others that it does
	OffMasked        Off = "masked"         // a timer that its machine forbids
	OffReplaced      Off = "replaced"       // another file of that name is read in its place
)

// Entry is one schedule.
type Entry struct {
	Kind      Kind
	File      string // as it was reached from what was asked for; "-" is the standard input
	Line      int
	When      string // as written: five fields, @daily, an OnCalendar
	Wrong     bool   // cron would not understand When
	Elsewhere bool   // the hour stands in the settings of the CI service, and not in the file
	Templated bool   // the hour is known when the file is rendered, or the variable set
	Zone      string
	User      string
	Name      string // of the job, where it has one
	Command   string // without passwords, cut to mostCommand
	Actions   []Action
	Why       string // what somebody wrote about it; empty: nobody explains it
	Under     string // a comment above it that is about a line between them; it may be meant for this one, too
	Dotted    bool   // its file has a dot in its name: Debian's cron passes over that, others run it
	Off       Off

	line string // the command as it stands in a crontab
	job  int    // of several times of one, which do not double each other; 0: of its own
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
	ReasonCopied     Reason = "copied"    // a Dockerfile copies a crontab that is not there
	ReasonService    Reason = "service"   // a timer whose service is not there
	ReasonBinary     Reason = "binary"    // a program, or a text of two bytes a character
	ReasonUnknown    Reason = "unknown"   // a file that was named, and holds no schedule of a known form
	ReasonMissing    Reason = "missing"   // it was named, and is not there
	ReasonNoTarget   Reason = "no_target" // a link to nothing, where a schedule would be read
	ReasonLink       Reason = "link"      // a link that leads out of what was asked for
	ReasonOutside    Reason = "outside"   // a Dockerfile copies a crontab from outside of what was asked for
	ReasonUntimed    Reason = "untimed"   // a CronJob that says no hours

	// Lines that are none of cron's, which it passes over or refuses with the whole file.
	ReasonLineFields  Reason = "line_fields"
	ReasonLineUser    Reason = "line_user"
	ReasonLineAnacron Reason = "line_anacron"
	ReasonLines       Reason = "lines" // there are more of them
)

// Bounds of one search.
const (
	MostFiles   = 100_000 // looked at by name
	MostDepth   = 40      // directories below each other
	MostBytes   = 1 << 20 // of one file
	MostEntries = 10_000
	mostCommand = 300 // characters that are kept of a command
	mostNested  = 8   // commands inside commands: bash -c "docker exec … sh -c …"
	mostLines   = 100 // of one file that are none of cron's, and are listed
)

// Found is what a search found.
type Found struct {
	Entries []Entry
	Unread  []Unread
	Files   int // that were opened
}

// Runs tells whether the entry runs at all.
func (e Entry) Runs() bool { return e.Off == "" && !e.Wrong }

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
