package intake

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/problem"
	"usher/internal/domain/seating"
)

// Whoever was called to a sitting was told its room and its hours, and must be told when one of them
// changes. A file tells nobody. So it changes neither room nor hours of a sitting at which somebody
// sits: the row is rejected and names the command that moves the sitting and tells its people.
//
// A later end is seen by itself. Another room or start makes a row that speaks of no sitting there
// is, and may as well mean a further one. It means the old one where the old one is in its way, and
// where the file is a version of the campaign's list that leaves only that one out. Elsewhere the
// sitting is added, with a warning.

// convoked is a coming sitting at which people sit.
type convoked struct {
	seating.Sitting
	people int
}

// leftOut are the convoked sittings that the file does not name, by the name key of their exam.
type leftOut struct {
	sittings []convoked
	version  bool // the file names at least half of the coming sittings of the exam
}

// lookUpLeftOut finds the convoked sittings that no row of the file means.
func (k *sittings) lookUpLeftOut(ctx context.Context, tx pgx.Tx, plan *sittingPlan) (map[string]leftOut, error) {
	people, err := seating.Seated(ctx, tx, k.campaign.OrganisationID, plan.inOrder)
	if err != nil {
		return nil, err
	}
	meant := make(map[int64]bool, len(plan.meant)) // also those that have moved since
	for _, id := range plan.meant {
		meant[id] = true
	}
	left, coming, named := map[string]leftOut{}, map[string]int{}, map[string]int{}
	for _, s := range plan.inOrder {
		if !s.StartsAt.After(plan.now) {
			continue
		}
		exam := nameKey(s.Exam)
		coming[exam]++
		if meant[s.ID] || k.named[k.placeNow(s)] {
			named[exam]++
			continue
		}
		if people[s.ID] > 0 {
			l := left[exam]
			l.sittings = append(l.sittings, convoked{s, people[s.ID]})
			left[exam] = l
		}
	}
	for exam, l := range left {
		l.version = 2*named[exam] >= coming[exam]
		left[exam] = l
	}
	return left, nil
}

// replaces finds the convoked sitting that a row may mean to move: another room of the centre at the
// same time, or another start on the same day in the same room.
func (l leftOut) replaces(r *sittingRow) (convoked, bool) {
	for _, s := range l.sittings {
		begins := s.StartsAt.In(r.startsAt.Location())
		if nameKey(s.Centre) != nameKey(r.centre) {
			continue
		}
		sameRoom := nameKey(s.Room) == nameKey(r.room)
		if sameRoom && begins.Format(time.DateOnly) == r.startsAt.Format(time.DateOnly) || !sameRoom && begins.Equal(r.startsAt) {
			return s, true
		}
	}
	return convoked{}, false
}

// replacement is a convoked sitting that a row may mean to move.
type replacement struct {
	field   string // in which the two differ
	sitting string
	certain bool
	facts   problem.Facts
}

func (k *sittings) replacement(r *sittingRow, end time.Time, plan *sittingPlan) (replacement, bool) {
	left := plan.leftOut[nameKey(r.exam)]
	s, found := left.replaces(r)
	if !found {
		return replacement{}, false
	}
	sameRoom := nameKey(s.Room) == nameKey(r.room)
	field := colRoom
	if sameRoom {
		field = colStarts
	}
	inTheWay := sameRoom && s.StartsAt.Before(end) && s.EndsAt.After(r.startsAt)
	return replacement{field, s.Reference, inTheWay || left.version, problem.Facts{
		"sitting": s.Reference, "place": s.Place(), "starts_at": s.Begins(), "in_use": s.people, "command": k.moveCommand(s.Sitting, r, end, plan),
	}}, true
}

// rejectReplaced refuses a row that moves a convoked sitting.
func (k *sittings) rejectReplaced(v *verdict, r *sittingRow, end time.Time, plan *sittingPlan) (refused bool) {
	of, found := k.replacement(r, end, plan)
	if !found || !of.certain {
		return false
	}
	v.reference = of.sitting
	v.rejectField(k.importer, of.field, "sitting_replaced", of.facts)
	return true
}

// warnReplaced warns of a row that is added and may have meant to move a convoked sitting.
func (k *sittings) warnReplaced(v *verdict, r *sittingRow, end time.Time, plan *sittingPlan) {
	if of, found := k.replacement(r, end, plan); found {
		v.warnField(k.importer, of.field, "sitting_perhaps_replaced", of.facts)
	}
}

// rejectHours refuses another end than the one that the people of a sitting were told.
func (k *sittings) rejectHours(v *verdict, s seating.Sitting, end time.Time, plan *sittingPlan) (refused bool) {
	use := plan.uses[s.ID]
	if s.EndsAt.Equal(end) || use.People == 0 {
		return false
	}
	facts := problem.Facts{"sitting": s.Reference, "in_use": use.People, "ends_at": s.Ends(), "command": k.endCommand(s, end)}
	if !s.StartsAt.After(plan.now) {
		v.rejectField(k.importer, colEnds, "sitting_begun", facts)
	} else {
		v.rejectField(k.importer, colEnds, "sitting_convoked", facts)
	}
	return true
}
