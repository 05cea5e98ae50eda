// Package notice keeps what people must be told. A notice is written in the transaction of its
// cause, once for a subject, a kind, a day and a revision; sending happens after the commit. What
// is said, and whether it is still true, is decided by whoever caused it.
package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// Kind is why somebody is told.
type Kind string

// The kinds of notice.
const (
	KindConvocation Kind = "convocation" // a seat was given
	KindChange      Kind = "change"      // it is elsewhere, or at another time
	KindRelease     Kind = "release"     // it was taken back
)

// SubjectClaim says that a notice is about a claim.
const SubjectClaim = "claim"

// Notice is one thing that one person must be told.
type Notice struct {
	Kind        Kind
	ClaimID     int64
	CandidateID int64
	On          time.Time // the sitting's day at its centre
	Revision    int       // the sitting's
	HasEmail    bool
	HasPhone    bool
}

// Write adds the notices in one statement; one that exists already stays as it is. With wait they
// are kept until somebody releases them.
func Write(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, wait bool, notices ...Notice) error {
	if len(notices) == 0 {
		return nil
	}
	ready := "pending"
	if wait {
		ready = "waiting"
	}
	n := len(notices)
	kinds, claims, candidates := make([]string, n), make([]int64, n), make([]int64, n)
	days, revisions, emails, phones := make([]time.Time, n), make([]int, n), make([]bool, n), make([]bool, n)
	for i, notice := range notices {
		kinds[i], claims[i], candidates[i] = string(notice.Kind), notice.ClaimID, notice.CandidateID
		days[i], revisions[i], emails[i], phones[i] = notice.On, notice.Revision, notice.HasEmail, notice.HasPhone
	}
	args := []any{organisationID, campaignID, ready, kinds, claims, candidates, days, revisions, emails, phones}
	// A notice that exists already is rare, and looking out for it costs: the first try does not.
	err := pg.Within(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertNotices, args...)
		return err
	})
	if pg.Duplicates(err) {
		_, err = tx.Exec(ctx, insertNotices+` on conflict do nothing`, args...)
	}
	if err != nil {
		return fmt.Errorf("write the notices: %w", err)
	}
	return nil
}

const insertNotices = `
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select $1, $2, w.candidate_id, w.kind, 'claim', w.claim_id, w.on_date, w.revision,
       case when w.has_email then $3 else 'unreachable' end, case when w.has_phone then $3 else 'unreachable' end
  from unnest($4::text[], $5::bigint[], $6::bigint[], $7::date[], $8::int[], $9::bool[], $10::bool[])
       w(kind, claim_id, candidate_id, on_date, revision, has_email, has_phone)`

// Withdraw takes back what was not sent yet about claims that are no longer true, and tells whose
// holders were told nothing at all: a change that was not sent follows something that was.
func Withdraw(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs ...int64) (untold map[int64]bool, err error) {
	rows, err := tx.Query(ctx, `
update notice set email_state = 'withdrawn', sms_state = 'withdrawn'
 where organisation_id = $1 and subject = 'claim' and subject_id = any($2)
   and email_state in ('waiting', 'pending', 'unreachable') and sms_state in ('waiting', 'pending', 'unreachable')
returning subject_id, kind = 'convocation'`, organisationID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("withdraw the notices: %w", err)
	}
	untold = map[int64]bool{}
	var id int64
	var first bool
	if _, err := pgx.ForEachRow(rows, []any{&id, &first}, func() error { untold[id] = first; return nil }); err != nil {
		return nil, fmt.Errorf("withdraw the notices: %w", err)
	}
	return untold, nil
}

// Retry makes ready what could not be told for want of an address that is known by now, and tells
// how many people that concerns. The caller holds the campaign's lock: what a release withdraws
// meanwhile stays withdrawn.
func Retry(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, wait bool) (people int, err error) {
	ready := "pending"
	if wait {
		ready = "waiting"
	}
	err = tx.QueryRow(ctx, reachable+`,
retried as (
  update notice n
     set email_state = case when r.email <> '' then $3 else n.email_state end,
         sms_state = case when r.phone <> '' then $3 else n.sms_state end
    from reachable r
   where n.organisation_id = $1 and n.id = r.id and n.email_state = 'unreachable' and n.sms_state = 'unreachable'
  returning n.candidate_id)
select count(distinct candidate_id) from retried`, organisationID, campaignID, ready).Scan(&people)
	if err != nil {
		return 0, fmt.Errorf("tell those who have an address now: %w", err)
	}
	return people, nil
}

// Retriable counts the messages that Retry would make ready.
func Retriable(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64) (emails, sms int, err error) {
	err = tx.QueryRow(ctx, reachable+` select count(*) filter (where email <> ''), count(*) filter (where phone <> '') from reachable`,
		organisationID, campaignID).Scan(&emails, &sms)
	if err != nil {
		return 0, 0, fmt.Errorf("count those who have an address now: %w", err)
	}
	return emails, sms, nil
}

// reachable are the notices that could be told on no channel, of people who have an address now.
// Candidates are looked up one by one, whatever the statistics say.
const reachable = `
with reachable as materialized (
  select n.id, c.email, c.phone
    from notice n
   cross join lateral (select email, phone from candidate where organisation_id = $1 and id = n.candidate_id offset 0) c
   where n.organisation_id = $1 and n.campaign_id = $2 and n.email_state = 'unreachable' and n.sms_state = 'unreachable'
     and (c.email <> '' or c.phone <> ''))`
