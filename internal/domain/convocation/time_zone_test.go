package convocation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"usher/internal/domain/seating"
)

// hours are the sittings with the hours that their centre's clocks show.
func (s *school) hours() []string {
	s.t.Helper()
	timetable, err := Timetable(s.t.Context(), s.db, s.actor, s.campaign.Slug)
	s.must(err)
	all := make([]string, len(timetable))
	for i, one := range timetable {
		zone, err := time.LoadLocation(one.Zone)
		s.must(err)
		all[i] = fmt.Sprint(one.Reference, " ", one.StartsAt.In(zone).Format("02 15:04"), "–", one.EndsAt.In(zone).Format("15:04"))
	}
	slices.Sort(all) // S005 is over
	return all
}

func TestSetTimeZone_ComingSittingsKeepTheirLocalHours(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{hours: 2})
	s.sit(hall{hour: 2, hours: 2}) // back to back in one room: none may meet its neighbour on the way
	s.sit(hall{hour: 4, hours: 2})
	s.sit(hall{centre: "Kayes"})
	s.sit(hall{room: "Salle 9", day: -31})
	before, elsewhere := s.hours(), s.texts(`select starts_at::text from sitting where organisation_id = $1 and reference in ('S004', 'S005') order by id`, s.org.ID)
	instants := `select extract(hour from starts_at at time zone 'UTC')::text from sitting where organisation_id = $1 and reference < 'S004' order by reference`
	for _, c := range []struct {
		zone  string
		first []string
	}{
		{"Africa/Libreville", []string{"7", "9", "11"}},    // everything earlier
		{"Atlantic/Cape_Verde", []string{"9", "11", "13"}}, // everything later
		{"Africa/Bamako", []string{"8", "10", "12"}},       // and back
	} {
		changed, err := seating.SetTimeZone(t.Context(), s.db, s.actor, s.org, "badalabougou", c.zone)
		s.must(err)
		if changed.Sittings != 3 || len(changed.Lasting) > 0 {
			t.Errorf("%s changed %+v, want 3 sittings and none that lasts otherwise", c.zone, changed)
		}
		s.equal("local hours in "+c.zone, s.hours()[:4], before[:4])
		s.equal("instants of "+c.zone, s.texts(instants, s.org.ID), c.first)
		s.equal("what is over, or elsewhere", s.texts(`select starts_at::text from sitting where organisation_id = $1 and reference in ('S004', 'S005') order by id`, s.org.ID), elsewhere)
	}
	if changed, err := seating.SetTimeZone(t.Context(), s.db, s.actor, s.org, "Badalabougou", "Africa/Bamako"); err != nil || changed.Sittings != 0 {
		t.Errorf("the same zone again: %+v, %v", changed, err)
	}
	if n := s.number(`select count(*) from timeline where organisation_id = $1 and kind = 'time_zone_changed'`, s.org.ID); n != 3 {
		t.Errorf("%d rows of the timeline, want one a change", n)
	}
}

func TestSetTimeZone_Refusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(5)})
	s.sit(hall{centre: "Kayes", day: 1, capacity: places(5)})
	change := func(centre, zone, code string) {
		t.Helper()
		_, err := seating.SetTimeZone(t.Context(), s.db, s.actor, s.org, centre, zone)
		refused(t, err, code)
	}
	change("Nowhere", "Africa/Libreville", "centre_unknown")
	for _, zone := range []string{"", "Local", "Mars/Olympus", "UTC+1", "posixrules", "localtime", "Factory", "right/UTC", "posix/UTC"} {
		change("Badalabougou", zone, "time_zone_unknown")
	}
	// An hour over which the clocks go forward in Paris, the last Sunday of March.
	s.owner(`update sitting set starts_at = '2100-03-28 02:30Z', ends_at = '2100-03-28 04:00Z' where reference = 'S002'`)
	change("Kayes", "Europe/Paris", "time_zone_skips")
	s.owner(`update sitting set starts_at = '2100-03-27 22:30Z', ends_at = '2100-03-28 02:30Z' where reference = 'S002'`)
	change("Kayes", "Europe/Paris", "time_zone_skips")
	// A day that has 25 hours there; and, the other way, an end that the clocks show before the start.
	s.owner(`update sitting set starts_at = '2100-10-30 12:00Z', ends_at = '2100-10-31 12:00Z' where reference = 'S002'`)
	change("Kayes", "Europe/Paris", "time_zone_hours")
	s.owner(`update centre set time_zone = 'Europe/Paris' where name = 'Kayes'`,
		`update sitting set starts_at = '2100-10-31 00:45Z', ends_at = '2100-10-31 01:15Z' where reference = 'S002'`)
	change("Kayes", "Africa/Bamako", "time_zone_hours")
	s.owner(`update centre set time_zone = 'Africa/Bamako' where name = 'Kayes'`)
	// Within the hour to come, there are zones where that hour is over.
	s.owner(`update sitting set starts_at = clock() + interval '30 minutes', ends_at = clock() + interval '90 minutes' where reference = 'S002'`)
	change("Kayes", "Africa/Libreville", "sitting_into_past")

	s.file(person{})
	s.owner(`update sitting set starts_at = starts_at + interval '60 days', ends_at = ends_at + interval '60 days' where reference = 'S002'`)
	s.convoke()
	rows := s.hours()
	change("Badalabougou", "Africa/Libreville", "time_zone_told")
	s.equal("nothing changed", s.hours(), rows)
	s.must(s.release("C0001"))
	_, err := seating.SetTimeZone(t.Context(), s.db, s.actor, s.org, "Badalabougou", "Africa/Libreville")
	s.must(err)
	s.equal("once nobody sits there, its hours stay", s.hours(), rows)
}

// Over a night in which the clocks change, hours stay as they are written, those of the end too: what lasts longer or
// shorter by it is named, and lasts as before in the zone of before.
func TestSetTimeZone_OverANightInWhichTheClocksChange(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	for range 5 {
		s.sit(hall{day: s.sittings})
	}
	for i, hours := range []string{
		"'2100-03-27 22:00Z', '2100-03-28 06:00Z'", "'2100-03-28 06:00Z', '2100-03-28 08:00Z'", // back to back
		"'2100-10-30 22:00Z', '2100-10-31 06:00Z'", "'2100-10-31 06:00Z', '2100-10-31 07:00Z'",
		"'2100-10-31 21:00Z', '2100-11-01 05:00Z'",
	} {
		s.owner(fmt.Sprintf(`update sitting set (starts_at, ends_at) = (%s) where reference = 'S00%d'`, hours, i+1))
	}
	before := s.hours()
	for _, c := range []struct {
		zone string
		want string
	}{
		{"Europe/Paris", "[{ecole-campaign S001 480 420} {ecole-campaign S003 480 540}]"},
		{"Africa/Bamako", "[{ecole-campaign S001 420 480} {ecole-campaign S003 540 480}]"},
	} {
		change, err := seating.SetTimeZone(t.Context(), s.db, s.actor, s.org, "Badalabougou", c.zone)
		s.must(err)
		if got := strings.ReplaceAll(fmt.Sprint(change.Lasting), s.campaign.Slug, "ecole-campaign"); change.Sittings != 5 || got != c.want {
			t.Errorf("%s: %d changed, %s; want 5, %s", c.zone, change.Sittings, got, c.want)
		}
		s.equal("hours in "+c.zone, s.hours(), before)
	}
	s.equal("the timeline", s.texts(`select facts->'lasting'->0->>'sitting' from timeline where organisation_id = $1 and kind = 'time_zone_changed' order by id`, s.org.ID),
		[]string{"S001", "S001"})
}
