-- Money of reservations that goes back, or went, with the payment of which it is, in the order in which it became due. What was
-- withdrawn went another way.
select f.reservation_id, f.amount_minor, f.currency, f.reason, f.state, f.failure = 'withdrawn' as withdrawn,
       p.amount_minor as paid_minor, p.received_at as paid_at, g.kind = 'stripe' as by_itself
  from unnest($2::bigint[]) w(reservation_id)
 cross join lateral (select * from refund where reservation_id = w.reservation_id offset 0) f
 cross join lateral (select amount_minor, received_at, gateway_id from payment where organisation_id = $1 and id = f.payment_id offset 0) p
 cross join lateral (select kind from gateway where organisation_id = $1 and id = p.gateway_id offset 0) g
 where f.organisation_id = $1
 order by f.reservation_id, f.id
