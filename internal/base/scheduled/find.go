package scheduled

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find reads the files and directories, in their order. “-” reads a user's crontab from input, as crontab -l prints it. A directory
// that stands in the way by a link is entered once. What a path that was named does not hold is said and not passed over.
func Find(ctx context.Context, paths []string, input io.Reader) (Found, error) {
	f := &finder{ctx: ctx, roots: paths, seen: map[string]bool{}, dirs: map[string]bool{}}
	for _, name := range paths {
		if name == "-" {
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
			f.add(table{file: name, first: 1, kind: KindCrontab}.entries(string(text))...)
			continue
		}
		f.visit(filepath.Clean(name), 0, true)
	}
	if err := ctx.Err(); err != nil {
		return Found{}, err
	}
	slices.SortStableFunc(f.found.Unread, func(a, b Unread) int { return strings.Compare(a.File, b.File) })
	return f.found, nil
}

// finder goes through files.
type finder struct {
	ctx   context.Context
	roots []string
	found Found
	seen  map[string]bool // files that were read as schedules, by their real paths
	dirs  map[string]bool // directories that were entered, by theirs
	names int
	jobs  int // that were numbered
	full  bool
}

func (f *finder) add(entries ...Entry) {
	for _, e := range entries {
		if len(f.found.Entries) >= MostEntries {
			f.stop(e.File)
			return
		}
		e.Actions, e.Why = f.follow(e), mask(e.Why)
		f.found.Entries = append(f.found.Entries, e)
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
		// A link to nothing is nothing's schedule, unless somebody named it.
		if !asked && errors.Is(err, fs.ErrNotExist) {
			return
		}
		f.unread(Unread{File: name, Reason: ReasonUnreadable, Detail: reason(err)})
		return
	}
	switch {
	case info.IsDir():
		f.directory(name, depth)
	case info.Mode().IsRegular():
		f.file(name, info, asked)
	case asked:
		f.unread(Unread{File: name, Reason: ReasonUnknown})
	}
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
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
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
	if form == nil && !asked {
		return
	}
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
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
		entries := t.entries(text)
		for i := range entries {
			if kind == KindSystem && filepath.Base(filepath.Dir(name)) == "cron.d" && strings.Contains(info.Name(), ".") {
				entries[i].Off = OffName
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
			f.add(periodic(name, everyOf(filepath.ToSlash(name)), text, offOf(info)))
		}
	case base == "anacrontab":
		return func(f *finder, name, text string, _ fs.FileInfo) { f.add(anacron(name, text)...) }
	case dir == "crontabs", dir == "tabs" && strings.Contains(slashed, "cron/tabs"), strings.HasSuffix(filepath.ToSlash(filepath.Dir(name)), "var/spool/cron"):
		return crontabOf(KindCrontab)
	case lower == "crontab", lower == "cronfile", strings.HasSuffix(lower, ".crontab"), strings.HasSuffix(lower, ".cron"), strings.HasPrefix(lower, "crontab.") && !strings.HasSuffix(lower, ".go"),
		strings.HasSuffix(lower, "-crontab"), strings.HasSuffix(lower, "_crontab"), lower == "crontab.txt":
		return crontabText
	case lower == "dockerfile", strings.HasPrefix(lower, "dockerfile."), strings.HasSuffix(lower, ".dockerfile"), lower == "containerfile", strings.HasPrefix(lower, "containerfile."):
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

// crontabText reads a crontab whose place does not say whether its lines name a user: those of a user's crontab do not, and a word that is
// a usual one of the system in each line is one.
func crontabText(f *finder, name, text string, info fs.FileInfo) {
	kind := KindCrontab
	if lines := (table{kind: kind}).entries(text); len(lines) > 0 && !slices.ContainsFunc(lines, func(e Entry) bool {
		first, _, _ := strings.Cut(e.Command, " ")
		return !slices.Contains([]string{"root", "postgres", "www-data", "nobody", "app", "deploy"}, first)
	}) {
		kind = KindSystem
	}
	crontabOf(kind)(f, name, text, info)
}

func offOf(info fs.FileInfo) Off {
	switch {
	case strings.Contains(info.Name(), "."):
		return OffName
	case info.Mode()&0o111 == 0:
		return OffNotExecutable
	}
	return ""
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
	crontabText(f, name, text, info)
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

// read reads a file that another one speaks of, if it is there.
func (f *finder) read(name string) (string, bool) {
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
	real, err := filepath.EvalSymlinks(name)
	if err != nil { // the context of the build may be a directory above
		up := filepath.Join(filepath.Dir(filepath.Dir(file)), filepath.FromSlash(from))
		if real, err = filepath.EvalSymlinks(up); err == nil {
			name = up
		}
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	info, stat := os.Stat(name)
	if err != nil || stat != nil {
		f.unread(Unread{File: file, Line: line, Reason: ReasonCopied, Detail: from})
		return
	}
	if info.IsDir() || f.seen[real] {
		return
	}
	text, ok := f.readNamed(name)
	if !ok {
		return
	}
	f.seen[real] = true
	if every != "" {
		f.add(periodic(name, every, text, ""))
		return
	}
	f.add(table{file: name, first: 1, kind: KindImage, hasUser: kind == KindSystem}.entries(text)...)
}

// follow looks into a script that an entry runs, where it lies in what was asked for: beside the entry, or under the directory that
// stands for the root of the machine. What it runs is then what the entry runs.
func (f *finder) follow(e Entry) []Action {
	actions := e.Actions
	for _, word := range strings.Fields(e.Command) {
		if word = strings.Trim(word, `"';`); !strings.Contains(word, "/") && !strings.HasSuffix(word, ".sh") || strings.HasPrefix(word, "-") {
			continue
		}
		for _, name := range f.candidates(filepath.Dir(e.File), word) {
			if !f.inside(name) {
				continue
			}
			if text, ok := f.read(name); ok && isShell(text) {
				if inner := readShell(text, nil).actions; len(inner) > 0 {
					return append(slices.Clone(actions), inner...)
				}
			}
		}
	}
	return actions
}

// candidates are where a script may lie that a line names: each directory above the line's file may be the root of its machine or image.
func (f *finder) candidates(dir, word string) []string {
	base := filepath.Base(word)
	var all []string
	for range MostDepth {
		all = append(all, filepath.Join(dir, word), filepath.Join(dir, base), filepath.Join(dir, "scripts", base), filepath.Join(dir, "bin", base))
		if !f.inside(dir) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return all
}

// inside tells whether a file lies in what was asked for: nothing else is opened because of what a line says.
func (f *finder) inside(name string) bool {
	for _, root := range f.roots {
		if relative, err := filepath.Rel(root, name); err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			return true
		}
		if filepath.Dir(root) == filepath.Dir(name) { // beside a file that was named
			return true
		}
	}
	return false
}

func isShell(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "#!") && (strings.HasSuffix(strings.TrimSpace(strings.Fields(first + " x")[0]), "sh") || strings.Contains(first, "sh"))
}
