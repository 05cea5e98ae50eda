package cli_test

import (
	"strings"
	"testing"

	"usher/internal/domain/testdb"
)

// A file that the system opens and then does not give is the file's fault and not the program's.
func TestImport_FileThatCannotBeReadToItsEnd(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	school(t, environment, false)
	const unreadable = "/proc/self/mem" // opens, and answers with an error
	for _, args := range [][]string{
		{"import", "candidates", "--campaign", "c", unreadable},
		{"import", "candidates", "--campaign", "c", unreadable, "--json"},
		{"plan", "import", "--centre", "Paris", "--room", "A", unreadable},
	} {
		code, out, errs := run(t, environment, args...)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "The file "+unreadable+" cannot be read: ") {
			t.Errorf("%v: exit code %d, it says %q %q", args, code, out, errs)
		}
	}
}
