//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"usher/internal/base/problem"
)

const (
	// oldestMajor is the oldest PostgreSQL that the program works with.
	oldestMajor = 15

	// binariesVariable names the one directory to look in, instead of PATH
	// and the places of Debian's packages.
	binariesVariable = "USHER_POSTGRES_BIN"

	debianBinaries = "/usr/lib/postgresql/*/bin"
)

// Binaries is one PostgreSQL server installed on this machine.
type Binaries struct {
	Dir   string // holds postgres and initdb
	Major int    // 15 for 15.18
}

func (b Binaries) program(name string) string { return filepath.Join(b.Dir, name) }

// FindBinaries returns the PostgreSQL that a new cluster is made with: the
// first in PATH, then in /usr/lib/postgresql, newest first, that is new
// enough; or the one that USHER_POSTGRES_BIN names. A problem says what to
// type when there is none.
func FindBinaries() (Binaries, error) {
	var old []string
	for _, dir := range binaryDirs() {
		found, err := inspectBinaries(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Binaries{}, err
		}
		if found.Major >= oldestMajor {
			return found, nil
		}
		old = append(old, fmt.Sprintf("%d (%s)", found.Major, found.Dir))
	}
	return Binaries{}, refuseBinaries(old)
}

// findMajor looks for the one version that can read some data, among the
// packages too when USHER_POSTGRES_BIN names another one.
func findMajor(major int) (found Binaries, ok bool, err error) {
	for _, dir := range append(binaryDirs(), packagedDirs()...) {
		found, err := inspectBinaries(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || found.Major == major {
			return found, err == nil, err
		}
	}
	return Binaries{}, false, nil
}

// refuseBinaries distinguishes a machine with nothing from one with only old versions.
func refuseBinaries(old []string) error {
	if len(old) > 0 {
		return refuse("cluster_postgres_too_old", problem.Facts{"oldest": strconv.Itoa(oldestMajor), "found": strings.Join(old, ", ")})
	}
	if chosen := os.Getenv(binariesVariable); chosen != "" {
		return refuse("cluster_postgres_not_there", problem.Facts{"dir": chosen, "variable": binariesVariable})
	}
	return refuse("cluster_postgres_missing", problem.Facts{"variable": binariesVariable})
}

func binaryDirs() []string {
	if chosen := os.Getenv(binariesVariable); chosen != "" {
		return []string{chosen}
	}
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // never run what lies in the current directory
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, packagedDirs()...)
}

func packagedDirs() []string {
	dirs, err := filepath.Glob(debianBinaries)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	slices.SortFunc(dirs, func(a, b string) int { return packagedMajor(b) - packagedMajor(a) })
	return dirs
}

// packagedMajor is 15 for /usr/lib/postgresql/15/bin.
func packagedMajor(dir string) int {
	major, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	if err != nil {
		return 0 // not a version: looked at last
	}
	return major
}

// inspectBinaries asks postgres for its version. Without postgres, or without
// initdb beside it (Debian's client package), the error is fs.ErrNotExist.
// A link to postgres is followed: the other programs lie where it leads.
func inspectBinaries(dir string) (Binaries, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return Binaries{}, fmt.Errorf("look for postgres: %w", fs.ErrNotExist)
	}
	found := Binaries{Dir: filepath.Dir(real)}
	if _, err := os.Stat(found.program("initdb")); err != nil {
		return Binaries{}, fmt.Errorf("look for initdb: %w", fs.ErrNotExist)
	}
	printed, err := exec.Command(found.program("postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask %s for its version: %w", found.program("postgres"), err)
	}
	found.Major, err = majorOf(string(printed))
	if err != nil {
		return Binaries{}, fmt.Errorf("version of %s: %w", found.program("postgres"), err)
	}
	return found, nil
}

// majorOf reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", and
// "postgres (PostgreSQL) 19devel".
func majorOf(printed string) (int, error) {
	const versionField = 2
	fields := strings.Fields(printed)
	if len(fields) <= versionField {
		return 0, fmt.Errorf("not understood: %q", printed)
	}
	version := fields[versionField]
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, err := strconv.Atoi(version[:end])
	if err != nil {
		return 0, fmt.Errorf("not understood: %q", printed)
	}
	return major, nil
}

// refuseClosedBinaries: root may run a PostgreSQL in its own home, the account
// of the server may not.
func (h home) refuseClosedBinaries(bin Binaries) error {
	closed, err := h.account.firstClosed(bin.Dir)
	if err != nil || closed == "" {
		return err
	}
	return refuse("cluster_postgres_closed", problem.Facts{"user": h.account.name, "dir": closed})
}
