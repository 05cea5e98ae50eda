package seating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// Wanted is what a cart wants of one sitting: seats that somebody chose, by their labels or numbers, or the best there are.
type Wanted struct {
	Floor *Floor
	Seats []Named
	Best  *Wish // nil: Seats
}

// Named is a seat by its label or its number, as a person says it; or, for who knows it, by its number alone.
type Named struct {
	Name   string
	Number int // 0: by Name
}

// Cart is what somebody wants to hold: all of it or nothing. Propose fills in what it gets, or why it gets nothing.
type Cart struct {
	Wanted []Wanted
	// Accept refuses what must not be held although it is free: a limit, a zone that is not sold. It gets the seats in the order of Wanted.
	Accept func(chosen [][]Proposed) error
	Chosen [][]Proposed
	Err    error

	named [][]LaidSeat // by Wanted: the seats that were chosen
	fixed bool         // Err does not depend on what is free
	short bool         // … it does: on there being too few
	offer []placeOf
}

// Proposed is a seat that is free, with the claim in its way that has lapsed.
type Proposed struct {
	LaidSeat
	LapsedID int64 // 0: none
}

type placeOf struct {
	floor *Floor
	place int
}

// hintRounds is how often proposals that were looked at and found taken are replaced from what is believed. After that everything
// is read, and what is proposed from it is free: whoever takes a seat holds the sitting's lock.
const hintRounds = 3

// Propose gives each cart its seats, one cart after the other, under the lock of all of their sittings. Whatever it proposes was
// looked at in this transaction; nobody is told that there are too few seats but after all of them were read in it.
func Propose(ctx context.Context, tx pgx.Tx, organisationID int64, now time.Time, carts []*Cart) error {
	p := proposing{organisationID: organisationID, now: now, carts: carts, looked: map[placeOf]int64{}}
	for _, cart := range carts {
		cart.find()
		p.toLook = append(p.toLook, cart.namedPlaces()...)
	}
	if _, err := p.look(ctx, tx); err != nil {
		return err
	}
	for round := 0; ; round++ {
		short := p.propose()
		mistaken, err := p.look(ctx, tx)
		if err != nil {
			return err
		}
		if !short && !mistaken {
			p.finish()
			return nil
		}
		p.giveBack()
		if short || round >= hintRounds {
			if err := p.reread(ctx, tx); err != nil {
				return err
			}
		}
	}
}

type proposing struct {
	organisationID int64
	now            time.Time
	carts          []*Cart
	toLook         []placeOf
	looked         map[placeOf]int64 // places that were looked at and are free, with the lapsed claim there
	given          []placeOf
}

// find finds the seats that were chosen by name.
func (c *Cart) find() {
	c.named = make([][]LaidSeat, len(c.Wanted))
	seen := map[placeOf]bool{}
	for i, w := range c.Wanted {
		for _, wanted := range w.Seats {
			s, there := w.Floor.layout.numbered(wanted.Number)
			if wanted.Number == 0 {
				s, there = w.Floor.layout.Named(wanted.Name)
			}
			facts := problem.Facts{"seat": cmp.Or(wanted.Name, strconv.Itoa(wanted.Number)), "sitting": w.Floor.sitting.Reference}
			of := placeOf{w.Floor, s.place}
			switch {
			case !there || s.Number > w.Floor.sitting.Places:
				c.refuse(problem.NotFound("event_seat_unknown", facts))
			case s.Blocked:
				c.refuse(problem.Refused("event_seat_blocked", facts))
			case seen[of]:
				c.refuse(problem.Invalid("seat_twice", facts))
			}
			seen[of] = true
			c.named[i] = append(c.named[i], s)
		}
	}
}

func (c *Cart) refuse(err error) {
	if !c.fixed {
		c.Err, c.fixed = err, true
	}
}

func (c *Cart) namedPlaces() (all []placeOf) {
	if c.fixed {
		return nil
	}
	for i, seats := range c.named {
		for _, s := range seats {
			all = append(all, placeOf{c.Wanted[i].Floor, s.place})
		}
	}
	return all
}

// propose goes through the carts, and tells whether one of them found too few seats where not all were read.
func (p *proposing) propose() (short bool) {
	for _, c := range p.carts {
		if c.fixed {
			continue
		}
		c.Chosen, c.Err, c.short, c.offer = make([][]Proposed, len(c.Wanted)), nil, false, nil
		var mine []placeOf
		for i, w := range c.Wanted {
			places, err := c.place(i)
			if err != nil {
				c.Err = err
				break
			}
			for _, place := range places {
				mine = append(mine, placeOf{w.Floor, place})
				w.Floor.free.remove(place)
				c.Chosen[i] = append(c.Chosen[i], Proposed{LaidSeat: w.Floor.layout.at(place).printed(w.Floor.sitting.Places)})
			}
		}
		if c.Err == nil && c.Accept != nil {
			c.Err = c.Accept(c.Chosen)
		}
		if c.Err == nil {
			p.given, p.toLook = append(p.given, mine...), append(p.toLook, mine...)
			continue
		}
		for _, of := range mine {
			of.floor.free.add(of.place)
		}
		p.toLook = append(p.toLook, c.offer...)
		short = short || c.short
	}
	return short
}

// place finds the places that a cart wants of one sitting.
func (c *Cart) place(i int) (places []int, err error) {
	w := c.Wanted[i]
	if w.Best != nil {
		if places = choose(w.Floor.layout, w.Floor.free, *w.Best); places != nil {
			return places, nil
		}
		c.short = !w.Floor.whole
		return nil, problem.Refused("seats_too_few", problem.Facts{
			"count": w.Best.Seats, "accessible": w.Best.Accessible, "sitting": w.Floor.sitting.Reference, "left": w.Floor.left(*w.Best),
		})
	}
	var lost []string
	for _, s := range c.named[i] {
		places = append(places, s.place)
		if !w.Floor.free.has(s.place) {
			lost = append(lost, s.printed(w.Floor.sitting.Places).Label)
		}
	}
	if len(lost) == 0 {
		return places, nil
	}
	return nil, problem.Refused("seats_taken", problem.Facts{
		"seats": lost, "sitting": w.Floor.sitting.Reference, "others": c.offerInstead(i),
	})
}

// offerInstead finds as many other seats of the same zones that lie together.
func (c *Cart) offerInstead(i int) (labels []string) {
	f := c.Wanted[i].Floor
	zones := map[string]bool{}
	for _, s := range c.named[i] {
		zones[s.Zone] = true
	}
	places := choose(f.layout, f.free, Wish{Seats: len(c.named[i]), Zone: func(zone string) bool { return zones[zone] }})
	for _, place := range places {
		c.offer = append(c.offer, placeOf{f, place})
		labels = append(labels, f.layout.at(place).printed(f.sitting.Places).Label)
	}
	return labels
}

// left is how many seats are free that would do.
func (f *Floor) left(w Wish) (left int) {
	zones := w.wanted(f.layout)
	for place := f.free.next(0, len(f.layout.atPlace)); place < len(f.layout.atPlace); place = f.free.next(place+1, len(f.layout.atPlace)) {
		if zones[f.layout.rows[f.layout.rowAt[place]].zone] && (w.Accessible == 0 || f.layout.special.has(place)) {
			left++
		}
	}
	return left
}

// Left is how many places of each zone are free, as far as it is known: for certain, when all of them were read in this transaction.
func (f *Floor) Left() map[string]int {
	left := map[string]int{}
	for place := f.free.next(0, len(f.layout.atPlace)); place < len(f.layout.atPlace); place = f.free.next(place+1, len(f.layout.atPlace)) {
		left[f.layout.at(place).Zone]++
	}
	return left
}

// Seats is how many places of each zone can be given at all.
func (f *Floor) Seats() map[string]int {
	seats := map[string]int{}
	for _, s := range f.layout.seats {
		if !s.Blocked && s.Number <= f.sitting.Places {
			seats[s.Zone]++
		}
	}
	return seats
}

// giveBack takes back what was proposed.
func (p *proposing) giveBack() {
	for _, of := range p.given {
		if _, free := p.looked[of]; free {
			of.floor.free.add(of.place)
		}
	}
	p.given = nil
}

func (p *proposing) finish() {
	for _, c := range p.carts {
		for i := range c.Chosen {
			if c.Err != nil {
				c.Chosen = nil
				break
			}
			for j := range c.Chosen[i] {
				c.Chosen[i][j].LapsedID = p.looked[placeOf{c.Wanted[i].Floor, c.Chosen[i][j].place}]
			}
		}
	}
}

// look looks at the places of which nothing was read yet in this transaction, and tells whether one that was believed free is taken.
func (p *proposing) look(ctx context.Context, tx pgx.Tx) (taken bool, err error) {
	byFloor := map[*Floor][]int{}
	for _, of := range p.toLook {
		if _, known := p.looked[of]; !known && !slices.Contains(byFloor[of.floor], of.place) {
			byFloor[of.floor] = append(byFloor[of.floor], of.place)
		}
	}
	p.toLook = nil
	floors := make([]*Floor, 0, len(byFloor))
	for f := range byFloor {
		floors = append(floors, f)
	}
	slices.SortFunc(floors, func(a, b *Floor) int { return cmp.Compare(a.sitting.ID, b.sitting.ID) })
	for _, f := range floors {
		found, err := p.lookAt(ctx, tx, f, byFloor[f])
		if err != nil {
			return false, err
		}
		taken = taken || found
	}
	return taken, nil
}

func (p *proposing) lookAt(ctx context.Context, tx pgx.Tx, f *Floor, places []int) (taken bool, err error) {
	numbers := make([]int, len(places))
	for i, place := range places {
		numbers[i] = f.layout.at(place).Number
		p.looked[placeOf{f, place}] = 0
	}
	// Seat by seat through the key.
	rows, err := tx.Query(ctx, `
select k.id, w.number, k.expires_at
  from unnest($3::int[]) w(number)
 cross join lateral (select id, expires_at from claim
    where organisation_id = $1 and sitting_id = $2 and seat_number = w.number and released_at is null offset 0) k`,
		pg.PlanAnew, p.organisationID, f.sitting.ID, numbers)
	if err != nil {
		return false, fmt.Errorf("look at the seats: %w", err)
	}
	proposed := map[placeOf]bool{}
	for _, of := range p.given {
		proposed[of] = true
	}
	var id int64
	var number int
	var until *time.Time
	live := map[int]bool{}
	if _, err = pgx.ForEachRow(rows, []any{&id, &number, &until}, func() error {
		s, _ := f.layout.numbered(number)
		of := placeOf{f, s.place}
		if until != nil && !until.After(p.now) {
			p.looked[of] = id
			return nil
		}
		delete(p.looked, of)
		live[s.place] = true
		taken = taken || proposed[of] || f.free.has(s.place)
		f.occupy(s.place, until)
		return nil
	}); err != nil {
		return false, fmt.Errorf("look at the seats: %w", err)
	}
	for _, place := range places {
		if of := (placeOf{f, place}); !live[place] && !proposed[of] {
			f.release(place) // what was chosen by name may be free though it is believed taken
		}
	}
	return taken, nil
}

// reread reads everything of the sittings that were asked for.
func (p *proposing) reread(ctx context.Context, tx pgx.Tx) error {
	for _, c := range p.carts {
		for _, w := range c.Wanted {
			if w.Floor.whole {
				continue
			}
			if err := w.Floor.Reread(ctx, tx, p.organisationID, p.now); err != nil {
				return err
			}
		}
	}
	return nil
}
