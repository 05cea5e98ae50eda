package convocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/domain/account"
	"usher/internal/domain/admission"
	"usher/internal/domain/run"
	"usher/internal/domain/seating"
	"usher/internal/domain/timeline"
)

func (s *school) addSitting(wanted NewSitting) (seating.Sized, error) {
	s.t.Helper()
	return AddSitting(s.t.Context(), s.db, s.actor, s.campaign.Slug, wanted)
}

// on is a sitting of an hour in Salle 1, so many days after the first.
func (s *school) on(day int) NewSitting {
	start := s.opening.AddDate(0, 0, day)
	return NewSitting{Exam: "MATH", Centre: "Badalabougou", Room: "Salle 1", StartsAt: start, EndsAt: start.Add(time.Hour)}
}

// Whom the sittings had no place for is seated at the one that is added.
func TestAddSitting_SeatsWhoWaited(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{capacity: places(2)})
	s.fileMany(3, person{})
	s.equal("refused", s.list(s.convoke(), run.ListRefused), []string{"C0003 room_full"})
	wanted := s.on(1)
	wanted.Exam, wanted.Room, wanted.Capacity = "math", "salle  1", places(1)
	added, err := s.addSitting(wanted)
	s.must(err)
	if got := fmt.Sprintf("%s %s %s %d %s %d", added.Reference, added.Exam, added.Room, added.Places, added.PlacesFrom, added.Revision); got != "S002 MATH Salle 1 1 sitting 1" {
		t.Errorf("added %s", got)
	}
	s.convoke()
	s.equal("seats", s.seats(), append(seated(1, 2, "S001", 1), "C0003 S002/001"))
	s.equal("the timeline", s.texts(`select facts->>'sitting' from timeline where organisation_id = $1 and kind = 'sitting_added'`, s.org.ID), []string{"S002"})
}

func TestAddSitting_Refusals(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{hours: 2})
	for code, change := range map[string]func(*NewSitting){
		"room_busy": func(n *NewSitting) { n.StartsAt, n.EndsAt = s.opening.Add(time.Hour), s.opening.Add(3*time.Hour) },
		"sitting_added_past": func(n *NewSitting) {
			n.StartsAt, n.EndsAt = s.opening.AddDate(0, 0, -60), s.opening.AddDate(0, 0, -60).Add(time.Hour)
		},
		"sitting_ends_before_start": func(n *NewSitting) { n.EndsAt = n.StartsAt },
		"sitting_too_long":          func(n *NewSitting) { n.EndsAt = n.StartsAt.Add(24*time.Hour + time.Minute) },
		"sitting_ends_missing":      func(n *NewSitting) { n.EndsAt = time.Time{} },
		"room_unknown":              func(n *NewSitting) { n.Room = "Salle 99" },
		"centre_unknown":            func(n *NewSitting) { n.Centre = "Nowhere" },
		"exam_unknown":              func(n *NewSitting) { n.Exam = "" },
		"capacity_impossible":       func(n *NewSitting) { n.Capacity = places(-1) },
	} {
		wanted := s.on(1)
		change(&wanted)
		_, err := s.addSitting(wanted)
		refused(t, err, code)
	}
	for _, role := range []timeline.Role{account.Agent, account.Cashier, account.Door} {
		_, err := AddSitting(t.Context(), s.db, timeline.Actor{Name: "somebody", OrganisationID: s.org.ID, Role: role}, s.campaign.Slug, s.on(1))
		refused(t, err, "role_forbids")
	}
	if n := s.number(`select count(*) from sitting where organisation_id = $1`, s.org.ID); n != 1 {
		t.Errorf("%d sittings after refusals alone", n)
	}
	// A place that another left, or was cancelled in, is free; an exam with a duration needs no end.
	_, err := CancelSitting(t.Context(), s.db, s.actor, s.campaign.Slug, "S001", "by mistake")
	s.must(err)
	_, err = admission.SetDuration(t.Context(), s.db, s.actor, s.campaign.Slug, "MATH", places(90))
	s.must(err)
	wanted := s.on(0)
	wanted.EndsAt = time.Time{}
	added, err := s.addSitting(wanted)
	s.must(err)
	if added.Reference != "S002" || added.EndsAt.Sub(added.StartsAt) != 90*time.Minute {
		t.Errorf("added %+v", added)
	}
}

// Many add one sitting in one room at once: one of them does, and the others read who was first. That the constraint decides,
// and that the count would see two, is shown without the look at the room, and then without the constraint.
func TestAddSitting_OneRoomAtOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t, "MATH")
	s.sit(hall{})
	said := tally(together(8, func(int) error {
		_, err := s.addSitting(s.on(1))
		return err
	}))
	if said[""] != 1 || said["room_busy"] != 7 {
		t.Errorf("%v, want one success and seven times room_busy", said)
	}
	const inOneRoom = `select count(*) from sitting a join sitting b on a.room_id = b.room_id and a.id < b.id
   and tstzrange(a.starts_at, a.ends_at) && tstzrange(b.starts_at, b.ends_at) where a.organisation_id = $1`
	if n := s.number(inOneRoom, s.org.ID); n != 0 {
		t.Errorf("%d sittings share a room", n)
	}
	unseen := func() error {
		return s.db.Tx(t.Context(), []int64{s.org.ID}, func(tx pgx.Tx) error {
			second, err := seating.FindSitting(t.Context(), tx, s.campaign, "S002")
			if err != nil {
				return err
			}
			return seating.AddSittings(t.Context(), tx, s.campaign, []*seating.Planned{{
				Reference: "S099", ExamID: second.ExamID, RoomID: second.RoomID, StartsAt: second.StartsAt, EndsAt: second.EndsAt,
			}})
		})
	}
	if err := unseen(); !pg.Violates(err, "sitting_room_free") {
		t.Errorf("a second sitting in the room: %v", err)
	}
	s.owner(`alter table sitting drop constraint sitting_room_free`)
	s.must(unseen())
	if n := s.number(inOneRoom, s.org.ID); n != 1 {
		t.Errorf("without the constraint %d share a room, want the one that was put there", n)
	}
}
