//go:build linux

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
)

// The test binary plays every part: the tests, the keeper (RunKeeperIfAsked),
// and the processes that join and are killed.
const (
	roleVariable = "CLUSTER_TEST_ROLE"
	roleMember   = "member" // joins, and leaves at the end of its standard input
	roleOwner    = "owner"  // starts a cluster of its own, likewise

	endLimit = 20 * time.Second // for another process to end, or to answer
	endPoll  = 5 * time.Millisecond
)

func TestMain(m *testing.M) {
	RunKeeperIfAsked()
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Args[1]); err != nil {
			fmt.Println("error", strconv.Quote(err.Error()))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role, dir string) error {
	var url string
	var end func() error
	switch role {
	case roleMember:
		m, err := Join(context.Background(), dir)
		if err != nil {
			return err
		}
		url, end = m.URL(), m.Leave
	case roleOwner:
		s, err := Start(context.Background(), dir)
		if err != nil {
			return err
		}
		url, end = s.URL("postgres"), s.Stop
	}
	fmt.Println("joined", strconv.Quote(url))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return end()
}

// actor is a process of the test binary in one of the roles.
type actor struct {
	cmd   *exec.Cmd
	stdin io.Closer
	says  *bufio.Reader
}

func launch(t *testing.T, role, dir string, as *syscall.Credential) *actor {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	a := &actor{cmd, stdin, bufio.NewReader(stdout)}
	t.Cleanup(func() { a.kill() })
	return a
}

// hear waits for the line that the actor prints once it has joined, or failed.
func (a *actor) hear(t *testing.T) (kind, words string) {
	t.Helper()
	line, err := a.says.ReadString('\n')
	if err != nil {
		t.Fatalf("the process ended without a word: %v", err)
	}
	kind, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
	words, err = strconv.Unquote(quoted)
	must(t, err)
	return kind, words
}

func (a *actor) joined(t *testing.T) (url string) {
	t.Helper()
	kind, words := a.hear(t)
	if kind != "joined" {
		t.Fatalf("the process did not join: %s", words)
	}
	return words
}

func (a *actor) kill() {
	if a.cmd.ProcessState == nil {
		_ = a.cmd.Process.Kill() // it may have ended already
		_ = a.cmd.Wait()         // "signal: killed"
	}
}

func (a *actor) leave(t *testing.T) {
	t.Helper()
	must(t, a.stdin.Close())
	must(t, a.cmd.Wait())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a directory that every account may reach, unlike t.TempDir, whose
// parent is closed; in memory if possible.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "usher-cluster-")
	if err != nil {
		dir, err = os.MkdirTemp("/tmp", "usher-cluster-")
	}
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		must(t, os.RemoveAll(dir))
	})
	return dir
}

// clusterDir is one for a cluster, in a place. Whatever still runs in it at the
// end of the test is killed.
func clusterDir(t *testing.T) string {
	t.Helper()
	return under(t, place(t), "usher")
}

func under(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	endAtCleanup(t, dir)
	return dir
}

func endAtCleanup(t *testing.T, dir string) {
	t.Cleanup(func() {
		for _, name := range []string{keeperLock, "data/postmaster.pid"} {
			pid := fileNumber(dir, name)
			if pid <= 1 || !isAlive(pid) || !belongs(pid, dir) {
				continue
			}
			t.Logf("process %d of %s was left over", pid, name)
			// Immediate shutdown, for postgres to clear its shared memory. Any
			// of these may come too late, when the process has ended just now.
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			waitGone(t, pid)
		}
	})
}

// belongs guards the cleanup against a number that another process has by now.
func belongs(pid int, dir string) bool {
	work, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && (work == dir || work == filepath.Join(dir, dataDir))
}

func fileNumber(dir, name string) int {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	number, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return number
}

func keeperOf(t *testing.T, dir string) int { t.Helper(); return pidIn(t, dir, keeperLock) }
func postgresOf(t *testing.T, dir string) int {
	t.Helper()
	return pidIn(t, dir, "data/postmaster.pid")
}

func pidIn(t *testing.T, dir, name string) int {
	t.Helper()
	pid := fileNumber(dir, name)
	if pid == 0 || !isAlive(pid) {
		t.Fatalf("%s names process %d, which does not run", name, pid)
	}
	return pid
}

// isAlive: a zombie has ended, and only its parent has not looked yet.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	afterName := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(afterName), "Z")
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("end of process %d", pid), func() error {
		if isAlive(pid) {
			return errors.New("it runs")
		}
		return nil
	})
}

func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	deadline := time.Now().Add(endLimit)
	for {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

func join(t *testing.T, dir string) *Member {
	t.Helper()
	m, err := Join(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, m.Leave()) })
	return m
}

func execute(url, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

func ask(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	var answer string
	must(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

func expectRefusal(t *testing.T, err error, words ...string) {
	t.Helper()
	if _, refused := problem.Of(err); !refused {
		t.Fatalf("want a sentence, got %v", err)
	}
	sentence := i18n.Speak("en").Sentence(err)
	for _, word := range words {
		if !strings.Contains(sentence, word) {
			t.Errorf("the sentence lacks %q:\n%s", word, sentence)
		}
	}
}
