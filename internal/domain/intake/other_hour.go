package intake

import (
	"time"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
	"usher/internal/domain/seating"
)

// Clocks that are put back show an hour twice. A cell with an offset names one of the two instants; one without means the first
// while nothing else is known, and else the one at which the sitting is. So what was understood can be corrected in the file,
// and a file that lost its offsets undoes no correction.

// readOtherHour reads a row without an offset by the start of the sitting that it means, which is the other instant than the one
// first understood.
func (k *sittings) readOtherHour(v *verdict, r *sittingRow, s seating.Hosted) {
	_, facts, bare := r.starts.Doubt()
	if !bare {
		return
	}
	zone := r.startsAt.Location()
	r.startsAt, r.starts = s.StartsAt.In(zone), Hour{}
	v.warnField(k.importer, colStarts, "time_comes_twice_there", problem.Facts{
		"zone": facts["zone"], "sitting": s.Reference, "understood": sheet.WriteInstant(r.startsAt), "other": facts["understood"],
	})
	if r.endsAt == nil {
		return
	}
	// It was read before, after another start.
	if end, err := ReadEnd(k.order, r.ends.text, zone, r.startsAt); err == nil {
		r.ends, r.endsAt = end, &end.At
	}
}

// rejectOtherHour refuses another start than the one that the people of a sitting were told, and one at which its room is taken.
func (k *sittings) rejectOtherHour(v *verdict, r *sittingRow, end time.Time, before seating.Hosted, plan *sittingPlan) (refused bool) {
	s, people := plan.standing[before.ID], plan.uses[before.ID].People
	if people == 0 {
		return !k.checkHours(v, r.startsAt, end) || k.rejectTaken(v, r, plan.hosted[before.RoomID], r.startsAt, end, before.ID)
	}
	v.rejectField(k.importer, colStarts, "sitting_replaced", problem.Facts{
		"sitting": s.Reference, "place": s.Place(), "starts_at": s.Begins(), "in_use": people, "command": k.moveCommand(s, r, end, plan),
	})
	return true
}
