-- What the entries of a statement (of $1 in $2, from $3 until $4) are the sum of, line by line: reservations by event, what went back of each ticket,
-- movements of money, and corrections. It says of each what movements.sql sums up.
select l.kind, l.at, coalesce(v.slug, '') as event, coalesce(v.name, '') as event_name, coalesce(r.reference, '') as reservation, l.pieces, l.amount_minor,
       l.commission_minor, l.reason, entry_debit(l.kind) as debit, entry_credit(l.kind) as credit
  from (
    select 'sale' as kind, t.at, t.event_id, t.reservation_id, t.pieces, t.price_minor as amount_minor, '' as reason,
           -coalesce(t.commission_minor, (
             select sum(case when l.commission_missing then commission_of(l.price_minor, f.permyriad, f.most_minor) else l.commission_minor end)
               from line l
              where l.organisation_id = t.organisation_id and l.reservation_id = t.reservation_id and l.event_id = t.event_id
                and not ended_unpaid(l.cancel_reason) and (l.cancelled_at is null or l.cancelled_at >= t.at)))::bigint as commission_minor
      from ticket_sold t left join commission_rate f on f.organisation_id = t.organisation_id and f.currency = t.currency and f.from_at = '-infinity'
     where t.organisation_id = $1 and t.currency = $2 and t.at >= coalesce($3::timestamptz, '-infinity') and t.at < $4
     union all
    select case when l.cancel_reason = 'charged_back' then 'ticket_charged_back' else 'ticket_refunded' end, b.at, l.event_id, b.reservation_id,
           (b.before_minor = 0)::int, b.after_minor - b.before_minor, '',
           commission_left(k.commission_minor, l.price_minor, b.before_minor) - commission_left(k.commission_minor, l.price_minor, b.after_minor)
      from ticket_back b
      join line l on l.organisation_id = b.organisation_id and l.reservation_id = b.reservation_id and l.number = b.line_number
      join reservation r on r.organisation_id = b.organisation_id and r.id = b.reservation_id
      left join commission_rate f on f.organisation_id = b.organisation_id and f.currency = b.currency and f.from_at = '-infinity'
     cross join lateral (select case when l.commission_missing then commission_of(l.price_minor, f.permyriad, f.most_minor) else l.commission_minor end as commission_minor) k
     where b.organisation_id = $1 and b.currency = $2 and b.at >= coalesce($3::timestamptz, '-infinity') and b.at < $4 and r.confirmed_at <= b.at
     union all
    select case when p.reservation_id is null and k.kind <> 'dispute_fee' then 'nobodys_' else '' end || k.kind, p.recorded_at, null, p.reservation_id, 1,
           case when p.kind = 'reversed' then -p.amount_minor else p.amount_minor end, '', 0
      from payment p
     cross join lateral (
       select case when p.kind <> 'reversed' then p.kind
                   else (select o.kind from payment o where o.organisation_id = p.organisation_id and o.id = p.reverses_id) end as kind) k
     where p.organisation_id = $1 and p.currency = $2 and p.gateway_id is not null and p.recorded_at >= coalesce($3::timestamptz, '-infinity') and p.recorded_at < $4
     union all
    select 'spared', s.at, null, p.reservation_id, (s.amount_minor > 0)::int, s.amount_minor, '', 0
      from gateway_notice n
      join payment p on p.gateway_id = n.gateway_id and p.gateway_key = n.gateway_key and p.gateway_key <> '' and p.organisation_id = n.organisation_id
                    and p.gateway_notice_id = n.id and p.kind = 'refunded'
      left join payment u on u.organisation_id = p.organisation_id and u.reverses_id = p.id
     cross join lateral (values (n.settled_at, p.amount_minor), (greatest(u.recorded_at, n.settled_at), case when u.id is not null then -p.amount_minor end))
                s(at, amount_minor)
     where n.organisation_id = $1 and n.currency = $2 and n.reason = 'spared' and s.at >= coalesce($3::timestamptz, '-infinity') and s.at < $4 and s.amount_minor is not null
     union all
    select 'correction', c.at, null, null, 1, c.amount_minor, to_char(c.month, 'YYYY-MM') || ': ' || c.reason, 0
      from correction c
     where c.organisation_id = $1 and c.currency = $2 and c.at >= coalesce($3::timestamptz, '-infinity') and c.at < $4) l
  left join event v on v.organisation_id = $1 and v.id = l.event_id
  left join reservation r on r.organisation_id = $1 and r.id = l.reservation_id
 order by array_position($5::text[], l.kind), l.at, r.reference, v.name, l.amount_minor
