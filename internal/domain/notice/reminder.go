package notice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/event"
)

// KindReminder is the kind of notice to whoever has a seat at a sitting that begins soon: to a candidate, or to a buyer.
const KindReminder Kind = "reminder"

// Reminder is a notice of a seat, or of all seats of a reservation, at one sitting that begins soon.
type Reminder struct {
	OrganisationID int64
	ClaimID        int64  // of a candidate; of a buyer the first that their reservation ever had of the sitting
	Reference      string // of the candidate's file, or the reservation
	Name           string
}

// mayArrive are the states of a channel on which a notice arrived, or may have, or still will.
const mayArrive = `('waiting', 'pending', 'sending', 'sent', 'written', 'unknown')`

// seatsSoon are the seats at sittings that begin within 24 hours, whose people have not been reminded of them as they are now: unless they were told
// within those 24 hours where and when it is, by a message that was for them to get. Whoever could not be reached when they were to be is among
// them as soon as they have an address. No sitting lasts longer than a day, so what begins soon is found by when it ends. What a buyer is told
// of a move is of their whole reservation: it is about this sitting only if this one moved. Where it never did, the timeline is not asked.
const seatsSoon = `
with soon as materialized (
  select s.organisation_id, s.id, s.campaign_id, s.revision, s.starts_at, (s.starts_at at time zone c.time_zone)::date as on_date,
         s.event_id is not null and s.revision > 1 and exists (
           select from timeline t where t.organisation_id = s.organisation_id and t.at > s.starts_at - interval '24 hours'
              and t.kind = '` + string(event.KindSittingMoved) + `' and t.sitting_id = s.id) as moved
    from sitting s
    join room r on (r.organisation_id, r.id) = (s.organisation_id, s.room_id)
    join centre c on (c.organisation_id, c.id) = (r.organisation_id, r.centre_id)
    left join event e on (e.organisation_id, e.id) = (s.organisation_id, s.event_id)
   where s.organisation_id = any($1) and s.closed_at is null and s.cancelled_at is null and e.state is distinct from 'cancelled'
     and s.ends_at > (select clock()) and s.ends_at <= (select clock()) + interval '48 hours'
     and s.starts_at > (select clock()) and s.starts_at <= (select clock()) + interval '24 hours'),
seats as (
  select s.organisation_id, k.id as claim_id, s.campaign_id, k.candidate_id, null::bigint as reservation_id, s.on_date, s.revision,
         p.email, p.phone, p.reference, trim(p.family_name || ' ' || p.given_name) as name, g.notices_wait as wait
    from soon s
    join campaign g on (g.organisation_id, g.id) = (s.organisation_id, s.campaign_id)
   cross join lateral (select id, candidate_id from claim where organisation_id = s.organisation_id and sitting_id = s.id and released_at is null offset 0) k
   cross join lateral (select email, phone, reference, family_name, given_name from candidate
                        where organisation_id = s.organisation_id and id = k.candidate_id offset 0) p
   where (select true from notice n where n.organisation_id = s.organisation_id and n.subject = 'claim' and n.subject_id = k.id
             and n.kind in ('convocation', 'change') and n.created_at > s.starts_at - interval '24 hours'
             and (n.email_state in ` + mayArrive + ` or n.sms_state in ` + mayArrive + `) limit 1) is null
   union all
  select s.organisation_id, f.claim_id, null, null, b.reservation_id, s.on_date, s.revision, p.email, p.phone, p.reference, p.name, false
    from soon s
   cross join lateral (select distinct reservation_id from claim where organisation_id = s.organisation_id and sitting_id = s.id
                          and released_at is null and expires_at is null and reservation_id is not null offset 0) b
   cross join lateral (select email, phone, reference, name, confirmed_at from reservation
                        where organisation_id = s.organisation_id and id = b.reservation_id and state = 'confirmed' offset 0) p
   cross join lateral (select min(id) as claim_id from claim
                        where organisation_id = s.organisation_id and reservation_id = b.reservation_id and sitting_id = s.id) f
   where p.confirmed_at <= s.starts_at - interval '24 hours'
     and (not s.moved or (select true from (select * from notice where reservation_id = b.reservation_id offset 0) n
           where n.organisation_id = s.organisation_id and n.kind = 'tickets_moved' and n.created_at > s.starts_at - interval '24 hours'
             and (n.email_state in ` + mayArrive + ` or n.sms_state in ` + mayArrive + `) limit 1) is null)),
due as (
  select w.* from seats w
   where (select true from notice n
           where n.organisation_id = w.organisation_id and n.subject = 'reminder' and n.subject_id = w.claim_id and n.kind = 'reminder'
             and n.on_date = w.on_date and n.revision = w.revision
             and not (n.email_state = 'unreachable' and n.sms_state = 'unreachable' and (w.email <> '' or w.phone <> '')) limit 1) is null)`

// ListReminders lists who is to be reminded now, in the order of their claims, behind one. It locks nothing.
func ListReminders(ctx context.Context, tx pgx.Tx, organisations []int64, after Reminder, most int) ([]Reminder, error) {
	rows, err := tx.Query(ctx, seatsSoon+`
select organisation_id, claim_id, reference, name from due where (organisation_id, claim_id) > ($2, $3) order by organisation_id, claim_id limit $4`,
		pg.PlanAnew, organisations, after.OrganisationID, after.ClaimID, most)
	if err != nil {
		return nil, fmt.Errorf("find who is to be reminded: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Reminder])
	if err != nil {
		return nil, fmt.Errorf("find who is to be reminded: %w", err)
	}
	return due, nil
}

// Remind writes the notices of those who are to be reminded still, and the jobs that send them: by e-mail, or by SMS to whom has no e-mail address. It
// tells how many they are, and whom, by their organisation and claim, no message can reach: theirs is written all the same, so that they are named once.
func Remind(ctx context.Context, tx pgx.Tx, reminders []Reminder) (written int, unreachable []Reminder, err error) {
	n := len(reminders)
	organisations, claims := make([]int64, n), make([]int64, n)
	for i, r := range reminders {
		organisations[i], claims[i] = r.OrganisationID, r.ClaimID
	}
	rows, err := tx.Query(ctx, seatsSoon+`
insert into notice (organisation_id, campaign_id, candidate_id, reservation_id, kind, subject, subject_id, on_date, revision, email_state, sms_state, urgency)
select d.organisation_id, d.campaign_id, d.candidate_id, d.reservation_id, 'reminder', 'reminder', d.claim_id, d.on_date, d.revision,
       case when d.email = '' then 'unreachable' when d.wait then 'waiting' else 'pending' end,
       case when d.email <> '' or d.phone = '' then 'unreachable' when d.wait then 'waiting' else 'pending' end, 2
  from due d join unnest($1::bigint[], $2::bigint[]) w(organisation_id, claim_id) on (w.organisation_id, w.claim_id) = (d.organisation_id, d.claim_id)
 order by d.organisation_id, d.claim_id
    on conflict (organisation_id, subject, subject_id, kind, on_date, revision) do update
   set email_state = excluded.email_state, sms_state = excluded.sms_state
 where notice.email_state = 'unreachable' and notice.sms_state = 'unreachable'
   and (excluded.email_state <> 'unreachable' or excluded.sms_state <> 'unreachable')
returning organisation_id, subject_id, email_state, sms_state`, pg.PlanAnew, organisations, claims)
	if err != nil {
		return 0, nil, fmt.Errorf("write the reminders: %w", err)
	}
	var to Reminder
	var email, sms string
	var emails, texts bool
	_, err = pgx.ForEachRow(rows, []any{&to.OrganisationID, &to.ClaimID, &email, &sms}, func() error {
		emails, texts = emails || email == "pending", texts || sms == "pending"
		if email == "unreachable" && sms == "unreachable" {
			unreachable = append(unreachable, to)
		} else {
			written++
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("write the reminders: %w", err)
	}
	return written, unreachable, wake(ctx, tx, emails, texts)
}
