// Package testdb gives every test a migrated database of its own, on a private PostgreSQL that
// lives as long as the tests of a package.
package testdb

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/pg/cluster"
	"usher/internal/domain/schema"
)

const visitor = "visitor"

var shared struct {
	once   sync.Once
	server *cluster.Server
	dir    string
	err    error
	admin  *pgx.Conn  // of the server's owner
	copies sync.Mutex // a template may be copied by one at a time, over one session
	count  atomic.Int64
}

// Main runs the tests of a package and ends the server that they used.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for whoever has more to do before the process ends.
func Run(m interface{ Run() int }) int {
	code := m.Run()
	if shared.admin != nil {
		_ = shared.admin.Close(context.Background())
	}
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the test server:", err)
			code = max(code, 1)
		}
	}
	if shared.dir != "" {
		if err := os.RemoveAll(shared.dir); err != nil {
			fmt.Fprintln(os.Stderr, "remove the test server's directory:", err)
		}
	}
	return code
}

// New returns a migrated, empty database that goes with the test.
func New(t testing.TB) *pg.DB {
	db, _ := NewWithURL(t)
	return db
}

// NewWithURL also returns the URL of the database's owner, for what the program itself may not do.
func NewWithURL(t testing.TB) (*pg.DB, string) {
	t.Helper()
	url, err := Fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), url, schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := Administer(context.Background(), "drop database "+path.Base(strings.Split(url, "?")[0])+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	return db, url
}

// Fresh is the URL of the owner of a migrated, empty database, which stays until the tests have ended.
func Fresh(ctx context.Context) (string, error) {
	return Create(ctx, "template usher_template strategy file_copy")
}

// Create makes a database as the clause says.
func Create(ctx context.Context, clause string) (string, error) {
	if _, err := Dir(); err != nil {
		return "", err
	}
	name := fmt.Sprintf("test_%d", shared.count.Add(1))
	return shared.server.URL(name), Administer(ctx, "create database "+name+" "+clause)
}

// AsVisitor is the URL of a user who owns nothing and may work as the program does, which then has nothing to migrate at each start.
func AsVisitor(ownerURL string) string {
	return strings.Replace(ownerURL, "://usher@", "://"+visitor+"@", 1)
}

// Dir is the directory of the server, which the account may enter that PostgreSQL runs under.
func Dir() (string, error) {
	shared.once.Do(start)
	return shared.dir, shared.err
}

// Owner is a session of the database's owner: it sees every organisation and may drop a constraint.
func Owner(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Hangs is after how long a test gives up what does not come: long, because a machine may be busy.
const Hangs = 3 * time.Minute

// Until looks again and again until something stands as the test wants; not for ever.
func Until(t testing.TB, what string, stands func() (bool, error)) error {
	t.Helper()
	deadline := time.Now().Add(Hangs)
	ticks := time.NewTicker(2 * time.Millisecond)
	defer ticks.Stop()
	for {
		if yes, err := stands(); yes || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", Hangs, what)
		}
		<-ticks.C
	}
}

// UntilWaitsFor looks until a session waits for the one with this id.
func UntilWaitsFor(t testing.TB, owner *pgx.Conn, pid uint32) error {
	t.Helper()
	return Until(t, "a session waits for another", func() (waits bool, err error) {
		err = owner.QueryRow(t.Context(), `select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))`, int32(pid)).Scan(&waits) //nolint:gosec // an id of a process
		return waits, err
	})
}

// Administer gives the server a command of its owner, outside of the tests' databases.
func Administer(ctx context.Context, statement string) error {
	shared.copies.Lock()
	defer shared.copies.Unlock()
	if shared.admin == nil || shared.admin.IsClosed() { // as it is when a test gave up in its middle
		conn, err := pgx.Connect(ctx, shared.server.URL("postgres"))
		if err != nil {
			return fmt.Errorf("reach the test server: %w", err)
		}
		shared.admin = conn
	}
	if _, err := shared.admin.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func start() {
	shared.err = func() error {
		parent := os.TempDir()
		if _, err := os.Stat("/dev/shm"); err == nil {
			parent = "/dev/shm"
		}
		dir, err := os.MkdirTemp(parent, "usher-test-")
		if err != nil {
			return fmt.Errorf("make a directory for the test server: %w", err)
		}
		shared.dir = dir
		if err := os.Chmod(dir, 0o755); err != nil { // the server may run as another user
			return fmt.Errorf("open the directory of the test server: %w", err)
		}
		ctx := context.Background()
		shared.server, err = cluster.Start(ctx, filepath.Join(dir, "pg"), "max_connections=200", "fsync=off", "full_page_writes=off")
		if err != nil {
			return fmt.Errorf("start the test server: %w", err)
		}
		if err := Administer(ctx, "create database usher_template"); err != nil {
			return err
		}
		template, err := pg.Open(ctx, shared.server.URL("usher_template"), schema.Migrations())
		if err != nil {
			return fmt.Errorf("migrate the template: %w", err)
		}
		template.Close()
		return Administer(ctx, "create role "+visitor+" login in role "+pg.Role)
	}()
}
