//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"usher/internal/base/problem"
)

const (
	// startLimit covers the recovery after a crash (max_wal_size of log).
	startLimit = 2 * time.Minute
	// fastStopLimit is for the last checkpoint; then the stop becomes
	// immediate, which loses nothing either but makes the next start recover.
	fastStopLimit      = 60 * time.Second
	immediateStopLimit = 10 * time.Second

	readyPoll = 2 * time.Millisecond
)

// standingSettings are those of every private server; on the command line, so that a new version
// of the program brings its own to old data. fsync stays on.
var standingSettings = []string{
	"listen_addresses=",
	"unix_socket_directories=../" + socketDir, // relative to the data: survives a move
	"port=" + port,
	"max_connections=100",
	"shared_buffers=128MB",
	"jit=off",
	"TimeZone=UTC",
	"log_timezone=UTC",
	// Errors are the program's to report. Terse and without the statement,
	// since both quote names and addresses.
	"log_error_verbosity=terse",
	"log_min_error_statement=panic",
	"log_checkpoints=off",
	"logging_collector=off",
}

// Server is one running postgres, the child of this process. It ends with this
// process, kill -9 included.
type Server struct {
	home     home
	host     string
	pid      int
	ended    chan struct{} // closed when postgres was reaped
	ending   error         // how it ended; read after ended
	signaled bool          // it was killed, and did not end by itself
}

// Start makes (with initdb, if dir holds none yet) and starts a cluster that
// belongs to the caller alone, for tests: no keeper, no members. settings are
// "name=value" pairs of postgresql.conf. The context governs the start only.
func Start(ctx context.Context, dir string, settings ...string) (*Server, error) {
	h, err := openHome(dir)
	if err != nil {
		return nil, err
	}
	host, err := h.socketHost()
	if err != nil {
		return nil, err
	}
	hold, err := h.openLock(serverLock)
	if err != nil {
		return nil, err
	}
	defer hold.file.Close() // not free: postgres keeps the lock
	server, err := h.bringUp(ctx, hold, false, settings)
	if err != nil {
		return nil, err
	}
	server.host = host
	return server, nil
}

// URL is the owner's address of one database, given by its plain name.
func (s *Server) URL(db string) string { return socketURL(s.host, db) }

// PID is the postmaster's.
func (s *Server) PID() int { return s.pid }

// Stop ends the server and waits for it. A second call only waits.
func (s *Server) Stop() error {
	for _, step := range []struct {
		signal syscall.Signal
		limit  time.Duration
	}{{syscall.SIGINT, fastStopLimit}, {syscall.SIGQUIT, immediateStopLimit}, {syscall.SIGKILL, immediateStopLimit}} {
		if s.hasEnded() {
			break
		}
		if err := syscall.Kill(s.pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop PostgreSQL: %w", err)
		}
		if s.endsWithin(step.limit) {
			break
		}
	}
	if !s.hasEnded() {
		return fmt.Errorf("stop PostgreSQL: process %d does not end, even when killed", s.pid)
	}
	if alias := s.home.aliasDir(); s.host != "" && alias != "" {
		return os.RemoveAll(alias)
	}
	return nil
}

func (s *Server) endsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.ended:
		return true
	case <-timer.C:
		return false
	}
}

func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// bringUp waits until no process of an earlier server lives, sees that there
// is data, and starts postgres on it. hold is taken here and inherited by
// every process of PostgreSQL, so that it is free exactly when none is left.
func (h home) bringUp(ctx context.Context, hold *flock, durable bool, more []string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := hold.take(ctx, syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("an earlier PostgreSQL in %s has not ended yet: %w", h.shown(), err)
	}
	major, err := h.dataMajor()
	if err != nil {
		return nil, err
	}
	bin, err := h.binariesFor(major)
	if err != nil {
		return nil, err
	}
	if err := h.refuseClosedBinaries(bin); err != nil {
		return nil, err
	}
	if err := h.clearStalePid(); err != nil {
		return nil, err
	}
	if err := h.prepareSocketDir(); err != nil {
		return nil, err
	}
	if major == 0 {
		if err := h.initialise(ctx, bin, hold, durable); err != nil {
			return nil, err
		}
	}
	return h.startServer(ctx, bin, hold, more)
}

// clearStalePid removes the postmaster.pid of a server that a power loss ended
// when its number belongs to another process by now: postgres would take that
// one for a living server. A server that somebody started by hand on this data
// is alive, and refused.
func (h home) clearStalePid() error {
	file := h.path(filepath.Join(dataDir, "postmaster.pid"))
	pid, _, err := readPostmaster(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if pid == 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return nil // postgres sees that itself, and clears up after the dead one
	}
	if h.worksInData(pid) {
		return refuse("cluster_started_by_hand", problem.Facts{"process": strconv.Itoa(pid), "dir": filepath.Join(h.shown(), dataDir)})
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove a stale postmaster.pid: %w", err)
	}
	return nil
}

// worksInData: every process of PostgreSQL has its data as working directory.
func (h home) worksInData(pid int) bool {
	work, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false // it is gone, or somebody else's
	}
	data, err := os.Stat(h.path(dataDir))
	return err == nil && os.SameFile(work, data)
}

func (h home) startServer(ctx context.Context, bin Binaries, hold *flock, more []string) (*Server, error) {
	log, err := h.create(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at the log of PostgreSQL: %w", err)
	}
	server := &Server{home: h, ended: make(chan struct{})}
	if err := server.spawn(h.command(bin, hold, log, more)); err != nil {
		return nil, err
	}
	if err := server.waitUntilReady(ctx); err != nil {
		return nil, errors.Join(h.withLog(err, before.Size()), server.Stop())
	}
	return server, nil
}

func (h home) command(bin Binaries, hold *flock, log *os.File, more []string) *exec.Cmd {
	cmd := exec.Command(bin.program("postgres"), "-D", ".")
	for _, setting := range slices.Concat(standingSettings, more) {
		cmd.Args = append(cmd.Args, "-c", setting)
	}
	cmd.Dir = h.path(dataDir)
	cmd.Env = serverEnvironment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{hold.file}
	// SIGINT is PostgreSQL's fast shutdown. A group of its own keeps it from
	// a Ctrl-C that is meant for this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.account.credential(), Setpgid: true, Pdeathsig: syscall.SIGINT}
	return cmd
}

// spawn starts postgres from a thread that lives as long as postgres does: the
// kernel sends Pdeathsig when the thread ends that started the child.
func (s *Server) spawn(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		s.ending = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		s.signaled = status.Signaled()
		close(s.ended)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	s.pid = cmd.Process.Pid
	return nil
}

// waitUntilReady reads postmaster.pid, as pg_ctl does: knocking on the socket
// would fill the log with connections that came too early.
func (s *Server) waitUntilReady(ctx context.Context) error {
	file := s.home.path(filepath.Join(dataDir, "postmaster.pid"))
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		pid, status, err := readPostmaster(file)
		if err == nil && pid == s.pid && status == "ready" {
			return nil
		}
		select {
		case <-s.ended:
			why := s.home.explainFull(fmt.Errorf("PostgreSQL in %s ended while it started: %w", s.home.shown(), s.ending))
			if _, known := problem.Of(why); known {
				return why
			}
			return refuse("cluster_ended_starting", problem.Facts{
				"dir": s.home.shown(), "log": filepath.Join(s.home.shown(), logFile),
			}).Because(why)
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL in %s is not ready yet: %w", s.home.shown(), ctx.Err())
		case <-tick.C:
		}
	}
}

// readPostmaster reads the number and the status of a server. While the file
// is being written, or if a crash cut it off, they are 0 and empty.
func readPostmaster(file string) (pid int, status string, err error) {
	const statusLine = 7
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, "", fmt.Errorf("read the state of PostgreSQL: %w", err)
	}
	lines := strings.Split(string(content), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		pid = 0
	}
	if len(lines) > statusLine {
		status = strings.TrimSpace(lines[statusLine])
	}
	return pid, status, nil
}
