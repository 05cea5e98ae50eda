-- promise: events_in_order
select true, 'subject_twice', d.organisation_id, jsonb_build_object('endpoint', p.name, 'subject', d.subject, 'times', d.times)
  from (select organisation_id, endpoint_id, subject, count(*) as times from dispatch
         where organisation_id = any($1) and state = 'sending' group by organisation_id, endpoint_id, subject having count(*) > 1) d
  join endpoint p on (p.organisation_id, p.id) = (d.organisation_id, d.endpoint_id)
 union all
-- An event that was tried, and is to be tried again, keeps those behind it. A dead letter lets them pass: replayed, its first attempt is later.
select true, 'event_overtaken', d.organisation_id, jsonb_build_object('endpoint', p.name, 'subject', d.subject, 'kind', d.kind)
  from dispatch d join endpoint p on (p.organisation_id, p.id) = (d.organisation_id, d.endpoint_id)
 where d.organisation_id = any($1) and d.state in ('pending', 'sending') and d.attempts > 0
   and exists (select from dispatch l where l.organisation_id = d.organisation_id and l.endpoint_id = d.endpoint_id and l.subject = d.subject
                  and l.id > d.id and l.state = 'delivered' and l.last_attempt_at > d.first_attempt_at)
 union all
select false, 'events_dead', d.organisation_id,
       jsonb_build_object('endpoint', p.name, 'events', count(*), 'at', jsonb_build_object('at', min(d.ended_at), 'zone', min(o.time_zone)))
  from dispatch d
  join endpoint p on (p.organisation_id, p.id) = (d.organisation_id, d.endpoint_id)
  join organisation o on o.id = d.organisation_id
 where d.organisation_id = any($1) and d.state = 'dead' group by d.organisation_id, p.name
 union all
select false, 'events_wait', d.organisation_id,
       jsonb_build_object('endpoint', p.name, 'events', count(*), 'at', jsonb_build_object('at', min(d.written_at), 'zone', min(o.time_zone)))
  from dispatch d
  join endpoint p on (p.organisation_id, p.id) = (d.organisation_id, d.endpoint_id) and p.disabled_at is null
  join organisation o on o.id = d.organisation_id
 where d.organisation_id = any($1) and d.state in ('pending', 'sending') and d.written_at < (select clock()) - interval '1 day'
 group by d.organisation_id, p.name

-- promise: events_written
-- Each seat that was given lately, while an endpoint wanted to hear of it, has its event. What was delivered is kept for a quarter of a year.
with listening as materialized (
  select p.organisation_id, p.id, p.name, p.kinds, greatest(p.created_at, (select clock()) - interval '60 days',
         (select max(t.at) from timeline t where t.organisation_id = p.organisation_id and t.kind in ('webhook_enabled', 'webhook_edited') and t.facts->>'name' = p.name)) as since
    from endpoint p where p.organisation_id = any($1) and p.disabled_at is null),
unwritten as materialized (
  select k.organisation_id, p.name, k.sitting_id, k.claimed_at, c.reference, c.family_name, c.given_name
    from listening p
    join claim k on k.organisation_id = any($1) and k.organisation_id = p.organisation_id and k.candidate_id is not null
                and k.claimed_at > p.since + interval '5 minutes'
    join candidate c on (c.organisation_id, c.id) = (k.organisation_id, k.candidate_id)
    join campaign g on (g.organisation_id, g.id) = (c.organisation_id, c.campaign_id)
   where (p.kinds = '{}' or 'candidate.moved' = any(p.kinds) and k.replaces_id is not null or 'candidate.seated' = any(p.kinds) and k.replaces_id is null)
     and not exists (select from dispatch d where d.organisation_id = p.organisation_id and d.endpoint_id = p.id
                        and d.subject = 'candidate ' || g.slug || ' ' || c.reference and d.kind in ('candidate.seated', 'candidate.moved')
                        and d.written_at > k.claimed_at - interval '5 minutes'))
select true, 'event_unwritten', u.organisation_id,
       jsonb_build_object('endpoint', u.name, 'reference', u.reference, 'name', concat_ws(' ', u.family_name, nullif(u.given_name, '')), 'sitting', s.reference,
                          'at', jsonb_build_object('at', u.claimed_at, 'zone', v.time_zone))
  from unwritten u
 cross join lateral (select * from sitting where organisation_id = u.organisation_id and id = u.sitting_id offset 0) s
 cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
 cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
