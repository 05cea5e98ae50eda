//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// logLimitBytes bounds each of the two log files; see boundLog.
	logLimitBytes = 8 << 20
	// shownLogLines and shownLogBytes are what an error quotes of a log.
	shownLogLines = 8
	shownLogBytes = 4 << 10
)

// boundLog moves the log's content to postgresql.log.1 once it is too long.
// The file itself stays, since postgres has it open for appending; a line that
// is written between the copy and the cut is lost.
func (h home) boundLog() (err error) {
	log, err := h.create(logFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	info, err := log.Stat()
	if err != nil || info.Size() <= logLimitBytes {
		return err
	}
	old, err := h.create(oldLogFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, copyErr := io.Copy(old, io.NewSectionReader(log, max(0, info.Size()-logLimitBytes), logLimitBytes))
	if err := errors.Join(copyErr, old.Close()); err != nil {
		return fmt.Errorf("keep the old log of PostgreSQL: %w", err)
	}
	if err := log.Truncate(0); err != nil {
		return fmt.Errorf("shorten the log of PostgreSQL: %w", err)
	}
	return nil
}

// withLog adds to an error what postgres wrote since the offset: the reason.
func (h home) withLog(cause error, offset int64) error {
	log, err := os.Open(h.path(logFile))
	if err != nil {
		return errors.Join(cause, err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return errors.Join(cause, err)
	}
	offset = max(offset, info.Size()-shownLogBytes)
	written, err := io.ReadAll(io.NewSectionReader(log, offset, shownLogBytes))
	if err != nil {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("%w\nThe end of %s/%s:\n%s", cause, h.shown(), logFile, lastLines(string(written)))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLogLines):], "\n")
}
