package intake

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/seating"
)

// A list of sittings is imported again, and the sittings were moved or changed by hand in between. What files said of
// each is kept. It tells which sitting a row means, and what of the row is new; what is not changes nothing.
//
// A place (exam, room and hour) means the sitting that files had there last, wherever it is now; and the one that stands
// there now where files had none, or a cancelled one. Only when the file also names the place where a moved sitting is
// now, it means that sitting there, and the row at the old place speaks of another one. So a sitting is meant by one row
// of a file at most, and a file that knows nothing of what hands did means what it always meant.

// saying is what files said of the sittings of the campaign, and what this file means by its rows.
type saying struct {
	said     map[int64][]seating.Said  // by sitting, the latest last
	saidAt   map[digest]seating.Said   // what was said last at each place
	inOrder  []seating.Sitting         // what is not cancelled
	standing map[int64]seating.Sitting // the same by id
	meant    map[digest]int64          // by the place that the file names
	other    map[int64]bool            // sittings that are meant at the other of two instants that their clocks show alike
}

// lookUpMeant reads what files said of the sittings, and finds out which of them each place of the file means.
func (k *sittings) lookUpMeant(ctx context.Context, tx pgx.Tx, plan *sittingPlan) error {
	all, err := seating.SaidByFiles(ctx, tx, k.campaign)
	if err != nil {
		return err
	}
	plan.saying = saying{said: map[int64][]seating.Said{}, saidAt: map[digest]seating.Said{}, standing: map[int64]seating.Sitting{}, meant: map[digest]int64{}, other: map[int64]bool{}}
	if plan.inOrder, err = seating.Sittings(ctx, tx, k.campaign); err != nil {
		return err
	}
	for _, s := range plan.inOrder {
		plan.standing[s.ID] = s
	}
	for _, s := range all {
		plan.said[s.SittingID] = append(plan.said[s.SittingID], s)
		plan.saidAt[k.placeSaid(s)] = s
	}
	k.mean(plan, all)
	return nil
}

// mean gives each place that the file names the sitting that it means.
func (k *sittings) mean(plan *sittingPlan, said []seating.Said) {
	rows := map[int64]digest{} // by sitting, the place by which the file means it
	for _, s := range said {
		if place := k.placeSaid(s); k.named[place] && plan.saidAt[place].SittingID == s.SittingID && !plan.correctedSince(s) {
			plan.give(rows, s.SittingID, place)
		}
	}
	now := make([]digest, len(plan.inOrder))
	for i, s := range plan.inOrder {
		now[i] = k.placeNow(s)
	}
	for settled := false; !settled; { // a place that one sitting gives up may be taken by another
		settled = true
		for i, s := range plan.inOrder {
			if k.named[now[i]] && plan.mayGive(rows, s.ID, now[i]) {
				plan.give(rows, s.ID, now[i])
				settled = false
			}
		}
	}
	k.meanOtherHour(plan, rows)
}

// meanOtherHour lets a place whose hour the clocks show twice mean the sitting that is there at the other of the two instants,
// when no place of the file means that one otherwise. A row without an offset does not tell the two apart; one with it corrects
// what was understood without.
func (k *sittings) meanOtherHour(plan *sittingPlan, rows map[int64]digest) {
	for _, s := range plan.inOrder {
		other, twice := k.rowOf(s).otherHour()
		if _, meant := rows[s.ID]; meant || !twice || !k.named[other.place()] {
			continue
		}
		if _, held := plan.meant[other.place()]; !held {
			plan.give(rows, s.ID, other.place())
			plan.other[s.ID] = true
		}
	}
}

// mayGive tells whether the place where a sitting is now is left to it by the others that rows mean.
func (y *saying) mayGive(rows map[int64]digest, sittingID int64, now digest) bool {
	row, known := rows[sittingID]
	holder, held := y.meant[now]
	if known && row == now || !held {
		return !held
	}
	_, stands := y.standing[holder]
	return !known && !stands // what was cancelled makes way for what no row means otherwise
}

// correctedSince tells whether a file said since that the other of two instants is meant which the clocks show alike.
func (y *saying) correctedSince(s seating.Said) bool {
	all := y.said[s.SittingID]
	last := all[len(all)-1]
	return last.RoomID == s.RoomID && last.Starts.Equal(s.Starts) && last.StartsSecond != s.StartsSecond
}

func (y *saying) give(rows map[int64]digest, sittingID int64, place digest) {
	if before, known := rows[sittingID]; known {
		delete(y.meant, before)
	}
	rows[sittingID], y.meant[place] = place, sittingID
}

// placeSaid is the place that a file named. An hour that the clocks of another zone skip stays as it was written.
func (k *sittings) placeSaid(s seating.Said) digest {
	at, ok := seating.InstantOf(s.Starts, k.zoneOf(s.Centre), s.StartsSecond)
	if !ok {
		at = s.Starts
	}
	return sittingRow{exam: s.Exam, centre: s.Centre, room: s.Room, startsAt: at}.place()
}

// rowOf is a sitting as a row would name it.
func (k *sittings) rowOf(s seating.Sitting) sittingRow {
	return sittingRow{exam: s.Exam, centre: s.Centre, room: s.Room, startsAt: s.StartsAt.In(k.zoneOf(s.Centre))}
}

func (k *sittings) placeNow(s seating.Sitting) digest { return k.rowOf(s).place() }

// means finds the sitting that a row means, as it is, or the reference of one that was cancelled.
func (plan *sittingPlan) means(r *sittingRow) (before *seating.Hosted, cancelled string) {
	id, meant := plan.meant[r.place()]
	if !meant {
		return nil, ""
	}
	s, stands := plan.standing[id]
	if !stands {
		return nil, plan.said[id][0].Reference
	}
	for i, h := range plan.hosted[s.RoomID] {
		if h.ID == id {
			before = &plan.hosted[s.RoomID][i]
		}
	}
	return before, ""
}

// warnMoved says where the sitting is that files had where the row is.
func (k *sittings) warnMoved(v *verdict, r *sittingRow, s seating.Sitting, plan *sittingPlan) {
	if k.placeNow(s) == r.place() || !s.EndsAt.After(plan.now) { // what is over moved with the zone of its centre, if at all
		return
	}
	end := k.endAsSaid(r, s)
	facts := problem.Facts{"sitting": s.Reference, "place": s.Place(), "starts_at": s.Begins(), "command": k.moveCommand(s, r, end, plan)}
	other, taken := inTheWay(plan.hosted[plan.rooms[r.roomKey()]], r.startsAt, end, s.ID)
	if taken {
		facts["taken"], facts["taken_exam"] = other.Reference, other.Exam
		facts["taken_from"], facts["taken_to"] = k.instant(r, other.StartsAt), k.instant(r, other.EndsAt)
	} else if _, itself := inTheWay(plan.hosted[plan.rooms[r.roomKey()]], r.startsAt, end, 0); !itself {
		facts["add"] = k.addCommand(r)
	}
	v.warn(k.importer, "", "", "sitting_moved", facts)
}

// endAsSaid is the end of the row, else the one that keeps how long the sitting lasts.
func (k *sittings) endAsSaid(r *sittingRow, s seating.Sitting) time.Time {
	if r.endsAt != nil {
		return *r.endsAt
	}
	return r.startsAt.Add(s.EndsAt.Sub(s.StartsAt))
}

// saidLast is what a file said last of a sitting; of one that none has named, what was said last at the place of the row.
func (plan *sittingPlan) saidLast(r *sittingRow, sittingID int64) (last seating.Said, known bool) {
	if said := plan.said[sittingID]; len(said) > 0 {
		return said[len(said)-1], true
	}
	last, known = plan.saidAt[r.place()]
	return last, known
}

// note keeps what a row says of a sitting, where that is not what a file said last. A place alone is new only where the
// sitting stands there; an end only where it was taken.
func (k *sittings) note(r *sittingRow, before seating.Hosted, end *time.Time, plan *sittingPlan) {
	last, known := plan.saidLast(r, before.ID)
	said := seating.Said{
		SittingID: before.ID, RoomID: plan.rooms[r.roomKey()], Capacity: last.Capacity,
		Starts: seating.OnClock(r.startsAt), StartsSecond: seating.Second(r.startsAt), Ends: last.Ends, EndsSecond: last.EndsSecond,
	}
	switch {
	case end != nil:
		said.Ends, said.EndsSecond = r.onClock(*end)
	case !known:
		said.Ends, said.EndsSecond = r.onClock(before.EndsAt)
	}
	if r.capacity != nil {
		said.Capacity = r.capacity
	}
	compared := said
	if known && !plan.other[before.ID] && k.placeNow(plan.standing[before.ID]) != r.place() {
		compared.RoomID, compared.Starts, compared.StartsSecond = last.RoomID, last.Starts, last.StartsSecond
	}
	if !known || !compared.Same(last) {
		plan.noted = append(plan.noted, said)
	}
}

// onClock is what the clocks of the row's centre show at an instant, and whether it is for the second time.
func (r sittingRow) onClock(at time.Time) (hour time.Time, second bool) {
	local := at.In(r.startsAt.Location())
	return seating.OnClock(local), seating.Second(local)
}

// endsWhenSaid tells whether an instant is the end that a file said.
func (r sittingRow) endsWhenSaid(s seating.Said, at time.Time) bool {
	said, ok := seating.InstantOf(s.Ends, r.startsAt.Location(), s.EndsSecond)
	return ok && said.Equal(at)
}

// endBesideHand is the end that a row gives a sitting, and what of the row was taken (nil: nothing). It is the one that
// stands where the row says nothing new, and where it cannot be meant any more: with another start than the one that
// stands, or in a list of long ago when people were told another end since. Elsewhere it is the row's.
func (k *sittings) endBesideHand(v *verdict, r *sittingRow, before seating.Hosted, plan *sittingPlan) (end time.Time, taken *time.Time) {
	if r.endsAt == nil || before.EndsAt.Equal(*r.endsAt) {
		return before.EndsAt, r.endsAt
	}
	s := plan.standing[before.ID]
	last, known := plan.saidLast(r, before.ID)
	saidBefore := slices.ContainsFunc(plan.said[before.ID], func(s seating.Said) bool { return r.endsWhenSaid(s, *r.endsAt) })
	facts := problem.Facts{"sitting": before.Reference, "starts_at": s.Begins(), "ends_at": s.Ends(), "command": k.moveCommand(s, r, *r.endsAt, plan)}
	said := k.instant(r, *r.endsAt)
	byHand := !known || !r.endsWhenSaid(last, before.EndsAt)
	switch {
	case !before.StartsAt.Equal(r.startsAt):
		if !saidBefore {
			v.warnField(k.importer, colEnds, "sitting_end_kept", facts)
		}
		return before.EndsAt, nil
	case byHand && known && r.endsWhenSaid(last, *r.endsAt):
		facts["kept"], facts["said"], facts["command"] = s.Ends(), said, k.endCommand(s, *r.endsAt)
		v.warnField(k.importer, colEnds, "hand_kept", facts)
		return before.EndsAt, nil
	case saidBefore && plan.uses[before.ID].People > 0:
		v.warnField(k.importer, colEnds, "sitting_end_kept", facts)
		return before.EndsAt, nil
	case byHand:
		facts["lost"], facts["said"], facts["command"] = s.Ends(), said, k.endCommand(s, before.EndsAt)
		v.warnField(k.importer, colEnds, "hand_overwritten", facts)
	}
	return *r.endsAt, r.endsAt
}

// capacityBesideHand is the number of places that a row gives a sitting, by the same rule.
func (k *sittings) capacityBesideHand(v *verdict, r *sittingRow, before seating.Hosted, plan *sittingPlan) *int {
	if before.Capacity == nil && len(plan.said[before.ID]) == 0 { // added by hand without a number: nobody has written over this one
		return r.capacity
	}
	last, _ := plan.saidLast(r, before.ID)
	if sameCapacity(before.Capacity, last.Capacity) || sameCapacity(before.Capacity, r.capacity) {
		return r.capacity
	}
	facts := problem.Facts{"said": capacityWord(r.capacity)}
	if sameCapacity(r.capacity, last.Capacity) {
		facts["kept"], facts["command"] = capacityWord(before.Capacity), k.capacityCommand(before.Reference, r.capacity)
		v.warnField(k.importer, colCapacity, "hand_kept", facts)
		return before.Capacity
	}
	facts["lost"], facts["command"] = capacityWord(before.Capacity), k.capacityCommand(before.Reference, before.Capacity)
	v.warnField(k.importer, colCapacity, "hand_overwritten", facts)
	return r.capacity
}
