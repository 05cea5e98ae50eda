//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
		return 0, refuse("%s does not name a version of PostgreSQL. The data may be damaged; restore it from a backup.",
			filepath.Join(h.shown(), dataDir, "PG_VERSION"))
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
	return refuse("%s is in the way: it is not the data of a PostgreSQL. Move it away, or choose another directory with --dir.",
		filepath.Join(h.shown(), dataDir))
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
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return Binaries{}, refuse("The data in %s was made by PostgreSQL %d. %s", h.shown(), major, refusal.Sentence)
	}
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{}, h.refuseVersion(major, present)
}

func (h home) refuseVersion(major int, present Binaries) error {
	move := fmt.Sprintf("To bring the data over to PostgreSQL %d:\n%s", present.Major, h.moveCommands(major, present))
	if major < oldestMajor {
		return refuse("The data in %s was made by PostgreSQL %d, and Usher needs %d or newer. Nothing was changed. %s",
			h.shown(), major, oldestMajor, move)
	}
	install := fmt.Sprintf("The data in %s was made by PostgreSQL %d; this machine has PostgreSQL %d (%s), which cannot read it. Nothing was changed.\n"+
		"To go on as before, install the same version and repeat the command:\n%s",
		h.shown(), major, present.Major, present.Dir, installCommand(major))
	if present.Major < major {
		return refuse("%s", install) // a dump is not meant for an older version
	}
	return refuse("%s%s", install, move)
}

func installCommand(major int) string {
	return "  apt-get install postgresql-" + strconv.Itoa(major) + "\n" +
		"    (if apt does not know it: /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh, then again)\n"
}

// moveCommands dumps the data with the version that made it and restores it
// with the one that is there. Each server listens on the cluster's own socket
// directory only, and each client finds it through its working directory, so
// that the length of the path does not matter.
func (h home) moveCommands(major int, present Binaries) string {
	oldBinaries := strings.Replace(debianBinaries, "*", strconv.Itoa(major), 1)
	return installCommand(major) + h.dumpAndRestore(major, oldBinaries, present.Dir)
}

func (h home) dumpAndRestore(major int, oldBinaries, newBinaries string) string {
	dir := h.shown()
	as := ""
	if h.account.credential() != nil {
		as = "setpriv --reuid=" + strconv.Itoa(int(h.account.uid)) + " --regid=" + strconv.Itoa(int(h.account.gid)) + " --clear-groups "
	}
	old := fmt.Sprintf("%s-%d", dataDir, major)
	dump := fmt.Sprintf("usher-%d.sql", major)
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
	return "  " + strings.Join(lines, "\n  ") + "\n" +
		"Keep " + old + " and " + dump + " until you have seen that all is there."
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
