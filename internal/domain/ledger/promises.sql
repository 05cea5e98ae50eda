-- promise: months_add_up
select true, 'month_twice', d.organisation_id, jsonb_build_object('month', to_char(d.month, 'YYYY-MM'), 'currency', d.currency, 'times', d.times)
  from (select organisation_id, month, currency, count(*) as times from statement
         where organisation_id = any($1) group by organisation_id, month, currency having count(*) > 1) d
 union all
select true, 'month_unbalanced', s.organisation_id,
       jsonb_build_object('month', to_char(s.month, 'YYYY-MM'), 'net', jsonb_build_object('minor', s.net_minor, 'currency', s.currency),
                          'entries', jsonb_build_object('minor', coalesce(e.net, 0), 'currency', s.currency))
  from statement s
  left join (select organisation_id, month, currency, sum(entry_net(kind, amount_minor))::bigint as net from entry
              where organisation_id = any($1) group by organisation_id, month, currency) e
         on e.organisation_id = s.organisation_id and e.month = s.month and e.currency = s.currency
 where s.organisation_id = any($1) and s.net_minor <> coalesce(e.net, 0)
 union all
-- Each statement begins where the one before ended, with what that one carried.
select true, 'month_unchained', s.organisation_id, jsonb_build_object('month', to_char(s.month, 'YYYY-MM'), 'currency', s.currency)
  from (select *, lag(until_at, 1, '-infinity') over w as ended_at, lag(carried_on_minor, 1, 0::bigint) over w as carried_to
          from statement where organisation_id = any($1) window w as (partition by organisation_id, currency order by month)) s
 where s.from_at <> s.ended_at or s.carried_minor <> s.carried_to

-- promise: months_whole
-- What was sold and what was received in the span of a statement is what it says; whatever is written into it later is in no month.
with spans as materialized (
  select organisation_id, month, currency, from_at, until_at from statement where organisation_id = any($1)),
sold as (
  select s.organisation_id, s.month, s.currency, sum(t.price_minor)::bigint as minor
    from spans s join ticket_sold t on t.organisation_id = s.organisation_id and t.currency = s.currency and t.at >= s.from_at and t.at < s.until_at
   group by s.organisation_id, s.month, s.currency),
received as (
  select s.organisation_id, s.month, s.currency, sum(case when p.kind = 'reversed' then -p.amount_minor else p.amount_minor end)::bigint as minor
    from spans s
    join payment p on p.organisation_id = s.organisation_id and p.currency = s.currency and p.gateway_id is not null
                  and p.recorded_at >= s.from_at and p.recorded_at < s.until_at
    left join payment o on o.organisation_id = p.organisation_id and o.id = p.reverses_id
   where 'received' in (p.kind, o.kind)
   group by s.organisation_id, s.month, s.currency),
entries as (
  select organisation_id, month, currency, coalesce(sum(amount_minor) filter (where kind = 'sale'), 0)::bigint as sold,
         coalesce(sum(amount_minor) filter (where kind in ('received', 'nobodys_received')), 0)::bigint as received
    from entry where organisation_id = any($1) group by organisation_id, month, currency)
select true, case when w.of = 'sold' then 'sale_in_no_month' else 'money_in_no_month' end, s.organisation_id,
       jsonb_build_object('month', to_char(s.month, 'YYYY-MM'), 'there', jsonb_build_object('minor', w.there, 'currency', s.currency),
                          'stated', jsonb_build_object('minor', w.stated, 'currency', s.currency))
  from spans s
  left join sold on (sold.organisation_id, sold.month, sold.currency) = (s.organisation_id, s.month, s.currency)
  left join received on (received.organisation_id, received.month, received.currency) = (s.organisation_id, s.month, s.currency)
  left join entries e on (e.organisation_id, e.month, e.currency) = (s.organisation_id, s.month, s.currency)
 cross join lateral (values ('sold', coalesce(sold.minor, 0), coalesce(e.sold, 0)), ('received', coalesce(received.minor, 0), coalesce(e.received, 0))) w(of, there, stated)
 where w.there <> w.stated
 union all
select true, 'sale_unwritten', r.organisation_id,
       jsonb_build_object('reference', r.reference, 'at', jsonb_build_object('at', r.confirmed_at, 'zone', o.time_zone))
  from reservation r join organisation o on o.id = r.organisation_id
 where r.organisation_id = any($1) and r.confirmed_at is not null
   and not exists (select from ticket_sold t where t.organisation_id = r.organisation_id and t.reservation_id = r.id)
 union all
-- A month that has been over for five days, and in which something was sold that stands on no statement.
select false, 'month_unsettled', t.organisation_id,
       jsonb_build_object('month', to_char(min(t.at) at time zone min(o.time_zone), 'YYYY-MM'), 'currency', t.currency, 'sold', jsonb_build_object('minor', sum(t.price_minor)::bigint, 'currency', t.currency))
  from ticket_sold t join organisation o on o.id = t.organisation_id
 where t.organisation_id = any($1)
   and t.at >= coalesce((select max(s.until_at) from statement s where s.organisation_id = t.organisation_id and s.currency = t.currency), '-infinity')
   and t.at < date_trunc('month', ((select clock()) - interval '5 days') at time zone o.time_zone) at time zone o.time_zone
 group by t.organisation_id, t.currency
