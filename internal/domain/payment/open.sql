-- What a person must look at, and what is to go back, oldest first.
select number, what, state, reason, failure, amount_minor, currency, gateway, gateway_kind, reservation, at, settled_at, settled_by
  from (
    select 'N' || n.id as number, n.state as what, n.state, n.reason, '' as failure,
           -- Of what went back outside a part may have been due: a person says for what the rest was.
           coalesce((select p.amount_minor from payment p where p.organisation_id = n.organisation_id and p.gateway_notice_id = n.id and p.kind = 'refunded'),
                    n.amount_minor) as amount_minor, n.currency, g.name as gateway, g.kind as gateway_kind,
           coalesce((select r.reference from payment p join reservation r on (r.organisation_id, r.id) = (p.organisation_id, p.reservation_id)
                      where p.organisation_id = n.organisation_id and p.gateway_notice_id = n.id order by p.id desc limit 1), '') as reservation,
           n.received_at as at, n.settled_at, coalesce(n.settled_by, '') as settled_by
      from gateway_notice n join gateway g on (g.organisation_id, g.id) = (n.organisation_id, n.gateway_id)
     where n.organisation_id = $1 and (n.state <> 'applied' and n.settled_at is null or $2 and n.settled_at is not null)
    union all
    select 'R' || f.id, 'refund', case when f.state in ('due', 'failed') and d.open then 'disputed' else f.state end, f.reason, f.failure, f.amount_minor, f.currency, g.name, g.kind, coalesce(r.reference, ''), f.due_at, f.ended_at,
           coalesce(f.done_by, '')
      from refund f
      join payment p on (p.organisation_id, p.id) = (f.organisation_id, f.payment_id)
      join gateway g on (g.organisation_id, g.id) = (p.organisation_id, p.gateway_id)
     cross join lateral (select dispute_open(p.organisation_id, p.gateway_id, p.gateway_key) as open) d
      left join reservation r on (r.organisation_id, r.id) = (f.organisation_id, f.reservation_id)
     where f.organisation_id = $1 and (f.state <> 'done' or $2)
  ) items
 order by at, number limit $3
