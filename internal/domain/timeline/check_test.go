package timeline_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
)

// otherValues give each type of column another value than the one that is there.
var otherValues = map[string]string{
	"bigint":                   "%[1]s + 1000",
	"text":                     "%[1]s || ' '",
	"timestamp with time zone": "%[1]s + interval '1 microsecond'",
	"jsonb":                    `%[1]s || '{"seat": "another"}'`,
	"date":                     "%[1]s + 1",
	"bytea":                    "set_byte(%[1]s, 31, 255 - get_byte(%[1]s, 31))",
	"bit":                      "~%[1]s",
}

// columns are those of a table, by the catalogue, so that a new one cannot be forgotten.
func (b *book) columns(table string) map[string]string {
	b.t.Helper()
	rows, err := b.owner.Query(b.t.Context(), `select column_name, data_type from information_schema.columns
 where table_schema = 'public' and table_name = $1`, table)
	b.must(err)
	columns := map[string]string{}
	var name, kind string
	_, err = pgx.ForEachRow(rows, []any{&name, &kind}, func() error { columns[name] = kind; return nil })
	b.must(err)
	if len(columns) < 9 {
		b.t.Fatalf("only %d columns of %s were found", len(columns), table)
	}
	return columns
}

// tampered does something as the owner, looks, and takes it back.
func (b *book) tampered(look func(), statement string, arguments ...any) {
	b.t.Helper()
	for _, table := range []string{"timeline", "timeline_seal"} {
		b.asOwner(`create table kept_` + table + ` as table ` + table)
	}
	b.asOwner(statement, arguments...)
	look()
	for _, table := range []string{"timeline", "timeline_seal"} {
		b.asOwner(`delete from ` + table)
		b.asOwner(`insert into ` + table + ` table kept_` + table)
		b.asOwner(`drop table kept_` + table)
	}
}

func TestCheck_NamesTheDayOfEachChangedColumn(t *testing.T) {
	t.Parallel()
	b := week(t)
	for column, kind := range b.columns("timeline") {
		form, known := otherValues[kind]
		if !known {
			t.Fatalf("no other value for the type %s of %s", kind, column)
		}
		want, day := timeline.RowsChanged, 2
		if column == "organisation_id" { // it is another's now
			want = timeline.RowsMissing
		}
		b.tampered(func() {
			t.Helper()
			if b.breaks(want, day).What == "" {
				t.Errorf("column %s", column)
			}
		}, `update timeline set `+column+` = `+fmt.Sprintf(form, column)+` where organisation_id = 1 and kind = 'd'`)
	}
	b.holds(one, 3, 5)
}

func TestCheck_NamesTheDayOfEachChangedSeal(t *testing.T) {
	t.Parallel()
	b := week(t)
	for column, kind := range b.columns("timeline_seal") {
		if column == "sealed_at" { // stands in no digest: two who seal at once make the same seal
			continue
		}
		form, known := otherValues[kind]
		if !known {
			t.Fatalf("no other value for the type %s of %s", kind, column)
		}
		if column == "first_day" {
			form = "%s - 1"
		}
		want, n, of := timeline.SealChanged, 2, 2
		switch column {
		case "organisation_id": // there is one seal less, and the next does not follow
			want, n, of = timeline.ChainBroken, 2, 1
		case "day":
			n, of = 3, 2 // the seal says that it is another day's
		}
		b.tampered(func() {
			t.Helper()
			if b.breaks(want, n).What == "" {
				t.Errorf("column %s", column)
			}
		}, `update timeline_seal set `+column+` = `+fmt.Sprintf(form, column)+` where day = $1`, day(of))
	}
	b.holds(one, 3, 5)
}

func TestCheck_NamesTheDayOfWhatWasDone(t *testing.T) {
	t.Parallel()
	b := week(t)
	for name, c := range map[string]struct {
		statement string
		what      timeline.Break
		day       int
		found     int64
	}{
		"the last row is gone":           {`delete from timeline where kind = 'e'`, timeline.RowsMissing, 2, 1},
		"all rows of a day are gone":     {`delete from timeline where kind in ('a', 'b', 'c')`, timeline.RowsMissing, 0, 0},
		"a row of long ago is added":     {`insert into timeline (organisation_id, at, actor, kind, facts) values (1, '1999-01-01Z', 'a', 'new', '{}')`, timeline.RowsAdded, 0, 4},
		"a row from before time":         {`insert into timeline (organisation_id, at, actor, kind, facts) values (1, '-infinity', 'a', 'new', '{}')`, timeline.RowsAdded, 0, 4},
		"a row is added to an empty day": {`insert into timeline (organisation_id, at, actor, kind, facts) values (1, '2026-11-24 12:00Z', 'a', 'new', '{}')`, timeline.RowsAdded, 1, 1},
		"a row is moved to another day":  {`update timeline set at = '2026-11-25 12:00Z' where kind = 'a'`, timeline.RowsMissing, 0, 2},
		"a row is moved out of time":     {`update timeline set at = 'infinity' where kind = 'a'`, timeline.RowsMissing, 0, 2},
		"two rows exchange their facts": {`update timeline t set facts = o.facts from timeline o
 where t.organisation_id = 1 and o.organisation_id = 1 and t.kind || o.kind in ('ab', 'ba')`, timeline.RowsChanged, 0, 3},
		"two rows exchange their ids": {`update timeline t set id = o.id + 5000 from timeline o
 where t.organisation_id = 1 and o.organisation_id = 1 and t.kind || o.kind in ('ab', 'ba')`, timeline.RowsChanged, 0, 3},
		"a row is replaced by another": {`with gone as (delete from timeline where kind = 'd' returning *)
insert into timeline (organisation_id, at, actor, kind, facts) select organisation_id, at, actor, kind, facts from gone`, timeline.RowsChanged, 2, 2},
		"a seal between others is gone": {`delete from timeline_seal where day = '2026-11-24'`, timeline.ChainBroken, 2, 2},
		"the first seal is gone":        {`delete from timeline_seal where day = '2026-11-23'`, timeline.ChainBroken, 1, 3},
	} {
		b.tampered(func() {
			t.Helper()
			if got := b.breaks(c.what, c.day); got.Found != c.found {
				t.Errorf("%s: %d rows were found, want %d", name, got.Found, c.found)
			}
		}, c.statement)
	}
	b.holds(one, 3, 5)
}

// A row that is not sealed yet may be anything.
func TestCheck_SaysNothingOfWhatIsNotSealed(t *testing.T) {
	t.Parallel()
	b := week(t)
	b.asOwner(`update timeline set actor = 'x' where kind in ('f', 'z')`)
	b.holds(one, 3, 5)
	b.holds(two, 0, 0)
}

// TestCheck_NamesWhatWasAddedAfterTheSeal: a transaction that wrote before midnight commits after the seal of its day; another
// day has rows that somebody wrote into it.
func TestCheck_NamesWhatWasAddedAfterTheSeal(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][]timeline.Kind{{"late"}, {"late", "later", "latest"}} {
		b := newBook(t)
		b.record(day(0), one, "a", "b")
		late := b.begin(day(1).Add(-time.Second))
		b.write(late, one, kinds...)
		b.record(day(1).Add(-time.Millisecond), one, "c")
		b.seal(0, one)
		b.seal(1, one)
		b.must(late.Commit(t.Context()))
		broken := b.breaks(timeline.RowsAdded, 0)
		if len(broken.Added) != len(kinds) || broken.Seal.Rows != 3 || broken.Found != int64(3+len(kinds)) {
			t.Fatalf("broken is %+v, want the rows %q", broken, kinds)
		}
		for i, row := range broken.Added {
			if row.Kind != kinds[i] || row.Actor != "Awa" || !row.At.Equal(day(1).Add(-time.Second)) {
				t.Errorf("row %d is %+v", i, row)
			}
		}
	}
	b := week(t)
	b.asOwner(`insert into timeline (organisation_id, at, actor, kind, facts)
select 1, $1::timestamptz + n * interval '1 minute', 'x', 'new', '{}' from generate_series(1, 40) n`, day(0))
	if added := b.breaks(timeline.RowsAdded, 0).Added; len(added) != 10 || added[0].Kind != "new" {
		t.Errorf("added are %+v, want the first ten", added)
	}
	b.asOwner(`insert into timeline (organisation_id, at, actor, kind, facts) values (1, $1, 'x', 'more', '{}')`, day(0))
	if added := b.breaks(timeline.RowsAdded, 0).Added; len(added) != 0 {
		t.Errorf("two transactions added rows, and these are named: %+v", added)
	}
}

// race has two sessions seal a day each, the second before the first commits, and returns what the second sealed.
func (b *book) race(first, second int, waits bool) []timeline.Sealed {
	b.t.Helper()
	clock := day(5)
	a, c := b.begin(clock), b.begin(clock)
	made, err := timeline.Seal(b.t.Context(), a, []int64{one}, day(first))
	b.must(err)
	if len(made) != 1 {
		b.t.Fatalf("the first sealed %+v", made)
	}
	var pid int
	b.must(c.QueryRow(b.t.Context(), `select pg_backend_pid()`).Scan(&pid))
	type result struct {
		sealed []timeline.Sealed
		err    error
	}
	done := make(chan result, 1)
	go func() {
		sealed, err := timeline.Seal(context.WithoutCancel(b.t.Context()), c, []int64{one}, day(second))
		done <- result{sealed, err}
	}()
	var came result
	if waits { // the commit comes when the second waits for it, so that the key decides and not the order
		b.must(testdb.Until(b.t, "the second waits for the first", func() (blocked bool, err error) {
			err = b.owner.QueryRow(b.t.Context(), `select cardinality(pg_blocking_pids($1)) > 0`, pid).Scan(&blocked)
			return blocked, err
		}))
		b.must(a.Commit(b.t.Context()))
		came = <-done
	} else {
		came = <-done
		b.must(a.Commit(b.t.Context()))
	}
	b.must(came.err)
	b.must(c.Commit(b.t.Context()))
	return came.sealed
}

func (b *book) seals() (count, digests int) {
	b.t.Helper()
	b.must(b.owner.QueryRow(b.t.Context(), `select count(*), count(distinct digest) from timeline_seal where organisation_id = 1`).Scan(&count, &digests))
	return count, digests
}

func TestSeal_TwoAtOnceMakeOne(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	if second := b.race(0, 0, true); len(second) != 0 {
		t.Errorf("the second sealed %+v", second)
	}
	if count, _ := b.seals(); count != 1 {
		t.Errorf("%d seals, want 1", count)
	}
	b.holds(one, 1, 2)
}

// Negative control: without the keys there are two, and they are the same.
func TestSeal_TwoAtOnce_Control(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	b.asOwner(`alter table timeline_seal drop constraint timeline_seal_pkey, drop constraint timeline_seal_chain`)
	b.race(0, 0, false)
	if count, digests := b.seals(); count != 2 || digests != 1 {
		t.Errorf("without the keys: %d seals with %d digests, want 2 with 1", count, digests)
	}
}

func TestSeal_TwoDaysAtOnceStayOneChain(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	b.record(day(1), one, "c")
	b.seal(-1, one)
	second := b.race(0, 1, true)
	if len(second) != 1 || second[0].Rows != 1 || !second[0].FirstDay.Equal(day(1)) {
		t.Errorf("the second sealed %+v, want day 1 alone", second)
	}
	b.holds(one, 3, 3)
}

// Two who make the first seal of an organisation, of different days, follow nothing both.
func TestSeal_TwoFirstSealsAtOnceStayOneChain(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	b.record(day(1), one, "c")
	second := b.race(0, 1, true)
	if len(second) != 1 || second[0].Rows != 1 || !second[0].FirstDay.Equal(day(1)) {
		t.Errorf("the second sealed %+v, want day 1 alone", second)
	}
	b.holds(one, 2, 3)
}

// Negative control: without the key of the chain both are first.
func TestSeal_TwoDaysAtOnce_Control(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.record(day(0), one, "a", "b")
	b.record(day(1), one, "c")
	b.asOwner(`alter table timeline_seal drop constraint timeline_seal_chain`)
	b.race(0, 1, false)
	b.breaks(timeline.ChainBroken, 1)
}

// A seal of a day that is not over tells of the clock, and of nobody who changed anything.
func TestCheck_NamesASealThatIsEarly(t *testing.T) {
	t.Parallel()
	b := week(t)
	early, err := pg.Open(t.Context(), b.url+"&app.clock="+day(1).Add(12*time.Hour).Format(time.RFC3339), schema.Migrations())
	b.must(err)
	defer early.Close()
	checked, err := timeline.Check(t.Context(), early, timeline.Actor{OrganisationID: one}, one, time.Time{})
	b.must(err)
	if checked.Broken == nil || checked.Broken.What != timeline.SealEarly || !checked.Broken.Seal.Day.Equal(day(1)) || checked.Seals != 1 {
		t.Fatalf("checked: %+v", checked)
	}
	if said, ok := problem.Of(checked.Broken.Refusal()); !ok || said.Code != "timeline_sealed_early" || said.Facts["day"] != "2026-11-24" {
		t.Errorf("it says %+v", said)
	}
}

// Seals that were taken away from the end are missed where the schedule says that they were made.
func TestCheck_MissesSealsThatTheScheduleSaysWereMade(t *testing.T) {
	t.Parallel()
	b := week(t)
	check := func(organisation int64, said time.Time) timeline.Checked {
		t.Helper()
		checked, err := timeline.Check(t.Context(), b.db, timeline.Actor{OrganisationID: organisation}, organisation, said)
		b.must(err)
		return checked
	}
	for _, said := range []time.Time{{}, day(0), day(2)} {
		if got := check(one, said); got.Broken != nil || got.Seals != 3 {
			t.Errorf("said up to %s: %+v", said, got)
		}
	}
	b.tampered(func() {
		t.Helper()
		got := check(one, day(2))
		if got.Broken == nil || got.Broken.What != timeline.SealsGone || !got.Broken.Seal.Day.Equal(day(2)) || got.Seals != 1 {
			t.Fatalf("without the latest: %+v", got)
		}
		if said, ok := problem.Of(got.Broken.Refusal()); !ok || said.Code != "timeline_seals_gone" || said.Facts["day"] != "2026-11-25" {
			t.Errorf("it says %+v", said)
		}
	}, `delete from timeline_seal where day > '2026-11-23'`)
	if got := check(two, day(1)); got.Broken == nil || got.Broken.What != timeline.SealsGone || got.Last != nil {
		t.Errorf("without any: %+v", got)
	}
}
