package seating

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLabel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		number, places int
		want           string
	}{
		{7, 1, "007"},
		{7, 200, "007"},
		{200, 200, "200"},
		{7, 999, "007"},
		{7, 1000, "0007"},
		{1000, 1000, "1000"},
		{42, 100_000, "000042"},
		{1234, 200, "1234"}, // a seat that was given before the places were lowered is never cut
	} {
		if got := Label(c.number, c.places); got != c.want {
			t.Errorf("seat %d of %d: got %q, want %q", c.number, c.places, got, c.want)
		}
	}
}

func TestOverlaps_EndsAreExcluded(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2027, 6, 1, hour, 0, 0, 0, time.UTC) }
	busy := []Interval{{From: at(10), Until: at(12), Sitting: "BIO S001"}}
	for _, c := range []struct {
		from, until int
		want        bool
	}{{8, 10, false}, {12, 14, false}, {9, 11, true}, {11, 13, true}, {10, 12, true}, {9, 13, true}, {11, 12, true}} {
		with, got := overlaps(busy, &Sitting{StartsAt: at(c.from), EndsAt: at(c.until)})
		if got != c.want || (with == "BIO S001") != c.want {
			t.Errorf("%d to %d: overlaps %v with %q, want %v", c.from, c.until, got, with, c.want)
		}
	}
}

// Whatever is taken, blocked, promised or planned, a hall gives each seat once, none that is taken
// or blocked or beyond the places, and never more people than places.
func TestHall_NeverGivesTooMuch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := Sitting{Places: rapid.IntRange(0, 8).Draw(rt, "places"), SeatsAtDoor: rapid.Bool().Draw(rt, "at the door")}
		var plan []planSeat
		blocked := map[int]bool{}
		for number := range rapid.IntRange(0, 10).Draw(rt, "plan") {
			p := planSeat{
				Number: number + 1, Label: fmt.Sprint("A-", number+1),
				Blocked: rapid.Bool().Draw(rt, "blocked"), Accessible: rapid.Bool().Draw(rt, "accessible"),
			}
			blocked[p.Number] = p.Blocked
			plan = append(plan, p)
		}
		taken := map[int]bool{}
		for _, number := range rapid.SliceOfN(rapid.IntRange(1, 10), 0, 6).Draw(rt, "taken") {
			taken[number] = true
		}
		promised := len(taken) + rapid.IntRange(0, 4).Draw(rt, "promised without a seat")
		h := freeHall(s, plan, taken, promised)
		people, last := promised, map[bool]int{}
		for h.left > 0 {
			given, accessible := h.take(rapid.Bool().Draw(rt, "needs"))
			people++
			switch {
			case s.SeatsAtDoor && given.number != 0:
				rt.Fatalf("seat %d was given, and seats are given at the door", given.number)
			case s.SeatsAtDoor:
			case given.number < 1 || given.number > s.Places || taken[given.number] || blocked[given.number]:
				rt.Fatalf("seat %d was given: places %d, taken %v, blocked %v", given.number, s.Places, taken, blocked)
			case given.number <= last[accessible]:
				rt.Fatalf("seat %d came after %d", given.number, last[accessible])
			}
			if given.number != 0 {
				taken[given.number], last[accessible] = true, given.number
			}
		}
		if people > max(s.Places, promised) {
			rt.Fatalf("%d people for %d places", people, s.Places)
		}
	})
}

func TestPlace_Reasons(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2027, 6, 1, hour, 0, 0, 0, time.UTC) }
	full := func(centre int64) Sitting { return Sitting{CentreID: centre, StartsAt: at(8), EndsAt: at(9)} }
	open := func(centre int64) Sitting { s := full(centre); s.Places = 1; return s }
	later := func(s Sitting) Sitting { s.StartsAt, s.EndsAt = at(9), at(10); return s }
	busy := []Interval{{From: at(8), Until: at(9), Sitting: "BIO S001"}}
	for _, c := range []struct {
		name     string
		sittings []Sitting
		who      Applicant
		want     Reason
	}{
		{"no sitting", nil, Applicant{}, ReasonNoSitting},
		{"no sitting, a centre chosen", nil, Applicant{CentreID: 1}, ReasonNoSitting},
		{"none at the centre", []Sitting{open(2)}, Applicant{CentreID: 1}, ReasonNoSittingAtCentre},
		{"the only one is full", []Sitting{full(1)}, Applicant{}, ReasonRoomFull},
		{"the only one there is full", []Sitting{full(1), open(2)}, Applicant{CentreID: 1}, ReasonRoomFull},
		{"all there are full", []Sitting{full(1), full(1), open(2)}, Applicant{CentreID: 1}, ReasonCentreFull},
		{"all are full", []Sitting{full(1), full(2)}, Applicant{}, ReasonExamFull},
		{"what is free overlaps, and so does the rest", []Sitting{full(1), open(2)}, Applicant{Busy: busy}, ReasonClash},
		{"what is free overlaps, and the rest is full", []Sitting{open(1), later(full(2))}, Applicant{Busy: busy}, ReasonClash},
		{"what overlaps is full as well", []Sitting{full(1), later(full(2))}, Applicant{Busy: busy}, ReasonExamFull},
		{"what overlaps there is full as well", []Sitting{full(1), later(full(1)), later(open(2))}, Applicant{CentreID: 1, Busy: busy}, ReasonCentreFull},
		{"everything overlaps, and is full", []Sitting{full(1), full(2)}, Applicant{Busy: busy}, ReasonClash},
		{"free", []Sitting{full(1), open(2)}, Applicant{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := openings(c.sittings)
			for i, s := range c.sittings {
				o.halls[i] = freeHall(s, nil, nil, 0)
				o.full[i] = o.halls[i].left == 0
			}
			_, miss, unknown := o.place(c.who)
			if miss.Reason != c.want || unknown != nil {
				t.Errorf("got %+v (unknown %v), want %q", miss, unknown, c.want)
			}
			if (miss.With == "BIO S001") != (c.want == ReasonClash) {
				t.Errorf("%s with %q", miss.Reason, miss.With)
			}
			alike := !slices.ContainsFunc(c.sittings, func(s Sitting) bool { return s.StartsAt != at(8) })
			if miss.Always != (alike && c.want == ReasonClash) {
				t.Errorf("%s with every sitting: %v", miss.Reason, miss.Always)
			}
		})
	}
}

func TestPlace_AsksForWhatWasNotRead(t *testing.T) {
	t.Parallel()
	o := openings([]Sitting{{CentreID: 1, Places: 1}, {CentreID: 2, Places: 1}})
	if _, _, unknown := o.place(Applicant{CentreID: 2}); unknown != o.byCentre[2] {
		t.Error("a sitting of the chosen centre was not asked for")
	}
	if _, _, unknown := o.place(Applicant{}); unknown != &o.all {
		t.Error("the first of all sittings was not asked for")
	}
}
