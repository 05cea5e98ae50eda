-- What was last written to a candidate of each of their seats, and of its last change. Looked up seat by seat, by the candidate, whose
-- notices are few.
select w.claim_id as subject_id, $3::bigint as candidate_id, coalesce(t.id, 0) as newest, coalesce(t.created_at, clock()) as written_at,
       coalesce(t.earlier, 0)::int as earlier, coalesce(x.id, 0) as change
  from unnest($2::bigint[]) with ordinality w(claim_id, place)
  left join lateral (
    select n.id, n.created_at,
           (select count(*) from (select * from notice where candidate_id = $3 offset 0) e where e.organisation_id = $1 and e.id < n.id) as earlier
      from (select * from notice where candidate_id = $3 offset 0) n
     where n.organisation_id = $1 and n.subject = 'claim' and n.subject_id = w.claim_id
     order by n.id desc limit 1) t on true
  left join lateral (
    select n.id
      from (select * from notice where candidate_id = $3 offset 0) n
     where n.organisation_id = $1 and n.subject = 'claim' and n.subject_id = w.claim_id and n.kind = 'change'
     order by n.id desc limit 1) x on true
 order by w.place
