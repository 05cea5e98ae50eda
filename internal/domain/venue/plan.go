package venue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"usher/internal/base/pg"
	"usher/internal/base/problem"
)

// Seat is a physical place of a room that has a plan: the number is its identity, the label is
// what is printed. Seats of one row (RowOrder) whose places follow each other lie side by side.
type Seat struct {
	Number     int
	Label      string
	Zone       string // what it is sold as
	Blocked    bool
	Accessible bool
	Block      string  // the part of the room: stalls, balcony
	Row        string  `db:"row_label"`
	RowOrder   int     // from the stage, or from the door
	Position   int     // in the row, from 1; an aisle is a position that is left out. 0: the number
	Drawn      bool    // X and Y are said
	X, Y       float64 // as the plan draws it, in pixels
	GUID       string  // the plan's own name of the seat; empty: it has none
}

// Place is where the seat stands in its row.
func (s Seat) Place() int {
	if s.Position == 0 {
		return s.Number
	}
	return s.Position
}

// SeatColumns are what a Seat is scanned from.
const SeatColumns = `number, label, zone, blocked, accessible, block, row_label, row_order, coalesce(position, 0) as position,
       x is not null as drawn, coalesce(x, 0) as x, coalesce(y, 0) as y, guid`

// LayPlan replaces the plan of a room and raises its revision. Whether the people who already sit there still can is
// checked in seating, in the same transaction.
func LayPlan(ctx context.Context, tx pgx.Tx, organisationID, roomID int64, seats []Seat) error {
	n := len(seats)
	numbers, labels, zones, blocks := make([]int, n), make([]string, n), make([]string, n), make([]string, n)
	blocked, accessible, drawn := make([]bool, n), make([]bool, n), make([]bool, n)
	rows, orders, positions := make([]string, n), make([]int, n), make([]int, n)
	xs, ys, guids := make([]float64, n), make([]float64, n), make([]string, n)
	for i, s := range seats {
		numbers[i], labels[i], zones[i], blocked[i], accessible[i] = s.Number, s.Label, s.Zone, s.Blocked, s.Accessible
		blocks[i], rows[i], orders[i], positions[i] = s.Block, s.Row, s.RowOrder, s.Position
		drawn[i], xs[i], ys[i], guids[i] = s.Drawn, s.X, s.Y, s.GUID
	}
	if _, err := tx.Exec(ctx, `delete from seat where organisation_id = $1 and room_id = $2`, organisationID, roomID); err != nil {
		return fmt.Errorf("take up the old plan: %w", err)
	}
	_, err := tx.Exec(ctx, `
insert into seat (organisation_id, room_id, number, label, zone, blocked, accessible, block, row_label, row_order, position, x, y, guid)
select $1, $2, s.number, s.label, s.zone, s.blocked, s.accessible, s.block, s.row_label, s.row_order, nullif(s.position, 0),
       case when s.drawn then s.x end, case when s.drawn then s.y end, s.guid
  from unnest($3::int[], $4::text[], $5::text[], $6::bool[], $7::bool[], $8::text[], $9::text[], $10::int[], $11::int[], $12::bool[],
              $13::float8[], $14::float8[], $15::text[])
       s(number, label, zone, blocked, accessible, block, row_label, row_order, position, drawn, x, y, guid)`,
		organisationID, roomID, numbers, labels, zones, blocked, accessible, blocks, rows, orders, positions, drawn, xs, ys, guids)
	if pg.Duplicates(err) {
		return problem.Invalid("plan_repeats", nil)
	}
	if err != nil {
		return fmt.Errorf("lay the plan: %w", err)
	}
	if _, err := tx.Exec(ctx, `update room set plan_revision = plan_revision + 1 where organisation_id = $1 and id = $2`, organisationID, roomID); err != nil {
		return fmt.Errorf("raise the revision of the plan: %w", err)
	}
	return nil
}

// Plan is the plan of a room in the order of its seats; a room without one has none.
func Plan(ctx context.Context, tx pgx.Tx, organisationID, roomID int64) ([]Seat, error) {
	rows, err := tx.Query(ctx, `select `+SeatColumns+` from seat
 where organisation_id = $1 and room_id = $2 order by number`, organisationID, roomID)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	seats, err := pgx.CollectRows(rows, pgx.RowToStructByName[Seat])
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return seats, nil
}

// KeepDrawing keeps what a plan draws beside its seats; the empty drawing: nothing.
func KeepDrawing(ctx context.Context, tx pgx.Tx, organisationID, roomID int64, drawing Drawing) error {
	var text *string
	if !drawing.empty() {
		var written bytes.Buffer
		encoder := json.NewEncoder(&written)
		encoder.SetEscapeHTML(false) // what came from a file stays as it came
		if err := encoder.Encode(drawing); err != nil {
			return fmt.Errorf("write the drawing: %w", err)
		}
		text = new(written.String())
	}
	if _, err := tx.Exec(ctx, `update room set drawing = $3::json where organisation_id = $1 and id = $2`, organisationID, roomID, text); err != nil {
		return fmt.Errorf("keep the drawing: %w", err)
	}
	return nil
}

// ReadDrawing reads what the plan of a room draws beside its seats.
func ReadDrawing(ctx context.Context, tx pgx.Tx, organisationID, roomID int64) (drawing Drawing, err error) {
	var text *string
	err = tx.QueryRow(ctx, `select drawing::text from room where organisation_id = $1 and id = $2`, organisationID, roomID).Scan(&text)
	if err != nil {
		return drawing, fmt.Errorf("read the drawing: %w", err)
	}
	if text == nil {
		return drawing, nil
	}
	if err := json.Unmarshal([]byte(*text), &drawing); err != nil {
		return drawing, fmt.Errorf("understand the drawing: %w", err)
	}
	return drawing, nil
}

// Renumber gives the seats of a new plan their identity. A seat that stays keeps its number, and whether it is blocked or
// accessible, which the new plan does not say: it is known by its guid, else by its label. The others follow the highest number
// of the plan that stands, in the order given. Where that passes MostPlaces, the holes are filled.
func Renumber(stored, laid []Seat) []Seat {
	byGUID, byLabel, used, last := map[string]Seat{}, map[string]Seat{}, map[int]bool{}, 0
	for _, s := range stored {
		if s.GUID != "" {
			byGUID[s.GUID] = s
		}
		byLabel[LabelKey(s.Label)] = s
		last = max(last, s.Number)
	}
	after := slices.Clone(laid)
	for i := range after {
		after[i].Number = 0
	}
	keep := func(s *Seat, old Seat, known bool) {
		if known && s.Number == 0 && !used[old.Number] {
			used[old.Number] = true
			s.Number, s.Blocked, s.Accessible = old.Number, old.Blocked, old.Accessible
		}
	}
	for i := range after { // all guids before any label: a label that went to another seat takes nothing with it
		old, known := byGUID[after[i].GUID]
		keep(&after[i], old, known)
	}
	for i := range after {
		old, known := byLabel[LabelKey(after[i].Label)]
		keep(&after[i], old, known)
	}
	hole := 0
	for i := range after {
		if after[i].Number != 0 {
			continue
		}
		if last++; last > MostPlaces {
			for hole++; used[hole]; {
				hole++
			}
			after[i].Number = hole
			continue
		}
		after[i].Number = last
	}
	slices.SortFunc(after, func(a, b Seat) int { return cmp.Compare(a.Number, b.Number) })
	return after
}

// LabelKey is how labels of one room are compared: without regard to case and to how letters are composed.
func LabelKey(label string) string { return strings.ToLower(norm.NFKC.String(label)) }
