package cli_test

import (
	"os"
	"testing"
	_ "time/tzdata"

	"github.com/rogpeppe/go-internal/testscript"

	"usher/internal/base/pg/cluster"
	"usher/internal/domain/testdb"
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

func (s stories) Run() int { return testdb.Run(s.M) }
