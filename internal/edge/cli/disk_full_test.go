//go:build linux

package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// smallDisk mounts a file system of one MiB, which needs root.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_NOSUID, "size=1m,mode=700"); err != nil {
		t.Skipf("this machine lets nobody mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDiskFull_NamesTheDirectory: it is that of the file, or the one in which a workbook is gathered.
func TestDiskFull_NamesTheDirectory(t *testing.T) {
	disk := smallDisk(t)
	long := sheet.Text(strings.Repeat("ɛ", 2_000))
	rows := func(to rowWriter, n int) error {
		for range n {
			if err := to.Write(long, long, long, long); err != nil {
				return err
			}
		}
		return to.Close()
	}
	s := &session{voice: speak("en")}
	wants := func(err error, code, dir string) {
		t.Helper()
		p, _ := problem.Of(err)
		if p == nil || p.Code != code || p.Kind != problem.KindRefused {
			t.Fatalf("answered with %v, want %s", err, code)
		}
		if said := s.voice.Sentence(p); !strings.Contains(said, "no space left in the directory "+dir) || !strings.Contains(said, "Make room there") {
			t.Errorf("it says %s", said)
		}
	}
	wants(s.writeWhole(filepath.Join(disk, "list.csv"), func(w io.Writer) error {
		to, err := sheet.NewCSVWriter(w, ';', []string{"a", "b", "c", "d"})
		if err != nil {
			return err
		}
		return rows(to, 200)
	}), "disk_full", disk)
	t.Setenv("TMPDIR", disk)
	wants(s.writeWhole(filepath.Join(t.TempDir(), "list.xlsx"), func(w io.Writer) error {
		to, err := sheet.NewXLSXWriter(w, "List", []string{"a", "b", "c", "d"})
		if err != nil {
			return err
		}
		return rows(to, 3_000)
	}), "temporary_disk_full", disk)
}
