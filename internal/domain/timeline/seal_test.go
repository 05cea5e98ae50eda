package timeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// The organisations of the tests, and the days: Monday is the first.
const (
	one int64 = 1
	two int64 = 2
)

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func day(n int) time.Time { return monday.AddDate(0, 0, n) }

// book is a database with two organisations.
type book struct {
	t     *testing.T
	db    *pg.DB
	url   string
	owner *pgx.Conn
}

func newBook(t *testing.T) *book {
	t.Helper()
	_, url := testdb.NewWithURL(t)
	b := &book{t: t, url: url, owner: testdb.Owner(t, url)}
	// Read on a day that is over for each of the tests, whatever the day is.
	db, err := pg.Open(t.Context(), url+"&app.clock="+day(30).Format(time.RFC3339), schema.Migrations())
	b.must(err)
	t.Cleanup(db.Close)
	b.db = db
	b.asOwner(`
insert into organisation (created_at, id, slug, name, country, time_zone, locale, currency)
values ('2026-11-01', 1, 'one', 'One', 'ML', 'Africa/Bamako', 'fr', 'XOF'), ('2026-11-01', 2, 'two', 'Two', 'ML', 'Africa/Bamako', 'fr', 'XOF')`)
	return b
}

func (b *book) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// asOwner does what the program may not: change, take away, write into the past.
func (b *book) asOwner(statement string, arguments ...any) {
	b.t.Helper()
	if _, err := b.owner.Exec(b.t.Context(), statement, arguments...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

// begin begins a transaction of the program whose clock stands still.
func (b *book) begin(clock time.Time) pgx.Tx {
	b.t.Helper()
	tx, err := b.db.Pool().Begin(b.t.Context())
	b.must(err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	b.must(pg.See(b.t.Context(), tx, one, two))
	setClock(b.t, tx, clock)
	return tx
}

func setClock(t *testing.T, tx pgx.Tx, clock time.Time) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), `select set_config('app.clock', $1, true)`, clock.Format(time.RFC3339Nano)); err != nil {
		t.Fatal(err)
	}
}

func (b *book) write(tx pgx.Tx, organisation int64, kinds ...timeline.Kind) {
	b.t.Helper()
	entries := make([]timeline.Entry, len(kinds))
	for i, kind := range kinds {
		entries[i] = timeline.Entry{
			Kind: kind, Facts: map[string]any{"seat": string(kind), "price": 1.5, "nothing": nil},
			Subject: timeline.Subject{CampaignID: 1, CandidateID: 2, SittingID: 3, ClaimID: 4, RunID: 5, EventID: 6, ReservationID: 7},
		}
	}
	b.must(timeline.Record(b.t.Context(), tx, organisation, timeline.Actor{Name: "Awa"}, entries...))
}

// record writes entries at an instant.
func (b *book) record(at time.Time, organisation int64, kinds ...timeline.Kind) {
	b.t.Helper()
	tx := b.begin(at)
	b.write(tx, organisation, kinds...)
	b.must(tx.Commit(b.t.Context()))
}

// seal seals a day, an hour after its end, and returns what was sealed.
func (b *book) seal(n int, organisations ...int64) []timeline.Sealed {
	b.t.Helper()
	return b.sealAt(day(n+1).Add(time.Hour), n, organisations...)
}

// sealAt seals a day when the clock shows an instant.
func (b *book) sealAt(clock time.Time, n int, organisations ...int64) []timeline.Sealed {
	b.t.Helper()
	tx := b.begin(clock)
	sealed, err := timeline.Seal(b.t.Context(), tx, organisations, day(n))
	b.must(err)
	b.must(tx.Commit(b.t.Context()))
	return sealed
}

func (b *book) check(organisation int64) timeline.Checked {
	b.t.Helper()
	checked, err := timeline.Check(b.t.Context(), b.db, timeline.Actor{OrganisationID: organisation}, organisation, time.Time{})
	b.must(err)
	return checked
}

// holds wants all seals of an organisation to hold.
func (b *book) holds(organisation int64, seals int, rows int64) {
	b.t.Helper()
	if got := b.check(organisation); got.Broken != nil || got.Seals != seals || got.Rows != rows {
		b.t.Errorf("organisation %d: %+v (%+v), want %d seals of %d rows that hold", organisation, got, got.Broken, seals, rows)
	}
}

// breaks wants the seal of a day to be the first that does not hold.
func (b *book) breaks(what timeline.Break, n int) timeline.Broken {
	b.t.Helper()
	got := b.check(one)
	if got.Broken == nil || got.Broken.What != what || !got.Broken.Seal.Day.Equal(day(n)) {
		b.t.Errorf("%+v (%+v), want %s on %s", got, got.Broken, what, day(n))
		return timeline.Broken{}
	}
	return *got.Broken
}

// week is three sealed days of organisation one, with three, none and two rows, and one day that is not.
func week(t *testing.T) *book {
	t.Helper()
	b := newBook(t)
	b.record(day(0).Add(8*time.Hour), one, "a", "b", "c")
	b.record(day(0).Add(9*time.Hour), two, "z")
	b.seal(0, one)
	b.seal(1, one)
	b.record(day(2), one, "d")
	b.record(day(3).Add(-time.Microsecond), one, "e")
	b.record(day(3), one, "f")
	b.seal(2, one)
	b.holds(one, 3, 5)
	return b
}

func TestSeal_CoversTheDayAndNothingElse(t *testing.T) {
	t.Parallel()
	b := week(t)
	seals, err := timeline.Seals(t.Context(), b.db, timeline.Actor{OrganisationID: one}, one)
	b.must(err)
	var got []string
	for _, s := range seals {
		got = append(got, fmt.Sprintf("%s–%s %d", s.FirstDay.Format(time.DateOnly), s.Day.Format(time.DateOnly), s.Rows))
		if want := s.Day.Add(25 * time.Hour); !s.SealedAt.Equal(want) {
			t.Errorf("sealed at %s, want %s", s.SealedAt, want)
		}
	}
	if want := []string{"2026-11-25–2026-11-25 2", "2026-11-24–2026-11-24 0", "2026-11-23–2026-11-23 3"}; !slices.Equal(got, want) {
		t.Errorf("seals are %q, want %q", got, want)
	}
	if seals[0].Digest == seals[1].Digest || seals[0].Digest == (timeline.Digest{}) {
		t.Error("two days have the same digest, or none")
	}
}

func TestSeal_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := week(t)
	for n := range 3 { // the last of them, and earlier ones, which a later seal covers
		if again := b.sealAt(day(4), n, one); len(again) != 0 {
			t.Errorf("day %d was sealed again: %+v", n, again)
		}
	}
	b.holds(one, 3, 5)
}

// A day before there was an organisation, or any row of it, makes no seal: each day since would be missed, and sealed.
func TestSeal_ADayBeforeTheOrganisation(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0).Add(8*time.Hour), one, "a")
	if made := b.sealAt(day(4), -10_000, one); len(made) != 0 {
		t.Errorf("%d seals of a day before everything: %+v", len(made), made[0])
	}
	equal := func(seals []timeline.Sealed, want int) {
		if len(seals) != want {
			t.Errorf("%d seals, want %d", len(seals), want)
		}
	}
	equal(b.sealAt(day(4), 0, one), 1)
	equal(b.sealAt(day(4), 1, one), 1)
}

func TestSeal_OfDaysThatWereMissedLeavesNoHole(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(-40), one, "first of all")
	b.record(day(0), one, "a")
	if s := b.seal(0, one); len(s) != 1 || s[0].Rows != 2 || !s[0].FirstDay.Equal(day(-40)) {
		t.Fatalf("the first seal is %+v, want two rows from day -40", s)
	}
	b.record(day(1), one, "b")
	b.record(day(3), one, "c", "d")
	s := b.seal(3, one) // and the two days before, each by itself
	for i, rows := range []int64{1, 0, 2} {
		if len(s) != 3 || s[i].Rows != rows || !s[i].Day.Equal(day(i+1)) || !s[i].FirstDay.Equal(day(i+1)) {
			t.Fatalf("the seals after two missed days are %+v, want days 1, 2 and 3", s)
		}
	}
	if s := b.sealAt(day(5), 2, one); len(s) != 0 {
		t.Errorf("a day that has its seal was sealed again: %+v", s)
	}
	b.holds(one, 4, 5)
}

// Only the owner of the database can write such a row: it is sealed like any other.
func TestSeal_ARowFromBeforeTime(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.asOwner(`insert into timeline (organisation_id, at, actor, kind, facts) values (1, '-infinity', 'x', 'k', '{}')`)
	if s := b.seal(0, one); len(s) != 1 || s[0].Rows != 1 || !s[0].FirstDay.Equal(day(0)) {
		t.Errorf("sealed %+v", s)
	}
	b.holds(one, 1, 1)
}

func TestSeal_ADayThatIsNotOver(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, c := range []struct {
		clock time.Time
		over  bool
	}{
		{day(0), false},
		{day(1), false},
		{day(1).Add(timeline.Settling - time.Microsecond), false},
		{day(1).Add(timeline.Settling), true},
	} {
		tx := b.begin(c.clock)
		sealed, err := timeline.Seal(t.Context(), tx, []int64{one}, day(0).Add(13*time.Hour))
		if over := err == nil && len(sealed) == 1; over != c.over || !over && !problem.Has(err, "day_not_over") {
			t.Errorf("at %s: %+v, %v", c.clock, sealed, err)
		}
		b.must(tx.Rollback(t.Context()))
	}
}

// counting counts the statements of a transaction.
type counting struct {
	pgx.Tx
	statements int
}

func (c *counting) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	c.statements++
	return c.Tx.Query(ctx, sql, arguments...)
}

func (c *counting) QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row {
	c.statements++
	return c.Tx.QueryRow(ctx, sql, arguments...)
}

func (c *counting) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	c.statements++
	return c.Tx.Exec(ctx, sql, arguments...)
}

func TestSeal_OfManyOrganisationsIsAsManyStatements(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.asOwner(`insert into organisation (created_at, id, slug, name, country, time_zone, locale, currency)
select '2026-11-01', n, 's' || n, 'S', 'ML', 'Africa/Bamako', 'fr', 'XOF' from generate_series(3, 200) n`)
	ids := make([]int64, 200)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	var statements []int
	for _, organisations := range [][]int64{ids[:1], ids} {
		tx := &counting{Tx: b.begin(day(2))}
		b.must(pg.See(t.Context(), tx.Tx, ids...))
		sealed, err := timeline.Seal(t.Context(), tx, organisations, day(0))
		b.must(err)
		ordered := slices.IsSortedFunc(sealed, func(a, b timeline.Sealed) int { return int(a.OrganisationID - b.OrganisationID) })
		if len(sealed) != len(organisations) || !ordered {
			t.Errorf("%d of %d organisations were sealed, in order: %v", len(sealed), len(organisations), ordered)
		}
		statements = append(statements, tx.statements)
		b.must(tx.Rollback(t.Context()))
	}
	if statements[0] != statements[1] || statements[0] > 5 {
		t.Errorf("statements for one and for 200 organisations: %v", statements)
	}
}

func TestSeal_KeepsOrganisationsApart(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	b.record(day(0), two, "a")
	b.seal(0, one)
	b.record(day(1), two, "c")
	sealed := b.seal(1, one, two)
	if len(sealed) != 2 || sealed[0].Rows != 0 || sealed[1].Rows != 2 {
		t.Fatalf("sealed %+v, want none of one and two of two", sealed)
	}
	b.asOwner(`update timeline set actor = 'x' where organisation_id = $1`, two)
	b.holds(one, 2, 2)
	if got := b.check(two); got.Broken == nil || got.Broken.What != timeline.RowsChanged {
		t.Errorf("two: %+v, want rows_changed", got)
	}
	stranger := timeline.Actor{OrganisationID: two}
	if _, err := timeline.Check(t.Context(), b.db, stranger, one, time.Time{}); !problem.Has(err, "organisation_unknown") {
		t.Errorf("a stranger checks: %v", err)
	}
	if _, err := timeline.Seals(t.Context(), b.db, stranger, one); !problem.Has(err, "organisation_unknown") {
		t.Errorf("a stranger lists: %v", err)
	}
}

// TestSeal_DoesNotDependOnTheSession: a seal that is made in one session is checked in another, of another machine.
func TestSeal_DoesNotDependOnTheSession(t *testing.T) {
	t.Parallel()
	b := week(t)
	b.record(day(4).Add(-time.Nanosecond*1000), one, "late")
	digest := func(settings ...string) (found timeline.Digest) {
		tx := b.begin(day(5))
		for _, setting := range settings {
			_, err := tx.Exec(t.Context(), "set local "+setting)
			b.must(err)
		}
		sealed, err := timeline.Seal(t.Context(), tx, []int64{one}, day(3))
		b.must(err)
		if len(sealed) != 1 || sealed[0].Rows != 2 || !sealed[0].Day.Equal(day(3)) || !sealed[0].FirstDay.Equal(day(3)) {
			t.Errorf("with %q: %+v", settings, sealed)
			return found
		}
		b.must(tx.Rollback(t.Context()))
		return sealed[0].Digest
	}
	want := digest()
	for _, settings := range [][]string{
		{"timezone = 'Pacific/Kiritimati'"},
		{"timezone = 'America/Los_Angeles'"},
		{"timezone = 'Africa/Bamako'"},
		{"datestyle = 'German, DMY'"},
		{"datestyle = 'SQL, MDY'", "timezone = 'Asia/Kolkata'"},
		{"extra_float_digits = -15"},
		{"bytea_output = 'escape'"},
		{"intervalstyle = 'sql_standard'"},
		{"lc_time = 'C'"},
		{"standard_conforming_strings = off", "backslash_quote = on"},
		{"enable_indexscan = off", "enable_bitmapscan = off"},
		{"work_mem = '64kB'"},
	} {
		if got := digest(settings...); got != want {
			t.Errorf("with %q the digest is %s, want %s", settings, got, want)
		}
	}
	elsewhere, err := pg.Open(t.Context(), zoned(b.url), schema.Migrations())
	b.must(err)
	defer elsewhere.Close()
	b.seal(3, one)
	checked, err := timeline.Check(t.Context(), elsewhere, timeline.Actor{Installation: true}, one, time.Time{})
	b.must(err)
	if checked.Broken != nil || checked.Seals != 4 {
		t.Errorf("checked elsewhere: %+v", checked)
	}
}

// zoned is the URL for sessions in another time zone, which writes dates in another way.
func zoned(url string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "timezone=Pacific/Kiritimati&datestyle=German,DMY"
}

// TestSeal_ReadsNothingButItsDays: without statistics, and past row-level security, a day is found by its index.
func TestSeal_ReadsNothingButItsDays(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.asOwner(`insert into timeline (organisation_id, at, actor, kind, facts)
select 1 + n % 2, $1::timestamptz + n * interval '1 minute', 'a', 'k', '{}' from generate_series(0, 20000) n`, day(0))
	b.seal(12, one)
	tx := b.begin(day(20))
	rows, err := tx.Query(t.Context(), "explain "+timeline.InsertSeals, []int64{one}, day(13), day(13))
	b.must(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "timeline_of_day") || strings.Contains(text, "Seq Scan on timeline") {
		t.Errorf("the day is not found by its index:\n%s", text)
	}
}

func TestDigest_Short(t *testing.T) {
	t.Parallel()
	d := timeline.Digest{0x7f, 0x3a, 0x91, 0xc2, 0x0b, 0x4d, 0x55, 0xe1, 0x9a, 0x20, 0xff}
	if got := d.Short(); got != "7F3A-91C2-0B4D-55E1-9A20" {
		t.Errorf("the short form is %s", got)
	}
	if got := d.String(); !strings.HasPrefix(got, "7f3a91c20b4d55e19a20ff00") || len(got) != 64 {
		t.Errorf("the whole form is %s", got)
	}
}

// A seal that was made while the clock was ahead is set aside when the clock is right again: what is written into its day then is no
// break, the day is sealed when it is over, and Check goes on telling of it.
func TestSetAside_SealsOfDaysThatAreNotOver(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a")
	b.record(day(0), two, "z")
	b.seal(0, one, two)
	b.record(day(1).Add(8*time.Hour), one, "b")
	ahead := b.sealAt(day(12), 10, one) // the clock shows ten days more
	if len(ahead) != 10 {
		t.Fatalf("sealed ahead: %+v", ahead)
	}
	b.record(day(1).Add(20*time.Hour), one, "c") // it was set right
	b.breaks(timeline.RowsAdded, 1)
	right := b.begin(day(1).Add(21 * time.Hour))
	b.must(timeline.SetAside(t.Context(), right, []int64{one, two}))
	b.must(right.Commit(t.Context()))
	b.holds(one, 1, 1)
	b.holds(two, 1, 1)
	if a := b.check(one).Aside; a.Seals != 10 || a.Changed != 0 || !a.First.Equal(day(1)) || !a.Last.Equal(day(10)) || !a.At.Equal(day(1).Add(21*time.Hour)) {
		t.Errorf("set aside: %+v", a)
	}
	if a := b.check(two).Aside; a != (timeline.Aside{}) {
		t.Errorf("of the other: %+v", a)
	}
	b.seal(1, one)
	b.seal(2, one)
	b.holds(one, 3, 4) // a; b, c and what says that seals were set aside; nothing
	if a := b.check(one).Aside; a.Seals != 10 || a.Changed != 1 {
		t.Errorf("after its days were sealed: %+v", a)
	}
	var said int
	b.must(b.owner.QueryRow(t.Context(), `
select count(*) from timeline where organisation_id = 1 and kind = 'seals_set_aside' and facts = '{"seals": 10, "first_day": "2026-11-24", "last_day": "2026-12-03"}'`).Scan(&said))
	if said != 1 {
		t.Errorf("the timeline says it %d times", said)
	}
}

// Sealing sets aside by itself what stands in its way, and nothing else.
func TestSeal_SetsAsideWhatWasSealedEarly(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a")
	b.sealAt(day(6).Add(time.Hour), 5, one)
	if made := b.seal(1, one); len(made) != 1 || made[0].Rows != 1 {
		t.Errorf("sealed: %+v", made)
	}
	b.holds(one, 1, 1)
	if again := b.sealAt(day(4), 1, one); len(again) != 0 || b.check(one).Aside.Seals != 1 {
		t.Errorf("sealed again: %+v, aside %+v", again, b.check(one).Aside)
	}
}

// The program sets aside no seal of a day that is over, nor of an organisation that it does not see.
func TestSetAside_TouchesNothingElse(t *testing.T) {
	t.Parallel()
	b := week(t)
	tx := b.begin(day(3).Add(timeline.Settling))
	b.must(timeline.SetAside(t.Context(), tx, []int64{one, two}))
	b.must(tx.Commit(t.Context()))
	blind := b.begin(day(0))
	b.must(pg.See(t.Context(), blind, two))
	b.must(timeline.SetAside(t.Context(), blind, []int64{one}))
	b.must(blind.Commit(t.Context()))
	b.holds(one, 3, 5)
	if a := b.check(one).Aside; a.Seals != 0 {
		t.Errorf("set aside: %+v", a)
	}
}

// Whoever looks each second finds the seals that were made while the clock was ahead, of all organisations, and then nothing more; each
// organisation's timeline says so once.
func TestSetAsideAhead_FindsThemOnce(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a")
	b.record(day(0), two, "z")
	b.seal(0, one, two)
	_, err := b.owner.Exec(t.Context(), `
insert into timeline_seal (organisation_id, day, first_day, rows, rows_digest, mixture, previous, digest)
select organisation_id, $1, day + 1, 0, rows_digest, mixture, digest, sha256(digest) from timeline_seal`, day(30)) // today, by the clock of the book
	b.must(err)
	for _, want := range []int{2, 0} {
		organisations, err := timeline.SetAsideAhead(t.Context(), b.db)
		b.must(err)
		if organisations != want {
			t.Errorf("seals of %d organisations were set aside, want %d", organisations, want)
		}
	}
	var left, aside, said int
	b.must(b.owner.QueryRow(t.Context(), `select (select count(*) from timeline_seal), (select count(*) from timeline_seal_aside),
  (select count(distinct organisation_id) from timeline where kind = 'seals_set_aside' and facts->>'seals' = '1')`).Scan(&left, &aside, &said))
	if left != 2 || aside != 2 || said != 2 {
		t.Errorf("%d seals are left, %d set aside, %d timelines say so; want 2 of each", left, aside, said)
	}
}
