package reservation

import "usher/internal/domain/promise"

// Promises are what holds of reservations at any moment: each ticket that is paid has its seat, and each is in the timeline.
func Promises() []promise.Promise {
	return []promise.Promise{
		{Name: "tickets_seated", Statement: `
select true, 'ticket_unseated', organisation_id,
       jsonb_build_object('reference', reservation, 'ticket', ticket::text, 'event', event, 'sitting', sitting, 'seat', seat)
  from (` + unseatedSQL + `) u`},
		{Name: "reservations_written", Statement: `
select true, 'reservation_unwritten', r.organisation_id,
       jsonb_build_object('reference', r.reference, 'at', jsonb_build_object('at', r.held_at, 'zone', o.time_zone))
  from reservation r join organisation o on o.id = r.organisation_id
 where r.organisation_id = any($1)
   and not exists (select from timeline t where t.organisation_id = r.organisation_id and t.reservation_id = r.id)
 union all
select true, 'written_of_no_reservation', t.organisation_id, jsonb_build_object('row', t.id::text)
  from timeline t
 where t.organisation_id = any($1) and t.reservation_id is not null
   and not exists (select from reservation r where r.organisation_id = t.organisation_id and r.id = t.reservation_id)`},
	}
}
