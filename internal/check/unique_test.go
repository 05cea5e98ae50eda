package check_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"usher/internal/domain/schema"
)

// TestMigrations_AddUniquenessBesideTheWriters: a UNIQUE that a migration adds to a table which is there already stops everybody who
// writes for as long as its index takes, and fails at the first duplicate. pg.UniqueMigration does neither (docs/uniqueness.md).
func TestMigrations_AddUniquenessBesideTheWriters(t *testing.T) {
	folder := filepath.Join(moduleRoot(t), "internal", "domain", "schema")
	names, err := filepath.Glob(filepath.Join(folder, "migrations", "*.sql"))
	if err != nil || len(names) < 40 {
		t.Fatalf("only %d migrations were found, %v: the test looks at the wrong folder", len(names), err)
	}
	for _, name := range names {
		number, err := strconv.Atoi(filepath.Base(name)[:5])
		if err != nil {
			t.Fatalf("the number of %s: %v", name, err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if number >= schema.BuiltBeside {
			for _, table := range uniquenessAdded(string(text)) {
				t.Errorf("%s adds uniqueness to %s, which is there before it: make it one of schema.Migrations' Unique", filepath.Base(name), table)
			}
		}
	}
	// Steps in Go have no statement of their own that does it; what they do is looked at in internal/domain/schema.
	sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("the steps of the schema: %v, %v", sources, err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, table := range uniquenessAdded(string(text)) {
			t.Errorf("%s adds uniqueness to %s by a statement of its own: use pg.UniqueMigration", filepath.Base(name), table)
		}
	}
}

// TestMigrations_AddUniquenessBesideTheWriters_Control shows that the search finds, and what it leaves alone.
func TestMigrations_AddUniquenessBesideTheWriters_Control(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"an index":                       {`create unique index x on claim (organisation_id, a);`, []string{"claim"}},
		"an index in capitals":           {"CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS \"x\"\n  ON ONLY public.\"claim\" USING btree (a);", []string{"claim"}},
		"an index without a name":        {`create unique index on claim (a);`, []string{"claim"}},
		"a constraint":                   {`alter table claim add constraint x unique (organisation_id, a);`, []string{"claim"}},
		"a constraint without a name":    {`alter table only public.claim add unique (a);`, []string{"claim"}},
		"behind other changes":           {"alter table if exists claim\n  add column a text, -- a remark; with a semicolon\n  drop column b,\n  add constraint x unique nulls not distinct (a);", []string{"claim"}},
		"of a column that is added":      {`alter table claim add column a text unique;`, []string{"claim"}},
		"a primary key":                  {`alter table claim add primary key (organisation_id, a);`, []string{"claim"}},
		"an index that is attached":      {`alter table claim add constraint x unique using index y;`, []string{"claim"}},
		"behind a type with a comma":     {`alter table claim add column price numeric(10,2) unique;`, []string{"claim"}},
		"behind a condition":             {`alter table claim add column a text check (code in ('a','b') and (true)) primary key;`, []string{"claim"}},
		"behind a semicolon in quotes":   {`alter table claim add column a text default ';' unique;`, []string{"claim"}},
		"inside a block":                 {"do $$ begin\n execute 'create unique index x on claim (a)';\nend $$;", []string{"claim"}},
		"two tables":                     {`create unique index x on claim (a); alter table seat add unique (b);`, []string{"claim", "seat"}},
		"a table made under a condition": {`create table if not exists claim (a int); create unique index x on claim (a);`, []string{"claim"}},
		"made behind it":                 {`create unique index x on later (a); create table later (a int);`, []string{"later"}},
		"renamed to it":                  {`create table fresh (a int); alter table claim rename to other; create unique index x on other (a);`, []string{"other"}},

		"of a table of its own":          {"create table fresh (a int, constraint k unique (a), primary key (a));\ncreate unique index x on fresh (a);\nalter table fresh add unique (a);", nil},
		"of a table of its own, quoted":  {`CREATE TABLE "public"."fresh" (a int); CREATE UNIQUE INDEX x ON fresh (a);`, nil},
		"of one that is for the session": {`create temp table t (a int) on commit drop; create unique index on t (a);`, nil},
		"an index that is not unique":    {`create index x on claim (a);`, nil},
		"a remark":                       {"-- create unique index x on claim (a);\n/* alter table claim add unique (a); */\nselect 1;", nil},
		"a column of that name":          {`alter table claim add column unique_name text; comment on column claim.a is 'unique in its sitting';`, nil},
		"a key that is dropped":          {`alter table claim drop constraint unique_a; drop index x;`, nil},
		"a foreign key":                  {`alter table claim add constraint f foreign key (organisation_id, a) references seat (organisation_id, id);`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := uniquenessAdded(c.text); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

const tableName = `((?:"?[a-z_][a-z0-9_]*"?\.)?"?[a-z_][a-z0-9_]*"?)`

var (
	remarks     = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`)
	makesTable  = regexp.MustCompile(`\bcreate\s+(?:temp\s+|temporary\s+|unlogged\s+)?table\s+` + tableName)
	makesIndex  = regexp.MustCompile(`\bcreate\s+unique\s+index\b[^;(]*?\bon\s+(?:only\s+)?` + tableName + `\s*(?:using\s+\w+\s*)?\(`)
	altersTable = regexp.MustCompile(`\balter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?` + tableName + `\s([^;]*)`)
	addsUnique  = regexp.MustCompile(`\badd\b[^,;]*?(?:\bunique\b|\bprimary\s+key\b)`)
	quoted      = regexp.MustCompile(`'(?:[^']|'')*'`)
	bracketed   = regexp.MustCompile(`\([^()]*\)`)
)

// blanked is a text of the same length without what stands in quotes and brackets: a comma or a semicolon there ends nothing.
func blanked(text string) string {
	blank := func(found string) string { return strings.Repeat("_", len(found)) }
	text = quoted.ReplaceAllStringFunc(text, blank)
	for bracketed.MatchString(text) {
		text = bracketed.ReplaceAllStringFunc(text, blank)
	}
	return text
}

// uniquenessAdded lists the tables that were there before a migration and that it makes unique in something, in the order of the text.
// A table that is made under a condition may be there already.
func uniquenessAdded(text string) []string {
	text = strings.ToLower(remarks.ReplaceAllString(text, " "))
	plain := func(name string) string {
		name = strings.ReplaceAll(name, `"`, "")
		return strings.TrimPrefix(name, "public.")
	}
	made := map[string]int{}
	for _, at := range makesTable.FindAllStringSubmatchIndex(text, -1) {
		name := plain(text[at[2]:at[3]])
		if _, before := made[name]; !before && name != "if" {
			made[name] = at[0]
		}
	}
	type find struct {
		at    int
		table string
	}
	var finds []find
	add := func(at int, table string) {
		if from, own := made[table]; !own || from > at {
			finds = append(finds, find{at, table})
		}
	}
	for _, at := range makesIndex.FindAllStringSubmatchIndex(text, -1) {
		add(at[0], plain(text[at[2]:at[3]]))
	}
	for _, seen := range []string{text, blanked(text)} { // as it stands for what is executed out of quotes
		for _, at := range altersTable.FindAllStringSubmatchIndex(seen, -1) {
			if addsUnique.MatchString(quoted.ReplaceAllString(seen[at[4]:at[5]], "''")) {
				add(at[0], plain(seen[at[2]:at[3]]))
			}
		}
	}
	slices.SortFunc(finds, func(a, b find) int { return a.at - b.at })
	var tables []string
	for _, f := range finds {
		if !slices.Contains(tables, f.table) {
			tables = append(tables, f.table)
		}
	}
	return tables
}
