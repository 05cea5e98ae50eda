package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// place is a database of the test's own with one table, and a session of its owner.
type place struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

const bookings = `create table booking (id bigint generated always as identity primary key, organisation_id bigint not null, code text, note text not null default '')`

// build makes the database and runs the statements in it.
func build(t *testing.T, statements ...string) *place {
	t.Helper()
	name := fmt.Sprintf("test_%d", shared.count.Add(1))
	server, err := pgx.Connect(t.Context(), shared.server.URL("postgres"))
	must(t, err)
	shared.making.Lock()
	_, err = server.Exec(t.Context(), "create database "+name)
	shared.making.Unlock()
	must(t, errors.Join(err, server.Close(t.Context())))
	config, err := pgx.ParseConfig(shared.server.URL(name))
	must(t, err)
	p := &place{config: config}
	p.conn = p.connect(t)
	for _, statement := range statements {
		p.do(t, statement)
	}
	return p
}

func (p *place) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), p.config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (p *place) do(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := p.conn.Exec(t.Context(), statement, args...)
	must(t, err)
}

// indexes lists what is on the table booking: each unique index beside the primary key, and whether it holds.
func (p *place) indexes(t *testing.T) string {
	t.Helper()
	rows, err := p.conn.Query(t.Context(), `
select i.relname || case when x.indisvalid and x.indisready then '' else ' (invalid)' end || case when k.oid is null then ' (index)' else '' end
  from pg_index x join pg_class i on i.oid = x.indexrelid left join pg_constraint k on k.conindid = i.oid
 where x.indrelid = 'booking'::regclass and x.indisunique and not x.indisprimary order by 1`)
	must(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return strings.Join(names, ", ")
}

func (p *place) number(t *testing.T, query string) (n int64) {
	t.Helper()
	must(t, p.conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

var (
	byCode  = pg.UniqueKey{Table: "booking", Columns: []string{"organisation_id", "code"}}
	hasty   = pg.UniqueLimits{Lock: 50 * time.Millisecond, Tries: 3, Pause: 10 * time.Millisecond, Patience: time.Minute}
	keepOld = &pg.UniqueRepair{Keep: "id", Statement: "delete from booking b using surplus s where b.id = s.id"}
)

const keyName = "booking_organisation_id_code_key"

func (p *place) add(t *testing.T, key pg.UniqueKey, repair *pg.UniqueRepair, tell func(pg.UniqueStep)) (pg.UniqueResult, error) {
	t.Helper()
	return pg.AddUnique(t.Context(), p.config, key, repair, hasty, tell)
}

func TestAddUnique_IsThereOnceAndTheRepeatChangesNothing(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) select 1, n::text from generate_series(1, 1000) n`)
	result, err := p.add(t, byCode, nil, nil)
	must(t, err)
	if got := p.indexes(t); got != keyName || result.Name != keyName || result.Already {
		t.Errorf("there are %q after %+v", got, result)
	}
	if _, err := p.conn.Exec(t.Context(), `insert into booking (organisation_id, code) values (1, '7')`); !pg.Violates(err, keyName) {
		t.Errorf("a duplicate ends with %v", err)
	}
	made := p.number(t, `select oid::bigint from pg_class where relname = '`+keyName+`'`)
	for range 2 {
		again, err := p.add(t, byCode, nil, nil)
		must(t, err)
		if !again.Already || p.number(t, `select oid::bigint from pg_class where relname = '`+keyName+`'`) != made {
			t.Errorf("the repeat says %+v", again)
		}
	}
	// The same columns in another order forbid the same.
	other, err := p.add(t, pg.UniqueKey{Table: "booking", Columns: []string{"code", "organisation_id"}}, nil, nil)
	must(t, err)
	if !other.Already || other.Name != keyName {
		t.Errorf("the same columns in another order: %+v", other)
	}
}

// A key that is only kept at the end of a transaction, or has another name than the one that was asked for, is not that key.
func TestAddUnique_OtherKeysAreNotTheKey(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `alter table booking add constraint late unique (organisation_id, code) deferrable`)
	result, err := p.add(t, byCode, nil, nil)
	must(t, err)
	if result.Already || p.indexes(t) != keyName+", late" {
		t.Errorf("beside a deferrable one: %+v, %q", result, p.indexes(t))
	}
	named := byCode
	named.Name = "asked_for"
	for _, already := range []bool{false, true} {
		result, err = p.add(t, named, nil, nil)
		must(t, err)
		if result.Already != already || p.indexes(t) != "asked_for, "+keyName+", late" {
			t.Errorf("by its name: %+v, %q", result, p.indexes(t))
		}
	}
}

func TestAddUnique_NamesDuplicates(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A'), (1, 'A'), (1, 'A'), (2, 'A'), (2, 'B'), (2, 'B'), (3, null), (3, null)`)
	_, err := p.add(t, byCode, nil, nil)
	refused, ok := problem.Of(err)
	if !ok || refused.Code != "unique_duplicates" || refused.Facts["groups"] != int64(2) || refused.Facts["surplus"] != int64(3) ||
		refused.Facts["largest"] != "1, A (3); 2, B (2)" {
		t.Fatalf("it ends with %v", err)
	}
	if got := p.indexes(t); got != "" {
		t.Errorf("it leaves %q", got)
	}
	looked, err := pg.LookForDuplicates(t.Context(), p.config, byCode)
	must(t, err)
	if looked.Duplicates.Groups != 2 || looked.Duplicates.Surplus != 3 || len(looked.Duplicates.Largest) != 2 || p.number(t, `select count(*) from booking`) != 8 {
		t.Errorf("a look finds %+v", looked)
	}
	// Two rows without a value are alike only where the key says so.
	alike := byCode
	alike.NullsNotDistinct = true
	if looked, err = pg.LookForDuplicates(t.Context(), p.config, alike); err != nil || looked.Duplicates.Groups != 3 {
		t.Errorf("with NULLs that are alike: %+v, %v", looked, err)
	}
}

func TestLookForDuplicates_ListIsBounded(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) select 1, (n % 500)::text from generate_series(1, 1500) n`)
	looked, err := pg.LookForDuplicates(t.Context(), p.config, byCode)
	must(t, err)
	if looked.Duplicates.Groups != 500 || looked.Duplicates.Surplus != 1000 || len(looked.Duplicates.Largest) != 20 {
		t.Errorf("it finds %d groups, %d rows too many, and lists %d", looked.Duplicates.Groups, looked.Duplicates.Surplus, len(looked.Duplicates.Largest))
	}
}

func TestAddUnique_RepairsByTheCallersRule(t *testing.T) {
	t.Parallel()
	rows := `insert into booking (organisation_id, code, note) select 1, (n % 6000)::text, n::text from generate_series(0, 17999) n;
insert into booking (organisation_id, code) values (2, null), (2, null)`
	kept := func(first, nulls int64) func(*testing.T, *place, pg.UniqueResult) {
		return func(t *testing.T, p *place, r pg.UniqueResult) {
			if n := p.number(t, `select count(*) from booking where code is not null`); n != 6000 {
				t.Errorf("%d rows are left", n)
			}
			if n := p.number(t, `select note::bigint from booking where code = '5' and organisation_id = 1`); n != first {
				t.Errorf("of a group row %d is left, want %d", n, first)
			}
			if n := p.number(t, `select count(*) from booking where code is null`); n != nulls {
				t.Errorf("%d rows without a value are left, want %d", n, nulls)
			}
			if r.Repaired != 12_000+2-nulls || r.Duplicates.Groups != 6000+2-nulls {
				t.Errorf("it says %+v", r)
			}
		}
	}
	alike := byCode
	alike.NullsNotDistinct = true
	for name, c := range map[string]struct {
		key    pg.UniqueKey
		repair pg.UniqueRepair
		check  func(*testing.T, *place, pg.UniqueResult)
	}{
		"the oldest stays":       {byCode, *keepOld, kept(5, 2)},
		"the newest stays":       {byCode, pg.UniqueRepair{Keep: "id desc", Statement: keepOld.Statement}, kept(12_005, 2)},
		"NULLs are alike":        {alike, *keepOld, kept(5, 1)},
		"others get a new value": {byCode, pg.UniqueRepair{Keep: "id", Statement: `update booking b set code = s.code || '/' || s.id from surplus s where b.id = s.id`}, nil},
		"others point to what stays": {byCode, pg.UniqueRepair{Keep: "id", Statement: `
update booking b set code = null, note = (s.kept).note from surplus s where b.id = s.id`}, func(t *testing.T, p *place, _ pg.UniqueResult) {
			if n := p.number(t, `select count(*) from booking where note = '5'`); n != 3 {
				t.Errorf("%d rows point to the one that stays, want 3", n)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := build(t, bookings, rows)
			result, err := p.add(t, c.key, &c.repair, nil)
			must(t, err)
			if got := p.indexes(t); !strings.HasPrefix(got, keyName) || strings.Contains(got, "invalid") {
				t.Errorf("there is %q", got)
			}
			if c.check != nil {
				c.check(t, p, result)
			}
		})
	}
}

func TestAddUnique_RepairThatDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, code string }{
		"changes nothing":       {`delete from booking b using surplus s where b.id = s.id and false`, "unique_repair_leaves"},
		"leaves them alike":     {`update booking b set note = 'x' from surplus s where b.id = s.id`, "unique_repair_leaves"},
		"is refused":            {`update booking b set organisation_id = null from surplus s where b.id = s.id`, "unique_repair_failed"},
		"is no statement":       {`remove them please`, "unique_repair_failed"},
		"is two statements":     {`delete from booking b using surplus s where b.id = s.id; commit`, "unique_repair_failed"},
		"only reads":            {`select * from surplus`, "unique_repair_reads"},
		"reads what it changes": {`, gone as (delete from booking b using surplus s where b.id = s.id returning 1) select 1 from gone`, "unique_repair_reads"},
		"would end the session": {`select pg_terminate_backend(pg_backend_pid())`, "unique_interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A'), (1, 'A')`)
			_, err := p.add(t, byCode, &pg.UniqueRepair{Keep: "id", Statement: c.statement}, nil)
			if !problem.Has(err, c.code) {
				t.Errorf("it ends with %v", err)
			}
			if got := p.indexes(t); got != "" || p.number(t, `select count(*) from booking`) != 2 {
				t.Errorf("it leaves %q", got)
			}
		})
	}
}

// What was repaired before a refusal stays, and is told with it: also where it ends at a row in the middle.
func TestAddUnique_TellsWhatWasRepairedBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statement, code string
		repaired        int64
		groups          int64 // left
	}{
		"ends in a later part": {`update booking b set code = s.code || '/' || s.id || repeat('x', 1 / (2600 - s.id)::int) from surplus s where b.id = s.id`, "unique_repair_failed", 1000, 1},
		"leaves some":          {`update booking b set code = case when s.id <= 3 then 'A' else 'A' || s.id end, note = 'x' from surplus s where b.id = s.id and b.note = ''`, "unique_repair_leaves", 2599, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := build(t, bookings, `insert into booking (organisation_id, code) select 1, 'A' from generate_series(1, 2600) n`)
			result, err := p.add(t, byCode, &pg.UniqueRepair{Keep: "id", Statement: c.statement}, nil)
			refused, ok := problem.Of(err)
			if !ok || refused.Code != c.code || result.Repaired < c.repaired || refused.Facts["repaired"] != result.Repaired || p.indexes(t) != "" {
				t.Errorf("repaired %d, it ends with %v and leaves %q", result.Repaired, err, p.indexes(t))
			}
			if left, err := pg.LookForDuplicates(t.Context(), p.config, byCode); err != nil || left.Duplicates.Groups != c.groups {
				t.Errorf("%+v is left, %v", left.Duplicates, err)
			}
		})
	}
}

// A rule that leaves all rows too many as they are is undone with all else that it did; one that leaves them alike goes over them once.
func TestAddUnique_RepairThatLeavesRowsAlike(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A'), (1, 'A'), (1, 'B'), (1, 'B')`,
		`create table line as select n as booking_id from generate_series(1, 90) n`, `alter table booking add column times int not null default 0`)
	_, err := p.add(t, byCode, &pg.UniqueRepair{Keep: "id", Statement: `delete from line`}, nil)
	if n := p.number(t, `select count(*) from line`); n != 90 || !problem.Has(err, "unique_repair_leaves") {
		t.Errorf("of another table %d rows are left, want 90: %v", n, err)
	}
	result, err := p.add(t, byCode, &pg.UniqueRepair{Keep: "id", Statement: `update booking b set times = b.times + 1 from surplus s where b.id = s.id`}, nil)
	if n := p.number(t, `select sum(times) from booking`); n != 2 || result.Repaired != 2 || !problem.Has(err, "unique_repair_leaves") {
		t.Errorf("%d changes were made, want one of each row too many: %+v, %v", n, result, err)
	}
	_, err = p.add(t, byCode, &pg.UniqueRepair{Keep: "id", Statement: `update booking b set code = 'B', times = 9 from surplus s where b.id = s.id and s.id = 2`}, nil)
	if n := p.number(t, `select count(*) from booking where times = 9`); n != 1 || !problem.Has(err, "unique_repair_leaves") {
		t.Errorf("made like others: %d, %v", n, err)
	}
	// What the statement says of itself is not what it did to the table.
	moved := &pg.UniqueRepair{Keep: "id", Statement: `, gone as (delete from booking b using surplus s where b.id = s.id)
update line l set booking_id = (s.kept).id from surplus s where l.booking_id = s.id and false`}
	if result, err = p.add(t, byCode, moved, nil); err != nil || result.Repaired != 2 || result.Others != 0 {
		t.Errorf("of rows that no line points to: %+v, %v", result, err)
	}
}

// A trial counts what would be alike all the same: what the rule leaves out, and what it makes like others.
func TestTryRepair_CountsWhatWouldBeLeft(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A'), (1, 'A'), (1, 'A'), (1, 'B'), (1, null), (1, null)`)
	alike := byCode
	alike.NullsNotDistinct = true
	for name, c := range map[string]struct {
		key       pg.UniqueKey
		statement string
		left      int64
	}{
		"nothing":            {byCode, keepOld.Statement, 0},
		"one of two":         {byCode, `delete from booking b using surplus s where b.id = s.id and s.id = 2`, 1},
		"in another column":  {byCode, `update booking b set note = 'x' from surplus s where b.id = s.id`, 2},
		"like another group": {byCode, `update booking b set code = 'B' from surplus s where b.id = s.id and s.id = 2`, 2},
		"no value":           {byCode, `update booking b set code = null from surplus s where b.id = s.id`, 0},
		"no value, alike":    {alike, `update booking b set code = null from surplus s where b.id = s.id`, 3},
	} {
		tried, err := pg.TryRepair(t.Context(), p.config, c.key, pg.UniqueRepair{Keep: "id", Statement: c.statement})
		if err != nil || tried.Left != c.left || tried.Untold || p.number(t, `select count(*) from booking where note = '' and code = 'A'`) != 3 {
			t.Errorf("%s: %+v, %v; want %d", name, tried, err, c.left)
		}
	}
}

// Rows are alike as their type compares them, also where no value is one: 1.0 and 1.00 are one number.
func TestAddUnique_RepairsWhatIsWrittenInTwoWays(t *testing.T) {
	t.Parallel()
	p := build(t, `create table booking (id bigint generated always as identity primary key, amount numeric)`,
		`insert into booking (amount) values (1.0), (1.00), (null), (null), (2)`)
	result, err := p.add(t, pg.UniqueKey{Table: "booking", Columns: []string{"amount"}, NullsNotDistinct: true}, keepOld, nil)
	must(t, err)
	if n := p.number(t, `select count(*) from booking`); n != 3 || result.Repaired != 2 {
		t.Errorf("%d rows are left after %+v", n, result)
	}
}

// Whose session is ended from outside learns what to do, and the next attempt goes on.
func TestAddUnique_SessionEndedFromOutside(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	tx, err := p.connect(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `update booking set note = 'x'`)
	must(t, err)
	ended := false
	_, err = p.add(t, byCode, nil, func(step pg.UniqueStep) {
		if step.At == pg.UniqueWaits && !ended {
			ended = true
			p.do(t, `select pg_terminate_backend($1)`, step.PID)
		}
	})
	if !problem.Has(err, "unique_interrupted") {
		t.Errorf("it ends with %v", err)
	}
	looked, err := pg.LookForDuplicates(t.Context(), p.config, byCode)
	if err != nil || looked.Leftover != keyName+"_usher_building" || looked.Resumed {
		t.Errorf("a look says %+v, %v", looked, err)
	}
	must(t, tx.Rollback(t.Context()))
	if result, err := p.add(t, byCode, nil, nil); err != nil || !result.Removed || p.indexes(t) != keyName {
		t.Errorf("the next attempt says %+v, %v, and leaves %q", result, err, p.indexes(t))
	}
}

// A repair that reaches beyond the rows too many is undone, whether it is tried or meant.
func TestAddUnique_RepairThatReachesFurther(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code, note) select 1, 'A', n::text from generate_series(1, 30) n`)
	for name, statement := range map[string]string{
		"every row of a group": `update booking b set code = b.code || b.id from surplus s where b.code = s.code`,
		"the one that stays":   `update booking b set code = b.code || b.id from surplus s where b.id = (s.kept).id`,
		"every row":            `delete from booking`,
		"also on its way":      `, gone as (delete from booking b using surplus s where b.code = s.code) update booking set note = '' where false`,
	} {
		repair := &pg.UniqueRepair{Keep: "id", Statement: statement}
		_, err := p.add(t, byCode, repair, nil)
		if !problem.Has(err, "unique_repair_wide") {
			t.Errorf("%s: it ends with %v", name, err)
		}
		if _, err = pg.TryRepair(t.Context(), p.config, byCode, *repair); !problem.Has(err, "unique_repair_wide") {
			t.Errorf("%s: tried, it ends with %v", name, err)
		}
		if n := p.number(t, `select count(*) from booking where code = 'A'`); n != 30 {
			t.Errorf("%s: %d rows are as they were, want 30", name, n)
		}
	}
	// What points to the rows is in other tables, and may be many times as long.
	p.do(t, `create table line as select b.id as booking_id from booking b, generate_series(1, 3)`)
	moved := pg.UniqueRepair{Keep: "id", Statement: `, gone as (delete from booking b using surplus s where b.id = s.id)
update line l set booking_id = (s.kept).id from surplus s where l.booking_id = s.id`}
	if tried, err := pg.TryRepair(t.Context(), p.config, byCode, moved); err != nil || tried.Repaired != 29 || tried.Others != 87 {
		t.Errorf("with what points to them: %+v, %v", tried, err)
	}
	tried, err := pg.TryRepair(t.Context(), p.config, byCode, *keepOld)
	must(t, err)
	if n := p.number(t, `select count(*) from booking`); n != 30 || tried.Repaired != 29 || tried.Duplicates.Groups != 1 {
		t.Errorf("a trial says %+v and leaves %d rows", tried, n)
	}
}

// One large group is repaired in parts as well, and its first row stays through all of them.
func TestAddUnique_RepairsALargeGroupInParts(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) select 1, 'A' from generate_series(1, 3500) n`,
		`create table part (id bigint generated always as identity, rows bigint)`,
		`create function count_part() returns trigger language plpgsql as $$ begin insert into part (rows) select count(*) from old_rows; return null; end $$`,
		`create trigger counts after delete on booking referencing old table as old_rows for each statement execute function count_part()`)
	result, err := p.add(t, byCode, keepOld, nil)
	must(t, err)
	if n := p.number(t, `select max(rows) from part`); n > 1000 || result.Repaired != 3499 || p.number(t, `select id from booking`) != 1 {
		t.Errorf("a part had %d rows; %+v", n, result)
	}
}

// What has the name under which the index is built, and is not of the table, stays.
func TestAddUnique_NameOfTheBuildingIsSomebodyElses(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `create table other (x bigint)`, `create index `+keyName+`_usher_building on other (x)`)
	_, err := p.add(t, byCode, nil, nil)
	refused, ok := problem.Of(err)
	if !ok || refused.Code != "unique_name_taken" || refused.Facts["name"] != keyName+"_usher_building" {
		t.Errorf("it ends with %v", err)
	}
	// Also where it comes when nobody looks any more.
	p.do(t, `drop index `+keyName+`_usher_building`)
	_, err = p.add(t, byCode, nil, func(step pg.UniqueStep) {
		if step.At == pg.UniqueBuilds {
			p.do(t, `create index `+keyName+`_usher_building on other (x)`)
		}
	})
	if !problem.Has(err, "unique_name_taken") {
		t.Errorf("where it comes meanwhile it ends with %v", err)
	}
	if n := p.number(t, `select count(*) from pg_index where indrelid = 'other'::regclass`); n != 1 {
		t.Errorf("%d indexes of the other table are left, want 1", n)
	}
}

// A row that somebody takes away at the same time is not the one that was to stay: a group never loses its last row.
func TestAddUnique_RepairKeepsOneOfEachGroup(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A'), (1, 'A')`)
	other := p.connect(t)
	tx, err := other.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `delete from booking where id = 1`)
	must(t, err)
	evaded := false
	_, err = pg.AddUnique(t.Context(), p.config, byCode, keepOld, pg.UniqueLimits{Lock: time.Minute, Tries: 3, Pause: time.Millisecond, Patience: time.Minute}, func(step pg.UniqueStep) {
		if step.At == pg.UniqueRepairs && !evaded {
			evaded = true
			go func() {
				for { // until the repair waits for the row
					var waits bool
					if err := p.conn.QueryRow(context.Background(), `select exists (select from pg_stat_activity where wait_event_type = 'Lock' and $1 = any(pg_blocking_pids(pid)))`,
						int32(other.PgConn().PID())).Scan(&waits); err != nil || waits {
						break
					}
				}
				if err := tx.Commit(context.Background()); err != nil {
					t.Error(err)
				}
			}()
		}
	})
	must(t, err)
	if n := p.number(t, `select count(*) from booking`); n != 1 || !evaded {
		t.Errorf("%d rows are left, want the one that nobody took away", n)
	}
}

// A duplicate that comes when nobody looks any more ends the build in words, and nothing is left that looks like a key.
func TestAddUnique_DuplicateDuringTheBuild(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	tx, err := p.connect(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `insert into booking (organisation_id, code) values (1, 'A')`)
	must(t, err)
	var invalid string
	waited := false
	_, err = p.add(t, byCode, nil, func(step pg.UniqueStep) {
		if step.At == pg.UniqueWaits && !waited {
			waited = true
			invalid = p.indexes(t)
			must(t, tx.Commit(t.Context()))
		}
	})
	refused, ok := problem.Of(err)
	if !ok || refused.Code != "unique_duplicate_arrived" || refused.Facts["largest"] != "1, A (2)" {
		t.Errorf("it ends with %v", err)
	}
	// The control of the test: while it was built there was such an index.
	if invalid != "booking_organisation_id_code_key_usher_building (invalid) (index)" {
		t.Errorf("while it was built there was %q", invalid)
	}
	if got := p.indexes(t); got != "" {
		t.Errorf("it leaves %q", got)
	}
	p.do(t, `delete from booking where id = 2`)
	if _, err := p.add(t, byCode, nil, nil); err != nil || p.indexes(t) != keyName {
		t.Errorf("once it is gone: %q, %v", p.indexes(t), err)
	}
}

// Killed at any point, it is begun again and comes to the same end.
func TestAddUnique_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	rows := `insert into booking (organisation_id, code) select 1, (n % 900)::text from generate_series(1, 1000) n`
	for _, at := range []pg.UniqueAt{pg.UniqueLooks, pg.UniqueRepairs, pg.UniqueRemoves, pg.UniqueBuilds, pg.UniqueWaits, pg.UniqueBuilt, pg.UniqueAttaches, pg.UniqueEvaded} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			p := build(t, bookings, rows)
			if at == pg.UniqueRemoves {
				leaveInvalid(t, p, keyName+"_usher_building")
			}
			// Somebody reads, so that there is something to wait for and to evade.
			var tx pgx.Tx
			hold := func() {
				var err error
				tx, err = p.connect(t).Begin(t.Context())
				must(t, err)
				_, err = tx.Exec(t.Context(), `lock table booking in row exclusive mode`)
				must(t, err)
			}
			if at == pg.UniqueWaits {
				hold()
			}
			killed := false
			_, err := p.add(t, byCode, keepOld, func(step pg.UniqueStep) {
				if step.At == pg.UniqueAttaches && at == pg.UniqueEvaded && tx == nil {
					hold()
				}
				if step.At == at && !killed {
					killed = true
					p.do(t, `select pg_terminate_backend($1, 60000)`, int32(step.PID))
				}
			})
			if err == nil || !killed {
				t.Fatalf("killed: %v, and it ended with %v", killed, err)
			}
			before := p.indexes(t)
			if strings.Contains(before, keyName+" ") || before == keyName {
				t.Errorf("it is there under its name: %q", before)
			}
			if tx != nil {
				must(t, tx.Rollback(t.Context()))
			}
			result, err := p.add(t, byCode, keepOld, nil)
			must(t, err)
			if got := p.indexes(t); got != keyName {
				t.Errorf("the second time there is %q after %q", got, before)
			}
			wantRemoved := at == pg.UniqueRemoves || at == pg.UniqueWaits
			wantResumed := at == pg.UniqueBuilt || at == pg.UniqueAttaches || at == pg.UniqueEvaded
			if result.Removed != wantRemoved || result.Resumed != wantResumed {
				t.Errorf("the second time it says %+v after %q", result, before)
			}
			if n := p.number(t, `select count(*) from booking`); n != 900 {
				t.Errorf("%d rows are left, want 900", n)
			}
		})
	}
}

// leaveInvalid leaves an invalid unique index on the table, as an attempt does that met a duplicate.
func leaveInvalid(t *testing.T, p *place, name string) {
	t.Helper()
	_, err := p.conn.Exec(t.Context(), `create unique index concurrently `+name+` on booking (organisation_id)`)
	if !pg.Duplicates(err) {
		t.Fatalf("an index over duplicates ends with %v", err)
	}
}

func TestAddUnique_WhatOthersLeft(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) select 1, n::text from generate_series(1, 100) n`)
	leaveInvalid(t, p, "somebody_elses")
	// A valid one of ours, of another definition: it is not attached under a name that promises something else.
	p.do(t, `create unique index `+keyName+`_usher_building on booking (id)`)
	result, err := p.add(t, byCode, nil, nil)
	must(t, err)
	if !result.Removed || result.Resumed || len(result.Strangers) != 1 || result.Strangers[0] != "somebody_elses" {
		t.Errorf("it says %+v", result)
	}
	if got := p.indexes(t); got != keyName+", somebody_elses (invalid) (index)" {
		t.Errorf("there are %q", got)
	}
}

func TestAddUnique_PartsOfTheTableAndExpressions(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code, note) values (1, 'a', 'old'), (1, 'A', ''), (1, 'b', ''), (1, 'B', 'old'), (1, 'c', ''), (1, 'C', '')`)
	key := pg.UniqueKey{Table: "booking", Columns: []string{"organisation_id"}, Expressions: []string{"lower(code)"}, Where: "note = ''", Name: "booking_code_live"}
	_, err := p.add(t, key, nil, nil)
	refused, ok := problem.Of(err)
	if !ok || refused.Code != "unique_duplicates" || refused.Facts["largest"] != "1, c (2)" {
		t.Fatalf("it ends with %v", err)
	}
	result, err := p.add(t, key, keepOld, nil)
	must(t, err)
	if got := p.indexes(t); got != "booking_code_live (index)" || result.Repaired != 1 || p.number(t, `select count(*) from booking`) != 5 {
		t.Errorf("there is %q after %+v", got, result)
	}
	if again, err := p.add(t, key, nil, nil); err != nil || !again.Already {
		t.Errorf("the repeat says %+v, %v", again, err)
	}
	other := key
	other.Where = "note = 'old'"
	if _, err := p.add(t, other, nil, nil); !problem.Has(err, "unique_name_taken") {
		t.Errorf("another key of that name ends with %v", err)
	}
}

func TestAddUnique_Refusals(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`,
		`create table parted (id bigint) partition by range (id)`, `create view seen as select * from booking`,
		`create table odd (body json, long text)`, `insert into odd values ('{}', (select string_agg(sha512(n::text::bytea)::text, '') from generate_series(1, 400) n))`,
		`create role stranger login`, `grant all on schema public to stranger`, `grant all on booking to stranger`, `create table taken (id bigint)`)
	stranger := p.config.Copy()
	stranger.User = "stranger"
	for name, c := range map[string]struct {
		config *pgx.ConnConfig
		key    pg.UniqueKey
		code   string
	}{
		"no table":          {p.config, pg.UniqueKey{Table: "nothing", Columns: []string{"id"}}, "unique_table_unknown"},
		"strange table":     {p.config, pg.UniqueKey{Table: `x"; drop table booking; --`, Columns: []string{"id"}}, "unique_table_unknown"},
		"partitioned":       {p.config, pg.UniqueKey{Table: "parted", Columns: []string{"id"}}, "unique_table_partitioned"},
		"a view":            {p.config, pg.UniqueKey{Table: "seen", Columns: []string{"id"}}, "unique_no_table"},
		"no column":         {p.config, pg.UniqueKey{Table: "booking"}, "unique_columns_many"},
		"an unknown column": {p.config, pg.UniqueKey{Table: "booking", Columns: []string{"id", "ctid"}}, "unique_column_unknown"},
		"a column twice":    {p.config, pg.UniqueKey{Table: "booking", Columns: []string{"id", "id"}}, "unique_column_twice"},
		"a name too long":   {p.config, pg.UniqueKey{Table: "booking", Columns: []string{"id"}, Name: strings.Repeat("n", 64)}, "unique_name_long"},
		"a name in use":     {p.config, pg.UniqueKey{Table: "booking", Columns: []string{"code"}, Name: "taken"}, "unique_name_taken"},
		"no order":          {p.config, pg.UniqueKey{Table: "odd", Columns: []string{"body"}}, "unique_type"},
		"too long":          {p.config, pg.UniqueKey{Table: "odd", Columns: []string{"long"}}, "unique_value_long"},
		"not the owner":     {stranger, byCode, "unique_not_owner"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pg.AddUnique(t.Context(), c.config, c.key, nil, hasty, nil)
			if !problem.Has(err, c.code) {
				t.Errorf("it ends with %v", err)
			}
			if _, isProblem := problem.Of(err); !isProblem || p.indexes(t) != "" {
				t.Errorf("it leaves %q", p.indexes(t))
			}
		})
	}
	if n := p.number(t, `select count(*) from pg_index x join pg_class i on i.oid = x.indexrelid where not x.indisvalid`); n > 0 {
		t.Errorf("%d invalid indexes are left", n)
	}
}

func TestAddUnique_TwoAtOnce(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	var second error
	_, err := p.add(t, byCode, nil, func(step pg.UniqueStep) {
		if step.At == pg.UniqueBuilds {
			_, second = pg.AddUnique(t.Context(), p.config, byCode, nil, hasty, nil)
		}
	})
	must(t, err)
	refused, ok := problem.Of(second)
	if !ok || refused.Code != "unique_busy" || len(refused.Facts["who"].([]string)) != 1 {
		t.Errorf("the second ends with %v", second)
	}
	if got := p.indexes(t); got != keyName {
		t.Errorf("there is %q", got)
	}
}

// Whoever keeps the build waiting is named while it waits, and when it gives up.
func TestAddUnique_NamesWhomItWaitsFor(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	p.config.RuntimeParams["application_name"] = "a forgotten terminal"
	old := p.connect(t)
	tx, err := old.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `update booking set note = 'x'`)
	must(t, err)
	var named []pg.Blocker
	limits := hasty
	limits.Patience = 2 * time.Second
	_, err = pg.AddUnique(t.Context(), p.config, byCode, nil, limits, func(step pg.UniqueStep) {
		if step.At == pg.UniqueWaits {
			named = step.Waits
		}
	})
	refused, ok := problem.Of(err)
	if !ok || refused.Code != "unique_waited" || !strings.Contains(fmt.Sprint(refused.Facts["who"]), "a forgotten terminal") {
		t.Errorf("it ends with %v", err)
	}
	if len(named) != 1 || named[0].PID != int32(old.PgConn().PID()) || named[0].State != "idle in transaction" || time.Since(named[0].Since) > time.Hour {
		t.Errorf("it waits for %+v", named)
	}
	// What is left cannot be removed before the same transaction has ended: it is named, and the next attempt removes it.
	if got := p.indexes(t); ok && got != keyName+"_usher_building (invalid) (index)" || refused.Facts["left"] != keyName+"_usher_building" {
		t.Errorf("it leaves %q, and says %v", got, refused)
	}
	must(t, tx.Rollback(t.Context()))
	if result, err := p.add(t, byCode, nil, nil); err != nil || !result.Removed || p.indexes(t) != keyName {
		t.Errorf("once it has ended: %+v, %v", result, err)
	}
}

// Who gives up in the middle of the build leaves nothing behind.
func TestAddUnique_GivenUp(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	tx, err := p.connect(t).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `update booking set note = 'x'`)
	must(t, err)
	ctx, giveUp := context.WithCancel(t.Context())
	_, err = pg.AddUnique(ctx, p.config, byCode, nil, hasty, func(step pg.UniqueStep) {
		if step.At == pg.UniqueWaits {
			giveUp()
			_ = tx.Rollback(context.Background()) // removing the index has to wait for the same
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if got := p.indexes(t); got != "" {
		t.Errorf("it leaves %q", got)
	}
}

func TestAddUnique_NotAttachedWhileSomebodyHasTheTable(t *testing.T) {
	t.Parallel()
	p := build(t, bookings, `insert into booking (organisation_id, code) values (1, 'A')`)
	var tx pgx.Tx
	evaded := 0
	_, err := p.add(t, byCode, nil, func(step pg.UniqueStep) {
		if step.At == pg.UniqueAttaches && tx == nil {
			var err error
			tx, err = p.connect(t).Begin(t.Context())
			must(t, err)
			_, err = tx.Exec(t.Context(), `select count(*) from booking`)
			must(t, err)
		}
		if step.At == pg.UniqueEvaded {
			evaded++
			if len(step.Waits) != 1 {
				t.Errorf("it evades %+v", step.Waits)
			}
		}
	})
	if !problem.Has(err, "unique_not_attached") || evaded != hasty.Tries {
		t.Errorf("after evading %d times it ends with %v", evaded, err)
	}
	must(t, tx.Rollback(t.Context()))
	result, err := p.add(t, byCode, nil, nil)
	if err != nil || !result.Resumed || p.indexes(t) != keyName {
		t.Errorf("the second time it says %+v, %v", result, err)
	}
}

// A migration adds a key to a table of an earlier one by a step; that is repeated when it was ended in its middle.
func TestUniqueMigration(t *testing.T) {
	t.Parallel()
	p := build(t)
	migrations := pg.Migrations{Files: schema.Files}
	db, err := pg.Open(t.Context(), p.config.ConnString(), migrations)
	must(t, err)
	db.Close()
	p.do(t, `insert into claim (organisation_id, id, note) values (1, 1, 'x'), (1, 2, 'x')`)
	migrations.Unique = map[int64]pg.UniqueMigration{2: {Key: pg.UniqueKey{Table: "claim", Columns: []string{"organisation_id", "note"}}}}
	migrations.Files = fstest.MapFS{
		"00001_fence.sql": schema.Files.(fstest.MapFS)["00001_fence.sql"],
		"00003_later.sql": {Data: []byte("-- +goose Up\ncreate table later (id bigint);\n")},
	}
	if _, err = pg.Open(t.Context(), p.config.ConnString(), migrations); !problem.Has(err, "unique_duplicates") {
		t.Fatalf("over duplicates the migration ends with %v", err)
	}
	if n := p.number(t, `select count(*) from pg_class where relname = 'later'`); n != 0 {
		t.Error("a later migration was applied")
	}
	p.do(t, `update claim set note = id::text`)
	for range 2 {
		db, err = pg.Open(t.Context(), p.config.ConnString(), migrations)
		must(t, err)
		db.Close()
	}
	if n := p.number(t, `select count(*) from pg_constraint where conname = 'claim_organisation_id_note_key' and contype = 'u'`); n != 1 {
		t.Errorf("%d such constraints are there, want 1", n)
	}
}

const (
	manyRows  = 2_000_000
	lockLimit = time.Second
	// waitsAtMost is what the server lets a write wait for a lock. Who waits behind the attaching waits a moment less than the attaching
	// itself, so that the margin is only what a busy machine needs to notice that a timeout is over.
	waitsAtMost = lockLimit + lockLimit/4
	writesEvery = 5 * time.Millisecond // each of the writers: people, and not a measure of how fast the disk is
)

// TestAddUnique_OnATableInUse has writers on two million rows, and somebody who reads for long just when the index is to be attached: no
// write waits longer than the lock timeout, which the server itself judges. The control adds the same constraint the plain way.
func TestAddUnique_OnATableInUse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fills a table with two million rows")
	}
	p := build(t, bookings, fmt.Sprintf(`insert into booking (organisation_id, code) select n %% 50, 'R' || n from generate_series(1, %d) n`, manyRows))
	// A duplicate that comes when the rows were looked through and the index is not there yet.
	var arrived error
	refused, written, slowest := p.whileWriting(t, func(ctx context.Context, _ meanwhile) error {
		_, arrived = pg.AddUnique(ctx, p.config, byCode, nil, pg.UniqueLimits{Lock: lockLimit, Patience: time.Minute}, func(step pg.UniqueStep) {
			if step.At == pg.UniqueBuilds {
				p.do(t, `insert into booking (organisation_id, code, note) values (1, 'R1', 'again')`)
			}
		})
		return nil
	})
	told, ok := problem.Of(arrived)
	if !ok || told.Code != "unique_duplicate_arrived" || told.Facts["largest"] != "1, R1 (2)" || p.indexes(t) != "" || refused > 0 {
		t.Errorf("over a duplicate that arrives it ends with %v and leaves %q; %d of %d writes waited too long, the slowest took %v", arrived, p.indexes(t), refused, written, slowest)
	}
	p.do(t, `delete from booking where note = 'again'`)

	refused, written, slowest = p.whileWriting(t, func(ctx context.Context, m meanwhile) error {
		var end func()
		result, err := pg.AddUnique(ctx, p.config, byCode, nil, pg.UniqueLimits{Lock: lockLimit, Tries: 50, Pause: 20 * time.Millisecond, Patience: time.Minute},
			func(step pg.UniqueStep) {
				switch {
				case step.At == pg.UniqueAttaches && step.Try == 1:
					end = m.read()
				case step.At == pg.UniqueEvaded && step.Try == 2:
					end()
				}
			})
		if err == nil && result.Tries < 3 {
			t.Errorf("it was attached at try %d: the reader was in nobody's way, and the test shows nothing of the lock timeout", result.Tries)
		}
		return err
	})
	t.Logf("%d writes, the slowest took %v", written, slowest)
	if refused > 0 {
		t.Errorf("%d of %d writes waited longer than %v for a lock", refused, written, waitsAtMost)
	}
	if got := p.indexes(t); got != keyName {
		t.Errorf("there is %q", got)
	}

	p.do(t, `alter table booking drop constraint `+keyName)
	refused, written, slowest = p.whileWriting(t, func(ctx context.Context, m meanwhile) error {
		defer m.read()()
		plain := p.connect(t)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			_, err := plain.Exec(ctx, `set statement_timeout = '60s'; alter table booking add constraint `+keyName+` unique (organisation_id, code)`)
			return err
		})
		err := until(func() bool { return m.refused() > 0 })
		return errors.Join(err, pgconnCancel(ctx, plain), ignore(group.Wait()))
	})
	t.Logf("the plain way: %d writes, the slowest took %v", written, slowest)
	if refused == 0 {
		t.Errorf("none of %d writes waited longer than %v: the test shows nothing", written, waitsAtMost)
	}
}

// ignore drops the error of a statement that the test itself ended.
func ignore(error) error { return nil }

func pgconnCancel(ctx context.Context, conn *pgx.Conn) error {
	return conn.PgConn().CancelRequest(ctx)
}

// until looks again and again until something stands; not for ever.
func until(stands func() bool) error {
	ticks, late := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer ticks.Stop()
	for !stands() {
		select {
		case <-ticks.C:
		case <-late:
			return errors.New("not within a minute")
		}
	}
	return nil
}

// meanwhile is what can be done and seen beside the writers.
type meanwhile struct {
	read    func() (end func()) // begins a transaction that reads the table until it is ended
	refused func() int64        // writes that the server refused because they had waited too long for a lock
}

// whileWriting has four sessions insert and change rows for as long as add works.
func (p *place) whileWriting(t *testing.T, add func(context.Context, meanwhile) error) (refused, written int64, slowest time.Duration) {
	t.Helper()
	var locked, done, longest, round atomic.Int64
	round.Store(time.Now().UnixNano())
	writing, stop := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(writing)
	for w := range 4 {
		conn := p.connect(t)
		_, err := conn.Exec(t.Context(), fmt.Sprintf("set lock_timeout = %d", waitsAtMost.Milliseconds()))
		must(t, err)
		group.Go(func() error {
			beats := time.NewTicker(writesEvery)
			defer beats.Stop()
			for n := 0; writing.Err() == nil; n++ {
				<-beats.C
				began := time.Now()
				_, err := conn.Exec(context.Background(), `insert into booking (organisation_id, code) values ($1, $2)`, w, fmt.Sprintf("W%d-%d-%d", round.Load(), w, n))
				if err == nil {
					_, err = conn.Exec(context.Background(), `update booking set note = 'seen' where id = $1`, 1+(n*7919+w)%manyRows)
				}
				if took := int64(time.Since(began)); took > longest.Load() {
					longest.Store(took)
				}
				var pgErr *pgconn.PgError
				switch {
				case errors.As(err, &pgErr) && pgErr.Code == "55P03":
					locked.Add(1)
				case err != nil:
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	reader := p.connect(t)
	err := add(ctx, meanwhile{refused: locked.Load, read: func() func() {
		tx, err := reader.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), `select from booking limit 1`)
		must(t, err)
		return func() { must(t, tx.Rollback(t.Context())) }
	}})
	stop()
	must(t, errors.Join(group.Wait(), err))
	if done.Load() < 100 && locked.Load() == 0 {
		t.Fatalf("only %d writes were made: nothing was in use", done.Load())
	}
	return locked.Load(), done.Load(), time.Duration(longest.Load())
}
