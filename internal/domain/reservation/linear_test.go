package reservation

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"usher/internal/base/problem"
)

// What the register of seats is asked: each hold is an owner of its own, and a renewal after the lapse is one more.
const (
	askHold = iota
	askRenew
	askGiveUp
	askAdvance // the clock, by minutes
)

type question struct {
	kind, owner, next int // next: who owns what a renewal after the lapse holds
	seats             int // of the three, as bits
	minutes           int
}

// answer says whether it was done, and whether a renewal had to hold the seats anew.
type answer struct{ done, anew bool }

// register is three seats, each with its owner and the minutes at which the hold ends and may end at most.
type register struct {
	now              int
	owner, end, most [3]int
}

func (r register) free(seats int) bool {
	for i := range r.owner {
		if seats&(1<<i) != 0 && r.owner[i] != 0 && r.end[i] > r.now {
			return false
		}
	}
	return true
}

func (r register) holds(owner, seats int) bool {
	for i := range r.owner {
		if seats&(1<<i) != 0 && (r.owner[i] != owner || r.end[i] <= r.now) {
			return false
		}
	}
	return true
}

func (r register) set(seats, owner, end, most int) register {
	for i := range r.owner {
		if seats&(1<<i) != 0 {
			r.owner[i], r.end[i], r.most[i] = owner, end, most
		}
	}
	return r
}

// step is the rule of the register: what a question is answered, and what stands then.
func (r register) step(q question) (answer, register) {
	switch q.kind {
	case askAdvance:
		r.now += q.minutes
		return answer{done: true}, r
	case askGiveUp:
		if !r.holds(q.owner, q.seats) {
			return answer{}, r
		}
		return answer{done: true}, r.set(q.seats, 0, 0, 0)
	case askRenew:
		if r.holds(q.owner, q.seats) {
			for i := range r.owner {
				if q.seats&(1<<i) != 0 {
					r.end[i] = max(r.end[i], min(r.now+10, r.most[i]))
				}
			}
			return answer{done: true}, r
		}
		if !r.free(q.seats) {
			return answer{anew: true}, r
		}
		return answer{done: true, anew: true}, r.set(q.seats, q.next, r.now+10, r.now+30)
	}
	if !r.free(q.seats) {
		return answer{}, r
	}
	return answer{done: true}, r.set(q.seats, q.owner, r.now+10, r.now+30)
}

var registerModel = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		want, next := state.(register).step(input.(question))
		return want == output.(answer), next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// recording is a history under way.
type recording struct {
	h      *theatre
	mu     sync.Mutex
	began  time.Time
	events []porcupine.Operation
	owners int
}

func (r *recording) owner() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners++
	return r.owners
}

func (r *recording) ask(client int, q question, act func() (answer, error)) (answer, error) {
	call := time.Since(r.began).Nanoseconds()
	a, err := act()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, porcupine.Operation{ClientId: client, Input: q, Call: call, Output: a, Return: time.Since(r.began).Nanoseconds()})
	return a, err
}

// refusals that the register knows; anything else is a fault.
func done(err error, codes ...string) (bool, error) {
	for _, code := range codes {
		if problem.Has(err, code) {
			return false, nil
		}
	}
	return err == nil, err
}

// buy lets a client hold, renew and give up at random, through a desk.
func (r *recording) buy(client int, desk *Desk, dice *rand.Rand, steps int) error {
	var mine Reservation
	var owner, seats int
	for range steps {
		q := question{kind: dice.IntN(3), owner: owner, seats: seats}
		if owner == 0 {
			q = question{kind: askHold, owner: r.owner(), seats: 1 + dice.IntN(7)}
		} else if q.kind == askHold {
			q.kind = askRenew
		}
		if q.kind == askRenew {
			q.next = r.owner()
		}
		a, err := r.ask(client, q, func() (a answer, err error) {
			switch q.kind {
			case askHold:
				var names []string
				for i := range 3 {
					if q.seats&(1<<i) != 0 {
						names = append(names, fmt.Sprint("A", i+1))
					}
				}
				mine, err = desk.Hold(r.h.Context(), Buyer, chosen(names...))
			case askRenew:
				var renewed Reservation
				renewed, err = desk.Renew(r.h.Context(), Buyer, mine.Reference)
				if a.anew = err != nil || renewed.Reference != mine.Reference; err == nil {
					mine = renewed
				}
			case askGiveUp:
				_, err = GiveUp(r.h.Context(), r.h.db, Buyer, mine.Reference)
			}
			a.done, err = done(err, "seats_taken", "hold_over")
			return a, err
		})
		if err != nil {
			return err
		}
		switch {
		case q.kind == askGiveUp || !a.done:
			owner = 0
		case a.anew:
			owner = q.next
		case q.kind == askHold:
			owner, seats = q.owner, q.seats
		}
	}
	return nil
}

// Histories of several clients of several processes, while the clock goes on, are those of a plain register of seats.
func TestHold_IsLinearizable(t *testing.T) {
	t.Parallel()
	h := newTheatre(t)
	desks := h.desks()
	for round := range 4 {
		seed := uint64(time.Now().UnixNano())
		h.exec(`delete from claim; delete from line; delete from reservation`)
		h.at(0)
		r := &recording{h: h, began: time.Now()}
		errs := together(6, func(i int) error {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			if i < 5 {
				return r.buy(i, desks[i%len(desks)], dice, 12)
			}
			for now, turn := 0, 0; turn < 8; turn++ {
				q := question{kind: askAdvance, minutes: 1 + dice.IntN(6)}
				now += q.minutes
				if _, err := r.ask(i, q, func() (answer, error) { h.at(time.Duration(now) * time.Minute); return answer{done: true}, nil }); err != nil {
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			if err != nil {
				t.Fatalf("round %d, seed %d: %v", round, seed, err)
			}
		}
		if result := porcupine.CheckOperationsTimeout(registerModel, r.events, time.Minute); result != porcupine.Ok {
			for _, e := range r.events {
				t.Logf("client %d, %d to %d: %+v %+v", e.ClientId, e.Call, e.Return, e.Input, e.Output)
			}
			t.Fatalf("round %d, seed %d: %s", round, seed, result)
		}
	}
}

// The check can say no: of two holds of one seat at one time only one may be done.
func TestHold_IsLinearizable_Control(t *testing.T) {
	t.Parallel()
	history := []porcupine.Operation{
		{ClientId: 1, Input: question{kind: askHold, owner: 1, seats: 1}, Call: 0, Output: answer{done: true}, Return: 10},
		{ClientId: 2, Input: question{kind: askHold, owner: 2, seats: 3}, Call: 5, Output: answer{done: true}, Return: 12},
	}
	if porcupine.CheckOperations(registerModel, history) {
		t.Error("a seat that two hold is taken for right")
	}
	history[1].Output = answer{}
	if !porcupine.CheckOperations(registerModel, history) {
		t.Error("a right history is taken for wrong")
	}
}
