package intake_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/domain/seating"
)

// sql does what a command of a later package does to a sitting.
func (b *bench) sql(statement string) {
	b.t.Helper()
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), statement)
		return err
	})
}

func (b *bench) zone(centre, zone string) {
	b.t.Helper()
	_, err := seating.SetTimeZone(b.t.Context(), b.db, b.actor, b.org, centre, zone)
	b.must(err)
}

// The hours of a file are local: it means the sittings that it planned also when their centre got another
// zone in between, wherever they were moved since.
func TestSittings_MovedAfterItsZoneChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ move, warned string }{
		"start": {"starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day'", "2::sitting_moved"},
		"end":   {"ends_at = ends_at + interval '1 hour'", "2:fin:hand_kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "MATH")
			lines := []string{sittingHeader, "MATH;Lyon;R1;40;10/05/2127 08:00;10/05/2127 10:00", "MATH;Lyon;R2;40;11/05/2127 14:00;11/05/2127 16:00"}
			b.sittings(lines...)
			b.zone("Lyon", "Europe/Paris")
			b.candidates("dossier;nom", "1;Diop")
			b.seatAt("S001", "1", 1)
			b.sql("update sitting set " + c.move + ", revision = 2 where reference = 'S001'")
			before := b.snapshot()
			r := b.sittings(lines...)
			wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
			wantSaid(t, r.Warnings, c.warned)
			if b.snapshot() != before {
				t.Error("the same file changed something")
			}
		})
	}
}

// A list of a sitting over a night in which the clocks change says the same in another zone of its centre.
func TestSittings_ZoneChangedOverANightInWhichTheClocksChange(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Lyon;R1;40;27/03/2027 22:00;28/03/2027 06:00", "MATH;Lyon;R2;40;30/10/2027 22:00;31/10/2027 06:00"}
	b.sittings(lines...)
	for _, zone := range []string{"Europe/Paris", "Africa/Bamako"} {
		b.zone("Lyon", zone)
		before := b.snapshot()
		r := b.sittings(lines...)
		wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
		wantSaid(t, r.Warnings, "")
		if b.snapshot() != before {
			t.Error("the same file changed something in " + zone)
		}
	}
}

// Every place where files had a sitting is remembered, the one before the last as well.
func TestSittings_EveryListOfBeforeIsKnown(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	first := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00"}
	second := []string{sittingHeader, "MATH;Campus;A;40;06/10/2126 08:00;10:00"}
	day := "update sitting set starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day'"
	b.sittings(first...)
	b.sql(day)
	wantCounts(t, b.sittings(second...), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	b.sql(day)
	for _, lines := range [][]string{first, second} {
		r := b.sittings(lines...)
		wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
		wantSaid(t, r.Warnings, "2::sitting_moved")
	}
}

// What was past when the zone changed kept its instant, and is the same sitting all the same.
func TestSittings_PastWhenItsZoneChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Lyon;R1;40;10/05/2020 08:00;10:00"}
	b.sittings(lines...)
	b.zone("Lyon", "Europe/Paris")
	r := b.sittings(lines...)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
}

// Places and an end that were changed by hand stand when the same file comes again, also where nobody sits; what it says
// anew counts.
func TestSittings_SameFileKeepsWhatAHandWrote(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;A;40;05/10/2126 10:30;11:30", "MATH;Campus;B;40;05/10/2126 08:00;10:00"}
	b.sittings(lines...)
	b.sql("update sitting set capacity = 50, places = 50, ends_at = ends_at - interval '1 hour' where reference = 'S001'")
	b.sql("update sitting set starts_at = starts_at - interval '1 hour' where reference = 'S002'") // where the file has S001
	b.sql("update sitting set capacity = null, places = 200, places_from = 'bound', ends_at = ends_at + interval '1 hour' where reference = 'S003'")
	before := b.snapshot()
	r := b.sittings(lines...)
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_kept 2:capacité:hand_kept 3::sitting_moved 4:fin:hand_kept 4:capacité:hand_kept")
	for i, command := range []string{`move S001 --campaign concours --ends "2126-10-05 10:00"`, "capacity S001 --campaign concours 40"} {
		if got := r.Warnings[i].Facts["command"]; got != "usher sitting "+command {
			t.Errorf("the command is %s, want that of %s", got, command)
		}
	}
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
	r = b.sittings(sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;09:15", "MATH;Campus;B;;05/10/2126 08:00;10:00")
	wantCounts(t, r, "read 2 created 0 updated 1 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_overwritten 2:capacité:hand_overwritten 3:fin:hand_kept")
	for i, command := range []string{`move S001 --campaign concours --ends "2126-10-05 09:00"`, "capacity S001 --campaign concours 50"} {
		if got := r.Warnings[i].Facts["command"]; got != "usher sitting "+command {
			t.Errorf("the command is %s, want that of %s", got, command)
		}
	}
	if got := b.text("select capacity || to_char(ends_at at time zone 'UTC', ' HH24:MI') from sitting where reference = 'S001'"); got != "45 09:15" {
		t.Errorf("S001 has %s", got)
	}
	r = b.sittings(sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;09:15")
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
}

// exchange puts two sittings into each other's rooms and hours, as two moves by way of a third place do.
func (b *bench) exchange(one, other string) {
	b.t.Helper()
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `
create temp table there on commit drop as select reference, room_id, starts_at, ends_at from sitting where reference in ($1, $2)`, one, other)
		for _, step := range []string{
			"update sitting set starts_at = starts_at + interval '9 years', ends_at = ends_at + interval '9 years' where reference in ($1, $2)",
			"update sitting s set room_id = t.room_id, starts_at = t.starts_at, ends_at = t.ends_at, revision = revision + 1 from there t where s.reference in ($1, $2) and t.reference in ($1, $2) and t.reference <> s.reference",
		} {
			if err == nil {
				_, err = tx.Exec(b.t.Context(), step, one, other)
			}
		}
		return err
	})
}

// held is where and when the sittings are, and their own places.
func (b *bench) held() string {
	b.t.Helper()
	return b.text(`select string_agg(concat_ws(' ', s.reference, r.name, to_char(s.starts_at, 'MMDD HH24:MI'), to_char(s.ends_at, 'HH24:MI'), s.capacity), ', ' order by s.reference)
  from sitting s join room r on r.id = s.room_id where s.cancelled_at is null`)
}

// Two sittings that hands put into each other's places stay what the file means by its rows: the unchanged file changes
// nothing, and what it says anew goes to the sitting of which it says it.
func TestSittings_ExchangedByHand(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;30;05/10/2126 09:00;11:30", "MATH;Campus;C;20;05/10/2126 08:00;10:00"}
	b.sittings(lines...)
	b.exchange("S001", "S002")
	before := b.snapshot()
	for range 2 {
		r := b.sittings(lines...)
		wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
		wantSaid(t, r.Warnings, "2::sitting_moved 3::sitting_moved")
		if b.snapshot() != before {
			t.Error("the same file changed something")
		}
	}
	r := b.sittings(sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;10:00", lines[2], lines[3])
	wantCounts(t, r, "read 3 created 0 updated 1 unchanged 2 rejected 0 ignored 0")
	if got := b.held(); got != "S001 B 1005 09:00 11:30 45, S002 A 1005 08:00 10:00 30, S003 C 1005 08:00 10:00 20" {
		t.Errorf("the sittings are %s", got)
	}
	// In a ring, with people at one of them.
	b.exchange("S001", "S003")
	b.candidates("dossier;nom", "1;Diop")
	b.seatAt("S003", "1", 1)
	r = b.sittings(sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;10:00", lines[2], lines[3])
	wantCounts(t, r, "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_moved 3::sitting_moved 4::sitting_moved")
	if got := b.held(); got != "S001 C 1005 08:00 10:00 45, S002 A 1005 08:00 10:00 30, S003 B 1005 09:00 11:30 20" {
		t.Errorf("the sittings are %s", got)
	}
}

// What a file says anew of a sitting that was moved by hand counts: its places always, its end where the start still
// stands. Another end of a start that does not stand any more cannot be meant, and is named each time.
func TestSittings_NewNumbersOfAMovedSitting(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;40;05/10/2126 08:00;10:00", "MATH;Campus;C;40;20/10/2126 08:00;10:00")
	b.sql("update sitting set starts_at = starts_at + interval '6 hours', ends_at = ends_at + interval '6 hours' where reference = 'S001'")
	b.sql("update sitting set room_id = (select id from room where name = 'C') where reference = 'S002'")
	lines := []string{sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;10:30", "MATH;Campus;B;46;05/10/2126 08:00;10:30"}
	r := b.sittings(lines...)
	wantCounts(t, r, "read 2 created 0 updated 2 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_moved 2:fin:sitting_end_kept 3::sitting_moved")
	const move = `usher sitting move S001 --campaign concours --starts "2126-10-05 08:00" --ends "2126-10-05 10:30"`
	for _, w := range r.Warnings[:2] {
		if w.Facts["command"] != move {
			t.Errorf("the command is %s\nwant %s", w.Facts["command"], move)
		}
	}
	if got := b.held(); got != "S001 A 1005 14:00 16:00 45, S002 C 1005 08:00 10:30 46, S003 C 1020 08:00 10:00 40" {
		t.Errorf("the sittings are %s", got)
	}
	if got := b.text("select string_agg(facts->>'room', ' ' order by facts->>'sitting') from timeline where kind = 'sitting_updated'"); got != "A C" {
		t.Errorf("the timeline has them in %s", got)
	}
	before := b.snapshot()
	r = b.sittings(lines...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_moved 2:fin:sitting_end_kept 3::sitting_moved")
	if b.snapshot() != before {
		t.Error("the second time changed something")
	}
	// Where it is now, another sitting is in the way of a later end; of places, people are.
	b.sql("update sitting set starts_at = '2126-10-05 11:00Z', ends_at = '2126-10-05 12:00Z' where reference = 'S003'")
	b.candidates("dossier;nom", "1;Diop", "2;Fall")
	b.seatAt("S001", "1", 1)
	b.seatAt("S001", "2", 2)
	r = b.sittings(sittingHeader, "MATH;Campus;A;1;05/10/2126 08:00;10:30", "MATH;Campus;B;46;05/10/2126 08:00;11:30")
	wantSaid(t, r.Rejected, "2:capacité:capacity_in_use 3:salle:room_taken")
}

// The place that a sitting left by hand is given to another one by a file that names both; a file that names the old place
// alone means the sitting that it always meant.
func TestSittings_PlaceThatASittingLeft(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	old := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00"}
	b.sittings(old...)
	b.sql("update sitting set starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day'")
	r := b.sittings(sittingHeader, "MATH;Campus;A;35;05/10/2126 08:00;10:00", "MATH;Campus;A;40;06/10/2126 08:00;10:00")
	wantCounts(t, r, "read 2 created 1 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	want := "S001 A 1006 08:00 10:00 40, S002 A 1005 08:00 10:00 35"
	if got := b.held(); got != want {
		t.Errorf("the sittings are %s", got)
	}
	before := b.snapshot()
	r = b.sittings(sittingHeader, "MATH;Campus;A;40;06/10/2126 08:00;10:00", "MATH;Campus;A;35;05/10/2126 08:00;10:00")
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	if b.snapshot() != before {
		t.Error("the same rows in another order changed something")
	}
	// From now on both are known to files, and are told apart wherever hands put them.
	b.exchange("S001", "S002")
	before = b.snapshot()
	r = b.sittings(sittingHeader, "MATH;Campus;A;40;06/10/2126 08:00;10:00", "MATH;Campus;A;35;05/10/2126 08:00;10:00")
	wantSaid(t, r.Warnings, "2::sitting_moved 3::sitting_moved")
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
}

// A sitting that was added by hand where files had one that was cancelled is what the row there speaks of: what files
// said of the place before is nothing new.
func TestSittings_AddedByHandInThePlaceOfACancelledOne(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;40;05/10/2126 08:00;10:00"}
	b.sittings(lines...)
	b.sql("update sitting set cancelled_at = clock() where reference = 'S001'")
	b.sql(`insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select organisation_id, campaign_id, exam_id, room_id, 'S009', starts_at, ends_at + interval '1 hour', 30, 30, 'sitting' from sitting where reference = 'S001'`)
	before := b.snapshot()
	r := b.sittings(lines...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_kept 2:capacité:hand_kept")
	after := b.snapshot()
	if cut := func(s string) string { return s[:strings.Index(s, "planned: ")] }; cut(after) != cut(before) {
		t.Error("the same file changed something")
	}
	r = b.sittings(sittingHeader, "MATH;Campus;A;45;05/10/2126 08:00;10:00")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_kept 2:capacité:hand_overwritten")
	// One that a row means elsewhere does not take over the row of a cancelled one.
	b.sql("update sitting set cancelled_at = clock() where reference = 'S009'")
	b.sql("update sitting set room_id = (select id from room where name = 'A') where reference = 'S002'")
	before = b.snapshot()
	r = b.sittings(lines...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_cancelled 3::sitting_moved")
	if b.snapshot() != before {
		t.Error("the same file changed something")
	}
}

// A sitting that was added by hand and that no file has named: what a file says of it for the first time is new.
func TestSittings_AddedByHand(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00")
	b.sql(`insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, capacity, places, places_from)
select organisation_id, campaign_id, exam_id, room_id, 'S009', '2126-10-06 08:00Z', '2126-10-06 10:00Z', 30, 30, 'sitting' from sitting where reference = 'S001'`)
	r := b.sittings(sittingHeader, "MATH;Campus;A;35;06/10/2126 08:00;10:30")
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_overwritten 2:capacité:hand_overwritten")
	before := b.snapshot()
	wantSaid(t, b.sittings(sittingHeader, "MATH;Campus;A;35;06/10/2126 08:00;10:30").Warnings, "")
	if b.snapshot() != before {
		t.Error("the second time changed something")
	}
}

// Where another sitting stands now where files had one that was moved, neither command of before would work: what stands there is
// named, and what is to be done about it.
func TestSittings_MovedAndItsPlaceTaken(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "CHIM")
	lines := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "CHIM;Campus;B;40;05/10/2126 09:00;11:00"}
	b.sittings(lines...)
	b.sql("update sitting set starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day' where reference = 'S001'")
	said := func() map[string]any {
		t.Helper()
		r := b.sittings(lines[0], lines[1])
		wantSaid(t, r.Warnings, "2::sitting_moved")
		return r.Warnings[0].Facts
	}
	if free := said(); free["taken"] != nil || free["add"] == nil {
		t.Errorf("of a free place it says %v", free)
	}
	b.sql("update sitting set room_id = (select id from room where name = 'A') where reference = 'S002'")
	taken := said()
	text := i18n.Speak("en").Say("refusal_sitting_moved", taken)
	if taken["add"] != nil || !strings.Contains(text, "S002 (CHIM) stands here now") || !strings.Contains(text, "move or cancel S002 first, then: usher sitting move S001") {
		t.Errorf("of a taken place it says %s", text)
	}
	// In its own way it stands only for a further one.
	b.sql("update sitting set room_id = (select id from room where name = 'B') where reference = 'S002'")
	b.sql("update sitting set starts_at = '2126-10-05 09:00Z', ends_at = '2126-10-05 11:00Z' where reference = 'S001'")
	if itself := said(); itself["taken"] != nil || itself["add"] != nil {
		t.Errorf("of its own place it says %v", itself)
	}
}

// More places than the room is known to hold are named with both numbers, wherever hands moved the sitting, and once.
func TestSittings_MorePlacesThanTheRoom(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Campus;A;7;05/10/2126 08:00;10:00", "MATH;Campus;B;2;05/10/2126 08:00;10:00"}
	wantSaid(t, b.sittings(lines...).Warnings, "")
	b.exchange("S001", "S002")
	b.sql("update room set capacity = 2 where name = 'B'")
	b.sql("update sitting set capacity = 2, places = 2 where reference = 'S001'")
	r := b.sittings(lines[0], "MATH;Campus;A;8;05/10/2126 08:00;10:00", lines[2])
	wantSaid(t, r.Warnings, "2::sitting_moved 2:capacité:hand_overwritten 2:capacité:capacity_beyond_room 3::sitting_moved")
	text := i18n.Speak("en").Say("refusal_capacity_beyond_room", r.Warnings[2].Facts)
	if text != "S001 has 8 places of its own now, instead of 2, which is more than B, Campus holds (2). To let those of the room count: usher sitting capacity S001 --campaign concours -" {
		t.Errorf("it says %s", text)
	}
	wantSaid(t, b.sittings(lines[0], "MATH;Campus;A;8;05/10/2126 08:00;10:00", lines[2]).Warnings, "2::sitting_moved 3::sitting_moved")
	wantSaid(t, b.sittings(sittingHeader, "MATH;Campus;B;3;06/10/2126 08:00;10:00", "MATH;Campus;B;2;07/10/2126 08:00;10:00").Warnings, "2:capacité:capacity_beyond_room")
}

// Where a sitting was added by hand without a number, in the place of a cancelled one, the number that files say counts: nobody
// has deleted it.
func TestSittings_AddedByHandWithoutANumber(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	lines := []string{sittingHeader, "MATH;Campus;A;2;05/10/2126 08:00;10:00"}
	b.sittings(lines...)
	b.sql("update sitting set cancelled_at = clock()")
	b.sql(`insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
select organisation_id, campaign_id, exam_id, room_id, 'S009', starts_at, ends_at, 200, 'bound' from sitting`)
	r := b.sittings(lines...)
	wantCounts(t, r, "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	// From now on it was said of this sitting: a hand that takes it back has deleted it.
	b.sql("update sitting set capacity = null where reference = 'S009'")
	wantSaid(t, b.sittings(lines...).Warnings, "2:capacité:hand_kept")
}

// A row that another of its file contradicts is refused each time: that a hand moved the other sitting since makes the file no
// more right, and nobody is seated in a room at an hour that was refused once.
func TestSittings_RefusedInTheirFileStayRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := []string{
		sittingHeader,
		"MATH;Campus;A;40;05/10/2126 08:00;11:00",
		"MATH;Campus;A;40;05/10/2126 09:00;12:00",
	}
	wantSaid(t, b.sittings(rows...).Rejected, "3:salle:room_taken_in_file")
	b.owner("update sitting set starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day'")
	r := b.sittings(rows...)
	wantSaid(t, r.Rejected, "3:salle:room_taken_in_file")
	if r.Created != 0 || r.Updated != 0 || b.count("sitting") != 1 {
		t.Errorf("created %d, updated %d", r.Created, r.Updated)
	}
}
