package mail_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"usher/internal/base/mail"
)

func TestFolder_TheSameMessageReplacesItself(t *testing.T) {
	t.Parallel()
	folder := mail.Folder(filepath.Join(t.TempDir(), "outbox", "mail"))
	m := messageTo("awa@example.org")
	m.ID = "../../notice-7/é|:*@usher.example"
	if _, err := folder.WriteFile("A1", m); err == nil {
		t.Fatal("an id that is none was taken")
	}
	m.ID = "../../notice-7/x|*@usher.example"
	var name string
	for _, subject := range []string{"Convocation", "Convocation : changement"} {
		m.Subject = subject
		written, err := folder.WriteFile("A1", m)
		if err != nil || name != "" && written != name {
			t.Fatalf("%s: %s, %v", subject, written, err)
		}
		name = written
	}
	entries, err := os.ReadDir(string(folder))
	if err != nil || len(entries) != 1 || filepath.Join(string(folder), entries[0].Name()) != name {
		t.Fatalf("%v, %v, want %s alone", entries, err, name)
	}
	if !strings.HasPrefix(filepath.Base(name), "A1-") {
		t.Errorf("%s: whoever looks for A1 does not find it", name)
	}
	content, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(content), "Subject: Convocation : changement\r\n") || !strings.HasSuffix(name, ".eml") {
		t.Errorf("%s: %v\n%s", name, err, content)
	}
}

func TestFolder_SaysWhatIsWrongAndLeavesNothingHalf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mail.Folder(file).WriteFile("A1", messageTo("awa@example.org")); err == nil || !strings.Contains(err.Error(), "outbox") {
		t.Errorf("a file in the place of the folder: %v", err)
	}
}
