// Package promise is the form in which each package of the domain says what holds of its data at any moment: a question that
// names whatever breaks it, and the constraints that back it. It knows no promise itself; verify gathers those of all packages.
//
// What a promise finds is of two kinds. What is broken no rule of the program allows: it is a fault, or somebody wrote into the
// tables. What wants attention is allowed, and a person has to decide about it.
package promise

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// Promise is something that holds at any moment.
type Promise struct {
	Name string // its title is promise_<name>

	// Statement selects whatever breaks the promise or wants attention, of the organisations $1 (bigint[]), as broken (boolean),
	// code, organisation_id and facts (jsonb). It sees one moment, and no other organisation.
	Statement string

	// Parts, where it is not empty, selects organisation_id and id of the parts of the organisations $1 of which the statement is asked one
	// by one, as $3 and $4: what a function of the database says is found at once for one campaign, and row by row for several.
	Parts string

	// Look asks instead of a statement where the rule is one of the program; at most so many examples of each kind.
	Look func(ctx context.Context, tx pgx.Tx, organisations []int64, most int) (Found, error)

	// Once: it is a promise of the installation and is asked once, with no organisation.
	Once bool

	Guards []Guard // what keeps it in the database
}

// Example is one thing that a promise found.
type Example struct {
	Code           string // its sentence is verify_<code>
	OrganisationID int64  // 0: the installation
	Broken         bool   // false: it wants attention
	Facts          problem.Facts
}

// Found is what came of asking whether a promise holds.
type Found struct {
	Broken    int64
	Attention int64
	Examples  []Example // of each kind at most as many as were asked for, in a stable order
}

// Add takes in what was found of other organisations.
func (f *Found) Add(other Found, most int) {
	f.Broken, f.Attention = f.Broken+other.Broken, f.Attention+other.Attention
	kept := map[bool]int{}
	for _, e := range f.Examples {
		kept[e.Broken]++
	}
	for _, e := range other.Examples {
		if kept[e.Broken] < most {
			f.Examples, kept[e.Broken] = append(f.Examples, e), kept[e.Broken]+1
		}
	}
}

// Name takes in one thing that was found.
func (f *Found) Name(e Example, most int) {
	one := Found{Examples: []Example{e}}
	if e.Broken {
		one.Broken = 1
	} else {
		one.Attention = 1
	}
	f.Add(one, most)
}

// Ask asks whether a promise holds for the organisations, which the transaction sees. What is found is counted by the database,
// however much it is, and at most so many of each kind are read.
func (p Promise) Ask(ctx context.Context, tx pgx.Tx, organisations []int64, most int) (found Found, err error) {
	if p.Look != nil {
		found, err = p.Look(ctx, tx, organisations, most)
	} else {
		found, err = p.ask(ctx, tx, organisations, most)
	}
	if err != nil {
		return found, fmt.Errorf("ask whether %s holds: %w", p.Name, err)
	}
	return found, nil
}

func (p Promise) ask(ctx context.Context, tx pgx.Tx, organisations []int64, most int) (found Found, err error) {
	if p.Parts == "" {
		return p.askOnce(ctx, tx, organisations, most)
	}
	rows, err := tx.Query(ctx, p.Parts, organisations)
	if err != nil {
		return found, err
	}
	parts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (part [2]int64, err error) { return part, row.Scan(&part[0], &part[1]) })
	if err != nil {
		return found, err
	}
	for _, part := range parts {
		one, err := p.askOnce(ctx, tx, []int64{part[0]}, most, part[0], part[1])
		if err != nil {
			return found, err
		}
		found.Add(one, most)
	}
	return found, nil
}

func (p Promise) askOnce(ctx context.Context, tx pgx.Tx, args ...any) (found Found, err error) {
	rows, err := tx.Query(ctx, `
with found (broken, code, organisation_id, facts) as materialized (`+p.Statement+`)
select broken, code, organisation_id, facts, total
  from (select f.*, row_number() over (partition by broken order by organisation_id, code, facts) as nth, count(*) over (partition by broken) as total
          from found f) n
 where nth <= $2 and $1::bigint[] is not null order by broken desc, nth`, append([]any{pg.PlanAnew}, args...)...)
	if err != nil {
		return found, err
	}
	var e Example
	var total int64
	_, err = pgx.ForEachRow(rows, []any{&e.Broken, &e.Code, &e.OrganisationID, &e.Facts, &total}, func() error {
		if e.Broken {
			found.Broken = total
		} else {
			found.Attention = total
		}
		found.Examples = append(found.Examples, e)
		e.Facts = nil // the next row gets a map of its own
		return nil
	})
	return found, err
}

// marker begins, in a file of statements, the line that names the next one.
const marker = "-- promise: "

// Read reads a file of statements by their names. A file without any is a fault of the program.
func Read(file string) map[string]string {
	statements := map[string]string{}
	for _, part := range strings.Split("\n"+file, "\n"+marker)[1:] {
		name, statement, _ := strings.Cut(part, "\n")
		statements[strings.TrimSpace(name)] = statement
	}
	if len(statements) == 0 {
		panic("promise: a file without statements")
	}
	return statements
}
