package cli

import (
	"os"
	"testing"
)

// What is printed to be typed names the directory that was given, and is one word where a shell needs one.
func TestProgram_IsWhatCanBeTypedNext(t *testing.T) {
	before := os.Args[0]
	t.Cleanup(func() { os.Args[0] = before })
	t.Setenv("USHER_DIR", "/srv/usher")
	for _, c := range []struct{ called, dir, want string }{
		{"bin/usher", "", "bin/usher"},
		{"usher", "", "usher"},
		{"/tmp/cli.test", "", "usher"},
		{"bin/usher", "/srv/usher", "bin/usher"}, // the environment says it again
		{"bin/usher", "demo", "bin/usher --dir demo"},
		{"./usher", "my school's", `./usher --dir 'my school'\''s'`},
	} {
		os.Args[0] = c.called
		s := &session{line: &commandLine{Dir: c.dir}}
		if got := s.program(); got != c.want {
			t.Errorf("called as %s with the directory %q: %s, want %s", c.called, c.dir, got, c.want)
		}
	}
}
