package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/account"
)

func (s *marks) look() Planned {
	s.Helper()
	planned, err := s.node().planner.Look(s.Context(), s.db)
	s.must(err)
	return planned
}

func (s *marks) lookWith(catalogue Catalogue) Planned {
	s.Helper()
	planned, err := newNode(s.db, s.url, "parent", catalogue, nil).planner.Look(s.Context(), s.db)
	s.must(err)
	return planned
}

func (s *marks) windows() []string {
	s.Helper()
	return s.texts(`select task || ' ' || window_key from run where window_start is not null order by task, window_key`)
}

// daily is a task of each day at one o'clock.
func daily(name string, change func(*Task)) Task {
	task := markTask(name, 10)
	if change != nil {
		change(&task)
	}
	return task
}

// An insert that fails once, or the job's, loses no window and plans none halfway.
func TestLook_AFailedInsertIsFoundByTheNext(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"run", "job"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 1, 1, 2)
			s.due()
			s.owner(`create function fails() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`,
				`create trigger fails before insert on `+table+` for each row execute function fails()`)
			if _, err := s.node().planner.Look(t.Context(), s.db); err == nil {
				t.Fatal("the look does not say that it failed")
			}
			if got := s.windows(); len(got) != 0 {
				t.Errorf("planned halfway: %v", got)
			}
			s.owner(`drop trigger fails on ` + table)
			if p := s.look(); p.Runs != 2 {
				t.Errorf("the next look planned %d windows, want 2", p.Runs)
			}
			if p := s.look(); p.Runs != 0 {
				t.Errorf("the look after it planned %d windows again", p.Runs)
			}
		})
	}
}

// A clock that was set forward by a year and back again stops nothing: what is due is planned, and nothing twice.
func TestLook_AClockSetForwardAndBackLosesNothing(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	s.due()
	s.look()
	s.clock(morning.AddDate(1, 0, 0))
	s.look() // caught up, as far as the cap allows
	planned := s.number(`select count(*) from run`)
	missed := s.number(`select missed from schedule`)
	if named := s.number(`select count(*) from missed_window`); missed == 0 || missed != named {
		t.Fatalf("%d windows are missed, and %d named", missed, named)
	}
	s.clock(morning.Add(time.Hour + time.Minute))
	s.look()
	s.clock(morning.AddDate(1, 0, 0)) // once more, by the same error
	if p := s.look(); p.Missed != 0 || len(p.TooLate) != 0 || s.number(`select missed from schedule`) != missed {
		t.Errorf("missed once more: %+v; kept %d, want %d", p, s.number(`select missed from schedule`), missed)
	}
	s.clock(morning.Add(time.Hour + time.Minute))
	s.look()
	for day := 1; day <= 3; day++ {
		s.clock(morning.AddDate(0, 0, day).Add(time.Hour))
		s.look()
		if p := s.look(); p.Runs != 0 {
			t.Errorf("day %d is planned twice", day)
		}
	}
	want := []string{"mark-1 2026-11-28", "mark-1 2026-11-29", "mark-1 2026-11-30", "mark-1 2026-12-01"}
	got := s.windows()
	if len(got) != planned+3 || !slices.Equal(got[:4], want) {
		t.Errorf("planned: %v, want %v and the %d of the year after", got, want, planned-1)
	}
	// Set back within a window that is planned already: it is found by its key.
	s.clock(morning)
	s.look()
	s.pass(time.Hour)
	s.look()
	if again := s.windows(); !slices.Equal(again, got) {
		t.Errorf("after the clock was set back: %v, want %v", again, got)
	}
}

// A run whose job was lost, or whose holder died, while the clock was ahead by a year: nobody works on its window before it is due, and
// then all of it is done.
func TestLook_AClockSetBackLeavesNoRunHeld(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"planned", "taken", "committed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 5, 1, 1)
			s.due()
			s.child(orders{Step: step, Nth: 1, Signal: syscall.SIGKILL}).killed()
			early := s.number(`select count(*) from mark`)
			s.pass(-365 * 24 * time.Hour)
			for range 3 {
				_, err := s.node().turn(t.Context())
				s.must(err)
			}
			if n := s.number(`select count(*) from mark`); n != early {
				t.Errorf("%d items are marked before the window is due, and %d were when the clock was set back", n, early)
			}
			s.pass(365 * 24 * time.Hour)
			n := s.node()
			finished := false
			for range 30 {
				var err error
				if finished, err = n.turn(t.Context()); finished || err != nil {
					s.must(err)
					break
				}
				s.pass(time.Second)
			}
			// What was marked too early is marked again.
			if !finished || s.doubled() != early || s.lost() != 0 || s.number(`select count(*) from run where window_key = '`+marked+`' and state = 'done'`) != 1 {
				t.Errorf("finished %v, %d items are doubled, want %d, %d lost", finished, s.doubled(), early, s.lost())
			}
		})
	}
}

// After a fortnight without a scheduler, each policy plans what it says, and what is left out is counted once, also when two
// nodes look at once.
func TestLook_AFortnightWithoutAScheduler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schedule     func(*Task)
		runs, missed int
	}{
		"all":            {func(t *Task) { t.Most = 100 }, 14, 0},
		"all, with cap":  {func(t *Task) { t.Most = 10 }, 10, 4},
		"all, not late":  {func(t *Task) { t.Most, t.Late = 100, 3*24*time.Hour }, 3, 11},
		"latest":         {func(t *Task) { t.CatchUp = CatchUpLatest }, 1, 0}, // it does the work of the others
		"none":           {func(t *Task) { t.CatchUp, t.Late = CatchUpNone, time.Hour }, 1, 13},
		"none, too late": {func(t *Task) { t.CatchUp, t.Late = CatchUpNone, 10*time.Minute }, 0, 14},
	} {
		for _, nodes := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " with ", nodes), func(t *testing.T) {
				t.Parallel()
				s := newMarks(t, 1, 1, 1)
				catalogue := Catalogue{daily("mark-1", c.schedule)}
				s.clock(morning)
				s.lookWith(catalogue)
				s.clock(morning.AddDate(0, 0, 13).Add(time.Hour))
				var sum Planned
				var mu sync.Mutex
				var working sync.WaitGroup
				for range nodes {
					working.Go(func() {
						planned := s.lookWith(catalogue)
						mu.Lock()
						defer mu.Unlock()
						sum.Runs, sum.Missed = sum.Runs+planned.Runs, sum.Missed+planned.Missed
					})
				}
				working.Wait()
				if sum.Runs != c.runs || sum.Missed != c.missed || len(s.windows()) != c.runs {
					t.Errorf("planned %+v, want %d windows and %d missed", sum, c.runs, c.missed)
				}
				if missed := s.number(`select missed from schedule`); missed != c.missed {
					t.Errorf("%d missed windows are kept, want %d", missed, c.missed)
				}
				if later := s.lookWith(catalogue); later.Runs+later.Missed+later.Driven != 0 {
					t.Errorf("the next look: %+v", later)
				}
			})
		}
	}
}

// A zone is planned from the moment at which an organisation has it; what an organisation leaves behind stays as it is.
func TestLook_ZonesComeAndGoWithTheirOrganisations(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1) // Africa/Bamako, which is on UTC
	catalogue := Catalogue{daily("mark-1", func(t *Task) { t.PerZone, t.Zone = true, "" })}
	s.clock(morning)
	s.lookWith(catalogue)
	_, err := account.AddOrganisation(t.Context(), s.db, s.actor, account.Organisation{
		Slug: "santiago", Name: "Escuela", Country: "CL", TimeZone: "America/Santiago", Locale: "es", Currency: "CLP",
	})
	s.must(err)
	s.pass(30 * time.Minute) // 01:00 in Bamako, 22:00 of the day before in Santiago
	s.lookWith(catalogue)
	want := []string{"mark-1 2026-11-28@Africa/Bamako"}
	equal(t, "at one in Bamako", s.windows(), want)
	s.pass(3 * time.Hour) // 01:00 in Santiago
	s.lookWith(catalogue)
	want = append(want, "mark-1 2026-11-28@America/Santiago")
	equal(t, "at one in Santiago", s.windows(), want)
	s.owner(`update organisation set time_zone = 'Asia/Tokyo' where id = ` + fmt.Sprint(s.orgs[0]))
	s.lookWith(catalogue)                                 // 04:00 in Bamako, 13:00 in Tokyo: nothing is done for the time before
	s.clock(morning.AddDate(0, 0, 1).Add(-6 * time.Hour)) // 18:30 in Bamako, 03:30 in Tokyo
	s.lookWith(catalogue)
	want = append(want, "mark-1 2026-11-29@Asia/Tokyo")
	equal(t, "at one in Tokyo", s.windows(), want)
	s.clock(morning.AddDate(0, 0, 1).Add(12 * time.Hour))
	s.lookWith(catalogue)
	// Whoever left Bamako was there when the 29th began; nobody was when the 30th did.
	want = append(want, "mark-1 2026-11-29@America/Santiago", "mark-1 2026-11-29@Africa/Bamako")
	slices.Sort(want)
	equal(t, "after Bamako was left", s.windows(), want)
	// Each organisation's things are done by the windows of the zones that it had, and by no other. That of the 28th, which was planned before
	// it moved, is done, too.
	s.owner(`insert into thing select id, 1 from organisation where id > 0 on conflict do nothing`)
	s.must(newNode(s.db, s.url, "parent", catalogue, nil).work(t.Context()))
	equal(t, "marks", s.texts(`select m.window_key || ' ' || o.slug from mark m join organisation o on o.id = m.organisation_id order by 1`), []string{
		"2026-11-28@Africa/Bamako ecole-0", "2026-11-28@America/Santiago santiago", "2026-11-29@Africa/Bamako ecole-0",
		"2026-11-29@America/Santiago santiago", "2026-11-29@Asia/Tokyo ecole-0",
	})
	s.clock(morning.AddDate(0, 0, 120))
	if planned := s.lookWith(catalogue); planned.Missed == 0 {
		t.Errorf("four months later: %+v", planned)
	}
	if n := s.number(`select count(*) from schedule where zone = 'Africa/Bamako' and planned_until > clock() - interval '1 day'`); n != 0 {
		t.Error("a zone that nobody has had for four months is planned")
	}
}

// Whenever an organisation moves, and from whichever zone to whichever, each day is in a window that is for it: whether that was planned
// before or after, run before or after. Without what is kept of the zones that it left, some are in none.
func TestLook_WhoeverMovesMissesNoDay(t *testing.T) {
	t.Parallel()
	zones := []string{"Africa/Bamako", "Asia/Tokyo", "America/Santiago", "Pacific/Kiritimati", "Etc/GMT+12"}
	task := daily("mark-1", func(t *Task) { t.PerZone, t.Zone = true, "" })
	missed := 0
	for _, from := range zones {
		for _, to := range zones {
			if from == to {
				continue
			}
			for hour := range 60 {
				moved := time.Date(2026, time.November, 28, hour, 10, 0, 0, time.UTC)
				in, without := false, false
				for zone, had := range map[string]func(Window) bool{
					from: func(w Window) bool { return w.DueAt.Before(moved) || moved.After(w.Start.Add(-zonesApart)) },
					to:   func(w Window) bool { return w.DueAt.After(moved) },
				} {
					location, err := time.LoadLocation(zone)
					if err != nil {
						t.Fatal(err)
					}
					w := task.Next(location, time.Date(2026, time.November, 29, 0, 0, 0, 0, location))
					if w.Key != "2026-11-28@"+zone {
						t.Fatalf("the window of the 28th is %s", w.Key)
					}
					in = in || had(w)
					without = without || (w.DueAt.Before(moved) == (zone == from))
				}
				if !in {
					t.Errorf("who moves from %s to %s at %v is in no window of the 28th", from, to, moved)
				}
				if !without {
					missed++
				}
			}
		}
	}
	if missed == 0 {
		t.Error("nobody would miss a day without it: the test shows nothing")
	}
}

// A zone that this program does not know (its organisation was added by one that knows later ones) holds up no other.
func TestLook_AnUnknownZoneHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 2, 1)
	s.owner(`update organisation set time_zone = 'Moon/Tranquility' where id = ` + fmt.Sprint(s.orgs[0]))
	catalogue := Catalogue{daily("mark-1", func(t *Task) { t.PerZone, t.Zone = true, "" })}
	s.clock(morning)
	s.lookWith(catalogue)
	s.pass(30 * time.Minute)
	planned := s.lookWith(catalogue)
	equal(t, "windows", s.windows(), []string{"mark-1 2026-11-28@Africa/Bamako"})
	equal(t, "zones that are said", planned.ZonesUnknown, []string{"Moon/Tranquility"})
	lines, _, err := Overview(t.Context(), s.db, s.actor, catalogue)
	s.must(err)
	if len(lines) != 2 || lines[0].Next.Key == "" || lines[1].Zone != "Moon/Tranquility" || lines[1].Next.Key != "" {
		t.Errorf("the overview: %+v", lines)
	}
	s.owner(`update organisation set time_zone = 'Africa/Bamako' where time_zone = 'Moon/Tranquility'`)
	if planned := s.lookWith(catalogue); len(planned.ZonesUnknown) != 0 {
		t.Errorf("corrected, it is still said: %+v", planned)
	}
}

// A task begins when it is added; one that is taken out leaves its rows, and is neither planned nor driven.
func TestLook_TasksComeAndGo(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	first, second := daily("mark-1", nil), daily("mark-2", nil)
	s.clock(morning)
	s.lookWith(Catalogue{first})
	s.clock(morning.AddDate(0, 0, 5).Add(time.Hour))
	if p := s.lookWith(Catalogue{first, second}); p.Runs != 6 || p.Missed != 0 {
		t.Errorf("planned %+v, want the six days of the first task", p)
	}
	s.clock(morning.AddDate(0, 0, 6).Add(time.Hour))
	p := s.lookWith(Catalogue{second})
	if got := s.windows(); p.Runs != 1 || p.Driven != 0 || !slices.Contains(got, "mark-2 2026-12-04") || len(got) != 7 {
		t.Errorf("without the first task: %+v, %v", p, got)
	}
	s.owner(`delete from job`)
	n := newNode(s.db, s.url, "parent", Catalogue{second}, nil)
	s.pass(time.Hour)
	if _, err := n.turn(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "runs", s.texts(`select task || ' ' || state || ' ' || epoch || ' ' || count(*) from run group by task, state, epoch order by 1`),
		[]string{"mark-1 running 0 6", "mark-2 done 1 1"})
}

// Whom a holder leaves, when: with a lease never; then at once, and later and later as holdings keep nothing; and when its job
// seems to be lost.
func TestLook_DrivesWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	s.due()
	s.look()
	for name, c := range map[string]struct {
		set    string
		driven bool
	}{
		"held":                              {`epoch = 1, lease_until = clock() + interval '1 second', driven_at = clock() - interval '1 hour'`, false},
		"handed over a moment ago":          {`epoch = 1, driven_epoch = 1, lease_until = null, driven_at = clock() - interval '5 seconds'`, false},
		"handed over, and its job was lost": {`epoch = 1, driven_epoch = 1, taken_at = clock() - interval '10 seconds', driven_at = clock() - interval '9 seconds'`, true},
		"died after its first holding":      {`epoch = 1, lease_until = clock() - interval '1 millisecond', fruitless = 1, driven_at = clock()`, true},
		"died again and again":              {`epoch = 4, lease_until = clock() - interval '7 seconds', fruitless = 4, driven_at = clock() - interval '7 seconds'`, false},
		"died again and again, a while ago": {`epoch = 4, lease_until = clock() - interval '9 seconds', fruitless = 4, driven_at = clock() - interval '7 seconds'`, true},
		"driven for this holding already":   {`epoch = 1, driven_epoch = 1, lease_until = clock() - interval '3 seconds', driven_at = clock() - interval '3 seconds'`, false},
		"waits its turn for half a minute":  {`driven_epoch = 0, lease_until = null, started_at = clock() - interval '40 seconds', driven_at = clock() - interval '10 seconds'`, false},
		"waits its turn for an hour":        {`driven_epoch = 0, lease_until = null, started_at = clock() - interval '1 hour', driven_at = clock() - interval '61 seconds'`, true},
		"driven ahead of the clock":         {`driven_epoch = 0, lease_until = null, driven_at = clock() + interval '1 year'`, true},
		"held, driven ahead of the clock":   {`epoch = 1, driven_epoch = 1, lease_until = clock() + interval '1 second', driven_at = clock() + interval '1 year'`, false},
		"died again and again ahead of it":  {`epoch = 4, lease_until = clock() + interval '1 year', fruitless = 4, driven_at = clock() - interval '1 second'`, true},
		"is not due":                        {`due_at = clock() + interval '1 second', driven_at = clock() - interval '1 hour'`, false},
		"has ended":                         {`state = 'done', finished_at = clock(), lease_until = clock() - interval '1 hour', driven_at = clock() - interval '1 hour'`, false},
		"is none of the schedule":           {`window_start = null, window_end = null, due_at = null, lease_until = clock() - interval '1 hour', driven_at = null, epoch = 3`, false},
	} {
		s.owner(`update run set epoch = 0, lease_until = null, fruitless = 0, driven_epoch = 0, taken_at = null, started_at = clock() - interval '1 minute', state = 'running',
  finished_at = null, window_start = clock(), window_end = clock(), due_at = clock()`, `update run set `+c.set)
		if got := s.look().Driven == 1; got != c.driven {
			t.Errorf("a run that %s: driven %v, want %v", name, got, c.driven)
		}
	}
}

// Late lists what should have ended by now and has not, and what failed lately; nothing else.
func TestLate_ListsWhatShouldHaveEndedAndWhatFailedLately(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 1, 1)
	catalogue := Catalogue{daily("mark-1", nil), daily("mark-2", func(t *Task) { t.PerZone, t.Zone = true, "" })}
	s.clock(morning)
	run := func(task, key, zone, set string) {
		s.owner(fmt.Sprintf(`
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at, lease_until)
values (0, '%s', '%s', '{}', 'a', '%s', clock(), clock(), clock(), clock() - interval '1 second')`, task, key, zone),
			fmt.Sprintf(`update run set %s where task = '%s' and window_key = '%s'`, set, task, key))
	}
	run("mark-1", "late", "UTC", `due_at = clock() - interval '61 minutes'`)
	run("mark-1", "waits", "UTC", `due_at = clock() - interval '62 minutes', lease_until = null`)
	run("mark-1", "in time", "UTC", `due_at = clock() - interval '59 minutes'`)
	run("mark-1", "failed", "UTC", `state = 'failed', finished_at = clock() - interval '23 hours', due_at = clock() - interval '24 hours'`)
	run("mark-1", "failed long ago", "UTC", `state = 'failed', finished_at = clock() - interval '25 hours', due_at = clock() - interval '26 hours'`)
	run("mark-1", "done", "UTC", `state = 'done', finished_at = clock(), due_at = clock() - interval '26 hours'`)
	run("mark-2", "of a zone that is gone", "America/Santiago", `due_at = clock() - interval '2 hours'`)
	run("fly", "of a task that is gone", "UTC", `due_at = clock() - interval '2 hours'`)
	late, err := Late(t.Context(), s.db, catalogue)
	s.must(err)
	got := make([]string, len(late))
	for i, r := range late {
		got[i] = r.Task + " " + r.Key + " " + string(r.State)
	}
	equal(t, "late", got, []string{
		"mark-1 failed failed", "mark-1 waits waiting", "mark-1 late waiting", "mark-2 of a zone that is gone waiting",
	})
}

// BenchmarkLook plans for a thousand tasks: when nothing is due, and when a minute is due of each of them.
func BenchmarkLook(b *testing.B) {
	s := newMarks(b, 1, 1, 1)
	// The clock as the program has it: the one of the tests is slower, and is read for each row.
	s.owner(`create or replace function clock() returns timestamptz language sql volatile parallel safe
  as $$ select coalesce(nullif(current_setting('app.clock', true), '')::timestamptz, clock_timestamp()) $$`)
	catalogue := make(Catalogue, 1000)
	for i := range catalogue {
		catalogue[i] = daily(fmt.Sprint("mark-", i), func(t *Task) { t.Cron, t.Period = "* * * * *", Minute })
	}
	n := newNode(s.db, s.url, "parent", catalogue, nil)
	n.planner.Enqueue = func(ctx context.Context, tx pgx.Tx, ready []Ready) error { // as River does: all of them in one statement
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"job"}, []string{"run_id", "epoch"}, pgx.CopyFromSlice(len(ready),
			func(i int) ([]any, error) { return []any{ready[i].RunID, ready[i].Epoch}, nil }))
		return err
	}
	look := func(b *testing.B, want int) {
		b.Helper()
		planned, err := n.planner.Look(b.Context(), s.db)
		s.must(err)
		if want > 0 && planned.Runs != want {
			b.Fatalf("planned %d windows, want %d", planned.Runs, want)
		}
	}
	look(b, 0)
	b.Run("nothing due", func(b *testing.B) {
		for b.Loop() {
			look(b, 0)
		}
	})
	b.Run("a thousand due", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s.owner(`delete from run`, `vacuum run`, `update schedule set planned_until = clock() - interval '1 minute'`, `vacuum schedule`)
			b.StartTimer()
			look(b, len(catalogue))
		}
	})
}
