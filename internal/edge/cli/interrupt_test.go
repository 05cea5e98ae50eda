package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/testdb"
)

// patience bounds every wait for another process: it is no time that a test takes.
const patience = 30 * time.Second

// program is usher as somebody would start it.
func program(t *testing.T, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("usher")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8", "USHER_LOG="+filepath.Join(t.TempDir(), "usher.log")), environment...)
	return command
}

// run runs it to its end.
func run(t *testing.T, environment []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := program(t, environment, args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	return exitCode(t, command.Run()), out.String(), errs.String()
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// school has one campaign c with an exam of three places and, if wanted, its candidates.
func school(t *testing.T, environment []string, candidates bool) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, content := range map[string]string{
		"seances.csv":  "exam;centre;room;capacity;starts_at;ends_at\nMATHS;Bamako;Salle 1;3;2099-12-07 08:00;2099-12-07 11:00\n",
		"dossiers.csv": "reference;family_name;email;status\nA1;Koné;a@example.org;accepted\nA2;Ba;b@example.org;accepted\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := [][]string{
		{"organisation", "add", "ecole", "--name", "École", "--country", "ML", "--time-zone", "Africa/Bamako", "--currency", "XOF"},
		{"campaign", "add", "c", "--name", "Concours", "--fee", "0"},
		{"import", "sittings", "--campaign", "c", filepath.Join(folder, "seances.csv")},
	}
	if candidates {
		commands = append(commands, []string{"import", "candidates", "--campaign", "c", filepath.Join(folder, "dossiers.csv")})
	}
	for _, args := range commands {
		if code, stdout, stderr := run(t, environment, args...); code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	return folder
}

// owner is a session of the database's owner.
func owner(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// awaitBlocked returns when a session of the program waits for the lock that somebody else holds.
func awaitBlocked(t *testing.T, url string) {
	t.Helper()
	watch := owner(t, url)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var blocked bool
		err := watch.QueryRow(t.Context(), `select exists (select from pg_stat_activity
 where datname = current_database() and application_name = 'usher' and wait_event_type = 'Lock')`).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		if blocked {
			return
		}
	}
	t.Fatal("the program never came to the lock")
}

// TestInterrupted: somebody presses Ctrl-C while a command waits in its middle. It says how to go
// on, leaves a trace, does nothing by halves, and the same command given again ends the work.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		candidates bool
		args       func(folder string) []string
		count      string // what must not be there after the interruption, and must at the end
	}{
		"convoke": {true, func(string) []string { return []string{"convoke", "--campaign", "c"} }, "claim"},
		"import": {false, func(folder string) []string {
			return []string{"import", "candidates", "--campaign", "c", filepath.Join(folder, "dossiers.csv")}
		}, "candidate"},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				url, err := testdb.Fresh(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				environment := []string{"USHER_DATABASE_URL=" + url}
				args := c.args(school(t, environment, c.candidates))

				holder := owner(t, url)
				tx, err := holder.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), `select from campaign for no key update`); err != nil {
					t.Fatal(err)
				}
				command := program(t, environment, args...)
				var out, errs bytes.Buffer
				command.Stdout, command.Stderr = &out, &errs
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				awaitBlocked(t, url)
				if err := command.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				if code := exitCode(t, command.Wait()); code != 1 {
					t.Errorf("exit code %d", code)
				}
				if out.Len() > 0 || !strings.HasSuffix(errs.String(), "Stopped before the end. What was done stands; give the same command again to go on.\n") {
					t.Errorf("it says %q %q", out.String(), errs.String())
				}
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}

				expect := func(query string, want int) {
					t.Helper()
					var got int
					if err := holder.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
						t.Errorf("%s: %d, %v; want %d", query, got, err, want)
					}
				}
				expect(`select count(*) from `+c.count, 0)
				expect(`select count(*) from run where state = 'running'`, 0)
				expect(`select count(*) from run where state = 'failed' and finished_at is not null`, 1)
				var failed string
				if err := holder.QueryRow(t.Context(), `select max(id)::text from run`).Scan(&failed); err != nil {
					t.Fatal(err)
				}
				if code, stdout, stderr := run(t, environment, "report", failed); code != 0 || unfit.MatchString(stdout+stderr) ||
					!regexp.MustCompile(`to go on|Go on with`).MatchString(stdout) {
					t.Errorf("its report: exit code %d\n%s%s", code, stdout, stderr)
				}
				if code, stdout, stderr := run(t, environment, args...); code != 0 {
					t.Errorf("again: exit code %d\n%s%s", code, stdout, stderr)
				}
				expect(`select count(*) from `+c.count, 2)
			})
		}
	}
}

// TestInterrupted_Telling: the message under way gets its answer, no other is begun, and the channel does not rest.
func TestInterrupted_Telling(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	school(t, environment, true)
	watch := owner(t, url)
	if _, err := watch.Exec(t.Context(), `update candidate set phone = '+2237000000' || (id % 10), email = ''`); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(t, environment, "convoke", "--campaign", "c"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	asked, answer := make(chan struct{}, 2), make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-answer
		select {
		case <-r.Context().Done():
			t.Error("the message under way was cut")
		case <-time.After(time.Second): // a gateway that is slow
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sid":"SM1"}`)
	}))
	defer gateway.Close()
	command := program(t, environment, "tell", "--campaign", "c", "--sms-gateway",
		"twilio+http://AC1:t@"+strings.TrimPrefix(gateway.URL, "http://")+"?from=%2B15005550006")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	close(answer)
	if code := exitCode(t, command.Wait()); code != 1 || !strings.Contains(errs.String(), "Stopped before the end.") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	var became string
	err = watch.QueryRow(t.Context(), `select (select string_agg(sms_state, ' ' order by sms_state) from notice) ||
 case when exists (select from channel where paused_until is not null) then ', resting' else '' end`).Scan(&became)
	if err != nil || became != "pending sent" || len(asked) > 0 {
		t.Errorf("the messages became %q (%v), and %d more were begun", became, err, len(asked))
	}
}

// TestPaused: the program is stopped inside a transaction for longer than the server lets a session
// be silent. It says so, what it did stands, and the same command given again ends the work.
func TestPaused(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	school(t, []string{"USHER_DATABASE_URL=" + url}, true)
	holder := owner(t, url)
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from campaign for no key update`); err != nil {
		t.Fatal(err)
	}
	impatient := url + "?"
	if strings.Contains(url, "?") {
		impatient = url + "&"
	}
	command := program(t, []string{"USHER_DATABASE_URL=" + impatient + "idle_in_transaction_session_timeout=300"}, "convoke", "--campaign", "c")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	awaitBlocked(t, url)
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var pid int
	err = owner(t, url).QueryRow(t.Context(), `select pid from pg_stat_activity
 where datname = current_database() and application_name = 'usher' and wait_event_type = 'Lock'`).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch := owner(t, url)
	for deadline, silent := time.Now().Add(patience), true; silent; {
		if err := watch.QueryRow(t.Context(), `select exists (select from pg_stat_activity where pid = $1)`, pid).Scan(&silent); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the server bears with the silence")
		}
	}
	if err := command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, command.Wait()); code != 1 || !strings.Contains(errs.String(), "paused for too long") ||
		!strings.Contains(errs.String(), "give the same command again") || unfit.MatchString(errs.String()) {
		t.Errorf("exit code %d, it says %q %q", code, out.String(), errs.String())
	}
	if code, stdout, stderr := run(t, []string{"USHER_DATABASE_URL=" + url}, "convoke", "--campaign", "c"); code != 0 || !strings.Contains(stdout, "2 seated") {
		t.Errorf("again: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// ignored tells whether whoever started the tests had them ignore the signal.
func ignored(s os.Signal) bool { return signal.Ignored(s) }

// TestServe_Ends: a server that is told to stop stops well, and takes its private PostgreSQL along.
func TestServe_Ends(t *testing.T) {
	t.Parallel()
	if _, err := testdb.Fresh(t.Context()); err != nil { // makes the directory
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			if ignored(signal) {
				t.Skip("these tests were started with hangups ignored (nohup), and so is what they start")
			}
			parent, err := testdb.Dir()
			if err != nil {
				t.Fatal(err)
			}
			dir, err := os.MkdirTemp(parent, "serve-")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			command := program(t, []string{"USHER_DATABASE_URL="}, "--dir", filepath.Join(dir, "pg"), "serve", "--listen", "127.0.0.1:0", "--json")
			var out bytes.Buffer
			command.Stdout = &out
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal signals the whole group
			stderr, err := command.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stderr)
			line, url := "", ""
			for url == "" { // the first line says that a database is made
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
			}
			response, err := http.Get(url + "/")
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("the first page answers %s", response.Status)
			}
			if err := syscall.Kill(-command.Process.Pid, signal); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(lines)
			if code := exitCode(t, command.Wait()); code != 0 || len(rest) > 0 {
				t.Errorf("exit code %d, %s", code, rest)
			}
			var answer struct{ URL string }
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.URL != url {
				t.Errorf("it answers %s, and said %s", out.String(), url)
			}
			if pids := serversIn(dir); len(pids) > 0 {
				t.Errorf("PostgreSQL still runs: %v", pids)
			}
		})
	}
}

// TestServe_PortTaken: the port is asked for before anything else is done.
func TestServe_PortTaken(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	first := program(t, environment, "serve", "--listen", "127.0.0.1:0")
	stderr, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	for lines := bufio.NewReader(stderr); address == ""; { // before it says that messages wait
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	}
	code, stdout, said := run(t, environment, "demo", "--listen", address)
	if code != 2 || stdout != "" || !strings.HasPrefix(said, address+" cannot be used: another program uses it.") || unfit.MatchString(said) {
		t.Errorf("exit code %d\n%s%s", code, stdout, said)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, first.Wait()); code != 0 {
		t.Errorf("the first server: exit code %d", code)
	}
}

// TestInterrupted_WhileReading: whoever writes into a pipe may never come to the end.
func TestInterrupted_WhileReading(t *testing.T) {
	t.Parallel()
	url, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + url}
	school(t, environment, false)
	command := program(t, environment, "import", "candidates", "--campaign", "c", "/dev/stdin")
	into, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: when all of it is written, the program reads.
	if _, err := io.WriteString(into, "reference;family_name\n"+strings.Repeat("A1;Koné\n", 1<<16)); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, command.Wait()); code != 1 || out.Len() > 0 || !strings.HasPrefix(errs.String(), "Stopped before the end.") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}
