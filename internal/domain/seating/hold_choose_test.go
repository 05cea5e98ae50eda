package seating

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// house is a small plan as a test draws it.
type house struct {
	plan []PlannedSeat
	free map[int]bool // by number
}

func houses(t *rapid.T) house {
	h := house{free: map[int]bool{}}
	number := 0
	for order := range rapid.IntRange(1, 4).Draw(t, "rows") {
		zone := rapid.SampledFrom([]string{"", "stalls", "balcony"}).Draw(t, "zone")
		position := 0
		for range rapid.IntRange(1, 7).Draw(t, "seats") {
			number++
			position += rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "step")
			h.plan = append(h.plan, PlannedSeat{
				Number: number, Label: fmt.Sprint("L", number), Zone: zone, RowLabel: fmt.Sprint("R", order), RowOrder: order, Position: position,
				Blocked: rapid.IntRange(0, 9).Draw(t, "blocked") == 0, Accessible: rapid.IntRange(0, 4).Draw(t, "accessible") == 0,
			})
			h.free[number] = rapid.IntRange(0, 2).Draw(t, "free") > 0
		}
	}
	return h
}

// set is what is free as the layout keeps it.
func (h house) set(l *Layout) seatSet {
	free := newSeatSet(len(l.atPlace))
	for _, s := range l.seats {
		if h.free[s.Number] && !s.Blocked {
			free.add(s.place)
		}
	}
	return free
}

// oracle is the rule of the best seats once more, seat by seat, without sets.
type oracle struct {
	seats []PlannedSeat // in the order of the plan
	free  map[int]bool
	zone  func(string) bool
}

func (o oracle) isFree(i int) bool {
	return i >= 0 && i < len(o.seats) && o.free[o.seats[i].Number] && !o.seats[i].Blocked
}

// beside tells whether two seats of the plan lie side by side.
func (o oracle) beside(i, j int) bool {
	if i < 0 || j >= len(o.seats) {
		return false
	}
	a, b := o.seats[i], o.seats[j]
	return a.RowOrder == b.RowOrder && a.Zone == b.Zone && b.Position-a.Position == 1
}

// block is the best block of n seats that may be used, by looking at all of them.
func (o oracle) block(n, accessible int, usable func(PlannedSeat) bool) (best []int) {
	var least [3]int
	for first := 0; first+n <= len(o.seats); first++ {
		special, fits := 0, true
		for i := first; i < first+n; i++ {
			s := o.seats[i]
			fits = fits && o.isFree(i) && usable(s) && o.zone(s.Zone) && (i == first || o.beside(i-1, i))
			if s.Accessible {
				special++
			}
		}
		if !fits || special < accessible {
			continue
		}
		alone := 0
		if o.isFree(first-1) && o.beside(first-1, first) && (!o.isFree(first-2) || !o.beside(first-2, first-1)) {
			alone++
		}
		last := first + n - 1
		if o.isFree(last+1) && o.beside(last, last+1) && (!o.isFree(last+2) || !o.beside(last+1, last+2)) {
			alone++
		}
		cost := [3]int{special - accessible, alone, first}
		if best == nil || slices.Compare(cost[:], least[:]) < 0 {
			best, least = nil, cost
			for i := first; i < first+n; i++ {
				best = append(best, i)
			}
		}
	}
	return best
}

func (o oracle) choose(n, accessible int) (numbers []int) {
	any := func(PlannedSeat) bool { return true }
	plain := func(s PlannedSeat) bool { return !s.Accessible }
	count := func(usable func(PlannedSeat) bool) (count int) {
		for i, s := range o.seats {
			if o.isFree(i) && usable(s) && o.zone(s.Zone) {
				count++
			}
		}
		return count
	}
	if count(any) < n || count(func(s PlannedSeat) bool { return s.Accessible }) < accessible {
		return nil
	}
	o.free = maps.Clone(o.free)
	for size := n; n > 0; {
		usable := any
		if accessible == 0 && count(plain) >= n {
			usable = plain
		}
		size = min(size, n)
		block := o.block(size, min(size, accessible), usable)
		if block == nil {
			size--
			continue
		}
		for _, i := range block {
			numbers = append(numbers, o.seats[i].Number)
			o.free[o.seats[i].Number] = false
		}
		n -= size
		if accessible > 0 {
			if accessible = max(0, accessible-size); accessible == 0 {
				size = n
			}
		}
	}
	return numbers
}

func TestChoose_IsTheBestOfAllChoices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := houses(t)
		l := NewLayout(h.plan)
		n := rapid.IntRange(1, 6).Draw(t, "wanted")
		accessible := rapid.SampledFrom([]int{0, 0, 1, n}).Draw(t, "accessible")
		zone := rapid.SampledFrom([]string{"any", "", "stalls", "balcony"}).Draw(t, "in zone")
		in := func(z string) bool { return zone == "any" || z == zone }
		var got []int
		for _, place := range choose(l, h.set(l), Wish{Seats: n, Accessible: accessible, Zone: in}) {
			got = append(got, l.at(place).Number)
		}
		want := oracle{h.plan, h.free, in}.choose(n, accessible)
		if !slices.Equal(got, want) {
			t.Fatalf("%d seats, %d accessible, in %q of %+v with free %v: got %v, want %v", n, accessible, zone, h.plan, h.free, got, want)
		}
	})
}

// Where a party takes accessible seats because there are too few others, those who are left of it take the others: 7 is accessible, and
// lies beside 8.
func TestChoose_LeavesAccessibleSeatsToTheRestOfAParty(t *testing.T) {
	t.Parallel()
	row := func(order, first, seats int, accessible ...int) (row []PlannedSeat) {
		for n := first; n < first+seats; n++ {
			row = append(row, PlannedSeat{
				Number: n, Label: fmt.Sprint(n), RowLabel: fmt.Sprint(order), RowOrder: order, Position: n - first + 1, Accessible: slices.Contains(accessible, n),
			})
		}
		return row
	}
	h := house{plan: slices.Concat(row(1, 7, 2, 7), row(2, 10, 7, 13, 14, 15, 16)), free: map[int]bool{}}
	for _, seat := range []int{7, 8, 10, 13, 14, 15, 16} {
		h.free[seat] = true
	}
	l := NewLayout(h.plan)
	var got []int
	for _, place := range choose(l, h.set(l), Wish{Seats: 6}) {
		got = append(got, l.at(place).Number)
	}
	if slices.Sort(got); !slices.Equal(got, []int{8, 10, 13, 14, 15, 16}) {
		t.Errorf("got %v", got)
	}
}

func TestChoose_Examples(t *testing.T) {
	t.Parallel()
	row := func(label string, order, first, seats int) (row []PlannedSeat) {
		for i := range seats {
			row = append(row, PlannedSeat{Number: first + i, Label: fmt.Sprint(label, i+1), RowLabel: label, RowOrder: order, Position: i + 1})
		}
		return row
	}
	plan := slices.Concat(row("A", 1, 1, 5), row("B", 2, 6, 4))
	for _, c := range []struct {
		name  string
		taken []int
		wish  Wish
		want  string
	}{ // B2 is accessible where the name says so
		{"the front", nil, Wish{Seats: 2}, "[A1 A2]"},
		{"no orphan: the whole of A rather than four of it", nil, Wish{Seats: 4}, "[B1 B2 B3 B4]"},
		{"an orphan where nothing else is free", []int{6, 7, 8, 9}, Wish{Seats: 4}, "[A1 A2 A3 A4]"},
		{"one beside a couple does not leave one alone", []int{1, 2, 3}, Wish{Seats: 1}, "[B1]"},
		{"accessible for who needs it", nil, Wish{Seats: 1, Accessible: 1}, "[B2]"},
		{"accessible and beside each other", nil, Wish{Seats: 2, Accessible: 1}, "[B1 B2]"},
		{"split, the larger part first", []int{3}, Wish{Seats: 6}, "[B1 B2 B3 B4 A1 A2]"},
		{"accessible seats are left, though the others are split for it", nil, Wish{Seats: 6}, "[A1 A2 A3 A4 A5 B1]"},
		{"accessible seats when there are no others", nil, Wish{Seats: 9}, "[A1 A2 A3 A4 A5 B1 B2 B3 B4]"},
		{"all of it", nil, Wish{Seats: 9}, "[A1 A2 A3 A4 A5 B1 B2 B3 B4]"},
		{"too few", []int{1}, Wish{Seats: 9}, "[]"},
		{"more accessible ones than there are", nil, Wish{Seats: 2, Accessible: 2}, "[]"},
	} {
		plan := slices.Clone(plan)
		plan[6].Accessible = strings.Contains(c.name, "accessible")
		l := NewLayout(plan)
		free := slices.Clone(l.usable)
		for _, number := range c.taken {
			s, _ := l.numbered(number)
			free.remove(s.place)
		}
		labels := []string{}
		for _, place := range choose(l, free, c.wish) {
			labels = append(labels, l.at(place).Label)
		}
		if fmt.Sprint(labels) != c.want {
			t.Errorf("%s: got %v, want %s", c.name, labels, c.want)
		}
	}
}

func TestLayout_NamesSeats(t *testing.T) {
	t.Parallel()
	l := NewLayout([]PlannedSeat{{Number: 1, Label: "7", Position: 1}, {Number: 7, Label: "B-1", Position: 2}})
	for name, want := range map[string]int{"7": 1, "b-1": 7, " B-1 ": 7, "1": 1, "007": 7, "8": 0, "": 0, "C": 0, "-1": 0} {
		if s, found := l.Named(name); s.Number != want || found != (want != 0) {
			t.Errorf("%q is seat %d (%v), want %d", name, s.Number, found, want)
		}
	}
	if s, _ := Unlaid(1_200).Named("0012"); s.Number != 12 || s.printed(1_200).Label != "0012" {
		t.Errorf("got %+v", s)
	}
}

// The sets are looked through a word at a time: at each edge of a word they say what a list says.
func TestSeatSet_IsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 200).Draw(t, "size")
		set, list := newSeatSet(size), make([]bool, size)
		for i := range list {
			if list[i] = rapid.Bool().Draw(t, "in"); list[i] {
				set.add(i)
			}
		}
		from, before := rapid.IntRange(0, size).Draw(t, "from"), rapid.IntRange(0, size).Draw(t, "before")
		for _, in := range []bool{true, false} {
			want := max(from, before)
			if i := slices.Index(list[min(from, before):before], in); from < before && i >= 0 {
				want = from + i
			} else if from >= before {
				want = before
			}
			got := set.next(from, before)
			if !in {
				got = set.nextMissing(from, before)
			}
			if got != want {
				t.Fatalf("from %d before %d of %v: got %d, want %d", from, before, list, got, want)
			}
		}
	})
}
