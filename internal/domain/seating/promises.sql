-- Each statement goes through the live claims of the organisations once and looks the rest up for the few that it finds. A hold whose
-- instant has passed is over, whether or not that was written down; its row still keeps the seat until somebody takes it.

-- promise: seat_once
select true, 'seat_twice', d.organisation_id,
       jsonb_build_object('sitting', s.reference, 'seat', d.label, 'starts_at', jsonb_build_object('at', s.starts_at, 'zone', v.time_zone), 'people', w.people)
  from (select organisation_id, sitting_id, seat_number, min(seat_label) as label from claim
         where organisation_id = any($1) and released_at is null and seat_number is not null
         group by organisation_id, sitting_id, seat_number having count(*) > 1) d
  cross join lateral (select * from sitting where organisation_id = d.organisation_id and id = d.sitting_id offset 0) s
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
 cross join lateral (
   select jsonb_agg(h.who order by h.id) as people
     from (select k.id, coalesce(c.reference || ' ' || concat_ws(' ', c.family_name, nullif(c.given_name, '')), b.reference) as who
             from claim k
             left join lateral (select * from candidate where organisation_id = k.organisation_id and id = k.candidate_id offset 0) c on true
             left join lateral (select * from reservation where organisation_id = k.organisation_id and id = k.reservation_id offset 0) b on true
            where k.organisation_id = d.organisation_id and k.sitting_id = d.sitting_id and k.seat_number = d.seat_number and k.released_at is null
            order by k.id limit 5) h) w

-- promise: seated_once
select true, 'candidate_twice', d.organisation_id,
       jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')), 'exam', e.code, 'seats', d.seats)
  from (select organisation_id, candidate_id, exam_id, count(*) as seats from claim
         where organisation_id = any($1) and released_at is null and candidate_id is not null
         group by organisation_id, candidate_id, exam_id having count(*) > 1) d
  cross join lateral (select * from candidate where organisation_id = d.organisation_id and id = d.candidate_id offset 0) c
  cross join lateral (select * from exam where organisation_id = d.organisation_id and id = d.exam_id offset 0) e
 union all
select true, 'ticket_twice', d.organisation_id, jsonb_build_object('reference', b.reference, 'ticket', d.line_number::text, 'seats', d.seats)
  from (select organisation_id, reservation_id, line_number, count(*) as seats from claim
         where organisation_id = any($1) and released_at is null and reservation_id is not null
         group by organisation_id, reservation_id, line_number having count(*) > 1) d
  cross join lateral (select * from reservation where organisation_id = d.organisation_id and id = d.reservation_id offset 0) b

-- promise: sittings_apart
with several as materialized (
  select organisation_id, candidate_id from claim
   where organisation_id = any($1) and released_at is null and candidate_id is not null
   group by organisation_id, candidate_id having count(*) > 1),
seats as materialized (
  select k.organisation_id, k.candidate_id, k.id, s.reference, s.starts_at, s.ends_at
    from several m
    join claim k on k.organisation_id = any($1) and k.organisation_id = m.organisation_id and k.candidate_id = m.candidate_id and k.released_at is null
    join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id))
select true, 'sittings_overlap', p.organisation_id,
       jsonb_build_object('reference', c.reference, 'name', concat_ws(' ', c.family_name, nullif(c.given_name, '')), 'sitting', p.one, 'other', p.other)
  from (select a.organisation_id, a.candidate_id, a.reference as one, b.reference as other
          from seats a join seats b on b.organisation_id = a.organisation_id and b.candidate_id = a.candidate_id
         where b.id > a.id and a.starts_at < b.ends_at and b.starts_at < a.ends_at) p
  cross join lateral (select * from candidate where organisation_id = p.organisation_id and id = p.candidate_id offset 0) c

-- promise: room_once
select true, 'room_twice', a.organisation_id,
       jsonb_build_object('place', r.name || ', ' || v.name, 'sitting', a.reference, 'other', b.reference,
                          'starts_at', jsonb_build_object('at', greatest(a.starts_at, b.starts_at), 'zone', v.time_zone))
  from sitting a
  join sitting b on b.organisation_id = a.organisation_id and b.room_id = a.room_id and b.id > a.id
  cross join lateral (select * from room where organisation_id = a.organisation_id and id = a.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
 where a.organisation_id = any($1) and b.organisation_id = any($1) and a.cancelled_at is null and b.cancelled_at is null
   and a.starts_at < b.ends_at and b.starts_at < a.ends_at

-- promise: places_kept
select true, 'sitting_overfull', k.organisation_id, jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'people', k.people, 'places', s.places)
  from (select organisation_id, sitting_id, count(*) as people from claim
         where organisation_id = any($1) and released_at is null and (expires_at is null or expires_at > (select clock()))
         group by organisation_id, sitting_id) k
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
 where k.people > s.places
 union all
select true, 'seat_beyond', k.organisation_id,
       jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'seat', k.seat_label, 'places', s.places, 'who', coalesce(c.reference, b.reference))
  from claim k
  join sitting s on (s.organisation_id, s.id) = (k.organisation_id, k.sitting_id)
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
  left join lateral (select * from candidate where organisation_id = k.organisation_id and id = k.candidate_id offset 0) c on true
  left join lateral (select * from reservation where organisation_id = k.organisation_id and id = k.reservation_id offset 0) b on true
 where k.organisation_id = any($1) and k.released_at is null and (k.seat_number > s.places or k.seat_number < 1 or k.places <> s.places)

-- promise: seat_there
-- Of a room with a plan a claim is on a seat that the plan has, that may be given, and by the name that it has there.
with planned as materialized (select distinct organisation_id, room_id from seat where organisation_id = any($1))
select true, case when p.number is null then 'seat_gone' when p.blocked then 'seat_blocked' else 'seat_renamed' end, k.organisation_id,
       jsonb_build_object('sitting', s.reference, 'place', r.name || ', ' || v.name, 'seat', k.seat_label, 'label', coalesce(p.label, ''),
                          'who', coalesce(c.reference, b.reference))
  from planned w
  join sitting s on (s.organisation_id, s.room_id) = (w.organisation_id, w.room_id)
  join claim k on (k.organisation_id, k.sitting_id) = (s.organisation_id, s.id) and k.organisation_id = any($1) and k.released_at is null and k.seat_number is not null
  left join seat p on (p.organisation_id, p.room_id, p.number) = (w.organisation_id, w.room_id, k.seat_number)
  cross join lateral (select * from room where organisation_id = s.organisation_id and id = s.room_id offset 0) r
  cross join lateral (select * from centre where organisation_id = r.organisation_id and id = r.centre_id offset 0) v
  left join lateral (select * from candidate where organisation_id = k.organisation_id and id = k.candidate_id offset 0) c on true
  left join lateral (select * from reservation where organisation_id = k.organisation_id and id = k.reservation_id offset 0) b on true
 where s.ends_at > (select clock()) and s.cancelled_at is null and (k.expires_at is null or k.expires_at > (select clock()))
   and (p.number is null or p.blocked or p.label <> k.seat_label)
