package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"usher/internal/domain/testdb"
)

const lostSentence = "The connection to the database was lost: the line, the server, or the program, paused for too long. What was done stands, " +
	"and what was not finished left nothing: give the same command again."

// TestServers_ThatCannotBeUsed: each says in one sentence what is wrong, and no password.
func TestServers_ThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	migrated, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	empty, err := testdb.Create(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	old, err := testdb.Create(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	owned, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner(t, owned).Exec(t.Context(), `alter table claim owner to usher_app`); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`create role clerk login password 'sekret'`, `create role stranger login password 'sekret'`, `grant usher_app to clerk`,
	} {
		if err := testdb.Administer(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range []string{`drop role clerk`, `drop role stranger`} {
			if err := testdb.Administer(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	pretendOld(t, old)
	for name, c := range map[string]struct {
		url  string
		code int
		said string
	}{
		"wrong password":  {refusing(t, "28P01"), 1, "The database does not answer: the password is wrong, or there is no such user."},
		"no database":     {refusing(t, "3D000"), 1, "The database does not answer: it has no database of that name."},
		"full":            {refusing(t, "53300"), 1, "The database's server has as many connections as it allows."},
		"no memory":       {refusing(t, "53200"), 1, "The database's server has no memory left."},
		"starting":        {refusing(t, "57P03"), 1, "The database does not answer: it is starting or stopping."},
		"a standby":       {refusing(t, "25006"), 1, "The database does not answer: it is a standby"},
		"busy":            {refusing(t, "55P03"), 1, "Others were working on the same thing for too long."},
		"something else":  {refusing(t, "XX000"), 1, "The database does not answer. Check that it runs"},
		"lost early":      {hangingUp(t), 1, lostSentence},
		"no PostgreSQL":   {silent(t), 1, "The database does not answer"},
		"old":             {old, 1, "The server is PostgreSQL 14, and Usher needs 15 or newer."},
		"not migrated":    {as(t, empty, "clerk"), 1, "The database is empty. Start Usher once with the URL of the database's owner"},
		"not its user":    {as(t, migrated, "stranger"), 1, "The user stranger may not work as the role usher_app."},
		"owns a table":    {owned, 1, "The database would not keep organisations apart: as usher_app every row is seen."},
		"not the owner":   {as(t, migrated, "clerk"), 0, ""},
		"no such user":    {as(t, migrated, "nobody_of_this_name"), 1, "The database does not answer"},
		"no such name":    {strings.Replace(migrated, "test_", "absent_", 1), 1, "The database does not answer: it has no database of that name."},
		"malformed":       {"postgres://u:sekret@[::1/x", 2, "USHER_DATABASE_URL cannot be read."},
		"not the port":    {"postgres://u:sekret@localhost:port/x", 2, "USHER_DATABASE_URL cannot be read."},
		"a setting wrong": {"postgres://u:sekret@localhost/x?sslmode=perhaps", 2, "USHER_DATABASE_URL cannot be read."},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, []string{"USHER_DATABASE_URL=" + c.url}, "campaign", "list")
			if code != c.code || !strings.HasPrefix(stderr, c.said) || unfit.MatchString(stdout+stderr) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			if code != 0 && (stdout != "" || strings.Count(stderr, "\n") != 1) {
				t.Errorf("it is no single sentence:\n%s%s", stdout, stderr)
			}
		})
	}
}

// A server that ends in the middle of a command is said in one sentence, whichever way it shows: the session is ended with a word
// (57P01), or the line is cut and nobody listens any more.
func TestServers_ThatEndInTheMiddle(t *testing.T) {
	t.Parallel()
	database, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := school(t, []string{"USHER_DATABASE_URL=" + database}, true)
	holder := owner(t, database)
	for name, args := range map[string][]string{
		"a run":     {"convoke", "--campaign", "c"},
		"an import": {"import", "candidates", "--campaign", "c", filepath.Join(folder, "dossiers.csv")},
		"an act":    {"seat", "A1", "--campaign", "c", "--sitting", "S001"},
	} {
		for how, cut := range map[string]bool{"in words": false, "cut": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				tx, err := holder.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), `select from campaign for update`); err != nil {
					t.Fatal(err)
				}
				through, end := between(t, database)
				command := program(t, []string{"USHER_DATABASE_URL=" + through}, args...)
				var out, errs bytes.Buffer
				command.Stdout, command.Stderr = &out, &errs
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				awaitBlocked(t, database)
				if cut {
					end()
				}
				if _, err := owner(t, database).Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and application_name = 'usher'`); err != nil {
					t.Fatal(err)
				}
				said := exitCode(t, command.Wait())
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if said != 1 || out.Len() > 0 || !strings.Contains(errs.String(), lostSentence) || unfit.MatchString(errs.String()) {
					t.Errorf("exit code %d\n%s%s", said, &out, &errs)
				}
			})
		}
	}
}

// between is the URL of a server behind a line, and what cuts the line: nobody listens there any more.
func between(t *testing.T, database string) (through string, end func()) {
	t.Helper()
	config, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var lines sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	end = func() {
		cancel()
		_ = listener.Close() // it may be closed already
		lines.Wait()
	}
	t.Cleanup(end)
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	lines.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil {
				_ = near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
			lines.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			lines.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("host", host)
	query.Set("port", port)
	parsed.Host, parsed.RawQuery = "", query.Encode()
	return parsed.String(), end
}

// A full disk of the server stops a run with a sentence of its own; with room made, the same command does the rest.
func TestServers_DiskFull(t *testing.T) {
	t.Parallel()
	database, err := testdb.Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{"USHER_DATABASE_URL=" + database}
	_ = school(t, environment, true)
	server := owner(t, database)
	if _, err := server.Exec(t.Context(), `create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$;
create trigger full_disk before insert on claim for each row execute function full_disk()`); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, environment, "convoke", "--campaign", "c")
	if code != 1 || !strings.Contains(stderr, "The disk of the database is full. What was done before stands") || unfit.MatchString(stdout+stderr) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := server.Exec(t.Context(), `drop trigger full_disk on claim`); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(t, environment, "convoke", "--campaign", "c"); code != 0 || !strings.Contains(stdout, "2 seated") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// as is the URL of another user.
func as(t *testing.T, database, user string) string {
	t.Helper()
	parsed, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(user, "sekret")
	query := parsed.Query()
	query.Del("user")
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// pretendOld makes a database answer as one of an older release does.
func pretendOld(t *testing.T, database string) {
	t.Helper()
	conn := owner(t, database)
	var name string
	if err := conn.QueryRow(t.Context(), `select current_database()`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`create function public.current_setting(text) returns text language sql as $$ select '140009' $$`,
		`alter database ` + name + ` set search_path = public, pg_catalog`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// listening answers each connection in its turn until the test ends.
func listening(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return fmt.Sprintf("postgres://clerk:sekret@%s/school", listener.Addr())
}

// hangingUp is a PostgreSQL that lets everybody in and is gone when it is asked something.
func hangingUp(t *testing.T) string {
	t.Helper()
	return listening(t, func(conn net.Conn) {
		server := pgproto3.NewBackend(conn, conn)
		for {
			asked, err := server.ReceiveStartupMessage()
			if err != nil {
				return
			}
			if _, encrypted := asked.(*pgproto3.SSLRequest); !encrypted {
				break
			}
			if _, err := conn.Write([]byte("N")); err != nil {
				return
			}
		}
		server.Send(&pgproto3.AuthenticationOk{})
		server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if server.Flush() == nil {
			_, _ = server.Receive()
		}
	})
}

// An empty directory, as a script gives whose variable is empty, is not the directory that is used where none is named.
func TestDir_Empty(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--dir", "", "campaign", "list"}, {"campaign", "list", "--dir= "}} {
		code, stdout, stderr := run(t, []string{"USHER_DATABASE_URL="}, args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "--dir") || unfit.MatchString(stderr) {
			t.Errorf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// refusing is a PostgreSQL that lets nobody in, for the reason of this code.
func refusing(t *testing.T, code string) string {
	t.Helper()
	return listening(t, func(conn net.Conn) {
		backend := pgproto3.NewBackend(conn, conn)
		message, err := backend.ReceiveStartupMessage()
		if _, wantsTLS := message.(*pgproto3.SSLRequest); wantsTLS && err == nil {
			if _, err = conn.Write([]byte("N")); err == nil {
				_, err = backend.ReceiveStartupMessage()
			}
		}
		if err != nil {
			return
		}
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "password authentication failed for user \"clerk\" (sekret)"})
		_ = backend.Flush()
	})
}

// silent is something else that listens on the port.
func silent(t *testing.T) string {
	t.Helper()
	return listening(t, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
}
