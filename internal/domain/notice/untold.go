package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Counts are the seats of a campaign by how far their people know of them, each in one place, and
// the messages that are still to go.
type Counts struct {
	Told    int `json:"told"`
	Half    int `json:"half_told"` // of the told: by one channel only (StageHalf)
	Pending int `json:"pending"`   // on their way
	Waiting int `json:"waiting"`   // for somebody to release them
	Written int `json:"written"`   // into a folder: they reached nobody
	Untold  int `json:"untold"`    // no message reached the person
	People  int `json:"people"`    // behind those who are not told: who sits two exams is one person
	Emails  int `json:"emails"`    // messages on their way or waiting, by channel
	SMS     int `json:"sms"`
}

// Stage is how far the person of a seat knows what they are to know.
type Stage string

// The stages.
const (
	StageTold    Stage = "told"
	StagePending Stage = "pending"
	StageWaiting Stage = "waiting"
	StageWritten Stage = "written"
	StageUntold  Stage = "untold"
	StageHalf    Stage = "half" // told, and by one channel only: what goes by the other waits for a release, was refused, came back, was written into a folder, or nobody knows
)

// stage is how far the person of a notice knows; half, whether one channel alone told them.
const (
	stage = `case when n.told_at is not null then 'told'
            when 'waiting' in (n.email_state, n.sms_state) then 'waiting'
            when n.email_state in ('pending', 'sending') or n.sms_state in ('pending', 'sending') then 'pending'
            when 'written' in (n.email_state, n.sms_state) then 'written'
            else 'untold' end`
	half = `n.told_at is not null and (n.email_state in ` + nothing + ` or n.sms_state in ` + nothing + `)`

	// Nothing is known to have reached anybody on the channel, and nothing leaves there of itself.
	nothing = `('waiting', 'failed', 'bounced', 'unknown', 'written')`

	// The notice says something to its person, a candidate or a buyer: somebody was told, or it was not withdrawn on every channel
	// on which it had an address. What was withdrawn on one and came to nothing on the other is not told.
	says = `(n.told_at is not null or 'withdrawn' not in (n.email_state, n.sms_state)
         or n.email_state not in ('withdrawn', 'unreachable') or n.sms_state not in ('withdrawn', 'unreachable'))`
)

// latest is, for each candidate and exam, the last notice that says something, with its stage, and whether one channel
// alone told it: the one rule behind counts, lists and pages. A channel on which a notice was withdrawn says what it said before:
// who was moved and moved back knows what they were told there, and one that had told nothing told it meanwhile, or is to. A
// notice that was withdrawn before anybody read it says nothing (says). Of a seat that was taken back only its end is to
// be known. The notices are narrowed by a condition that begins with "and", or by none.
func latest(narrowed string) string {
	return `
select n.*, ` + stage + ` as stage, ` + half + ` as half from (
  select l.id, l.candidate_id, l.exam_id, l.live_claim_id, l.created_at, coalesce(e.kind, m.kind, l.kind) as kind,
         coalesce(l.told_at, e.told_at, m.told_at) as told_at, coalesce(e.email_state, l.email_state) as email_state,
         coalesce(m.sms_state, l.sms_state) as sms_state, coalesce(e.id, l.id) as email_id, coalesce(m.id, l.id) as sms_id
    from (
      select distinct on (n.candidate_id, k.exam_id) n.*, k.exam_id, live.claim_id as live_claim_id
        from notice n
       cross join lateral (select exam_id from claim where organisation_id = $1 and id = n.subject_id offset 0) k
        left join lateral (select id as claim_id from claim where organisation_id = $1 and candidate_id = n.candidate_id and exam_id = k.exam_id
                              and released_at is null offset 0) live on true
       where n.organisation_id = $1 and n.campaign_id = $2 and n.subject = 'claim' and (live.claim_id is not null or n.kind = 'release')
         and ` + says + ` ` + narrowed + `
       order by n.candidate_id, k.exam_id, n.id desc) l
    left join lateral (` + saidBefore(ChannelEmail) + `) e on true
    left join lateral (` + saidBefore(ChannelSMS) + `) m on true) n`
}

// saidBefore is what a channel said before the notice l, where l is withdrawn on it.
func saidBefore(channel Channel) string {
	return channel.columns(`
      select o.* from (select * from notice where candidate_id = l.candidate_id offset 0) o
       where l.{state} = 'withdrawn' and l.told_at is null and o.organisation_id = $1 and o.id < l.id
         and o.subject = 'claim' and o.kind in ('convocation', 'change') and (o.{state} <> 'withdrawn' or o.told_at is not null)
         and (select exam_id from claim where organisation_id = $1 and id = o.subject_id) = l.exam_id
       order by o.id desc limit 1`)
}

// Count counts the seats of a campaign by how far their people know.
func Count(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64) (c Counts, err error) {
	err = tx.QueryRow(ctx, `
with latest as (`+latest("")+`)
select count(*) filter (where stage = 'told'), count(*) filter (where half), count(*) filter (where stage = 'pending'), count(*) filter (where stage = 'waiting'),
       count(*) filter (where stage = 'written'), count(*) filter (where stage = 'untold'),
       count(distinct candidate_id) filter (where stage <> 'told')
  from latest`, pg.PlanAnew, organisationID, campaignID).Scan(&c.Told, &c.Half, &c.Pending, &c.Waiting, &c.Written, &c.Untold, &c.People)
	if err == nil {
		err = tx.QueryRow(ctx, `
select count(*) filter (where email_state in ('waiting', 'pending', 'sending')), count(*) filter (where sms_state in ('waiting', 'pending', 'sending'))
  from notice where organisation_id = $1 and campaign_id = $2`, organisationID, campaignID).Scan(&c.Emails, &c.SMS)
	}
	if err != nil {
		return c, fmt.Errorf("count the notices: %w", err)
	}
	return c, nil
}

// UnderWay are messages of a campaign that are being handed over on a channel.
type UnderWay struct {
	Channel  Channel
	Holder   string // who hands them over, and gave a sign of it; empty: their sender gives none
	Messages int
	Until    time.Time // when at the latest the last of them is given up as unknown, without a sign
}

func readUnderWay(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64) ([]UnderWay, error) {
	rows, err := tx.Query(ctx, `
select d.channel, coalesce(h.holder, '') as holder, count(*) as messages,
       coalesce(max(d.lease_until) filter (where d.lease_until <= clock() + $4::interval), clock()) as until
  from delivery d join notice n on (n.organisation_id, n.id) = (d.organisation_id, d.notice_id)
  left join lateral (select holder from channel where name = d.channel and `+isHeld+`
                        and d.lease_until between clock() + $5::interval and clock() + $4::interval) h on true
 where d.organisation_id = $1 and d.state = 'sending' and n.campaign_id = $3
 group by 1, 2 order by 1, 2`, organisationID, heldAtMost, campaignID, leasedAtMost, leaseFor-holdFor)
	var all []UnderWay
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByName[UnderWay])
	}
	if err != nil {
		return nil, fmt.Errorf("count the messages under way: %w", err)
	}
	return all, nil
}

// Later counts the messages of a campaign, or of an event, on a channel that are to be tried again, and tells when the first
// of them is: a server asked for it, or the message failed and waits for its next attempt. The other id is 0.
func Later(ctx context.Context, tx pgx.Tx, organisationID, campaignID, eventID int64, channel Channel) (messages int, from time.Time, err error) {
	err = tx.QueryRow(ctx, channel.columns(`
select count(*), coalesce(min(n.{due}), clock())
  from notice n
 where n.organisation_id = $1 and ($2 = 0 or n.campaign_id = $2) and ($4 = 0 or `+ofEvent(4)+`) and n.{state} = 'pending' and not `+dueNow+`
   and exists (select from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = $3 and d.request = n.{request})`),
		organisationID, campaignID, channel, eventID).Scan(&messages, &from)
	if err != nil {
		return 0, from, fmt.Errorf("count the messages that are tried again: %w", err)
	}
	return messages, from, nil
}

// SentSince counts the messages of a campaign that left on a channel since an instant, whoever sent them.
func SentSince(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, channel Channel, since time.Time) (messages int, err error) {
	err = tx.QueryRow(ctx, `
select count(*)
  from notice n join delivery d on (d.organisation_id, d.notice_id) = (n.organisation_id, n.id)
 where n.organisation_id = $1 and n.campaign_id = $2 and d.channel = $3 and d.state in ('sent', 'written') and d.ended_at >= $4`,
		organisationID, campaignID, channel, since).Scan(&messages)
	if err != nil {
		return 0, fmt.Errorf("count the messages that left: %w", err)
	}
	return messages, nil
}

// Stages tells, by claim, how far the people of these seats know; StageHalf stands for the told whom one channel alone
// told. A seat that nobody wrote a notice for is missing.
func Stages(ctx context.Context, tx pgx.Tx, organisationID, campaignID int64, claimIDs []int64) (map[int64]Stage, error) {
	rows, err := tx.Query(ctx, `with latest as (`+latest("and live.claim_id = any($3)")+`)
select live_claim_id, case when half then 'half' else stage end from latest`, pg.PlanAnew, organisationID, campaignID, claimIDs)
	if err != nil {
		return nil, fmt.Errorf("read how far people know: %w", err)
	}
	stages := map[int64]Stage{}
	var claimID int64
	var stage Stage
	if _, err := pgx.ForEachRow(rows, []any{&claimID, &stage}, func() error { stages[claimID] = stage; return nil }); err != nil {
		return nil, fmt.Errorf("read how far people know: %w", err)
	}
	return stages, nil
}

// Untold is somebody whom a notice has not reached: to be phoned, or whose address is to be
// corrected.
type Untold struct {
	Reference  string
	FamilyName string
	GivenName  string
	Kind       Kind
	Email      string // as they are now
	Phone      string
	EmailState string
	SMSState   string
	EmailWhy   Why
	SMSWhy     Why
	Stage      Stage
	Exam       string
	WrittenAt  time.Time
}

// Why says what came of the last attempt on a channel.
type Why struct {
	Reason string // a code, whose sentence is channel_<reason>; empty: the server said it, or nothing was tried
	Reply  string // of the server
}

// Name is the person's, as lists show it.
func (u Untold) Name() string {
	return admission.Candidate{FamilyName: u.FamilyName, GivenName: u.GivenName}.Name()
}

// EachUntold hands over, one by one, whom the notices of a campaign have not reached: those given
// up first, then what was only written into a folder, what is on its way and what waits. Filing
// order within; who sits several exams stands there for each. How to reach people is for those who tell them.
func EachUntold(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, each func(Untold) error) error {
	return readOf(ctx, db, actor, campaign, func(tx pgx.Tx, c admission.Campaign) error { return list(ctx, tx, c, ofUntold, each) })
}

// EachHalfTold hands over, one by one and in filing order, who was told by one channel while what goes by the other waits to
// be released, was refused, came back, or ended without anybody knowing: whom only an SMS reached has no letter.
func EachHalfTold(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, each func(Untold) error) error {
	return readOf(ctx, db, actor, campaign, func(tx pgx.Tx, c admission.Campaign) error { return list(ctx, tx, c, ofHalf, each) })
}

// Standing is what became of the notices of a campaign.
type Standing struct {
	Counts
	UnderWay []UnderWay
}

// Stand reads at one moment what became of the notices of a campaign, and hands over those whom EachUntold names and then
// those of EachHalfTold: while others send, sums of several moments do not come out.
func Stand(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, each func(Untold) error) (at Standing, err error) {
	err = readOf(ctx, db, actor, campaign, func(tx pgx.Tx, c admission.Campaign) (err error) {
		if at.Counts, err = Count(ctx, tx, c.OrganisationID, c.ID); err != nil {
			return err
		}
		if at.UnderWay, err = readUnderWay(ctx, tx, c.OrganisationID, c.ID); err != nil {
			return err
		}
		if err = list(ctx, tx, c, ofUntold, each); err != nil {
			return err
		}
		return list(ctx, tx, c, ofHalf, each)
	})
	return at, err
}

// readOf opens the one moment at which a campaign is read for those who tell its people.
func readOf(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, read func(pgx.Tx, admission.Campaign) error) error {
	if err := account.Allow(actor, account.Reach); err != nil {
		return err
	}
	c, err := admission.FindCampaign(ctx, db, actor, campaign)
	if err != nil {
		return err
	}
	return db.Read(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error { return read(tx, c) })
}

// Whom a list names.
const (
	ofUntold = `n.stage <> 'told'`
	ofHalf   = `n.half`
)

func list(ctx context.Context, tx pgx.Tx, c admission.Campaign, which string, each func(Untold) error) error {
	rows, err := tx.Query(ctx, `
with sorted as materialized (`+latest("")+`)
select c.reference, c.family_name, c.given_name, n.kind, c.email, c.phone, n.email_state, n.sms_state, n.stage, x.code, n.created_at,
       coalesce(e.reason, ''), coalesce(e.reply, ''), coalesce(m.reason, ''), coalesce(m.reply, '')
  from sorted n
 cross join lateral (select * from candidate where organisation_id = $1 and id = n.candidate_id offset 0) c
  join exam x on (x.organisation_id, x.id) = ($1, n.exam_id)
  left join lateral (select reason, reply from delivery d where d.organisation_id = $1 and d.notice_id = n.email_id and d.channel = 'email' order by d.id desc limit 1) e on true
  left join lateral (select reason, reply from delivery d where d.organisation_id = $1 and d.notice_id = n.sms_id and d.channel = 'sms' order by d.id desc limit 1) m on true
 where `+which+`
 order by array_position(array['untold', 'written', 'pending', 'waiting'], n.stage), c.filed_at, c.id, n.id`, pg.PlanAnew, c.OrganisationID, c.ID)
	if err != nil {
		return fmt.Errorf("list who was not told: %w", err)
	}
	var u Untold
	_, err = pgx.ForEachRow(rows, []any{
		&u.Reference, &u.FamilyName, &u.GivenName, &u.Kind, &u.Email, &u.Phone, &u.EmailState, &u.SMSState,
		&u.Stage, &u.Exam, &u.WrittenAt, &u.EmailWhy.Reason, &u.EmailWhy.Reply, &u.SMSWhy.Reason, &u.SMSWhy.Reply,
	}, func() error {
		if which == ofHalf {
			u.Stage = StageHalf
		}
		return each(u)
	})
	if err != nil {
		return fmt.Errorf("list who was not told: %w", err)
	}
	return nil
}
