package intake_test

import (
	"strings"
	"testing"
	"time"

	"usher/internal/base/sheet"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
)

// paris is a campaign whose centre Lyon has the clocks of Paris: on 31 October 2027 they show the hours from 2:00 to 3:00 twice.
func paris(t *testing.T) *bench {
	t.Helper()
	b := setup(t, "MATH")
	b.sittings(sittingHeader, "MATH;Lyon;R0;40;10/05/2127 08:00;10/05/2127 10:00")
	b.zone("Lyon", "Europe/Paris")
	return b
}

const (
	bareHour   = "MATH;Lyon;R1;40;2027-10-31 02:30;2027-10-31 04:00"
	firstHour  = "MATH;Lyon;R1;40;2027-10-31 02:30+02:00;2027-10-31 04:00"
	secondHour = "MATH;Lyon;R1;40;2027-10-31 02:30+01:00;2027-10-31 04:00"
)

// hours are the instants of the sittings in R1.
func (b *bench) hours() string {
	b.t.Helper()
	return b.text(`select string_agg(concat_ws(' ', s.reference, to_char(s.starts_at at time zone 'UTC', 'HH24:MI'), to_char(s.ends_at at time zone 'UTC', 'HH24:MI'), s.capacity), ', ' order by s.reference)
  from sitting s join room r on r.id = s.room_id where s.cancelled_at is null and r.name = 'R1'`)
}

func (b *bench) wantHours(want string) {
	b.t.Helper()
	if got := b.hours(); got != want {
		b.t.Errorf("the sittings are %q, want %q", got, want)
	}
}

// Doing what the warning advises has the sitting at the other instant; and back; and each file is nothing new the second time.
func TestSittings_OtherHourByTheFile(t *testing.T) {
	t.Parallel()
	b := paris(t)
	r := b.sittings(sittingHeader, bareHour)
	wantSaid(t, r.Warnings, "2:début:time_comes_twice")
	b.wantHours("S002 00:30 03:00 40")
	cell, _ := r.Warnings[0].Facts["other"].(string)
	advised := strings.Replace(bareHour, "2027-10-31 02:30", cell, 1)
	r = b.sittings(sittingHeader, strings.Replace(advised, ";40;", ";50;", 1))
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	b.wantHours("S002 01:30 03:00 50")
	if got := b.text("select revision from sitting where reference = 'S002'"); got != "2" {
		t.Errorf("the revision is %s: papers of before name another hour", got)
	}
	if got := b.text("select facts->'changes'->>'starts_at' from timeline where kind = 'sitting_updated'"); got != `["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"]` {
		t.Errorf("the timeline has %s", got)
	}
	// A list that lost its offsets means the sitting where it is.
	r = b.sittings(sittingHeader, strings.Replace(bareHour, ";40;", ";50;", 1))
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:début:time_comes_twice_there")
	for _, step := range []struct{ row, hours string }{{firstHour, "S002 00:30 03:00 40"}, {secondHour, "S002 01:30 03:00 40"}} {
		wantCounts(t, b.sittings(sittingHeader, step.row), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
		b.wantHours(step.hours)
		before := b.snapshot()
		wantCounts(t, b.sittings(sittingHeader, step.row), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
		if b.snapshot() != before {
			t.Error("the same file changed something")
		}
	}
}

// A file that names both instants means two sittings, each its own, in whatever order.
func TestSittings_BothHours(t *testing.T) {
	t.Parallel()
	b := paris(t)
	short := func(row, end string) string { return strings.Replace(row, "2027-10-31 04:00", end, 1) }
	first, second := short(firstHour, "2027-10-31 02:50+02:00"), short(secondHour, "2027-10-31 02:50+01:00")
	r := b.sittings(sittingHeader, second, first)
	wantCounts(t, r, "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
	b.wantHours("S002 01:30 01:50 40, S003 00:30 00:50 40")
	before := b.snapshot()
	wantCounts(t, b.sittings(sittingHeader, first, second), "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
	r = b.sittings(sittingHeader, first, strings.Replace(second, ";40;", ";7;", 1))
	wantCounts(t, r, "read 2 created 0 updated 1 unchanged 1 rejected 0 ignored 0")
	b.wantHours("S002 01:30 01:50 7, S003 00:30 00:50 40")
}

// People were told one of the two instants: a file does not change it, and names the command that does.
func TestSittings_OtherHourOfAConvokedSitting(t *testing.T) {
	t.Parallel()
	b := paris(t)
	b.sittings(sittingHeader, bareHour)
	b.candidates("dossier;nom", "1;Diop")
	b.seatAt("S002", "1", 1)
	r := b.sittings(sittingHeader, strings.Replace(secondHour, ";40;", ";50;", 1))
	wantSaid(t, r.Rejected, "2:début:sitting_replaced")
	if got := r.Rejected[0].Facts["command"]; got != `usher sitting move S002 --campaign concours --starts "2027-10-31 02:30+01:00" --ends "2027-10-31 04:00"` {
		t.Errorf("the command is %s", got)
	}
	b.wantHours("S002 00:30 03:00 40")
}

// At the other instant another sitting may be in the way; it is named.
func TestSittings_OtherHourInABusyRoom(t *testing.T) {
	t.Parallel()
	b := paris(t)
	b.sittings(sittingHeader, strings.Replace(secondHour, "04:00", "03:30", 1), "MATH;Lyon;R1;40;2027-10-31 02:05+02:00;2027-10-31 02:15+01:00")
	b.wantHours("S002 01:30 02:30 40, S003 00:05 01:15 40")
	r := b.sittings(sittingHeader, firstHour)
	wantSaid(t, r.Rejected, "2:salle:room_taken")
	b.wantHours("S002 01:30 02:30 40, S003 00:05 01:15 40")
}

// What a hand made of an hour stands while the file says what it said, and is named.
func TestSittings_OtherHourByHand(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{"bare": bareHour, "with its offset": firstHour} {
		b := paris(t)
		b.sittings(sittingHeader, row)
		b.sql("update sitting set starts_at = starts_at + interval '1 hour' where reference = 'S002'")
		r := b.sittings(sittingHeader, row)
		wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
		if got := said(r.Warnings); !strings.HasSuffix(got, "2::sitting_moved") {
			t.Errorf("%s: said %q", name, got)
		}
		b.wantHours("S002 01:30 03:00 40")
		// The file agrees with the hand, and then another hour of the file is new.
		wantSaid(t, b.sittings(sittingHeader, secondHour).Warnings, "")
		wantCounts(t, b.sittings(sittingHeader, firstHour), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
		b.wantHours("S002 00:30 03:00 40")
	}
}

// The same of an end: what a hand made of it is not undone by a file that says what it said.
func TestSittings_OtherHourOfAnEnd(t *testing.T) {
	t.Parallel()
	b := paris(t)
	row := "MATH;Lyon;R1;40;2027-10-30 22:00;2027-10-31 02:30"
	b.sittings(sittingHeader, row)
	b.sql("update sitting set ends_at = ends_at + interval '1 hour' where reference = 'S002'")
	r := b.sittings(sittingHeader, row)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:time_comes_twice 2:fin:hand_kept")
	b.wantHours("S002 20:00 01:30 40")
	r = b.sittings(sittingHeader, row+"+01:00")
	wantSaid(t, r.Warnings, "")
	r = b.sittings(sittingHeader, row+"+02:00")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	b.wantHours("S002 20:00 00:30 40")
}

// Another zone of the centre and back leaves the instant that a file named.
func TestSittings_SecondHourOutlivesAnotherZone(t *testing.T) {
	t.Parallel()
	b := paris(t)
	rows := []string{sittingHeader, secondHour, "MATH;Lyon;R2;40;2027-10-30 22:00;2027-10-31 02:30+01:00"}
	b.sittings(rows...)
	before := b.snapshot()
	b.zone("Lyon", "Europe/London")
	b.zone("Lyon", "Europe/Paris")
	b.wantHours("S002 01:30 03:00 40")
	r := b.sittings(rows...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	cut := func(s string) string { return s[strings.Index(s, "sitting: "):strings.Index(s, "timeline: ")] }
	if cut(b.snapshot()) != cut(before) {
		t.Error("the sittings are others")
	}
	// Had it come to stand at the other instant all the same, the file would say where it is.
	b.sql("update sitting set starts_at = starts_at - interval '1 hour' where reference = 'S002'")
	r = b.sittings(rows...)
	wantSaid(t, r.Warnings, "2::sitting_moved")
	if got := r.Warnings[0].Facts["command"]; got != `usher sitting move S002 --campaign concours --starts "2027-10-31 02:30+01:00" --ends "2027-10-31 04:00"` {
		t.Errorf("the command is %s", got)
	}
}

// Both instants at once, by two imports: one follows the other, and the later counts.
func TestSittings_OtherHourAtOnce(t *testing.T) {
	t.Parallel()
	b := paris(t)
	b.sittings(sittingHeader, bareHour)
	done := make(chan error, 8)
	for n := range 8 {
		go func() {
			_, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", csv(sittingHeader, []string{firstHour, secondHour}[n%2]), intake.Options{})
			done <- err
		}()
	}
	for range 8 {
		b.must(<-done)
	}
	if got := b.hours(); got != "S002 00:30 03:00 40" && got != "S002 01:30 03:00 40" {
		t.Errorf("the sittings are %q", got)
	}
}

func TestShownTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2027-10-31 02:30+02:00": "2027-10-31 02:30+01:00", "2027-10-31 02:30+01:00": "2027-10-31 02:30+02:00", "2027-10-31 03:30+01:00": "",
		"2027-10-31 01:59:59.5+02:00": "",
	} {
		at, other := instant(t, text), ""
		if is, twice, second := seating.ShownTwice(at); twice {
			other = is.Format("2006-01-02 15:04-07:00")
			if second != seating.Second(at) || second != is.Before(at) {
				t.Errorf("%s is the second: %v", text, second)
			}
		}
		if other != want {
			t.Errorf("%s is shown as %q, want %q", text, other, want)
		}
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := sheet.DayFirst.Instant(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
