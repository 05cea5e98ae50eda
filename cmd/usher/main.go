// Command usher seats people, once.
package main

import (
	"os"
	_ "time/tzdata" // the zones of centres, also on a machine that has none

	"usher/internal/edge/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
