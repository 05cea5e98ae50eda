package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/timeline"
)

// Candidate is one person's file in one campaign.
type Candidate struct {
	ID              int64
	Reference       string
	FamilyName      string
	GivenName       string
	Email           string
	Phone           string // E.164, or empty
	Locale          string
	NeedsAccessible bool
	StatusID        int64
	CentreID        *int64 // chosen; nil: any
	FiledAt         time.Time
	FeeWaivedAt     *time.Time
	PaidMinor       int64 // payments less reversals, minor units
}

// Name is the candidate's, in full.
func (c Candidate) Name() string { return FullName(c.FamilyName, c.GivenName) }

// FullName is the family name, then the given one, as lists are sorted. Some people have one name only.
func FullName(family, given string) string {
	if given == "" {
		return family
	}
	return family + " " + given
}

const candidateColumns = `
       id, reference, family_name, given_name, email, phone, locale, needs_accessible, status_id, centre_id, filed_at, fee_waived_at, paid_minor`

// CandidateByID reads a candidate that is known by number, with their campaign.
func CandidateByID(ctx context.Context, tx pgx.Tx, organisationID, id int64) (c Campaign, candidate Candidate, err error) {
	c.OrganisationID = organisationID
	rows, err := tx.Query(ctx, `select `+candidateColumns+` from candidate where organisation_id = $1 and id = $2`, organisationID, id)
	if err != nil {
		return c, candidate, fmt.Errorf("find the candidate: %w", err)
	}
	if candidate, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Candidate]); err != nil {
		return c, candidate, fmt.Errorf("read the candidate: %w", err)
	}
	err = tx.QueryRow(ctx, `select campaign_id from candidate where organisation_id = $1 and id = $2`, organisationID, id).Scan(&c.ID)
	if err != nil {
		return c, candidate, fmt.Errorf("read the candidate's campaign: %w", err)
	}
	return c, candidate, c.read(ctx, tx)
}

// FindCandidate finds a candidate of the campaign by reference, in whatever capitals or width of digits it is written, as a list
// of candidates does.
func FindCandidate(ctx context.Context, tx pgx.Tx, c Campaign, reference string) (Candidate, error) {
	rows, err := tx.Query(ctx, `select `+candidateColumns+`
  from candidate where organisation_id = $1 and campaign_id = $2 and reference_key = (select name_key($3))
 order by reference = $3 desc limit 2`, c.OrganisationID, c.ID, reference)
	if err != nil {
		return Candidate{}, fmt.Errorf("find the candidate: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Candidate])
	if err != nil {
		return Candidate{}, fmt.Errorf("read the candidate: %w", err)
	}
	if len(found) == 0 || len(found) > 1 && found[0].Reference != reference { // two of older lists: neither is meant for certain
		near, err := Near(ctx, tx, c, []string{reference})
		if err != nil {
			return Candidate{}, err
		}
		return Candidate{}, problem.NotFound("candidate_unknown", problem.Facts{"candidate": reference, "campaign": c.Slug, "near": near[reference]})
	}
	return found[0], nil
}

// bareReference is a key of references without what gets lost or added on paper: zeros in front, and what stands between.
const bareReference = `ltrim(translate(%s, ' -_/.·–—‐‑', ''), '0')`

// mostNear is how many are named whom an unknown reference may mean.
const mostNear = 3

// Near names the candidates whom unknown references may mean: references that differ in zeros in front, capitals and separators
// only. Nobody is taken for another by it; whoever typed the reference is told.
func Near(ctx context.Context, tx pgx.Tx, c Campaign, references []string) (map[string][]string, error) {
	if len(references) == 0 {
		return nil, nil
	}
	var bare []string
	err := tx.QueryRow(ctx, `select array_agg(`+fmt.Sprintf(bareReference, "name_key(r)")+` order by at) from unnest($1::text[]) with ordinality w(r, at)`,
		references).Scan(&bare)
	if err != nil {
		return nil, fmt.Errorf("read the references: %w", err)
	}
	key := fmt.Sprintf(bareReference, "reference_key")
	rows, err := tx.Query(ctx, `select `+key+`, reference, family_name, given_name from candidate
 where organisation_id = $1 and campaign_id = $2 and `+key+` = any($3) and `+key+` <> '' order by reference collate "C"`, c.OrganisationID, c.ID, bare)
	if err != nil {
		return nil, fmt.Errorf("look for references nearby: %w", err)
	}
	named := map[string][]string{}
	var of, reference, family, given string
	_, err = pgx.ForEachRow(rows, []any{&of, &reference, &family, &given}, func() error {
		if len(named[of]) < mostNear {
			named[of] = append(named[of], reference+" ("+FullName(family, given)+")")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for references nearby: %w", err)
	}
	near := map[string][]string{}
	for i, reference := range references {
		near[reference] = named[bare[i]]
	}
	return near, nil
}

// ChangeStatus moves a candidate to another step of the workflow. A seat that they have is kept:
// taking it back is a decision of a person, which the caller is told to take.
func ChangeStatus(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, codeOrLabel string) (Candidate, Status, error) {
	if err := account.Allow(actor, account.File); err != nil {
		return Candidate{}, Status{}, err
	}
	var candidate Candidate
	var to Status
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return candidate, to, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if _, err := Lock(ctx, tx, c); err != nil {
			return err
		}
		if candidate, err = FindCandidate(ctx, tx, c, reference); err != nil {
			return err
		}
		if to, err = FindStatus(ctx, tx, c, codeOrLabel); err != nil {
			return err
		}
		if candidate.StatusID == to.ID {
			return nil
		}
		var from string
		// What a file said last stays noted as long as something else stands.
		err := tx.QueryRow(ctx, `
with was as (select label from status where organisation_id = $1 and id = (select status_id from candidate where organisation_id = $1 and id = $2))
update candidate set status_id = $3,
       overwritten = case when overwritten->>'status' = $3::bigint::text then overwritten - 'status'
                          else jsonb_build_object('status', status_id::text) || overwritten end
 where organisation_id = $1 and id = $2 returning (select label from was)`,
			c.OrganisationID, candidate.ID, to.ID).Scan(&from)
		if err != nil {
			return fmt.Errorf("change the status: %w", err)
		}
		candidate.StatusID = to.ID
		if err := Revise(ctx, tx, c); err != nil {
			return err
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "status_changed", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: candidate.ID},
			Facts: map[string]string{"candidate": candidate.Name(), "from": from, "to": to.Label},
		})
	})
	return candidate, to, err
}

// WaiveFee lets a candidate count as paid, with who and why.
func WaiveFee(ctx context.Context, db *pg.DB, actor timeline.Actor, slug, reference, reason string) (Candidate, error) {
	if err := account.Allow(actor, account.Manage); err != nil {
		return Candidate{}, err
	}
	var candidate Candidate
	if strings.TrimSpace(reason) == "" {
		return candidate, problem.Invalid("reason_missing", nil)
	}
	c, err := FindCampaign(ctx, db, actor, slug)
	if err != nil {
		return candidate, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		if candidate, err = FindCandidate(ctx, tx, c, reference); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
update candidate set fee_waived_at = clock(), fee_waived_by = $3, fee_waived_reason = $4
 where organisation_id = $1 and id = $2 and fee_waived_at is null`, c.OrganisationID, candidate.ID, actor.Name, reason)
		if err != nil {
			return fmt.Errorf("waive the fee: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil // already waived: the first reason stands
		}
		return timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: "fee_waived", Subject: timeline.Subject{CampaignID: c.ID, CandidateID: candidate.ID},
			Facts: map[string]string{"candidate": candidate.Name(), "reason": reason},
		})
	})
	return candidate, err
}
