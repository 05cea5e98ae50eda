package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"usher/internal/base/pg"
	"usher/internal/base/pg/cluster"
	"usher/internal/domain/schema"
	"usher/internal/edge/cli"
)

// TestMain runs the tests, or is the program itself: a story calls it as `usher`, and a private
// PostgreSQL is kept by it.
func TestMain(m *testing.M) {
	cluster.RunKeeperIfAsked()
	testscript.Main(stories{m}, map[string]func(){
		"usher": func() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// stories ends the server that the tests share.
type stories struct{ *testing.M }

func (s stories) Run() int {
	code := s.M.Run()
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

var shared struct {
	once   sync.Once
	server *cluster.Server
	dir    string
	err    error
	count  atomic.Int64
	copies sync.Mutex // a template may be copied by one at a time
}

// freshDatabase is the URL of the owner of a migrated, empty database on the shared server.
func freshDatabase(ctx context.Context) (string, error) {
	return databaseFrom(ctx, "template usher_template strategy file_copy")
}

func databaseFrom(ctx context.Context, clause string) (string, error) {
	shared.once.Do(func() { shared.err = startShared(ctx) })
	if shared.err != nil {
		return "", shared.err
	}
	name := fmt.Sprintf("story_%d", shared.count.Add(1))
	return shared.server.URL(name), administer(ctx, "create database "+name+" "+clause)
}

func startShared(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // of the test that happens to come first
	parent := os.TempDir()
	if _, err := os.Stat("/dev/shm"); err == nil {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "usher-stories-")
	if err != nil {
		return fmt.Errorf("make a directory for the test server: %w", err)
	}
	shared.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil { // the server may run as another user
		return fmt.Errorf("open the directory of the test server: %w", err)
	}
	shared.server, err = cluster.Start(ctx, filepath.Join(dir, "pg"), "max_connections=200", "fsync=off", "full_page_writes=off")
	if err != nil {
		return fmt.Errorf("start the test server: %w", err)
	}
	if err := administer(ctx, "create database usher_template"); err != nil {
		return err
	}
	template, err := pg.Open(ctx, shared.server.URL("usher_template"), schema.Migrations())
	if err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	template.Close()
	return nil
}

// administer gives the shared server a command of its administrator.
func administer(ctx context.Context, statement string) error {
	shared.copies.Lock()
	defer shared.copies.Unlock()
	conn, err := pgx.Connect(ctx, shared.server.URL("postgres"))
	if err != nil {
		return fmt.Errorf("reach the test server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
