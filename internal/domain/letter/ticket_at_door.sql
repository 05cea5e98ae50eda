-- A ticket as a door must know it, with the claim that its line has now: by their keys, whatever the statistics say.
select k.id as claim_id, k.reservation_id, k.line_number as line, k.event_id, k.sitting_id, coalesce(k.seat_label, '') as label,
       coalesce(n.id, 0) as now_id, coalesce(nullif(l.attendee, ''), b.name) as name, e.name as what, t.name as kind,
       s.reference as sitting, v.name as centre, r.name as room, e.time_zone as zone, s.starts_at, s.ends_at, s.revision,
       l.transfers, coalesce(l.cancel_reason, '') as cancel_reason, b.state as reservation_state, b.confirmed_at is not null as confirmed
  from (select * from claim where organisation_id = $1 and id = $2 and reservation_id is not null offset 0) k
 cross join lateral (select * from reservation where organisation_id = $1 and id = k.reservation_id offset 0) b
 cross join lateral (select * from line where organisation_id = $1 and reservation_id = k.reservation_id and number = k.line_number offset 0) l
 cross join lateral (select name, time_zone from event where organisation_id = $1 and id = l.event_id offset 0) e
 cross join lateral (select name from ticket_kind where organisation_id = $1 and id = l.kind_id offset 0) t
 cross join lateral (select * from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select centre_id, name from room where organisation_id = $1 and id = s.room_id offset 0) r
 cross join lateral (select name from centre where organisation_id = $1 and id = r.centre_id offset 0) v
  left join lateral (select id from claim where organisation_id = $1 and reservation_id = k.reservation_id and line_number = k.line_number
                        and released_at is null limit 1) n on true
