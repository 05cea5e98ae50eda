package seating

import "math/bits"

// seatSet is a set of places of a layout.
type seatSet []uint64

func newSeatSet(places int) seatSet { return make(seatSet, (places+63)/64) }

func (s seatSet) add(place int)      { s[place>>6] |= 1 << (place & 63) }
func (s seatSet) remove(place int)   { s[place>>6] &^= 1 << (place & 63) }
func (s seatSet) has(place int) bool { return s[place>>6]&(1<<(place&63)) != 0 }

// without is what is in s and not in other.
func (s seatSet) without(other seatSet) seatSet {
	rest := make(seatSet, len(s))
	for i := range s {
		rest[i] = s[i] &^ other[i]
	}
	return rest
}

// and is what is in both.
func (s seatSet) and(other seatSet) seatSet {
	both := make(seatSet, len(s))
	for i := range s {
		both[i] = s[i] & other[i]
	}
	return both
}

// next is the first place of the set from one on and before another, which is the answer where there is none.
func (s seatSet) next(from, before int) int { return s.scan(from, before, 0) }

// nextMissing is the first place that is not in the set, likewise.
func (s seatSet) nextMissing(from, before int) int { return s.scan(from, before, ^uint64(0)) }

func (s seatSet) scan(from, before int, flip uint64) int {
	for from < before {
		if word := (s[from>>6] ^ flip) >> (from & 63); word != 0 {
			return min(before, from+bits.TrailingZeros64(word))
		}
		from = from&^63 + 64
	}
	return before
}
