// Package verify asks whether the promises of all packages hold on the data as they are, at one moment. What each promise says stands in
// the package that keeps it; here they are gathered, and asked organisation by organisation, so that however much there is fits in memory.
// It changes nothing.
package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/checkin"
	"usher/internal/domain/convocation"
	"usher/internal/domain/event"
	"usher/internal/domain/ledger"
	"usher/internal/domain/notice"
	"usher/internal/domain/outbox"
	"usher/internal/domain/payment"
	"usher/internal/domain/promise"
	"usher/internal/domain/reservation"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

// Bounds of asking.
const (
	// MostExamples is how many of what breaks a promise are named, and how many of what wants attention.
	MostExamples = 20
	// chunk is how many organisations are asked for in one statement: few enough for their rows to be found by their keys where there are
	// many, and enough for those without rows to cost little.
	chunk = 100
	// statementLimit is how long one question may take; where it takes longer the whole answer is refused.
	statementLimit = 4 * time.Minute
	// sortMemory is what the database may use for one sort or hash before it goes to its disk.
	sortMemory = "64MB"
)

// Schedule is what the schedule of the program is made of: it is laid down outside of the domain.
type Schedule struct {
	Catalogue run.Catalogue
	SealTask  string // the task that seals the timeline
}

// Check is whether one promise holds.
type Check struct {
	Name  string // its title is promise_<name>
	Found promise.Found
	Took  time.Duration
}

// Report is what came of asking.
type Report struct {
	At            time.Time // by the one clock
	Organisations int
	Checks        []Check
	Slugs         map[int64]string // of the organisations of the examples
}

// OK tells that no promise is broken. What wants attention is no broken promise.
func (r Report) OK() bool { return r.Broken() == 0 }

// Broken counts what breaks a promise.
func (r Report) Broken() (n int64) {
	for _, c := range r.Checks {
		n += c.Found.Broken
	}
	return n
}

// Attention counts what a person has to decide about.
func (r Report) Attention() (n int64) {
	for _, c := range r.Checks {
		n += c.Found.Attention
	}
	return n
}

// Promises are those of all packages, in the order in which they are asked.
func Promises(s Schedule) []promise.Promise {
	var all []promise.Promise
	for _, of := range [][]promise.Promise{
		event.Promises(), seating.Promises(), convocation.Promises(), notice.Promises(), payment.Promises(), reservation.Promises(), checkin.Promises(),
		ledger.Promises(), outbox.Promises(), run.Promises(s.Catalogue),
		{sealed(s), fenced()},
	} {
		all = append(all, of...)
	}
	return append(all, guarded(all))
}

// Verify asks whether every promise holds: of the organisation named, or, with an empty slug, of the whole installation, which is for its
// administrator alone, as is what holds of the installation. It sees one moment, whatever is done meanwhile. looked, which may be nil, is called as each check is made.
func Verify(ctx context.Context, db *pg.DB, actor timeline.Actor, schedule Schedule, slug string, looked func(Check)) (report Report, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return report, err
	}
	organisations, err := asked(ctx, db, actor, slug)
	if err != nil {
		return report, err
	}
	report.Organisations = len(organisations)
	err = db.Read(ctx, nil, func(tx pgx.Tx) error {
		// Whole tables are laid beside each other, which are not small, whatever a database without statistics believes; and what is looked up
		// for the few that are found is written so that it can only be looked up.
		_, err := tx.Exec(ctx, `
select set_config('statement_timeout', $1, true), set_config('work_mem', $2, true), set_config('enable_nestloop', 'off', true)`,
			fmt.Sprint(statementLimit.Milliseconds()), sortMemory)
		if err != nil {
			return fmt.Errorf("bound what is asked: %w", err)
		}
		if report.At, err = pg.Now(ctx, tx); err != nil {
			return err
		}
		for _, p := range Promises(schedule) {
			if p.Once && slug != "" { // nobody asked for the installation: that it is sound would be said without looking
				continue
			}
			began := time.Now()
			check := Check{Name: p.Name}
			if check.Found, err = ask(ctx, tx, p, organisations); err != nil {
				return err
			}
			check.Took = time.Since(began)
			report.Checks = append(report.Checks, check)
			if looked != nil {
				looked(check)
			}
		}
		report.Slugs, err = slugsOf(ctx, tx, report.Checks)
		return err
	})
	return report, err
}

// asked are the organisations that are asked for.
func asked(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) ([]int64, error) {
	if slug != "" {
		org, err := account.FindOrganisation(ctx, db, actor, slug)
		return []int64{org.ID}, err
	}
	if !actor.Installation {
		return nil, problem.NotFound("organisation_unknown", problem.Facts{"slug": slug})
	}
	var all []int64
	err := db.Read(ctx, nil, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select all_organisations()`)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the organisations: %w", err)
	}
	return all, nil
}

// ask asks one promise, chunk by chunk; what holds of the installation, once.
func ask(ctx context.Context, tx pgx.Tx, p promise.Promise, organisations []int64) (found promise.Found, err error) {
	if p.Once {
		if err := pg.See(ctx, tx, account.System); err != nil {
			return found, err
		}
		return p.Ask(ctx, tx, nil, MostExamples)
	}
	for from := 0; from < len(organisations); from += chunk {
		part := organisations[from:min(from+chunk, len(organisations))]
		if err := pg.See(ctx, tx, append([]int64{account.System}, part...)...); err != nil {
			return found, err
		}
		one, err := p.Ask(ctx, tx, part, MostExamples)
		if err != nil {
			return found, err
		}
		found.Add(one, MostExamples)
	}
	return found, nil
}

// slugsOf reads whose the examples are.
func slugsOf(ctx context.Context, tx pgx.Tx, checks []Check) (map[int64]string, error) {
	slugs := map[int64]string{}
	for _, c := range checks {
		for _, e := range c.Found.Examples {
			if e.OrganisationID != account.System {
				slugs[e.OrganisationID] = ""
			}
		}
	}
	ids := slices.Sorted(maps.Keys(slugs))
	if err := pg.See(ctx, tx, ids...); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `select id, slug from organisation where id = any($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read whose the examples are: %w", err)
	}
	var id int64
	var slug string
	if _, err = pgx.ForEachRow(rows, []any{&id, &slug}, func() error { slugs[id] = slug; return nil }); err != nil {
		return nil, fmt.Errorf("read whose the examples are: %w", err)
	}
	return slugs, nil
}
