package schema_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"usher/internal/base/pg"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
)

// internal/check reads what migrations say; here it is looked at what they do, in whatever form they say it, also by steps in Go.
func TestMigrations_AddUniquenessBesideTheWriters(t *testing.T) {
	t.Parallel()
	all := schema.Migrations()
	for version, tables := range otherwise(all, uniquenessAdded(t, all, schema.BuiltBeside)) {
		t.Errorf("migration %d adds uniqueness to %q, which are there before it: make it one of schema.Migrations' Unique", version, tables)
	}
}

// otherwise leaves out what was added in the one way.
func otherwise(all pg.Migrations, added map[int64][]string) map[int64][]string {
	maps.DeleteFunc(added, func(version int64, tables []string) bool {
		key, is := all.Unique[version]
		return is && slices.Equal(tables, []string{key.Key.Table})
	})
	return added
}

// Control: whatever way a statement is written in, what it does is seen; and what is new is left alone.
func TestMigrations_AddUniquenessBesideTheWriters_Control(t *testing.T) {
	t.Parallel()
	forms := []struct {
		statements string
		want       string // table that is named
	}{
		{`create unique index on plain (a)`, "plain"},
		{`create index on plain (a); create table fresh (a int primary key, b int unique); create unique index on fresh (a, b)`, ""},
		{`do $$ begin execute format('alter table %I add %s (a)', 'built', 'unique'); end $$`, "built"},
		{`create function add_it() returns void language sql as 'create unique index on called (a)'; select add_it()`, "called"},
		{`alter table columns add column price numeric(10,2) default 1 check (price <> 2), add column other int unique`, "columns"},
		{`alter table renamed rename to named_anew; create unique index on named_anew (a)`, "named_anew"},
		{`create table swap (a int unique); drop table swapped; alter table swap rename to swapped`, "swapped"},
		{`create table swap (a int); drop table copied; alter table swap rename to copied`, ""},
		{`alter table known alter column a type bigint`, ""}, // makes its indexes anew, and nothing unique that was not
		{`drop index known_a; create unique index known_b on known (b)`, "known"},
		{`create table child () inherits (plain); create unique index on child (a)`, ""},
		{`create temp table later (a int unique)`, ""},
	}
	files := fstest.MapFS{"00001_before.sql": {Data: []byte("-- +goose Up\n" + `create table plain (a int); create table built (a int); create table called (a int); create table columns (a int);
create table renamed (a int); create table swapped (a int); create table copied (a int); create table known (a int, b int); create unique index known_a on known (a);`)}}
	want := map[int64][]string{}
	for i, form := range forms {
		version := int64(10 + i)
		files[fmt.Sprintf("%05d_form.sql", version)] = &fstest.MapFile{
			Data: []byte("-- +goose Up\n-- +goose StatementBegin\n" + form.statements + ";\n-- +goose StatementEnd\n"),
		}
		if form.want != "" {
			want[version] = []string{form.want}
		}
	}
	// A step is looked at as well, and only the one way is left alone.
	all := pg.Migrations{
		Files: files,
		Steps: map[int64]pg.Step{50: func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, fmt.Sprintf("create %s index on plain (a, a)", "unique"))
			return err
		}},
		Unique: map[int64]pg.UniqueMigration{51: {Key: pg.UniqueKey{Table: "known", Columns: []string{"a", "b"}}}},
	}
	want[50] = []string{"plain"}
	got := otherwise(all, uniquenessAdded(t, all, 10))
	if !slices.Equal(got[50], want[50]) || got[51] != nil {
		t.Errorf("of a step it names %q, of the one way %q", got[50], got[51])
	}
	for i, form := range forms {
		if version := int64(10 + i); !slices.Equal(got[version], want[version]) {
			t.Errorf("of %q it names %q, want %q", form.statements, got[version], want[version])
		}
	}
}

// uniquenessAdded applies migrations to a database of their own, those from a version on one by one, and lists by their versions the
// tables that were there before and have a unique index afterwards that was not.
func uniquenessAdded(t *testing.T, all pg.Migrations, from int64) map[int64][]string {
	t.Helper()
	url, err := testdb.Create(t.Context(), "template template0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	owner := testdb.Owner(t, url)
	versions := versionsOf(t, all)
	if len(versions) == 0 || versions[len(versions)-1] < from {
		t.Fatalf("no migration from %d on: %v", from, versions)
	}
	added := map[int64][]string{}
	before := catalogue{}
	for i, version := range versions {
		if version < from && i+1 < len(versions) && versions[i+1] < from {
			continue // together with the last of those that are as they are
		}
		if err := pg.Migrate(t.Context(), config, upTo(t, all, version)); err != nil {
			t.Fatalf("migration %d: %v", version, err)
		}
		after := readCatalogue(t, owner)
		if version >= from {
			if tables := after.addedSince(before); len(tables) > 0 {
				added[version] = tables
			}
		}
		before = after
	}
	return added
}

func versionsOf(t *testing.T, all pg.Migrations) []int64 {
	t.Helper()
	names, err := fs.Glob(all.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	versions := slices.AppendSeq(slices.Collect(maps.Keys(all.Steps)), maps.Keys(all.Unique))
	for _, name := range names {
		versions = append(versions, versionOf(t, name))
	}
	slices.Sort(versions)
	return versions
}

func versionOf(t *testing.T, name string) int64 {
	t.Helper()
	version, err := goose.NumericComponent(name)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// upTo are the migrations up to a version.
func upTo(t *testing.T, all pg.Migrations, last int64) pg.Migrations {
	t.Helper()
	files, steps, unique := fstest.MapFS{}, map[int64]pg.Step{}, map[int64]pg.UniqueMigration{}
	names, err := fs.Glob(all.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if versionOf(t, name) > last {
			continue
		}
		text, err := fs.ReadFile(all.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for version, step := range all.Steps {
		if version <= last {
			steps[version] = step
		}
	}
	for version, key := range all.Unique {
		if version <= last {
			unique[version] = key
		}
	}
	return pg.Migrations{Files: files, Steps: steps, Unique: unique}
}

// catalogue is what of tables is unique at a moment.
type catalogue struct {
	tables  map[string]uint32 // by their names
	indexes []uniqueIndex
}

type uniqueIndex struct {
	Table string
	OID   uint32 // of the table
	Index uint32
	Over  string // what it covers, without the names of index and table
}

func readCatalogue(t *testing.T, owner *pgx.Conn) catalogue {
	t.Helper()
	c := catalogue{tables: map[string]uint32{}}
	rows, err := owner.Query(t.Context(), `select relname::text, oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var oid uint32
	if _, err = pgx.ForEachRow(rows, []any{&name, &oid}, func() error { c.tables[name] = oid; return nil }); err != nil {
		t.Fatal(err)
	}
	rows, err = owner.Query(t.Context(), `
select t.relname::text, t.oid, x.indexrelid, regexp_replace(pg_get_indexdef(x.indexrelid), '^.* ON \S+ ', '')
  from pg_index x join pg_class t on t.oid = x.indrelid where t.relnamespace = 'public'::regnamespace and x.indisunique order by t.relname, x.indexrelid`)
	if err != nil {
		t.Fatal(err)
	}
	if c.indexes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[uniqueIndex]); err != nil {
		t.Fatal(err)
	}
	return c
}

// addedSince lists the tables that were there before, under this name or another, and are unique in something since.
func (c catalogue) addedSince(before catalogue) (tables []string) {
	known := slices.Collect(maps.Values(before.tables))
	for _, index := range c.indexes {
		was, named := before.tables[index.Table]
		there := slices.Contains(known, index.OID)
		switch {
		case !there && !named || slices.Contains(tables, index.Table) || strings.HasPrefix(index.Table, "goose_"):
			continue
		case slices.ContainsFunc(before.indexes, func(b uniqueIndex) bool { return b.Index == index.Index }):
			continue
		case slices.ContainsFunc(before.indexes, func(b uniqueIndex) bool { return (b.OID == was || b.OID == index.OID) && b.Over == index.Over }):
			continue // it is made anew, or with a table in the place of another
		}
		tables = append(tables, index.Table)
	}
	return tables
}
