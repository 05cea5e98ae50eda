package pg_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/pg/cluster"
)

// schema is the least that pg opens: a table that is fenced.
var schema = pg.Migrations{Files: fstest.MapFS{"00001_fence.sql": {Data: []byte(`-- +goose Up
create table claim (organisation_id bigint not null, id bigint primary key, note text not null default '');
alter table claim enable row level security;
create policy tenant on claim using (organisation_id + 0 = any((select string_to_array(current_setting('app.organisations', true), ',')::bigint[])::bigint[]));
grant select, insert, update on claim to usher_app;
`)}}}

var shared struct {
	server *cluster.Server
	count  atomic.Int64
	making sync.Mutex // a template may be copied by one at a time
}

func TestMain(m *testing.M) {
	cluster.RunKeeperIfAsked()
	dir, err := os.MkdirTemp("", "usher-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the server may run as another user
	}
	if err == nil {
		shared.server, err = cluster.Start(context.Background(), filepath.Join(dir, "pg"), "fsync=off")
	}
	code := 1
	if err == nil {
		code = m.Run()
		err = shared.server.Stop()
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// open opens a database of the test's own, with so many claims of organisation 1 and one of 2.
func open(t *testing.T, claims int) *pg.DB {
	t.Helper()
	name := fmt.Sprintf("test_%d", shared.count.Add(1))
	owner, err := pgx.Connect(t.Context(), shared.server.URL("postgres"))
	must(t, err)
	shared.making.Lock()
	_, err = owner.Exec(t.Context(), "create database "+name)
	shared.making.Unlock()
	must(t, errors.Join(err, owner.Close(t.Context())))
	db, err := pg.Open(t.Context(), shared.server.URL(name), schema)
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Tx(t.Context(), []int64{1, 2}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into claim (organisation_id, id) select 1, n from generate_series(1, $1) n union all select 2, 0`, claims)
		return err
	}))
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, tx pgx.Tx) (n int) {
	t.Helper()
	must(t, tx.QueryRow(t.Context(), `select count(*) from claim`).Scan(&n))
	return n
}

type begin func(context.Context, []int64, func(pgx.Tx) error) error

func kinds(db *pg.DB) map[string]begin {
	return map[string]begin{"Tx": db.Tx, "Read": db.Read, "Moment": db.Moment}
}

func TestTransactions_SeeTheOrganisationsThatTheyName(t *testing.T) {
	t.Parallel()
	db := open(t, 3)
	for name, begin := range kinds(db) {
		for _, c := range []struct {
			organisations []int64
			want          int
		}{{nil, 0}, {[]int64{1}, 3}, {[]int64{2}, 1}, {[]int64{1, 2}, 4}, {[]int64{3}, 0}} {
			must(t, begin(t.Context(), c.organisations, func(tx pgx.Tx) error {
				if n := count(t, tx); n != c.want {
					t.Errorf("%s of %v sees %d claims, want %d", name, c.organisations, n, c.want)
				}
				return nil
			}))
		}
	}
}

func TestTransactions_ByKind(t *testing.T) {
	t.Parallel()
	add := func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into claim (organisation_id, id) values (1, 100 + (select count(*) from claim))`)
		return err
	}
	for name, want := range map[string]struct{ meanwhile, written int }{
		"Tx":     {meanwhile: 1, written: 1}, // what others commit meanwhile is seen
		"Read":   {meanwhile: 0, written: 0},
		"Moment": {meanwhile: 0, written: 1},
	} {
		db := open(t, 3)
		must(t, kinds(db)[name](t.Context(), []int64{1}, func(tx pgx.Tx) error {
			before := count(t, tx)
			must(t, db.Tx(t.Context(), []int64{1}, func(other pgx.Tx) error { return add(t.Context(), other) }))
			if n := count(t, tx) - before; n != want.meanwhile {
				t.Errorf("%s sees %d rows that came meanwhile, want %d", name, n, want.meanwhile)
			}
			err := pg.Within(t.Context(), tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), `insert into claim (organisation_id, id) values (1, 99)`)
				return err
			})
			if (err == nil) != (want.written == 1) {
				t.Errorf("%s wrote: %v", name, err)
			}
			return nil
		}))
		must(t, db.Read(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			if n := count(t, tx); n != 4+want.written {
				t.Errorf("after %s there are %d claims, want %d", name, n, 4+want.written)
			}
			return nil
		}))
	}
}

// A moment does not write over what somebody changed since; that may be repeated.
func TestMoment_MayBeRepeatedAfterACollision(t *testing.T) {
	t.Parallel()
	db := open(t, 1)
	note := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update claim set note = note || 'x' where id = 1`)
		return err
	}
	tries := 0
	collide := func(tx pgx.Tx) error {
		tries++
		count(t, tx)
		if tries == 1 {
			must(t, db.Tx(t.Context(), []int64{1}, note))
		}
		return note(tx)
	}
	if err := db.Moment(t.Context(), []int64{1}, collide); !pg.MayRepeat(err) {
		t.Fatalf("the collision ends with %v", err)
	}
	must(t, db.Moment(t.Context(), []int64{1}, collide))
}

func TestParts_GoThroughEveryRowOnce(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{0, 1, 2, 3, 4, 6, 7} {
		db := open(t, rows)
		var met, sizes []int
		must(t, db.Moment(t.Context(), []int64{1}, func(tx pgx.Tx) error {
			part, id := 0, 0
			err := pg.Parts(t.Context(), tx, 3, `select id from claim where organisation_id = $1 and id > $2 order by id`, []any{1, 0}, []any{&id},
				func() { met = append(met, id); part++ },
				func() error {
					sizes, part = append(sizes, part), 0
					// The connection is free, and what is written now is not met.
					_, err := tx.Exec(t.Context(), `insert into claim (organisation_id, id) values (1, $1)`, 1_000+len(sizes))
					return err
				})
			must(t, err)
			var note string // another cursor, with other columns
			notes := 0
			must(t, pg.Parts(t.Context(), tx, 2, `select note from claim where id < 1000`, nil, []any{&note},
				func() { notes++ }, func() error { return nil }))
			if notes != rows {
				t.Errorf("of %d rows the second time %d were met", rows, notes)
			}
			return nil
		}))
		want := []int{}
		for id := 1; id <= rows; id++ {
			want = append(want, id)
		}
		if !slices.Equal(met, want) || len(sizes) != (rows+2)/3 || len(sizes) > 0 && slices.Max(sizes) > 3 {
			t.Errorf("of %d rows %v were met, in parts of %v", rows, met, sizes)
		}
	}
}

func TestParts_EndWithWhatStoppedThem(t *testing.T) {
	t.Parallel()
	db := open(t, 9)
	stopped := errors.New("enough")
	parts := 0
	err := db.Moment(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		var id int
		return pg.Parts(t.Context(), tx, 2, `select id from claim`, nil, []any{&id}, func() {}, func() error { parts++; return stopped })
	})
	if !errors.Is(err, stopped) || parts != 1 {
		t.Errorf("after %d parts it ended with %v", parts, err)
	}
	err = db.Moment(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		return pg.Parts(t.Context(), tx, 2, `select nothing from claim`, nil, nil, func() {}, func() error { return nil })
	})
	if err == nil {
		t.Error("a statement that is none was read")
	}
}

func TestWithin_UndoesWhatFailedAndGoesOn(t *testing.T) {
	t.Parallel()
	db := open(t, 1)
	must(t, db.Tx(t.Context(), []int64{1}, func(tx pgx.Tx) error {
		err := pg.Within(t.Context(), tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into claim (organisation_id, id) values (1, 2), (1, 1)`)
			return err
		})
		if !pg.Duplicates(err) || !pg.Violates(err, "claim_pkey") {
			t.Errorf("the second of its kind ends with %v", err)
		}
		if n := count(t, tx); n != 1 {
			t.Errorf("%d claims stand, want 1", n)
		}
		return nil
	}))
}
