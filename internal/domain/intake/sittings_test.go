package intake_test

import (
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

// A later end must not reach into another sitting of somebody who is seated.
func TestSittings_EndClash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sittings(sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:00", "PHYS;Campus;B;40;05/10/2126 10:00;12:00")
	b.candidates("dossier;nom;épreuves", "1;Diop;MATH|PHYS", "2;Fall;MATH")
	b.seatAt("S001", "1", 1)
	b.seatAt("S001", "2", 2)
	b.seatAt("S002", "1", 1)
	later := []string{sittingHeader, "MATH;Campus;A;40;05/10/2126 08:00;10:30", "PHYS;Campus;B;40;05/10/2126 10:00;12:30"}
	dry, err := intake.Sittings(t.Context(), b.db, b.actor, "concours", "s.csv", csv(later...), intake.Options{DryRun: true})
	b.must(err)
	r := b.sittings(later...)
	wantCounts(t, r, "read 2 created 0 updated 1 unchanged 0 rejected 1 ignored 0")
	wantSaid(t, r.Rejected, "2:fin:ends_clash")
	if counts(dry) != counts(r) || r.Rejected[0].Facts["name"] != "Diop" || r.Rejected[0].Facts["other"] != "S002" {
		t.Errorf("foreseen %s, named %v", counts(dry), r.Rejected[0].Facts)
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
			if err := venue.SetCapacity(t.Context(), tx, b.org.ID, centre, room, &places); err != nil {
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
	wantSaid(t, r.Rejected, "3:salle:sitting_conflict")
	said := i18n.Speak("fr").Say("refusal_sitting_conflict", r.Rejected[0].Facts)
	if !strings.Contains(said, "La ligne 2 ") || !strings.Contains(said, "(A, Campus, samedi 5 octobre 2126 à 08:00 (Africa/Bamako))") {
		t.Errorf("it says %s", said)
	}
}
