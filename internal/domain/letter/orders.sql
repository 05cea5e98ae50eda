-- The reservations that notices speak of, each with the number of the cause told before the notice's own: looked up one by one,
-- whatever the statistics say.
select r.id as reservation_id, r.reference, r.state, r.confirmed_at is not null as was_confirmed, r.name, r.email, r.phone, r.locale, r.currency,
       o.name as organisation, o.contact_email as contact, o.time_zone as zone,
       coalesce((select max(n.revision) from (select * from notice where reservation_id = r.id offset 0) n
                  where n.organisation_id = $1 and n.kind = any($4) and n.revision < w.revision), 0) as told_before,
       exists (select from (select * from notice where reservation_id = r.id offset 0) n
                where n.organisation_id = $1 and n.kind = any($4) and n.revision > w.revision) as told_later
  from unnest($2::bigint[], $3::int[]) with ordinality w(reservation_id, revision, place)
 cross join lateral (select * from reservation where organisation_id = $1 and id = w.reservation_id offset 0) r
 cross join lateral (select name, contact_email, time_zone from organisation where id = $1 offset 0) o
 order by w.place
