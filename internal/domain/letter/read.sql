-- Everything is looked up claim by claim through its key, whatever the statistics say: letters are
-- read right after a run filled the tables.
select $1::bigint as organisation_id, k.id as claim_id, s.campaign_id, k.candidate_id, k.exam_id, k.sitting_id,
       o.name as organisation, o.contact_email as contact, i.id as installation, g.name as campaign, g.instructions,
       c.family_name, c.given_name, c.reference, c.locale, c.email, c.phone, c.needs_accessible, c.link_epoch,
       e.code as exam, g.exams = 1 as exam_alone, s.reference as sitting, v.name as centre, r.name as room, v.time_zone as zone,
       s.starts_at, s.ends_at, coalesce(k.seat_label, '') as seat, s.revision,
       case when k.released_at is null then 'valid'
            when exists (select from claim l
                          where l.organisation_id = $1 and l.candidate_id = k.candidate_id and l.exam_id = k.exam_id
                            and l.released_at is null) then 'replaced'
            else 'released' end as state
  from unnest($2::bigint[]) with ordinality w(claim_id, place)
 cross join lateral (select id, candidate_id, exam_id, sitting_id, seat_label, released_at
                       from claim where organisation_id = $1 and id = w.claim_id offset 0) k
 cross join lateral (select family_name, given_name, reference, locale, email, phone, needs_accessible, link_epoch
                       from candidate where organisation_id = $1 and id = k.candidate_id offset 0) c
 cross join lateral (select campaign_id, room_id, reference, starts_at, ends_at, revision
                       from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select centre_id, name from room where organisation_id = $1 and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = $1 and id = r.centre_id offset 0) v
 cross join lateral (select code from exam where organisation_id = $1 and id = k.exam_id offset 0) e
 cross join lateral (select name, instructions,
                            (select count(*) from exam x where x.organisation_id = $1 and x.campaign_id = s.campaign_id) as exams
                       from campaign where organisation_id = $1 and id = s.campaign_id offset 0) g
 cross join lateral (select name, contact_email from organisation where id = $1 offset 0) o
 cross join (select installation() as id) i
 order by w.place
