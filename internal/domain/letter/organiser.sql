-- What notices to an organiser speak of, each with what is told in its message besides. What a person settled meanwhile, and money
-- that went another way, is told no more.
select coalesce(n.with_id, n.id) as told_by, n.id as notice_id, n.subject, coalesce(f.id, q.id) as number,
       coalesce(f.amount_minor, q.amount_minor) as amount_minor, coalesce(f.currency, q.currency) as currency, coalesce(f.reason, q.reason) as reason,
       coalesce(f.state, '') as state, coalesce(f.failure, '') as failure, coalesce(f.by_itself, false) as by_itself,
       coalesce(f.gateway, q.gateway) as gateway, coalesce(f.reference, '') as reservation, coalesce(f.buyer, '') as buyer
  from unnest($2::bigint[]) w(id)
 cross join lateral (
   select id, with_id, subject, subject_id from notice where organisation_id = $1 and id = w.id
    union all
   select id, with_id, subject, subject_id from notice where organisation_id = $1 and with_id = w.id offset 0) n
  left join lateral (
    select d.id, d.amount_minor, d.currency, d.reason, d.state, d.failure, y.kind = 'stripe' as by_itself, y.name as gateway, r.reference, r.name as buyer
      from refund d
      join payment p on (p.organisation_id, p.id) = (d.organisation_id, d.payment_id)
      join gateway y on (y.organisation_id, y.id) = (p.organisation_id, p.gateway_id)
      left join reservation r on (r.organisation_id, r.id) = (d.organisation_id, d.reservation_id)
     where n.subject = 'refund' and d.organisation_id = $1 and d.id = n.subject_id and d.failure <> 'withdrawn') f on true
  left join lateral (
    select m.id, coalesce((select p.amount_minor from payment p
                            where p.organisation_id = $1 and p.gateway_notice_id = m.id and p.kind = 'refunded'), m.amount_minor) as amount_minor,
           m.currency, m.reason, y.name as gateway
      from gateway_notice m join gateway y on (y.organisation_id, y.id) = (m.organisation_id, m.gateway_id)
     where n.subject = 'gateway_notice' and m.organisation_id = $1 and m.id = n.subject_id and m.state = 'exception' and m.settled_at is null) q on true
 where num_nonnulls(f.id, q.id) = 1
 order by n.id
