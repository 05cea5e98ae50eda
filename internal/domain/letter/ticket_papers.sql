-- The tickets of reservations that were paid, with those that ended since: each looked up by its keys, whatever the statistics say, in
-- the order of sittings and seats.
select $1::bigint as organisation_id, l.reservation_id, l.number, k.id as claim_id, k.sitting_id, b.reference, b.name as buyer, l.attendee, l.attendee_email, coalesce(l.attendee_link, '') as link, l.transfers, b.locale,
       o.name as organisation, o.contact_email as contact, i.id as installation, e.name as event, t.name as kind, l.price_minor, l.currency,
       s.reference as sitting, v.name as centre, r.name as room, v.time_zone as zone, s.starts_at, s.ends_at, s.revision,
       l.zone as part, coalesce(p.row_label, '') as row, coalesce(k.seat_label, '') as seat,
       l.cancelled_at is not null or k.released_at is not null or b.state not in ('confirmed', 'disputed') as ended,
       coalesce(l.cancel_reason, '') as end_reason
  from unnest($2::bigint[]) w(reservation_id)
 cross join lateral (select * from reservation where organisation_id = $1 and id = w.reservation_id and confirmed_at is not null offset 0) b
 cross join lateral (select * from line where organisation_id = $1 and reservation_id = b.id
                        and not ended_unpaid(cancel_reason) offset 0) l
 cross join lateral (select name from event where organisation_id = $1 and id = l.event_id offset 0) e
 cross join lateral (select name from ticket_kind where organisation_id = $1 and id = l.kind_id offset 0) t
 cross join lateral (select * from claim where organisation_id = $1 and reservation_id = l.reservation_id and line_number = l.number
                      order by id desc limit 1) k
 cross join lateral (select * from sitting where organisation_id = $1 and id = k.sitting_id offset 0) s
 cross join lateral (select name, centre_id from room where organisation_id = $1 and id = s.room_id offset 0) r
 cross join lateral (select name, time_zone from centre where organisation_id = $1 and id = r.centre_id offset 0) v
  left join lateral (select row_label from seat where organisation_id = $1 and room_id = s.room_id and number = k.seat_number offset 0) p on true
 cross join lateral (select name, contact_email from organisation where id = $1 offset 0) o
 cross join (select installation() as id) i
 order by l.reservation_id, s.starts_at, k.sitting_id, k.seat_number, l.number
