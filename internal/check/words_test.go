package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// foreign finds what belongs to one workplace and not to the project: directories of a machine, and the hosts from which one
// machine's tools fetch packages. The words are put together here, so that this file does not hold what it looks for and is
// looked at like any other.
var foreign = regexp.MustCompile(
	`(?:^|[^\w.~/-])/(?:wo` + `rk|ro` + `ot)/` +
		`|/tmp/` + `brief` +
		`|\b(?:pro` + `xy|su` + `m)\.golang\.org\b` +
		`|\b(?:de` + `b|secu` + `rity)\.debian\.org\b` +
		`|\bregis` + `try\.npmjs\.org\b`)

// TestWords_NameNoMachine keeps the tree free of what only one machine knows: it would be wrong everywhere else.
func TestWords_NameNoMachine(t *testing.T) {
	root := moduleRoot(t)
	files := trackedFiles(t, root)
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed in the middle of a change
		}
		if err != nil {
			t.Fatalf("read a tracked file: %v", err)
		}
		for _, found := range foreignWords(content) {
			t.Errorf("%s:%s belongs to one machine and not to the project", name, found)
		}
	}
}

// TestWords_NameNoMachine_Control shows that the search finds, and that it leaves alone what only looks alike.
func TestWords_NameNoMachine_Control(t *testing.T) {
	for content, want := range map[string]int{
		"see /wo" + "rk/shared/x":                   1,
		"/wo" + "rk/x at the line's start":          1,
		"a\nb \"/ro" + "ot/go/pkg\"\n":              1,
		"https://pro" + "xy.golang.org,direct":      1,
		"http://de" + "b.debian.org/debian":         1,
		"two: /ro" + "ot/a and /wo" + "rk/b":        2,
		"regis" + "try.npmjs.org in\x00binary":      0,
		"https://example.org/wo" + "rk/hours":       0,
		"tests/wo" + "rk/file":                      0,
		"not under /ro" + "ot, which others cannot": 0,
		"golang.org/x/text":                         0,
	} {
		if found := foreignWords([]byte(content)); len(found) != want {
			t.Errorf("foreignWords(%q) = %q, want %d", content, found, want)
		}
	}
}

// foreignWords names each find with its line; a file that is not text is left alone.
func foreignWords(content []byte) []string {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var found []string
	for i, line := range bytes.Split(content, []byte("\n")) {
		for _, word := range foreign.FindAll(line, -1) {
			found = append(found, fmt.Sprintf("%d: %q", i+1, bytes.TrimSpace(word)))
		}
	}
	return found
}

// trackedFiles lists what git tracks; outside a clone there is nothing to keep clean.
func trackedFiles(t *testing.T, root string) []string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, os.ErrNotExist) {
		t.Skip("the tree is not a clone")
	}
	// Go keeps the result of a test until a file that it looked at changes: the list of tracked files is such a file.
	if _, err := os.Stat(filepath.Join(root, ".git", "index")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Logf("look at git's index: %v", err)
	}
	// A clone that belongs to another user is read all the same: nothing of it is run.
	command := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatalf("ask git for the tracked files: %v", err)
	}
	var files []string
	for _, name := range bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		files = append(files, string(name))
	}
	if len(files) < 2 {
		t.Fatalf("git tracks only %q: the test looks at the wrong tree", files)
	}
	return files
}
