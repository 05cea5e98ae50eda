//go:build !linux

// Package cluster runs the private PostgreSQL of a directory. It is built on
// what Linux offers; elsewhere it says so.
package cluster

import "context"

const onlyLinux = "cluster_only_linux"

// Member is one process's share in a running cluster.
type Member struct{}

// Join refuses.
func Join(context.Context, string) (*Member, error) { return nil, refuse(onlyLinux, nil) }

// URL is empty.
func (*Member) URL() string { return "" }

// Leave does nothing.
func (*Member) Leave() error { return nil }

// Server is a running cluster.
type Server struct{}

// Start refuses.
func Start(context.Context, string, ...string) (*Server, error) { return nil, refuse(onlyLinux, nil) }

// URL is empty.
func (*Server) URL(string) string { return "" }

// PID is 0.
func (*Server) PID() int { return 0 }

// Stop does nothing.
func (*Server) Stop() error { return nil }

// Binaries is a PostgreSQL installed on this machine.
type Binaries struct {
	Dir   string
	Major int
}

// FindBinaries refuses.
func FindBinaries() (Binaries, error) { return Binaries{}, refuse(onlyLinux, nil) }

// RunKeeperIfAsked does nothing.
func RunKeeperIfAsked() {}

// DefaultDir refuses.
func DefaultDir() (string, error) { return "", refuse(onlyLinux, nil) }
