//go:build linux

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestJoin_DataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	m := join(t, dir)
	must(t, execute(m.URL(), "create table kept as select 1 as n"))
	must(t, m.Leave())
	file := filepath.Join(dir, dataDir, "PG_VERSION")
	right, err := os.ReadFile(file)
	must(t, err)
	for version, words := range map[string][]string{
		"99\n":   {"PostgreSQL 99", "apt-get install postgresql-99", dir},
		"13\n":   {"PostgreSQL 13", "15 or newer", "apt-get install postgresql-13", "pg_dumpall", dir},
		"9.6\n":  {"PG_VERSION"},
		"what\n": {"PG_VERSION"},
	} {
		must(t, os.WriteFile(file, []byte(version), 0o600))
		_, err := Join(t.Context(), dir)
		expectRefusal(t, err, words...)
	}
	must(t, os.WriteFile(file, right, 0o600))
	if n := ask(t, join(t, dir).URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
}

// The commands that a person is told to type are typed here.
func TestDumpAndRestore_CommandsWork(t *testing.T) {
	t.Parallel()
	dir := under(t, place(t), "l'école")
	m := join(t, dir)
	must(t, execute(m.URL(), "create role clerk; create table kept as select 1 as n; grant select on kept to clerk"))
	must(t, m.Leave())
	bin, err := FindBinaries()
	must(t, err)
	h, err := openHome(dir)
	must(t, err)
	script := "set -e\n" + h.dumpAndRestore(bin.Major, bin.Dir, bin.Dir)
	printed, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, printed)
	}
	old, err := os.Stat(filepath.Join(dir, "data-"+itoa(bin.Major)))
	must(t, err)
	current, err := os.Stat(filepath.Join(dir, dataDir))
	must(t, err)
	if os.SameFile(old, current) {
		t.Fatal("the data was not made anew")
	}
	restored := join(t, dir)
	if may := ask(t, restored.URL(), "select has_table_privilege('clerk', 'kept', 'select')::text"); may != "true" {
		t.Fatalf("the right of the clerk: %s", may)
	}
	if n := ask(t, restored.URL(), "select n::text from kept"); n != "1" {
		t.Fatalf("read %q", n)
	}
}

func TestJoin_DataOlderThanThePrograms(t *testing.T) {
	t.Setenv(binariesVariable, pretend(t, "postgres (PostgreSQL) 99.1"))
	dir := place(t)
	_, err := home{dir: dir}.binariesFor(98)
	expectRefusal(t, err, "apt-get install postgresql-98", dir, "/usr/lib/postgresql/98/bin/pg_dumpall", "/initdb")
}

func TestFindBinaries_OfTheDataBeforeTheChosenOnes(t *testing.T) {
	packaged := packagedDirs()
	if len(packaged) == 0 {
		t.Skip("needs Debian's package")
	}
	t.Setenv(binariesVariable, pretend(t, "postgres (PostgreSQL) 99.1"))
	bin, err := home{dir: place(t)}.binariesFor(packagedMajor(packaged[0]))
	must(t, err)
	if bin.Dir != packaged[0] {
		t.Fatalf("%+v", bin)
	}
}

func TestFindBinaries_None(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv(binariesVariable, place(t))
	_, err := FindBinaries()
	expectRefusal(t, err, "apt-get install postgresql", binariesVariable)
	_, err = Join(t.Context(), clusterDir(t))
	expectRefusal(t, err, "apt-get install postgresql")
	_, err = home{dir: place(t)}.binariesFor(98)
	expectRefusal(t, err, "PostgreSQL 98", "apt-get install postgresql")
}

func TestFindBinaries_TooOld(t *testing.T) {
	t.Setenv(binariesVariable, pretend(t, "postgres (PostgreSQL) 13.4 (Debian 13.4-1)"))
	_, err := FindBinaries()
	expectRefusal(t, err, "13", "apt-get install postgresql")
}

func TestFindBinaries_InPathBeforePackaged(t *testing.T) {
	t.Setenv(binariesVariable, "")
	old := pretend(t, "postgres (PostgreSQL) 9.6.24")
	chosen := pretend(t, "postgres (PostgreSQL) 19devel")
	t.Setenv("PATH", old+":"+chosen+":"+os.Getenv("PATH"))
	bin, err := FindBinaries()
	must(t, err)
	if bin.Major != 19 || bin.Dir != chosen {
		t.Fatalf("%+v", bin)
	}
}

// pretend makes a directory of programs that only know their version.
func pretend(t *testing.T, version string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "usher-cluster-") // /dev/shm may forbid programs
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	for _, name := range []string{"postgres", "initdb"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755))
	}
	return dir
}

func containsAll(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
