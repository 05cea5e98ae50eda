//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
)

const (
	// keeperVariable in the environment makes a process the keeper of the
	// cluster in its working directory.
	keeperVariable = "USHER_CLUSTER_KEEPER"
	// reportDescriptor is the pipe on which the keeper tells the member that
	// started it how the start went.
	reportDescriptor = 3

	// keeperLimit is how long a keeper waits for the one before it to go: on a busy machine PostgreSQL takes seconds to end.
	keeperLimit = 20 * time.Second
	// restartLimit is how many times a postgres that was killed is started
	// again under the members, before the keeper leaves it to the next one.
	restartLimit = 3
	// logCheckInterval is how often the size of the log is looked at.
	logCheckInterval = time.Minute
)

// The first word of the keeper's report.
const (
	reportReady   = "ready"
	reportRefusal = "refusal"
	reportFailure = "failure"
)

// RunKeeperIfAsked must be the first call of main, and of TestMain in tests
// that use Join: it turns a process that Join started for the purpose into the
// keeper of a cluster, and then does not return. Otherwise it does nothing.
func RunKeeperIfAsked() {
	if os.Getenv(keeperVariable) == "" {
		return
	}
	if err := os.Unsetenv(keeperVariable); err != nil {
		panic(err) // only for an impossible name
	}
	// Who ends the cluster is decided by its members alone. Caught and not
	// ignored: to ignore a signal would be inherited by postgres.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	syscall.CloseOnExec(reportDescriptor)
	k := &keeper{report: os.NewFile(reportDescriptor, "report")}
	if err := k.keep(); err != nil {
		fmt.Fprintf(os.Stderr, "usher keeper: %v\n", err) // postgresql.log
		os.Exit(1)
	}
	os.Exit(0)
}

// keeper is the process between the members and PostgreSQL. It has no work of
// its own but to start postgres as its child, to wait until every member has
// gone, and to stop it.
type keeper struct {
	home   home
	report *os.File
	server *Server
}

func (k *keeper) keep() error {
	who, err := accountFor(".")
	if err != nil {
		return k.fail(err)
	}
	k.home = home{dir: ".", account: who}
	office, err := k.takeOffice()
	if err != nil {
		return k.fail(err)
	}
	members, err := k.home.openLock(membersLock)
	if err != nil {
		return k.fail(err)
	}
	if err := k.begin(); err != nil {
		return errors.Join(k.fail(err), office.free())
	}
	k.tell(reportReady)
	err = k.serve(members)
	// In this order: whoever then gets the members' lock finds no keeper, and
	// starts one.
	return errors.Join(err, office.free(), members.free())
}

// takeOffice makes this the only keeper, and writes its number for people.
func (k *keeper) takeOffice() (*flock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keeperLimit)
	defer cancel()
	office, err := k.home.openLock(keeperLock)
	if err != nil {
		return nil, err
	}
	if err := office.take(ctx, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	if err := office.file.Truncate(0); err != nil {
		return nil, fmt.Errorf("write the keeper's number: %w", err)
	}
	if _, err := office.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, fmt.Errorf("write the keeper's number: %w", err)
	}
	return office, nil
}

func (k *keeper) begin() error {
	if err := k.home.boundLog(); err != nil {
		return err
	}
	if err := k.startPostgres(); err != nil {
		return err
	}
	if err := k.createDatabase(); err != nil {
		return errors.Join(err, k.server.Stop())
	}
	return nil
}

func (k *keeper) startPostgres() error {
	hold, err := k.home.openLock(serverLock)
	if err != nil {
		return err
	}
	defer hold.file.Close() // not free: postgres keeps the lock
	k.server, err = k.home.bringUp(context.Background(), hold, true, nil)
	return err
}

// createDatabase connects by a path relative to the working directory, which
// is always short enough.
func (k *keeper) createDatabase() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	host := fmt.Sprintf("/proc/self/cwd/%s", socketDir)
	conn, err := pgx.Connect(ctx, socketURL(host, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the new server: %w", err)
	}
	defer conn.Close(ctx)
	var present bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", database).Scan(&present)
	if err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if present {
		return nil
	}
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize()); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

// serve returns when every member has gone and postgres was stopped, with the
// members' lock held; or when postgres ended under the members.
func (k *keeper) serve(members *flock) error {
	gone := make(chan error, 1)
	// Ends with the process at the latest: a blocked flock cannot be called off.
	go func() { gone <- members.takeHoweverLong(syscall.LOCK_EX) }()
	logCheck := time.NewTicker(logCheckInterval)
	defer logCheck.Stop()
	for restarts := 0; ; {
		select {
		case err := <-gone:
			return errors.Join(err, k.server.Stop())
		case <-logCheck.C:
			if err := k.home.boundLog(); err != nil {
				fmt.Fprintf(os.Stderr, "usher keeper: %v\n", err)
			}
		case <-k.server.ended:
			// One that ended by itself has said why, and would end again.
			if !k.server.signaled || restarts == restartLimit {
				return fmt.Errorf("PostgreSQL ended: %w", k.server.ending)
			}
			restarts++
			if err := k.startPostgres(); err != nil {
				return fmt.Errorf("start PostgreSQL again: %w", err)
			}
		}
	}
}

// fail tells the member why there is no server, and returns the same for the log.
func (k *keeper) fail(err error) error {
	report := reportFailure + " " + err.Error()
	if p, refused := problem.Of(err); refused {
		text, unwritten := writeRefusal(p)
		if unwritten == nil {
			report = reportRefusal + " " + text
		}
		err = errors.Join(err, unwritten)
	}
	k.tell(report)
	return err
}

// tell writes the report. The member may be gone: then there is nobody to
// tell, and the members' lock decides the rest.
func (k *keeper) tell(report string) {
	if _, err := k.report.WriteString(report); err != nil && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintf(os.Stderr, "usher keeper: report to the first member: %v\n", err)
	}
	if err := k.report.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "usher keeper: report to the first member: %v\n", err)
	}
}
