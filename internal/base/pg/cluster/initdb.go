//go:build linux

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initdbWaitDelay is how long the helpers of a killed initdb may keep its output open.
const initdbWaitDelay = 5 * time.Second

// prepareSocketDir makes the directory that guards the server: whoever reaches
// the socket is its superuser (-A trust), so nobody else may enter.
// What an earlier server left in it is stale, since the caller holds server.lock.
func (h home) prepareSocketDir() error {
	dir := h.path(socketDir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	return h.makeOwnDir(socketDir)
}

func (h home) makeOwnDir(name string) error {
	if err := os.Mkdir(h.path(name), 0o700); err != nil {
		return refuseDir(h.shown(), err)
	}
	if h.account.credential() == nil {
		return nil
	}
	if err := os.Lchown(h.path(name), int(h.account.uid), int(h.account.gid)); err != nil {
		return fmt.Errorf("give %s to the user %s: %w", h.path(name), h.account.name, err)
	}
	return nil
}

// initialise makes the data in a sibling directory and renames it when it is
// whole: an initdb that was killed half way leaves nothing that looks like data.
func (h home) initialise(ctx context.Context, bin Binaries, hold *flock, durable bool) error {
	if err := os.RemoveAll(h.path(initdbDir)); err != nil {
		return fmt.Errorf("clear an interrupted initdb: %w", err)
	}
	if err := h.makeOwnDir(initdbDir); err != nil {
		return err
	}
	if err := h.runInitdb(ctx, bin, hold); err != nil {
		return err
	}
	if durable {
		if err := syncFilesystem(h.path(initdbDir)); err != nil {
			return err
		}
	}
	if err := os.Rename(h.path(initdbDir), h.path(dataDir)); err != nil {
		return fmt.Errorf("put the new data in place: %w", err)
	}
	if durable {
		return syncFilesystem(h.dir)
	}
	return nil
}

// runInitdb leaves out initdb's own sync, which takes each file in turn
// (0.25 s here); syncFilesystem does the same at once (0.06 s) before the data
// gets its name. Segments of 1 MB, because the default of 16 MB is mostly empty
// space in a small cluster, written at every initdb.
func (h home) runInitdb(ctx context.Context, bin Binaries, hold *flock) error {
	runtime.LockOSThread() // Pdeathsig follows the thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, bin.program("initdb"), "-D", initdbDir, "-U", owner, "-A", "trust",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions", "--wal-segsize=1")
	cmd.Dir = h.dir
	cmd.Env = serverEnvironment()
	cmd.ExtraFiles = []*os.File{hold.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.account.credential(), Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = initdbWaitDelay
	printed, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("initdb in %s: %w", h.shown(), ctx.Err())
	}
	return fmt.Errorf("initdb in %s: %w\n%s", h.shown(), err, lastLines(string(printed)))
}

// syncFilesystem is one syncfs(2) for all files below, and everything else
// that waits on the same file system.
func syncFilesystem(dir string) error {
	opened, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open %s to sync it: %w", dir, err)
	}
	defer opened.Close()
	if err := unix.Syncfs(int(opened.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// serverEnvironment holds what the programs of PostgreSQL need to run, and not
// this process's secrets, nor PGPORT and the like, nor the person's language.
func serverEnvironment() []string {
	kept := []string{"LC_ALL=C.UTF-8"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "TMPDIR", "ICU_DATA"} {
		if value, set := os.LookupEnv(name); set {
			kept = append(kept, name+"="+value)
		}
	}
	return kept
}
