-- The tickets of reservations, each with the latest of its seats, in the order of their sittings.
select l.reservation_id, l.number, l.price_minor, l.cancelled_at, coalesce(l.cancel_reason, '') as cancel_reason, coalesce(l.refund_minor, 0) as refund_minor,
       ended_unpaid(l.cancel_reason) as unpaid,
       e.name as event, t.name as kind, l.zone, k.sitting_id, s.starts_at, s.ends_at, c.time_zone as at_zone, r.name || ', ' || c.name as place,
       k.seat_label as seat, k.expires_at
  from unnest($2::bigint[]) w(reservation_id)
 cross join lateral (select * from line where organisation_id = $1 and reservation_id = w.reservation_id offset 0) l
 cross join lateral (select name from event where organisation_id = $1 and id = l.event_id offset 0) e
 cross join lateral (select name from ticket_kind where organisation_id = $1 and id = l.kind_id offset 0) t
 cross join lateral (select * from claim where organisation_id = $1 and reservation_id = l.reservation_id and line_number = l.number
                      order by id desc limit 1) k
 cross join lateral (select starts_at, ends_at, room_id from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select name, centre_id from room where organisation_id = $1 and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = $1 and id = r.centre_id offset 0) c
 order by l.reservation_id, s.starts_at, k.sitting_id, k.seat_number, l.number
