package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"usher/internal/domain/testdb"
)

// A batch that is larger than what is read of a file is refused whole: its end would be passed over in silence.
func TestDoorReplay_TooLarge(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := filepath.Join(t.TempDir(), "batch.jsonl")
	if err := os.WriteFile(batch, bytes.Repeat([]byte{'\n'}, 64<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	for _, args := range [][]string{
		{"organisation", "add", "djoliba", "--name", "Djoliba", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF"},
		{"campaign", "add", "concours", "--name", "Concours", "--fee", "0"},
	} {
		if code, stdout, stderr := run(t, environment, args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	code, _, stderr := run(t, environment, "--lang", "en", "door", "replay", "--campaign", "concours", batch)
	if code != 2 || !strings.Contains(stderr, "larger than 64 MiB") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
