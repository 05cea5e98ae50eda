// Package notice keeps what people must be told, and tells them. A notice is written in the
// transaction of its cause, once for a subject, a kind, a day and a revision; sending happens after
// the commit, message by message, each attempt a delivery that keeps its words and what came of it.
// What is said, and whether it is still true, is decided by whoever defines the kind.
//
// State and lease live per notice and channel: waiting (for somebody to release it) → pending →
// sending → sent, failed, bounced, unknown, too_late, unreachable or withdrawn. A notice is told
// when one channel succeeded.
package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/queue"
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

// settleFor is how long a change waits before it is sent: whoever moves a sitting often moves it
// again at once, and people are told the last word only.
const settleFor = "2 minutes"

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

// Write adds the notices in one statement, and the jobs that send them; one that exists already
// stays as it is. With wait they are kept until somebody releases them.
func Write(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, wait bool, notices ...Notice) error {
	if len(notices) == 0 {
		return nil
	}
	n := len(notices)
	kinds, claims, candidates := make([]string, n), make([]int64, n), make([]int64, n)
	days, revisions, emails, phones := make([]time.Time, n), make([]int, n), make([]bool, n), make([]bool, n)
	var anyEmail, anyPhone bool
	for i, notice := range notices {
		kinds[i], claims[i], candidates[i] = string(notice.Kind), notice.ClaimID, notice.CandidateID
		days[i], revisions[i], emails[i], phones[i] = notice.On, notice.Revision, notice.HasEmail, notice.HasPhone
		anyEmail, anyPhone = anyEmail || notice.HasEmail, anyPhone || notice.HasPhone
	}
	args := []any{organisationID, campaignID, ready(wait), kinds, claims, candidates, days, revisions, emails, phones, settleFor}
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
	if wait {
		return nil
	}
	return wake(ctx, tx, anyEmail, anyPhone)
}

// ready is the state of a notice that is to be told on a channel.
func ready(wait bool) string {
	if wait {
		return "waiting"
	}
	return "pending"
}

// wake queues the jobs that send what this transaction made ready.
func wake(ctx context.Context, tx pgx.Tx, email, sms bool) error {
	var jobs []queue.Job
	if email {
		jobs = append(jobs, Deliver{ChannelEmail})
	}
	if sms {
		jobs = append(jobs, Deliver{ChannelSMS})
	}
	return queue.Insert(ctx, tx, jobs...)
}

// The clock is read once, not by the default of each row.
const insertNotices = `
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state,
                    urgency, email_due_at, sms_due_at, created_at)
select $1, $2, w.candidate_id, w.kind, 'claim', w.claim_id, w.on_date, w.revision,
       case when w.has_email then $3 else 'unreachable' end, case when w.has_phone then $3 else 'unreachable' end,
       case w.kind when 'convocation' then 1 else 0 end,
       case w.kind when 'change' then (select clock()) + $11::interval end, case w.kind when 'change' then (select clock()) + $11::interval end,
       (select clock())
  from unnest($4::text[], $5::bigint[], $6::bigint[], $7::date[], $8::int[], $9::bool[], $10::bool[])
       w(kind, claim_id, candidate_id, on_date, revision, has_email, has_phone)`

// Withdraw takes back what was not sent yet about claims that are no longer true, channel by
// channel, and tells whose holders know of no seat that they have: the last word that reached them about
// the exam, if any did, is that their seat was taken back. A change that was not sent follows something
// that was. Who may have been told (a message is under way, or what came of it is unknown) counts as told.
func Withdraw(ctx context.Context, tx pgx.Tx, organisationID int64, claimIDs ...int64) (untold map[int64]bool, err error) {
	_, err = tx.Exec(ctx, `
update notice set email_state = case when `+unsent("email_state")+` then 'withdrawn' else email_state end,
                  sms_state = case when `+unsent("sms_state")+` then 'withdrawn' else sms_state end
 where organisation_id = $1 and subject = 'claim' and subject_id = any($2)
   and (`+unsent("email_state")+` or `+unsent("sms_state")+`)`, organisationID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("withdraw the notices: %w", err)
	}
	// A statement of its own: what was told until the rows above were locked is seen.
	rows, err := tx.Query(ctx, `
select k.id, coalesce(known.kind, 'release') = 'release'
  from unnest($2::bigint[]) w(claim_id)
 cross join lateral (select id, candidate_id, exam_id from claim where organisation_id = $1 and id = w.claim_id offset 0) k
  left join lateral (
    select n.kind from (select * from notice where candidate_id = k.candidate_id offset 0) n
     cross join lateral (select exam_id from claim where organisation_id = $1 and id = n.subject_id offset 0) of
     where n.organisation_id = $1 and n.subject = 'claim' and of.exam_id = k.exam_id
       and (n.told_at is not null or exists (
         select from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.state in ('sending', 'sent', 'unknown')))
     order by n.id desc limit 1) known on true`, organisationID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("read who was told: %w", err)
	}
	untold = map[int64]bool{}
	var id int64
	var first bool
	if _, err := pgx.ForEachRow(rows, []any{&id, &first}, func() error { untold[id] = first; return nil }); err != nil {
		return nil, fmt.Errorf("read who was told: %w", err)
	}
	return untold, nil
}

// unsent says of a channel's state that nothing was sent on it, and that something still may be.
func unsent(state string) string {
	return `(` + state + ` in ('waiting', 'pending') or ` + state + ` = 'unreachable' and told_at is null)`
}

// Retry makes ready, on each channel on which nothing arrived and nothing is under way, what could not be told there: for
// want of an address that is known meanwhile, or because the address that failed was replaced. Whoever was told by the
// other channel in the meantime gets it too: only an e-mail brings the letter, and what was promised does not hang on
// which channel goes first. Whatever waits on the other channel keeps waiting there. It tells how many people that
// concerns. The caller holds the campaign's lock: what a release withdraws meanwhile stays withdrawn.
func Retry(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, wait bool) (people int, err error) {
	var emails, sms int
	err = tx.QueryRow(ctx, reachable+`,
retried as (
  update notice n
     set email_state = case when r.by_email then $3 else n.email_state end,
         sms_state = case when r.by_sms then $3 else n.sms_state end,
         request = n.request + case when r.by_email and r.email_again or r.by_sms and r.sms_again then 1 else 0 end,
         email_request = case when r.by_email and r.email_again then n.request + 1 else n.email_request end,
         sms_request = case when r.by_sms and r.sms_again then n.request + 1 else n.sms_request end
    from reachable r
   where n.organisation_id = $1 and n.id = r.id
     and (not r.by_email or n.email_state = r.email_state) and (not r.by_sms or n.sms_state = r.sms_state)
  returning n.candidate_id, r.by_email, r.by_sms)
select count(distinct candidate_id), count(*) filter (where by_email), count(*) filter (where by_sms) from retried`,
		organisationID, campaignID, ready(wait)).Scan(&people, &emails, &sms)
	if err != nil {
		return 0, fmt.Errorf("tell those who have an address now: %w", err)
	}
	if wait {
		return people, nil
	}
	return people, wake(ctx, tx, emails > 0, sms > 0)
}

// Retriable counts the messages that Retry would make ready.
func Retriable(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64) (emails, sms int, err error) {
	err = tx.QueryRow(ctx, reachable+` select count(*) filter (where by_email), count(*) filter (where by_sms) from reachable`,
		organisationID, campaignID).Scan(&emails, &sms)
	if err != nil {
		return 0, 0, fmt.Errorf("count those who have an address now: %w", err)
	}
	return emails, sms, nil
}

// underWay are the states of a channel on which something may still come of itself.
const underWay = `('waiting', 'pending', 'sending')`

// reachable are the notices with the channels on which nothing arrived and nothing is under way, of people who have an
// address there now to which nothing was sent in vain. Each channel is judged for itself: one that has no server, or does
// not answer, keeps nobody from being told on the other, and what was withdrawn on one says nothing newer there. A seat that is
// over is left in peace, unless its end is what they were not told; and who was told by the other channel is, once the sitting
// began. Claims, candidates and deliveries are looked up one by one, whatever the statistics say; the condition on the states
// alone stands there again so that nobody is looked up who was told on both.
var reachable = `
with unheard as materialized (
  select n.id, n.candidate_id, n.kind, n.subject, n.subject_id, n.told_at, n.email_state, n.sms_state, c.email, c.phone
    from notice n
   cross join lateral (select email, phone from candidate where organisation_id = $1 and id = n.candidate_id offset 0) c
   where n.organisation_id = $1 and n.campaign_id = $2 and n.subject = 'claim' and 'too_late' not in (n.email_state, n.sms_state)
     and (n.email_state not in ` + heard + ` or n.sms_state not in ` + heard + `)
     and (n.email_state not in ` + heard + ` and c.email <> '' or n.sms_state not in ` + heard + ` and c.phone <> '')),
reachable as materialized (
  select * from (
    select n.id, n.email_state, n.sms_state,
           n.email_state not in ` + heard + ` and n.email <> '' and ` + unasked(ChannelEmail, "n.email") + ` as by_email,
           n.sms_state not in ` + heard + ` and n.phone <> '' and ` + unasked(ChannelSMS, "n.phone") + ` as by_sms,
           n.email_state <> 'unreachable' as email_again, n.sms_state <> 'unreachable' as sms_again
      from unheard n
     cross join lateral (select released_at, sitting_id from claim where organisation_id = $1 and id = n.subject_id offset 0) k
     where (k.released_at is null or n.kind = 'release' and n.told_at is null)
       and (n.told_at is null or (select starts_at from sitting where organisation_id = $1 and id = k.sitting_id) > clock())) r
   where r.by_email or r.by_sms)`

// heard are the states of a channel from which nothing new is to be expected by sending once more: a message is under way,
// arrived, or is not to be sent.
const heard = `('waiting', 'pending', 'sending', 'sent', 'withdrawn')`

// unasked tells that nothing of a notice was sent to an address, and that no newer one of its subject is told on the channel.
func unasked(channel Channel, address string) string {
	return channel.columns(`not exists (select from delivery d where d.organisation_id = $1 and d.notice_id = n.id
                                            and d.channel = '` + string(channel) + `' and d.address = ` + address + `)
             and not exists (select from (select * from notice where candidate_id = n.candidate_id offset 0) e
                              where e.organisation_id = $1 and e.subject = n.subject and e.subject_id = n.subject_id and e.id > n.id
                                and e.{state} <> 'withdrawn')`)
}
