package sms_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"usher/internal/base/problem"
	"usher/internal/base/sms"
)

// A disk that is full is said, harms no message that was written, and is no trouble any more once there is space.
func TestFolder_FullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); errors.Is(err, syscall.EPERM) {
		t.Skip("a small disk can only be mounted by root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	small, large := message, message
	large.Key, large.Text = "notice-8-1", strings.Repeat("Bonjour à tous. ", 10_000)
	name, err := sms.Folder(dir).WriteFile("A1", small)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sms.Folder(dir).WriteFile("A1", large); !problem.Has(err, "outbox_full") || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a full disk: %v", err)
	}
	entries, err := os.ReadDir(dir)
	after, failed := os.ReadFile(name)
	if err != nil || failed != nil || len(entries) != 1 || string(after) != string(before) {
		t.Errorf("left behind: %v, %v, %v", entries, err, failed)
	}
	large.Text = "Bonjour"
	if _, err := sms.Folder(dir).WriteFile("A1", large); err != nil {
		t.Errorf("with space again: %v", err)
	}
}
