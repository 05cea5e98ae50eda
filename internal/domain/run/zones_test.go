package run

import (
	"fmt"
	"testing"
	"time"

	"usher/internal/base/problem"
)

// A key without a zone names the windows of all zones. Those that are due are run; one that is not due yet, and one whose zone the program
// does not know, are named, and hold up no other. Where none can be run, the first one says why, and so does one that is named by its zone.
func TestRun_OfAllZonesThoseAreRunThatCanBe(t *testing.T) {
	t.Parallel()
	s := newMarks(t, 1, 3, 1) // Africa/Bamako, which is on UTC
	s.owner(fmt.Sprintf(`update organisation set time_zone = 'America/Santiago' where id = %d`, s.orgs[1]),
		fmt.Sprintf(`update organisation set time_zone = 'Moon/Tranquility' where id = %d`, s.orgs[2]), `delete from former_zone`)
	catalogue := Catalogue{daily("mark-1", func(t *Task) { t.PerZone, t.Zone = true, "" })}
	e := newNode(s.db, s.url, "test", catalogue, nil).executor
	ran := func(key string) []Result {
		t.Helper()
		results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: "mark-1", Key: key})
		s.must(err)
		return results
	}
	refused := func(key, code string) {
		t.Helper()
		if results, err := e.Run(t.Context(), s.db, s.actor, Wanted{Task: "mark-1", Key: key}); !problem.Has(err, code) || len(results) != 0 {
			t.Errorf("%s: %+v, %v, want %s", key, results, err, code)
		}
	}
	s.clock(time.Date(2026, time.November, 29, 0, 30, 0, 0, time.UTC)) // a day is due at one o'clock
	refused("2026-11-28", "window_not_due")
	refused("2026-11-28@America/Santiago", "window_not_due")
	refused("2026-11-28@Moon/Tranquility", "time_zone_unknown")
	s.pass(time.Hour)
	results := ran("2026-11-28")
	if len(results) != 3 || results[0].State != StateDone || results[0].Window.Zone != "Africa/Bamako" ||
		results[1].Window.Key != "2026-11-28@America/Santiago" || !problem.Has(results[1].Left, "window_not_due") ||
		results[2].Window.Key != "2026-11-28@Moon/Tranquility" || !problem.Has(results[2].Left, "time_zone_unknown") {
		t.Fatalf("%+v", results)
	}
	equal(t, "marked", s.texts(`select organisation_id::text from mark`), []string{fmt.Sprint(s.orgs[0])})
	if runs := s.number(`select count(*) from run`); runs != 1 {
		t.Errorf("%d runs were written, want 1", runs)
	}
	s.pass(3 * time.Hour)
	if results := ran("2026-11-28"); !results[0].Already || results[1].State != StateDone || results[2].Left == nil {
		t.Errorf("%+v", results)
	}
	if results := ran(""); !results[0].Already || !results[1].Already || results[2].Left == nil {
		t.Errorf("the latest: %+v", results)
	}
}

// An organisation that moves after the window of its zone was planned, or before, to a zone that has had its own, misses nothing; and
// nobody is in a window of a zone that they left before it began.
func TestRun_WhoMovedIsInTheWindowsOfBothZones(t *testing.T) {
	t.Parallel()
	for name, planned := range map[string]bool{"after it was planned": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMarks(t, 1, 2, 1)
			s.owner(fmt.Sprintf(`update organisation set time_zone = 'Asia/Tokyo' where id = %d`, s.orgs[1]), `delete from former_zone`)
			n := newNode(s.db, s.url, "test", Catalogue{daily("mark-1", func(t *Task) { t.PerZone, t.Zone = true, "" })}, nil)
			s.clock(time.Date(2026, time.November, 28, 12, 0, 0, 0, time.UTC)) // Tokyo's 27th is long done, its 28th is due at 16:00
			_, err := n.planner.Look(t.Context(), s.db)
			s.must(err)
			s.pass(8 * time.Hour)
			s.must(n.work(t.Context())) // Tokyo's 28th
			move := func() {
				s.owner(fmt.Sprintf(`update organisation set time_zone = 'Asia/Tokyo' where id = %d`, s.orgs[0]))
			}
			if !planned {
				move()
			}
			s.pass(6 * time.Hour) // 02:00 of the 29th
			_, err = n.planner.Look(t.Context(), s.db)
			s.must(err)
			if planned {
				move()
			}
			s.must(n.work(t.Context()))
			s.pass(48 * time.Hour)
			s.must(n.work(t.Context()))
			equal(t, "of who moved", s.texts(fmt.Sprintf(`select window_key from mark where organisation_id = %d and window_key like '2026-11-28%%'`, s.orgs[0])),
				[]string{"2026-11-28@Africa/Bamako"})
			if n := s.number(fmt.Sprintf(`select count(*) from mark where organisation_id = %d and window_key > '2026-11-30' and window_key like '%%Bamako'`, s.orgs[0])); n != 0 {
				t.Errorf("%d days that began after they left", n)
			}
			// The control: without what is kept of the zone that was left, nobody is in the day.
			s.owner(`delete from former_zone`)
			var covered int
			s.must(s.db.Pool().QueryRow(t.Context(), `select count(*) from organisations_of_zone('Africa/Bamako', '2026-11-28Z')`).Scan(&covered))
			if covered != 0 {
				t.Errorf("%d organisations are in it all the same: the test shows nothing", covered)
			}
		})
	}
}
