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
	plan := &sittingPlan{taken: map[string][]taking{}}
	k.plan = plan
	var err error
	if plan.roomNames, err = k.lookUp(ctx, tx, rows); err != nil {
		return nil, err
	}
	if plan.next, err = seating.NextReference(ctx, tx, k.campaign); err != nil {
		return nil, err
	}
	if plan.moved, err = k.lookUpMoved(ctx, tx); err != nil {
		return nil, err
	}
	for _, e := range rows {
		if e.outcome == pending {
			k.decideRow(e, plan)
		}
	}
	if err := k.rejectClashes(ctx, tx, plan); err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx) error { return k.write(ctx, tx, plan) }, nil
}

// rejectClashes refuses a later end at which somebody of the sitting sits elsewhere.
func (k *sittings) rejectClashes(ctx context.Context, tx pgx.Tx, plan *sittingPlan) error {
	var ids []int64
	var ends []time.Time
	for _, s := range plan.changed {
		if s.EndsAt.After(s.before.EndsAt) && plan.uses[s.ID].People > 0 {
			ids, ends = append(ids, s.ID), append(ends, s.EndsAt)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
select w.id, o.reference, concat_ws(' ', c.family_name, nullif(c.given_name, ''))
  from unnest($2::bigint[], $3::timestamptz[]) w(id, ends_at)
  join sitting s on s.organisation_id = $1 and s.id = w.id
  join claim k on k.organisation_id = $1 and k.sitting_id = w.id and k.released_at is null
  join claim l on l.organisation_id = $1 and l.candidate_id = k.candidate_id and l.id <> k.id and l.released_at is null
  join sitting o on o.organisation_id = $1 and o.id = l.sitting_id and o.starts_at < w.ends_at and o.ends_at > s.starts_at
  join candidate c on c.organisation_id = $1 and c.id = k.candidate_id
 order by w.id, c.filed_at desc, c.id desc`, k.campaign.OrganisationID, ids, ends)
	if err != nil {
		return fmt.Errorf("look for clashes: %w", err)
	}
	clashes := map[int64]problem.Facts{} // the earliest filer is named
	var id int64
	var other, name string
	_, err = pgx.ForEachRow(rows, []any{&id, &other, &name}, func() error {
		clashes[id] = problem.Facts{"name": name, "other": other}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for clashes: %w", err)
	}
	plan.changed = slices.DeleteFunc(plan.changed, func(s *plannedAs) bool {
		facts, clash := clashes[s.ID]
		if clash {
			s.entry.rejectField(k.importer, colEnds, "ends_clash", facts)
		}
		return clash
	})
	return nil
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
	if n.rooms, err = k.lookUpRooms(ctx, tx, rows); err != nil {
		return n, err
	}
	return n, k.lookUpHosted(ctx, tx, rows, &n)
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

// lookUpHosted reads what the rooms host around the time of the rows.
func (k *sittings) lookUpHosted(ctx context.Context, tx pgx.Tx, rows []*entry[sittingRow], n *roomNames) error {
	var from, to time.Time
	for _, e := range rows {
		if start := e.record.startsAt; from.IsZero() || start.Before(from) {
			from = start
		}
		if start := e.record.startsAt; start.After(to) {
			to = start
		}
	}
	var ids, sittingIDs []int64
	for _, id := range n.rooms {
		ids = append(ids, id)
	}
	hosted, err := seating.HostedBy(ctx, tx, k.campaign.OrganisationID, ids, from.Add(-longest), to.Add(longest))
	if err != nil {
		return err
	}
	for _, h := range hosted {
		n.hosted[h.RoomID] = append(n.hosted[h.RoomID], h)
		sittingIDs = append(sittingIDs, h.ID)
	}
	n.uses, err = seating.PlacesInUse(ctx, tx, k.campaign.OrganisationID, sittingIDs)
	return err
}

// lookUpMoved reads where and when the sittings of the campaign were to be held when they were
// added: a list that was imported before a sitting moved still means that sitting, and must not
// hold it again at the old place.
func (k *sittings) lookUpMoved(ctx context.Context, tx pgx.Tx) (map[digest]string, error) {
	// Materialized, so that the timeline is read once and not once a sitting.
	rows, err := tx.Query(ctx, `
with added as materialized (
  select sitting_id, facts from timeline where organisation_id = $1 and campaign_id = $2 and kind = 'sitting_added')
select s.reference, t.facts->>'exam', t.facts->>'centre', t.facts->>'room', (t.facts->'starts_at'->>'at')::timestamptz
  from added t join sitting s on s.organisation_id = $1 and s.id = t.sitting_id`, k.campaign.OrganisationID, k.campaign.ID)
	if err != nil {
		return nil, fmt.Errorf("look for sittings that moved: %w", err)
	}
	moved := map[digest]string{}
	var reference string
	var r sittingRow
	_, err = pgx.ForEachRow(rows, []any{&reference, &r.exam, &r.centre, &r.room, &r.startsAt}, func() error {
		moved[r.identity()] = reference
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for sittings that moved: %w", err)
	}
	return moved, nil
}

func (k *sittings) decideRow(e *entry[sittingRow], plan *sittingPlan) {
	r, v := &e.record, &e.verdict
	room, roomKnown := plan.rooms[r.roomKey()]
	exam, examKnown := plan.exams[nameKey(r.exam)]
	var before *seating.Hosted
	for i, h := range plan.hosted[room] {
		if roomKnown && examKnown && h.CampaignID == k.campaign.ID && h.ExamID == exam && h.StartsAt.Equal(r.startsAt) {
			if before == nil || before.Cancelled {
				before = &plan.hosted[room][i]
			}
		}
	}
	if before != nil && before.Cancelled {
		v.reference = before.Reference
		v.warn(k.importer, "", "", "sitting_cancelled", problem.Facts{"sitting": before.Reference})
		v.outcome = unchanged
		return
	}
	if reference, moved := plan.moved[v.identity]; before == nil && moved {
		v.reference = reference
		v.warn(k.importer, "", "", "sitting_moved", problem.Facts{"sitting": reference})
		v.outcome = unchanged
		return
	}
	end, ok := k.end(v, r, before, plan.durations[exam])
	if !ok || k.rejectTaken(v, r, before, plan.hosted[room], end, plan) {
		return
	}
	if r.startsAt.Before(plan.now) {
		v.warnField(k.importer, colStarts, "sitting_past", nil)
	}
	if before != nil {
		k.change(e, *before, end, plan)
		return
	}
	v.outcome = created
	v.reference = seating.Reference(plan.next + len(plan.added))
	plan.taken[r.roomKey()] = append(plan.taken[r.roomKey()], taking{r.startsAt, end, v.line})
	plan.added = append(plan.added, &plannedAs{entry: e, Planned: seating.Planned{
		Reference: v.reference, StartsAt: r.startsAt, EndsAt: end, Capacity: r.capacity,
	}})
}

// end is the row's, else what is stored, else the start and the exam's duration.
func (k *sittings) end(v *verdict, r *sittingRow, before *seating.Hosted, minutes int) (time.Time, bool) {
	var end time.Time
	switch {
	case r.endsAt != nil:
		end = *r.endsAt
	case before != nil:
		end = before.EndsAt
	case minutes > 0:
		end = r.startsAt.Add(time.Duration(minutes) * time.Minute)
	default:
		v.rejectField(k.importer, colEnds, "ends_missing", problem.Facts{"exam": r.exam})
		return end, false
	}
	if !end.After(r.startsAt) {
		v.rejectField(k.importer, colEnds, "ends_before_start", nil)
		return end, false
	}
	if end.Sub(r.startsAt) > longest {
		v.rejectField(k.importer, colEnds, "sitting_too_long", problem.Facts{"hours": int(longest.Hours())})
		return end, false
	}
	return end, true
}

// rejectTaken names the sitting that has the room. The constraint sitting_room_free has the last
// word; this gives it its sentence.
func (k *sittings) rejectTaken(v *verdict, r *sittingRow, before *seating.Hosted, hosted []seating.Hosted, end time.Time, plan *sittingPlan) bool {
	for _, h := range hosted {
		if h.Cancelled || before != nil && h.ID == before.ID || !h.StartsAt.Before(end) || !h.EndsAt.After(r.startsAt) {
			continue
		}
		v.rejectField(k.importer, colRoom, "room_taken", problem.Facts{
			"room": v.name, "sitting": h.Reference, "exam": h.Exam, "starts_at": k.instant(r, h.StartsAt), "ends_at": k.instant(r, h.EndsAt),
		})
		return true
	}
	if before != nil {
		return false
	}
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

// change compares a sitting with what the row makes of it.
func (k *sittings) change(e *entry[sittingRow], before seating.Hosted, end time.Time, plan *sittingPlan) {
	r, v := &e.record, &e.verdict
	v.reference = before.Reference
	after := seating.Planned{
		ID: before.ID, Reference: before.Reference, ExamID: before.ExamID, RoomID: before.RoomID, StartsAt: before.StartsAt,
		EndsAt: end, Capacity: before.Capacity,
	}
	if r.capacity != nil {
		after.Capacity = r.capacity
	} else if before.Capacity != nil && k.columns.Has(colCapacity) {
		v.warnField(k.importer, colCapacity, "value_kept", nil)
	}
	if sameCapacity(before.Capacity, after.Capacity) && before.EndsAt.Equal(after.EndsAt) {
		v.outcome = unchanged
		return
	}
	use := plan.uses[before.ID]
	facts := problem.Facts{"sitting": before.Reference, "in_use": use.People, "seat": use.Highest}
	if after.Capacity != nil && *after.Capacity < use.People {
		v.rejectField(k.importer, colCapacity, "capacity_in_use", facts)
		return
	}
	if after.Capacity != nil && *after.Capacity < use.Highest {
		v.rejectField(k.importer, colCapacity, "seat_in_use", facts)
		return
	}
	v.outcome = updated
	plan.changed = append(plan.changed, &plannedAs{entry: e, before: before, Planned: after})
}

func sameCapacity(a, b *int) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (k *sittings) write(ctx context.Context, tx pgx.Tx, plan *sittingPlan) error {
	if len(plan.added)+len(plan.changed) == 0 {
		return nil
	}
	if err := k.ensureNames(ctx, tx, plan); err != nil {
		return err
	}
	added := make([]*seating.Planned, len(plan.added))
	for i, s := range plan.added {
		added[i] = &s.Planned
	}
	if err := seating.AddSittings(ctx, tx, k.campaign, added); err != nil {
		return err
	}
	changed := make([]seating.Planned, len(plan.changed))
	for i, s := range plan.changed {
		changed[i] = s.Planned
	}
	if err := seating.UpdateSittings(ctx, tx, k.campaign, changed); err != nil {
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
		entries = append(entries, k.told("sitting_added", s, nil))
	}
	for _, s := range plan.changed {
		changes := map[string][2]string{}
		if !sameCapacity(s.before.Capacity, s.Capacity) {
			changes[colCapacity] = [2]string{capacityWord(s.before.Capacity), capacityWord(s.Capacity)}
		}
		if !s.before.EndsAt.Equal(s.EndsAt) {
			changes[colEnds] = [2]string{s.before.EndsAt.UTC().Format(time.RFC3339), s.EndsAt.UTC().Format(time.RFC3339)}
		}
		entries = append(entries, k.told("sitting_updated", s, changes))
	}
	return entries
}

func (k *sittings) told(kind timeline.Kind, s *plannedAs, changes map[string][2]string) timeline.Entry {
	r := &s.entry.record
	facts := map[string]any{
		"sitting": s.Reference, "exam": r.exam, "centre": r.centre, "room": r.room,
		"starts_at": k.instant(r, s.StartsAt), "ends_at": k.instant(r, s.EndsAt), "line": s.entry.line,
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
