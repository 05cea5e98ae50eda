package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"usher/internal/domain/testdb"
)

// TestStories tells what people do with the program, one file a story. Beside testscript's own
// commands a story says
//
//	exits CODE ARGUMENT…   usher ends with this code, and what it prints is fit for a person
//	json KEY…              the last output is one JSON value that has these keys (a list: its first item)
//	value KEY WANT         a key of the last output, which is one JSON object
//	remember NAME KEY      keeps such a value in the environment
//	ended DIR              no private PostgreSQL runs in the directory any more
//	sql FILE               the database's owner runs these statements: for what has no command
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/stories",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     true,
		Setup:               prepare,
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": jsonHas, "value": jsonValue, "remember": remember, "ended": ended, "sql": runSQL,
		},
	})
}

// prepare gives the story a database of its own. A story about a private server empties
// USHER_DATABASE_URL and uses $PRIVATE, a directory that PostgreSQL's account may enter.
func prepare(env *testscript.Env) error {
	url, err := testdb.Fresh(env.T().(interface{ testing.TB }).Context())
	if err != nil {
		return err
	}
	parent, err := testdb.Dir()
	if err != nil {
		return err
	}
	private, err := os.MkdirTemp(parent, "private-")
	if err != nil {
		return err
	}
	if err := os.Chmod(private, 0o755); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"USHER_DATABASE_URL": url, "PRIVATE": private, "USHER_LOG": filepath.Join(env.WorkDir, "usher.log"),
		"LANG": "C.UTF-8", "LC_ALL": "", "LC_MESSAGES": "", "COLUMNS": "",
	} {
		env.Setenv(name, value)
	}
	return nil
}

// unfit is what no person may read: words of the database, of the driver, of Go, and the password
// of the tests.
var unfit = regexp.MustCompile(`(?i)sqlstate|\bERROR:|\bpgx|pgconn|goroutine|panic|constraint\b[^"]|violates|<no value>|%!|sekret|dial (tcp|unix)|` +
	`nil pointer|select .* from|insert into|\bstrconv|\bcli_|problem_|refusal_|reason_|\(string\)|int64|no such host|errno|lookup `)

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGUMENT…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec("usher", args[1:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run usher: %v", err)
		}
		code = exit.ExitCode()
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	if code != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
	}
	if found := unfit.FindString(stdout + stderr); found != "" {
		ts.Fatalf("%q is nothing for a person:\n%s%s", found, stdout, stderr)
	}
	if want != 0 && strings.Count(stderr, "\n") != 1 {
		ts.Fatalf("a refusal is one line:\n%s", stderr)
	}
	if want != 0 && stdout != "" {
		ts.Fatalf("a refusal prints no answer:\n%s", stdout)
	}
}

// decoded is the one JSON value that was printed.
func decoded(ts *testscript.TestScript) any {
	decoder := json.NewDecoder(bytes.NewBufferString(ts.ReadFile("stdout")))
	var value any
	if err := decoder.Decode(&value); err != nil {
		ts.Fatalf("no JSON: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("more than one JSON value, or something beside it")
	}
	return value
}

func object(ts *testscript.TestScript) map[string]any {
	value := decoded(ts)
	if list, ok := value.([]any); ok {
		if len(list) == 0 {
			ts.Fatalf("the list is empty")
		}
		value = list[0]
	}
	found, ok := value.(map[string]any)
	if !ok {
		ts.Fatalf("not an object: %v", value)
	}
	return found
}

func jsonHas(ts *testscript.TestScript, neg bool, keys []string) {
	found := object(ts)
	for _, key := range keys {
		if _, there := found[key]; there == neg {
			ts.Fatalf("%q: %v", key, found)
		}
	}
}

func text(ts *testscript.TestScript, key string) string {
	value, there := object(ts)[key]
	if !there {
		ts.Fatalf("no %q", key)
	}
	if list, ok := value.([]any); ok { // a list counts
		return strconv.Itoa(len(list))
	}
	written, err := json.Marshal(value)
	ts.Check(err)
	return strings.Trim(string(written), `"`)
}

func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if got := text(ts, args[0]); (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

func remember(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], text(ts, args[1]))
}

// runSQL does what no command does.
func runSQL(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := pgx.Connect(context.Background(), ts.Getenv("USHER_DATABASE_URL"))
	ts.Check(err)
	defer func() { ts.Check(conn.Close(context.Background())) }()
	_, err = conn.Exec(context.Background(), ts.ReadFile(args[0]))
	ts.Check(err)
}

// ended reads the file that PostgreSQL keeps for as long as it runs. The keeper may need a moment
// after its last member left: it is waited for by trying to take the place that it holds.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	if pids := serversIn(ts.MkAbs(args[0])); len(pids) > 0 {
		ts.Fatalf("PostgreSQL still runs: %v", pids)
	}
}

// serversIn are the processes that still work in a directory.
func serversIn(dir string) []string {
	var pids []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}
