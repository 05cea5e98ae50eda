package convocation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// enqueue hands a run over by a row, in the transaction that asked for it.
func (s *school) enqueue() Enqueue {
	s.owner(`create table if not exists handed (run_id bigint); grant select, insert on handed to usher_app`)
	return func(ctx context.Context, tx pgx.Tx, _, runID int64) error {
		_, err := tx.Exec(ctx, `insert into handed (run_id) values ($1)`, runID)
		return err
	}
}

func (s *school) request(target Target, enqueue Enqueue) Requested {
	s.t.Helper()
	asked, err := Request(s.t.Context(), s.db, s.actor, target, enqueue)
	s.must(err)
	return asked
}

func (s *school) execute(runID int64, options Options) {
	s.t.Helper()
	s.must(Execute(s.t.Context(), s.db, s.actor, s.org.ID, runID, options))
}

func TestRequest_TwoClicksAtOnceAreOneRun(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.fileMany(3, person{})
	enqueue := s.enqueue()
	const clicks = 8
	var asked [clicks]Requested
	var failed [clicks]error
	var wait sync.WaitGroup
	for i := range clicks {
		wait.Go(func() { asked[i], failed[i] = Request(t.Context(), s.db, s.actor, s.target(), enqueue) })
	}
	wait.Wait()
	s.must(errors.Join(failed[:]...))
	fresh := 0
	for _, a := range asked {
		if a.RunID != asked[0].RunID {
			t.Errorf("runs %d and %d", a.RunID, asked[0].RunID)
		}
		if !a.Already {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d clicks began a run", fresh)
	}
	if n := s.number(`select count(*) from handed`); n != 1 {
		t.Errorf("%d runs were handed over", n)
	}
}

func TestRequest_AnswersWithTheRunUntilItEnds(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", capacity: places(9)})
	s.sit(hall{exam: "MATH", day: 1, capacity: places(9)})
	s.fileMany(3, person{exams: []string{"BIO"}})
	enqueue := s.enqueue()
	first := s.request(Target{Campaign: s.campaign.Slug, Exam: "BIO"}, enqueue)
	during := Requested{}
	s.execute(first.RunID, Options{step: func(step string) {
		if step == "committed" {
			during = s.request(Target{Campaign: s.campaign.Slug, Exam: "bio"}, enqueue)
		}
	}})
	if !during.Already || during.RunID != first.RunID {
		t.Errorf("under way, it was answered with %+v", during)
	}
	if other := s.request(Target{Campaign: s.campaign.Slug}, enqueue); other.Already {
		t.Errorf("another target was answered with run %d", other.RunID)
	}
	if after := s.request(Target{Campaign: s.campaign.Slug, Exam: "BIO"}, enqueue); after.Already || after.RunID == first.RunID {
		t.Errorf("after its end, it was answered with %+v", after)
	}
}

// Nobody is there to take it: it waits, and whoever asks again gets the same run. It may have been lost
// on the way, so it is handed over once more; that it is executed twice is once.
func TestRequest_WaitsUntilSomebodyTakesIt(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.fileMany(3, person{})
	enqueue := s.enqueue()
	first := s.request(s.target(), enqueue)
	if soon := s.request(s.target(), enqueue); !soon.Already || soon.RunID != first.RunID || s.number(`select count(*) from handed`) != 1 {
		t.Errorf("soon: %+v, handed over %d times", soon, s.number(`select count(*) from handed`))
	}
	later := *s
	later.db = s.at(s.now().Add(time.Hour))
	if state := later.report(first.RunID).State; state != run.StateWaiting {
		t.Errorf("after an hour it is %s", state)
	}
	if again := later.request(s.target(), enqueue); !again.Already || again.RunID != first.RunID {
		t.Errorf("asked again: %+v, want run %d", again, first.RunID)
	}
	if n := s.number(`select count(*) from handed where run_id = $1`, first.RunID); n != 2 {
		t.Errorf("handed over %d times, want 2", n)
	}
	later.execute(first.RunID, Options{step: func(step string) {
		if step != "started" {
			return
		}
		if state := later.report(first.RunID).State; state != run.StateRunning {
			t.Errorf("taken, it is %s", state)
		}
		if during := later.request(s.target(), enqueue); !during.Already || s.number(`select count(*) from handed`) != 2 {
			t.Errorf("taken, it was handed over: %+v", during)
		}
	}})
	if report := later.report(first.RunID); report.State != run.StateDone || report.Seated != 3 {
		t.Errorf("%s, seated %d", report.State, report.Seated)
	}
}

// Whoever executes their own request, as the command line does, always gets a run of their own.
func TestRequest_WithoutAQueueIsARunOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	if one, other := s.request(s.target(), nil), s.request(s.target(), nil); one.RunID == other.RunID || other.Already {
		t.Errorf("%+v and %+v", one, other)
	}
}

func TestRequest_NotHandedOverIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	broken := errors.New("no queue")
	_, err := Request(t.Context(), s.db, s.actor, s.target(), func(context.Context, pgx.Tx, int64, int64) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n := s.number(`select count(*) from run`); n != 0 {
		t.Errorf("%d runs stand", n)
	}
}

func TestRequest_RefusesATargetThatIsNone(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	enqueue := s.enqueue()
	for code, target := range map[string]Target{
		"campaign_unknown": {Campaign: "none"},
		"exam_unknown":     {Campaign: s.campaign.Slug, Exam: "BIO"},
		"sitting_unknown":  {Campaign: s.campaign.Slug, Sitting: "S999"},
	} {
		_, err := Request(t.Context(), s.db, s.actor, target, enqueue)
		refused(t, err, code)
	}
	stranger := timeline.Actor{Name: "stranger", OrganisationID: s.org.ID + 1, Role: account.Manager}
	_, err := Request(t.Context(), s.db, stranger, s.target(), enqueue)
	refused(t, err, "campaign_unknown")
	asked := s.request(s.target(), enqueue)
	refused(t, Execute(t.Context(), s.db, stranger, s.org.ID, asked.RunID, Options{}), "run_unknown")
	if n := s.number(`select count(*) from run`); n != 1 {
		t.Errorf("%d runs stand, want 1", n)
	}
}

func TestExecute_ARunThatIsDoneDoesNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.fileMany(4, person{})
	asked := s.request(s.target(), s.enqueue())
	s.execute(asked.RunID, Options{})
	lists := s.list(s.report(asked.RunID), run.ListRefused)
	s.owner(`update sitting set places = 9, capacity = 9`) // there would be something to do
	before := s.written()
	s.execute(asked.RunID, Options{})
	s.equal("the rows and who wrote them", s.written(), before)
	s.equal("refused", s.list(s.report(asked.RunID), run.ListRefused), lists)
}

func TestExecute_ARunThatIsUnderWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(3)})
	s.fileMany(4, person{})
	asked := s.request(s.target(), s.enqueue())
	s.execute(asked.RunID, Options{step: func(step string) {
		if step == "started" {
			s.execute(asked.RunID, Options{step: func(step string) { t.Errorf("the second reached %q", step) }})
		}
	}})
	if report := s.report(asked.RunID); report.Seated != 3 || report.State != run.StateDone {
		t.Errorf("seated %d, %s", report.Seated, report.State)
	}
}

// An executor that gave no sign for longer than the lease is replaced, and what it still wants to
// write is refused: the counters are those of one run.
func TestExecute_ARunWhoseExecutorIsSilentIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(7, person{})
	asked := s.request(s.target(), s.enqueue())
	later := s.at(s.now().Add(time.Hour))
	commits := 0
	err := Execute(t.Context(), s.db, s.actor, s.org.ID, asked.RunID, Options{chunk: 2, step: func(step string) {
		if step != "committed" {
			return
		}
		if commits++; commits == 3 { // five are seated, one is refused
			s.must(Execute(t.Context(), later, s.actor, s.org.ID, asked.RunID, Options{}))
		}
	}})
	if !errors.Is(err, run.ErrLost) {
		t.Errorf("the silent executor ended with %v", err)
	}
	report := s.report(asked.RunID)
	if report.State != run.StateDone || report.Seated != 5 || report.AlreadySeated != 0 {
		t.Errorf("%s, seated %d, before %d", report.State, report.Seated, report.AlreadySeated)
	}
	s.equal("refused", s.list(report, run.ListRefused), []string{"C0006 room_full", "C0007 room_full"})
}

// A run whose process died shows it only when its lease is over. Where the same was asked for again and done meanwhile, a click asks for
// a run of its own: the dead one would seat nobody.
func TestRequest_IsNotAnsweredWithTheDeadRunOnceTheSameWasDone(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(9)})
	s.file(person{})
	dead := s.convoke()
	s.owner(`update run set state = 'running', finished_at = null, lease_until = clock() + interval '110 seconds'`)
	click := func() Requested {
		t.Helper()
		asked, err := Request(t.Context(), s.db, s.actor, s.target(), func(context.Context, pgx.Tx, int64, int64) error { return nil })
		s.must(err)
		return asked
	}
	if asked := click(); !asked.Already || asked.RunID != dead.Run {
		t.Errorf("while it may be alive: %+v, want the run %d", asked, dead.Run)
	}
	s.convoke()
	if asked := click(); asked.Already || asked.RunID == dead.Run {
		t.Errorf("after the same was done: %+v", asked)
	}
}
