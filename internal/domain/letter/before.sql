-- What candidates were last told of an exam before a change, in the facts of that moment: on whichever channel, and on the one by
-- which the change is told. Two rows a change, in this order. Looked up notice by notice, by the candidate.
select coalesce(f.facts, 'null') as facts, coalesce(e.words, '') as words
  from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) with ordinality w(notice_id, candidate_id, exam_id, channel, place)
 cross join (values (false), (true)) asked(alone)
  left join lateral (
    select n.id, n.subject_id, n.created_at
      from (select * from notice where candidate_id = w.candidate_id offset 0) n
     where n.organisation_id = $1 and n.id < w.notice_id
       and n.subject = 'claim' and n.kind in ('convocation', 'change')
       and case when asked.alone
                then case w.channel when 'sms' then n.sms_state else n.email_state end in ('sent', 'unknown')
                  or exists (select from delivery d where d.organisation_id = $1 and d.notice_id = n.id
                                                      and d.channel = w.channel and d.state in ('sent', 'unknown'))
                else n.told_at is not null or n.email_state in ('sent', 'unknown') or n.sms_state in ('sent', 'unknown') end
       and (select exam_id from claim where organisation_id = $1 and id = n.subject_id) = w.exam_id
     order by n.id desc limit 1) t on true
  left join lateral (
    select l.facts
      from (select * from timeline where candidate_id = w.candidate_id offset 0) l
     where l.organisation_id = $1 and l.claim_id = t.subject_id
       and l.kind in ('seated', 'sitting_moved') and l.at <= t.created_at
     order by l.id desc limit 1) f on true
  left join lateral (
    select d.words
      from delivery d
     where d.organisation_id = $1 and d.notice_id = t.id and d.channel = 'email' and d.state in ('sent', 'unknown')
     order by d.id desc limit 1) e on true
 order by w.place, asked.alone
