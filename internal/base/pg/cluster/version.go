//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"usher/internal/base/problem"
)

// dataMajor is the version that made the data, or 0 when there is none yet.
func (h home) dataMajor() (int, error) {
	content, err := os.ReadFile(h.path(filepath.Join(dataDir, "PG_VERSION")))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, h.refuseOtherData()
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, refuse("cluster_version_unreadable", problem.Facts{"file": filepath.Join(h.shown(), dataDir, "PG_VERSION")})
	}
	return major, nil
}

// refuseOtherData: without PG_VERSION there must be no data directory, or an
// empty one, which goes: initdb's result takes its place.
func (h home) refuseOtherData() error {
	err := os.Remove(h.path(dataDir))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return refuse("cluster_data_foreign", problem.Facts{"dir": filepath.Join(h.shown(), dataDir)})
}

// binariesFor chooses the PostgreSQL of the data's own version, since no other
// can read it. major 0 means that the data is still to be made.
func (h home) binariesFor(major int) (Binaries, error) {
	if major == 0 {
		return FindBinaries()
	}
	if major >= oldestMajor {
		same, found, err := findMajor(major)
		if found || err != nil {
			return same, err
		}
	}
	present, err := FindBinaries()
	if p, refused := problem.Of(err); refused {
		facts := problem.Facts{"data": h.shown(), "major": strconv.Itoa(major)}
		maps.Copy(facts, p.Facts)
		return Binaries{}, refuse(p.Code, facts)
	}
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{}, h.refuseVersion(major, present)
}

func (h home) refuseVersion(major int, present Binaries) error {
	old := strings.Replace(debianBinaries, "*", strconv.Itoa(major), 1)
	facts := problem.Facts{
		"data": h.shown(), "major": strconv.Itoa(major), "present": strconv.Itoa(present.Major), "programs": present.Dir,
		"oldest": strconv.Itoa(oldestMajor), "install": "apt-get install postgresql-" + strconv.Itoa(major), "repository": packageRepository,
		"commands": h.dumpAndRestore(major, old, present.Dir), "kept": oldData(major), "dump": dumpFile(major),
	}
	switch {
	case major < oldestMajor:
		return refuse("cluster_data_too_old", facts)
	case present.Major < major: // a dump is not meant for an older version
		return refuse("cluster_data_newer", facts)
	}
	return refuse("cluster_data_other", facts)
}

// packageRepository adds the PostgreSQL project's own packages to apt, which have every version.
const packageRepository = "/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh"

func oldData(major int) string { return fmt.Sprintf("%s-%d", dataDir, major) }

func dumpFile(major int) string { return fmt.Sprintf("usher-%d.sql", major) }

// dumpAndRestore are the commands that dump the data with the version that made it and restore it
// with the one that is there. Each server listens on the cluster's own socket directory only, and each
// client finds it through its working directory, so that the length of the path does not matter.
func (h home) dumpAndRestore(major int, oldBinaries, newBinaries string) string {
	dir := h.shown()
	as := ""
	if h.account.credential() != nil {
		as = "setpriv --reuid=" + strconv.Itoa(int(h.account.uid)) + " --regid=" + strconv.Itoa(int(h.account.gid)) + " --clear-groups "
	}
	old, dump := oldData(major), dumpFile(major)
	start := func(binaries string) string {
		return as + binaries + "/pg_ctl -D " + dataDir + ` -w -l /dev/null -o "-c listen_addresses= -c unix_socket_directories=../` + socketDir + ` -c port=` + port + `" start`
	}
	stop := func(binaries string) string { return as + binaries + "/pg_ctl -D " + dataDir + " -w stop" }
	client := " -h /proc/self/cwd/" + socketDir + " -p " + port + " -U " + owner
	lines := []string{
		"cd " + shellQuote(dir),
		"umask 077",
		"install -d -m 700" + ownerFlags(h.account) + " " + socketDir,
		start(oldBinaries),
		oldBinaries + "/pg_dumpall" + client + " -f " + dump,
		// The new cluster has its owner already; the dump must not make it twice.
		"sed -i '/^CREATE ROLE " + owner + ";$/d' " + dump,
		stop(oldBinaries),
		"mv " + dataDir + " " + old,
		"install -d -m 700" + ownerFlags(h.account) + " " + dataDir,
		as + newBinaries + "/initdb -D " + dataDir + " -U " + owner + " -A trust -E UTF8 --locale=C.UTF-8 --wal-segsize=1",
		start(newBinaries),
		newBinaries + "/psql" + client + " -d postgres -q -v ON_ERROR_STOP=1 -f " + dump,
		stop(newBinaries),
	}
	return "  " + strings.Join(lines, "\n  ")
}

func ownerFlags(a account) string {
	if a.credential() == nil {
		return ""
	}
	return fmt.Sprintf(" -o %d -g %d", a.uid, a.gid)
}

func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
