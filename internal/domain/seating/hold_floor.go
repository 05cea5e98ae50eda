package seating

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/internal/base/pg"
)

// Bounds of what is believed of a sitting's seats.
const (
	windowSeats = 1_024           // seats that are read anew together, by their numbers
	readAlways  = 1_024           // a sitting with so few seats is read anew for each choice
	goodFor     = 2 * time.Second // a window that was read longer ago is read anew, the oldest one at each choice
	mostFloors  = 64              // sittings of which something is believed
)

// Floor is what this process believes of the seats of one sitting: a hint, with which seats are proposed without reading all of
// them. Whatever is proposed is looked at under the sitting's lock before it is taken, and before somebody is told that there are
// too few, all of it is read anew. Only the transaction that holds the sitting's lock uses it.
type Floor struct {
	mu      sync.Mutex
	used    int64
	sitting HeldSitting
	layout  *Layout
	free    seatSet
	lapses  lapses      // of the holds that are believed
	read    []time.Time // when each window was read, by this process' own clock
	whole   bool        // everything was read by the transaction at hand
}

// lapse is the instant at which the hold of a place ends.
type lapse struct {
	at    time.Time
	place int
}

// lapses are ordered by their instant.
type lapses []lapse

func (l lapses) Len() int           { return len(l) }
func (l lapses) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l lapses) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push is for the heap.
func (l *lapses) Push(x any) { *l = append(*l, x.(lapse)) }

// Pop is for the heap.
func (l *lapses) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// Floors keeps what is believed of the sittings in use. Safe for use by several at once; its zero value is ready.
type Floors struct {
	layouts Layouts
	mu      sync.Mutex
	kept    map[int64]*Floor // by sitting
	tick    int64
}

// Open gives what is believed of a sitting whose row the caller has locked, for its transaction alone, until it calls Close.
func (k *Floors) Open(ctx context.Context, tx pgx.Tx, organisationID int64, s HeldSitting, now time.Time) (*Floor, error) {
	layout, err := k.layouts.Of(ctx, tx, organisationID, s)
	if err != nil {
		return nil, err
	}
	f := k.floor(s.ID)
	f.mu.Lock() // whoever had it has committed: the row is locked. It waits for the moment between that and their Close
	stale := f.layout != layout || f.sitting.Places != s.Places || len(f.lapses) > 4*layout.Seats()+windowSeats
	f.sitting, f.layout, f.whole = s, layout, false
	switch {
	case stale || layout.Seats() <= readAlways:
		err = f.Reread(ctx, tx, organisationID, now)
	default:
		f.lapse(now)
		err = f.refresh(ctx, tx, organisationID, now)
	}
	if err != nil {
		f.forget()
		f.mu.Unlock()
		return nil, err
	}
	return f, nil
}

// Close ends its use by a transaction, and says whether that was committed: what was not is not believed.
func (f *Floor) Close(committed bool) {
	if !committed {
		f.forget()
	}
	f.mu.Unlock()
}

func (f *Floor) forget() { f.layout = nil }

func (k *Floors) floor(sittingID int64) *Floor {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[int64]*Floor{}
	}
	f := k.kept[sittingID]
	if f == nil {
		f = &Floor{}
		k.kept[sittingID] = f
	}
	k.tick++
	f.used = k.tick
	if len(k.kept) > mostFloors {
		oldest := sittingID
		for id, other := range k.kept {
			if other.used < k.kept[oldest].used {
				oldest = id
			}
		}
		delete(k.kept, oldest)
	}
	return f
}

// lapse frees what has lapsed by then.
func (f *Floor) lapse(now time.Time) {
	for len(f.lapses) > 0 && !f.lapses[0].at.After(now) {
		f.release(heap.Pop(&f.lapses).(lapse).place)
	}
}

// release believes a place free, unless nobody can sit there.
func (f *Floor) release(place int) {
	if s := f.layout.at(place); !s.Blocked && s.Number <= f.sitting.Places {
		f.free.add(place)
	}
}

// occupy believes a place taken, until an instant or for good.
func (f *Floor) occupy(place int, until *time.Time) {
	f.free.remove(place)
	if until != nil {
		heap.Push(&f.lapses, lapse{*until, place})
	}
}

// Reread reads all of the sitting's claims.
func (f *Floor) Reread(ctx context.Context, tx pgx.Tx, organisationID int64, now time.Time) error {
	highest := len(f.layout.byNumber)
	f.free, f.lapses, f.read = newSeatSet(len(f.layout.atPlace)), nil, make([]time.Time, highest/windowSeats+1)
	if err := f.readNumbers(ctx, tx, organisationID, now, 0, highest); err != nil {
		return err
	}
	f.whole = true
	return nil
}

// refresh reads the window that was read longest ago, if it was long ago.
func (f *Floor) refresh(ctx context.Context, tx pgx.Tx, organisationID int64, now time.Time) error {
	oldest := 0
	for i, at := range f.read {
		if at.Before(f.read[oldest]) {
			oldest = i
		}
	}
	if time.Since(f.read[oldest]) < goodFor {
		return nil
	}
	return f.readNumbers(ctx, tx, organisationID, now, oldest*windowSeats, min(len(f.layout.byNumber), (oldest+1)*windowSeats))
}

// readNumbers reads the claims of the seats from one number on and before another.
func (f *Floor) readNumbers(ctx context.Context, tx pgx.Tx, organisationID int64, now time.Time, from, before int) error {
	for number := from; number < before; number++ {
		if s, there := f.layout.numbered(number); there {
			f.release(s.place)
		}
	}
	rows, err := tx.Query(ctx, `
select seat_number, expires_at from claim
 where organisation_id = $1 and sitting_id = $2 and seat_number >= $3 and seat_number < $4 and released_at is null`,
		pg.PlanAnew, organisationID, f.sitting.ID, from, before)
	if err != nil {
		return fmt.Errorf("read the claims of the sitting: %w", err)
	}
	var number int
	var until *time.Time
	if _, err = pgx.ForEachRow(rows, []any{&number, &until}, func() error {
		if s, there := f.layout.numbered(number); there && (until == nil || until.After(now)) {
			f.occupy(s.place, until)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("read the claims of the sitting: %w", err)
	}
	readAt := time.Now()
	for i := from / windowSeats; i*windowSeats < before; i++ {
		f.read[i] = readAt
	}
	return nil
}

// Held says until when what was proposed is held.
func (f *Floor) Held(seats []Proposed, until time.Time) {
	for _, s := range seats {
		f.occupy(s.place, &until)
	}
}

// Spared says that what was proposed was not needed.
func (f *Floor) Spared(seats []Proposed) {
	for _, s := range seats {
		f.release(s.place)
	}
}
