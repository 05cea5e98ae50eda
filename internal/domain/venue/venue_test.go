package venue_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
	"usher/internal/domain/account"
	"usher/internal/domain/testdb"
	"usher/internal/domain/timeline"
	"usher/internal/domain/venue"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// ground is an organisation with one centre and one room.
type ground struct {
	db     *pg.DB
	org    account.Organisation
	centre venue.Centre
	room   int64
}

func open(t *testing.T) *ground {
	t.Helper()
	g := &ground{db: testdb.New(t)}
	var err error
	g.org, err = account.AddOrganisation(t.Context(), g.db, timeline.Actor{Name: "test", Installation: true}, account.Organisation{
		Slug: "ecole", Name: "École", Country: "ML", TimeZone: "Africa/Bamako", Locale: "fr", Currency: "XOF",
	})
	if err != nil {
		t.Fatal(err)
	}
	g.tx(t, func(tx pgx.Tx) error {
		if g.centre, err = venue.EnsureCentre(t.Context(), tx, g.org.ID, "Lycée  Askia", "Africa/Bamako"); err != nil {
			return err
		}
		g.room, _, err = venue.EnsureRoom(t.Context(), tx, g.org.ID, g.centre.ID, "Salle 1")
		return err
	})
	return g
}

func (g *ground) tx(t *testing.T, fn func(pgx.Tx) error) {
	t.Helper()
	if err := g.db.Tx(t.Context(), []int64{g.org.ID}, fn); err != nil {
		t.Fatal(err)
	}
}

func TestCheckCapacity(t *testing.T) {
	t.Parallel()
	for capacity, fits := range map[int]bool{-1: false, 0: true, 1: true, venue.MostPlaces: true, venue.MostPlaces + 1: false} {
		if err := venue.CheckCapacity(&capacity); (err == nil) != fits || !fits && !problem.Has(err, "capacity_impossible") {
			t.Errorf("%d: %v", capacity, err)
		}
	}
	if err := venue.CheckCapacity(nil); err != nil {
		t.Errorf("nothing said: %v", err)
	}
}

// Names are one whatever their case and spacing, and another letter makes another.
func TestEnsure_FindsByNameOrAdds(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.tx(t, func(tx pgx.Tx) error {
		for name, same := range map[string]bool{"lycée askia": true, " LYCÉE\tASKIA ": true, "Lycee Askia": false} {
			centre, err := venue.EnsureCentre(t.Context(), tx, g.org.ID, name, "Europe/Paris")
			if err != nil || (centre.ID == g.centre.ID) != same {
				t.Errorf("the centre %q is %+v, %v", name, centre, err)
			}
			if same && centre.TimeZone != "Africa/Bamako" {
				t.Errorf("the zone of %q was overwritten: %s", name, centre.TimeZone)
			}
		}
		for name, same := range map[string]bool{"SALLE 1": true, "salle  1": true, "Salle 01": false} {
			room, added, err := venue.EnsureRoom(t.Context(), tx, g.org.ID, g.centre.ID, name)
			if err != nil || (room == g.room) != same || added == same {
				t.Errorf("the room %q is %d, added %v, %v", name, room, added, err)
			}
		}
		return nil
	})
}

// It tells whether another number was said, for a room and for a centre apart.
func TestSetCapacity_TellsWhetherItChanged(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.tx(t, func(tx pgx.Tx) error {
		for _, room := range []int64{g.room, 0} {
			for i, step := range []struct {
				capacity *int
				changed  bool
			}{{new(30), true}, {new(30), false}, {new(0), true}, {nil, true}, {nil, false}} {
				changed, err := venue.SetCapacity(t.Context(), tx, g.org.ID, g.centre.ID, room, step.capacity)
				if err != nil || changed != step.changed {
					t.Errorf("room %d, step %d: changed %v, %v", room, i, changed, err)
				}
			}
		}
		if _, err := venue.SetCapacity(t.Context(), tx, g.org.ID, g.centre.ID, g.room, new(-1)); !problem.Has(err, "capacity_impossible") {
			t.Errorf("below zero: %v", err)
		}
		return nil
	})
}

func TestLayPlan_ReplacesAndRefusesWhatRepeats(t *testing.T) {
	t.Parallel()
	g := open(t)
	lay := func(seats ...venue.Seat) error {
		return g.db.Tx(t.Context(), []int64{g.org.ID}, func(tx pgx.Tx) error {
			return venue.LayPlan(t.Context(), tx, g.org.ID, g.room, seats)
		})
	}
	first := []venue.Seat{{Number: 2, Label: "A-2", Blocked: true}, {Number: 1, Label: "A-1", Zone: "balcony", Accessible: true}}
	for name, c := range map[string]struct {
		seats []venue.Seat
		code  string
	}{
		"one number twice": {[]venue.Seat{{Number: 1, Label: "A"}, {Number: 1, Label: "B"}}, "plan_repeats"},
		"one label twice":  {[]venue.Seat{{Number: 1, Label: "A"}, {Number: 2, Label: "A"}}, "plan_repeats"},
	} {
		if err := lay(first...); err != nil {
			t.Fatal(err)
		}
		if err := lay(c.seats...); !problem.Has(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		g.tx(t, func(tx pgx.Tx) error {
			kept, err := venue.Plan(t.Context(), tx, g.org.ID, g.room)
			if len(kept) != 2 || kept[0] != first[1] || kept[1] != first[0] {
				t.Errorf("%s: the plan is %+v", name, kept)
			}
			return err
		})
	}
}

func TestFindRoomOf_SaysWhatIsUnknown(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.tx(t, func(tx pgx.Tx) error {
		for names, code := range map[[2]string]string{
			{"lycée askia", "salle 1"}: "", {"Lycée Askia", "Salle 2"}: "room_unknown", {"Nowhere", "Salle 1"}: "centre_unknown",
		} {
			_, room, err := venue.FindRoomOf(t.Context(), tx, g.org.ID, names[0], names[1])
			if code == "" && (err != nil || room != g.room) || code != "" && !problem.Has(err, code) {
				t.Errorf("%q: room %d, %v", names, room, err)
			}
		}
		return nil
	})
}
