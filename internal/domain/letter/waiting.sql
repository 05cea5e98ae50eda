-- Places in queues of which notices speak, in their order: looked up one by one, whatever the statistics say.
select w.reference, w.state, w.name, w.email, w.locale, w.wanted, w.fewest, t.name as kind, coalesce(w.zone, '') as zone, e.name as event, s.starts_at,
       c.time_zone as at_zone, r.name || ', ' || c.name as place, o.name as organisation, o.contact_email as contact
  from unnest($2::bigint[]) with ordinality n(id, place)
 cross join lateral (select * from waiting where organisation_id = $1 and id = n.id offset 0) w
 cross join lateral (select name from event where organisation_id = $1 and id = w.event_id offset 0) e
 cross join lateral (select name from ticket_kind where organisation_id = $1 and id = w.kind_id offset 0) t
 cross join lateral (select starts_at, room_id from sitting where organisation_id = $1 and id = w.sitting_id offset 0) s
 cross join lateral (select name, centre_id from room where organisation_id = $1 and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = $1 and id = r.centre_id offset 0) c
 cross join lateral (select name, contact_email from organisation where id = $1 offset 0) o
 order by n.place
