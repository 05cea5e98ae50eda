-- promise: told_as_it_is
-- Of each seat to come somebody wrote a message as the sitting is now; and whoever was told of a seat that they have no more, that it is
-- taken back, or where they sit instead. What was written and reached nobody is a decision: somebody must tell them.
with seats as materialized (
  select k.organisation_id, k.id, k.candidate_id, k.exam_id, k.seat_label, s.reference as sitting, s.revision
    from sitting s join claim k on (k.organisation_id, k.sitting_id) = (s.organisation_id, s.id)
   where s.organisation_id = any($1) and s.campaign_id is not null and s.cancelled_at is null and s.starts_at > (select clock())
     and k.organisation_id = any($1) and k.candidate_id is not null and k.released_at is null),
told as materialized (
  select k.organisation_id, k.id, k.candidate_id, k.exam_id, k.seat_label, k.sitting, n.kind, n.id as notice_id, n.told_at is null
         and n.email_state in ('failed', 'bounced', 'unknown', 'unreachable') and n.sms_state in ('failed', 'bounced', 'unknown', 'unreachable') as vain
    from seats k
    left join notice n on n.organisation_id = any($1) and n.organisation_id = k.organisation_id and n.subject = 'claim' and n.subject_id = k.id and n.revision = k.revision
                      and n.kind in ('convocation', 'change')),
of_seats as (
  select t.notice_id is null as broken,
         case when t.notice_id is not null and t.kind = 'change' then 'change_untold' when t.notice_id is not null then 'seat_untold'
              when w.told then 'told_otherwise' else 'seat_unwritten' end as code,
         t.organisation_id, t.candidate_id, t.sitting, t.seat_label
    from told t
   cross join lateral (select exists (select from (select * from notice where candidate_id = t.candidate_id offset 0) n
                                       cross join lateral (select exam_id from claim where organisation_id = n.organisation_id and id = n.subject_id offset 0) o
                                      where n.organisation_id = t.organisation_id and o.exam_id = t.exam_id and n.subject = 'claim' and n.told_at is not null) as told) w
   where t.notice_id is null or t.vain),
-- Messages to whom a seat was taken back from, the last that reached them of the exam.
gone as materialized (
  select k.organisation_id, k.candidate_id, k.exam_id, s.reference as sitting, k.seat_label, n.id as notice_id
    from sitting s join claim k on (k.organisation_id, k.sitting_id) = (s.organisation_id, s.id)
    join notice n on n.organisation_id = k.organisation_id and n.subject = 'claim' and n.subject_id = k.id and n.kind in ('convocation', 'change')
   where s.organisation_id = any($1) and s.campaign_id is not null and s.starts_at > (select clock())
     and k.organisation_id = any($1) and n.organisation_id = any($1) and k.candidate_id is not null and k.released_at is not null and n.told_at is not null),
of_gone as (
  select l.id is null as broken, case when l.id is null then 'told_gone' else 'end_untold' end as code,
         g.organisation_id, g.candidate_id, g.sitting, g.seat_label
    from gone g
    left join lateral (
      select n.id, n.told_at, n.email_state, n.sms_state from (select * from notice where candidate_id = g.candidate_id offset 0) n
        cross join lateral (select exam_id from claim where organisation_id = n.organisation_id and id = n.subject_id offset 0) o
       where n.organisation_id = g.organisation_id and o.exam_id = g.exam_id and n.subject = 'claim' and n.kind = 'release' and n.id > g.notice_id
       order by n.told_at is null, n.id desc limit 1) l on true
   where (l.id is null or l.told_at is null and l.email_state in ('failed', 'bounced', 'unknown', 'unreachable')
                          and l.sms_state in ('failed', 'bounced', 'unknown', 'unreachable'))
     and not exists (select from claim o where o.organisation_id = g.organisation_id and o.candidate_id = g.candidate_id and o.exam_id = g.exam_id
                        and o.released_at is null))
select w.broken, w.code, w.organisation_id,
       jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')), 'sitting', w.sitting,
                          'seat', coalesce(w.seat_label, ''), 'campaign', g.slug)
  from (select * from of_seats union all select * from of_gone) w
  cross join lateral (select * from candidate where organisation_id = w.organisation_id and id = w.candidate_id offset 0) c
  cross join lateral (select * from campaign where organisation_id = c.organisation_id and id = c.campaign_id offset 0) g

-- promise: told_once
select true, 'notice_twice', n.organisation_id,
       jsonb_build_object('number', min(n.id)::text, 'kind', n.kind, 'times', count(*))
  from notice n where n.organisation_id = any($1)
 group by n.organisation_id, n.subject, n.subject_id, n.kind, n.on_date, n.revision having count(*) > 1
 union all
-- A server that took a message, or may have, may get it once more under the same name, and never under another.
select true, 'message_twice', d.organisation_id,
       jsonb_build_object('number', d.notice_id::text, 'channel', jsonb_build_object('word', 'channel_name_' || d.channel), 'address', min(d.address), 'times', count(distinct d.message_key))
  from delivery d where d.organisation_id = any($1) and d.state in ('sent', 'unknown', 'bounced')
 group by d.organisation_id, d.notice_id, d.channel, d.request having count(distinct d.message_key) > 1
 union all
select true, 'told_after', d.organisation_id,
       jsonb_build_object('reference', c.reference, 'sitting', s.reference, 'channel', jsonb_build_object('word', 'channel_name_' || d.channel),
                          'at', jsonb_build_object('at', coalesce(d.handed_at, d.started_at), 'zone', v.time_zone),
                          'ended', jsonb_build_object('at', s.ends_at, 'zone', v.time_zone))
  from delivery d
  join notice n on (n.organisation_id, n.id) = (d.organisation_id, d.notice_id) and n.candidate_id is not null and n.kind in ('convocation', 'change', 'reminder')
  join claim k on (k.organisation_id, k.id) = (n.organisation_id, n.subject_id)
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
  cross join lateral (select * from candidate where organisation_id = n.organisation_id and id = n.candidate_id offset 0) c
 where d.organisation_id = any($1) and n.organisation_id = any($1) and k.organisation_id = any($1) and d.state = 'sent' and coalesce(d.handed_at, d.started_at) > s.ends_at

-- promise: telling_goes_on
-- Whatever is being sent has its attempt; and what is due does not lie for a day.
with under as materialized (
  select n.organisation_id, n.id, n.kind, w.channel
    from notice n cross join lateral (values ('email', n.email_state), ('sms', n.sms_state)) w(channel, state)
   where n.organisation_id = any($1) and (n.email_state = 'sending' or n.sms_state = 'sending') and w.state = 'sending')
select true, 'notice_stuck', u.organisation_id, jsonb_build_object('number', u.id::text, 'kind', u.kind, 'channel', jsonb_build_object('word', 'channel_name_' || u.channel))
  from under u
 where not exists (select from delivery d where d.organisation_id = u.organisation_id and d.notice_id = u.id and d.channel = u.channel and d.state = 'sending')
 union all
select false, 'messages_abandoned', d.organisation_id,
       jsonb_build_object('channel', jsonb_build_object('word', 'channel_name_' || d.channel), 'messages', count(*),
                          'at', jsonb_build_object('at', min(d.lease_until), 'zone', min(o.time_zone)))
  from delivery d join organisation o on o.id = d.organisation_id
 where d.organisation_id = any($1) and d.state = 'sending' and d.lease_until < (select clock()) - interval '1 hour'
 group by d.organisation_id, d.channel
 union all
select false, 'messages_wait', n.organisation_id,
       jsonb_build_object('channel', jsonb_build_object('word', 'channel_name_' || w.channel), 'messages', count(*),
                          'at', jsonb_build_object('at', min(greatest(n.created_at, w.due_at)), 'zone', min(o.time_zone)))
  from notice n join organisation o on o.id = n.organisation_id
 cross join lateral (values ('email', n.email_state, n.email_due_at), ('sms', n.sms_state, n.sms_due_at)) w(channel, state, due_at)
 where n.organisation_id = any($1) and (n.email_state = 'pending' or n.sms_state = 'pending') and w.state = 'pending'
   and greatest(n.created_at, w.due_at) < (select clock()) - interval '1 day'
 group by n.organisation_id, w.channel
