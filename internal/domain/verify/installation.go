package verify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/promise"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// sealed is that the timeline is as it was sealed: of each organisation, the first day that is not.
func sealed(s Schedule) promise.Promise {
	return promise.Promise{
		Name: "timeline_sealed",
		Look: func(ctx context.Context, tx pgx.Tx, organisations []int64, most int) (found promise.Found, err error) {
			for _, id := range organisations {
				if err := lookAtSeals(ctx, tx, s.SealTask, id, &found, most); err != nil {
					return found, err
				}
			}
			return found, nil
		},
		Guards: []promise.Guard{
			{Name: "timeline_seal_pkey", Over: "timeline_seal (organisation_id, day)"},
			{Name: "timeline_seal_chain", Over: "timeline_seal (organisation_id, previous) NULLS NOT DISTINCT"},
		},
	}
}

func lookAtSeals(ctx context.Context, tx pgx.Tx, task string, organisationID int64, found *promise.Found, most int) error {
	said, err := run.DoneIn(ctx, tx, task, organisationID)
	if err != nil {
		return err
	}
	checked, err := timeline.CheckIn(ctx, tx, organisationID, said)
	if err != nil {
		return err
	}
	if b := checked.Broken; b != nil {
		found.Name(promise.Example{Code: "seal_broken", OrganisationID: organisationID, Broken: true, Facts: problem.Facts{
			"day": b.Seal.Day.Format(time.DateOnly), "what": i18n.Word{ID: "timeline_" + string(b.What)}, "sealed": b.Seal.Rows, "found": b.Found,
		}}, most)
	}
	if a := checked.Aside; a.Seals > 0 {
		found.Name(promise.Example{Code: "seals_aside", OrganisationID: organisationID, Facts: problem.Facts{
			"seals": a.Seals, "first": a.First.Format(time.DateOnly), "last": a.Last.Format(time.DateOnly), "at": i18n.Instant{At: a.At, Zone: "UTC"},
		}}, most)
	}
	return nil
}

// fenced is that no organisation sees the rows of another: row-level security is on wherever it must be, by the one policy.
func fenced() promise.Promise {
	return promise.Promise{
		Name: "organisations_apart", Once: true,
		Look: func(ctx context.Context, tx pgx.Tx, _ []int64, most int) (found promise.Found, err error) {
			tables, repairs, err := pg.Unfenced(ctx, tx)
			for i, table := range tables {
				found.Name(promise.Example{Code: "table_not_fenced", Broken: true, Facts: problem.Facts{"table": table, "repair": repairs[i]}}, most)
			}
			return found, err
		},
	}
}

// notYetValid are the constraints that a release added without asking old rows: they bind what is written since.
var notYetValid = []string{"exam_duration_believed", "sitting_hours_believed"}

// guarded is that what keeps the promises in the database is there and in force: the guards that the promises name, and whatever else
// the tables have.
func guarded(all []promise.Promise) promise.Promise {
	var guards []promise.Guard
	var of []string
	for _, p := range all {
		for _, g := range p.Guards {
			guards, of = append(guards, g), append(of, p.Name)
		}
	}
	return promise.Promise{
		Name: "guards_there", Once: true,
		Look: func(ctx context.Context, tx pgx.Tx, _ []int64, most int) (found promise.Found, err error) {
			missing, err := promise.Missing(ctx, tx, guards)
			if err != nil {
				return found, err
			}
			for _, i := range missing {
				found.Name(promise.Example{Code: "guard_missing", Broken: true, Facts: problem.Facts{
					"guard": guards[i].Name, "covers": guards[i].Over, "promise": i18n.Word{ID: "promise_" + of[i]},
				}}, most)
			}
			return found, lookForIdle(ctx, tx, &found, most)
		},
	}
}

// lookForIdle names the constraints, indexes and triggers that exist and are not in force. An index that somebody is building at this
// moment will be: whoever does so holds the lock by which pg.AddUnique keeps others from the table. One of that name which nobody builds
// is what an attempt left, and the same command removes it: neither is a fault of what is kept.
func lookForIdle(ctx context.Context, tx pgx.Tx, found *promise.Found, most int) error {
	rows, err := tx.Query(ctx, `
select name, of_table, building, made, columns from (
  select i.relname::text as name, t.relname::text as of_table, i.relname like '%' || $2 as made,
         case when x.indexprs is null and x.indpred is null then
           array_to_string(array(select a.attname::text from unnest(x.indkey[0:x.indnkeyatts - 1]) with ordinality n (attnum, nth)
                                   join pg_attribute a on a.attrelid = x.indrelid and a.attnum = n.attnum order by n.nth), ',') else '' end as columns,
         i.relname like '%' || $2 and exists (
           select from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 2 and l.classid = 'pg_class'::regclass and l.objid = t.oid
                                    and l.database = (select oid from pg_database where datname = current_database())) as building
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
   where t.relnamespace = 'public'::regnamespace and not (`+pg.IndexHolds+`)
   union all
  select k.conname::text, t.relname::text, false, '', false from pg_constraint k join pg_class t on t.oid = k.conrelid
   where t.relnamespace = 'public'::regnamespace and not k.convalidated and k.conname <> all($1)
   union all
  select coalesce(k.conname, g.tgname)::text, t.relname::text, false, '', false from pg_trigger g join pg_class t on t.oid = g.tgrelid left join pg_constraint k on k.oid = g.tgconstraint
   where t.relnamespace = 'public'::regnamespace and g.tgenabled not in ('O', 'A')) w
 group by name, of_table, building, made, columns order by of_table collate "C", name collate "C"`, notYetValid, strings.ReplaceAll(pg.UniqueBuilding, "_", `\_`))
	if err != nil {
		return fmt.Errorf("look for what is not in force: %w", err)
	}
	var name, table, columns string
	var building, made bool
	_, err = pgx.ForEachRow(rows, []any{&name, &table, &building, &made, &columns}, func() error {
		code := "guard_idle"
		switch {
		case building:
			code = "guard_building"
		case made:
			code = "guard_left"
		}
		found.Name(promise.Example{Code: code, Broken: !made, Facts: problem.Facts{"guard": name, "table": table, "columns": columns}}, most)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for what is not in force: %w", err)
	}
	return nil
}
