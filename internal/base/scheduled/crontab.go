package scheduled

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// fields reads what cron takes: five fields or a word with an @.
var fields = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Hash).WithHashKey("x").WithMaxSearchYears(mostYears)

// withSeconds is how some schedulers in containers and clusters write it.
var withSeconds = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// understands tells whether a schedule is one of cron's.
func understands(when string) bool {
	if when == "@reboot" || when == "@midnight" || when == "@annually" {
		return true
	}
	_, err := fields.Parse(plain(when))
	return err == nil
}

var (
	longStep = regexp.MustCompile(`^\*/(\d+)$`)
	anyOf    = regexp.MustCompile(`(\d*)~\d*`)
)

// plain writes for the parser what crons take and it does not: a step beyond the end, which is the first value, and a value that cron
// chooses by chance.
func plain(when string) string {
	parts := strings.Fields(when)
	if len(parts) != 5 {
		return when
	}
	for i, most := range []int{59, 23, 31, 12, 7} {
		if found := longStep.FindStringSubmatch(parts[i]); found != nil {
			if step, err := strconv.Atoi(found[1]); err == nil && step > most {
				parts[i] = []string{"0", "0", "1", "1", "0"}[i]
			}
		}
		parts[i] = anyOf.ReplaceAllStringFunc(parts[i], func(one string) string {
			if from, _, _ := strings.Cut(one, "~"); from != "" {
				return from
			}
			return []string{"0", "0", "1", "1", "0"}[i]
		})
	}
	return strings.Join(parts, " ")
}

// mostYears is after how many the days of the week, and of leap years, come round as they were.
const mostYears = 40

// neverComes tells whether cron understands a schedule that no day is like.
func neverComes(when string) bool {
	if strings.HasPrefix(when, "@") {
		return false
	}
	// Where a day of the month and one of the week are given, cron runs on either; the parser reads both as one.
	either := []string{plain(when)}
	if parts := strings.Fields(either[0]); len(parts) == 5 && strings.IndexAny(parts[2], "*?") != 0 && strings.IndexAny(parts[4], "*?") != 0 {
		ofMonth, ofWeek := slices.Clone(parts), slices.Clone(parts)
		ofMonth[4], ofWeek[2] = "*", "*"
		either = []string{strings.Join(ofMonth, " "), strings.Join(ofWeek, " ")}
	}
	for _, one := range either {
		schedule, err := fields.Parse(one)
		if err != nil || !schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			return false
		}
	}
	return true
}

// templated finds what a template, or a variable that nothing sets, would put there.
var templated = regexp.MustCompile(`\{\{|\$\{|\$[A-Za-z_(]|<%`)

var (
	assignment = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$`)
	byVariable = regexp.MustCompile(`^\s*(\$\{?[A-Za-z_][A-Za-z0-9_]*[^\s}]*\}?|\{\{[^}]*\}\})\s+(.+)$`)
	fiveFields = regexp.MustCompile(`^\s*((?:[-0-9*,/a-zA-Z~?#LWH()]+\s+){4}[-0-9*,/a-zA-Z~?#LWH()]+)\s+(.+)$`)
	atWord     = regexp.MustCompile(`^\s*(@[a-z]+)\s+(.+)$`)
	asUserWord = regexp.MustCompile(`^(\S+)\s+(.+)$`)
	looksCron  = regexp.MustCompile(`^[-0-9*,/~]+$`)
	legal      = regexp.MustCompile(`(?i)\bspdx\b|\bcopyright\b|\blicen[cs]ed? (?:under|as)\b`)
	managed    = regexp.MustCompile(`(?i)\bdo not (?:edit|modify|change)\b|\bdon't edit\b|\b(?:managed|generated|installed|maintained) by\b`)
	drawing    = regexp.MustCompile(`^[\s#|.*─│┌└├┬┴┼—\-+(]*(?:$|minute|hour|day|month|m h|min )`)
)

// table is a text with lines of cron.
type table struct {
	file    string
	first   int  // the line at which it begins
	flat    bool // all of it stands on that line
	kind    Kind //
	hasUser bool
	user    string
	env     map[string]string
	why     string // of all of it, where nothing stands at a line
}

// entries reads the lines of a crontab, and lists those that are none of cron's.
func (t table) entries(text string) (all []Entry, strange []Unread) {
	env := maps.Clone(t.env)
	if env == nil {
		env = map[string]string{}
	}
	var above headed
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			above = headed{}
			continue
		}
		if remark, is := strings.CutPrefix(trimmed, "#"); is {
			above.remark(remark)
			continue
		}
		if found := assignment.FindStringSubmatch(line); found != nil {
			env[found[1]] = strings.Trim(strings.TrimSpace(found[2]), `"'`)
			continue
		}
		entry, wrong := t.entry(line, env)
		if entry.Line = t.first + i; t.flat {
			entry.Line = t.first
		}
		if wrong != "" {
			strange = withLine(strange, Unread{File: t.file, Line: entry.Line, Reason: wrong, Detail: shorten(line)})
			continue
		}
		if above.explain(&entry); entry.Why == "" {
			entry.Why = t.why
		}
		all = append(all, entry)
	}
	return all, strange
}

// headed is a block of lines under a comment, which explains the first of them, and those below that run the same program.
type headed struct {
	remarks []string
	first   *Entry // under them; a comment that follows begins anew
}

func (h *headed) remark(remark string) {
	if h.first != nil {
		*h = headed{}
	}
	if drawing.MatchString(strings.ToLower(strings.TrimSpace(remark))) { // what stands above it is of the system's own
		h.remarks = nil
	} else if remark = explains(remark); remark != "" {
		h.remarks = append(h.remarks, remark)
	}
}

func (h *headed) explain(e *Entry) {
	text := strings.Join(h.remarks, " ")
	switch {
	case h.first == nil:
		own := *e
		h.first = &own
	case !slices.ContainsFunc(e.Actions, func(a Action) bool {
		return slices.ContainsFunc(h.first.Actions, func(b Action) bool { return a.Program == b.Program })
	}):
		e.Under = text
		return
	}
	if e.Why == "" {
		e.Why = text
	}
}

// withLine adds a line that is none of cron's, or says once that there are more than are listed.
func withLine(strange []Unread, one Unread) []Unread {
	if len(strange) == mostLines {
		one.Reason, one.Detail = ReasonLines, ""
	}
	if len(strange) > mostLines {
		return strange
	}
	return append(strange, one)
}

// explains leaves of a comment what says something: a line that was taken out does not, nor does the drawing of the five fields.
func explains(remark string) string {
	remark = strings.TrimSpace(remark)
	if found := fiveFields.FindStringSubmatch(remark); found != nil && understands(strings.Join(strings.Fields(found[1]), " ")) {
		return ""
	}
	if atWord.MatchString(remark) || managed.MatchString(remark) || legal.MatchString(remark) || drawing.MatchString(strings.ToLower(remark)) || assignment.MatchString(remark) {
		return ""
	}
	return remark
}

// entry reads one line, or says why it is none of cron's.
func (t table) entry(line string, env map[string]string) (Entry, Reason) {
	var when, rest string
	if found := fiveFields.FindStringSubmatch(line); found != nil {
		when, rest = strings.Join(strings.Fields(found[1]), " "), found[2]
		if first, _, _ := strings.Cut(when, " "); !looksCron.MatchString(first) && !understands(when) { // a sentence
			return Entry{}, ReasonLineFields
		}
	} else if found := atWord.FindStringSubmatch(line); found != nil {
		when, rest = found[1], found[2]
	} else if found := byVariable.FindStringSubmatch(line); found != nil {
		when, rest = found[1], found[2]
	} else {
		return Entry{}, ReasonLineFields
	}
	e := Entry{Kind: t.kind, File: t.file, When: when, Wrong: !understands(when), User: t.user, line: rest}
	for _, zone := range []string{env["CRON_TZ"], env["TZ"]} {
		if e.Zone == "" {
			e.Zone = zone
		}
	}
	if t.hasUser {
		found := asUserWord.FindStringSubmatch(rest)
		if found == nil {
			return Entry{}, ReasonLineUser
		}
		e.User, rest = found[1], found[2]
	}
	e.run(beforePercent(rest), env)
	return e, ""
}

// beforePercent is what cron runs: behind a % that has no backslash is the input, with % for the ends of lines.
func beforePercent(command string) string {
	var b strings.Builder
	for i := 0; i < len(command); i++ {
		switch {
		case command[i] == '\\' && i+1 < len(command) && command[i+1] == '%':
			i++
			b.WriteByte('%')
		case command[i] == '%':
			input := strings.ReplaceAll(command[i+1:], "%", "\n")
			return b.String() + " <<'USHER_INPUT'\n" + input + "\nUSHER_INPUT\n"
		default:
			b.WriteByte(command[i])
		}
	}
	return b.String()
}

// run says what the entry runs.
func (e *Entry) run(command string, env map[string]string) {
	read := readShell(command, env)
	e.Actions = read.actions
	shown, _, _ := strings.Cut(command, " <<'USHER_INPUT'")
	if e.Why == "" && !strings.Contains(shown, "\n") { // behind one line of many it is about that line
		e.Why = explains(read.remark)
	}
	if e.Command = shorten(shown); e.Off == "" {
		e.Off = stepsAside(shown)
	}
}

// anacron reads anacrontab: days, delay, name, command.
func anacron(file, text string) (all []Entry, strange []Unread) {
	env := map[string]string{}
	var above headed
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			above = headed{}
			continue
		}
		if remark, is := strings.CutPrefix(trimmed, "#"); is {
			above.remark(remark)
			continue
		}
		if found := assignment.FindStringSubmatch(line); found != nil {
			env[found[1]] = found[2]
			continue
		}
		parts := strings.Fields(trimmed)
		if len(parts) < 4 {
			strange = withLine(strange, Unread{File: file, Line: i + 1, Reason: ReasonLineAnacron, Detail: shorten(line)})
			continue
		}
		when := parts[0]
		switch when {
		case "1":
			when = "@daily"
		case "7":
			when = "@weekly"
		case "30", "31":
			when = "@monthly"
		default:
			if _, err := strconv.Atoi(when); err == nil {
				when = "@every " + when + "d"
			}
		}
		e := Entry{Kind: KindAnacrontab, File: file, Line: i + 1, When: when, Name: parts[2]}
		e.run(strings.Join(parts[3:], " "), env)
		if above.explain(&e); runsParts(e) { // the directories are read themselves
			continue
		}
		all = append(all, e)
	}
	return all, strange
}

// runsParts tells whether an entry only runs a directory of scripts that is one of the usual, which is looked at for itself.
func runsParts(e Entry) bool {
	if len(e.Actions) != 1 || e.Actions[0].Program != "run-parts" || len(e.Actions[0].Words) == 0 {
		return false
	}
	words := e.Actions[0].Words
	return everyOf(path.Join(words[len(words)-1], "x")) != ""
}

// periodic reads a script that a directory runs, as cron.daily does.
func periodic(file, every, text string, off Off, dotted bool) Entry {
	e := Entry{Kind: KindPeriodic, File: file, Line: 1, When: every, Off: off, Dotted: dotted, Why: opening(text)}
	read := readShell(text, nil)
	e.Actions = read.actions
	var first string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "set ") {
			first += line + "; "
		}
	}
	if e.Command = shorten(strings.TrimSuffix(first, "; ")); e.Off == "" {
		e.Off = stepsAside(first)
	}
	return e
}

// opening is the comment at the top of a script.
func opening(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		remark, is := strings.CutPrefix(line, "#")
		switch {
		case strings.HasPrefix(line, "#!"), line == "" && len(said) == 0:
			continue
		case !is:
			return strings.TrimSpace(strings.Join(said, " "))
		}
		said = append(said, strings.TrimSpace(remark))
	}
	return strings.TrimSpace(strings.Join(said, " "))
}

func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 }
