package seating

import "slices"

// Wish is what somebody wants who leaves the choice of the seats to us: so many, together where there are as many side by side.
type Wish struct {
	Seats      int
	Accessible int                    // how many of them are to be accessible
	Zone       func(zone string) bool // which zones will do; nil: any
}

// wanted tells, by the layout's zones, which of them will do.
func (w Wish) wanted(l *Layout) []bool {
	zones := make([]bool, len(l.zones))
	for i, zone := range l.zones {
		zones[i] = w.Zone == nil || w.Zone(zone)
	}
	return zones
}

// choose is the rule of the best seats, on what is free. They lie in one row, side by side, as near the front as there are; nobody
// is left a single free seat beside them where another choice avoids it. Where no row has as many together, they are split: as
// many as lie together anywhere, then as many of the rest, and so on. Accessible seats are left to those who need them for as
// long as there are others. It gives places, or none when there are too few.
func choose(l *Layout, free seatSet, w Wish) []int {
	zones := w.wanted(l)
	from := free
	if w.Accessible == 0 {
		if others := free.without(l.special); l.enough(others, zones, w.Seats) {
			from = others
		}
	} else if !l.enough(free.and(l.special), zones, w.Accessible) {
		return nil
	}
	if w.Seats < 1 || w.Accessible > w.Seats || !l.enough(from, zones, w.Seats) {
		return nil
	}
	if first, found := l.together(free, from, zones, w.Seats, w.Accessible); found {
		return count(first, w.Seats)
	}
	return l.split(slices.Clone(free), slices.Clone(from), zones, w)
}

// split chooses in parts; there are enough. What it takes is taken out of the sets.
func (l *Layout) split(free, from seatSet, zones []bool, w Wish) []int {
	var chosen []int
	for together := w.Seats - 1; together > 0 && len(chosen) < w.Seats; {
		together = min(together, w.Seats-len(chosen))
		first, found := l.together(free, from, zones, together, min(together, w.Accessible))
		if !found {
			together--
			continue
		}
		for _, place := range count(first, together) {
			chosen = append(chosen, place)
			free.remove(place)
			from.remove(place)
		}
		if w.Accessible > 0 {
			if w.Accessible = max(0, w.Accessible-together); w.Accessible == 0 {
				together = w.Seats - len(chosen) // those who need no accessible seat may lie together again
			}
		}
		if w.Accessible == 0 { // … and leave these, as soon as there are others for all who are left
			if others := from.without(l.special); l.enough(others, zones, w.Seats-len(chosen)) {
				from = others
			}
		}
	}
	return chosen
}

func count(first, n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = first + i
	}
	return places
}

// enough tells whether so many seats of the set are in the zones.
func (l *Layout) enough(set seatSet, zones []bool, n int) bool {
	for place := 0; n > 0; {
		place = set.next(place, len(l.atPlace))
		if place == len(l.atPlace) {
			return false
		}
		row := l.rows[l.rowAt[place]]
		if !zones[row.zone] {
			place = row.last
			continue
		}
		end := set.nextMissing(place, row.last)
		n -= end - place
		place = end
	}
	return true
}

// worth is how bad a choice is: how many accessible seats go to those who did not ask for them, then how many single seats it
// leaves beside it.
type worth struct{ special, orphans int }

func (w worth) better(than worth) bool {
	return w.special < than.special || w.special == than.special && w.orphans < than.orphans
}

// together finds the best n places side by side among from, which is part of what is free; of equals the foremost.
func (l *Layout) together(free, from seatSet, zones []bool, n, accessible int) (first int, found bool) {
	var best worth
	for place, all := 0, len(l.atPlace); ; {
		if place = from.next(place, all); place == all {
			return first, found
		}
		row := l.rows[l.rowAt[place]]
		if !zones[row.zone] {
			place = row.last
			continue
		}
		end := from.nextMissing(place, row.last)
		special := 0
		for i := place; i < end && i < place+n-1; i++ {
			special += l.one(i)
		}
		for i := place; i+n <= end; i++ {
			special += l.one(i + n - 1)
			if this := (worth{special - accessible, orphans(free, i, i+n)}); special >= accessible && (!found || this.better(best)) {
				first, best, found = i, this, true
				if best == (worth{}) {
					return first, true
				}
			}
			special -= l.one(i)
		}
		place = end
	}
}

// one is 1 for an accessible seat.
func (l *Layout) one(place int) int {
	if l.special.has(place) {
		return 1
	}
	return 0
}

// orphans is how many single free seats lie beside the places from first until last. Each row begins and ends with a place without
// a seat.
func orphans(free seatSet, first, last int) (left int) {
	if free.has(first-1) && !free.has(first-2) {
		left++
	}
	if free.has(last) && !free.has(last+1) {
		left++
	}
	return left
}
