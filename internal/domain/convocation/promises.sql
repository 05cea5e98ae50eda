-- promise: seated_called
-- Who has a seat, and would not be called: a payment was reversed or the status changed since, and somebody must decide. That somebody was
-- seated who had never paid no rule allows.
with doubtful as materialized (
  select $3::bigint as organisation_id, g.fee_minor, g.currency, c.*
    from candidacy($3, $4) c join campaign g on (g.organisation_id, g.id) = ($3, $4)
   where not c.called)
select not c.paid and u.recorded_at is null,
       case when c.paid then 'seated_status_closed' when u.recorded_at is null then 'seated_unpaid' else 'seated_reversed' end, c.organisation_id,
       jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')), 'sitting', s.reference,
                          'seat', coalesce(k.seat_label, ''), 'status', t.label, 'owed', jsonb_build_object('minor', greatest(c.fee_minor - c.paid_minor, 0), 'currency', c.currency),
                          'at', jsonb_build_object('at', case when c.paid then coalesce(l.at, k.claimed_at) else coalesce(u.recorded_at, k.claimed_at) end, 'zone', v.time_zone),
                          'why', coalesce(case when c.paid then '' else u.reason end, ''), 'who', coalesce(case when c.paid then l.actor else u.actor end, ''))
  from doubtful c
 cross join lateral (select * from claim where organisation_id = c.organisation_id and candidate_id = c.candidate_id and released_at is null offset 0) k
  cross join lateral (select * from sitting where organisation_id = k.organisation_id and id = k.sitting_id offset 0) s
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
  cross join lateral (select * from status where organisation_id = c.organisation_id and id = c.status_id offset 0) t
  left join lateral (select p.recorded_at, p.reason, p.actor from (select * from payment where candidate_id = c.candidate_id offset 0) p
                      where p.organisation_id = c.organisation_id and p.kind = 'reversed' and p.recorded_at >= k.claimed_at
                      order by p.recorded_at desc limit 1) u on true
  left join lateral (select w.at, w.actor from (select * from timeline where candidate_id = c.candidate_id offset 0) w
                      where w.organisation_id = c.organisation_id and w.kind = 'status_changed' order by w.id desc limit 1) l on true
 where s.ends_at > (select clock()) or not c.paid and u.recorded_at is null

-- promise: filing_order
-- Nobody whom a run refused for want of seats has somebody who filed later and whom that run seated where they might have sat. Not meant is
-- whose file, status or money changed while the run was under way: their turn came when it could. What a sitting was then stands in the
-- timeline: it may have been moved since.
with runs as materialized (
  select organisation_id, id, started_at, finished_at from run where organisation_id = $3 and campaign_id = $4 and task = 'convoke' and state = 'done'),
full_up as materialized (
  select f.organisation_id, f.run_id, f.candidate_id, f.exam_id, coalesce(f.facts->>'centre', '') as centre, c.filed_at, c.reference, c.family_name, c.given_name,
         r.started_at, r.finished_at
    from runs r
    join refusal f on (f.organisation_id, f.run_id) = (r.organisation_id, r.id) and f.list = 'refused' and f.reason in ('room_full', 'centre_full', 'exam_full')
    cross join lateral (select * from candidate where organisation_id = f.organisation_id and id = f.candidate_id offset 0) c),
given as materialized (
  select k.run_id, k.exam_id, k.candidate_id, k.claimed_at, c.filed_at, c.reference, c.family_name, c.given_name,
         t.facts->>'centre' as centre, t.facts->>'sitting' as sitting, t.facts->>'seat' as seat,
         (t.facts->'starts_at'->>'at')::timestamptz as starts_at, (t.facts->'ends_at'->>'at')::timestamptz as ends_at
    from (select distinct run_id, exam_id from full_up) w
    join claim k on k.organisation_id = $3 and k.run_id = w.run_id and k.exam_id = w.exam_id and k.released_at is null
    join timeline t on t.organisation_id = $3 and t.claim_id = k.id and t.kind = 'seated'
    join candidate c on c.organisation_id = $3 and c.id = k.candidate_id),
-- The last filer that a run seated at each centre, and at any: most of those whom it refused filed after them, and are done with by that.
last_given as materialized (
  select distinct on (run_id, exam_id, w.centre) run_id, exam_id, w.centre, filed_at, candidate_id
    from given g cross join lateral (values (g.centre), ('')) w(centre)
   order by run_id, exam_id, w.centre, filed_at desc, candidate_id desc),
passed as materialized (
  select f.*, l.reference as later, l.name as later_name, l.seat, l.sitting
    from full_up f
    join last_given g on g.run_id = f.run_id and g.exam_id = f.exam_id and g.centre = f.centre and (g.filed_at, g.candidate_id) > (f.filed_at, f.candidate_id)
   cross join lateral (
     select k.reference, concat_ws(' ', k.family_name, nullif(k.given_name, '')) as name, k.seat, k.sitting
       from given k
      where k.run_id = f.run_id and k.exam_id = f.exam_id and (k.filed_at, k.candidate_id) > (f.filed_at, f.candidate_id) and f.centre in ('', k.centre)
        and not exists (select from claim own cross join lateral (select * from sitting where organisation_id = own.organisation_id and id = own.sitting_id offset 0) at
                         where own.organisation_id = f.organisation_id and own.candidate_id = f.candidate_id
                           and (own.released_at is null or own.released_at > k.claimed_at)
                           and at.starts_at < k.ends_at and k.starts_at < at.ends_at)
      limit 1) l),
-- Whoever waits now, for the seats that hands gave past them: whose file has not changed since the seat was given.
by_hand as materialized (
  select k.organisation_id, k.id, k.exam_id, k.candidate_id, k.seat_label, k.claimed_at, c.filed_at, c.campaign_id, c.reference, c.family_name, c.given_name,
         s.reference as sitting, s.starts_at, s.ends_at, r.centre_id, v.time_zone
    from claim k
    cross join lateral (select * from candidate where organisation_id = k.organisation_id and id = k.candidate_id offset 0) c
    cross join lateral (select * from sitting where organisation_id = k.organisation_id and id = k.sitting_id offset 0) s
    cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
    cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
   where k.organisation_id = $3 and c.campaign_id = $4 and k.run_id is null and k.replaces_id is null and k.released_at is null
     and s.starts_at > (select clock())),
waiting as materialized (
  select $3::bigint as organisation_id, t.candidate_id, t.exam_id, t.filed_at, t.centre_id, t.reference, t.family_name, t.given_name
    from standing($3, $4) t where t.eligible and exists (select from by_hand))
select true, 'passed_by_run', p.organisation_id,
       jsonb_build_object('reference', p.reference, 'name', concat_ws(' ', p.family_name, nullif(p.given_name, '')), 'run', p.run_id::text,
                          'later', p.later, 'later_name', p.later_name, 'sitting', p.sitting, 'seat', p.seat)
  from passed p
 where not exists (select from (select * from timeline where candidate_id = p.candidate_id offset 0) t
                    where t.organisation_id = p.organisation_id and t.at between p.started_at - interval '10 seconds' and p.finished_at and t.kind not in ('told', 'bounced'))
 union all
select false, 'passed_by_hand', h.organisation_id,
       jsonb_build_object('reference', w.reference, 'name', concat_ws(' ', w.family_name, nullif(w.given_name, '')), 'later', h.reference,
                          'later_name', concat_ws(' ', h.family_name, nullif(h.given_name, '')), 'sitting', h.sitting, 'seat', coalesce(h.seat_label, ''),
                          'who', coalesce(l.actor, ''), 'at', jsonb_build_object('at', h.claimed_at, 'zone', h.time_zone))
  from by_hand h
 cross join lateral (
   select w.* from waiting w
    where w.organisation_id = h.organisation_id and w.exam_id = h.exam_id and (w.filed_at, w.candidate_id) < (h.filed_at, h.candidate_id)
      and (w.centre_id is null or w.centre_id = h.centre_id)
      and not exists (select from (select * from timeline where candidate_id = w.candidate_id offset 0) t
                       where t.organisation_id = w.organisation_id and t.at > h.claimed_at and t.kind not in ('told', 'bounced'))
      and not exists (select from claim own cross join lateral (select * from sitting where organisation_id = own.organisation_id and id = own.sitting_id offset 0) at
                       where own.organisation_id = w.organisation_id and own.candidate_id = w.candidate_id and own.released_at is null
                         and at.starts_at < h.ends_at and h.starts_at < at.ends_at)
    limit 1) w
  left join lateral (select t.actor from (select * from timeline where candidate_id = h.candidate_id offset 0) t
                      where t.organisation_id = h.organisation_id and t.claim_id = h.id and t.kind = 'seated' limit 1) l on true

-- promise: nobody_left_out
-- Whoever was eligible all through the latest whole run of a campaign, and has no seat, is refused by it by name.
with latest as materialized (
  select organisation_id, campaign_id, id, started_at from run
   where organisation_id = $3 and campaign_id = $4 and task = 'convoke' and state = 'done' and request->>'Exam' = '' and request->>'Sitting' = ''
   order by id desc limit 1),
unnamed as materialized (
  select l.organisation_id, l.campaign_id, l.id as run_id, l.started_at, t.candidate_id, t.exam_id, t.reference, t.family_name, t.given_name
    from latest l cross join standing($3, $4) t
   where t.eligible
     and not exists (select from refusal f where f.organisation_id = l.organisation_id and f.run_id = l.id and f.list = 'refused'
                        and f.item = t.candidate_id || '/' || t.exam_id))
select true, 'left_out', u.organisation_id,
       jsonb_build_object('reference', u.reference, 'name', concat_ws(' ', u.family_name, nullif(u.given_name, '')), 'exam', e.code, 'run', u.run_id::text, 'campaign', g.slug)
  from unnamed u
  cross join lateral (select * from exam where organisation_id = u.organisation_id and id = u.exam_id offset 0) e
  cross join lateral (select * from campaign where organisation_id = u.organisation_id and id = u.campaign_id offset 0) g
 where not exists (select from (select * from timeline where candidate_id = u.candidate_id offset 0) t
                    where t.organisation_id = u.organisation_id and t.at > u.started_at - interval '10 seconds' and t.kind not in ('told', 'bounced'))
   and not (select exists (select from timeline t where t.organisation_id = $3 and t.campaign_id = $4 and t.candidate_id is null
                              and t.at > (select started_at from latest) - interval '10 seconds' and t.kind in ('status_edited', 'status_added', 'exam_added')))

-- promise: timeline_kept
-- Each seat of a candidate was written down as given and, if it was, as taken back; and nothing is written of a seat that there is not.
with said as materialized (
  select organisation_id, claim_id, min(id) as id, bool_or(kind = 'seated') as seated, bool_or(kind = 'released') as released
    from timeline where organisation_id = any($1) and claim_id is not null group by organisation_id, claim_id),
held as materialized (
  select organisation_id, id, candidate_id, sitting_id, seat_label, released_at is not null as released from claim
   where organisation_id = any($1) and candidate_id is not null),
apart as (
  select coalesce(k.organisation_id, t.organisation_id) as organisation_id, k.candidate_id, k.sitting_id, k.seat_label, t.id,
         case when k.id is null then 'written_of_nothing' when t.id is null or not t.seated then 'seat_not_written'
              when k.released and not t.released then 'end_not_written' when not k.released and t.released then 'end_not_true' end as code
    from held k full join said t on t.organisation_id = k.organisation_id and t.claim_id = k.id)
select true, a.code, a.organisation_id,
       case when a.candidate_id is null then jsonb_build_object('row', a.id::text)
            else jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')), 'sitting', s.reference, 'seat', coalesce(a.seat_label, '')) end
  from apart a
  left join lateral (select * from candidate where organisation_id = a.organisation_id and id = a.candidate_id offset 0) c on true
  left join lateral (select * from sitting where organisation_id = a.organisation_id and id = a.sitting_id offset 0) s on true
 where a.code is not null
