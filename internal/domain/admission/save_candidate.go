package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Filed is a candidate's file with everything that a list of candidates can say about it.
type Filed struct {
	ID              int64
	Reference       string
	IdentityKey     string // recognises a row that came without a reference; empty: none
	FamilyName      string
	GivenName       string
	BirthOn         *time.Time
	Email           string
	Phone           string // E.164, or empty
	Locale          string
	Needs           string
	NeedsAccessible bool
	StatusID        int64
	CentreID        *int64 // chosen; nil: any
	FiledAt         time.Time
	ExamIDs         []int64 // registered for, in order
	Overwritten     Overwritten
	Former          []Former
}

// Name is the family name, then the given one, as lists are sorted.
func (f Filed) Name() string {
	return Candidate{FamilyName: f.FamilyName, GivenName: f.GivenName}.Name()
}

const filedColumns = `
       k.id, k.reference, coalesce(k.identity_key, '') as identity_key, k.family_name, k.given_name, k.birth_on, k.email, k.phone,
       k.locale, k.needs, k.needs_accessible, k.status_id, k.centre_id, k.filed_at, k.overwritten, k.former,
       array(select r.exam_id from registration r where r.organisation_id = k.organisation_id and r.candidate_id = k.id
              order by r.exam_id) as exam_ids`

// FiledUnder reads the candidates that have one of the references or identity keys. Each is looked
// up by itself (limit 1): right after a load there are no statistics, and a join would read the
// whole campaign for every chunk.
func FiledUnder(ctx context.Context, tx pgx.Tx, c Campaign, references, identityKeys []string) ([]Filed, error) {
	rows, err := tx.Query(ctx, `
select`+filedColumns+`
  from (select found.id from unnest($3::text[]) w(reference), lateral (
          select k.id from candidate k
           where k.organisation_id = $1 and k.campaign_id = $2 and k.reference = w.reference limit 1) found
        union
        select found.id from unnest($4::text[]) w(identity_key), lateral (
          select k.id from candidate k
           where k.organisation_id = $1 and k.campaign_id = $2 and k.identity_key = w.identity_key limit 1) found) them,
       lateral (select * from candidate k where k.organisation_id = $1 and k.id = them.id limit 1) k`,
		c.OrganisationID, c.ID, references, identityKeys)
	return collectFiled(rows, err)
}

// FiledAs reads the candidates whose references differ from these in capitals and forms of letters and digits at most.
func FiledAs(ctx context.Context, tx pgx.Tx, c Campaign, references []string) ([]Filed, error) {
	rows, err := tx.Query(ctx, `
select`+filedColumns+`
  from (select distinct found.id from (select distinct name_key(reference) as key from unnest($3::text[]) w(reference)) w, lateral (
          select k.id from candidate k
           where k.organisation_id = $1 and k.campaign_id = $2 and k.reference_key = w.key offset 0) found) them,
       lateral (select * from candidate k where k.organisation_id = $1 and k.id = them.id limit 1) k`, c.OrganisationID, c.ID, references)
	return collectFiled(rows, err)
}

// FiledOf reads candidates by their ids.
func FiledOf(ctx context.Context, tx pgx.Tx, c Campaign, ids []int64) (map[int64]Filed, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
select`+filedColumns+`
  from (select distinct id from unnest($3::bigint[]) w(id)) w,
       lateral (select * from candidate k where k.organisation_id = $1 and k.campaign_id = $2 and k.id = w.id limit 1) k`,
		c.OrganisationID, c.ID, ids)
	filed, err := collectFiled(rows, err)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]Filed, len(filed))
	for _, f := range filed {
		byID[f.ID] = f
	}
	return byID, nil
}

// FiledAlike reads the candidates who were born on one of the days, or share one of the addresses
// or numbers, or did by what files said or under a former name, for rows that no key recognises. Who has a key of their own
// is not looked for by day, unless somebody wrote over their file: the key follows what was written. It reads the campaign
// once; "in (select …)" is hashed, where "= any" would compare one by one.
func FiledAlike(ctx context.Context, tx pgx.Tx, c Campaign, days []time.Time, emails, phones []string) ([]Filed, error) {
	rows, err := tx.Query(ctx, `
select`+filedColumns+`
  from candidate k
 where k.organisation_id = $1 and k.campaign_id = $2
   and ((k.identity_key is null or k.overwritten <> '{}') and k.birth_on in (select unnest($3::date[]))
        or k.email <> '' and lower(k.email) in (select unnest($4::text[]))
        or k.phone <> '' and k.phone in (select unnest($5::text[]))
        or lower(k.overwritten->>'email') in (select unnest($4::text[])) or k.overwritten->>'phone' in (select unnest($5::text[]))
        or k.former <> '[]' and exists (
             select from jsonb_array_elements(k.former) p
              where left(p->>'birth_on', 10)::date in (select unnest($3::date[]))
                 or lower(p->>'email') in (select unnest($4::text[])) or p->>'phone' in (select unnest($5::text[]))))
 order by k.id`, c.OrganisationID, c.ID, days, emails, phones)
	return collectFiled(rows, err)
}

// EveryFiled goes through all candidates by reference, without keeping them.
func EveryFiled(ctx context.Context, tx pgx.Tx, c Campaign, each func(Filed) error) error {
	rows, err := tx.Query(ctx, `select`+filedColumns+`
  from candidate k where k.organisation_id = $1 and k.campaign_id = $2 order by k.reference collate "C"`, c.OrganisationID, c.ID)
	if err != nil {
		return fmt.Errorf("read the candidates: %w", err)
	}
	var f Filed
	_, err = pgx.ForEachRow(rows, []any{
		&f.ID, &f.Reference, &f.IdentityKey, &f.FamilyName, &f.GivenName, &f.BirthOn, &f.Email, &f.Phone,
		&f.Locale, &f.Needs, &f.NeedsAccessible, &f.StatusID, &f.CentreID, &f.FiledAt, &f.Overwritten, &f.Former, &f.ExamIDs,
	}, func() error { return each(f) })
	if err != nil {
		return fmt.Errorf("read the candidates: %w", err)
	}
	return nil
}

func collectFiled(rows pgx.Rows, err error) ([]Filed, error) {
	if err != nil {
		return nil, fmt.Errorf("look up the candidates: %w", err)
	}
	filed, err := pgx.CollectRows(rows, pgx.RowToStructByName[Filed])
	if err != nil {
		return nil, fmt.Errorf("look up the candidates: %w", err)
	}
	return filed, nil
}

// filedArrays turns candidates into one array a column, in the order of the statements below.
type filedArrays struct {
	ids                                []int64
	references, keys, families, givens []string
	births                             []*time.Time
	emails, phones, locales, needs     []string
	accessible                         []bool
	statuses                           []int64
	centres                            []*int64
	filed                              []time.Time
	overwritten                        []Overwritten
	registered, registeredFor          []int64
}

func arraysOf(filed []Filed) filedArrays {
	var a filedArrays
	for _, f := range filed {
		a.ids = append(a.ids, f.ID)
		a.references, a.keys = append(a.references, f.Reference), append(a.keys, f.IdentityKey)
		a.families, a.givens, a.births = append(a.families, f.FamilyName), append(a.givens, f.GivenName), append(a.births, f.BirthOn)
		a.emails, a.phones, a.locales = append(a.emails, f.Email), append(a.phones, f.Phone), append(a.locales, f.Locale)
		a.needs, a.accessible = append(a.needs, f.Needs), append(a.accessible, f.NeedsAccessible)
		a.statuses, a.centres, a.filed = append(a.statuses, f.StatusID), append(a.centres, f.CentreID), append(a.filed, f.FiledAt)
		a.overwritten = append(a.overwritten, f.Overwritten)
		for _, exam := range f.ExamIDs {
			a.registered, a.registeredFor = append(a.registered, f.ID), append(a.registeredFor, exam)
		}
	}
	return a
}

// AddCandidates adds candidates with their registrations, in their order, and fills in their ids.
// A reference or an identity key that exists makes the statement fail as a whole.
func AddCandidates(ctx context.Context, tx pgx.Tx, c Campaign, added []*Filed) error {
	if len(added) == 0 {
		return nil
	}
	a := arraysOf(values(added))
	rows, err := tx.Query(ctx, `
insert into candidate (organisation_id, campaign_id, reference, identity_key, family_name, given_name, birth_on, email, phone,
                       locale, needs, needs_accessible, status_id, centre_id, filed_at)
select $1, $2, w.reference, nullif(w.identity_key, ''), w.family_name, w.given_name, w.birth_on, w.email, w.phone,
       w.locale, w.needs, w.needs_accessible, w.status_id, w.centre_id, w.filed_at
  from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::date[], $8::text[], $9::text[],
              $10::text[], $11::text[], $12::bool[], $13::bigint[], $14::bigint[], $15::timestamptz[])
       with ordinality w(reference, identity_key, family_name, given_name, birth_on, email, phone,
                         locale, needs, needs_accessible, status_id, centre_id, filed_at, nth)
 order by w.nth
returning id, reference`, c.OrganisationID, c.ID, a.references, a.keys, a.families, a.givens, a.births, a.emails, a.phones,
		a.locales, a.needs, a.accessible, a.statuses, a.centres, a.filed)
	if err != nil {
		return fmt.Errorf("add the candidates: %w", err)
	}
	ids := make(map[string]int64, len(added))
	var id int64
	var reference string
	if _, err := pgx.ForEachRow(rows, []any{&id, &reference}, func() error { ids[reference] = id; return nil }); err != nil {
		return fmt.Errorf("add the candidates: %w", err)
	}
	for _, f := range added {
		f.ID = ids[f.Reference]
	}
	a = arraysOf(values(added))
	return register(ctx, tx, c, a.registered, a.registeredFor)
}

func values(filed []*Filed) []Filed {
	all := make([]Filed, len(filed))
	for i, f := range filed {
		all[i] = *f
	}
	return all
}

// UpdateCandidates writes what changed in candidates that exist, notes the names and contacts that they had (Former), and
// registers them for the exams that they name; registrations are taken back by Unregister only.
func UpdateCandidates(ctx context.Context, tx pgx.Tx, c Campaign, changed []Filed) error {
	if len(changed) == 0 {
		return nil
	}
	a := arraysOf(changed)
	tag, err := tx.Exec(ctx, `
update candidate k
   set identity_key = nullif(w.identity_key, ''), family_name = w.family_name, given_name = w.given_name, birth_on = w.birth_on,
       email = w.email, phone = w.phone, locale = w.locale, needs = w.needs, needs_accessible = w.needs_accessible,
       status_id = w.status_id, centre_id = w.centre_id, filed_at = w.filed_at, overwritten = coalesce(w.overwritten, '{}'),
       former = `+former+`
  from unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::date[], $8::text[], $9::text[],
              $10::text[], $11::text[], $12::bool[], $13::bigint[], $14::bigint[], $15::timestamptz[], $16::jsonb[])
       w(id, identity_key, family_name, given_name, birth_on, email, phone,
         locale, needs, needs_accessible, status_id, centre_id, filed_at, overwritten)
 where k.organisation_id = $1 and k.campaign_id = $2 and k.id = w.id`, c.OrganisationID, c.ID, a.ids, a.keys, a.families, a.givens,
		a.births, a.emails, a.phones, a.locales, a.needs, a.accessible, a.statuses, a.centres, a.filed, a.overwritten)
	if err != nil {
		return fmt.Errorf("update the candidates: %w", err)
	}
	if int(tag.RowsAffected()) != len(changed) {
		return fmt.Errorf("update the candidates: %d of %d were there", tag.RowsAffected(), len(changed))
	}
	return register(ctx, tx, c, a.registered, a.registeredFor)
}
