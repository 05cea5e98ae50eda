package venue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// Plans come and go in the JSON of pretix's seating plans (pretix/pretix, src/pretix/static/seating/seating-plan.schema.json).
// What its words mean here, and what becomes of what it has and we have not, is written down in docs/seat-plans.md; this file
// keeps to it.

// Bounds of a file of a plan.
const (
	mostPlanBytes = 64 << 20
	mostDrawing   = 1 << 20   // bytes of what is drawn beside the seats
	mostLabel     = 100       // characters of a label, a zone, a block, a guid
	mostPixels    = 1_000_000 // how far from the corner something is drawn
)

// Drawing is what a plan draws beside its seats: kept as it came, and given back.
type Drawing struct {
	Name       string          `json:"name,omitempty"`
	Categories json.RawMessage `json:"categories,omitempty"` // names and colours
	Size       json.RawMessage `json:"size,omitempty"`
	Blocks     []Block         `json:"blocks,omitempty"`
}

// Block is a part of the room, with what is drawn in it.
type Block struct {
	Name  string          `json:"name"`
	ID    string          `json:"id,omitempty"`
	X     float64         `json:"x"`
	Y     float64         `json:"y"`
	Areas json.RawMessage `json:"areas,omitempty"`
}

func (d Drawing) empty() bool {
	return d.Name == "" && len(d.Categories) == 0 && len(d.Size) == 0 && len(d.Blocks) == 0
}

// The file, as far as it is read. Members that are not named here are ignored.
type (
	planFile struct {
		Name       string          `json:"name"`
		Zones      []planZone      `json:"zones"`
		Categories json.RawMessage `json:"categories"`
		Size       json.RawMessage `json:"size,omitempty"`
	}
	planZone struct {
		Name     string          `json:"name"`
		ID       text            `json:"zone_id,omitempty"`
		Position *point          `json:"position"`
		Rows     []planRow       `json:"rows"`
		Areas    json.RawMessage `json:"areas,omitempty"`
	}
	planRow struct {
		Number         text       `json:"row_number"`
		NumberPosition string     `json:"row_number_position,omitempty"`
		Position       *point     `json:"position,omitempty"`
		Seats          []planSeat `json:"seats"`
	}
	planSeat struct {
		GUID     text   `json:"seat_guid"`
		Number   text   `json:"seat_number"`
		Position *point `json:"position,omitempty"`
		Category text   `json:"category"`
	}
	point struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	}
)

// text is a word that some files write as a number.
type text string

// UnmarshalJSON takes a string, a number or null.
func (t *text) UnmarshalJSON(from []byte) error {
	var s *string
	if json.Unmarshal(from, &s) == nil {
		if s != nil {
			*t = text(sheet.Clean(*s))
		}
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(from, &n); err != nil {
		return fmt.Errorf("neither a word nor a number: %w", err)
	}
	*t = text(n.String())
	return nil
}

// ReadSeatingPlan reads a plan in pretix's form. The seats come in the order of the file, numbered from 1.
func ReadSeatingPlan(file io.Reader) ([]Seat, Drawing, error) {
	content, err := io.ReadAll(io.LimitReader(file, mostPlanBytes+1))
	if err != nil {
		return nil, Drawing{}, fmt.Errorf("read the plan: %w", err)
	}
	if len(content) > mostPlanBytes {
		return nil, Drawing{}, problem.Invalid("plan_file_large", problem.Facts{"most": mostPlanBytes >> 20})
	}
	var read planFile
	if err := json.Unmarshal(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), &read); err != nil {
		return nil, Drawing{}, planFault(err)
	}
	if read.Zones == nil {
		return nil, Drawing{}, problem.Invalid("plan_file_not_one", nil)
	}
	return read.plan()
}

func planFault(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) && typed.Field != "" {
		return problem.Invalid("plan_file_member", problem.Facts{"member": typed.Field}).Because(err)
	}
	return problem.Invalid("plan_file_not_json", nil).Because(err)
}

func (f planFile) plan() ([]Seat, Drawing, error) {
	r := planReader{drawing: Drawing{Name: sheet.Clean(f.Name), Categories: given(f.Categories), Size: given(f.Size)}, guids: map[string]string{}}
	for _, zone := range f.Zones {
		if err := r.readZone(zone); err != nil {
			return nil, Drawing{}, err
		}
	}
	if len(r.seats) == 0 {
		return nil, Drawing{}, problem.Invalid("plan_without_seats", nil)
	}
	if written, err := json.Marshal(r.drawing); err != nil || len(written) > mostDrawing {
		return nil, Drawing{}, problem.Invalid("plan_drawing_large", problem.Facts{"most": mostDrawing >> 20}).Because(err)
	}
	leaveAisles(r.seats)
	return r.seats, r.drawing, r.label()
}

// given is a member of the file in one form, or nothing where it says null.
func given(member json.RawMessage) json.RawMessage {
	var compact bytes.Buffer
	if bytes.Equal(member, []byte("null")) || json.Compact(&compact, member) != nil { // a member of what was read is JSON
		return nil
	}
	return compact.Bytes()
}

type planReader struct {
	seats   []Seat
	numbers []string // what a seat is called in its row
	drawing Drawing
	guids   map[string]string // who had a guid first
	rows    int
}

func (r *planReader) readZone(zone planZone) error {
	block := Block{Name: r.blockName(cmp.Or(sheet.Clean(zone.Name), string(zone.ID))), ID: string(zone.ID), Areas: given(zone.Areas)}
	if zone.Position != nil {
		block.X, block.Y = mils(zone.Position.X), mils(zone.Position.Y)
	}
	if err := checkWords(block.Name, "name"); err != nil {
		return err
	}
	if err := checkPixels(block.X, block.Y, block.Name); err != nil {
		return err
	}
	r.drawing.Blocks = append(r.drawing.Blocks, block)
	for _, row := range zone.Rows {
		if len(row.Seats) == 0 {
			continue
		}
		r.rows++
		if err := r.readRow(block, row); err != nil {
			return err
		}
	}
	return nil
}

// blockName tells zones of one name apart by a number.
func (r *planReader) blockName(name string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(r.drawing.Blocks, func(b Block) bool { return b.Name == name })
	}
	if !has(name) {
		return name
	}
	for nth := 2; ; nth++ {
		if other := sheet.Clean(name + " (" + strconv.Itoa(nth) + ")"); !has(other) {
			return other
		}
	}
}

func (r *planReader) readRow(block Block, row planRow) error {
	at := point{block.X, block.Y}
	if row.Position != nil {
		at = point{at.X + row.Position.X, at.Y + row.Position.Y}
	}
	if len(r.seats)+len(row.Seats) > MostPlaces {
		return problem.Invalid("plan_seats_many", problem.Facts{"most": MostPlaces})
	}
	for nth, said := range row.Seats {
		s := Seat{
			Number: len(r.seats) + 1, Zone: string(said.Category), Block: block.Name, Row: string(row.Number), RowOrder: r.rows,
			Position: nth + 1, GUID: string(said.GUID), Label: string(said.Number),
		}
		if said.Position != nil {
			s.Drawn, s.X, s.Y = true, mils(at.X+said.Position.X), mils(at.Y+said.Position.Y)
		}
		if err := r.check(s, nth); err != nil {
			return err
		}
		r.seats = append(r.seats, s)
		r.numbers = append(r.numbers, string(said.Number))
	}
	return nil
}

// mils rounds to thousandths of a pixel: what is added and taken off again stays the same, and zero has no sign.
func mils(pixels float64) float64 { return math.Round(pixels*1000)/1000 + 0 }

func (r *planReader) check(s Seat, nth int) error {
	if s.Label == "" {
		return problem.Invalid("plan_seat_unnumbered", problem.Facts{"block": s.Block, "row": s.Row, "nth": nth + 1})
	}
	if err := errors.Join(checkWords(s.Label, "seat_number"), checkWords(s.Row, "row_number"), checkWords(s.Zone, "category"),
		checkWords(s.GUID, "seat_guid")); err != nil {
		return err
	}
	if err := checkPixels(s.X, s.Y, s.Row+"-"+s.Label); err != nil {
		return err
	}
	if s.GUID == "" {
		return nil
	}
	named := s.Row + "-" + s.Label
	if first, again := r.guids[s.GUID]; again {
		return problem.Invalid("plan_guid_twice", problem.Facts{"guid": s.GUID, "first": first, "second": named, "block": s.Block})
	}
	r.guids[s.GUID] = named
	return nil
}

func checkWords(words, member string) error {
	if utf8.RuneCountInString(words) > mostLabel {
		return problem.Invalid("plan_words_long", problem.Facts{"member": member, "words": string([]rune(words)[:20]) + "…", "most": mostLabel})
	}
	return nil
}

func checkPixels(x, y float64, what string) error {
	if math.Abs(x) > mostPixels || math.Abs(y) > mostPixels {
		return problem.Invalid("plan_drawn_far", problem.Facts{"what": what, "most": mostPixels})
	}
	return nil
}

// leaveAisles leaves a position out where two seats of a row that follow each other are drawn farther apart than half as much
// again as seats of the row usually are, or, in a row too short to tell, of the plan: who sits there does not sit together.
func leaveAisles(seats []Seat) {
	gaps, all := make([]float64, len(seats)), make([]float64, 0, len(seats)) // before each seat; -1: it begins a row, or is not drawn
	for i, s := range seats {
		gaps[i] = -1
		if i > 0 && seats[i-1].RowOrder == s.RowOrder && seats[i-1].Drawn && s.Drawn {
			gaps[i] = math.Hypot(s.X-seats[i-1].X, s.Y-seats[i-1].Y)
			all = append(all, gaps[i])
		}
	}
	ofPlan := median(all)
	for from := 0; from < len(seats); {
		to := from + 1
		for to < len(seats) && seats[to].RowOrder == seats[from].RowOrder {
			to++
		}
		usual := ofPlan
		if to-from > 2 {
			usual = median(gaps[from+1 : to])
		}
		left := 0
		for i := from; i < to; i++ {
			if usual > 0 && gaps[i] > 1.5*usual {
				left++
			}
			seats[i].Position += left
		}
		from = to
	}
}

// median is the lower of the middle ones; 0 of none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(of))[(len(of)-1)/2]
}

// label makes what is printed: row and number, A-12; before it the block, where another block has a seat of that name.
func (r *planReader) label() error {
	named := map[string]string{} // row and number to the block that has it, or to what stands for several
	const several = "\x00"
	for i := range r.seats {
		s := &r.seats[i]
		if s.Label = r.numbers[i]; s.Row != "" {
			s.Label = s.Row + "-" + s.Label
		}
		block, there := named[LabelKey(s.Label)]
		if there && block != s.Block {
			named[LabelKey(s.Label)] = several
		} else if !there {
			named[LabelKey(s.Label)] = s.Block
		}
	}
	taken := map[string]bool{}
	for i := range r.seats {
		s := &r.seats[i]
		if named[LabelKey(s.Label)] == several && s.Block != "" {
			s.Label = s.Block + " " + s.Label
		}
		if taken[LabelKey(s.Label)] {
			return problem.Invalid("plan_seat_twice", problem.Facts{"seat": s.Label})
		}
		taken[LabelKey(s.Label)] = true
	}
	return nil
}

// WriteSeatingPlan writes a plan in pretix's form; read again, it is the same plan, but for what the form cannot say: which seats
// are blocked or accessible. A seat without a guid is given its label for one, and one that is not drawn its place in the row,
// because the form wants both.
func WriteSeatingPlan(to io.Writer, name string, seats []Seat, drawing Drawing) error {
	file := planFile{Name: cmp.Or(drawing.Name, name), Size: drawing.Size, Categories: drawing.Categories, Zones: []planZone{}}
	if len(file.Categories) == 0 {
		file.Categories = categoriesOf(seats)
	}
	if len(file.Size) == 0 {
		file.Size = sizeOf(seats)
	}
	blocks, rows := rowsOf(seats, drawing.Blocks)
	for _, b := range blocks {
		zone := planZone{Name: b.Name, ID: text(b.ID), Position: &point{b.X, b.Y}, Rows: rows[b.Name], Areas: b.Areas}
		if zone.Rows == nil {
			zone.Rows = []planRow{}
		}
		file.Zones = append(file.Zones, zone)
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(file); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// rowsOf puts the seats into rows by block, in the order of the plan, and adds the blocks that the drawing does not know.
func rowsOf(seats []Seat, drawn []Block) ([]Block, map[string][]planRow) {
	seats, blocks, rows := slices.Clone(seats), slices.Clone(drawn), map[string][]planRow{}
	slices.SortStableFunc(seats, func(a, b Seat) int {
		return cmp.Or(cmp.Compare(a.RowOrder, b.RowOrder), cmp.Compare(a.Place(), b.Place()), cmp.Compare(a.Number, b.Number))
	})
	guids, shared := guidsOf(seats), sharedNames(seats)
	for i, s := range seats {
		at := slices.IndexFunc(blocks, func(b Block) bool { return b.Name == s.Block })
		if at < 0 {
			at, blocks = len(blocks), append(blocks, Block{Name: s.Block})
		}
		of := rows[s.Block]
		if i == 0 || seats[i-1].RowOrder != s.RowOrder || seats[i-1].Block != s.Block || seats[i-1].Row != s.Row {
			of = append(of, planRow{Number: text(s.Row), NumberPosition: "both", Position: &point{}})
		}
		x, y := s.X, s.Y
		if !s.Drawn {
			x, y = blocks[at].X+float64(s.Place()*gridPitch), blocks[at].Y+float64(s.RowOrder*gridPitch)
		}
		last := &of[len(of)-1]
		last.Seats = append(last.Seats, planSeat{
			GUID: text(guids[i]), Number: text(s.numberInRow(shared)), Category: text(s.Zone),
			Position: &point{mils(x - blocks[at].X), mils(y - blocks[at].Y)},
		})
		rows[s.Block] = of
	}
	return blocks, rows
}

// guidsOf are the guids of seats; one that has none gets its label, with a number where that is somebody's guid.
func guidsOf(seats []Seat) []string {
	taken, guids := map[string]bool{}, make([]string, len(seats))
	for _, s := range seats {
		taken[s.GUID] = true
	}
	for i, s := range seats {
		guids[i] = s.GUID
		for nth := 1; taken[guids[i]] && s.GUID == ""; nth++ {
			if guids[i] = s.Label; nth > 1 {
				guids[i] += " #" + strconv.Itoa(nth)
			}
		}
		taken[guids[i]] = true
	}
	return guids
}

// sharedNames are what follows the block in labels that begin with it, where several blocks have it: there the reader put it.
func sharedNames(seats []Seat) map[string]bool {
	shared, first := map[string]bool{}, map[string]string{}
	for _, s := range seats {
		name, begins := s.Label, true // seats of no block are called as they are
		if s.Block != "" {
			name, begins = strings.CutPrefix(s.Label, s.Block+" ")
		}
		if !begins {
			continue
		}
		key := LabelKey(name)
		if block, there := first[key]; there && block != s.Block {
			shared[key] = true
		}
		first[key] = s.Block
	}
	return shared
}

// numberInRow is the label without its row and, where the reader put it before, its block.
func (s Seat) numberInRow(shared map[string]bool) string {
	label := s.Label
	if name, begins := strings.CutPrefix(label, s.Block+" "); s.Block != "" && begins && shared[LabelKey(name)] {
		label = name
	}
	if s.Row == "" {
		return label
	}
	return strings.TrimPrefix(label, s.Row+"-")
}

// categoriesOf are the zones of seats, as the form lists them.
func categoriesOf(seats []Seat) json.RawMessage {
	type category struct {
		Name string `json:"name"`
	}
	categories := []category{}
	for _, s := range seats {
		if c := (category{s.Zone}); s.Zone != "" && !slices.Contains(categories, c) {
			categories = append(categories, c)
		}
	}
	written, _ := json.Marshal(categories) // words: nothing can fail
	return written
}

// sizeOf is how large a drawing is that holds the seats, in whole pixels.
func sizeOf(seats []Seat) json.RawMessage {
	right, bottom := 0.0, 0.0
	for _, s := range seats {
		right, bottom = max(right, s.X, float64(s.Place()*gridPitch)), max(bottom, s.Y, float64(s.RowOrder*gridPitch))
	}
	return fmt.Appendf(nil, `{"width":%d,"height":%d}`, int(right)+gridPitch, int(bottom)+gridPitch)
}
