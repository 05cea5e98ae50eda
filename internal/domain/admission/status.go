package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// AddStatus adds a step at the end of the workflow.
func AddStatus(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string, s Status) (Status, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return s, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return s, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil { // two at once would get one place in the workflow
			return err
		}
		if s, err = addStatus(ctx, tx, c, s); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "status_added", Subject: timeline.Subject{CampaignID: c.ID}, Facts: s,
		})
	})
	return s, err
}

func addStatus(ctx context.Context, tx pgx.Tx, c Campaign, s Status) (Status, error) {
	s, err := s.clean()
	if err != nil {
		return s, err
	}
	if s.Label == "" {
		s.Label = s.Code
	}
	if err := s.check(); err != nil {
		return s, err
	}
	err = tx.QueryRow(ctx, `
insert into status (organisation_id, campaign_id, position, code, label, advice, opens_payment)
select $1, $2, coalesce(max(position), 0) + 1, $3, $4, $5, $6 from status where organisation_id = $1 and campaign_id = $2
returning id`, c.OrganisationID, c.ID, s.Code, s.Label, s.Advice, s.OpensPayment).Scan(&s.ID)
	if pg.Violates(err, "status_code_key") {
		return s, problem.Refused("status_exists", problem.Facts{"status": s.Code})
	}
	if err != nil {
		return s, fmt.Errorf("add the status: %w", err)
	}
	return s, nil
}

// clean brings the words of a status into the form in which they are kept.
func (s Status) clean() (_ Status, err error) {
	if s.Code, err = account.ReadName(s.Code); err != nil {
		return s, err
	}
	s.Label, err = account.ReadName(s.Label)
	s.Advice = account.OneLine(s.Advice)
	return s, err
}

// check wants a code, by which files name the status, and words for people.
func (s Status) check() error {
	if s.Code == "" {
		return problem.Invalid("status_code_missing", nil)
	}
	if s.Label == "" {
		return problem.Invalid("status_label_missing", nil)
	}
	return nil
}

// Workflow lists the statuses of a campaign in their order.
func Workflow(ctx context.Context, db *pg.DB, actor timeline.Actor, slug string) (statuses []Status, err error) {
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return nil, err
	}
	err = db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		statuses, err = Statuses(ctx, tx, c)
		return err
	})
	return statuses, err
}

// Statuses lists the workflow in its order.
func Statuses(ctx context.Context, tx pgx.Tx, c Campaign) ([]Status, error) {
	rows, err := tx.Query(ctx, `select id, code, label, advice, opens_payment from status
 where organisation_id = $1 and campaign_id = $2 order by position, id`, c.OrganisationID, c.ID)
	if err != nil {
		return nil, fmt.Errorf("list the statuses: %w", err)
	}
	statuses, err := pgx.CollectRows(rows, pgx.RowToStructByName[Status])
	if err != nil {
		return nil, fmt.Errorf("read the statuses: %w", err)
	}
	return statuses, nil
}

// FindStatus finds a status by its code or, failing that, by its label, without regard to case.
func FindStatus(ctx context.Context, tx pgx.Tx, c Campaign, codeOrLabel string) (Status, error) {
	rows, err := tx.Query(ctx, `
select id, code, label, advice, opens_payment from status
 where organisation_id = $1 and campaign_id = $2 and name_key($3) in (name_key(code), name_key(label))
 order by name_key(code) <> name_key($3), position limit 1`, c.OrganisationID, c.ID, codeOrLabel)
	if err != nil {
		return Status{}, fmt.Errorf("find the status: %w", err)
	}
	status, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Status])
	if errors.Is(err, pgx.ErrNoRows) {
		all, err := Statuses(ctx, tx, c)
		if err != nil {
			return Status{}, err
		}
		if like, found := StatusLike(all, codeOrLabel); found {
			return like, nil
		}
		return Status{}, problem.NotFound("status_unknown", problem.Facts{"status": codeOrLabel, "known": StatusNames(all)})
	}
	if err != nil {
		return Status{}, fmt.Errorf("read the status: %w", err)
	}
	return status, nil
}

// StatusLike finds the one status whose code or label has these words, whatever the accents: where nothing is written so exactly.
func StatusLike(all []Status, wanted string) (Status, bool) {
	words := FoldWords(wanted)
	like := slices.DeleteFunc(slices.Clone(all), func(s Status) bool {
		return words == "" || FoldWords(s.Code) != words && FoldWords(s.Label) != words
	})
	if len(like) != 1 {
		return Status{}, false
	}
	return like[0], true
}

// StatusNames lists statuses for somebody who must write one: the code and, in brackets, the label.
func StatusNames(statuses []Status) []string {
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = s.Code
		if s.Label != s.Code {
			names[i] += " (" + s.Label + ")"
		}
	}
	return names
}

// EditStatus changes a step of the workflow: its words, or whether it opens payment.
func EditStatus(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, code string, edit func(*Status)) (Status, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Status{}, err
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return Status{}, err
	}
	var after Status
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil {
			return err
		}
		before, err := FindStatus(ctx, tx, c, code)
		if err != nil {
			return err
		}
		after = before
		edit(&after)
		if after, err = after.clean(); err != nil {
			return err
		}
		if after == before {
			return nil
		}
		if err := after.check(); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update status set code = $3, label = $4, advice = $5, opens_payment = $6
 where organisation_id = $1 and id = $2`, c.OrganisationID, before.ID, after.Code, after.Label, after.Advice, after.OpensPayment)
		if pg.Violates(err, "status_code_key") {
			return problem.Refused("status_exists", problem.Facts{"status": after.Code})
		}
		if err != nil {
			return fmt.Errorf("edit the status: %w", err)
		}
		if err := Revise(ctx, tx, c); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "status_edited", Subject: timeline.Subject{CampaignID: c.ID}, Facts: map[string]Status{"before": before, "after": after},
		})
	})
	return after, err
}

// StatusOf is the step at which a candidate stands.
func StatusOf(ctx context.Context, tx pgx.Tx, c Campaign, candidate Candidate) (Status, error) {
	statuses, err := Statuses(ctx, tx, c)
	if err != nil {
		return Status{}, err
	}
	for _, status := range statuses {
		if status.ID == candidate.StatusID {
			return status, nil
		}
	}
	return Status{}, fmt.Errorf("candidate %d has status %d, which the campaign lacks", candidate.ID, candidate.StatusID)
}
