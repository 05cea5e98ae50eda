package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/lmittmann/tint"

	"usher/internal/edge/job"
)

// mostLog is how large the log of commands grows; then the file becomes .old and a new one begins.
const mostLog = 4 << 20

// faultLog is where a command writes what the person who typed it need not read. The file is made
// when the first line comes; where it cannot be made, the line goes to stderr rather than nowhere.
type faultLog struct {
	name   string // empty: stderr
	stderr io.Writer
	file   *os.File
	used   bool
}

// defaultLog is the usual place for what a user's programs remember of themselves.
func defaultLog() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "usher", "usher.log")
}

func (l *faultLog) Write(line []byte) (int, error) {
	l.used = true
	if l.file == nil && l.name != "" {
		file, err := openLog(l.name)
		if err != nil {
			l.name = ""
			fmt.Fprintln(l.stderr, "no log:", err)
		}
		l.file = file
	}
	if l.file == nil {
		return l.stderr.Write(line)
	}
	return l.file.Write(line)
}

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > mostLog {
		if err := os.Rename(name, name+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// startLog sends the log of this process to the file; a server's goes to stderr, where whatever
// started it collects it.
func (s *session) startLog(name string) {
	s.log = &faultLog{name: name, stderr: s.stderr}
	slog.SetDefault(slog.New(tint.NewTextHandler(s.log, &tint.Options{Level: job.LogLevel, NoColor: s.log.name != "" || !isTerminal(s.stderr)})))
}

// endLog tells where the log is when something was written into it.
func (s *session) endLog() {
	if s.log.file == nil {
		return
	}
	fmt.Fprintln(s.stderr, s.voice.Say("cli_log_at", map[string]any{"file": s.log.name}))
	if err := s.log.file.Close(); err != nil {
		fmt.Fprintln(s.stderr, s.voice.Say("problem_path_refused", map[string]any{"path": s.log.name, "why": s.why(err)}))
	}
}
