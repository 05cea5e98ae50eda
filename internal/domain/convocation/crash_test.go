package convocation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"usher/internal/base/pg"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// A process that is to die is this program again, told by its environment where.
const (
	crashURL      = "USHER_TEST_CRASH_URL"
	crashCampaign = "USHER_TEST_CRASH_CAMPAIGN"
	crashAt       = "USHER_TEST_CRASH_AT" // how many steps it passes before
	crashChunk    = 3
)

func TestMain(m *testing.M) {
	if os.Getenv(crashURL) != "" {
		fmt.Fprintln(os.Stderr, convokeAndDie())
		os.Exit(3)
	}
	testdb.Main(m)
}

// convokeAndDie convokes and kills its own process at a step; it returns only when that failed.
func convokeAndDie() error {
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		return err
	}
	db, err := pg.Open(context.Background(), os.Getenv(crashURL), schema.Migrations())
	if err != nil {
		return err
	}
	passed := 0
	_, err = Convoke(context.Background(), db, timeline.Actor{Name: "crash", Installation: true},
		Target{Campaign: os.Getenv(crashCampaign)}, Options{chunk: crashChunk, step: func(string) {
			if passed++; passed > at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}})
	return fmt.Errorf("the run was not killed: %w", err)
}

func crashSchool(t testing.TB) *school {
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", capacity: places(3)})
	s.sit(hall{exam: "MATH", day: 1, capacity: places(9)})
	s.sit(hall{exam: "MATH", hour: 5, centre: "Kayes", capacity: places(2)})
	both := []string{"BIO", "MATH"}
	s.file(person{exams: both}, person{exams: both, silent: true}, person{exams: both}, person{exams: both, centre: "Kayes"},
		person{exams: both, status: "filed"}, person{exams: []string{"MATH"}, accessible: true})
	return s
}

// remains is what a run leaves for people: seats, notices, and the rows of the timeline.
func (s *school) remains() []string {
	s.t.Helper()
	return append(append(s.seats(), s.notices()...), s.texts(`
select kind || ' ' || coalesce(facts->>'candidate', '') || ' ' || coalesce(facts->>'sitting', '') || ' ' || coalesce(facts->>'seat', '')
  from timeline where organisation_id = $1 order by 1`, s.org.ID)...)
}

// Killed at any step of a run and run again: as if nothing had happened, and nobody told twice.
func TestConvoke_KilledAtAnyStepAndRunAgain(t *testing.T) {
	t.Parallel()
	undisturbed := crashSchool(t)
	var names []string
	report := undisturbed.convokeWith(undisturbed.target(), Options{chunk: crashChunk, step: func(step string) { names = append(names, step) }})
	for _, name := range []string{"started", "locked", "claimed", "recorded", "published", "noticed", "refused", "kept", "committed", "listed", "described", "named", "finished"} {
		if !slices.Contains(names, name) {
			t.Errorf("the run does not pass %q, so it is not killed there", name)
		}
	}
	for nth, name := range names {
		t.Run(fmt.Sprint(nth, " ", name), func(t *testing.T) {
			t.Parallel()
			s := crashSchool(t)
			s.killAt(nth)
			killed, err := LatestRun(t.Context(), s.db, s.actor, s.campaign.ID)
			s.must(err)
			again := s.convokeWith(s.target(), Options{chunk: crashChunk})
			s.equal("the end state", s.remains(), undisturbed.remains())
			s.whole()
			for _, list := range []run.List{run.ListRefused, run.ListNotCalled, run.ListNotReachable, run.ListAttention} {
				s.equal("the list "+string(list), s.list(again, list), undisturbed.list(report, list))
			}
			if sum := again.Seated + again.AlreadySeated; sum != report.Seated {
				t.Errorf("seated and already seated make %d, want %d", sum, report.Seated)
			}
			before := run.StateRunning
			after := run.StateInterrupted
			if name == "finished" {
				before, after = run.StateDone, run.StateDone
			}
			if got := s.report(killed).State; got != before {
				t.Errorf("the killed run is %s within its lease, want %s", got, before)
			}
			later, err := ReadReport(t.Context(), s.at(s.now().Add(time.Hour)), s.actor, killed)
			s.must(err)
			if later.State != after {
				t.Errorf("the killed run is %s after its lease, want %s", later.State, after)
			}
		})
	}
}

// killAt convokes in a process that is killed after it passed n steps.
func (s *school) killAt(n int) {
	s.t.Helper()
	program, err := os.Executable()
	s.must(err)
	child := exec.CommandContext(s.t.Context(), program)
	child.Env = append(os.Environ(), crashURL+"="+s.url, crashCampaign+"="+s.campaign.Slug, crashAt+"="+strconv.Itoa(n))
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.t.Fatalf("the child was not killed: %v\n%s", err, output)
	}
}

// at opens the database with its clock set to an instant.
func (s *school) at(instant time.Time) *pg.DB {
	s.t.Helper()
	db, err := pg.Open(s.t.Context(), s.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339)), schema.Migrations())
	s.must(err)
	s.t.Cleanup(db.Close)
	return db
}
