package scheduled

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Find reads the files and directories, in their order. “-” reads a user's crontab from input, as crontab -l prints it. A directory
// that stands in the way by a link is entered once, and a link that leads out of the paths is named and not followed. What a path that
// was named does not hold is said and not passed over.
func Find(ctx context.Context, paths []string, input io.Reader) (Found, error) {
	f := &finder{ctx: ctx, seen: map[string]bool{}, dirs: map[string]bool{}, dropped: map[string]bool{}, order: map[string]int{}}
	for _, name := range paths {
		f.root(name)
	}
	for _, name := range paths {
		if name == "-" {
			f.place(name)
			text, err := io.ReadAll(io.LimitReader(input, MostBytes+1))
			if err != nil {
				f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: err.Error()})
				continue
			}
			if len(text) > MostBytes {
				f.unread(Unread{File: name, Reason: ReasonLarge})
				continue
			}
			f.found.Files++
			t := table{file: name, first: 1, kind: KindCrontab}
			if namesUsers(string(text)) { // it is that of the system, which somebody piped
				t.kind, t.hasUser = KindSystem, true
			}
			f.addTable(t, string(text), true)
			continue
		}
		f.visit(filepath.Clean(name), 0, true)
	}
	f.readQueue()
	if err := ctx.Err(); err != nil {
		return Found{}, err
	}
	slices.SortStableFunc(f.found.Entries, func(a, b Entry) int { return f.order[a.File] - f.order[b.File] })
	slices.SortStableFunc(f.found.Unread, func(a, b Unread) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	return f.found, nil
}

// finder goes through files.
type finder struct {
	ctx     context.Context
	roots   []string // by their real paths: directories with all that is below
	beside  []string // and directories of files that were named: what lies right in them
	found   Found
	queue   []queued        // files to be read
	seen    map[string]bool // files that were read as schedules, by their real paths
	dirs    map[string]bool // directories that were entered, by theirs
	dropped map[string]bool // parts of units that were read with them
	order   map[string]int  // of files, as they were come upon
	names   int
	jobs    int // that were numbered
	full    bool
}

// queued is a file to be read once all are known: what a Dockerfile says of a crontab must come before that.
type queued struct {
	name  string
	info  fs.FileInfo
	asked bool
}

// root takes in a path that was asked for.
func (f *finder) root(name string) {
	if name == "-" {
		return
	}
	real, err := realPath(name)
	if err != nil { // said when it is visited
		return
	}
	if info, err := os.Stat(real); err == nil && info.IsDir() {
		f.roots = append(f.roots, real)
		return
	}
	f.beside = append(f.beside, filepath.Dir(real))
}

func realPath(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

func (f *finder) place(name string) {
	if _, known := f.order[name]; !known {
		f.order[name] = len(f.order)
	}
}

// follows places what another file led to beside that.
func (f *finder) follows(name, other string) {
	if _, known := f.order[name]; !known {
		f.order[name] = f.order[other]
	}
}

// readQueue reads the files that were come upon, Dockerfiles first.
func (f *finder) readQueue() {
	for _, first := range []bool{true, false} {
		for _, q := range f.queue {
			if isDockerfile(strings.ToLower(filepath.Base(q.name))) == first && !f.full && f.ctx.Err() == nil {
				f.file(q.name, q.info, q.asked)
			}
		}
	}
	for _, q := range f.queue {
		if isDropIn(q.name) && !f.dropped[q.name] && !f.full {
			f.lonely(q.name)
		}
	}
}

func (f *finder) add(entries ...Entry) {
	for _, e := range entries {
		if len(f.found.Entries) >= MostEntries {
			f.stop(e.File)
			return
		}
		if e.Wrong && templated.MatchString(e.When) {
			e.Wrong, e.Templated = false, true
		}
		if e.Runs() && !e.Templated && e.Kind != KindTimer && neverComes(e.When) {
			e.Off = OffNever
		}
		e.Actions, e.Why, e.Under = f.follow(e), mask(e.Why), mask(e.Under)
		f.found.Entries = append(f.found.Entries, e)
	}
}

// addTable adds the lines of a crontab, and names those that are none of cron's; of a text that may be anything else, only beside some
// that are.
func (f *finder) addTable(t table, text string, certain bool) {
	entries, strange := t.entries(text)
	f.add(entries...)
	if certain || len(entries) > 0 {
		f.found.Unread = append(f.found.Unread, strange...)
	}
}

// newJob numbers a job that may have several times.
func (f *finder) newJob() int {
	f.jobs++
	return f.jobs
}

func (f *finder) stop(file string) {
	if !f.full {
		f.full = true
		f.unread(Unread{File: file, Reason: ReasonMany})
	}
}

func (f *finder) unread(u Unread) { f.found.Unread = append(f.found.Unread, u) }

// passed over are directories that hold other people's trees and no schedule of an installation.
var passedOver = []string{".git", ".hg", ".svn", "node_modules"}

func (f *finder) visit(name string, depth int, asked bool) {
	if f.full || f.ctx.Err() != nil {
		return
	}
	if f.names++; f.names > MostFiles {
		f.stop(name)
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		switch missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR); {
		case missing && asked:
			f.unread(Unread{File: name, Reason: ReasonMissing})
		case missing: // a link to nothing is nothing's schedule, unless it stands where one would be read; a unit is read where it lies
			if to, err := os.Readlink(name); err == nil && formOf(name) != nil && !startsUnit(name) {
				f.unread(Unread{File: name, Reason: ReasonNoTarget, Detail: to})
			}
		default:
			f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: reason(err)})
		}
		return
	}
	if !asked && startsUnit(name) && f.inside(name) {
		return // by such a link a unit is started, which is read where it lies
	}
	isSchedule := formOf(name) != nil || isDropIn(name)
	if !asked && !f.inside(name) {
		if real, err := realPath(name); err == nil && (info.IsDir() || isSchedule && info.Mode().IsRegular()) {
			f.unread(Unread{File: name, Reason: ReasonLink, Detail: real})
		}
		return
	}
	switch {
	case info.IsDir():
		f.directory(name, depth)
	case info.Mode().IsRegular():
		if asked || isSchedule {
			f.place(name)
			f.queue = append(f.queue, queued{name, info, asked})
		}
	case asked:
		f.unread(Unread{File: name, Reason: ReasonUnknown})
	}
}

// startsUnit tells whether a link is one by which systemd starts a unit.
func startsUnit(name string) bool {
	dir := filepath.Dir(name)
	return strings.HasSuffix(dir, ".wants") || strings.HasSuffix(dir, ".requires")
}

// reason is what the system says, without the path that is said beside it.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

func (f *finder) directory(name string, depth int) {
	if depth > MostDepth {
		f.unread(Unread{File: name, Reason: ReasonDeep})
		return
	}
	real, err := realPath(name)
	if err == nil && f.dirs[real] {
		return
	}
	var entries []os.DirEntry
	if err == nil {
		f.dirs[real] = true
		entries, err = os.ReadDir(name)
	}
	if err != nil {
		f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: reason(err)})
	}
	for _, entry := range entries { // also those that were read before the directory could not be read further
		if !slices.Contains(passedOver, entry.Name()) {
			f.visit(filepath.Join(name, entry.Name()), depth+1, false)
		}
	}
}

// file reads a file as what its place and name say that it is.
func (f *finder) file(name string, info fs.FileInfo, asked bool) {
	form := formOf(name)
	if form == nil && (!asked || isDropIn(name)) {
		return
	}
	real, err := realPath(name)
	if err != nil {
		f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: reason(err)})
		return
	}
	if f.seen[real] {
		return
	}
	text, ok := f.readNamed(name)
	if !ok {
		return
	}
	f.seen[real] = true
	before := len(f.found.Entries) + len(f.found.Unread)
	if form != nil {
		form(f, name, text, info)
		return
	}
	f.guess(name, text, info)
	if len(f.found.Entries)+len(f.found.Unread) == before {
		f.unread(Unread{File: name, Reason: ReasonUnknown})
	}
}

// form reads a text of one form.
type form func(f *finder, name, text string, info fs.FileInfo)

func crontabOf(kind Kind) form {
	return func(f *finder, name, text string, info fs.FileInfo) {
		t := table{file: name, first: 1, kind: kind, hasUser: kind == KindSystem}
		if dir := filepath.Base(filepath.Dir(name)); dir == "crontabs" || dir == "tabs" {
			t.user = filepath.Base(name)
		}
		entries, strange := t.entries(text)
		f.found.Unread = append(f.found.Unread, strange...)
		if kind == KindSystem && filepath.Base(filepath.Dir(name)) == "cron.d" {
			off, dotted := f.nameOf(name, info)
			for i := range entries {
				entries[i].Off, entries[i].Dotted = off, dotted
			}
		}
		f.add(withoutRunParts(entries)...)
	}
}

// withoutRunParts leaves out lines that only run a directory of scripts, which are looked at for themselves.
func withoutRunParts(entries []Entry) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return runsParts(e) })
}

func formOf(name string) form {
	slashed := filepath.ToSlash(name)
	base, dir := filepath.Base(name), filepath.Base(filepath.Dir(name))
	lower := strings.ToLower(base)
	switch {
	case base == ".placeholder":
		return nil
	case dir == "cron.d", slashed == "/etc/crontab", base == "crontab" && dir == "etc":
		return crontabOf(KindSystem)
	case everyOf(slashed) != "":
		return func(f *finder, name, text string, info fs.FileInfo) {
			off, dotted := f.nameOf(name, info)
			if off == "" && info.Mode()&0o111 == 0 {
				off = OffNotExecutable
			}
			f.add(periodic(name, everyOf(filepath.ToSlash(name)), text, off, dotted))
		}
	case base == "anacrontab":
		return func(f *finder, name, text string, _ fs.FileInfo) {
			entries, strange := anacron(name, text)
			f.add(entries...)
			f.found.Unread = append(f.found.Unread, strange...)
		}
	case dir == "crontabs", dir == "tabs" && strings.Contains(slashed, "cron/tabs"), strings.HasSuffix(filepath.ToSlash(filepath.Dir(name)), "var/spool/cron"):
		return crontabOf(KindCrontab)
	case lower == "crontab", lower == "cronfile", strings.HasSuffix(lower, ".crontab"), strings.HasSuffix(lower, ".cron"), strings.HasPrefix(lower, "crontab.") && !strings.HasSuffix(lower, ".go"),
		strings.HasSuffix(lower, "-crontab"), strings.HasSuffix(lower, "_crontab"), lower == "crontab.txt":
		return crontabText
	case isDockerfile(lower):
		return func(f *finder, name, text string, _ fs.FileInfo) { f.dockerfile(name, text) }
	case strings.HasSuffix(lower, ".timer"):
		return func(f *finder, name, text string, _ fs.FileInfo) { f.timer(name, text) }
	case strings.HasSuffix(lower, ".yml"), strings.HasSuffix(lower, ".yaml"):
		return func(f *finder, name, text string, _ fs.FileInfo) { f.yaml(name, text) }
	case strings.HasPrefix(lower, "jenkinsfile"), strings.HasSuffix(lower, ".jenkinsfile"):
		return func(f *finder, name, text string, _ fs.FileInfo) { f.jenkinsfile(name, text) }
	case strings.HasSuffix(lower, ".sh"), strings.HasSuffix(lower, ".bash"), lower == "entrypoint", lower == "docker-entrypoint":
		return func(f *finder, name, text string, _ fs.FileInfo) {
			if strings.Contains(text, "cron") {
				f.laid(name, text, 1, nil, "")
			}
		}
	case strings.HasSuffix(lower, ".ini"), strings.HasSuffix(lower, ".conf") && strings.Contains(lower, "ofelia"):
		return func(f *finder, name, text string, _ fs.FileInfo) {
			if strings.Contains(text, "[job-") {
				f.ofeliaFile(name, text)
			}
		}
	}
	return nil
}

func isDockerfile(lower string) bool {
	return lower == "dockerfile" || strings.HasPrefix(lower, "dockerfile.") || strings.HasSuffix(lower, ".dockerfile") || lower == "containerfile" || strings.HasPrefix(lower, "containerfile.")
}

// isDropIn tells whether a file is a part of a timer of systemd, which is read with that.
func isDropIn(name string) bool {
	return strings.HasSuffix(filepath.Dir(name), ".timer.d") && strings.HasSuffix(name, ".conf")
}

// crontabText reads a crontab whose place does not say whether its lines name a user: those of a user's crontab do not, and a word that is
// a usual one of the system in each line is one.
func crontabText(f *finder, name, text string, info fs.FileInfo) {
	kind := KindCrontab
	if namesUsers(text) {
		kind = KindSystem
	}
	crontabOf(kind)(f, name, text, info)
}

// namesUsers tells whether the first word of each command is a usual user of the system.
func namesUsers(text string) bool {
	lines, _ := (table{kind: KindCrontab}).entries(text)
	return len(lines) > 0 && !slices.ContainsFunc(lines, func(e Entry) bool {
		first, _, _ := strings.Cut(e.Command, " ")
		return !slices.Contains([]string{"root", "postgres", "www-data", "nobody", "app", "deploy"}, first)
	})
}

// oldCopy is how names end that editors and packages leave behind, which the directories of no cron run.
var oldCopy = regexp.MustCompile(`^\.|(?:~|,|\.(?:rpmsave|rpmorig|rpmnew|swp|dpkg-\w+))$`)

// nameOf tells whether the directories of cron pass over a file because of its name. One with a dot in it is Debian's to pass over, and
// others run it: where nobody knows whose the machine is, that is said.
func (f *finder) nameOf(name string, info fs.FileInfo) (off Off, dotted bool) {
	if oldCopy.MatchString(info.Name()) {
		return OffName, false
	}
	if !strings.Contains(info.Name(), ".") {
		return "", false
	}
	etc := filepath.Dir(filepath.Dir(name))
	has := func(release string) bool {
		_, err := os.Stat(filepath.Join(etc, release))
		return err == nil
	}
	crontab, _ := f.read(filepath.Join(etc, "crontab"))
	switch {
	case has("debian_version"), strings.Contains(crontab, "run-parts --report"):
		return OffName, false
	case slices.ContainsFunc([]string{"redhat-release", "SUSE-brand", "arch-release"}, has):
		return "", false
	}
	return "", true
}

// guess reads a file that somebody named and whose name says nothing.
func (f *finder) guess(name, text string, info fs.FileInfo) {
	if strings.Contains(text, "\nkind:") || strings.HasPrefix(text, "kind:") {
		f.yaml(name, text)
		return
	}
	if strings.HasPrefix(text, "#!") {
		f.laid(name, text, 1, nil, "")
		return
	}
	if lines, _ := (table{}).entries(text); len(lines) > 0 {
		crontabText(f, name, text, info)
	}
}

// readNamed reads a file, and says why it could not be.
func (f *finder) readNamed(name string) (string, bool) {
	text, err := readBounded(name)
	switch {
	case errors.Is(err, errLarge):
		f.unread(Unread{File: name, Reason: ReasonLarge})
	case err != nil:
		f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: reason(err)})
	case isBinary(text):
		f.unread(Unread{File: name, Reason: ReasonBinary})
	default:
		f.found.Files++
		return strings.ReplaceAll(string(text), "\r\n", "\n"), true
	}
	return "", false
}

// read reads a file that another one speaks of, if it is there and in what was asked for.
func (f *finder) read(name string) (string, bool) {
	if !f.inside(name) {
		return "", false
	}
	text, err := readBounded(name)
	if err != nil || isBinary(text) {
		return "", false
	}
	return string(text), true
}

var errLarge = errors.New("larger than is read")

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrInvalid)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, MostBytes+1))
	if err == nil && len(text) > MostBytes {
		err = errLarge
	}
	return text, err
}

// copy reads a crontab that a Dockerfile copies, unless it was read or will be for its own sake.
func (f *finder) copy(file string, line int, from string, kind Kind, every string) {
	name := filepath.Join(filepath.Dir(file), filepath.FromSlash(from))
	real, err := realPath(name)
	if err != nil { // the context of the build may be a directory above
		up := filepath.Join(filepath.Dir(filepath.Dir(file)), filepath.FromSlash(from))
		if real, err = realPath(up); err == nil {
			name = up
		}
	}
	info, stat := os.Stat(name)
	if err != nil || stat != nil {
		f.unread(Unread{File: file, Line: line, Reason: ReasonCopied, Detail: from})
		return
	}
	if info.IsDir() || f.seen[real] {
		return
	}
	if !f.inside(name) {
		f.unread(Unread{File: file, Line: line, Reason: ReasonOutside, Detail: from})
		return
	}
	text, ok := f.readNamed(name)
	if !ok {
		return
	}
	f.seen[real] = true
	f.follows(name, file)
	if every != "" {
		f.add(periodic(name, every, text, "", false))
		return
	}
	f.addTable(table{file: name, first: 1, kind: KindImage, hasUser: kind == KindSystem}, text, true)
}

// follow looks into a script that an entry runs, where it lies in what was asked for: beside the entry, or under the directory that
// stands for the root of the machine. What it runs is then what the entry runs.
func (f *finder) follow(e Entry) []Action {
	actions := slices.Clone(e.Actions)
	if inner := f.script(e); len(inner) > 0 {
		actions = append(actions, inner...)
	}
	for i, a := range actions { // a file of statements is what is in it, and known by its name
		if a.Program != "psql" || a.SQL != "" || a.place == "" {
			continue
		}
		for _, name := range f.candidates(filepath.Dir(e.File), a.place) {
			if text, ok := f.read(name); ok {
				actions[i].SQL = text
				break
			}
		}
	}
	return actions
}

// script is what the first script runs that an entry runs and that can be read.
func (f *finder) script(e Entry) []Action {
	words := strings.Fields(e.Command)
	for _, a := range e.Actions { // from a directory that it goes to before
		if a.place != "" && a.Program != "psql" {
			words = append(words, a.place)
		}
	}
	for _, word := range words {
		if word = strings.Trim(word, `"';`); !strings.Contains(word, "/") && !strings.HasSuffix(word, ".sh") || strings.HasPrefix(word, "-") {
			continue
		}
		for _, name := range f.candidates(filepath.Dir(e.File), word) {
			if text, ok := f.read(name); ok && isShell(text) {
				if inner := readShell(text, nil).actions; len(inner) > 0 {
					return inner
				}
			}
		}
	}
	return nil
}

// candidates are where a script may lie that a line names: each directory above the line's file may be the root of its machine or image.
func (f *finder) candidates(dir, word string) []string {
	base := filepath.Base(word)
	var all []string
	for range MostDepth {
		all = append(all, filepath.Join(dir, word), filepath.Join(dir, base), filepath.Join(dir, "scripts", base), filepath.Join(dir, "bin", base))
		if dir == filepath.Dir(dir) || !f.inside(filepath.Dir(dir)) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return all
}

// inside tells whether a file is there and lies, by its real path, in what was asked for or right beside a file that was: nothing else
// is opened because of what a line says, or a link.
func (f *finder) inside(name string) bool {
	real, err := realPath(name)
	if err != nil {
		return false
	}
	if slices.Contains(f.beside, filepath.Dir(real)) {
		return true
	}
	return slices.ContainsFunc(f.roots, func(root string) bool {
		relative, err := filepath.Rel(root, real)
		return err == nil && filepath.IsLocal(relative)
	})
}

func isShell(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "#!") && (strings.HasSuffix(strings.TrimSpace(strings.Fields(first + " x")[0]), "sh") || strings.Contains(first, "sh"))
}
