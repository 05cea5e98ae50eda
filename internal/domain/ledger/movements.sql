-- What moved in spans of time: due (organisation_id, month, currency, from_at, until_at, and the first commission of the currency, permyriad and
-- most_minor). A month is settled of this, and is compared with it ever after: what is written down of a span does not change once it is over.

-- Tickets that became somebody's. Their price and their commission are those of the moment at which they were held; where there was no
-- commission, the first that was said later counts.
sold as (
  select d.organisation_id, d.month, d.currency, s.*
    from due d
   cross join lateral (
     select t.event_id, sum(t.pieces) as pieces, sum(t.price_minor) as price_minor, sum(k.commission_minor) as commission_minor,
            bool_or(k.commission_minor is null) as missing
       from ticket_sold t
      cross join lateral (
        select case when t.commission_minor is not null then t.commission_minor
                    else (select sum(case when l.commission_missing then commission_of(l.price_minor, d.permyriad, d.most_minor) else l.commission_minor end)
                            from line l
                           where l.organisation_id = t.organisation_id and l.reservation_id = t.reservation_id and l.event_id = t.event_id
                             and not ended_unpaid(l.cancel_reason) and (l.cancelled_at is null or l.cancelled_at >= t.at)) end as commission_minor) k
      where t.organisation_id = d.organisation_id and t.currency = d.currency and t.at >= d.from_at and t.at < d.until_at
      group by t.event_id) s),

-- Of what was sold, what goes back, with its part of the commission. Tickets that ended in a cart were not sold.
back as (
  select d.organisation_id, d.month, d.currency, l.event_id, l.cancel_reason = 'charged_back' as by_bank, count(*) filter (where b.before_minor = 0) as pieces,
         sum(b.after_minor - b.before_minor) as price_minor,
         sum(commission_left(k.commission_minor, l.price_minor, b.before_minor)
             - commission_left(k.commission_minor, l.price_minor, b.after_minor)) as commission_minor,
         bool_or(k.commission_minor is null) as missing
    from due d
    join ticket_back b on b.organisation_id = d.organisation_id and b.currency = d.currency and b.at >= d.from_at and b.at < d.until_at
    join line l on l.organisation_id = b.organisation_id and l.reservation_id = b.reservation_id and l.number = b.line_number
    join reservation r on r.organisation_id = b.organisation_id and r.id = b.reservation_id
   cross join lateral (select case when l.commission_missing then commission_of(l.price_minor, d.permyriad, d.most_minor)
                                   else l.commission_minor end as commission_minor) k
   where r.confirmed_at <= b.at
   group by d.organisation_id, d.month, d.currency, l.event_id, by_bank),

-- Money that came to gateways and went from them, each movement once. One that is reversed did not happen after all.
moved as (
  select d.organisation_id, d.month, d.currency, case when m.nobodys and m.kind <> 'dispute_fee' then 'nobodys_' else '' end || m.kind as kind, m.amount_minor, m.pieces
    from due d
   cross join lateral (
     select k.kind, p.reservation_id is null as nobodys, sum(case when p.kind = 'reversed' then -p.amount_minor else p.amount_minor end) as amount_minor,
            count(*) as pieces
       from payment p
      cross join lateral (
        select case when p.kind <> 'reversed' then p.kind
                    else (select o.kind from payment o where o.organisation_id = p.organisation_id and o.id = p.reverses_id) end as kind) k
      where p.organisation_id = d.organisation_id and p.currency = d.currency and p.gateway_id is not null and p.recorded_at >= d.from_at and p.recorded_at < d.until_at
      group by k.kind, nobodys) m),

-- Money that went back for no ticket: the organiser's, from when a person said so, unless it did not go back after all.
spared as (
  select d.organisation_id, d.month, d.currency, sum(s.amount_minor) as amount_minor, count(*) filter (where s.amount_minor > 0) as pieces
    from due d
    join gateway_notice n on n.organisation_id = d.organisation_id and n.currency = d.currency and n.reason = 'spared'
    join payment p on p.gateway_id = n.gateway_id and p.gateway_key = n.gateway_key and p.gateway_key <> '' and p.organisation_id = n.organisation_id
                  and p.gateway_notice_id = n.id and p.kind = 'refunded'
    left join payment u on u.organisation_id = p.organisation_id and u.reverses_id = p.id
   cross join lateral (values (n.settled_at, p.amount_minor), (greatest(u.recorded_at, n.settled_at), case when u.id is not null then -p.amount_minor end))
              s(at, amount_minor)
   where s.at >= d.from_at and s.at < d.until_at and s.amount_minor is not null
   group by d.organisation_id, d.month, d.currency),

corrected as (
  select d.organisation_id, d.month, d.currency, sum(c.amount_minor) as amount_minor, count(*) as pieces
    from due d
    join correction c on c.organisation_id = d.organisation_id and c.currency = d.currency and c.at >= d.from_at and c.at < d.until_at
   group by d.organisation_id, d.month, d.currency),

entries as materialized (
  select organisation_id, month, currency, kind, event_id, sum(amount_minor)::bigint as amount_minor, sum(pieces)::int as pieces
    from (select organisation_id, month, currency, 'sale' as kind, event_id, price_minor as amount_minor, pieces from sold
          union all select organisation_id, month, currency, 'commission', event_id, commission_minor, pieces from sold where commission_minor <> 0
          union all select organisation_id, month, currency, case when by_bank then 'ticket_charged_back' else 'ticket_refunded' end, event_id, price_minor, pieces
                      from back
          union all select organisation_id, month, currency, 'commission_back', event_id, commission_minor, pieces from back where commission_minor <> 0
          union all select organisation_id, month, currency, kind, null, amount_minor, pieces from moved
          union all select organisation_id, month, currency, 'spared', null, amount_minor, pieces from spared
          union all select organisation_id, month, currency, 'correction', null, amount_minor, pieces from corrected) e
   group by organisation_id, month, currency, kind, event_id),
