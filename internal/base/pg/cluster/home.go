//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"usher/internal/base/problem"
)

// What lies in the directory of a cluster, beside the locks.
const (
	dataDir    = "data"
	initdbDir  = "data.initdb" // becomes data when initdb has finished
	socketDir  = "socket"
	logFile    = "postgresql.log"
	oldLogFile = "postgresql.log.1"
)

// home is the directory of one cluster and the account that PostgreSQL runs
// under. The keeper works with dir ".", so that it survives a move.
type home struct {
	dir     string
	account account
}

func (h home) path(name string) string { return filepath.Join(h.dir, name) }

// shown is the directory as a person knows it.
func (h home) shown() string {
	absolute, err := filepath.Abs(h.dir)
	if err != nil {
		return h.dir
	}
	return absolute
}

// DefaultDir is where a private cluster lives when nobody chose a directory.
// Root's own home is closed to the account that PostgreSQL runs under.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/usher", nil
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "usher"), nil
	}
	own, err := os.UserHomeDir()
	if err != nil {
		return "", refuse("cluster_home_missing", nil)
	}
	return filepath.Join(own, ".local", "share", "usher"), nil
}

// openHome makes the directory if need be and sees that PostgreSQL can work in it.
func openHome(dir string) (home, error) {
	if err := os.MkdirAll(dir, parentMode()); err != nil {
		return home{}, refuseDir(dir, err)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return home{}, fmt.Errorf("find %s: %w", dir, err)
	}
	// One directory under two names is one cluster.
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return home{}, refuseDir(dir, err)
	}
	return homeAt(resolved)
}

func homeAt(dir string) (home, error) {
	who, err := accountFor(dir)
	if err != nil {
		return home{}, err
	}
	h := home{dir: dir, account: who}
	if err := h.claim(); err != nil {
		return home{}, err
	}
	return h, h.refuseClosedParent()
}

func parentMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o755
	}
	return 0o700
}

// claim sets the directory's rights, if it is new or ours already: closed to
// others, except that the account of PostgreSQL may pass through root's.
// A directory with other things in it is left as it is.
func (h home) claim() error {
	info, err := os.Stat(h.dir)
	if err != nil {
		return refuseDir(h.dir, err)
	}
	if !info.IsDir() {
		return refuse("cluster_dir_none", problem.Facts{"dir": h.dir})
	}
	wanted := fs.FileMode(0o700)
	if !h.account.owns(info) {
		wanted = 0o711
	}
	mayChange := os.Geteuid() == 0 || h.account.owns(info)
	if !mayChange || info.Mode().Perm() == wanted {
		return nil
	}
	ours, err := h.isEmptyOrOurs()
	if err != nil || !ours {
		return err
	}
	if err := os.Chmod(h.dir, wanted); err != nil {
		return refuseDir(h.dir, err)
	}
	return nil
}

func (h home) isEmptyOrOurs() (bool, error) {
	if _, err := os.Lstat(h.path(startLock)); err == nil {
		return true, nil
	}
	listing, err := os.Open(h.dir)
	if err != nil {
		return false, refuseDir(h.dir, err)
	}
	defer listing.Close()
	_, err = listing.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("list %s: %w", h.dir, err)
	}
	return false, nil
}

func refuseDir(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return refuse("cluster_dir_closed", problem.Facts{"dir": dir})
	}
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EEXIST) {
		return refuse("cluster_dir_file", problem.Facts{"dir": dir})
	}
	return fmt.Errorf("prepare %s: %w", dir, err)
}

// refuseClosedParent finds the directory in the path that the account may not
// pass. It reads the mode bits: they can be explained to a person.
func (h home) refuseClosedParent() error {
	closed, err := h.account.firstClosed(h.dir)
	if err != nil || closed == "" {
		return err
	}
	return refuse("cluster_parent_closed", problem.Facts{"user": h.account.name, "dir": closed})
}

// create opens a file of the cluster, closed to others. One that root makes
// in somebody's directory belongs to them, or they could not use it tomorrow.
func (h home) create(name string, flags int) (*os.File, error) {
	file, err := os.OpenFile(h.path(name), flags|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, refuseDir(h.shown(), err)
	}
	if os.Geteuid() == 0 {
		if err := giveToOwnerOf(h.dir, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}

func giveToOwnerOf(dir string, file *os.File) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("see who owns %s: %w", dir, err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
		return fmt.Errorf("give %s to the owner of its directory: %w", file.Name(), err)
	}
	return nil
}

// account is the system user that PostgreSQL runs under.
type account struct {
	uid, gid uint32
	name     string
}

// credential is nil when the process already is that account.
func (a account) credential() *syscall.Credential {
	if os.Geteuid() == int(a.uid) {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// accountFor is the current user, except for root, whom PostgreSQL refuses.
// Then it is the owner of the data, else of the directory, and if root owns
// that too, the user of Debian's package, else nobody.
func accountFor(dir string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return named(uint32(uid), uint32(os.Getegid())), nil
	}
	for _, place := range []string{filepath.Join(dir, dataDir), dir} {
		info, err := os.Stat(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return account{}, fmt.Errorf("see who owns %s: %w", place, err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 0 {
			return named(owner.Uid, owner.Gid), nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			return parseAccount(found)
		}
	}
	return account{}, refuse("cluster_no_account", nil)
}

func named(uid, gid uint32) account {
	name := strconv.Itoa(int(uid))
	if found, err := user.LookupId(name); err == nil {
		name = found.Username
	}
	return account{uid: uid, gid: gid, name: name}
}

func parseAccount(found *user.User) (account, error) {
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("read uid of %s: %w", found.Username, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("read gid of %s: %w", found.Username, err)
	}
	return account{uid: uint32(uid), gid: uint32(gid), name: found.Username}, nil
}

func (a account) owns(info fs.FileInfo) bool {
	return info.Sys().(*syscall.Stat_t).Uid == a.uid
}

// firstClosed returns the outermost directory, from / to dir, that the account
// may not pass through, or "".
func (a account) firstClosed(dir string) (string, error) {
	var ancestors []string
	for place := dir; ; place = filepath.Dir(place) {
		ancestors = append(ancestors, place)
		if place == filepath.Dir(place) {
			break
		}
	}
	slices.Reverse(ancestors)
	for _, place := range ancestors {
		info, err := os.Stat(place)
		if err != nil {
			return "", refuseDir(place, err)
		}
		if !a.mayPass(info) {
			return place, nil
		}
	}
	return "", nil
}

func (a account) mayPass(info fs.FileInfo) bool {
	const execute = 0o001
	mode := info.Mode().Perm()
	switch owner := info.Sys().(*syscall.Stat_t); {
	case a.credential() == nil:
		return true // the kernel says so itself, when this process tries
	case owner.Uid == a.uid:
		return mode>>6&execute != 0
	case owner.Gid == a.gid:
		return mode>>3&execute != 0
	default:
		return mode&execute != 0
	}
}
