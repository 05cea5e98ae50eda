package event

import "usher/internal/domain/promise"

// Promises are what holds of events at any moment: one all of whose sittings are closed is on sale no more.
func Promises() []promise.Promise {
	return []promise.Promise{{Name: "events_closed", Statement: `
select true, 'event_over_on_sale', e.organisation_id, jsonb_build_object('event', e.name, 'slug', e.slug)
  from event e
  join (select organisation_id, event_id from sitting where organisation_id = any($1) and event_id is not null and cancelled_at is null
         group by organisation_id, event_id having bool_and(closed_at is not null)) s on (s.organisation_id, s.event_id) = (e.organisation_id, e.id)
 where e.organisation_id = any($1) and e.state = 'on_sale'`}}
}
