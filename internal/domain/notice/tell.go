package notice

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/timeline"
)

// Readied is what was made ready to be sent.
type Readied struct {
	Emails int
	SMS    int
}

// The kinds of timeline rows that asking to tell leaves.
const (
	KindTellingReleased timeline.Kind = "telling_released"
	KindTellingAgain    timeline.Kind = "telling_again"
)

// toTell finds the campaign whose people the actor may tell.
func toTell(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string) (c admission.Campaign, err error) {
	if err := account.Allow(actor, account.Tell); err != nil {
		return c, err
	}
	return admission.FindCampaign(ctx, db, actor, campaign)
}

// Release lets go of the notices of a campaign that wait for it; a change that was to settle leaves
// at once. What a server asked to have later, on either channel, stays for later.
func Release(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string) (r Readied, err error) {
	return readying(ctx, db, actor, campaign, KindTellingReleased, `
with released as (
  update notice n set email_state = case when w.email then 'pending' else n.email_state end,
                      sms_state = case when w.sms then 'pending' else n.sms_state end,
                      email_due_at = case when w.email then null else n.email_due_at end,
                      sms_due_at = case when w.sms then null else n.sms_due_at end
    from (select id, `+heldBack(ChannelEmail)+` as email, `+heldBack(ChannelSMS)+` as sms from notice n
           where organisation_id = $1 and campaign_id = $2 and (`+heldBack(ChannelEmail)+` or `+heldBack(ChannelSMS)+`)
           order by id for no key update) w
   where n.organisation_id = $1 and n.id = w.id
  returning w.email, w.sms)
select count(*) filter (where email), count(*) filter (where sms) from released`)
}

// heldBack tells whether we alone keep a message from leaving on a channel: it waits to be released, or settles.
func heldBack(channel Channel) string {
	return channel.columns(`(n.{state} = 'waiting' or n.{state} = 'pending' and n.kind = 'change' and n.{due} > clock()
              and not exists (select from delivery d where d.organisation_id = $1 and d.notice_id = n.id and d.channel = '` + string(channel) + `'))`)
}

// Again sends to one candidate, once more, what they are to know of each seat: whatever came of it
// before. What is on its way or waits already is not doubled, channel by channel.
func Again(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign, reference string) (Readied, error) {
	c, err := toTell(ctx, db, actor, campaign)
	if err != nil {
		return Readied{}, err
	}
	var candidate admission.Candidate
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) (err error) {
		candidate, err = findReachable(ctx, tx, c, reference)
		return err
	})
	if err != nil {
		return Readied{}, err
	}
	r, err := readying(ctx, db, actor, campaign, KindTellingAgain, again+latestOf+`n.candidate_id = $3)`+readied, candidate.ID)
	if err == nil && r == (Readied{}) {
		err = problem.Refused("tell_nothing_again", problem.Facts{"candidate": candidate.Name()})
	}
	return r, err
}

// findReachable finds a candidate who can be told something: who has an address.
func findReachable(ctx context.Context, tx pgx.Tx, c admission.Campaign, reference string) (admission.Candidate, error) {
	candidate, err := admission.FindCandidate(ctx, tx, c, reference)
	if err == nil && candidate.Email == "" && candidate.Phone == "" {
		err = problem.Refused("tell_no_address", problem.Facts{"candidate": candidate.Name()})
	}
	return candidate, err
}

// AgainUntold sends once more to all whom no channel reached and who have an address: what failed,
// bounced, or ended without anybody knowing; and by a channel that only wrote into a folder, whoever the other one told.
func AgainUntold(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string) (Readied, error) {
	return readying(ctx, db, actor, campaign, KindTellingAgain, again+latestUntold+untold+readied)
}

// again is a send request of its own: a new message in the place of the one before, to whichever
// addresses the candidate has now.
const (
	again = `with latest as materialized (`
	// The last notice of each seat that says something is what its person is to know; where all were withdrawn, because they know
	// it from one of a seat that they had before, the last. A seat that is over is left in peace,
	// unless its end is what they were not told.
	latestOf = `
select n.id, n.email_state, n.sms_state, c.email = '' as no_email, c.phone = '' as no_phone,
       c.email <> '' and n.email_state not in ` + underWay + ` as email, c.phone <> '' and n.sms_state not in ` + underWay + ` as sms
  from (select distinct on (subject, subject_id) * from notice
         where organisation_id = $1 and campaign_id = $2 and subject = 'claim'
         order by subject, subject_id, told_at is null and email_state = 'withdrawn' and sms_state = 'withdrawn', id desc) n
 cross join lateral (select email, phone from candidate where organisation_id = $1 and id = n.candidate_id offset 0) c
 cross join lateral (select exam_id, released_at from claim where organisation_id = $1 and id = n.subject_id offset 0) k
 where (k.released_at is null or n.kind = 'release' and n.told_at is null)
   and 'too_late' not in (n.email_state, n.sms_state)
   and (c.email <> '' and n.email_state not in ` + underWay + ` or c.phone <> '' and n.sms_state not in ` + underWay + `) and `
	readied = `,
asked as (
  update notice n set request = n.request + 1,
         email_request = case when l.email then n.request + 1 else n.email_request end,
         sms_request = case when l.sms then n.request + 1 else n.sms_request end,
         email_due_at = case when l.email then null else n.email_due_at end,
         sms_due_at = case when l.sms then null else n.sms_due_at end,
         email_state = case when l.email then 'pending' when l.no_email and n.email_state not in ` + underWay + ` then 'unreachable' else n.email_state end,
         sms_state = case when l.sms then 'pending' when l.no_phone and n.sms_state not in ` + underWay + ` then 'unreachable' else n.sms_state end
    from latest l
   where n.organisation_id = $1 and n.id = l.id
     and (not l.email or n.email_state = l.email_state) and (not l.sms or n.sms_state = l.sms_state)
  returning l.email, l.sms)
select count(*) filter (where email), count(*) filter (where sms) from asked`
)

// latestUntold is latestOf where a channel that told somebody does not tell them once more.
var latestUntold = exceptTold("c", latestOf)

// exceptTold changes a statement that chooses what is sent once more, by the addresses in a table of that name: a channel that told
// somebody is left out.
func exceptTold(table, statement string) string {
	return strings.NewReplacer(
		table+".email <> ''", table+".email <> '' and (n.told_at is null or n.email_state = 'written')",
		table+".phone <> ''", table+".phone <> '' and (n.told_at is null or n.sms_state = 'written')").Replace(statement)
}

// untold chooses whom no channel reached, whichever of their notices would have, and what is in a folder.
var untold = `('written' in (n.email_state, n.sms_state)
   or (n.candidate_id, k.exam_id) in (select candidate_id, exam_id from (` + latest("") + `) of where told_at is null)))`

// readying runs a statement that makes messages ready, records that somebody asked for it, and
// queues the jobs that send them.
func readying(ctx context.Context, db *pg.DB, actor timeline.Actor, campaign string, kind timeline.Kind, statement string, more ...any) (r Readied, err error) {
	c, err := toTell(ctx, db, actor, campaign)
	if err != nil {
		return r, err
	}
	err = db.Tx(ctx, []int64{c.OrganisationID}, func(tx pgx.Tx) error {
		// The campaign's lock: a release of a seat withdraws what is unsent, all of it or nothing.
		if _, err := admission.Lock(ctx, tx, c); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, statement, append([]any{c.OrganisationID, c.ID}, more...)...).Scan(&r.Emails, &r.SMS); err != nil {
			return fmt.Errorf("make the messages ready: %w", err)
		}
		if r == (Readied{}) {
			return nil
		}
		err := timeline.Record(ctx, tx, c.OrganisationID, actor, timeline.Entry{
			Kind: kind, Subject: timeline.Subject{CampaignID: c.ID},
			Facts: map[string]int{"emails": r.Emails, "sms": r.SMS},
		})
		if err != nil {
			return err
		}
		return wake(ctx, tx, r.Emails > 0, r.SMS > 0)
	})
	return r, err
}
