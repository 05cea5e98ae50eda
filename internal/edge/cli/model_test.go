package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// leaves are all commands that can be run, from the parser's own model, so that none is forgotten.
func leaves(t *testing.T) []*kong.Node {
	t.Helper()
	parser, err := newParser(&commandLine{}, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	found := parser.Model.Leaves(true)
	if len(found) < 25 {
		t.Fatalf("only %d commands", len(found))
	}
	return found
}

// words are what is typed to name a command.
func words(node *kong.Node) []string {
	return strings.Fields(strings.TrimPrefix(node.FullPath(), programName))
}

func typed(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, &out, &errs)
	return code, out.String(), errs.String()
}

// goType is a name of Go or a missing text, which no help may show.
var goType = regexp.MustCompile(`\b(STRING|INT|INT64|BOOL|int64|string|bool|FLOAT\S*)\b|%!|<nil>|cli_`)

func TestHelp_OfEveryCommand(t *testing.T) {
	for _, node := range leaves(t) {
		t.Run(node.FullPath(), func(t *testing.T) {
			code, stdout, stderr := typed(append(words(node), "--help")...)
			if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "Usage: "+node.FullPath()) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if found := goType.FindString(stdout); found != "" {
				t.Errorf("the help shows %q:\n%s", found, stdout)
			}
			if node.Help == "" || !strings.HasSuffix(node.Help, ".") {
				t.Errorf("the help is no sentence: %q", node.Help)
			}
			for _, flag := range node.Flags {
				if flag.Help == "" {
					t.Errorf("--%s says nothing", flag.Name)
				}
			}
			for _, arg := range node.Positional {
				if arg.Help == "" {
					t.Errorf("<%s> says nothing", arg.Name)
				}
			}
		})
	}
}

func TestBadUse_OfEveryCommand(t *testing.T) {
	for _, node := range leaves(t) {
		for _, lang := range []string{"en", "fr", "es"} {
			t.Run(node.FullPath()+" "+lang, func(t *testing.T) {
				mistakes := [][]string{{"--no-such-thing"}, {"--no-such-thing=1"}, {"-x"}, {"--database"}, {"\xff"}, {strings.Repeat("x", mostTyped+1)}}
				if len(node.Positional) == 0 {
					mistakes = append(mistakes, []string{"word"})
				}
				if needsMore(node) {
					mistakes = append(mistakes, nil)
				}
				for _, mistake := range mistakes {
					code, stdout, stderr := typed(append(append([]string{"--lang", lang}, words(node)...), mistake...)...)
					if code != exitBadUse || stdout != "" || strings.Count(stderr, "\n") != 1 {
						t.Errorf("%q: exit code %d\n%s%s", mistake, code, stdout, stderr)
					}
					if strings.HasPrefix(stderr, speak(lang).Say("cli_bad_use", nil)) {
						t.Errorf("%q is not said to be wrong: %s", mistake, stderr)
					}
				}
			})
		}
	}
}

// needsMore tells whether the bare command lacks something.
func needsMore(node *kong.Node) bool {
	for _, flag := range node.Flags {
		if flag.Required {
			return true
		}
	}
	for _, arg := range node.Positional {
		if arg.Required {
			return true
		}
	}
	return false
}

func TestNothingTyped_ShowsHelp(t *testing.T) {
	code, stdout, stderr := typed()
	if code != exitBadUse || stdout != "" || !strings.HasPrefix(stderr, "Usage: usher") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestHelp_AsAWord(t *testing.T) {
	if code, stdout, stderr := typed("help", "sitting", "move"); code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "Usage: usher sitting move") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestStories_AskEveryCommandForJSON: a new command is asked too.
func TestStories_AskEveryCommandForJSON(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("the stories: %v", err)
	}
	var told strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told.Write(content)
	}
	for _, node := range leaves(t) {
		switch strings.Join(words(node), " ") {
		case "serve", // never ends by itself: TestServe_Ends
			"webhook test": // needs a receiver: TestWebhook_Test
			continue
		}
		asked := regexp.MustCompile(`(?m)^exits 0 (--dir \S+ )?` + strings.Join(words(node), " ") + ` .*--json`)
		if !asked.MatchString(told.String()) {
			t.Errorf("no story asks %s for JSON", node.FullPath())
		}
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, stderr := typed("--version"); code != exitDone || stdout != Version+"\n" || stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestTable_FitsTheTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		widths, least []int
		room          int
		want          []int
	}{
		"room for all":            {[]int{10, 20}, []int{5, 5}, 40, []int{10, 20}},
		"the widest gives way":    {[]int{10, 50}, []int{5, 5}, 40, []int{10, 30}},
		"both give way":           {[]int{50, 50}, []int{5, 5}, 40, []int{20, 20}},
		"words are not broken":    {[]int{50, 50}, []int{5, 30}, 40, []int{10, 30}},
		"no room for the longest": {[]int{50, 50}, []int{30, 30}, 40, []int{30, 30}},
	} {
		got := fit(c.widths, c.least, c.room)
		if len(got) != 2 || got[0] != c.want[0] || got[1] != c.want[1] {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
