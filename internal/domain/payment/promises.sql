-- promise: money_open
-- What a person has to look at, and what did not go back: each with since when.
select false, 'money_exception', n.organisation_id,
       jsonb_build_object('number', 'N' || n.id, 'amount', jsonb_build_object('minor', n.amount_minor, 'currency', n.currency),
                          'why', jsonb_build_object('word', 'money_why_' || n.reason), 'at', jsonb_build_object('at', n.received_at, 'zone', o.time_zone))
  from gateway_notice n join organisation o on o.id = n.organisation_id
 where n.organisation_id = any($1) and n.state = 'exception' and n.settled_at is null
 union all
select false, 'refund_failed', f.organisation_id,
       jsonb_build_object('number', 'R' || f.id, 'amount', jsonb_build_object('minor', f.amount_minor, 'currency', f.currency),
                          'reference', coalesce(b.reference, ''), 'at', jsonb_build_object('at', f.due_at, 'zone', o.time_zone))
  from refund f join organisation o on o.id = f.organisation_id
  left join lateral (select * from reservation where organisation_id = f.organisation_id and id = f.reservation_id offset 0) b on true
 where f.organisation_id = any($1) and f.state = 'failed'

-- promise: paid_kept
-- What the trigger keeps with a candidate beside what was recorded for them; and a payment that was reversed twice.
select true, 'paid_differs', c.organisation_id,
       jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')),
                          'kept', jsonb_build_object('minor', c.paid_minor, 'currency', g.currency),
                          'recorded', jsonb_build_object('minor', coalesce(p.minor, 0), 'currency', g.currency))
  from candidate c
  left join (select organisation_id, candidate_id, sum(case when reverses_id is null then amount_minor else -amount_minor end)::bigint as minor
               from payment where organisation_id = any($1) and candidate_id is not null group by organisation_id, candidate_id) p
         on p.organisation_id = c.organisation_id and p.candidate_id = c.id
  cross join lateral (select * from campaign where organisation_id = c.organisation_id and id = c.campaign_id offset 0) g
 where c.organisation_id = any($1) and c.paid_minor <> coalesce(p.minor, 0)
 union all
select true, 'reversed_twice', d.organisation_id,
       jsonb_build_object('receipt', coalesce(nullif(p.receipt, ''), '#' || p.id), 'amount', jsonb_build_object('minor', p.amount_minor, 'currency', p.currency), 'times', d.times)
  from (select organisation_id, reverses_id, count(*) as times from payment
         where organisation_id = any($1) and reverses_id is not null group by organisation_id, reverses_id having count(*) > 1) d
 cross join lateral (select * from payment where organisation_id = d.organisation_id and id = d.reverses_id offset 0) p
