package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"usher/internal/base/i18n"
)

// Nobody who waits for a pipe into which nobody writes has to interrupt twice: opening it is what waits.
func TestOpenFile_PipeThatNobodyWritesInto(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := openFile(ctx, pipe, func() {})
		answer <- err
	}()
	interrupt()
	select {
	case err := <-answer:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it is answered with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits on")
	}
}

// A pipe that nobody writes into yet is waited for, and that is said; whoever writes then is read.
func TestOpenFile_SaysThatItWaitsForAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	said := bytes.Buffer{}
	waits := make(chan struct{})
	s := &session{ctx: t.Context(), voice: i18n.Speak("en"), stderr: writerFunc(func(p []byte) (int, error) {
		defer close(waits)
		return said.Write(p)
	})}
	go func() {
		<-waits
		_ = os.WriteFile(pipe, []byte("reference;name\n"), 0o600)
	}()
	file, err := s.openFile(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if text, err := io.ReadAll(file); err != nil || string(text) != "reference;name\n" {
		t.Errorf("it reads %q, %v", text, err)
	}
	if want := pipe + " is a pipe into which nobody writes yet: waiting. Ctrl-C ends it.\n"; said.String() != want {
		t.Errorf("it says %q, want %q", said.String(), want)
	}
}

// A pipe that has its writer, as the shell's <(…) is, opens without a word.
func TestOpenFile_PipeOfAShell(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	if _, err := write.WriteString("x"); err != nil || write.Close() != nil {
		t.Fatal(err)
	}
	file, err := openFile(t.Context(), fmt.Sprintf("/dev/fd/%d", read.Fd()), func() { t.Error("it says that it waits") })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if text, err := io.ReadAll(file); err != nil || string(text) != "x" {
		t.Errorf("it reads %q, %v", text, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
