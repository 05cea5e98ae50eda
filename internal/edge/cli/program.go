package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// program is how the next command begins, so that it can be typed as it stands: the program as it was called, and the directory
// of the private PostgreSQL when that was named on the command line.
func (s *session) program() string {
	name := programName
	if called := os.Args[0]; strings.TrimSuffix(filepath.Base(called), ".exe") == programName {
		name = shellWord(called)
	}
	if s.line.Dir != "" && s.line.Dir != os.Getenv("USHER_DIR") {
		name += " --dir " + shellWord(s.line.Dir)
	}
	return name
}

// shellWord writes a word so that a shell takes it as one.
func shellWord(word string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./\\:", r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
