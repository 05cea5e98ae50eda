package convocation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
)

// busySchool has two exams of which some sittings overlap, chosen centres, a plan, and some fifty
// people too many.
func busySchool(t testing.TB, people int) *school {
	t.Helper()
	s := newSchool(t, "BIO", "MATH")
	s.sit(hall{exam: "BIO", capacity: places(people / 4)})
	s.sit(hall{exam: "BIO", room: "Salle 2", hour: 2, capacity: places(people / 3)})
	s.sit(hall{exam: "BIO", centre: "Kayes", hour: 1, hours: 2, capacity: places(people / 5)})
	s.sit(hall{exam: "MATH", room: "Salle 3", capacity: places(people / 3)})
	s.sit(hall{exam: "MATH", room: "Salle 4", hour: 2, capacity: places(people / 4)})
	s.sit(hall{exam: "MATH", centre: "Kayes", room: "B", hour: 2, capacity: places(people / 5)})
	s.layPlan("Salle 2", people/3, []int{2, 5}, []int{1, 9, 11})
	seed := rand.New(rand.NewPCG(1, 2)) // the same school each time
	files := make([]person, people)
	for i := range files {
		files[i] = person{exams: [][]string{{"BIO"}, {"MATH"}, {"BIO", "MATH"}}[seed.IntN(3)], accessible: seed.IntN(9) == 0}
		if seed.IntN(4) == 0 {
			files[i].centre = []string{"Kayes", "Badalabougou"}[seed.IntN(2)]
		}
	}
	s.file(files...)
	return s
}

func TestConvoke_SixteenRunsAtOnceAreAsOne(t *testing.T) {
	t.Parallel()
	const people = 240
	one, many := busySchool(t, people), busySchool(t, people)
	want := one.convoke()
	nodes := []*pg.DB{many.db, many.open(), many.open(), many.open()}
	runs := make([]int64, 16)
	for i, err := range together(16, func(i int) (err error) {
		runs[i], err = Convoke(t.Context(), nodes[i%len(nodes)], many.actor, many.target(), Options{chunk: 5 + i})
		return err
	}) {
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
	many.equal("the seats of sixteen runs and of one", many.seats(), one.seats())
	many.whole()
	seatedByRuns := 0
	for _, id := range runs {
		report := many.report(id)
		seatedByRuns += report.Seated
		got, expected := many.list(report, run.ListRefused), one.list(want, run.ListRefused)
		slices.Sort(got)
		slices.Sort(expected)
		many.equal("refused by each run as by one", got, expected)
	}
	if seatedByRuns != want.Seated {
		t.Errorf("the runs say that they seated %d, one run seats %d", seatedByRuns, want.Seated)
	}
}

// Without the campaign's lock the indexes alone forbid every double, and nobody vanishes.
func TestConvoke_WithoutTheLockNobodyIsDoubledOrLost(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(40)})
	s.sit(hall{day: 1, capacity: places(40)})
	s.fileMany(100, person{})
	runs := make([]int64, 8)
	for i, err := range together(8, func(i int) (err error) {
		runs[i], err = Convoke(t.Context(), s.db, s.actor, s.target(), Options{chunk: 6 + i, lock: lockless})
		return err
	}) {
		s.must(err)
		report := s.report(runs[i])
		named := map[string]bool{}
		for _, line := range s.seats() {
			named[strings.Fields(line)[0]] = true
		}
		for _, r := range s.refusals(report, run.ListRefused) {
			named[r.Reference] = true
		}
		if len(named) != 100 {
			t.Errorf("run %d: %d of 100 are seated or refused by name", i, len(named))
		}
	}
	s.whole()
}

// assigning is a transaction that gives seats as a run does, but takes no lock.
type assigning struct {
	s   *school
	tx  pgx.Tx
	pid uint32
}

func (s *school) assign() assigning {
	s.t.Helper()
	tx, err := s.db.Pool().Begin(s.t.Context())
	s.must(err)
	s.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	s.must(pg.See(s.t.Context(), tx, s.org.ID))
	return assigning{s: s, tx: tx, pid: tx.Conn().PgConn().PID()}
}

func (a assigning) seat(exam, sitting string, references ...string) (seating.Outcome, error) {
	ctx := a.s.t.Context()
	openings, err := seating.Open(ctx, a.tx, a.s.campaign, a.s.exams[exam], sitting)
	if err != nil {
		return seating.Outcome{}, err
	}
	applicants := make([]seating.Applicant, len(references))
	for i, reference := range references {
		candidate, err := admission.FindCandidate(ctx, a.tx, a.s.campaign, reference)
		if err != nil {
			return seating.Outcome{}, err
		}
		applicants[i].CandidateID = candidate.ID
	}
	return seating.Assign(ctx, a.tx, a.s.campaign, 0, a.s.exams[exam], openings, applicants)
}

func (a assigning) commit() { a.s.t.Helper(); a.s.must(a.tx.Commit(a.s.t.Context())) }

// whenBlocks waits until somebody waits for the transaction.
func (a assigning) whenBlocks() {
	a.s.t.Helper()
	conn := a.s.ownerConn()
	defer func() { _ = conn.Close(context.Background()) }()
	a.s.until("somebody waits for the transaction", func() (waiting bool) {
		a.s.must(conn.QueryRow(a.s.t.Context(),
			`select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))`, int32(a.pid)).Scan(&waiting))
		return waiting
	})
}

// until asks again and again whether something has come about.
func (s *school) until(what string, there func() bool) {
	s.t.Helper()
	s.must(testdb.Until(s.t, what, func() (bool, error) { return there(), nil }))
}

// inBackground lets the transaction assign while the test goes on; said waits for its outcome.
func (a assigning) inBackground(exam, sitting string, references ...string) (said func() seating.Outcome) {
	type result struct {
		outcome seating.Outcome
		err     error
	}
	done := make(chan result, 1)
	go func() {
		outcome, err := a.seat(exam, sitting, references...)
		done <- result{outcome, err}
	}()
	return func() seating.Outcome {
		a.s.t.Helper()
		r := <-done
		a.s.must(r.err)
		return r.outcome
	}
}

// doubles names every seat with two people and everybody with two seats for one exam.
func (s *school) doubles() []string {
	s.t.Helper()
	return s.texts(`
select 'seat ' || seat_number from claim where organisation_id = $1 and released_at is null and seat_number is not null
 group by sitting_id, seat_number having count(*) > 1
union all
select 'person ' || candidate_id from claim where organisation_id = $1 and released_at is null group by candidate_id, exam_id having count(*) > 1`, s.org.ID)
}

func TestAssign_WithoutTheLockTheSeatIndexArbitrates(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.fileMany(6, person{})
	first, second := s.assign(), s.assign()
	_, err := first.seat("MATH", "", "C0001", "C0002", "C0003")
	s.must(err)
	said := second.inBackground("MATH", "", "C0003", "C0004", "C0005", "C0006")
	first.whenBlocks()
	first.commit()
	outcome := said()
	second.commit()
	// No double, and everybody is accounted for; but C0006 sits and C0005, who filed first, does not:
	// order is what the lock is for.
	s.equal("seats", s.seats(), []string{"C0001 S001/001", "C0002 S001/002", "C0003 S001/003", "C0004 S001/005", "C0006 S001/004"})
	if len(outcome.Claims) != 2 || len(outcome.AlreadySeated) != 1 || len(outcome.Misses) != 1 || outcome.Misses[0].Reason != seating.ReasonRoomFull {
		t.Errorf("of four: claims %v, already seated %v, misses %v", outcome.Claims, outcome.AlreadySeated, outcome.Misses)
	}
	if got := s.doubles(); len(got) > 0 {
		t.Errorf("doubled: %v", got)
	}
}

func TestAssign_WithoutTheLockThePersonIndexArbitrates(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.sit(hall{day: 1, capacity: places(5)})
	s.fileMany(1, person{})
	first, second := s.assign(), s.assign()
	_, err := first.seat("MATH", "S001", "C0001")
	s.must(err)
	said := second.inBackground("MATH", "S002", "C0001")
	first.whenBlocks()
	first.commit()
	if outcome := said(); len(outcome.AlreadySeated) != 1 || len(outcome.Claims) != 0 {
		t.Errorf("got %+v, want already seated", outcome)
	}
	second.commit()
	if got := s.doubles(); len(got) > 0 {
		t.Errorf("doubled: %v", got)
	}
}

// The negative controls of the two above: with its index dropped, each double happens and is found.
func TestAssign_WithAnIndexDroppedTheDoubleIsFound(t *testing.T) {
	t.Parallel()
	for index, sittings := range map[string][2]string{"claim_seat_key": {"S001", "S001"}, "claim_candidate_key": {"S001", "S002"}} {
		t.Run(index, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t, "MATH")
			s.sit(hall{capacity: places(5)})
			s.sit(hall{day: 1, capacity: places(5)})
			s.fileMany(2, person{})
			s.owner(`drop index ` + index)
			who := [2]string{"C0001", "C0001"}
			if index == "claim_seat_key" {
				who[1] = "C0002"
			}
			first, second := s.assign(), s.assign()
			_, err := first.seat("MATH", sittings[0], who[0])
			s.must(err)
			_, err = second.seat("MATH", sittings[1], who[1])
			s.must(err)
			first.commit()
			second.commit()
			if got := s.doubles(); len(got) != 1 {
				t.Errorf("without %s: doubles %v, want one", index, got)
			}
		})
	}
}

// The negative control of order and completeness: without the lock somebody who filed first loses
// every seat that they choose to later filers, and is refused although a place is free.
func TestAssign_WithoutTheLockOrderAndCompletenessFail(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	for day := range 4 {
		s.sit(hall{day: day, capacity: places(1)})
	}
	s.fileMany(4, person{})
	var rivals [3]assigning
	for i := range rivals {
		rivals[i] = s.assign()
		_, err := rivals[i].seat("MATH", seating.Reference(i+1), fmt.Sprintf("C%04d", i+2))
		s.must(err)
	}
	early := s.assign()
	said := early.inBackground("MATH", "", "C0001")
	for _, rival := range rivals {
		rival.whenBlocks()
		rival.commit()
	}
	outcome := said()
	early.commit()
	if len(outcome.Misses) != 1 || outcome.Misses[0].Reason != seating.ReasonSeatTaken {
		t.Fatalf("got %+v, want one who lost every time", outcome)
	}
	s.equal("later filers sit, and S004 is empty", s.seats(), []string{"C0002 S001/001", "C0003 S002/001", "C0004 S003/001"})

	// The next run, under the lock, finds the place.
	s.convoke()
	s.equal("after a run", s.seats(), []string{"C0001 S004/001", "C0002 S001/001", "C0003 S002/001", "C0004 S003/001"})
}

// Two exams at the same hour, convoked at once: the lock lets the second see the first. No index
// keeps people from sitting twice at one time, so without the lock they do.
func TestConvoke_TwoExamsAtTheSameHourAtOnce(t *testing.T) {
	t.Parallel()
	both := func(lock func(context.Context, pgx.Tx, admission.Campaign) (admission.Revision, error)) (*school, Report) {
		s := newSchool(t, "BIO", "MATH")
		s.sit(hall{exam: "BIO", capacity: places(9)})
		s.sit(hall{exam: "MATH", room: "Salle 2", capacity: places(9)})
		s.fileMany(6, person{exams: []string{"BIO", "MATH"}})
		claimed, mayCommit := make(chan struct{}), make(chan struct{})
		bio := make(chan error, 1)
		go func() {
			target := s.target()
			target.Exam = "BIO"
			_, err := Convoke(t.Context(), s.db, s.actor, target, Options{lock: lock, step: func(step string) {
				if step == "claimed" {
					close(claimed)
					<-mayCommit
				}
			}})
			bio <- err
		}()
		<-claimed
		type made struct {
			runID int64
			err   error
		}
		math, failed := make(chan made, 1), make(chan error, 1)
		go func() {
			target := s.target()
			target.Exam = "MATH"
			runID, err := Convoke(t.Context(), s.db, s.actor, target, Options{lock: lock})
			math <- made{runID, err}
			failed <- err
		}()
		if lock == nil {
			s.untilSomebodyWaits(failed) // for the campaign, which the first has not let go of
		} else {
			s.must(<-failed) // nothing keeps it: it ends while the first has not committed
		}
		close(mayCommit)
		m := <-math
		s.must(m.err)
		runID := m.runID
		s.must(<-bio)
		return s, s.report(runID)
	}
	s, report := both(nil)
	s.noOverlap()
	if got := s.list(report, run.ListRefused); len(got) != 6 || got[0] != "C0001 clash" {
		t.Errorf("refused %v, want six clashes", got)
	}
	s, _ = both(lockless)
	if got := s.overlaps(); len(got) != 6 {
		t.Errorf("without the lock %d sit twice at one time, want the six whom the lock prevents", len(got))
	}
}
