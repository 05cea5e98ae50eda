package scheduled

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dockerfile reads what a Dockerfile lays into an image that runs by the clock there: lines that it writes into crontabs, crontabs that it
// copies, labels for a scheduler beside it.
func (f *finder) dockerfile(file, text string) {
	env := map[string]string{}
	var remarks []string
	for _, one := range instructions(text) {
		switch one.name {
		case "": // what is said above an empty line is said of something else
		case "#":
			remarks = append(remarks, explains(one.rest))
			continue
		case "ENV", "ARG":
			for _, pair := range keysAndValues(one.rest) {
				env[pair[0]] = pair[1]
			}
		case "RUN":
			f.laid(file, one.rest, one.line, env, strings.TrimSpace(strings.Join(remarks, " ")))
		case "COPY", "ADD":
			f.copied(file, one, env)
		case "LABEL":
			f.labels(file, one.line, keysAndValues(one.rest), "", strings.TrimSpace(strings.Join(remarks, " ")))
		}
		remarks = nil
	}
}

// instruction is one of a Dockerfile, with its lines as they are.
type instruction struct {
	name string
	rest string
	line int
	body string // of a heredoc
}

var (
	instructed = regexp.MustCompile(`^\s*([A-Za-z]+)\s+(.*)$`)
	option     = regexp.MustCompile(`^--[a-z]+(=\S+)?\s+`)
	hereDoc    = regexp.MustCompile(`<<-?\s*["']?([A-Za-z_][A-Za-z0-9_]*)["']?`)
)

func instructions(text string) []instruction {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	var all []instruction
	for i := 0; i < len(lines); i++ {
		trimmed := strings.TrimSpace(lines[i])
		if strings.HasPrefix(trimmed, "#") {
			all = append(all, instruction{name: "#", rest: trimmed[1:], line: i + 1})
			continue
		}
		found := instructed.FindStringSubmatch(lines[i])
		if found == nil {
			all = append(all, instruction{line: i + 1})
			continue
		}
		one := instruction{name: strings.ToUpper(found[1]), rest: found[2], line: i + 1}
		for strings.HasSuffix(strings.TrimRight(lines[i], " \t"), `\`) && i+1 < len(lines) {
			i++
			next := lines[i]
			if strings.HasPrefix(strings.TrimSpace(next), "#") { // a comment inside an instruction is left out
				next = `\`
				lines[i] = `\`
			}
			one.rest += "\n" + next
		}
		for option.MatchString(one.rest) {
			one.rest = option.ReplaceAllString(one.rest, "")
		}
		if here := hereDoc.FindStringSubmatch(one.rest); here != nil && (one.name == "RUN" || one.name == "COPY" || one.name == "ADD") {
			var body []string
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != here[1]; i++ {
				body = append(body, lines[i])
			}
			one.body = strings.Join(body, "\n")
			if one.name == "RUN" {
				if strings.HasPrefix(strings.TrimSpace(one.rest), "<<") { // the script itself
					one.rest = "\n" + one.body
				} else { // the input of a command
					one.rest += "\n" + one.body + "\n" + here[1] + "\n"
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// keysAndValues reads “A=b "C"='d e'” and the old form “A b”.
func keysAndValues(rest string) [][2]string {
	read := &shell{env: map[string]string{}}
	var pairs [][2]string
	for _, word := range splitWords(read, rest) {
		name, value, is := strings.Cut(word, "=")
		if !is {
			if len(pairs) == 0 {
				name, value, _ = strings.Cut(strings.TrimSpace(rest), " ")
				return [][2]string{{name, strings.Trim(strings.TrimSpace(value), `"'`)}}
			}
			continue
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs
}

func splitWords(s *shell, text string) []string {
	var all []string
	s2 := &shell{env: s.env}
	s2.read("usher_words " + strings.ReplaceAll(text, "\\\n", " "))
	for _, a := range s2.actions {
		if a.Program == "usher_words" {
			all = a.Words
		}
	}
	return all
}

// laid reads a script that may write crontabs: of a Dockerfile, or the entrypoint of an image.
func (f *finder) laid(file, script string, line int, env map[string]string, why string) {
	if strings.HasPrefix(strings.TrimSpace(script), "[") {
		var args []string
		if json.Unmarshal([]byte(script), &args) == nil && len(args) > 2 && args[1] == "-c" {
			script = args[2]
		}
	}
	for _, w := range readShell(script, env).writes {
		kind, every, is := place(w.path)
		if !is {
			continue
		}
		if every != "" {
			e := periodic(file, every, w.text, "", false)
			e.Line, e.Kind = line+w.line-1, KindImage
			if e.Why == "" {
				e.Why = why
			}
			f.add(e)
			continue
		}
		lines := table{file: file, first: line + w.line - 1, kind: KindImage, hasUser: kind == KindSystem, env: env, why: why, flat: w.flat}
		f.addTable(lines, w.text, isCrontab(w.path))
	}
}

// place tells what a path is to cron.
func place(name string) (kind Kind, every string, is bool) {
	dir, base := path.Base(path.Dir(name)), path.Base(name)
	switch {
	case name == "crontab":
		return KindCrontab, "", true
	case name == "/etc/crontab", dir == "cron.d", base == "crontab" && path.Dir(name) == "/etc":
		return KindSystem, "", true
	case dir == "crontabs", path.Dir(name) == "/var/spool/cron", dir == "tabs" && strings.Contains(name, "cron"):
		return KindCrontab, "", true
	case everyOf(name) != "":
		return KindPeriodic, everyOf(name), true
	case strings.Contains(strings.ToLower(base), "cron"):
		return KindCrontab, "", true
	}
	return "", "", false
}

// isCrontab tells whether a path is one that cron reads, and not only one that is called like that.
func isCrontab(name string) bool {
	dir, base := path.Base(path.Dir(name)), path.Base(name)
	return name == "crontab" || dir == "cron.d" || base == "crontab" && path.Dir(name) == "/etc" || dir == "crontabs" || path.Dir(name) == "/var/spool/cron"
}

// everyOf is how often the scripts of a file's directory are run; empty: it is no such directory.
func everyOf(name string) string {
	dir := path.Dir(name)
	every := strings.TrimPrefix(path.Base(dir), "cron.")
	if every == path.Base(dir) && path.Base(path.Dir(dir)) != "periodic" {
		return ""
	}
	switch every {
	case "hourly", "daily", "weekly", "monthly", "yearly":
		return "@" + every
	case "15min":
		return "*/15 * * * *"
	}
	return ""
}

// copied reads a crontab that a Dockerfile copies into the image.
func (f *finder) copied(file string, one instruction, env map[string]string) {
	rest := one.rest
	if one.body != "" {
		rest = hereDoc.ReplaceAllString(rest, "")
	}
	args := splitWords(&shell{env: env}, rest)
	if strings.HasPrefix(strings.TrimSpace(rest), "[") {
		_ = json.Unmarshal([]byte(rest), &args) // else they stay as they are
	}
	if len(args) == 0 {
		return
	}
	to := args[len(args)-1]
	if one.body != "" {
		if kind, _, is := place(to); is {
			lines := table{file: file, first: one.line + 1, kind: KindImage, hasUser: kind == KindSystem, env: env}
			f.addTable(lines, one.body, isCrontab(to))
		}
		return
	}
	for _, from := range args[:len(args)-1] {
		target := to
		if strings.HasSuffix(to, "/") {
			target += path.Base(from)
		}
		kind, every, is := place(target)
		if !is || strings.Contains(path.Base(from), ".sh") && every == "" || strings.ContainsAny(from, "*$") || strings.Contains(rest, "--from=") {
			continue
		}
		f.copy(file, one.line, from, kind, every)
	}
}

var ofelia = regexp.MustCompile(`^(?:ofelia|chadburn)\.(job-[a-z-]+)\.([^.]+)\.([a-z-]+)$`)

// labels reads what a scheduler beside the containers finds on them.
func (f *finder) labels(file string, line int, pairs [][2]string, service, why string) {
	jobs := map[string]*Entry{}
	commands := map[string]string{}
	var names []string
	for _, pair := range pairs {
		if pair[0] == "swarm.cronjob.schedule" {
			f.add(Entry{Kind: KindLabel, File: file, Line: line, When: pair[1], Wrong: !understandsSeconds(pair[1]), Name: service, Why: why})
		}
		found := ofelia.FindStringSubmatch(pair[0])
		if found == nil {
			continue
		}
		job := found[2]
		if jobs[job] == nil {
			jobs[job] = &Entry{Kind: KindLabel, File: file, Line: line, Name: job, Why: why}
			names = append(names, job)
		}
		switch found[3] {
		case "schedule":
			jobs[job].When, jobs[job].Wrong = fiveOf(pair[1])
		case "command":
			commands[job] = pair[1]
		}
	}
	for _, job := range names {
		e := jobs[job]
		if e.When == "" {
			continue
		}
		read := &shell{env: map[string]string{}, host: service}
		read.read(commands[job])
		e.Actions, e.Command = keepMain(read.actions), shorten(commands[job])
		f.add(*e)
	}
}

func understandsSeconds(when string) bool {
	_, err := withSeconds.Parse(when)
	return err == nil
}

// fiveOf takes the seconds off a schedule that has them as nought.
func fiveOf(when string) (five string, wrong bool) {
	when = strings.TrimSpace(when)
	if parts := strings.Fields(when); len(parts) == 6 && parts[0] == "0" && understandsSeconds(when) {
		return strings.Join(parts[1:], " "), false
	}
	return when, !understands(when) && !understandsSeconds(when)
}

var (
	iniSection = regexp.MustCompile(`^\s*\[(job-[a-z-]+)\s+"([^"]+)"\]`)
	iniSetting = regexp.MustCompile(`^\s*([a-z-]+)\s*=\s*(.*?)\s*$`)
)

// ofeliaFile reads the configuration of such a scheduler.
func (f *finder) ofeliaFile(file, text string) {
	var pairs [][2]string
	service, job, at := "", "", 0
	flush := func() { f.labels(file, at, pairs, service, ""); pairs, service = nil, "" }
	for i, line := range strings.Split(text, "\n") {
		if found := iniSection.FindStringSubmatch(line); found != nil {
			flush()
			job, at = found[1]+"."+strings.ReplaceAll(found[2], ".", "-"), i+1
		} else if found := iniSetting.FindStringSubmatch(line); found != nil && job != "" {
			if found[1] == "container" {
				service = found[2]
			}
			pairs = append(pairs, [2]string{"ofelia." + job + "." + found[1], found[2]})
		}
	}
	flush()
}

var (
	jenkinsCron = regexp.MustCompile(`(?s)\b(?:parameterizedC|c)ron\s*\(\s*(?:'''|"""|['"])(.*?)(?:'''|"""|['"])\s*\)`)
	jenkinsStep = regexp.MustCompile(`(?s)\bsh\s*\(?\s*(?:script:\s*)?(?:'''(.*?)'''|"""(.*?)"""|'([^'\n]*)'|"([^"\n]*)")`)
)

// jenkinsfile reads the triggers of a pipeline, and all of its steps.
func (f *finder) jenkinsfile(file, text string) {
	var steps []string
	for _, found := range jenkinsStep.FindAllStringSubmatch(text, -1) {
		steps = append(steps, strings.TrimSpace(strings.Join(found[1:], "")))
	}
	script, job := strings.Join(steps, "\n"), f.newJob()
	for _, at := range jenkinsCron.FindAllStringSubmatchIndex(text, -1) {
		first := 1 + strings.Count(text[:at[2]], "\n")
		zone := ""
		for i, line := range strings.Split(text[at[2]:at[3]], "\n") {
			line = strings.TrimSpace(line)
			if name, is := strings.CutPrefix(line, "TZ="); is {
				zone = name
				continue
			}
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			when, _, _ := strings.Cut(line, "%") // parameters
			when = strings.TrimSpace(when)
			e := Entry{Kind: KindBuild, File: file, Line: first + i, When: when, Wrong: !understands(when), Zone: zone, Why: remarkAbove(text, first+i), job: job}
			e.run(script, nil)
			f.add(e)
		}
	}
}

// remarkAbove is the comment on the lines right above one, in a language whose comments begin with // or #, or a * inside one.
func remarkAbove(text string, line int) string {
	lines := strings.Split(text, "\n")
	var said []string
	for i := line - 2; i >= 0; i-- {
		trimmed := strings.TrimSpace(lines[i])
		if strings.HasPrefix(trimmed, "triggers") || strings.HasPrefix(trimmed, "cron(") {
			continue
		}
		if !strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "#!") {
			break
		}
		said = append(said, strings.TrimSpace(strings.TrimLeft(trimmed, "/# ")))
	}
	slices.Reverse(said)
	return strings.TrimSpace(strings.Join(said, " "))
}
