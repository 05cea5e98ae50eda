package convocation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/payment"
	"usher/internal/domain/run"
)

func (s *school) now() (now time.Time) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) (err error) { now, err = pg.Now(s.t.Context(), tx); return err })
	return now
}

// unfair names whoever a run refused for lack of seats although a later filer was seated, by that
// run or a later one and not by hand, at a sitting where the first might have sat: at their centre, and
// at no time at which they sit elsewhere. Not meant are those who had not paid yet when the run began, and
// those who withdrew. paid tells by when each
// had paid, where it was not from the start. Seats that were given before since are not looked at: who may
// sit where changed then.
func (s *school) unfair(paid map[string]time.Time, since time.Time) (named []string) {
	s.t.Helper()
	s.tx(func(tx pgx.Tx) error {
		rows, err := tx.Query(s.t.Context(), `
select distinct e.reference, r.started_at, r.id || ': ' || e.reference || ' behind ' || l.reference
  from refusal f
  join run r on (r.organisation_id, r.id) = (f.organisation_id, f.run_id)
  join candidate e on (e.organisation_id, e.id) = (f.organisation_id, f.candidate_id)
  join status st on (st.organisation_id, st.id) = (e.organisation_id, e.status_id) and st.opens_payment
  join claim k on k.organisation_id = f.organisation_id and k.exam_id = f.exam_id and k.run_id >= r.id and k.claimed_at >= $2
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  join room o on (o.organisation_id, o.id) = (s.organisation_id, s.room_id)
  join candidate l on (l.organisation_id, l.id) = (k.organisation_id, k.candidate_id) and (l.filed_at, l.id) > (e.filed_at, e.id)
 where f.organisation_id = $1 and f.list = 'refused' and f.reason in ('room_full', 'centre_full', 'exam_full')
   and (e.centre_id is null or e.centre_id = o.centre_id)
   and not exists (select from claim own where own.organisation_id = e.organisation_id and own.candidate_id = e.id
                      and own.exam_id = f.exam_id and own.released_at is null)
   and not exists (select from claim own join sitting at on (at.organisation_id, at.id) = (own.organisation_id, own.sitting_id)
                    where own.organisation_id = e.organisation_id and own.candidate_id = e.id and own.released_at is null
                      and at.starts_at < s.ends_at and s.starts_at < at.ends_at)
 order by 1, 2, 3`, s.org.ID, since)
		if err != nil {
			return err
		}
		var reference, sentence string
		var began time.Time
		_, err = pgx.ForEachRow(rows, []any{&reference, &began, &sentence}, func() error {
			if by, late := paid[reference]; !late || began.After(by) {
				named = append(named, sentence)
			}
			return nil
		})
		return err
	})
	return named
}

// fairnessSeed names the variable with which the test plays campaigns again, as a failure prints it. How the runs interleave is
// the machine's.
const fairnessSeed = "USHER_TEST_FAIRNESS_SEED"

func TestConvoke_IsFairHoweverRunsPaymentsAndReleasesInterleave(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv(fairnessSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", fairnessSeed, err)
		}
	}
	t.Logf("%s=%d plays the same campaigns again", fairnessSeed, seed)
	for round := range uint64(3) {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			t.Parallel()
			fairnessRound(t, rand.New(rand.NewPCG(seed, round)))
		})
	}
}

func fairnessRound(t *testing.T, random *rand.Rand) {
	s := newSchool(t, "BIO", "MATH")
	for day := range 4 {
		exam, centre := []string{"BIO", "MATH"}[day%2], []string{"Badalabougou", "Kayes"}[day/2]
		s.sit(hall{exam: exam, centre: centre, day: day, capacity: places(10 + random.IntN(10))})
	}
	const people = 90
	files := make([]person, people)
	var late []string
	for i := range files {
		files[i] = person{
			exams:  [][]string{{"BIO"}, {"MATH"}, {"BIO", "MATH"}}[random.IntN(3)],
			centre: []string{"", "", "Kayes", "Badalabougou"}[random.IntN(4)],
		}
		if random.IntN(3) == 0 {
			files[i].pays = -1
			late = append(late, fmt.Sprintf("C%04d", i+1))
		}
	}
	s.file(files...)
	random.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
	leaving := random.Perm(people)[:25]
	chunks := []int{1 + random.IntN(5), 3 + random.IntN(9), 5 + random.IntN(20)}
	paid := map[string]time.Time{}
	errs := together(len(chunks)+2, func(i int) error {
		switch {
		case i < len(chunks):
			for range 4 {
				if _, err := Convoke(t.Context(), s.db, s.actor, s.target(), Options{chunk: chunks[i]}); err != nil {
					return err
				}
			}
		case i == len(chunks):
			for _, reference := range late {
				switch err := s.record(reference, fee); {
				case err == nil:
					paid[reference] = s.now()
				case !problem.Has(err, "payment_closed"): // they withdrew before
					return err
				}
			}
		default:
			for _, n := range leaving {
				if err := s.withdraw(fmt.Sprintf("C%04d", n+1)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, err := range errs {
		s.must(err)
	}
	if named := s.unfair(paid, time.Time{}); len(named) > 0 {
		t.Errorf("refused, and a later filer seated: %v", named)
	}
	// One more run, with nothing beside it, leaves nobody out who could sit, and all of it fair.
	report := s.convoke()
	s.whole()
	if named := s.unfair(paid, time.Time{}); len(named) > 0 {
		t.Errorf("at the end: refused, and a later filer seated: %v", named)
	}
	if waiting := s.number(`
select count(*) from standing($1, $2) t where opens_payment and paid and claim_id is null and not exists (
  select from refusal f where f.organisation_id = $1 and f.run_id = $3 and f.list = 'refused' and f.candidate_id = t.candidate_id
     and f.exam_id = t.exam_id)`, s.org.ID, s.campaign.ID, report.Run); waiting != 0 {
		t.Errorf("%d eligible people are neither seated nor refused by name", waiting)
	}
}

// withdraw takes somebody out of the campaign, and their seats back.
func (s *school) withdraw(reference string) error {
	if _, _, err := admission.ChangeStatus(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, "rejected"); err != nil {
		return err
	}
	for exam := range s.exams {
		_, err := Release(s.t.Context(), s.db, s.actor, s.campaign.Slug, reference, exam, "withdrawn")
		if err != nil && tally([]error{err})["not_seated"] == 0 {
			return err
		}
	}
	return nil
}

// The negative control of the fairness check: a seat given past somebody who was refused is found.
func TestUnfair_FindsASeatGivenPastSomebody(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(1)})
	s.fileMany(2, person{})
	report := s.convoke()
	if named := s.unfair(nil, time.Time{}); len(named) != 0 {
		t.Errorf("a fair run is called unfair: %v", named)
	}
	s.fileMany(1, person{})
	s.owner(`update sitting set places = 2, capacity = 2`, fmt.Sprintf(`
insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, run_id)
select organisation_id, id, 2, 2, '002', exam_id, (select id from candidate where reference = 'C0003'), %d from sitting`, report.Run))
	if named := s.unfair(nil, time.Time{}); len(named) != 1 {
		t.Errorf("got %v, want C0002 behind C0003", named)
	}
}

// steps are the names that an undisturbed run of this school passes, in order.
func steps(t *testing.T, build func(testing.TB) *school, chunk int) (names []string) {
	t.Helper()
	s := build(t)
	s.convokeWith(s.target(), Options{chunk: chunk, step: func(step string) { names = append(names, step) }})
	return names
}

// Wherever in a run a payment is reversed or a status closed, the candidate has no seat, or is listed
// for a decision and whoever did it can see so at once.
func TestConvoke_WhoIsNotCalledAnyMoreNeverGoesUnnoticed(t *testing.T) {
	t.Parallel()
	for reason, act := range map[string]func(*school) error{
		"seated_unpaid": func(s *school) error {
			_, err := payment.Reverse(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "", "bounced")
			return err
		},
		"seated_status_closed": func(s *school) error {
			_, _, err := admission.ChangeStatus(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003", "rejected")
			return err
		},
	} {
		t.Run(reason, func(t *testing.T) { t.Parallel(); actAtEachStep(t, reason, act) })
	}
}

func actAtEachStep(t *testing.T, reason string, act func(*school) error) {
	build := func(t testing.TB) *school {
		s := newSchool(t, "MATH")
		s.sit(hall{capacity: places(3)})
		s.fileMany(5, person{})
		return s
	}
	insideOfChunk := map[string]bool{"locked": true, "claimed": true, "recorded": true, "published": true, "noticed": true, "refused": true, "kept": true, "named": true}
	var seats, none atomic.Int32
	t.Cleanup(func() {
		if seats.Load() == 0 || none.Load() == 0 {
			t.Errorf("%d interleavings seat the candidate and %d do not: both should happen", seats.Load(), none.Load())
		}
	})
	for nth, name := range steps(t, build, 2) {
		t.Run(fmt.Sprint(nth, " ", name), func(t *testing.T) {
			t.Parallel()
			s := build(t)
			acted := make(chan error, 1)
			var seen Explanation // what whoever acted sees right afterwards
			passed := 0
			report := s.convokeWith(s.target(), Options{chunk: 2, step: func(string) {
				if passed++; passed != nth+1 {
					return
				}
				actAndLook := func() {
					err := act(s)
					if err == nil {
						seen, err = Explain(t.Context(), s.db, s.actor, s.campaign.Slug, "C0003")
					}
					acted <- err
				}
				if insideOfChunk[name] {
					go actAndLook()
					s.untilSomebodyWaits(acted) // for the lock, which the chunk has
				} else {
					actAndLook()
				}
			}})
			s.must(<-acted)
			next := s.convoke()
			sits := slices.ContainsFunc(s.seats(), func(seat string) bool { return strings.HasPrefix(seat, "C0003 ") })
			if listed := slices.Contains(s.list(next, run.ListAttention), "C0003 "+reason); sits != listed {
				t.Errorf("seated %v, listed by the next run %v (that run: %v)", sits, listed, s.list(report, run.ListAttention))
			}
			if told := seen.Exams[0]; told.Seated != sits || (told.Doubt.Code != "") != sits {
				t.Errorf("seated %v, and whoever acted read %+v", sits, told)
			}
			s.whole()
			if sits {
				seats.Add(1)
			} else {
				none.Add(1)
			}
		})
	}
}

// untilSomebodyWaits goes on when a session of this database waits for a lock, or said is ready.
func (s *school) untilSomebodyWaits(said chan error) {
	s.t.Helper()
	conn := s.ownerConn()
	defer func() { _ = conn.Close(context.Background()) }()
	s.until("somebody waits for a lock", func() (waiting bool) {
		s.must(conn.QueryRow(s.t.Context(), `
select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting))
		return waiting || len(said) > 0
	})
}
