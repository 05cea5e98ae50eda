-- To whom each of these tickets ($2) was told under that number of transfers ($3), in the order asked, with the name that it was in; no
-- address: nobody was. What is under way, or nobody knows of, counts as told. The timeline keeps the names: each transfer is a row of it.
select coalesce(d.address, '') as address, coalesce(t.before, '') as name, r.email as buyer_email
  from unnest($2::bigint[], $3::int[]) with ordinality w(claim_id, transfers, nth)
 cross join lateral (select reservation_id, line_number from claim where organisation_id = $1 and id = w.claim_id offset 0) k
 cross join lateral (select email from reservation where organisation_id = $1 and id = k.reservation_id offset 0) r
  left join lateral (
    select a.address from notice n
     cross join lateral (select * from delivery where organisation_id = $1 and notice_id = n.id offset 0) a
     where n.organisation_id = $1 and n.subject = 'ticket' and n.subject_id = w.claim_id and n.kind = 'ticket_named' and n.revision = w.transfers
       and a.state in ('sending', 'sent', 'written', 'unknown')
     order by a.id desc limit 1) d on true
  left join lateral (
    select facts->>'before' as before from (select * from timeline where reservation_id = k.reservation_id and organisation_id = $1 offset 0) e
     where e.kind = 'attendee_named' and (e.facts->>'ticket')::int = k.line_number
     order by e.id offset w.transfers limit 1) t on true
 order by w.nth
