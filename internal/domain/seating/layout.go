package seating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"usher/internal/domain/venue"
)

// Layout is a room as whoever chooses seats that lie together sees it: rows in the order of the plan, from the front, and in each
// of them the seats that lie side by side. It does not change, and is shared.
//
// Each seat is a place in one line of places, in which an aisle and the end of a row are places without a seat: so seats lie side
// by side exactly when their places follow each other, and what is free is a set of places.
type Layout struct {
	seats    []LaidSeat // in the order of the plan
	rows     []laidRow
	zones    []string
	byNumber []int32 // which seat, from 1; 0: there is none
	atPlace  []int32 // which seat, from 1; 0: an aisle or the end of a row
	rowAt    []int32 // which row lies there
	usable   seatSet // seats that are not blocked
	special  seatSet // accessible ones
	unlaid   int     // the places of a room without a plan; 0: it has one
	byLabel  func() map[string]int32
}

// LaidSeat is a seat in its row.
type LaidSeat struct {
	Number     int    // its identity
	Label      string // as the plan prints it
	Zone       string
	Blocked    bool
	Accessible bool
	place      int
}

// laidRow are the places from first until last, which is excluded, and the zone that they are all of.
type laidRow struct{ first, last, zone int }

// PlannedSeat is a seat as the plan of a room has it.
type PlannedSeat struct {
	Number     int
	Label      string
	Zone       string
	RowLabel   string
	RowOrder   int
	Position   int // in its row
	Blocked    bool
	Accessible bool
}

// NewLayout lays out a plan. A row is what the plan calls one, within one zone: people who sit side by side in two zones have not
// asked for it. Rows lie as the plan orders them, then by their lowest number; a plan that says nothing of rows is one.
func NewLayout(plan []PlannedSeat) *Layout {
	type named struct {
		order       int
		label, zone string
	}
	rows := map[named][]PlannedSeat{}
	for _, s := range plan {
		key := named{s.RowOrder, s.RowLabel, s.Zone}
		rows[key] = append(rows[key], s)
	}
	ordered := make([][]PlannedSeat, 0, len(rows))
	for _, row := range rows {
		slices.SortFunc(row, func(a, b PlannedSeat) int {
			return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Number, b.Number))
		})
		ordered = append(ordered, row)
	}
	lowest := func(row []PlannedSeat) int {
		return slices.MinFunc(row, func(a, b PlannedSeat) int { return cmp.Compare(a.Number, b.Number) }).Number
	}
	slices.SortFunc(ordered, func(a, b []PlannedSeat) int {
		return cmp.Or(cmp.Compare(a[0].RowOrder, b[0].RowOrder), cmp.Compare(lowest(a), lowest(b)))
	})
	l := &Layout{seats: make([]LaidSeat, 0, len(plan))}
	for _, row := range ordered {
		l.layRow(row)
	}
	return l.finish()
}

// Unlaid is the layout of a room without a plan: its places are one row.
func Unlaid(places int) *Layout {
	row := make([]PlannedSeat, places)
	for i := range row {
		row[i] = PlannedSeat{Number: i + 1, Position: i + 1}
	}
	l := &Layout{seats: make([]LaidSeat, 0, places), unlaid: places}
	if places > 0 {
		l.layRow(row)
	}
	return l.finish()
}

func (l *Layout) layRow(row []PlannedSeat) {
	zone := slices.Index(l.zones, row[0].Zone)
	if zone < 0 {
		zone = len(l.zones)
		l.zones = append(l.zones, row[0].Zone)
	}
	l.atPlace = append(l.atPlace, 0) // whoever looks at two places before the first finds no seat
	laid := laidRow{first: len(l.atPlace), zone: zone}
	for i, s := range row {
		if i > 0 && s.Position > row[i-1].Position+1 {
			l.atPlace = append(l.atPlace, 0)
		}
		l.seats = append(l.seats, LaidSeat{
			Number: s.Number, Label: s.Label, Zone: l.zones[zone], Blocked: s.Blocked, Accessible: s.Accessible, place: len(l.atPlace),
		})
		l.atPlace = append(l.atPlace, int32(len(l.seats)))
	}
	laid.last = len(l.atPlace)
	l.rows = append(l.rows, laid)
}

func (l *Layout) finish() *Layout {
	l.atPlace = append(l.atPlace, 0)
	highest := 0
	for _, s := range l.seats {
		highest = max(highest, s.Number)
	}
	l.byNumber, l.rowAt = make([]int32, highest+1), make([]int32, len(l.atPlace))
	l.usable, l.special = newSeatSet(len(l.atPlace)), newSeatSet(len(l.atPlace))
	for i, s := range l.seats {
		l.byNumber[s.Number] = int32(i + 1)
		if !s.Blocked {
			l.usable.add(s.place)
		}
		if s.Accessible {
			l.special.add(s.place)
		}
	}
	for i, row := range l.rows {
		for place := row.first; place < row.last; place++ {
			l.rowAt[place] = int32(i)
		}
	}
	l.byLabel = sync.OnceValue(func() map[string]int32 {
		labels := make(map[string]int32, len(l.seats))
		for i, s := range l.seats {
			if key := strings.ToLower(s.Label); s.Label != "" && labels[key] == 0 {
				labels[key] = int32(i + 1)
			}
		}
		return labels
	})
	return l
}

// Seats is how many there are, blocked ones too.
func (l *Layout) Seats() int { return len(l.seats) }

// Zones are the names of the zones, in the order in which the plan meets them. Seats without a zone are of the empty one.
func (l *Layout) Zones() []string { return l.zones }

// numbered finds a seat by its number.
func (l *Layout) numbered(number int) (LaidSeat, bool) {
	if number < 1 || number >= len(l.byNumber) || l.byNumber[number] == 0 {
		return LaidSeat{}, false
	}
	return l.seats[l.byNumber[number]-1], true
}

// Named finds a seat by its label, whatever its case, else by its number: 7, 007 and 0007 are one seat.
func (l *Layout) Named(wanted string) (LaidSeat, bool) {
	wanted = strings.TrimSpace(wanted)
	if i := l.byLabel()[strings.ToLower(wanted)]; i != 0 && wanted != "" {
		return l.seats[i-1], true
	}
	number, err := strconv.Atoi(wanted)
	if err != nil {
		return LaidSeat{}, false
	}
	return l.numbered(number)
}

// printed is what is printed for a seat at a sitting of so many places.
func (s LaidSeat) printed(places int) LaidSeat {
	if s.Label == "" {
		s.Label = Label(s.Number, places)
	}
	return s
}

func (l *Layout) at(place int) LaidSeat { return l.seats[l.atPlace[place]-1] }

// mostLaidOut is how many seats the layouts that are kept may have in all: some 60 bytes each.
const mostLaidOut = 1_000_000

// Layouts keeps the layouts of the rooms in use. Safe for use by several at once; its zero value is ready.
type Layouts struct {
	mu    sync.Mutex
	kept  map[layoutKey]*keptLayout
	seats int
	tick  int64
}

// layoutKey is a plan in one revision; a room without a plan is as large as its sitting.
type layoutKey struct {
	organisationID, roomID int64
	revision, places       int
}

type keptLayout struct {
	layout *Layout
	used   int64
}

// Of is the layout of the room in which a sitting is, whose row the caller has locked: the plan is not laid anew meanwhile.
func (k *Layouts) Of(ctx context.Context, tx pgx.Tx, organisationID int64, s HeldSitting) (*Layout, error) {
	key := layoutKey{organisationID, s.RoomID, s.PlanRevision, s.Places}
	if layout := k.find(key); layout != nil {
		return layout, nil
	}
	layout, err := readLayout(ctx, tx, organisationID, s)
	if err != nil {
		return nil, err
	}
	k.keep(key, layout)
	return layout, nil
}

func (k *Layouts) find(key layoutKey) *Layout {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.kept[key]
	if kept == nil {
		return nil
	}
	k.tick++
	kept.used = k.tick
	return kept.layout
}

// keep adds a layout, and lets go of those that were not used for longest.
func (k *Layouts) keep(key layoutKey, layout *Layout) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[layoutKey]*keptLayout{}
	}
	if k.kept[key] != nil {
		return
	}
	for k.seats+layout.Seats() > mostLaidOut && len(k.kept) > 0 {
		var oldest layoutKey
		for candidate, kept := range k.kept {
			if k.kept[oldest] == nil || kept.used < k.kept[oldest].used {
				oldest = candidate
			}
		}
		k.seats -= k.kept[oldest].layout.Seats()
		delete(k.kept, oldest)
	}
	k.tick++
	k.kept[key] = &keptLayout{layout, k.tick}
	k.seats += layout.Seats()
}

func readLayout(ctx context.Context, tx pgx.Tx, organisationID int64, s HeldSitting) (*Layout, error) {
	rows, err := tx.Query(ctx, `
select number, label, zone, row_label, row_order, coalesce(position, number) as position, blocked, accessible
  from seat where organisation_id = $1 and room_id = $2 and number <= $3`, organisationID, s.RoomID, venue.MostPlaces)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowToStructByName[PlannedSeat])
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	if len(plan) == 0 {
		return Unlaid(s.Places), nil
	}
	return NewLayout(plan), nil
}
