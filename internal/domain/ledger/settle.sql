-- The statements of a month ($2, until $3 by the calendar of $4) of some organisations ($1), each with its entries. Everything is cut by the
-- instants at which the database wrote it down, from where the statement before ended: whatever is said later, of whatever day, falls in the
-- month that is open when it is said.
with due as materialized (
  select o.id as organisation_id, $2::date as month, c.currency, coalesce(last.until_at, '-infinity') as from_at, $3::timestamptz as until_at,
         coalesce(last.carried_on_minor, 0) as carried_minor, first.permyriad, first.most_minor
    from organisation o
   cross join lateral (select e.currency from event e where e.organisation_id = o.id
                       union
                       select p.currency from payment p where p.organisation_id = o.id and p.gateway_id is not null and p.reservation_id is null) c
    left join lateral (select s.month, s.until_at, s.carried_on_minor from statement s where s.organisation_id = o.id and s.currency = c.currency
                        order by s.month desc limit 1) last on true
    left join commission_rate first on first.organisation_id = o.id and first.currency = c.currency and first.from_at = '-infinity'
   where o.id = any($1) and (last.month is null or last.month < $2)),

-- movements

-- What cannot be settled before a person has said a commission.
lacking as (
  select organisation_id, currency from sold where missing
   union
  select organisation_id, currency from back where missing),

-- The unique keys arbitrate between those who settle the same month at once. The order is one for all of them.
made as (
  insert into statement (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor)
  select d.organisation_id, d.month, d.currency, $4, d.from_at, d.until_at, d.carried_minor, coalesce(n.net_minor, 0)
    from due d
    left join (select organisation_id, currency, sum(entry_net(kind, amount_minor))::bigint as net_minor from entries group by organisation_id, currency) n
           on n.organisation_id = d.organisation_id and n.currency = d.currency
   where (n.organisation_id is not null or d.carried_minor < 0) and d.from_at < d.until_at
     and not exists (select from lacking k where k.organisation_id = d.organisation_id and k.currency = d.currency)
   order by d.organisation_id, d.currency
      on conflict do nothing
  returning organisation_id, currency, carried_minor, net_minor, payable_minor, carried_on_minor),
written as (
  insert into entry (organisation_id, month, currency, kind, event_id, amount_minor, pieces)
  select e.organisation_id, e.month, e.currency, e.kind, e.event_id, e.amount_minor, e.pieces
    from entries e join made m on m.organisation_id = e.organisation_id and m.currency = e.currency)
select organisation_id, currency, false as missing, carried_minor, net_minor, payable_minor, carried_on_minor from made
 union all
select organisation_id, currency, true, 0, 0, 0, 0 from lacking
 order by 1, 2
