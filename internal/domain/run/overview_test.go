package run

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/schema"
	"usher/internal/domain/timeline"
)

// at is the database as it is seen at an instant.
func (s *things) at(instant time.Time) *pg.DB {
	s.Helper()
	db, err := pg.Open(s.Context(), s.url+"&app.clock="+url.QueryEscape(instant.UTC().Format(time.RFC3339)), schema.Migrations())
	s.must(err)
	s.Cleanup(db.Close)
	return db
}

// line is how the task stands at an instant.
func (s *things) line(instant time.Time) Line {
	s.Helper()
	lines, _, err := Overview(s.Context(), s.at(instant), s.actor, Catalogue{s.task})
	s.must(err)
	if len(lines) != 1 {
		s.Fatalf("%d lines, want 1", len(lines))
	}
	return lines[0]
}

func TestOverview_TellsOfWindowsThatNobodyPlans(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	due := time.Date(2026, time.November, 29, 1, 0, 0, 0, time.UTC)
	if l := s.line(due.AddDate(0, 0, 3)); l.Unplanned != 0 {
		t.Errorf("a task that no node has seen yet has %d windows that nobody planned", l.Unplanned)
	}
	planner := Planner{Catalogue: Catalogue{s.task}, Enqueue: s.executor().Enqueue}
	look := func(instant time.Time) {
		t.Helper()
		_, err := planner.Look(t.Context(), s.at(instant))
		s.must(err)
	}
	look(due.Add(-time.Hour))
	for after, want := range map[time.Duration]int{-time.Minute: 0, 30 * time.Second: 0, 2 * time.Minute: 1, 49 * time.Hour: 3} {
		if l := s.line(due.Add(after)); l.Unplanned != want {
			t.Errorf("%s after it is due, %d windows are not planned, want %d", after, l.Unplanned, want)
		}
	}
	look(due.Add(49 * time.Hour))
	if l := s.line(due.Add(49 * time.Hour)); l.Unplanned != 0 || len(l.Underway) != 3 {
		t.Errorf("planned: %d windows are not, and %d are under way", l.Unplanned, len(l.Underway))
	}
}

func TestOverview_NamesTheWindowsThatFailed(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	s.task.Work.MostRefused = 2
	s.owner(`update thing set broken = true`)
	for _, key := range []string{"2026-11-26", "2026-11-27"} {
		_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key})
		s.must(err)
	}
	s.owner(`update thing set broken = false`)
	s.run(false)
	l := s.line(time.Date(2026, time.November, 29, 10, 0, 0, 0, time.UTC))
	if l.Failed != 2 || len(l.Failures) != 2 || l.Failures[0].Key != "2026-11-27" || l.Failures[1].Key != "2026-11-26" || l.Last.State != StateDone {
		t.Errorf("the line is %+v", l)
	}
	if !s.task.TooManyRefused(l.Failures[0].Progress) || s.task.TooManyRefused(l.Last.Progress) {
		t.Errorf("refused too many: %+v, and not %+v", l.Failures[0].Progress, l.Last.Progress)
	}
}

// What refused something stays in view, whatever was done since, until it is repeated; so it does for the alarm.
func TestOverview_NamesTheWindowsThatRefusedSomethingUntilTheyAreRepeated(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	run := func(key string, again bool) {
		t.Helper()
		_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key, Again: again})
		s.must(err)
	}
	late := func() (keys []string) {
		t.Helper()
		runs, err := Late(t.Context(), s.db, Catalogue{s.task})
		s.must(err)
		for _, r := range runs {
			keys = append(keys, r.Key)
		}
		return keys
	}
	now := time.Date(2026, time.November, 29, 10, 0, 0, 0, time.UTC)
	s.task.Work.MostRefused = 2
	s.owner(`update thing set broken = true where id < 3`)
	run("2026-11-26", false)
	s.owner(`update thing set broken = false`)
	run("2026-11-27", false)
	l := s.line(now)
	if l.Partial != 1 || len(l.Partials) != 1 || l.Partials[0].Key != "2026-11-26" || l.Partials[0].Progress.Refused != 2 || l.Last.Key != "2026-11-27" {
		t.Errorf("the line is %+v", l)
	}
	equal(t, "for the alarm", late(), []string{"2026-11-26"})
	run("2026-11-26", true)
	if l := s.line(now); l.Partial != 0 || len(l.Partials) != 0 {
		t.Errorf("repeated, the line is %+v", l)
	}
	equal(t, "for the alarm, after it was repeated", late(), nil)
}

// What came too late is named, and counts no more once somebody has run it.
func TestOverview_NamesTheWindowsThatWereMissedUntilTheyAreRun(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	s.task.Most = 2
	planner := Planner{Catalogue: Catalogue{s.task}, Enqueue: s.executor().Enqueue}
	at := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	_, err := planner.Look(t.Context(), s.at(at))
	s.must(err)
	planned, err := planner.Look(t.Context(), s.at(at.AddDate(0, 0, 5)))
	s.must(err)
	if want := (TooLate{s.task.Name, "UTC", 3, "2026-11-20", "2026-11-22"}); planned.Missed != 3 || !slices.Equal(planned.TooLate, []TooLate{want}) {
		t.Errorf("planned %+v, want %+v", planned, want)
	}
	now := at.AddDate(0, 0, 5)
	missed := func(count int64, keys ...string) {
		t.Helper()
		l := s.line(now)
		equal(t, "missed", l.MissedKeys, keys)
		if l.Missed != count {
			t.Errorf("%d are missed, want %d", l.Missed, count)
		}
	}
	missed(3, "2026-11-22", "2026-11-21", "2026-11-20")
	for _, key := range []string{"2026-11-22", "2026-11-20"} {
		_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key})
		s.must(err)
	}
	missed(1, "2026-11-21")
	s.owner(`update schedule set missed = missed + 4`) // counted by a release that named nothing
	missed(5, "2026-11-21")
}

// A holding that kept nothing is counted with what stopped it; one that is under way may still keep something.
func TestOverview_CountsTheHoldingsThatKeptNothing(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	s.run(false)
	s.owner(`update run set state = 'running', finished_at = null, fruitless = 3, error = 'a collision', lease_until = clock() - interval '1 second'`)
	// A whole second that is over for whatever was asked for by hand: in the one that is under way, it would not be due yet.
	now := time.Now().Truncate(time.Second).Add(time.Second)
	if r := s.line(now).Underway[0]; r.Fruitless != 3 || r.Error != "a collision" {
		t.Errorf("nobody holds it: %+v", r)
	}
	// By the clock of the overview, which stands: by the real one a lease may lapse before somebody looks.
	s.owner(`update run set lease_until = '` + now.Add(windowLease).Format(time.RFC3339) + `'`)
	if r := s.line(now).Underway[0]; r.Fruitless != 2 {
		t.Errorf("somebody holds it: %+v", r)
	}
}

// A window that somebody repeats is late when that takes long, and not because it was due long ago.
func TestOverview_AWindowThatIsRepeatedIsNotLateAtOnce(t *testing.T) {
	t.Parallel()
	s := newThings(t, 5, 1)
	s.run(false)
	s.owner(`update run set due_at = clock() - interval '30 days'`)
	var seen []bool
	var looked error
	s.task.Work.Do = func(ctx context.Context, tx pgx.Tx, w Window, items []Item) (Outcome, error) {
		lines, _, err := Overview(ctx, s.db, s.actor, Catalogue{s.task})
		late, lateErr := Late(ctx, s.db, Catalogue{s.task})
		if looked = errors.Join(err, lateErr); looked == nil {
			seen = append(seen, lines[0].Underway[0].Overdue, len(late) > 0)
		}
		return doThings(ctx, tx, w, items)
	}
	s.run(true)
	s.must(looked)
	if !slices.Equal(seen, []bool{false, false}) {
		t.Errorf("late for the page and for the alarm: %v", seen)
	}
	s.owner(`update run set state = 'running', finished_at = null, asked_at = clock() - interval '2 hours' where window_start is not null`)
	if l := s.line(time.Now()); !l.Underway[0].Overdue {
		t.Error("two hours after it was asked for, it is not late")
	}
}

// The latest windows of a task are listed for whoever administers the installation, and for nobody else.
func TestWindows_ListsTheLatest(t *testing.T) {
	t.Parallel()
	s := newThings(t, 1, 1)
	list := func() (keys []string) {
		t.Helper()
		runs, err := Windows(t.Context(), s.db, s.actor, s.task)
		s.must(err)
		for _, r := range runs {
			keys = append(keys, r.Key)
		}
		return keys
	}
	equal(t, "before any", list(), nil)
	for _, key := range []string{"2026-11-27", "2026-11-28", "2026-11-26"} {
		_, err := s.executor().Run(t.Context(), s.db, s.actor, Wanted{Task: s.task.Name, Key: key})
		s.must(err)
	}
	equal(t, "the windows", list(), []string{"2026-11-28", "2026-11-27", "2026-11-26"})
	s.owner(`
insert into run (organisation_id, task, window_key, request, actor, zone, window_start, window_end, due_at)
select 0, 'do-things', 'w' || i, '{}', 'a', 'UTC', clock(), clock() - i * interval '1 second' + interval '1 minute', clock()
  from generate_series(1, 60) i`, `update run set window_start = window_end where window_key like 'w%'`)
	if keys := list(); len(keys) != MostWindows || keys[0] != "w1" || keys[MostWindows-1] != "w50" {
		t.Errorf("of 63: %v", keys)
	}
	manager := timeline.Actor{Name: "manager", OrganisationID: 1, Role: account.Manager}
	if _, err := Windows(t.Context(), s.db, manager, s.task); err == nil {
		t.Error("somebody who does not administer the installation reads them")
	}
	last, err := LastWindows(t.Context(), s.db, manager, Catalogue{s.task})
	s.must(err)
	if runs := last[s.task.Name]; len(runs) != fewWindows || runs[0].Key != "w1" || runs[fewWindows-1].Key != "w7" {
		t.Errorf("the last ones: %+v", last)
	}
	if _, err := LastWindows(t.Context(), s.db, timeline.Actor{Name: "door", OrganisationID: 1, Role: account.Door}, Catalogue{s.task}); err == nil {
		t.Error("somebody who does not answer for an organisation reads the last ones")
	}
}
