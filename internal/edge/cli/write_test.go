package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"usher/internal/base/problem"
)

// TestWriteWhole_Fails: a file that cannot be finished does not appear, leaves nothing behind, and
// leaves what was there before.
func TestWriteWhole_Fails(t *testing.T) {
	t.Parallel()
	full := &fs.PathError{Op: "write", Path: "/nowhere/usher-1", Err: syscall.ENOSPC}
	lost := errors.New("the session was lost")
	for name, c := range map[string]struct {
		fails error
		want  problem.Kind
		code  string
	}{
		"full disk":       {full, problem.KindRefused, "temporary_disk_full"},
		"something else":  {lost, 0, ""},
		"read-only place": {&fs.PathError{Op: "write", Path: ".usher-1", Err: syscall.EROFS}, problem.KindInvalid, "file_unwritable"},
	} {
		s := &session{voice: speak("en")}
		file := filepath.Join(t.TempDir(), "report.csv")
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.writeWhole(file, func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			return c.fails
		})
		p, _ := problem.Of(err)
		if !errors.Is(err, c.fails) || c.want != 0 && (p == nil || p.Kind != c.want || p.Code != c.code) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(filepath.Dir(file))
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left behind %v, %v", name, left, err)
		}
		if content, err := os.ReadFile(file); err != nil || string(content) != "before" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
}

// TestLog_Bounded: a log that has grown too large becomes the old one.
func TestLog_Bounded(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "state", "usher.log")
	log := &faultLog{name: name, stderr: io.Discard}
	if _, err := log.Write(make([]byte, mostLog+1)); err != nil {
		t.Fatal(err)
	}
	next := &faultLog{name: name, stderr: io.Discard}
	if _, err := next.Write([]byte("new\n")); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(name); err != nil || string(content) != "new\n" {
		t.Errorf("the log: %d bytes, %v", len(content), err)
	}
	if info, err := os.Stat(name + ".old"); err != nil || info.Size() != mostLog+1 {
		t.Errorf("the old log: %v", err)
	}
}

// TestLog_WithoutAPlace: what cannot be written into a file is written to stderr rather than lost.
func TestLog_WithoutAPlace(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	log := &faultLog{name: "/proc/nowhere/usher.log", stderr: writer}
	go func() {
		_, _ = log.Write([]byte("a fault\n"))
		_ = writer.Close()
	}()
	said, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(said), "a fault\n") || !strings.Contains(string(said), "no log") {
		t.Errorf("%q, %v", said, err)
	}
}
