//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often somebody who waits for a lock, or for a server, looks
// again. A blocking flock cannot be interrupted by the end of a context.
const lockPoll = 5 * time.Millisecond

// The locks are flocks: the kernel releases them when a process ends, however
// it ends. Go opens every file close-on-exec, so no child inherits one unless
// it is handed over (server.lock is, to PostgreSQL).
const (
	startLock   = "start.lock"   // exclusive: whoever joins or leaves, one at a time
	membersLock = "members.lock" // shared: each member; exclusive: the keeper once all are gone
	keeperLock  = "keeper.lock"  // exclusive: the keeper, as long as its server is to be joined
	serverLock  = "server.lock"  // exclusive: every process of PostgreSQL or initdb, by inheritance
)

type flock struct{ file *os.File }

func (h home) openLock(name string) (*flock, error) {
	file, err := h.create(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &flock{file}, nil
}

// try takes the lock if nobody is in the way. how is syscall.LOCK_SH or LOCK_EX.
func (l *flock) try(how int) (bool, error) {
	err := l.flock(how | syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// take waits for the lock until the context ends.
func (l *flock) take(ctx context.Context, how int) error {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		taken, err := l.try(how)
		if taken || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", l.file.Name(), ctx.Err())
		case <-tick.C:
		}
	}
}

// takeHoweverLong blocks in the kernel: no polling, no limit.
func (l *flock) takeHoweverLong(how int) error { return l.flock(how) }

// release is explicit: closing alone would leave the lock to a child that is,
// at this moment, between its fork and its exec.
func (l *flock) release() error { return l.flock(syscall.LOCK_UN) }

func (l *flock) free() error { return errors.Join(l.release(), l.file.Close()) }

func (l *flock) flock(how int) error {
	for {
		err := syscall.Flock(int(l.file.Fd()), how)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock %s: %w", l.file.Name(), err)
		}
	}
}
