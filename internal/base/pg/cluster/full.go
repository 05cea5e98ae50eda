//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"usher/internal/base/problem"
)

// fullDisk are the system's answers when nothing more can be written. PostgreSQL and the keeper pass
// them on as text.
var fullDisk = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// leastFreeBytes is one segment of the write-ahead log: with less PostgreSQL cannot work.
const leastFreeBytes = 1 << 20

// sharedMemory is where PostgreSQL keeps what its processes share, whatever directory the data are in.
const sharedMemory = "/dev/shm"

var lackedSharedMemory = regexp.MustCompile(`(?i)shared memory segment .*: no space left`)

// explainFull tells a person which directory is full. Any step of a start may be the one that finds out.
func (h home) explainFull(err error) error {
	if err == nil {
		return nil
	}
	if _, refused := problem.Of(err); refused || !saysFull(err) && !h.isFull() {
		return err
	}
	dir, path := h.shown(), (*fs.PathError)(nil)
	switch {
	case errors.As(err, &path) && filepath.IsAbs(path.Path):
		dir = filepath.Dir(path.Path)
	case lackedSharedMemory.MatchString(err.Error()):
		dir = sharedMemory
	}
	return fmt.Errorf("%w\n(%w)", refuseFull(dir), err)
}

func saysFull(err error) bool {
	words := strings.ToLower(err.Error())
	for _, answer := range fullDisk {
		if errors.Is(err, answer) || strings.Contains(words, answer.Error()) {
			return true
		}
	}
	return false
}

// isFull finds a full disk where PostgreSQL could not even write the reason into its log.
func (h home) isFull() bool {
	var disk syscall.Statfs_t
	return syscall.Statfs(h.dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < leastFreeBytes
}

func refuseFull(dir string) error {
	return refuse("cluster_disk_full", problem.Facts{"dir": dir})
}
