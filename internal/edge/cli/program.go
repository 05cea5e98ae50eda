package cli

import (
	"os"
	"path/filepath"
	"strings"

	"usher/internal/base/i18n"
)

// program is how the next command begins, so that it can be typed as it stands: the program as it was called, and the directory
// of the private PostgreSQL when that was named on the command line.
func (s *session) program() string {
	name := programName
	if called := os.Args[0]; strings.TrimSuffix(filepath.Base(called), ".exe") == programName {
		name = i18n.ShellWord(called)
	}
	if s.line.Dir != "" && s.line.Dir != os.Getenv("USHER_DIR") {
		name += " --dir " + i18n.ShellWord(s.line.Dir)
	}
	return name
}
