package checkin

import "usher/internal/domain/promise"

// Promises are what holds at doors at any moment: nobody comes in twice. What doors without a network did, and a person has to look at,
// is listed by EachConflict and is no broken promise.
func Promises() []promise.Promise {
	return []promise.Promise{{Name: "let_in_once", Statement: `
select true, 'let_in_twice', d.organisation_id, jsonb_build_object('reference', coalesce(c.reference, b.reference), 'sitting', s.reference, 'times', d.times)
  from (select organisation_id, sitting_id, candidate_id, reservation_id, line_number, count(*) as times from scan
         where organisation_id = any($1) and verdict = 'in' and undone_at is null
         group by organisation_id, sitting_id, candidate_id, reservation_id, line_number having count(*) > 1) d
  cross join lateral (select * from sitting where organisation_id = d.organisation_id and id = d.sitting_id offset 0) s
  left join lateral (select * from candidate where organisation_id = d.organisation_id and id = d.candidate_id offset 0) c on true
  left join lateral (select * from reservation where organisation_id = d.organisation_id and id = d.reservation_id offset 0) b on true`, Guards: []promise.Guard{
		{Name: "scan_in_candidate", Over: "scan (organisation_id, sitting_id, candidate_id) WHERE ((candidate_id IS NOT NULL) AND (verdict = 'in'::text) AND (undone_at IS NULL))"},
		{Name: "scan_in_ticket", Over: "scan (organisation_id, sitting_id, reservation_id, line_number) WHERE ((reservation_id IS NOT NULL) AND (verdict = 'in'::text) AND (undone_at IS NULL))"},
		{Name: "scan_nonce_key", Over: "scan (organisation_id, device, nonce)"},
	}}}
}
