package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/schema"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/waiting"
	"usher/internal/edge/job"
)

// A node that is to die is this program again, told by its environment on which database, and at which step.
const (
	doomedURL = "USHER_TEST_DOOMED_URL"
	doomedAt  = "USHER_TEST_DOOMED_AT"
)

func TestMain(m *testing.M) {
	if os.Getenv(doomedURL) != "" {
		fmt.Fprintln(os.Stderr, doom())
		os.Exit(3)
	}
	testdb.Main(m)
}

// doom works as a node until it dies at its step, in the middle of whatever it does there; where it has less to do, it ends well.
func doom() error {
	steps, err := strconv.Atoi(os.Getenv(doomedAt))
	if err != nil {
		return err
	}
	db, err := pg.Open(context.Background(), os.Getenv(doomedURL), schema.Migrations())
	if err != nil {
		return err
	}
	err = turn(context.Background(), db, func() {
		if steps--; steps == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err == nil {
		os.Exit(0)
	}
	return err
}

// turn has a node plan what is due and work on all that nobody holds. Each step of what it does is told: after it listed, did or planned something,
// and before that is committed.
func turn(ctx context.Context, db *pg.DB, step func()) error {
	enqueue := func(ctx context.Context, tx pgx.Tx, runs []run.Ready) error {
		for _, ready := range runs {
			if _, err := tx.Exec(ctx, `insert into test_job (run_id, epoch) values ($1, $2)`, ready.RunID, ready.Epoch); err != nil {
				return err
			}
		}
		step()
		return nil
	}
	executor := job.Executor(nil)
	executor.Enqueue = enqueue
	for i := range executor.Catalogue {
		work := &executor.Catalogue[i].Work
		list, do := work.Next, work.Do
		work.Next = func(ctx context.Context, tx pgx.Tx, w run.Window, organisations []int64, after run.Key, most int) ([]run.Item, error) {
			items, err := list(ctx, tx, w, organisations, after, min(most, 3)) // chunks that are small, so that one can die between them
			step()
			return items, err
		}
		work.Do = func(ctx context.Context, tx pgx.Tx, w run.Window, items []run.Item) (run.Outcome, error) {
			outcome, err := do(ctx, tx, w, items)
			step()
			return outcome, err
		}
	}
	planner := run.Planner{Catalogue: executor.Catalogue, Enqueue: enqueue}
	if _, err := planner.Look(ctx, db); err != nil {
		return err
	}
	for {
		var ready run.Ready
		err := db.Pool().QueryRow(ctx, `delete from test_job where id = (select min(id) from test_job) returning run_id, epoch`).Scan(&ready.RunID, &ready.Epoch)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := executor.Execute(ctx, db, ready); err != nil {
			return err
		}
	}
}

// A fortnight in which everything that Usher does on its own is done, through the end of summer time and the end of a month: people hold, pay, wait,
// give back, and sittings move and end. With nodes that are killed at any step, it ends as it does when nobody is.
func TestFortnight_NodesKilledAtRandom(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if said := os.Getenv("USHER_TEST_SEED"); said != "" {
		var err error
		seed, err = strconv.ParseUint(said, 10, 64)
		must(t, err)
	}
	t.Logf("seed %d (USHER_TEST_SEED)", seed)
	ends := make(chan map[string][]string, 2)
	for name, killing := range map[string]*rand.Rand{"undisturbed": nil, "killed": rand.New(rand.NewPCG(seed, 2))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFortnight(t, rand.New(rand.NewPCG(seed, 1)), killing)
			for range fortnight / tick {
				f.people()
				f.nodes()
				f.now = f.now.Add(tick)
			}
			t.Logf("%d nodes were killed; %s", f.kills, f.texts(`select count(*) || ' ' || state from waiting group by state order by 1`))
			if killing != nil && f.kills < 4 {
				t.Errorf("only %d nodes were killed: that proves nothing", f.kills)
			}
			ends <- f.end()
		})
	}
	t.Cleanup(func() {
		if len(ends) != 2 {
			t.Fatal("there is nothing to compare")
		}
		one, other := <-ends, <-ends
		for _, what := range slices.Sorted(maps.Keys(one)) {
			if len(one[what]) == 0 {
				t.Errorf("there are no %s: nothing was tried", what)
			}
			if diff := cmp.Diff(one[what], other[what]); diff != "" {
				t.Errorf("%s differ (seed %d):\n%s", what, seed, diff)
			}
		}
	})
}

const (
	fortnight = 14 * 24 * time.Hour
	tick      = 6 * time.Hour
	worksAt   = 30 * time.Second // after the tick: by then what a killed node held has lapsed
)

// fortnightly is the house in the last days of October 2026, with a performance each second day.
type fortnightly struct {
	*house
	dice, killing *rand.Rand // killing nil: nobody is
	now           time.Time
	kills         int
	sold          []reservation.Reservation
	carts         []reservation.Reservation
}

func newFortnight(t *testing.T, dice, killing *rand.Rand) *fortnightly {
	t.Helper()
	f := &fortnightly{house: newHouse(t), dice: dice, killing: killing, now: time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)}
	f.at(f.now)
	f.queue()
	f.exec(`update event set offer_seconds = 90000`) // an offer ends between two ticks
	f.exec(`
insert into sitting (organisation_id, id, event_id, room_id, reference, starts_at, ends_at, places, places_from)
select 1, 100 + n, 1, 1, 'T' || n, at, at + interval '2 hours', 10, 'plan'
  from (select n, '2026-10-21 16:00Z'::timestamptz + n * interval '48 hours' as at from generate_series(0, 6) n) s`)
	f.exec(`update sitting set starts_at = '2026-10-26 08:00Z', ends_at = '2026-10-26 12:00Z' where reference = 'X1'`)
	return f
}

// people do what they do within a tick.
func (f *fortnightly) people() {
	f.Helper()
	f.at(f.now)
	sitting := fmt.Sprint("T", f.dice.IntN(7))
	for range 2 + f.dice.IntN(3) {
		n := 1 + f.dice.IntN(3)
		r, err := f.desk.Hold(f.Context(), reservation.Buyer, reservation.Request{Key: f.key(), Locale: "fr", Parts: []reservation.Part{
			{Event: "play", Sitting: sitting, Best: &reservation.Best{Kinds: slices.Repeat([]string{"full"}, n)}},
		}})
		switch pays := f.dice.IntN(2) == 0; {
		case problem.Has(err, "seats_too_few"), problem.Has(err, "places_awaited"):
			_, err := waiting.Join(f.Context(), f.db, reservation.Buyer, waiting.Joining{
				Key: f.key(), Event: "play", Sitting: sitting, Kind: "full", Wanted: n, Fewest: 1,
				Contact: reservation.Contact{Name: "Fanta", Email: fmt.Sprint("waits-", f.keys, "@example.org"), Locale: "fr"},
			})
			if _, refused := problem.Of(err); err != nil && !refused {
				f.Fatal(err)
			}
		case err == nil && pays:
			f.pay(r, fmt.Sprint("buyer-", f.keys, "@example.org"))
			f.sold = append(f.sold, r)
		case err == nil:
			f.exec(`update reservation set email = $2 where reference = $1`, r.Reference, fmt.Sprint("cart-", f.keys, "@example.org"))
			f.carts = append(f.carts, r)
		default:
			if _, refused := problem.Of(err); !refused {
				f.Fatal(err)
			}
		}
	}
	f.allow(func() error { // somebody gives tickets back
		_, err := reservation.CancelTickets(f.Context(), f.db, administrator, f.any(f.sold), reservation.Cancelling{Reason: "ill"})
		return err
	}, len(f.sold) > 0 && f.dice.IntN(4) == 0)
	f.allow(func() error { // somebody pays late
		_, err := reservation.TakeCash(f.Context(), f.db, administrator, f.any(f.carts), reservation.Cash{Gateway: "counter", Receipt: f.key()})
		return err
	}, len(f.carts) > 0 && f.dice.IntN(6) == 0)
	f.allow(func() error { // a sitting is moved by an hour
		moved := fmt.Sprint("T", f.dice.IntN(7))
		starts := time.Date(2026, 10, 21, 17, 0, 0, 0, time.UTC)
		starts = starts.Add(time.Duration(moved[1]-'0') * 48 * time.Hour)
		_, err := reservation.MoveSitting(f.Context(), f.db, administrator, "play", moved, seating.EventSittingMove{StartsAt: starts})
		return err
	}, f.dice.IntN(12) == 0)
}

func (f *fortnightly) any(of []reservation.Reservation) string {
	return of[f.dice.IntN(len(of))].Reference
}

// allow does what a rule may refuse.
func (f *fortnightly) allow(act func() error, now bool) {
	f.Helper()
	if !now {
		return
	}
	if err := act(); err != nil {
		if _, refused := problem.Of(err); !refused {
			f.Fatal(err)
		}
	}
}

// queue is where turn finds the jobs of its database.
func (h *house) queue() {
	h.Helper()
	h.exec(`create table test_job (id bigint generated always as identity primary key, run_id bigint, epoch integer)`)
	h.exec(`grant all on test_job to usher_app`)
}

// killed has another node do what is due until it is killed at its step; false: it had less to do.
func (h *house) killed(step int) bool {
	h.Helper()
	child := exec.CommandContext(h.Context(), os.Args[0])
	child.Env = append(os.Environ(), doomedURL+"="+h.url, doomedAt+"="+fmt.Sprint(step))
	said, err := child.CombinedOutput()
	status, _ := child.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		if err != nil {
			h.Fatalf("%v: %s", err, said)
		}
		return false
	}
	for open := true; open; { // until the server has noticed: what that held is free
		must(h.T, h.owner.QueryRow(h.Context(), `
select exists (select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null)`).Scan(&open))
	}
	return true
}

// nodes do what is due: one that may be killed, and one after it, which finds what that left.
func (f *fortnightly) nodes() {
	f.Helper()
	if f.killing != nil && f.killing.IntN(3) == 0 && f.killed(1+f.killing.IntN(12)) {
		f.kills++
	}
	f.at(f.now.Add(worksAt))
	must(f.T, turn(f.Context(), f.db, func() {}))
	if left := f.texts(`select task || ' ' || window_key || ' ' || state || error from run where window_start is not null and state <> 'done'`); len(left) > 0 {
		f.Fatalf("at %s there are left: %v", f.now, left)
	}
}

// end is everything that matters, by names that are the same whoever did it.
func (f *fortnightly) end() map[string][]string {
	f.Helper()
	who := `(select email from reservation where id = %s)`
	of := func(column string) string { return strings.ReplaceAll(who, "%s", column) }
	return map[string][]string{
		"claims": f.texts(`
select concat_ws(' ', s.reference, k.seat_label, coalesce(` + of("k.reservation_id") + `, 'candidate ' || k.candidate_id), k.expires_at is null, k.release_reason)
  from claim k join sitting s on s.id = k.sitting_id order by 1`),
		"reservations": f.texts(`select concat_ws(' ', email, state, currency) from reservation order by 1`),
		"sittings":     f.texts(`select concat_ws(' ', reference, revision, closed_at is not null) from sitting order by 1`),
		"waiting":      f.texts(`select concat_ws(' ', email, state) from waiting order by 1`),
		"notices": f.texts(`
select concat_ws(' ', n.kind, n.subject, coalesce(` + of("n.reservation_id") + `, 'candidate ' || n.candidate_id, w.email, n.subject_id::text), n.on_date, n.revision, n.email_state, n.sms_state)
  from notice n left join waiting w on n.subject = 'waiting' and w.id = n.subject_id where n.subject <> 'refund' order by 1`),
		"reminders": f.texts(`select concat_ws(' ', ` + of("reservation_id") + `, candidate_id, on_date, revision) from notice where kind = 'reminder' order by 1`),
		"events": f.texts(`
select concat_ws(' ', d.kind, coalesce(r.email, d.subject)) from dispatch d left join reservation r on d.subject = 'reservation ' || r.reference order by 1`),
		"runs":       f.texts(`select concat_ws(' ', task, window_key, state, counters->>'changed', counters->>'refused') from run where window_start is not null order by 1`),
		"refused":    f.texts(`select concat_ws(' ', r.task, f.reference, f.reason) from refusal f join run r on r.id = f.run_id order by 1`),
		"statements": f.texts(`select concat_ws(' ', organisation_id, month, currency, net_minor, payable_minor) from statement order by 1`),
		"timeline":   f.texts(`select concat_ws(' ', organisation_id, kind, count(*)) from timeline where organisation_id > 0 group by organisation_id, kind order by 1`),
		"seals":      f.texts(`select concat_ws(' ', organisation_id, day, rows) from timeline_seal order by 1`),
	}
}
