package doorlist_test

import (
	"context"
	"encoding/csv"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
	"usher/internal/domain/admission"
	"usher/internal/domain/convocation"
	"usher/internal/domain/doorlist"
	"usher/internal/domain/schema"
	"usher/internal/domain/seating"
	"usher/internal/domain/testdb"
	"usher/internal/domain/venue"
)

// C81: names as they come, and as they stand on the list.
var (
	unsorted = []string{
		"Zola", "Éluard", "d'Ormesson", "NGUESSAN", "de Vries", "Öz", "Decours", "O'Neil", "Eco", "D’Alembert", "De rien",
		"N'Guessan", "De Benjamin", "NʼGuessan", "Ŋgom", "Nzué", "Ɔla", "Traore", "TRAORÉ", "Ozawa", "Oeuvray", "Œuvrard",
	}
	sorted = []string{
		"D’Alembert", "De Benjamin", "Decours", "De rien", "de Vries", "d'Ormesson", "Eco", "Éluard",
		"N'Guessan", "NʼGuessan", "NGUESSAN", "Nzué", "Ŋgom", "Œuvrard", "Oeuvray", "O'Neil", "Öz", "Ozawa", "Ɔla", "Traore", "TRAORÉ", "Zola",
	}
)

func guestsOf(families []string) []guest {
	guests := make([]guest, len(families))
	for i, family := range families {
		guests[i] = guest{family: family}
	}
	return guests
}

// columnOf gives a column of a CSV file, read by Go's own reader.
func columnOf(t *testing.T, file []byte, column int) []string {
	t.Helper()
	reader := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(file), "\uFEFF")))
	reader.Comma = ';'
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]string, len(rows)-1)
	for i, row := range rows[1:] {
		values[i] = row[column]
	}
	return values
}

// TestOrder_OfNames: the same in the list, the CSV and the PDF, whatever the database was created with.
func TestOrder_OfNames(t *testing.T) {
	t.Parallel()
	_, template := testdb.NewWithURL(t)
	for name, options := range map[string]string{
		"C":       "locale 'C'",
		"fr_FR":   "locale 'fr_FR.UTF-8'",
		"ICU fr":  "locale 'C' locale_provider icu icu_locale 'fr-FR'",
		"ICU und": "locale 'C' locale_provider icu icu_locale 'und'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "fr_FR" {
				needFrench(t, template)
			}
			db := databaseWith(t, template, options)
			d := openDoor(t, db, "ecole", "fr")
			d.sit("Salle 1", "Badalabougou", "Africa/Bamako", "2099-12-07T08:00:00Z", 50)
			d.seat("S001", guestsOf(unsorted)...)
			printed := d.print()
			if got := names(printed.Content.In(doorlist.ByName)); !slices.Equal(got, sorted) {
				t.Errorf("sorted as\n%q, want\n%q", got, sorted)
			}
			if got := columnOf(t, d.file(printed, doorlist.CSV, doorlist.ByName), 2); !slices.Equal(got, sorted) {
				t.Errorf("in the CSV\n%q, want\n%q", got, sorted)
			}
			text, from := d.read(d.file(printed, doorlist.PDF, doorlist.ByName)), 0
			for _, family := range sorted {
				at := strings.Index(text[from:], family)
				if at < 0 {
					t.Fatalf("%s does not follow in the PDF:\n%s", family, text)
				}
				from += at + len(family)
			}
		})
	}
}

// needFrench skips where the server's system has not the locale that most French servers sort by. Where everything a test
// needs is installed first, that it is missing is a fault.
func needFrench(t *testing.T, server string) {
	t.Helper()
	_, err := testdb.Owner(t, server).Exec(t.Context(), `begin; create collation probe (provider = libc, locale = 'fr_FR.UTF-8'); rollback`)
	if err == nil {
		return
	}
	var refused *pgconn.PgError
	if os.Getenv("CI") != "" || !errors.As(err, &refused) || refused.Code != "22023" {
		t.Fatalf("the locale fr_FR.UTF-8: %v", err)
	}
	t.Skipf("PostgreSQL's system has no locale fr_FR.UTF-8 (%v): as root, tools/need-test-programs.sh makes it", err)
}

// databaseWith is a migrated database that was created with other rules of sorting.
func databaseWith(t *testing.T, server, options string) *pg.DB {
	t.Helper()
	name := "sorted_" + strings.NewReplacer(" ", "", "'", "", "-", "", "_", "", ".", "").Replace(options)
	name = strings.ToLower(name)
	run := func(ctx context.Context, statement string) {
		conn, err := pgx.Connect(ctx, server)
		if err == nil {
			_, err = conn.Exec(ctx, statement)
			_ = conn.Close(ctx)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run(t.Context(), "create database "+name+" template template0 encoding 'UTF8' "+options)
	db, err := pg.Open(t.Context(), pg.Database(server, name), schema.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		run(context.WithoutCancel(t.Context()), "drop database "+name+" with (force)")
	})
	return db
}

// TestOrder_InSpanish: Ñ is a letter of its own there, and not in French.
func TestOrder_InSpanish(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string][]string{
		"es": {"Nunez", "Nunzio", "Núñez", "Ñame"},
		"fr": {"Ñame", "Nunez", "Núñez", "Nunzio"},
	} {
		d := openDoor(t, testdb.New(t), "escuela", locale)
		d.sit("Aula 1", "Centro", "America/Lima", "2099-12-07T13:00:00Z", 50)
		d.seat("S001", guestsOf([]string{"Núñez", "Nunzio", "Ñame", "Nunez"})...)
		if got := names(d.print().Content.In(doorlist.ByName)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", locale, got, want)
		}
	}
}

// TestOrder_GivenNamesBeforeAccents: people who write one name in several ways stand together by their given names.
func TestOrder_GivenNamesBeforeAccents(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 10)
	d.seat("S001", guest{family: "Traoré", given: "Zan"}, guest{family: "TRAORE", given: "Binta"}, guest{family: "Traore", given: "Zan"}, guest{family: "TRAORÉ", given: "Awa"})
	want := []string{"TRAORÉ Awa", "TRAORE Binta", "Traore Zan", "Traoré Zan"}
	if got := names(d.print().Content.In(doorlist.ByName)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// C79, C80: numbers within labels are numbers, Z comes before AA, equal ranks always in one order.
func TestOrder_OfSeats(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 20)
	labels := []string{"AA1", "B2", "A10", "Z1", "A2", "A01", "AB1", "A1", "007", "12", "Balcon 2", "Balcon 10"}
	want := []string{"007", "12", "A1", "A01", "A2", "A10", "B2", "Z1", "AA1", "AB1", "Balcon 2", "Balcon 10"}
	seats, guests := make([]venue.Seat, len(labels)), make([]guest, len(labels))
	for i, label := range labels {
		seats[i], guests[i] = venue.Seat{Number: i + 1, Label: label}, guest{family: "Diop", given: label, seat: label}
	}
	d.must(seating.LayPlan(t.Context(), d.db, d.actor, d.org, "Badalabougou", "Salle 1", seats))
	d.seat("S001", guests...)
	printed := d.print()
	got := make([]string, len(labels))
	for i, person := range printed.Content.In(doorlist.BySeat) {
		got[i] = person.Seat
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if in := columnOf(t, d.file(printed, doorlist.CSV, doorlist.BySeat), 1); !slices.Equal(in, want) {
		t.Errorf("in the CSV %q, want %q", in, want)
	}
}

// C80: a hall of thirty rows whose plan leaves out I and O, which look like 1 and 0: A to Z, then AA to AF.
func TestOrder_OfManyRows(t *testing.T) {
	t.Parallel()
	const letters, rows, wide = "ABCDEFGHJKLMNPQRSTUVWXYZ", 30, 2
	var want []string
	for row := range rows {
		name := string(letters[row%len(letters)])
		if row >= len(letters) {
			name = "A" + name
		}
		for number := range wide {
			want = append(want, name+strconv.Itoa(number+9)) // 9 before 10
		}
	}
	d := newDoor(t, len(want))
	seats, guests := make([]venue.Seat, len(want)), make([]guest, len(want))
	for i := range want {
		label := want[(i*37)%len(want)] // in no order; 37 and 60 share no divisor
		seats[i], guests[i] = venue.Seat{Number: i + 1, Label: label}, guest{family: "Diop", given: label, seat: label}
	}
	d.must(seating.LayPlan(t.Context(), d.db, d.actor, d.org, "Badalabougou", "Salle 1", seats))
	d.seat("S001", guests...)
	got := make([]string, 0, len(want))
	for _, person := range d.print().Content.In(doorlist.BySeat) {
		got = append(got, person.Seat)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// screen is how the page of the sitting S001 lists its people: by the labels of their seats, and by surname.
func (d *door) screen() (bySeat, bySurname []string) {
	d.t.Helper()
	a, err := convocation.Attend(d.t.Context(), d.db, d.actor, d.campaign.Slug, "S001")
	d.must(err)
	for _, p := range a.People {
		bySeat = append(bySeat, p.SeatLabel)
	}
	slices.SortFunc(a.People, func(x, y convocation.Attendee) int { return x.ByName - y.ByName })
	for _, p := range a.People {
		bySurname = append(bySurname, admission.FullName(p.FamilyName, p.GivenName))
	}
	return bySeat, bySurname
}

// C79, C81: whoever looks for a seat or a name finds it at the same place on the screen and on paper.
func TestOrder_OneOnScreenAndPaper(t *testing.T) {
	t.Parallel()
	d := newDoor(t, 50)
	labels := []string{"AA1", "A10", "A01", "Z1", "A1", "007", "A2", "12"}
	seats, guests := make([]venue.Seat, len(unsorted)), guestsOf(unsorted)
	for i := range seats {
		label := "B" + strconv.Itoa(len(seats)-i)
		if i < len(labels) {
			label = labels[i]
		}
		seats[i], guests[i].seat = venue.Seat{Number: i + 1, Label: label}, label
	}
	d.must(seating.LayPlan(t.Context(), d.db, d.actor, d.org, "Badalabougou", "Salle 1", seats))
	d.seat("S001", guests...)
	bySeat, bySurname := d.screen()
	content := d.print().Content
	var onPaper []string
	for _, person := range content.In(doorlist.BySeat) {
		onPaper = append(onPaper, person.Seat)
	}
	if !slices.Equal(bySeat, onPaper) {
		t.Errorf("by seat: on the screen\n%q, on paper\n%q", bySeat, onPaper)
	}
	if onPaper := names(content.In(doorlist.ByName)); !slices.Equal(bySurname, onPaper) || !slices.Equal(onPaper, sorted) {
		t.Errorf("by surname: on the screen\n%q, on paper\n%q, want\n%q", bySurname, onPaper, sorted)
	}
}

// C79: rooms are in the order in which a person counts them, whatever order they were entered in, and the same on each look.
func TestOrder_OfRooms(t *testing.T) {
	t.Parallel()
	want := []string{
		"AG001", "amphi 1 bis", "Amphi 2", "Amphi 10", "Grand Auditorium", "KK007", "KK104", "NL019", "NL212",
	}
	d := newDoor(t, 10)
	entered := []string{"KK007", "KK104", "NL019", "NL212", "AG001", "Grand Auditorium", "Amphi 10", "Amphi 2", "amphi 1 bis"}
	for _, room := range entered {
		d.sit(room, "Campus", "Africa/Bamako", "2099-12-08T08:00:00Z", 5)
	}
	for range 2 {
		sittings, err := doorlist.Sittings(t.Context(), d.db, d.actor, doorlist.Selection{Campaign: d.campaign.Slug, Centre: "campus"})
		d.must(err)
		var rooms []string
		for _, s := range sittings {
			rooms = append(rooms, s.Room)
		}
		if !slices.Equal(rooms, want) {
			t.Errorf("rooms %q, want %q", rooms, want)
		}
	}
}
