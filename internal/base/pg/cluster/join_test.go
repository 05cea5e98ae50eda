//go:build linux

package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestJoin_FirstStartsAndLastEnds(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	start := time.Now()
	first := join(t, dir)
	t.Logf("cold start %v", time.Since(start))
	keeper, postgres := keeperOf(t, dir), postgresOf(t, dir)

	start = time.Now()
	second := join(t, dir)
	t.Logf("join %v", time.Since(start))
	must(t, execute(first.URL(), "create table kept as select 'Kɔ̀ɔ̀nyɛ́' as word"))
	must(t, first.Leave())
	if !isAlive(postgres) {
		t.Fatal("PostgreSQL ended under a member")
	}
	if word := ask(t, second.URL(), "select word from kept"); word != "Kɔ̀ɔ̀nyɛ́" {
		t.Fatalf("read %q", word)
	}
	start = time.Now()
	must(t, second.Leave())
	t.Logf("last leave %v", time.Since(start))
	if isAlive(postgres) {
		t.Fatal("the last member left before PostgreSQL had ended")
	}
	waitGone(t, keeper)

	start = time.Now()
	again := join(t, dir)
	t.Logf("warm start %v", time.Since(start))
	if word := ask(t, again.URL(), "select word from kept"); word != "Kɔ̀ɔ̀nyɛ́" {
		t.Fatalf("the second start lost data: %q", word)
	}
}

func TestJoin_ServerIsAsPromised(t *testing.T) {
	t.Parallel()
	m := join(t, clusterDir(t))
	for sql, want := range map[string]string{
		"show fsync":                      "on",
		"show full_page_writes":           "on",
		"show listen_addresses":           "",
		"show max_connections":            "100",
		"show jit":                        "off",
		"show server_encoding":            "UTF8",
		"show timezone":                   "UTC",
		"select current_user::text":       "usher",
		"select current_database()::text": "usher",
		"select datcollate from pg_database where datname = 'usher'":                                      "C.UTF-8",
		"select string_agg(w, ' ' order by w collate \"fr-x-icu\") from unnest(array['z','é','e','a']) w": "a e é z",
	} {
		if got := ask(t, m.URL(), sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
	for _, extension := range []string{"btree_gist", "unaccent", "pg_trgm"} {
		if err := execute(m.URL(), "create extension "+extension); err != nil {
			t.Errorf("%s: %v", extension, err)
		}
	}
}

func TestJoin_FilesAreClosedToOthers(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	join(t, dir)
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) == 0 {
		t.Fatal("nothing was made")
	}
	for _, entry := range entries {
		info, err := entry.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", entry.Name(), info.Mode())
		}
	}
}

func TestJoin_AtOnceEndsUpOnOneServer(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	var racers []*actor
	for range 4 {
		racers = append(racers, launch(t, roleMember, dir, nil))
	}
	servers := map[string]bool{}
	for _, racer := range racers {
		servers[ask(t, racer.joined(t), "select pg_postmaster_start_time()::text")] = true
	}
	if len(servers) != 1 {
		t.Fatalf("%d servers: %v", len(servers), servers)
	}
	postgres := postgresOf(t, dir)
	for i, racer := range racers {
		if !isAlive(postgres) {
			t.Fatalf("PostgreSQL ended with %d members left", len(racers)-i)
		}
		racer.leave(t)
	}
	if isAlive(postgres) {
		t.Fatal("the last member left before PostgreSQL had ended")
	}
}

// Members come while the keeper stops: nobody may end up on a server that ends.
func TestJoin_WhileOthersLeave(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	must(t, join(t, dir).Leave())
	var comers sync.WaitGroup
	for range 3 {
		comers.Go(func() {
			for range 6 {
				m, err := Join(t.Context(), dir)
				if err != nil {
					t.Errorf("join: %v", err)
					return
				}
				if err := execute(m.URL(), "select 1"); err != nil {
					t.Errorf("use: %v", err)
				}
				if err := m.Leave(); err != nil {
					t.Errorf("leave: %v", err)
				}
			}
		})
	}
	comers.Wait()
	if pid := fileNumber(dir, "data/postmaster.pid"); pid != 0 {
		t.Errorf("PostgreSQL %d was left", pid)
	}
}

func TestJoin_WhileTheKeeperStops(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	member := launch(t, roleMember, dir, nil)
	member.joined(t)
	postgres := postgresOf(t, dir)
	must(t, syscall.Kill(postgres, syscall.SIGSTOP)) // makes the stop last
	member.kill()
	h, err := openHome(dir)
	must(t, err)
	members, err := h.openLock(membersLock)
	must(t, err)
	eventually(t, "the keeper stopping", func() error {
		taken, err := members.try(syscall.LOCK_SH)
		if taken {
			return errors.Join(members.release(), errors.New("not yet"))
		}
		return err
	})
	must(t, members.file.Close())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Join(ctx, dir)
	expectRefusal(t, err, "still stopping")
	must(t, syscall.Kill(postgres, syscall.SIGCONT))
	must(t, execute(join(t, dir).URL(), "select 1"))
	if isAlive(postgres) {
		t.Fatal("the old PostgreSQL is still there")
	}
}

// A server without a keeper is about to end: nobody joins it, though it answers.
func TestJoin_ServerWithoutKeeper(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	unkept, err := Start(t.Context(), dir)
	must(t, err)
	defer func() { must(t, unkept.Stop()) }()
	must(t, execute(unkept.URL("postgres"), "create database usher"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("want to wait for its end, got %v", err)
	}
	must(t, unkept.Stop())
	must(t, execute(join(t, dir).URL(), "select 1"))
}

func TestMembersKilled_ServerStaysForTheRestAndThenEnds(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	starter := launch(t, roleMember, dir, nil)
	starter.joined(t)
	keeper, postgres := keeperOf(t, dir), postgresOf(t, dir)
	other := launch(t, roleMember, dir, nil)
	url := other.joined(t)

	starter.kill()
	must(t, execute(url, "create table kept as select 1 as n"))
	must(t, execute(url, "insert into kept values (2)"))
	if !isAlive(postgres) {
		t.Fatal("PostgreSQL ended under a member")
	}
	other.kill()
	waitGone(t, postgres)
	waitGone(t, keeper)
	if n := ask(t, join(t, dir).URL(), "select count(*)::text from kept"); n != "2" {
		t.Fatalf("%s rows are left of 2", n)
	}
}

func TestMemberKilled_WhileTheServerStarts(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	starter := launch(t, roleMember, dir, nil)
	eventually(t, "initdb", func() error {
		_, err := os.Stat(filepath.Join(dir, initdbDir, "PG_VERSION"))
		return err
	})
	keeper := keeperOf(t, dir)
	starter.kill()
	waitGone(t, keeper)
	if pid := fileNumber(dir, "data/postmaster.pid"); pid != 0 {
		t.Errorf("PostgreSQL %d was left", pid)
	}
}

func TestKeeperKilled_NextMemberGetsAServerWithTheData(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	orphaned := join(t, dir)
	must(t, execute(orphaned.URL(), "create table kept as select 1 as n"))
	postgres, keeper := postgresOf(t, dir), keeperOf(t, dir)
	must(t, syscall.Kill(keeper, syscall.SIGKILL))
	waitGone(t, keeper) // a busy machine delivers the signal later

	// At once, while the old PostgreSQL may still answer.
	next := join(t, dir)
	if isAlive(postgres) {
		t.Fatal("joined a server that was about to end")
	}
	if n := ask(t, next.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
	// The member of before counts for the new keeper too.
	must(t, next.Leave())
	if n := ask(t, orphaned.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
}

func TestEverybodyKilled_PostgresEnds(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	member := launch(t, roleMember, dir, nil)
	member.joined(t)
	keeper, postgres := keeperOf(t, dir), postgresOf(t, dir)
	must(t, syscall.Kill(keeper, syscall.SIGKILL))
	member.kill()
	waitGone(t, postgres)
}

func TestPostgresKilled_KeeperStartsItAgain(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	m := join(t, dir)
	must(t, execute(m.URL(), "create table kept as select 1 as n"))
	killed := postgresOf(t, dir)
	must(t, syscall.Kill(killed, syscall.SIGKILL))
	waitGone(t, killed)
	eventually(t, "a new server", func() error { return execute(m.URL(), "select 1") })
	if n := ask(t, m.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
	if joined := join(t, dir); ask(t, joined.URL(), "select n::text from kept") != "1" {
		t.Fatal("the next member sees other data")
	}
}

func TestPostgresEndedByHand_NextMemberStartsItAgain(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	join(t, dir)
	keeper, postgres := keeperOf(t, dir), postgresOf(t, dir)
	must(t, syscall.Kill(postgres, syscall.SIGINT))
	waitGone(t, postgres)
	waitGone(t, keeper)
	must(t, execute(join(t, dir).URL(), "select 1"))
}

func TestTerminalSignals_DoNotReachTheServer(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	m := join(t, dir)
	keeper := keeperOf(t, dir)
	session, err := sessionOf(keeper)
	must(t, err)
	if session != keeper {
		t.Errorf("the keeper belongs to session %d", session)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		must(t, syscall.Kill(keeper, signal))
	}
	must(t, execute(m.URL(), "select 1"))
	must(t, m.Leave())
	waitGone(t, keeper)
}

// A lock that a child inherited would outlive its member.
func TestLocks_AreNotInherited(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	join(t, dir)
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	if held := openBelow(t, child.Process.Pid, dir); len(held) > 0 {
		t.Errorf("a child of a member has %v", held)
	}
	must(t, input.Close())
	must(t, child.Wait())
	for _, held := range openBelow(t, postgresOf(t, dir), dir) {
		if strings.HasSuffix(held, ".lock") && !slices.Contains([]string{serverLock, ".s.PGSQL.5432.lock"}, filepath.Base(held)) {
			t.Errorf("PostgreSQL has %s", held)
		}
	}
}

func openBelow(t *testing.T, pid int, dir string) (held []string) {
	t.Helper()
	fds := "/proc/" + itoa(pid) + "/fd"
	entries, err := os.ReadDir(fds)
	must(t, err)
	for _, entry := range entries {
		// It may have been closed since it was listed.
		if file, err := os.Readlink(filepath.Join(fds, entry.Name())); err == nil && strings.HasPrefix(file, dir) {
			held = append(held, file)
		}
	}
	return held
}

func sessionOf(pid int) (int, error) {
	session, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(session), nil
}

func TestInitdbInterrupted_IsBegunAgain(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	first := launch(t, roleMember, dir, nil)
	eventually(t, "initdb", func() error {
		_, err := os.Stat(filepath.Join(dir, initdbDir, "PG_VERSION"))
		return err
	})
	must(t, syscall.Kill(keeperOf(t, dir), syscall.SIGKILL))
	if kind, words := first.hear(t); kind != "error" {
		t.Fatalf("want an error, got %s %s", kind, words)
	}
	if _, err := os.Stat(filepath.Join(dir, dataDir)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("half of an initdb passes for data: %v", err)
	}
	must(t, execute(join(t, dir).URL(), "select 1"))
	if _, err := os.Stat(filepath.Join(dir, initdbDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the interrupted initdb is still there: %v", err)
	}
}

func TestStalePostmasterPid_OfALivingStranger(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	must(t, join(t, dir).Leave())
	h, err := openHome(dir)
	must(t, err)
	elsewhere := clusterDir(t)
	stranger := launch(t, roleOwner, elsewhere, nil)
	stranger.joined(t)
	// Of the same account: postgres may signal it, and takes it for a server.
	pid := postgresOf(t, elsewhere)
	stale := h.path(filepath.Join(dataDir, "postmaster.pid"))
	content := strings.Join([]string{itoa(pid), dir + "/data", "1", port, "../socket", "", "", "ready", ""}, "\n")
	must(t, os.WriteFile(stale, []byte(content), 0o600))
	must(t, execute(join(t, dir).URL(), "select 1"))
	stranger.leave(t)
}

func TestStartedByHand_IsRefused(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	must(t, join(t, dir).Leave())
	h, err := openHome(dir)
	must(t, err)
	bin, err := FindBinaries()
	must(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	byHand := h.command(bin, &flock{null}, null, nil)
	must(t, byHand.Start())
	defer func() {
		must(t, byHand.Process.Signal(syscall.SIGINT))
		must(t, byHand.Wait())
	}()
	eventually(t, "the server started by hand", func() error {
		pid, status, err := readPostmaster(h.path("data/postmaster.pid"))
		if err == nil && (pid != byHand.Process.Pid || status != "ready") {
			return errors.New("not ready")
		}
		return err
	})
	_, err = Join(t.Context(), dir)
	expectRefusal(t, err, itoa(byHand.Process.Pid), "kill -INT")
}

func TestDirectoryMoved_WhileTheServerRuns(t *testing.T) {
	t.Parallel()
	parent := place(t)
	before := under(t, parent, "before")
	after := under(t, parent, "after")
	early := join(t, before)
	must(t, execute(early.URL(), "create table kept as select 1 as n"))
	postgres := postgresOf(t, before)
	must(t, os.Rename(before, after))

	late := join(t, after)
	if postgresOf(t, after) != postgres {
		t.Fatal("a second server")
	}
	if n := ask(t, late.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
	must(t, late.Leave())
	if !isAlive(postgres) {
		t.Fatal("PostgreSQL ended under a member")
	}
	must(t, early.Leave())
	if isAlive(postgres) {
		t.Fatal("the last member left before PostgreSQL had ended")
	}
	if n := ask(t, join(t, after).URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
}

func TestJoin_ContextEnds(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	must(t, os.MkdirAll(dir, 0o755))
	h, err := openHome(dir)
	must(t, err)
	turn, err := h.openLock(startLock)
	must(t, err)
	must(t, turn.take(t.Context(), syscall.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Join(ctx, dir)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("want the end of the context, got %v", err)
	}
	expectRefusal(t, err, "another command", dir)
	must(t, turn.free())
	must(t, execute(join(t, dir).URL(), "select 1"))
}

func TestJoin_ContextEndsWhileTheServerStarts(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := Join(ctx, dir)
		failed <- err
	}()
	eventually(t, "initdb", func() error {
		_, err := os.Stat(filepath.Join(dir, initdbDir))
		return err
	})
	keeper := keeperOf(t, dir)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("want the end of the context, got %v", err)
	}
	waitGone(t, keeper)
	if pid := fileNumber(dir, "data/postmaster.pid"); pid != 0 {
		t.Errorf("PostgreSQL %d was left", pid)
	}
}

// An answer that waiting does not change is told at once: whoever joins holds up all others.
func TestJoin_OddAnswerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	m := join(t, dir)
	must(t, execute(socketURL(m.host, "postgres"), "drop database "+database))
	ctx, cancel := context.WithTimeout(t.Context(), joinLimit/2)
	defer cancel()
	_, err := Join(ctx, dir)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "3D000" || ctx.Err() != nil {
		t.Errorf("answered with %v, context %v", err, ctx.Err())
	}
	if taken, err := m.turn.try(syscall.LOCK_EX); !taken || err != nil {
		t.Errorf("start.lock is still held: %v", err)
	}
	must(t, m.turn.release())
}

func TestJoin_KeepsAPersonWaitingForHalfAMinuteAtMost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the whole of joinLimit")
	}
	dir := clusterDir(t)
	h, err := openHome(dir)
	must(t, err)
	turn, err := h.openLock(startLock)
	must(t, err)
	must(t, turn.take(t.Context(), syscall.LOCK_EX)) // another command that hangs
	defer func() { must(t, turn.free()) }()
	began := time.Now()
	_, err = Join(t.Context(), dir)
	expectRefusal(t, err, "another command is still starting or stopping it", logFile, keeperLock)
	if waited := time.Since(began); waited > 31*time.Second {
		t.Errorf("waited for %v", waited)
	}
}
