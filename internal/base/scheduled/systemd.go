package scheduled

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unit is a file of systemd, as lines.
type unit []setting

type setting struct {
	name, value string
	file        string
	line        int
	why         string // what stands right above
}

// readUnit reads a file of systemd, and what stands at its top.
func readUnit(file, text string) (u unit, top string) {
	lines := strings.Split(text, "\n")
	var said []string
	begun := false // a section: what is said from there on is said of a line
	for i := 0; i < len(lines); i++ {
		at, line := i+1, strings.TrimSpace(lines[i])
		if line == "" {
			if !begun && top == "" {
				top = strings.TrimSpace(strings.Join(said, " "))
			}
			said = nil
			continue
		}
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			said = append(said, explains(strings.TrimLeft(line, "#; ")))
			continue
		}
		if strings.HasPrefix(line, "[") {
			if !begun && top == "" {
				top = strings.TrimSpace(strings.Join(said, " "))
			}
			begun, said = true, nil
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
		}
		if name, value, is := strings.Cut(line, "="); is {
			u = append(u, setting{strings.TrimSpace(name), strings.TrimSpace(value), file, at, strings.TrimSpace(strings.Join(said, " "))})
		}
		said = nil
	}
	return u, top
}

// last is what counts of a setting that may stand several times.
func (u unit) last(name string) (value string) {
	for _, s := range u {
		if s.name == name {
			value = s.value
		}
	}
	return value
}

// list is a setting that adds to itself, and begins anew where it is empty. One of several names empties all of them.
func (u unit) list(names ...string) (all unit) {
	for _, s := range u {
		switch {
		case !slices.Contains(names, s.name):
		case s.value == "":
			all = nil
		default:
			all = append(all, s)
		}
	}
	return all
}

// unitPlaces are where systemd looks for a unit, below the root of its machine; the first has the last word.
var unitPlaces = []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"}

var unitPlace = regexp.MustCompile(`^(.*?)(?:etc|run|usr/local/lib|usr/lib|lib)/systemd/(system|user)$`)

// unitDirs are the directories of one machine in which the units of a directory may have other parts: the directory alone, where it is
// none of systemd's.
func unitDirs(dir string) []string {
	found := unitPlace.FindStringSubmatch(filepath.ToSlash(dir))
	if found == nil {
		return []string{dir}
	}
	dirs := make([]string, len(unitPlaces))
	for i, place := range unitPlaces {
		dirs[i] = filepath.FromSlash(found[1] + place + "/systemd/" + found[2])
	}
	return dirs
}

// dropIns are files beside a unit that change it, in the order of their names; of two of one name the one that is looked for first.
func (f *finder) dropIns(dirs []string, name string) (u unit) {
	files := map[string]string{}
	for _, dir := range slices.Backward(dirs) {
		names, err := os.ReadDir(filepath.Join(dir, name+".d"))
		if err != nil { // there are none, or what stands in the way is said when the directory itself is visited
			continue
		}
		for _, one := range names {
			if strings.HasSuffix(one.Name(), ".conf") {
				files[one.Name()] = filepath.Join(dir, name+".d", one.Name())
			}
		}
	}
	for _, base := range slices.Sorted(maps.Keys(files)) {
		if text, ok := f.read(files[base]); ok {
			f.found.Files++
			f.dropped[files[base]] = true
			more, _ := readUnit(files[base], text)
			u = append(u, more...)
		}
	}
	return u
}

// timer reads a timer of systemd with what changes it, and the service that it starts. What the two say of themselves explains them.
func (f *finder) timer(file, text string) {
	dir, base := filepath.Dir(file), filepath.Base(file)
	if info, err := os.Lstat(file); err == nil && info.Mode()&os.ModeSymlink != 0 { // its parts are where it lies itself
		if real, err := realPath(file); err == nil {
			dir, base = filepath.Dir(real), filepath.Base(real)
		}
	}
	dirs := unitDirs(dir)
	u, top := readUnit(file, text)
	u = append(u, f.dropIns(dirs, base)...)
	f.times(file, base, dirs, u, top, stopped(dirs, dir, base, u))
}

// lonely reads a part of a timer whose own file is not in what was asked for.
func (f *finder) lonely(file string) {
	text, ok := f.read(file)
	if !ok {
		return
	}
	f.found.Files++
	dir := filepath.Dir(file)
	u, top := readUnit(file, text)
	f.times(file, strings.TrimSuffix(filepath.Base(dir), ".d"), unitDirs(filepath.Dir(dir)), u, top, "")
}

var timerSettings = []string{"OnCalendar", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnActiveSec"}

// times adds an entry for each time of a timer.
func (f *finder) times(file, name string, dirs []string, u unit, top string, off Off) {
	times := u.list(timerSettings...)
	if len(times) == 0 && len(u) > 0 && slices.ContainsFunc(u, func(s setting) bool { return slices.Contains(timerSettings, s.name) }) {
		times, off = unit{{name: "OnCalendar", file: file, line: u[len(u)-1].line}}, OffNever // all of them were taken back
	}
	if len(times) == 0 {
		return
	}
	service := u.last("Unit")
	if service == "" {
		service = strings.TrimSuffix(name, ".timer") + ".service"
	}
	e := Entry{Kind: KindTimer, File: file, Name: service, Why: u.last("Description"), Off: off, job: f.newJob()}
	if e.Why == "" {
		e.Why = top
	}
	f.service(&e, dirs, service)
	for _, s := range times {
		one := e
		one.File, one.Line, one.When = s.file, s.line, s.value
		if s.name != "OnCalendar" || s.value == "" {
			one.When = s.name + "=" + s.value
		}
		if one.Why == "" {
			one.Why = s.why
		}
		if one.Off == "" && s.name == "OnCalendar" && noSuchDay(s.value) {
			one.Off = OffNever
		}
		f.follows(one.File, file)
		f.add(one)
	}
}

// stopped tells whether a machine does not start a timer: another file of its name has the last word, or it is not among those that are
// started. In a folder where nothing is said of starting any, it is meant to be.
func stopped(dirs []string, dir, base string, u unit) Off {
	own, err := os.Stat(filepath.Join(dir, base))
	if err != nil {
		return ""
	}
	for _, before := range dirs {
		if before == dir {
			break
		}
		name := filepath.Join(before, base)
		if to, err := os.Readlink(name); err == nil && to == os.DevNull {
			return OffMasked
		}
		if info, err := os.Stat(name); err == nil && !os.SameFile(info, own) {
			return OffReplaced
		}
	}
	if u.last("WantedBy") == "" && u.last("RequiredBy") == "" { // something else starts it
		return ""
	}
	if filepath.Base(dir) == "user" { // each user says at home which of those are started
		return ""
	}
	told := false
	for _, d := range dirs {
		wants, started := wanted(d, base)
		if started {
			return ""
		}
		told = told || wants
	}
	if told {
		return OffDisabled
	}
	return ""
}

// wanted looks among the links by which a machine starts its units: whether there are any, and one to the timer or made of it.
func wanted(dir, base string) (some, started bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	template, _, isTemplate := strings.Cut(base, "@.")
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".wants") && !strings.HasSuffix(entry.Name(), ".requires") {
			continue
		}
		links, err := os.ReadDir(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		some = some || len(links) > 0
		for _, link := range links {
			if link.Name() == base || isTemplate && strings.HasPrefix(link.Name(), template+"@") && strings.HasSuffix(link.Name(), ".timer") {
				return true, true
			}
		}
	}
	return some, false
}

var monthAndDay = regexp.MustCompile(`(?:^|[\s-])(\d{1,2})-(\d{1,2})(?:\s|$)`)

// noSuchDay tells whether an OnCalendar names one day of one month that no year has.
func noSuchDay(calendar string) bool {
	found := monthAndDay.FindStringSubmatch(calendar)
	if found == nil {
		return false
	}
	month, _ := strconv.Atoi(found[1]) // two digits
	day, _ := strconv.Atoi(found[2])
	return month >= 1 && month <= 12 && day > []int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// service reads what the service of a timer runs, with what changes it.
func (f *finder) service(e *Entry, dirs []string, name string) {
	names := []string{name}
	if template, instance, is := strings.Cut(name, "@"); is && instance != ".service" { // backup@school.service is made of backup@.service
		names = append(names, template+"@.service")
	}
	var u unit
	var top string
	found := false
	for _, dir := range dirs {
		for _, one := range names {
			file := filepath.Join(dir, one)
			if text, ok := f.read(file); ok && !found {
				u, top = readUnit(file, text)
				found = true
			}
		}
	}
	if !found {
		f.unread(Unread{File: e.File, Line: 1, Reason: ReasonService, Detail: name})
		return
	}
	for _, one := range slices.Backward(names) {
		u = append(u, f.dropIns(dirs, one)...)
	}
	if e.Why == "" {
		e.Why = u.last("Description")
	}
	if e.Why == "" {
		e.Why = top
	}
	e.User = u.last("User")
	env := map[string]string{}
	for _, s := range u.list("Environment") {
		for _, pair := range keysAndValues(s.value) {
			env[pair[0]] = pair[1]
		}
	}
	var commands []string
	for _, s := range u.list("ExecStart") { // what comes before and after it prepares and tidies up
		commands = append(commands, strings.ReplaceAll(strings.TrimLeft(s.value, "-+!@:"), "%%", "%"))
	}
	e.run(strings.Join(commands, "\n"), env)
}
