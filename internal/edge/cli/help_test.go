package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"usher/internal/edge/cli"
)

// untypable are the quotes that the help prints for what stands in the source as ” or “: whoever
// copies them into a shell types a word, not an empty one.
var untypable = regexp.MustCompile("[“”‘’«»„]|''|``")

func TestHelp_HasOnlyQuotesThatCanBeTyped(t *testing.T) {
	t.Parallel()
	commands, err := cli.Commands()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, node := range commands {
		words := strings.Fields(node.FullPath())[1:]
		for depth := range len(words) + 1 { // of the command, and of the groups above it
			seen[strings.Join(words[:depth], " ")] = true
		}
	}
	for words := range seen {
		var out, errs bytes.Buffer
		code := cli.Main(append(strings.Fields(words), "--help"), &out, &errs)
		if code != 0 || out.Len() == 0 || errs.Len() > 0 {
			t.Errorf("usher %s --help: exit code %d\n%s", words, code, &errs)
		}
		for line := range strings.Lines(out.String()) {
			if untypable.MatchString(line) {
				t.Errorf("usher %s --help: %s", words, line)
			}
		}
	}
}
