package intake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/i18n"
	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/admission"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

func (k *sittings) decide(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow]) (func(context.Context, pgx.Tx) error, error) {
	plan := &sittingPlan{taken: map[string][]taking{}, there: map[string]bool{}}
	k.plan = plan
	var err error
	if plan.roomNames, err = k.lookUp(ctx, tx, rows); err != nil {
		return nil, err
	}
	if err := k.lookUpNames(ctx, tx, rows, plan); err != nil {
		return nil, err
	}
	if plan.next, err = seating.NextReference(ctx, tx, k.campaign); err != nil {
		return nil, err
	}
	if err := k.lookUpMeant(ctx, tx, plan); err != nil {
		return nil, err
	}
	if err := k.lookUpHosted(ctx, tx, rows, plan); err != nil {
		return nil, err
	}
	if plan.leftOut, err = k.lookUpLeftOut(ctx, tx, plan); err != nil {
		return nil, err
	}
	for _, e := range rows {
		if e.outcome == pending {
			k.decideRow(e, plan)
		}
	}
	return func(ctx context.Context, tx pgx.Tx) error { return k.write(ctx, tx, plan) }, nil
}

func (k *sittings) lookUp(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow]) (roomNames, error) {
	n := roomNames{exams: map[string]int64{}, centres: map[string]int64{}, rooms: map[string]int64{}, hosted: map[int64][]seating.Hosted{}}
	var err error
	if n.now, err = pg.Now(ctx, tx); err != nil {
		return n, err
	}
	exams, err := seating.Exams(ctx, tx, k.campaign, "")
	if err != nil {
		return n, err
	}
	for _, exam := range exams {
		n.exams[nameKey(exam.Code)] = exam.ID
	}
	if n.durations, err = admission.ExamDurations(ctx, tx, k.campaign); err != nil {
		return n, err
	}
	centres, err := centresOf(ctx, tx, k.campaign.OrganisationID)
	if err != nil {
		return n, err
	}
	for _, c := range centres {
		n.centres[c.Key] = c.ID
	}
	n.rooms, err = k.lookUpRooms(ctx, tx, rows)
	return n, err
}

func (k *sittings) lookUpRooms(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow]) (map[string]int64, error) {
	centres, names := make([]string, len(rows)), make([]string, len(rows))
	for i, e := range rows {
		centres[i], names[i] = e.record.centre, e.record.room
	}
	found, err := tx.Query(ctx, `
select distinct w.centre, w.room, r.id from unnest($2::text[], $3::text[]) w(centre, room)
  join centre c on c.organisation_id = $1 and name_key(c.name) = name_key(w.centre)
  join room r on r.organisation_id = $1 and r.centre_id = c.id and name_key(r.name) = name_key(w.room)`,
		k.campaign.OrganisationID, centres, names)
	if err != nil {
		return nil, fmt.Errorf("look up the rooms: %w", err)
	}
	rooms := map[string]int64{}
	var r sittingRow
	var id int64
	if _, err := pgx.ForEachRow(found, []any{&r.centre, &r.room, &id}, func() error { rooms[r.roomKey()] = id; return nil }); err != nil {
		return nil, fmt.Errorf("look up the rooms: %w", err)
	}
	return rooms, nil
}

// lookUpHosted reads what the rooms of the rows, and of the sittings that they mean, host around the time of both.
func (k *sittings) lookUpHosted(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow], plan *sittingPlan) error {
	var from, to time.Time
	around := func(start time.Time) {
		if from.IsZero() || start.Before(from) {
			from = start
		}
		if start.After(to) {
			to = start
		}
	}
	var rooms, sittingIDs []int64
	for _, id := range plan.rooms {
		rooms = append(rooms, id)
	}
	for _, e := range rows {
		around(e.record.startsAt)
		if s, stands := plan.standing[plan.meant[e.record.place()]]; stands {
			around(s.StartsAt)
			rooms = append(rooms, s.RoomID)
		}
	}
	slices.Sort(rooms)
	rooms = slices.Compact(rooms)
	var err error
	if plan.holds, err = seating.RoomsHold(ctx, tx, k.campaign.OrganisationID, rooms); err != nil {
		return err
	}
	hosted, err := seating.HostedBy(ctx, tx, k.campaign.OrganisationID, rooms, from.Add(-seating.Longest), to.Add(seating.Longest))
	if err != nil {
		return err
	}
	for _, h := range hosted {
		plan.hosted[h.RoomID] = append(plan.hosted[h.RoomID], h)
		sittingIDs = append(sittingIDs, h.ID)
	}
	plan.uses, err = seating.PlacesInUse(ctx, tx, k.campaign.OrganisationID, sittingIDs)
	return err
}

func (k *sittings) decideRow(e *entry[sittingRow], plan *sittingPlan) {
	r, v := &e.record, &e.verdict
	before, cancelled := plan.means(r)
	if before != nil && plan.other[before.ID] {
		k.readOtherHour(v, r, *before)
	}
	k.warnTwice(v, colStarts, r.starts)
	k.warnTwice(v, colEnds, r.ends)
	switch {
	case cancelled != "":
		v.reference = cancelled
		v.warn(k.importer, "", "", "sitting_cancelled", problem.Facts{"sitting": cancelled, "command": k.addCommand(r)})
		v.outcome = unchanged
	case before != nil:
		k.decideKnown(e, *before, plan)
	default:
		k.decideNew(e, plan)
	}
}

// decideNew decides a row that speaks of no sitting there is.
func (k *sittings) decideNew(e *entry[sittingRow], plan *sittingPlan) {
	r, v := &e.record, &e.verdict
	room := plan.rooms[r.roomKey()] // 0: not known, and it hosts nothing
	exam, examKnown := plan.exams[nameKey(r.exam)]
	end, ok := k.endOfNew(v, r, plan.durations[exam], examKnown)
	if !ok || k.rejectReplaced(v, r, end, plan) || k.rejectTaken(v, r, plan.hosted[room], r.startsAt, end, 0) || k.rejectTakenInFile(v, r, end, plan) {
		return
	}
	if r.startsAt.Before(plan.now) {
		v.warnField(k.importer, colStarts, "sitting_past", nil)
	}
	k.warnReplaced(v, r, end, plan)
	v.outcome = created
	v.reference = seating.Reference(plan.next + len(plan.added))
	plan.taken[r.roomKey()] = append(plan.taken[r.roomKey()], taking{r.startsAt, end, v.line})
	added := seating.Planned{Reference: v.reference, StartsAt: r.startsAt, EndsAt: end, Capacity: r.capacity}
	k.warnBeyondRoom(v, v.name, room, nil, added, plan)
	k.nameNew(v, r, plan)
	plan.added = append(plan.added, &plannedAs{entry: e, Planned: added})
}

// warnBeyondRoom warns of places of a sitting that are more than its room is known to hold; before are those that it has (nil: it
// is new).
func (k *sittings) warnBeyondRoom(v *verdict, place string, roomID int64, before *int, after seating.Planned, plan *sittingPlan) {
	holds, known := plan.holds[roomID]
	if after.Capacity == nil || !known || *after.Capacity <= holds {
		return
	}
	v.warnField(k.importer, colCapacity, "capacity_beyond_room", problem.Facts{
		"sitting": after.Reference, "place": place, "before": capacityWord(before), "places": *after.Capacity, "holds": holds,
		"command": k.capacityCommand(after.Reference, nil),
	})
}

// durationCommand is what gives an exam a duration; one that only the file names so far is added first.
func (k *sittings) durationCommand(exam string, known bool) string {
	of := " " + shellQuoted(exam) + " --campaign " + k.campaign.Slug
	command := "usher exam edit" + of + " --minutes …"
	if !known {
		command = "usher exam add" + of + " && " + command
	}
	return command
}

// end is the row's, else the start and how long its exam lasts (0: nobody said), if either is said.
func (r *sittingRow) end(minutes int) (end time.Time, said bool) {
	if r.endsAt != nil {
		return *r.endsAt, true
	}
	return r.startsAt.Add(time.Duration(minutes) * time.Minute), minutes > 0
}

// endOfNew is the end of a row that speaks of no sitting there is; without one it is refused.
func (k *sittings) endOfNew(v *verdict, r *sittingRow, minutes int, examKnown bool) (time.Time, bool) {
	end, said := r.end(minutes)
	if !said {
		v.rejectField(k.importer, colEnds, "ends_missing", problem.Facts{"exam": r.exam, "command": k.durationCommand(r.exam, examKnown)})
		return end, false
	}
	return end, k.checkHours(v, r.startsAt, end)
}

func (k *sittings) checkHours(v *verdict, startsAt, endsAt time.Time) bool {
	hours := seating.CheckHours(startsAt, endsAt)
	switch hours {
	case seating.HoursBackwards:
		v.rejectField(k.importer, colEnds, "ends_before_start", nil)
	case seating.HoursTooLong:
		v.rejectField(k.importer, colEnds, "sitting_too_long", problem.Facts{"hours": int(seating.Longest.Hours())})
	}
	return hours == seating.HoursInOrder
}

// rejectTaken names the sitting, other than the one given (0: none), that has the room. The constraint
// sitting_room_free has the last word; this gives it its sentence.
func (k *sittings) rejectTaken(v *verdict, r *sittingRow, hosted []seating.Hosted, from, to time.Time, but int64) bool {
	h, taken := inTheWay(hosted, from, to, but)
	if taken {
		v.rejectField(k.importer, colRoom, "room_taken", problem.Facts{
			"room": v.name, "sitting": h.Reference, "exam": h.Exam, "starts_at": k.instant(r, h.StartsAt), "ends_at": k.instant(r, h.EndsAt),
		})
	}
	return taken
}

// inTheWay finds what a room hosts within a time, other than the sitting given (0: none).
func inTheWay(hosted []seating.Hosted, from, to time.Time, but int64) (seating.Hosted, bool) {
	for _, h := range hosted {
		if !h.Cancelled && h.ID != but && h.StartsAt.Before(to) && h.EndsAt.After(from) {
			return h, true
		}
	}
	return seating.Hosted{}, false
}

func (k *sittings) rejectTakenInFile(v *verdict, r *sittingRow, end time.Time, plan *sittingPlan) bool {
	for _, takings := range [][]taking{k.taken[r.roomKey()], plan.taken[r.roomKey()]} {
		for _, t := range takings {
			if t.from.Before(end) && t.to.After(r.startsAt) {
				v.rejectField(k.importer, colRoom, "room_taken_in_file", problem.Facts{
					"room": v.name, "first_line": t.line, "starts_at": k.instant(r, t.from), "ends_at": k.instant(r, t.to),
				})
				return true
			}
		}
	}
	return false
}

func (k *sittings) instant(r *sittingRow, at time.Time) i18n.Instant {
	return i18n.Instant{At: at, Zone: r.startsAt.Location().String()}
}

// decideKnown compares a sitting, wherever it is now, with what the row makes of it.
func (k *sittings) decideKnown(e *entry[sittingRow], before seating.Hosted, plan *sittingPlan) {
	r, v := &e.record, &e.verdict
	v.reference = before.Reference
	standing := plan.standing[before.ID]
	// Whatever became of the sitting since, the file has the room at that hour, and another row of it at the same hour is as wrong
	// as when it came first.
	until, isSaid := r.end(plan.durations[before.ExamID])
	if !isSaid {
		until = k.endAsSaid(r, standing)
	}
	plan.taken[r.roomKey()] = append(plan.taken[r.roomKey()], taking{r.startsAt, until, v.line})
	startsAt, end, said, ok := k.hoursOfKnown(v, r, before, plan)
	if !ok {
		return
	}
	if r.startsAt.Before(plan.now) && !before.StartsAt.After(plan.now) {
		v.warnField(k.importer, colStarts, "sitting_past", nil)
	}
	after := seating.Planned{
		ID: before.ID, Reference: before.Reference, ExamID: before.ExamID, RoomID: before.RoomID, StartsAt: startsAt,
		EndsAt: end, Capacity: before.Capacity,
	}
	if r.capacity != nil {
		after.Capacity = k.capacityBesideHand(v, r, before, plan)
	} else if before.Capacity != nil && k.columns.Has(colCapacity) {
		v.warnField(k.importer, colCapacity, "value_kept", problem.Facts{"command": k.capacityCommand(before.Reference, nil)})
	}
	if sameCapacity(before.Capacity, after.Capacity) && before.StartsAt.Equal(after.StartsAt) && before.EndsAt.Equal(after.EndsAt) {
		v.outcome = unchanged
		k.note(r, before, said, plan)
		return
	}
	if k.rejectCapacity(v, after, plan.uses[before.ID]) {
		return
	}
	v.outcome = updated
	if !sameCapacity(before.Capacity, after.Capacity) {
		places := before.Places
		k.warnBeyondRoom(v, standing.Place(), before.RoomID, &places, after, plan)
	}
	k.note(r, before, said, plan)
	plan.changed = append(plan.changed, &plannedAs{entry: e, before: before, Planned: after})
}

// hoursOfKnown are the hours that a row leaves or gives a sitting, and what of its end was taken (nil: nothing).
func (k *sittings) hoursOfKnown(v *verdict, r *sittingRow, before seating.Hosted, plan *sittingPlan) (startsAt, end time.Time, said *time.Time, ok bool) {
	if r.endsAt != nil && !k.checkHours(v, r.startsAt, *r.endsAt) {
		return startsAt, end, nil, false
	}
	standing := plan.standing[before.ID]
	if plan.other[before.ID] && !before.StartsAt.Equal(r.startsAt) {
		end = k.endAsSaid(r, standing)
		return r.startsAt, end, &end, !k.rejectOtherHour(v, r, end, before, plan)
	}
	k.warnMoved(v, r, standing, plan)
	end, said = k.endBesideHand(v, r, before, plan)
	taken := end.After(before.EndsAt) && k.rejectTaken(v, r, plan.hosted[before.RoomID], before.StartsAt, end, before.ID)
	return before.StartsAt, end, said, !taken && !k.rejectHours(v, standing, end, plan)
}

// rejectCapacity refuses places that would not do for the people of a sitting.
func (k *sittings) rejectCapacity(v *verdict, after seating.Planned, use seating.InUse) bool {
	if after.Capacity == nil {
		return false
	}
	facts := problem.Facts{"sitting": after.Reference, "in_use": use.People, "seat": use.Highest}
	switch {
	case *after.Capacity < use.People:
		v.rejectField(k.importer, colCapacity, "capacity_in_use", facts)
	case *after.Capacity < use.Highest:
		v.rejectField(k.importer, colCapacity, "seat_in_use", facts)
	default:
		return false
	}
	return true
}

func sameCapacity(a, b *int) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (k *sittings) write(ctx context.Context, tx pgx.Tx, plan *sittingPlan) error {
	if len(plan.added)+len(plan.changed) == 0 {
		return seating.NoteSaid(ctx, tx, k.campaign, plan.noted)
	}
	if err := k.ensureNames(ctx, tx, plan); err != nil {
		return err
	}
	added, changed := make([]*seating.Planned, len(plan.added)), make([]seating.Planned, len(plan.changed))
	var rooms []int64
	for i, s := range plan.added {
		added[i] = &s.Planned
		rooms = append(rooms, s.RoomID)
	}
	for i, s := range plan.changed {
		changed[i] = s.Planned
		rooms = append(rooms, s.RoomID)
	}
	if err := seating.LockRooms(ctx, tx, k.campaign.OrganisationID, rooms...); err != nil {
		return err
	}
	if err := seating.AddSittings(ctx, tx, k.campaign, added); err != nil {
		return err
	}
	if err := seating.UpdateSittings(ctx, tx, k.campaign, changed); err != nil {
		return err
	}
	for _, s := range plan.added {
		said := seating.Said{
			SittingID: s.ID, RoomID: s.RoomID, Starts: seating.OnClock(s.StartsAt), StartsSecond: seating.Second(s.StartsAt), Capacity: s.Capacity,
		}
		said.Ends, said.EndsSecond = s.entry.record.onClock(s.EndsAt)
		plan.noted = append(plan.noted, said)
	}
	if err := seating.NoteSaid(ctx, tx, k.campaign, plan.noted); err != nil {
		return err
	}
	if err := timeline.Record(ctx, tx, k.campaign.OrganisationID, k.actor, k.history(plan)...); err != nil {
		return err
	}
	return admission.Revise(ctx, tx, k.campaign)
}

func (k *sittings) history(plan *sittingPlan) []timeline.Entry {
	var entries []timeline.Entry
	for _, s := range plan.added {
		entries = append(entries, k.told("sitting_added", s, s.entry.record.centre, s.entry.record.room, nil))
	}
	for _, s := range plan.changed {
		changes := map[string][2]string{}
		if !sameCapacity(s.before.Capacity, s.Capacity) {
			changes[colCapacity] = [2]string{capacityWord(s.before.Capacity), capacityWord(s.Capacity)}
		}
		if !s.before.StartsAt.Equal(s.StartsAt) {
			changes[colStarts] = [2]string{s.before.StartsAt.UTC().Format(time.RFC3339), s.StartsAt.UTC().Format(time.RFC3339)}
		}
		if !s.before.EndsAt.Equal(s.EndsAt) {
			changes[colEnds] = [2]string{s.before.EndsAt.UTC().Format(time.RFC3339), s.EndsAt.UTC().Format(time.RFC3339)}
		}
		at := plan.standing[s.ID]
		entries = append(entries, k.told("sitting_updated", s, at.Centre, at.Room, changes))
	}
	return entries
}

func (k *sittings) told(kind timeline.Kind, s *plannedAs, centre, room string, changes map[string][2]string) timeline.Entry {
	zone := k.zoneOf(centre).String()
	facts := map[string]any{
		"sitting": s.Reference, "exam": s.entry.record.exam, "centre": centre, "room": room,
		"starts_at": i18n.Instant{At: s.StartsAt, Zone: zone}, "ends_at": i18n.Instant{At: s.EndsAt, Zone: zone}, "line": s.entry.line,
	}
	if s.Capacity != nil {
		facts["capacity"] = *s.Capacity
	}
	if changes != nil {
		facts["changes"] = changes
	}
	return timeline.Entry{
		Kind: kind, Subject: timeline.Subject{CampaignID: k.campaign.ID, SittingID: s.ID, RunID: k.result.RunID}, Facts: facts,
	}
}

func capacityWord(capacity *int) string {
	if capacity == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(*capacity))
}
