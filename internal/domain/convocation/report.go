package convocation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/timeline"
)

// Report is what a run did and whom it left out, as it was at its end.
type Report struct {
	Run           int64
	Campaign      string // slug
	CampaignName  string
	Target        Target
	Actor         string
	State         run.State
	StartedAt     time.Time
	Duration      time.Duration // until the end, or until now
	Total         int           // eligible without a seat when it began
	Seated        int
	AlreadySeated int
	ToldNow       int // seated before, with an address now to which nothing was sent yet
	Sittings      []Fill
	Counts        []run.Count // how many of each list and reason
	Zone          string      // the organisation's
}

// Count is how many people or items a list of the report holds.
func (r Report) Count(list run.List) int {
	sum := 0
	for _, count := range r.Counts {
		if count.List == list {
			sum += count.Count
		}
	}
	return sum
}

// OnBound are the sittings about whose capacity nobody said anything.
func (r Report) OnBound() []Fill {
	var fills []Fill
	for _, fill := range r.Sittings {
		if fill.PlacesFrom == "bound" {
			fills = append(fills, fill)
		}
	}
	return fills
}

// ReadReport reads the report of a convocation run, also while it is going.
func ReadReport(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64) (Report, error) {
	var report Report
	err := seeRun(ctx, db, actor, runID, func(tx pgx.Tx, r run.Run) error {
		report = Report{Run: r.ID, Actor: r.Actor, State: r.State, StartedAt: r.StartedAt}
		var kept outcome
		if err := json.Unmarshal(r.Counters, &kept); err != nil {
			return fmt.Errorf("read the counters of run %d: %w", r.ID, err)
		}
		if err := json.Unmarshal(r.Request, &report.Target); err != nil {
			return fmt.Errorf("read the request of run %d: %w", r.ID, err)
		}
		report.Total, report.Seated, report.AlreadySeated = kept.Total, kept.Seated, kept.AlreadySeated
		report.ToldNow, report.Sittings = kept.ToldNow, kept.Sittings
		ended, err := pg.Now(ctx, tx)
		if r.FinishedAt != nil {
			ended = *r.FinishedAt
		}
		report.Duration = ended.Sub(r.StartedAt)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `
select g.slug, g.name, o.time_zone from campaign g join organisation o on o.id = g.organisation_id
 where g.organisation_id = $1 and g.id = $2`, r.OrganisationID, r.CampaignID).Scan(&report.Campaign, &report.CampaignName, &report.Zone)
		if err != nil {
			return fmt.Errorf("read the campaign of run %d: %w", r.ID, err)
		}
		report.Counts, err = run.Counts(ctx, tx, r.OrganisationID, r.ID)
		return err
	})
	return report, err
}

// Refusals reads a part of one list of a report, in its order.
func Refusals(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64, list run.List, offset, limit int) (refusals []run.Refusal, err error) {
	err = seeRun(ctx, db, actor, runID, func(tx pgx.Tx, r run.Run) error {
		refusals, err = run.Refusals(ctx, tx, r.OrganisationID, r.ID, list, offset, limit)
		return err
	})
	return refusals, err
}

// LatestRun is the newest convocation run of a campaign.
func LatestRun(ctx context.Context, db *pg.DB, actor timeline.Actor, campaignID int64) (runID int64, err error) {
	organisations, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return 0, err
	}
	err = db.Read(ctx, organisations, func(tx pgx.Tx) error {
		runs, err := run.Latest(ctx, tx, organisations, Task, campaignID)
		if err == nil && len(runs) == 0 {
			err = problem.NotFound("run_none", nil)
		}
		if err == nil {
			runID = runs[0].ID
		}
		return err
	})
	return runID, err
}

// Runs lists the latest convocation runs of whoever the actor acts for.
func Runs(ctx context.Context, db *pg.DB, actor timeline.Actor) ([]run.Run, error) {
	return latest(ctx, db, actor, Task)
}

// AllRuns lists the latest runs of every task.
func AllRuns(ctx context.Context, db *pg.DB, actor timeline.Actor) ([]run.Run, error) {
	return latest(ctx, db, actor, "")
}

func latest(ctx context.Context, db *pg.DB, actor timeline.Actor, task string) (runs []run.Run, err error) {
	organisations, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, organisations, func(tx pgx.Tx) error {
		runs, err = run.Latest(ctx, tx, organisations, task, 0)
		return err
	})
	return runs, err
}

// seeRun finds a convocation run among the organisations for which the actor acts.
func seeRun(ctx context.Context, db *pg.DB, actor timeline.Actor, runID int64, fn func(pgx.Tx, run.Run) error) error {
	return run.See(ctx, db, actor, runID, func(tx pgx.Tx, r run.Run) error {
		if r.Task != Task {
			return problem.NotFound("run_unknown", problem.Facts{"run": fmt.Sprint(runID)})
		}
		return fn(tx, r)
	})
}

// Overview is a campaign at a glance.
type Overview struct {
	Slug       string `json:"slug"`
	Name       string `json:"name"`
	Candidates int    `json:"candidates"`
	Paid       int    `json:"paid"`
	Seated     int    `json:"seated"`
}

// Overviews lists the campaigns of whoever the actor acts for.
func Overviews(ctx context.Context, db *pg.DB, actor timeline.Actor) (overviews []Overview, err error) {
	organisations, err := account.Organisations(ctx, db, actor)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, organisations, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
select g.slug, g.name, count(c.id)::int as candidates,
       count(c.id) filter (where is_paid(c.paid_minor, g.fee_minor, c.fee_waived_at))::int as paid,
       (select count(distinct k.candidate_id)::int from claim k join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
         where k.organisation_id = g.organisation_id and s.campaign_id = g.id and k.released_at is null) as seated
  from campaign g left join candidate c on (c.organisation_id, c.campaign_id) = (g.organisation_id, g.id)
 where g.organisation_id = any($1)
 group by g.organisation_id, g.id order by g.created_at, g.id`, organisations)
		if err != nil {
			return fmt.Errorf("list the campaigns: %w", err)
		}
		overviews, err = pgx.CollectRows(rows, pgx.RowToStructByName[Overview])
		return err
	})
	return overviews, err
}

// Population is who stands at a step of the workflow.
type Population struct {
	People int // candidates with the status
	Seated int // of them, those who have a seat
}

// InStatus counts who stands at a step: whoever changes what it opens sees at once whom that concerns.
func InStatus(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, status string) (there Population, err error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return there, err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return there, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		step, err := admission.FindStatus(ctx, tx, c, status)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `
select count(*), count(*) filter (where exists (select from claim k
        where k.organisation_id = $1 and k.candidate_id = c.id and k.released_at is null))
  from candidate c where c.organisation_id = $1 and c.campaign_id = $2 and c.status_id = $3`, c.OrganisationID, c.ID, step.ID).Scan(&there.People, &there.Seated)
		if err != nil {
			return fmt.Errorf("count who stands at a status: %w", err)
		}
		return nil
	})
	return there, err
}
