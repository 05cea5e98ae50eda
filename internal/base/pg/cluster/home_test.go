//go:build linux

package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestJoin_OddPaths(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"spaces and accents": "école d'ingénieurs + 50% Kɔ̀nyɛ́ & fils",
		"comma":              "a,b",
		"long":               strings.Repeat("long-", 30) + "/" + strings.Repeat("path-", 30),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := under(t, place(t), dir)
			m := join(t, dir)
			must(t, execute(m.URL(), "create table kept as select 1 as n"))
			other := launch(t, roleMember, dir, nil)
			if n := ask(t, other.joined(t), "select n::text from kept"); n != "1" {
				t.Fatalf("read %q", n)
			}
			other.leave(t)
			alias := m.home.aliasDir()
			must(t, m.Leave())
			if alias == "" {
				return
			}
			if _, err := os.Lstat(alias); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", alias, err)
			}
		})
	}
}

func TestAlias_MadeBySomebodyElse(t *testing.T) {
	t.Parallel()
	dir := under(t, place(t), strings.Repeat("x", socketPathBytes))
	alias := home{dir: dir}.aliasDir()
	must(t, os.Mkdir(alias, 0o755))
	must(t, os.Chmod(alias, 0o777))
	t.Cleanup(func() { must(t, os.Remove(alias)) })
	_, err := Join(t.Context(), dir)
	expectRefusal(t, err, alias)
}

func TestJoin_ParentClosedToTheServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs PostgreSQL under another account")
	}
	closed := filepath.Join(place(t), "closed")
	must(t, os.Mkdir(closed, 0o700))
	dir := under(t, closed, "usher")
	_, err := Join(t.Context(), dir)
	expectRefusal(t, err, closed, "--dir")
	// Its rights are somebody's decision.
	info, err := os.Stat(closed)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s was opened: %v", closed, info.Mode())
	}
}

func TestJoin_DirectoryWithOtherThingsKeepsItsRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs PostgreSQL under another account")
	}
	dir := clusterDir(t)
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "letter"), nil, 0o600))
	_, err := Join(t.Context(), dir)
	expectRefusal(t, err, dir, "--dir")
}

func TestJoin_NotADirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(place(t), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Join(t.Context(), dir)
		expectRefusal(t, err, "--dir")
	}
}

func TestJoin_OtherDataInTheWay(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	must(t, os.MkdirAll(filepath.Join(dir, dataDir, "photos"), 0o755))
	_, err := Join(t.Context(), dir)
	expectRefusal(t, err, filepath.Join(dir, dataDir), "--dir")
}

func TestJoin_AsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the other tests do the same when they do not run as root")
	}
	const uid, gid = 65534, 65534
	own := filepath.Join(place(t), "home")
	must(t, os.Mkdir(own, 0o700))
	must(t, os.Chown(own, uid, gid))
	dir := under(t, own, "usher")
	member := launch(t, roleMember, dir, &syscall.Credential{Uid: uid, Gid: gid})
	url := member.joined(t)
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is open: %v", info.Mode())
	}
	must(t, execute(url, "create table kept as select 1 as n"))

	// Root joins the user's cluster, and what it starts stays the user's.
	root := join(t, dir)
	if n := ask(t, root.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
	member.leave(t)
	must(t, root.Leave())
	must(t, join(t, dir).Leave())
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		must(t, err)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid {
			t.Errorf("%s belongs to %d", entry.Name(), owner)
		}
	}
	again := launch(t, roleMember, dir, &syscall.Credential{Uid: uid, Gid: gid})
	again.joined(t)
	again.leave(t)
}

func TestJoin_OrdinaryUserMayNotWrite(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	dir := under(t, place(t), "usher")
	member := launch(t, roleMember, dir, &syscall.Credential{Uid: 65534, Gid: 65534})
	kind, words := member.hear(t)
	if kind != "error" || !strings.Contains(words, "cluster_dir_closed") || !strings.Contains(words, dir) {
		t.Fatalf("%s: %s", kind, words)
	}
}

func TestDefaultDir(t *testing.T) {
	if os.Geteuid() == 0 {
		dir, err := DefaultDir()
		must(t, err)
		if dir != "/var/lib/usher" {
			t.Fatal(dir)
		}
		return
	}
	t.Setenv("XDG_DATA_HOME", "/data")
	dir, err := DefaultDir()
	must(t, err)
	if dir != "/data/usher" {
		t.Fatal(dir)
	}
}

func TestBoundLog(t *testing.T) {
	t.Parallel()
	dir := place(t)
	h, err := openHome(dir)
	must(t, err)
	must(t, os.WriteFile(h.path(logFile), []byte("first\n"), 0o600))
	must(t, h.boundLog())
	if content, err := os.ReadFile(h.path(logFile)); err != nil || string(content) != "first\n" {
		t.Fatalf("a short log was touched: %q %v", content, err)
	}
	long := append(make([]byte, logLimitBytes), "last\n"...)
	must(t, os.WriteFile(h.path(logFile), long, 0o600))
	must(t, h.boundLog())
	info, err := os.Stat(h.path(logFile))
	must(t, err)
	old, err := os.ReadFile(h.path(oldLogFile))
	must(t, err)
	if info.Size() != 0 || len(old) != logLimitBytes || !strings.HasSuffix(string(old), "last\n") {
		t.Fatalf("the log has %d bytes, the old one %d", info.Size(), len(old))
	}
}
