//go:build linux

package cluster

import (
	"testing"
)

func TestStart_AndStop(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	s, err := Start(t.Context(), dir, "fsync=off", "application_name=it's a test")
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	if s.PID() != postgresOf(t, dir) {
		t.Errorf("PID is %d", s.PID())
	}
	if got := ask(t, s.URL("template1"), "show fsync"); got != "off" {
		t.Errorf("fsync %q", got)
	}
	must(t, s.Stop())
	if isAlive(s.PID()) {
		t.Error("it was not waited for")
	}
}

func TestStart_RefusedSettingSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), clusterDir(t), "max_connections=many")
	if err == nil || !containsAll(err.Error(), "max_connections", logFile) {
		t.Fatalf("got %v", err)
	}
}

func TestStart_DiesWithItsProcess(t *testing.T) {
	t.Parallel()
	dir := clusterDir(t)
	owner := launch(t, roleOwner, dir, nil)
	owner.joined(t)
	postgres := postgresOf(t, dir)
	owner.kill()
	waitGone(t, postgres)
}
