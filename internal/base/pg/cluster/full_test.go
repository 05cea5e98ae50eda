//go:build linux

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many bytes, which needs root.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := place(t)
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_NOSUID, fmt.Sprintf("size=%d,mode=755", bytes)); err != nil {
		t.Skipf("this machine lets nobody mount a small file system: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	return dir
}

// Whatever step of the first start finds the disk full, the sentence names the directory.
func TestJoin_FullDiskIsNamed(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4 << 10, 64 << 10, 20 << 20} {
		t.Run(fmt.Sprint(size>>10, " KiB"), func(t *testing.T) {
			t.Parallel()
			dir := under(t, smallDisk(t, size), "usher")
			_, err := Join(t.Context(), dir)
			expectRefusal(t, err, "no space left in "+dir+",", "Make room", "--dir")
		})
	}
}

// A disk that filled up under existing data is named too, and with room again nothing is lost.
func TestJoin_DiskFilledUp(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64<<20)
	dir := under(t, disk, "usher")
	m, err := Join(t.Context(), dir)
	must(t, err)
	must(t, execute(m.URL(), "create table kept as select 'Keïta' as name"))
	must(t, m.Leave())
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	_, err = Join(t.Context(), dir)
	expectRefusal(t, err, "no space left in "+dir+",", "Nothing that was stored is lost")
	must(t, os.Remove(filler))
	if got := ask(t, join(t, dir).URL(), "select name from kept"); got != "Keïta" {
		t.Errorf("kept: %s", got)
	}
}

func TestExplainFull_NamesWhatIsFull(t *testing.T) {
	t.Parallel()
	h := home{dir: "/srv/usher"}
	for want, err := range map[string]error{
		"/srv/usher": errors.New("FATAL:  could not write lock file \"postmaster.pid\": No space left on device"),
		"/dev/shm":   errors.New("FATAL:  could not resize shared memory segment \"/PostgreSQL.1\" to 1048576 bytes: No space left on device"),
		"/tmp/alias": fmt.Errorf("make the short path: %w", &os.PathError{Op: "symlink", Path: "/tmp/alias/socket", Err: syscall.ENOSPC}),
	} {
		expectRefusal(t, h.explainFull(err), "no space left in "+want+",")
	}
	other := errors.New("FATAL:  something else")
	if got := h.explainFull(other); !errors.Is(got, other) || h.explainFull(nil) != nil {
		t.Errorf("another error became %v", got)
	}
}
