//go:build linux

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"usher/internal/base/problem"
)

const (
	// owner is the superuser that initdb makes; database is what Join offers.
	owner    = "usher"
	database = "usher"

	port = "5432" // only a part of the socket's name: nothing listens on the network

	socketPathBytes = 107 // sun_path holds 108 with its final zero
	aliasHashBytes  = 8
)

// socketHost is the directory in which a client finds the socket. The server
// binds it by a path relative to its data, whatever the length of the whole;
// a client whose path is too long goes through a short link to it.
func (h home) socketHost() (string, error) {
	direct := h.path(socketDir)
	if usableHost(direct) {
		return direct, nil
	}
	return h.aliasSocket(direct)
}

func usableHost(dir string) bool {
	// Drivers read a comma as the next of several hosts.
	return len(dir)+len("/.s.PGSQL."+port) <= socketPathBytes && !strings.Contains(dir, ",")
}

// aliasDir is a directory of this user's in the temporary directory, by the
// hash of where the cluster is, or "" when the cluster needs none.
func (h home) aliasDir() string {
	if usableHost(h.path(socketDir)) {
		return ""
	}
	sum := sha256.Sum256([]byte(h.dir))
	name := fmt.Sprintf("usher-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:aliasHashBytes]))
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		if dir := filepath.Join(temp, name); usableHost(filepath.Join(dir, socketDir)) {
			return dir
		}
	}
	return filepath.Join("/tmp", name)
}

func (h home) aliasSocket(target string) (string, error) {
	dir := h.aliasDir()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a short path to the socket: %w", err)
	}
	if err := refuseForeign(dir); err != nil {
		return "", err
	}
	link := filepath.Join(dir, socketDir)
	if present, err := os.Readlink(link); err == nil && present == target {
		return link, nil
	}
	if err := os.RemoveAll(link); err != nil {
		return "", fmt.Errorf("renew the short path to the socket: %w", err)
	}
	if err := os.Symlink(target, link); err != nil {
		return "", fmt.Errorf("make a short path to the socket: %w", err)
	}
	return link, nil
}

// refuseForeign guards against somebody who made the directory first, to
// answer in the place of PostgreSQL.
func refuseForeign(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	own := info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
	if !info.IsDir() || !own || info.Mode().Perm() != 0o700 {
		return refuse("cluster_socket_foreign", problem.Facts{"dir": dir})
	}
	return nil
}

func socketURL(host, db string) string {
	query := url.Values{"host": {host}, "port": {port}, "sslmode": {"disable"}}
	address := url.URL{
		Scheme: "postgres",
		User:   url.User(owner),
		Path:   "/" + db,
		// libpq reads + as a plus, not as a space.
		RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20"),
	}
	return address.String()
}
