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
-- What moved in the span of a statement is what its entries say, event by event; whatever is written into it later is in no month, and whatever
-- was written into the statement by hand is nobody's.
with due as materialized (
  select s.organisation_id, s.month, s.currency, s.from_at, s.until_at, first.permyriad, first.most_minor
    from statement s
    left join commission_rate first on first.organisation_id = s.organisation_id and first.currency = s.currency and first.from_at = '-infinity'
   where s.organisation_id = any($1)),

-- movements

differing as (
  select organisation_id, month, currency, kind, sum(there)::bigint as there, sum(stated)::bigint as stated
    from (select organisation_id, month, currency, kind, event_id, amount_minor as there, 0 as stated from entries
          union all
          select organisation_id, month, currency, kind, event_id, 0, amount_minor from entry where organisation_id = any($1)) e
   group by organisation_id, month, currency, kind, event_id having sum(there) <> sum(stated))
select true, case when w.kind = 'sale' then 'sale_in_no_month' when w.kind in ('received', 'nobodys_received') then 'money_in_no_month' else 'entry_differs' end,
       w.organisation_id,
       jsonb_build_object('month', to_char(w.month, 'YYYY-MM'), 'what', jsonb_build_object('word', 'ledger_' || w.kind),
                          'there', jsonb_build_object('minor', w.there, 'currency', w.currency), 'stated', jsonb_build_object('minor', w.stated, 'currency', w.currency))
  from differing w
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
