package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/problem"
	"usher/internal/domain/intake"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/venue"
)

const sittingHeader = "épreuve;centre;salle;capacité;début;fin"

func (b *bench) sittingList() string {
	b.t.Helper()
	return b.text(`select string_agg(concat_ws(' ', s.reference, e.code, c.name, r.name, to_char(s.starts_at, 'MMDD HH24:MI'), to_char(s.ends_at, 'HH24:MI'),
       s.capacity, s.places, s.places_from), ', ' order by s.reference)
  from sitting s join exam e on e.id = s.exam_id join room r on r.id = s.room_id join centre c on c.id = r.centre_id`)
}

func TestSittings_CreateWhatTheyName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lines := []string{
		sittingHeader,
		"MATH;Campus;Amphi 1;40;05/10/2126 08:00;05/10/2126 11:00",
		"math;CAMPUS;amphi  1;;05/10/2126 14:00;17h30",
		"PHYS;Nord;Salle 2;0;2126-10-25 08:00;2126-10-25 09:00",
	}
	r := b.sittings(lines...)
	wantCounts(t, r, "read 3 created 3 updated 0 unchanged 0 rejected 0 ignored 0")
	want := "S001 MATH Campus Amphi 1 1005 08:00 11:00 40 40 sitting, S002 MATH Campus Amphi 1 1005 14:00 17:30 200 bound, " +
		"S003 PHYS Nord Salle 2 1025 08:00 09:00 0 0 sitting"
	if got := b.sittingList(); got != want {
		t.Errorf("sittings are %s\nwant %s", got, want)
	}
	if got := b.count("centre") + b.count("room") + b.count("exam"); got != 6 {
		t.Errorf("%d centres, rooms and exams", got)
	}
	before := b.snapshot()
	wantCounts(t, b.sittings(lines...), "read 3 created 0 updated 0 unchanged 3 rejected 0 ignored 0")
	wantCounts(t, b.sittings(sittingHeader, lines[3]), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	if b.snapshot() != before {
		t.Error("importing again changed something")
	}
	// More of them, and a changed one.
	r = b.sittings(sittingHeader, "MATH;Campus;Amphi 2;10;05/10/2126 08:00;05/10/2126 11:00", "MATH;Campus;Amphi 1;50;05/10/2126 08:00;05/10/2126 10:30", lines[3])
	wantCounts(t, r, "read 3 created 1 updated 1 unchanged 1 rejected 0 ignored 0")
	if got := b.text("select capacity || ' ' || places || ' ' || revision from sitting where reference = 'S001'"); got != "50 50 1" {
		t.Errorf("S001 has %s", got)
	}
	if n := b.count("timeline where kind in ('sitting_added', 'sitting_updated') and sitting_id is not null"); n != 5 {
		t.Errorf("%d rows of the timeline", n)
	}
}

// Who lacks an end learns of the two ways to give it: the column, or a duration of the exam.
func TestSittings_EndMissingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.sittings("épreuve;centre;salle;début", "MATH;Campus;A;05/10/2126 08:00", `PHYS 1;Campus;B;05/10/2126 08:00`)
	wantSaid(t, r.Rejected, "2:ends_at:ends_missing 3:ends_at:ends_missing")
	for i, command := range []string{
		`: usher exam edit "MATH" --campaign concours --minutes …`,
		`: usher exam add "PHYS 1" --campaign concours && usher exam edit "PHYS 1" --campaign concours --minutes …`,
	} {
		for _, lang := range i18n.Languages {
			text := i18n.Speak(lang).Say("refusal_ends_missing", r.Rejected[i].Facts)
			if !strings.Contains(strings.ReplaceAll(text, " :", ":"), command) || !strings.Contains(text, "ends_at") {
				t.Errorf("%s: %s", lang, text)
			}
		}
	}
}

func TestSittings_RowsAtFault(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH", "PHYS")
	for _, c := range []struct{ row, want string }{
		{"MATH;Campus;A;40;05/10/2126 08:00;", "2:fin:ends_missing"},
		{"MATH;Campus;A;40;05/10/2126 08:00;05/10/2126 08:00", "2:fin:ends_before_start"},
		{"MATH;Campus;A;40;05/10/2126 08:00;07/10/2126 08:00", "2:fin:sitting_too_long"},
		{"MATH;Campus;A;40;05/10/2126;05/10/2126 08:00", "2:début:starts_without_hour"},
		{"MATH;Campus;A;40;05/10/2126 08:00;05/10/2126", "2:fin:ends_without_hour"},
		{"MATH;Campus;A;40;;05/10/2126 08:00", "2:début:starts_missing"},
		{"MATH;Campus;A;beaucoup;05/10/2126 08:00;10:00", "2:capacité:capacity_wrong"},
		{"MATH;Campus;A;-1;05/10/2126 08:00;10:00", "2:capacité:capacity_wrong"},
		{"MATH;Campus;A;999999;05/10/2126 08:00;10:00", "2:capacité:capacity_impossible"},
		{";Campus;A;40;05/10/2126 08:00;10:00", "2:épreuve:exam_missing"},
		{"MATH;;A;40;05/10/2126 08:00;10:00", "2:centre:centre_missing"},
		{"MATH;Campus;;40;05/10/2126 08:00;10:00", "2:salle:room_missing"},
		{`"MATH, écrit";Campus;A;40;05/10/2126 08:00;10:00`, "2:épreuve:exam_code_separator"},
	} {
		wantSaid(t, b.sittings(sittingHeader, c.row).Rejected, c.want)
	}
	if n := b.count("sitting") + b.count("centre") + b.count("room"); n != 0 {
		t.Errorf("%d sittings, centres and rooms were made for rejected rows", n)
	}
	r := b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2016 08:00;10:00")
	wantSaid(t, r.Warnings, "2:début:sitting_past")
	_, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", csv("centre;salle;début;fin", "Campus;A;05/10/2126 08:00;10:00"), intake.Options{})
	if !problem.Has(err, "import_exam_column_missing") {
		t.Errorf("without the column: %v", err)
	}
}

// An hour that the clocks skip is refused; the campaign's only exam needs no column, and its
// duration no end.
func TestSittings_ZoneAndDuration(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.tx(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "update exam set duration_minutes = 90"); err != nil {
			return err
		}
		_, err := venue.EnsureCentre(t.Context(), tx, b.org.ID, "Paris", "Europe/Paris")
		return err
	})
	r := b.sittings("centre;salle;début", "Paris;A;28/03/2027 02:30", "Paris;A;28/03/2027 15:00", "Bamako;A;28/03/2027 02:30")
	wantSaid(t, r.Rejected, "2:début:skipped_time")
	if got := b.sittingList(); got != "S001 MATH Paris A 0328 13:00 14:30 200 bound, S002 MATH Bamako A 0328 02:30 04:00 200 bound" {
		t.Errorf("sittings are %s", got)
	}
}

// A room hosts one sitting at a time: the row names the other one, in the file or in the database.
func TestSittings_RoomTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.sittings(sittingHeader,
		"MATH;Campus;A;40;05/10/2126 08:00;10:00",
		"PHYS;Campus;A;40;05/10/2126 09:00;11:00",
		"PHYS;Campus;A;40;05/10/2126 10:00;11:00")
	wantSaid(t, r.Rejected, "3:salle:room_taken_in_file")
	r = b.sittings(sittingHeader, "CHIM;campus;a;40;05/10/2126 07:30;08:30", "MATH;Campus;A;40;05/10/2126 08:00;10:30")
	wantSaid(t, r.Rejected, "2:salle:room_taken 3:salle:room_taken")
	if got := r.Rejected[0].Facts["sitting"].(string) + r.Rejected[1].Facts["sitting"].(string); got != "S001S002" {
		t.Errorf("the sittings named are %s", got)
	}
	if n := b.count("exam where code = 'CHIM'"); n != 0 {
		t.Error("a rejected row left its exam behind")
	}
}

// A campaign of the same school takes the room while this file is decided: the constraint says so.
func TestSittings_RoomTakenMeanwhile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := testdb.Owner(t, b.url)
	// The other campaign's insert lands between the look and the write: made by a trigger.
	b.sittings(sittingHeader, "MATH;Campus;B;40;05/10/2126 08:00;10:00", "MATH;Campus;A;40;01/10/2126 08:00;10:00")
	_, err := owner.Exec(t.Context(), `
create function meanwhile() returns trigger language plpgsql security definer as $$
begin
  if new.reference <> 'X1' and to_char(new.starts_at, 'MMDD') = '1006' then
    insert into sitting (organisation_id, campaign_id, exam_id, room_id, reference, starts_at, ends_at, places, places_from)
    values (new.organisation_id, new.campaign_id, new.exam_id, new.room_id, 'X1', new.starts_at, new.ends_at, 1, 'bound');
  end if;
  return new;
end $$;
create trigger meanwhile before insert on sitting for each row execute function meanwhile()`)
	b.must(err)
	r := b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;A;40;06/10/2126 08:00;10:00", "MATH;Campus;A;40;07/10/2126 08:00;10:00")
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "3:salle:room_taken_meanwhile")
}

func TestSittings_CapacityInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00")
	b.candidates("dossier;nom", "1;Diop", "2;Fall")
	b.seat("1", 1)
	b.seat("2", 19)
	r := b.sittings(sittingHeader, "MATH;Campus;A;1;05/10/2126 08:00;10:00")
	wantSaid(t, r.Rejected, "2:capacité:capacity_in_use")
	if r.Rejected[0].Facts["in_use"] != 2 {
		t.Errorf("in use: %v", r.Rejected[0].Facts)
	}
	r = b.sittings(sittingHeader, "MATH;Campus;A;18;05/10/2126 08:00;10:00")
	wantSaid(t, r.Rejected, "2:capacité:seat_in_use")
	wantCounts(t, b.sittings(sittingHeader, "MATH;Campus;A;19;05/10/2126 08:00;10:00"), "read 1 created 0 updated 1 unchanged 0 rejected 0 ignored 0")
	if got := b.text("select min(places) || ' ' || max(places) from claim"); got != "19 19" {
		t.Errorf("the claims know %s places", got)
	}
}

// A file tells nobody: it changes neither the hours nor the room of a sitting to which people were
// called, and names the command that does.
func TestSittings_ConvokedStays(t *testing.T) {
	t.Parallel()
	list := []string{
		sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;40;05/10/2126 08:00;10:00", "MATH;Campus;C;40;06/10/2126 08:00;10:00",
	}
	const move = "usher sitting move S001 --campaign concours "
	for name, c := range map[string]struct{ row, said, command string }{
		"later end":           {"MATH;Campus;A;40;05/10/2126 08:00;10:30", "2:fin:sitting_convoked", move + `--ends "2126-10-05 10:30"`},
		"earlier end":         {"MATH;Campus;A;40;05/10/2126 08:00;09:30", "2:fin:sitting_convoked", move + `--ends "2126-10-05 09:30"`},
		"end and capacity":    {"MATH;Campus;A;41;05/10/2126 08:00;10:30", "2:fin:sitting_convoked", move + `--ends "2126-10-05 10:30"`},
		"start":               {"MATH;Campus;A;40;05/10/2126 09:00;11:00", "2:début:sitting_replaced", move + `--starts "2126-10-05 09:00"`},
		"start alone":         {"MATH;Campus;A;40;05/10/2126 08:30;10:00", "2:début:sitting_replaced", move + `--starts "2126-10-05 08:30" --ends "2126-10-05 10:00"`},
		"start far from old":  {"MATH;Campus;A;40;05/10/2126 14:00;16:00", "2:début:sitting_replaced", move + `--starts "2126-10-05 14:00"`},
		"known room":          {"MATH;Campus;C;40;05/10/2126 08:00;10:00", "2:salle:sitting_replaced", move + `--room "C"`},
		"new room":            {`MATH;Campus;Amphi "1";40;05/10/2126 08:00;11:00`, "2:salle:sitting_replaced", `usher venue room "Amphi \"1\"" --centre "Campus" && ` + move + `--room "Amphi \"1\"" --ends "2126-10-05 11:00"`},
		"room of another day": {"MATH;Campus;D;40;07/10/2126 08:00;10:00", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.sittings(list...)
			b.candidates("dossier;nom", "1;Diop")
			b.seatAt("S001", "1", 1)
			before := b.text("select string_agg(s::text, ' ') from sitting s where reference = 'S001'") + b.text("select string_agg(c::text, ' ') from claim c")
			changed := []string{sittingHeader, c.row, list[2], list[3]}
			dry, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", csv(changed...), intake.Options{DryRun: true})
			b.must(err)
			r := b.sittings(changed...)
			wantSaid(t, r.Rejected, c.said)
			if said(dry.Rejected) != c.said || r.Updated != 0 {
				t.Errorf("foreseen %s, updated %d", said(dry.Rejected), r.Updated)
			}
			if c.said == "" {
				return
			}
			if got := r.Rejected[0].Facts["command"]; got != c.command {
				t.Errorf("the command is %s\nwant %s", got, c.command)
			}
			for _, lang := range i18n.Languages {
				if text := i18n.Speak(lang).Say("refusal_"+r.Rejected[0].Reason, r.Rejected[0].Facts); !strings.Contains(text, c.command) {
					t.Errorf("%s says %s", lang, text)
				}
			}
			after := b.text("select string_agg(s::text, ' ') from sitting s where reference = 'S001'") + b.text("select string_agg(c::text, ' ') from claim c")
			if after != before {
				t.Error("something of the convoked sitting changed")
			}
		})
	}
}

// A short list of further sittings adds them, says what else it may have meant, and takes nobody's
// seat; with the old sittings in the list nothing is left to ask.
func TestSittings_FurtherBesideConvoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := "MATH;Campus;A;40;05/10/2126 08:00;10:00"
	b.sittings(sittingHeader, first)
	b.candidates("dossier;nom", "1;Diop")
	b.seatAt("S001", "1", 1)
	r := b.sittings(sittingHeader, "MATH;Campus;B;40;05/10/2126 08:00;10:00", "MATH;Nord;A;40;05/10/2126 08:00;10:00")
	wantCounts(t, r, "read 2 created 2 updated 0 unchanged 0 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:salle:sitting_perhaps_replaced")
	r = b.sittings(sittingHeader, first, "MATH;Campus;C;40;05/10/2126 08:00;10:00", "MATH;Campus;A;40;05/10/2126 14:00;16:00")
	wantCounts(t, r, "read 3 created 2 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "")
	if got := b.text("select string_agg(seat_number || ' ' || coalesce(released_at::text, 'live'), ',') from claim"); got != "1 live" {
		t.Errorf("the claims are %s", got)
	}
}

// A list from before the hours of a convoked sitting were moved by hand does not move them back.
func TestSittings_OldListKeepsMovedHours(t *testing.T) {
	t.Parallel()
	b := setup(t)
	list := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00"}
	b.sittings(list...)
	b.candidates("dossier;nom", "1;Diop")
	b.seatAt("S001", "1", 1)
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update sitting set ends_at = ends_at + interval '1 hour', revision = 2")
		return err
	})
	before := b.snapshot()
	r := b.sittings(list...)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2:fin:hand_kept")
	if b.snapshot() != before {
		t.Error("the list moved the end back")
	}
}

// An hour that the clocks show twice is read as the first, and the row says how to write the second.
func TestSittings_HourThatComesTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.tx(func(tx pgx.Tx) error {
		_, err := venue.EnsureCentre(t.Context(), tx, b.org.ID, "Paris", "Europe/Paris")
		return err
	})
	r := b.sittings("centre;salle;début;fin", "Paris;A;31/10/2027 02:15;02:45", "Paris;B;2027-10-31 02:15+01:00;02:45", "Paris;C;2027-10-31 02:15+01:00;2027-10-31 02:45+01:00",
		"Bamako;A;31/10/2027 02:15;02:45", "Paris;D;28/03/2027 01:00;02:30")
	wantSaid(t, r.Rejected, "6:fin:skipped_time")
	wantSaid(t, r.Warnings, "2:début:time_comes_twice 2:fin:time_comes_twice 3:fin:time_comes_twice_later")
	for i, want := range []string{"2027-10-31 02:15+02:00 2027-10-31 02:15+01:00", "2027-10-31 02:45+02:00 2027-10-31 02:45+01:00", "2027-10-31 02:45+01:00 2027-10-31 02:45+02:00"} {
		facts := r.Warnings[i].Facts
		if got := facts["understood"].(string) + " " + facts["other"].(string); got != want {
			t.Errorf("understood and other are %s, want %s", got, want)
		}
	}
	if got := b.text("select string_agg(to_char(starts_at at time zone 'UTC', 'HH24:MI') || '-' || to_char(ends_at at time zone 'UTC', 'HH24:MI'), ' ' order by reference) from sitting"); got != "00:15-00:45 01:15-01:45 01:15-01:45 02:15-02:45" {
		t.Errorf("the sittings are at %s", got)
	}
}

// The cascade of capacity: own, room's, centre's, bound; refused below a seat that somebody holds.
func TestRefreshPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;;05/10/2126 08:00;10:00", "MATH;Campus;B;;05/10/2126 08:00;10:00", "MATH;Campus;C;7;05/10/2126 08:00;10:00",
		"MATH;Campus;A;;05/10/2016 08:00;10:00")
	set := func(ctx func(tx pgx.Tx) error) error { return b.db.Tx(t.Context(), []int64{b.org.ID}, ctx) }
	var centre, roomA int64
	b.tx(func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select centre_id, id from room where name = 'A'").Scan(&centre, &roomA)
	})
	capacity := func(room int64, places int) error {
		return set(func(tx pgx.Tx) error {
			if _, err := venue.SetCapacity(t.Context(), tx, b.org.ID, centre, room, &places); err != nil {
				return err
			}
			_, err := seating.RefreshPlaces(t.Context(), tx, b.org.ID, nil)
			return err
		})
	}
	b.must(capacity(0, 30))
	b.must(capacity(roomA, 20))
	places := func() string {
		return b.text("select string_agg(reference || ' ' || places || ' ' || places_from, ', ' order by reference) from sitting")
	}
	want := "S001 20 room, S002 30 centre, S003 7 sitting, S004 200 bound"
	if got := places(); got != want {
		t.Errorf("places are %s, want %s", got, want)
	}
	b.candidates("dossier;nom", "1;Diop")
	b.seat("1", 15)
	if err := capacity(roomA, 14); !problem.Has(err, "places_in_use") {
		t.Errorf("a room smaller than a seat in use: %v", err)
	}
	if err := capacity(roomA, 0); !problem.Has(err, "places_in_use") {
		t.Errorf("a room of nothing: %v", err)
	}
	if got := places(); got != want {
		t.Errorf("a refusal changed the places: %s", got)
	}
}

func TestSittings_CancelledStaysCancelled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	row := "MATH;Campus;A;40;05/10/2126 08:00;10:00"
	b.sittings(sittingHeader, row)
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "update sitting set cancelled_at = clock()")
		return err
	})
	r := b.sittings(sittingHeader, row)
	wantCounts(t, r, "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_cancelled")
	want := `usher sitting add --campaign concours --exam "MATH" --centre "Campus" --room "A" --starts "2126-10-05 08:00" --ends "2126-10-05 10:00" --capacity 40`
	if got := r.Warnings[0].Facts["command"]; got != want {
		t.Errorf("the command is %s\nwant %s", got, want)
	}
}

// A list from before a sitting moved still means that sitting: it is not held twice.
func TestSittings_MovedStaysMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	list := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;40;05/10/2126 08:00;10:00"}
	b.sittings(list...)
	b.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
update sitting set starts_at = starts_at + interval '1 day', ends_at = ends_at + interval '1 day', revision = 2 where reference = 'S001'`)
		return err
	})
	before := b.snapshot()
	r := b.sittings(list...)
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 2 rejected 0 ignored 0")
	wantSaid(t, r.Warnings, "2::sitting_moved")
	if b.snapshot() != before {
		t.Error("the list moved something back")
	}
	wantCounts(t, b.sittings(sittingHeader, "MATH;Campus;A;40;06/10/2126 08:00;10:00"), "read 1 created 0 updated 0 unchanged 1 rejected 0 ignored 0")
}

func TestSittings_DryRunWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00")
	before := b.snapshot()
	lines := []string{
		sittingHeader, "MATH;Campus;A;41;05/10/2126 08:00;10:00", "PHYS;Sud;A;40;05/10/2126 08:00;10:00", "PHYS;Sud;A;40;05/10/2126 09:00;10:00",
		"PHYS;Campus;A;40;05/10/2126 09:00;10:00",
	}
	dry, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", csv(lines...), intake.Options{DryRun: true})
	b.must(err)
	if b.snapshot() != before {
		t.Error("the dry run wrote something")
	}
	wet := b.sittings(lines...)
	if counts(dry) != counts(wet) || said(dry.Rejected) != said(wet.Rejected) {
		t.Errorf("foreseen %s %s, happened %s %s", counts(dry), said(dry.Rejected), counts(wet), said(wet.Rejected))
	}
	wantCounts(t, wet, "read 4 created 1 updated 1 unchanged 0 rejected 2 ignored 0")
}

// A row that repeats a sitting and says something else names the room and the hour.
func TestSittings_Conflict(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	r := b.sittings("épreuve;centre;salle;places;début;fin", "MATH;Campus;A;10;2126-10-05 08:00;2126-10-05 10:00",
		"MATH;Campus;A;20;2126-10-05 08:00;2126-10-05 10:00")
	wantSaid(t, r.Rejected, "2:salle:sitting_contradicted 3:salle:sitting_contradicted")
	wantCounts(t, r, "read 2 created 0 updated 0 unchanged 0 rejected 2 ignored 0")
	said := i18n.Speak("fr").Say("refusal_sitting_contradicted", r.Rejected[0].Facts)
	if !strings.Contains(said, "aux lignes 2, 3.") || !strings.Contains(said, "(A, Campus, samedi 5 octobre 2126 à 08:00 (Africa/Bamako))") {
		t.Errorf("it says %s", said)
	}
}

// Which of two rows of one sitting is right, nobody can tell, also where one says what is stored. Equal ones count once, however
// they are written, and the good rows around them are kept.
func TestSittings_ContradictedAndEqual(t *testing.T) {
	t.Parallel()
	b := setup(t, "MATH")
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00")
	r := b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;30;05/10/2126 08:00;10:00",
		"MATH;campus;a;41;05/10/2126 08:00;10:00", "MATH;Campus;B;30;05/10/2126 08:00;10:00", "MATH;Campus;C;30;05/10/2126 08:00;10:00",
		"MATH;Campus;C;30;05/10/2126 8:00;10h00", "MATH;Campus;D;30;05/10/2126 08:00;10:00", "MATH;Campus;D;30;05/10/2126 08:00;11:00")
	wantSaid(t, r.Rejected, "2:salle:sitting_contradicted 4:salle:sitting_contradicted 7:salle:sitting_conflict "+
		"8:salle:sitting_contradicted 9:salle:sitting_contradicted")
	wantSaid(t, r.Warnings, "5::row_copy")
	wantCounts(t, r, "read 8 created 2 updated 0 unchanged 1 rejected 5 ignored 0")
	if got := b.text("select string_agg(r.name || s.places, ' ' order by r.name) from sitting s join room r on r.id = s.room_id"); got != "A40 B30 C30" {
		t.Errorf("the sittings are %s", got)
	}
}

// A chunk that waits for one of its rooms holds none of the others: two imports that share rooms wait
// for each other in turn, and never each for the other.
func TestSittings_RoomsAreLockedAtOnceInKeyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "MATH;Campus;B;40;06/10/2126 08:00;10:00")
	imported := make(chan error, 1)
	b.tx(func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "select from room where name = 'A' for no key update"); err != nil {
			return err
		}
		go func() { // changes the sitting of A, and adds one in B
			_, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "seances.csv",
				csv(sittingHeader, "MATH;Campus;B;40;07/10/2126 08:00;10:00", "MATH;Campus;A;41;05/10/2126 08:00;10:00"), intake.Options{})
			imported <- err
		}()
		if err := testdb.Until(t, "the import waits for the room", func() (waiting bool, err error) {
			select {
			case err := <-imported:
				return false, fmt.Errorf("the import did not wait: %w", err)
			default:
			}
			err = tx.QueryRow(t.Context(), `select exists (select from pg_locks
 where not granted and transactionid = pg_current_xact_id()::xid)`).Scan(&waiting)
			return waiting, err
		}); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "select from room where name = 'B' for no key update nowait")
		return err
	})
	b.must(<-imported)
	if got := b.text("select string_agg(reference || ' ' || places, ', ' order by reference) from sitting"); got != "S001 41, S002 40, S003 40" {
		t.Errorf("the sittings are %s", got)
	}
}
