package run

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// steps are the named steps of the package, as its source has them.
func steps(t testing.TB) (names []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bat\("([^"]+)"\)`)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		source, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range call.FindAllStringSubmatch(string(source), -1) {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// crashing is a way through the steps, with an item that fails and one that somebody else has locked for a while.
type crashing struct {
	name   string
	budget time.Duration // the run is handed over after each chunk
	asks   bool          // a person asks for the window
	only   []string      // it is killed at these steps; nil: at all
}

func (c crashing) setup(t testing.TB) *marks {
	s := newMarks(t, 2, 2, 1)
	s.owner(`update thing set broken = true where id = 2 and organisation_id = (select max(organisation_id) from thing)`)
	s.due()
	return s
}

func (c crashing) node(s *marks) *node {
	n := s.node()
	n.executor.Budget, n.locks = c.budget, true
	return n
}

// Killed at any step of the planner or of a run, however often it was passed before, and gone on with by another node: as if
// nothing had happened.
func TestRun_KilledAtAnyStepItEndsTheSame(t *testing.T) {
	t.Parallel()
	never := map[string]bool{}
	for _, name := range steps(t) {
		never[name] = true
	}
	if len(never) < 15 {
		t.Fatalf("only %d steps were found: %v", len(never), never)
	}
	for _, c := range []crashing{
		{name: "planned"},
		{name: "handed over", budget: time.Nanosecond, only: []string{"taking", "taken", "handing over", "handed over"}},
		{name: "asked for", asks: true, only: []string{"asked", "taking", "taken"}},
	} {
		undisturbed := c.setup(t)
		var passed []string
		n := c.node(undisturbed)
		record := func(step string) { passed = append(passed, step); delete(never, step) }
		n.planner.step, n.executor.step = record, record
		if c.asks {
			_, err := n.executor.Run(t.Context(), n.db, undisturbed.actor, Wanted{Task: "mark-1", Key: marked})
			undisturbed.must(err)
			n = c.node(undisturbed)
		}
		undisturbed.must(n.work(t.Context()))
		want := undisturbed.remains()
		if undisturbed.doubled() != 0 || undisturbed.lost() != 0 || len(want) != 1+3+1+1 {
			t.Fatalf("undisturbed: %s", strings.Join(want, "\n"))
		}
		for nth, step := range passed {
			if c.only != nil && !slices.Contains(c.only, step) {
				continue
			}
			t.Run(fmt.Sprint(c.name, " ", nth, " ", step), func(t *testing.T) {
				t.Parallel()
				s := c.setup(t)
				s.child(orders{Nth: nth + 1, Signal: syscall.SIGKILL, Budget: c.budget, Locks: !c.asks, Asks: c.asks}).killed()
				s.pass(time.Minute)
				s.must(c.node(s).work(t.Context()))
				equal(t, "the end", s.remains(), want)
			})
		}
	}
	// A run is driven when its holder died or its job was lost: no undisturbed one is.
	delete(never, "driving")
	for name := range never {
		t.Errorf("no run passes %q, so none is killed there", name)
	}
}

// The planner dies while it has a run driven whose holder died before.
func TestRun_KilledWhileItIsDrivenItEndsTheSame(t *testing.T) {
	t.Parallel()
	c := crashing{}
	undisturbed := c.setup(t)
	undisturbed.must(c.node(undisturbed).work(t.Context()))
	s := c.setup(t)
	s.child(orders{Step: "kept", Nth: 2, Signal: syscall.SIGKILL}).killed()
	s.pass(time.Minute)
	for nth := range 3 {
		s.child(orders{Step: "driving", Nth: 1, Signal: syscall.SIGKILL, Name: fmt.Sprint("child ", nth)}).killed()
	}
	s.must(c.node(s).work(t.Context()))
	equal(t, "the end", s.remains(), undisturbed.remains())
}
