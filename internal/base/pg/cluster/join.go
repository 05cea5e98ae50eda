//go:build linux

// Package cluster decides when the private PostgreSQL of a directory runs: the
// first member starts it, later ones join it, and it ends when the last one
// has left or died. It makes the data, finds the programs of PostgreSQL, and
// refuses in words what cannot work. Roles, migrations and pools are left to
// package pg; a server named by a URL never comes here.
//
// Commands come and go, and each may be killed at any instant, so nobody counts
// members. Each holds a shared flock on members.lock, which the kernel releases
// when the process ends. The keeper, a process of its own session and the
// parent of postgres, waits for the exclusive lock, which it gets exactly when
// nobody is left; it then stops postgres. If the keeper is killed, the kernel
// tells postgres to stop (Pdeathsig), and the next member starts both again.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/problem"
)

const (
	// joinLimit is how long a person is kept waiting: for a stop that is under
	// way, for initdb, for recovery. A start that takes longer goes on in the
	// keeper, and the next command finds it further on. No member holds
	// start.lock for longer.
	joinLimit = 30 * time.Second
	// leaveLimit covers everything that Server.Stop tries.
	leaveLimit = 90 * time.Second
	// answerLimit is how long one knock on the socket may take.
	answerLimit = 5 * time.Second
)

// Member is one process's share in a running cluster.
type Member struct {
	home home
	host string
	// The locks stay open for Leave: the directory may move meanwhile.
	turn, members, office *flock
	keeper                *exec.Cmd // if this member started it, to reap it
	left                  bool
}

// Join makes sure that the private cluster in dir runs, and holds it until
// Leave or the end of the process. The first use makes the data. The context
// governs the joining only. A problem is what the person can end; main must
// begin with RunKeeperIfAsked.
func Join(ctx context.Context, dir string) (*Member, error) {
	if os.Getenv(keeperVariable) != "" {
		return nil, errors.New("join the private cluster: main does not begin with cluster.RunKeeperIfAsked")
	}
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	h, err := openHome(dir)
	if err != nil {
		return nil, err
	}
	m := &Member{home: h}
	if err := m.openLocks(); err != nil {
		return nil, h.explainFull(errors.Join(err, m.closeLocks()))
	}
	if err := m.join(ctx); err != nil {
		return nil, h.explainFull(errors.Join(err, m.members.release(), m.closeLocks()))
	}
	return m, nil
}

func (m *Member) openLocks() (err error) {
	if m.turn, err = m.home.openLock(startLock); err != nil {
		return err
	}
	if m.members, err = m.home.openLock(membersLock); err != nil {
		return err
	}
	m.office, err = m.home.openLock(keeperLock)
	return err
}

func (m *Member) closeLocks() error {
	var closed []error
	for _, lock := range []*flock{m.turn, m.members, m.office} {
		if lock != nil {
			closed = append(closed, lock.file.Close())
		}
	}
	return errors.Join(closed...)
}

func (m *Member) join(ctx context.Context) (err error) {
	if err := m.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.turn.release()) }()
	if m.host, err = m.home.socketHost(); err != nil {
		return err
	}
	// Not to be had while a keeper stops its server: then it is started anew.
	if err := m.members.take(ctx, syscall.LOCK_SH); err != nil {
		return m.home.explainWait(err, "cluster_waits_stopping")
	}
	return m.ensureServer(ctx)
}

// takeTurn lets members join and leave one at a time.
func (m *Member) takeTurn(ctx context.Context) error {
	if err := m.turn.take(ctx, syscall.LOCK_EX); err != nil {
		return m.home.explainWait(err, "cluster_waits_others")
	}
	return nil
}

// URL is the owner's address of the database "usher", over the Unix socket.
func (m *Member) URL() string { return socketURL(m.host, database) }

// ensureServer returns when a server that has a keeper answers. One without a
// keeper is about to end, even if it answers.
func (m *Member) ensureServer(ctx context.Context) error {
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		kept, err := m.isKept()
		if err != nil {
			return err
		}
		if !kept {
			return m.startKeeper(ctx)
		}
		refused := m.knock(ctx)
		if refused == nil || !mayPass(refused) {
			return refused
		}
		select {
		case <-ctx.Done():
			return m.home.explainWait(errors.Join(ctx.Err(), refused), "cluster_waits_silent")
		case <-tick.C:
		}
	}
}

// mayPass tells a server that is starting, or full at the moment, from one that
// will say the same for ever (its database was dropped, say).
func mayPass(refused error) bool {
	const startingUp, tooManyConnections = "57P03", "53300"
	var answer *pgconn.PgError
	return !errors.As(refused, &answer) || answer.Code == startingUp || answer.Code == tooManyConnections
}

func (m *Member) isKept() (bool, error) {
	free, err := m.office.try(syscall.LOCK_SH)
	if !free || err != nil {
		return true, err
	}
	return false, m.office.release()
}

func (m *Member) knock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, m.URL())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return conn.Close(ctx)
}

// startKeeper runs this program again as keeper, in a session of its own, so
// that a Ctrl-C in the terminal does not reach it, and waits for its report.
func (m *Member) startKeeper(ctx context.Context) error {
	log, err := m.home.create(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Stat()
	if err != nil {
		return fmt.Errorf("look at the log of PostgreSQL: %w", err)
	}
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe to the keeper: %w", err)
	}
	defer report.Close()
	// Not os.Executable: the program on disk may have been replaced or removed.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"usher-keeper", m.home.dir}
	cmd.Dir = m.home.dir
	cmd.Env = append(os.Environ(), keeperVariable+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{reportEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	startErr := cmd.Start()
	if err := errors.Join(startErr, reportEnd.Close()); err != nil {
		return fmt.Errorf("start the keeper of PostgreSQL: %w", err)
	}
	m.keeper = cmd
	return m.hear(ctx, report, before.Size())
}

// hear reads the keeper's report, to its end or the context's.
func (m *Member) hear(ctx context.Context, report *os.File, logged int64) error {
	stop := context.AfterFunc(ctx, func() {
		// It fails on a closed pipe only: then the report was heard.
		_ = report.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	heard, err := io.ReadAll(report)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return m.home.explainWait(ctx.Err(), "cluster_waits_starting")
	}
	if err != nil {
		return fmt.Errorf("hear from the keeper of PostgreSQL: %w", err)
	}
	kind, words, _ := strings.Cut(string(heard), " ")
	switch kind {
	case reportReady:
		return nil
	case reportRefusal:
		return errors.Join(readRefusal(words), m.reap())
	case reportFailure:
		return errors.Join(errors.New(words), m.reap())
	default:
		died := errors.New("the keeper of PostgreSQL ended before it could start it")
		return errors.Join(m.home.withLog(died, logged), m.reap())
	}
}

// Leave gives the share back. The last member waits until PostgreSQL has
// ended. A second call does nothing.
func (m *Member) Leave() error {
	if m.left {
		return nil
	}
	m.left = true
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	if err := m.takeTurn(ctx); err != nil {
		return errors.Join(err, m.members.release(), m.closeLocks())
	}
	return errors.Join(m.leave(ctx), m.turn.release(), m.closeLocks())
}

// leave is done in turn: nobody joins or leaves meanwhile, though members may
// be killed.
func (m *Member) leave(ctx context.Context) error {
	if err := m.members.release(); err != nil {
		return err
	}
	others, err := othersHold(m.members)
	if err != nil || others {
		return err
	}
	// The keeper gives up its office when PostgreSQL has ended.
	if err := m.office.take(ctx, syscall.LOCK_SH); err != nil {
		return m.home.explainWait(err, "cluster_waits_stopping")
	}
	if err := m.office.release(); err != nil {
		return err
	}
	if alias := m.home.aliasDir(); alias != "" {
		if err := os.RemoveAll(alias); err != nil {
			return fmt.Errorf("remove the short path to the socket: %w", err)
		}
	}
	return m.reap()
}

// othersHold tells other members, who share the lock, from the keeper, who
// takes it whole when there are none.
func othersHold(members *flock) (bool, error) {
	for _, how := range []int{syscall.LOCK_EX, syscall.LOCK_SH} {
		taken, err := members.try(how)
		if err != nil {
			return false, err
		}
		if taken {
			return how == syscall.LOCK_SH, members.release()
		}
	}
	return false, nil
}

// reap collects a keeper that has nothing left to do but to end.
func (m *Member) reap() error {
	if m.keeper == nil {
		return nil
	}
	started := m.keeper
	m.keeper = nil
	exit := (*exec.ExitError)(nil)
	if err := started.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("wait for the keeper of PostgreSQL: %w", err)
	}
	return nil // how it ended is in its report, or in the log
}

// explainWait is for a limit that was reached. A context that the caller ended
// needs no advice.
func (h home) explainWait(err error, code string) error {
	waits := refuse(code, problem.Facts{"dir": h.shown(), "log": h.path(logFile), "lock": h.path(keeperLock)})
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("private PostgreSQL: %s: %w", waits.Error(), err)
	}
	return fmt.Errorf("%w\n(%w)", waits, err)
}
