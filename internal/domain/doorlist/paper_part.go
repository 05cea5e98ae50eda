package doorlist

import (
	"slices"

	"usher/internal/base/doc"
)

// part is one of the lists on a paper.
type part struct {
	title   string
	order   Order
	columns []column
	least   float64 // height of a row
	rows    []row
}

// column is one of a part: its title, its width in millimetres, and how it is drawn for a person.
type column struct {
	title string
	width float64
	cell  func(pen *paper, p Person, width float64) cell
}

// cell is what stands in a column for a person: blocks one below the other, or a square to be ticked.
type cell struct {
	blocks []doc.Block
	square bool
}

func (c cell) height() (height float64) {
	for _, b := range c.blocks {
		height += b.Height()
	}
	return height
}

// row is a person's, or what did not fit into the row before.
type row struct {
	cells  []cell
	height float64
	key    string // what the head of the page names it by
	marked bool   // it is not as it was in the version before
}

// parts are the lists that the order asks for.
func (pen *paper) parts(order Order) []part {
	door := pen.p.noSeats()
	seat, reference := column{"doorlist_seat", 20, seatCell}, column{"doorlist_reference_and_letter", 25, referenceCell}
	needs, identity := column{"doorlist_needs", 27, needsCell}, column{"doorlist_identity", 20, squareCell}
	name, signature := column{"doorlist_name", 57, nameCell}, column{"doorlist_signature", 39, emptyCell}
	bySeat := part{
		title: "doorlist_sign", order: BySeat, least: signRow,
		columns: []column{seat, name, reference, needs, identity, signature},
	}
	byName := part{
		title: "doorlist_sign_by_name", order: ByName, least: signRow,
		columns: []column{name, seat, reference, needs, identity, signature},
	}
	find := part{
		title: "doorlist_find", order: ByName, least: findRow,
		columns: []column{{"doorlist_name", 92, lineCell}, seat, {"doorlist_reference_and_letter", 34, referenceCell}, {"doorlist_needs", 42, needsCell}},
	}
	switch {
	case order == ByName, order == Both && door:
		return []part{byName}
	case order == BySeat:
		return []part{bySeat}
	}
	return []part{bySeat, find}
}

// noSeats tells whether nobody has a seat yet: then there is no order of seats.
func (p Printed) noSeats() bool {
	for _, person := range p.Content.People {
		if person.Seat != "" {
			return false
		}
	}
	return true
}

func seatCell(pen *paper, p Person, width float64) cell {
	return fitted(pen, p.Seat, width, smallestName, doc.Style{Face: doc.Bold, Size: seatSize, Align: doc.Centre})
}

// nameCell is the family name above the given one, both as they were written: capitals would lose how.
func nameCell(pen *paper, p Person, width float64) cell {
	family := fitted(pen, p.FamilyName, width, smallestName, doc.Style{Face: doc.Bold, Size: nameSize, Leading: 1.15})
	given := fitted(pen, p.GivenName, width, smallestName, doc.Style{Size: nameSize, Leading: 1.15})
	return cell{blocks: slices.Concat(family.blocks, given.blocks, bornCell(pen, p, width).blocks)}
}

// bornCell tells those apart whose names are alike.
func bornCell(pen *paper, p Person, width float64) cell {
	return fitted(pen, p.born(pen.voice), width, smallestPlain, doc.Style{Size: smallSize})
}

// lineCell is the whole name on one line where it fits.
func lineCell(pen *paper, p Person, width float64) cell {
	name := fitted(pen, p.Name(), width, smallestName, doc.Style{Face: doc.Bold, Size: nameSize, Leading: 1.15})
	return cell{blocks: append(name.blocks, bornCell(pen, p, width).blocks...)}
}

// referenceCell is the file number above the number of the letter.
func referenceCell(pen *paper, p Person, width float64) cell {
	reference := fitted(pen, p.Reference, width, smallestPlain, doc.Style{Size: plainSize})
	number := fitted(pen, p.Letter, width, smallestPlain, doc.Style{Size: smallSize, Color: faint})
	return cell{blocks: append(reference.blocks, number.blocks...)}
}

func needsCell(pen *paper, p Person, width float64) cell {
	return fitted(pen, p.needs(pen.voice), width, smallestPlain, doc.Style{Face: doc.Bold, Size: smallSize})
}

func squareCell(*paper, Person, float64) cell { return cell{square: true} }
func emptyCell(*paper, Person, float64) cell  { return cell{} }

// fitted makes a text fit a column; what the paper cannot show leaves room for handwriting.
func fitted(pen *paper, text string, width, smallest float64, style doc.Style) cell {
	if text == "" {
		return cell{}
	}
	if len(doc.Missing(text)) > 0 {
		small := doc.Style{Size: smallestPlain, Color: faint, Align: style.Align}
		block := doc.Wrap(pen.say("doorlist_by_hand"), width-2*cellPad, small)
		block.Lines = append(make([]string, spaceForByHand), block.Lines...)
		return cell{blocks: []doc.Block{block}}
	}
	return cell{blocks: []doc.Block{doc.Fit(text, width-2*cellPad, 1, smallest, style)}}
}

// lay makes the rows of a part.
func (pen *paper) lay(p *part) {
	changed := pen.p.Changes.people()
	for _, person := range pen.p.Content.In(p.order) {
		cells := make([]cell, len(p.columns))
		for i, c := range p.columns {
			cells[i] = c.cell(pen, person, c.width)
		}
		key := short(pen.drawable(person.Name())) // many share a family name
		if p.order == BySeat {
			key = short(pen.drawable(seatOf(pen.voice, person.Seat)))
		}
		for more := true; more; {
			now, rest, left := split(cells)
			p.rows = append(p.rows, row{cells: now, height: max(p.least, tallest(now)+cellPad), key: key, marked: changed[person.CandidateID]})
			cells, more = rest, left
		}
	}
}

// mostKey bounds what the head of a page shows of a name, in letters: it only points, and the rows have the
// whole names.
const mostKey = 24

func short(name string) string {
	if letters := []rune(name); len(letters) > mostKey {
		return string(letters[:mostKey]) + "…"
	}
	return name
}

func tallest(cells []cell) (height float64) {
	for _, c := range cells {
		height = max(height, c.height())
	}
	return height
}

// split takes as much of the cells as one row holds: a name without end must not run off the page.
func split(cells []cell) (now, rest []cell, left bool) {
	now, rest = make([]cell, len(cells)), make([]cell, len(cells))
	for i, c := range cells {
		now[i].square = c.square
		height := 0.0
		for _, b := range c.blocks {
			fits := max(0, min(len(b.Lines), int((tallestRow-height)/b.Style.LineHeight())))
			height += float64(fits) * b.Style.LineHeight()
			if fits > 0 {
				now[i].blocks = append(now[i].blocks, doc.Block{Lines: b.Lines[:fits], Style: b.Style})
			}
			if fits < len(b.Lines) {
				height, left = tallestRow, true
				rest[i].blocks = append(rest[i].blocks, doc.Block{Lines: b.Lines[fits:], Style: b.Style})
			}
		}
	}
	return now, rest, left
}

// draw draws a part page by page: what it is and from whom to whom, the titles, the rows; at the end how many
// people it holds, so that a lost page is noticed.
func (pen *paper) draw(p part) {
	pen.lay(&p)
	d := pen.d
	for rows := p.rows; len(rows) > 0; {
		n := fitting(rows, d.Bottom()-d.Y()-partLine-titlesRow)
		if n == 0 {
			d.AddPage()
			continue
		}
		pen.partLine(p, rows[0].key, rows[n-1].key)
		pen.titles(p)
		for i, r := range rows[:n] {
			pen.row(p, r, (len(p.rows)-len(rows)+i)%2 == 1)
		}
		if rows = rows[n:]; len(rows) > 0 {
			d.AddPage()
		}
	}
	end := pen.voice.Say("doorlist_end", map[string]any{"people": pen.p.peopleIn(pen.voice)})
	d.Block(d.Margin(), d.Y()+cellPad, d.Inner(), doc.Wrap(end, d.Inner(), doc.Style{Face: doc.Bold, Size: plainSize}))
	d.SetY(d.Y() + endLine)
}

// fitting is how many rows fit the room, the last of all with the line that ends the part. Rows are lower than a
// page, so that one always fits an empty one.
func fitting(rows []row, room float64) int {
	used := 0.0
	for i, r := range rows {
		used += r.height
		if i+1 == len(rows) {
			used += endLine
		}
		if used > room {
			return i
		}
	}
	return len(rows)
}

func (pen *paper) partLine(p part, from, to string) {
	d := pen.d
	style := doc.Style{Face: doc.Bold, Size: nameSize}
	spread := from
	if from != to {
		spread = pen.voice.Say("doorlist_range", map[string]any{"from": from, "to": to})
	}
	half := d.Inner() / 2
	d.Block(d.Margin(), d.Y(), half, doc.Fit(pen.say(p.title), half, 1, smallestPlain, style))
	style.Align = doc.Right
	d.Block(d.Margin()+half, d.Y(), half, doc.Fit(spread, half, 1, smallestPlain, style))
	d.SetY(d.Y() + partLine)
}

func (pen *paper) titles(p part) {
	d, x, y := pen.d, pen.d.Margin(), pen.d.Y()
	d.Box(x, y, d.Inner(), titlesRow, 0, &titling, nil)
	for _, c := range p.columns {
		block := pen.title(c)
		d.Block(x+cellPad, y+(titlesRow-block.Height())/2, c.width-2*cellPad, block)
		x += c.width
	}
	pen.frame(p, y, titlesRow)
}

// title is what stands above a column, on two lines at most and with every word whole.
func (pen *paper) title(c column) doc.Block {
	return doc.Fit(pen.say(c.title), c.width-2*cellPad, 2, smallestTitle, doc.Style{Face: doc.Bold, Size: smallSize})
}

func (pen *paper) row(p part, r row, shaded bool) {
	d, x, y := pen.d, pen.d.Margin(), pen.d.Y()
	if shaded {
		d.Box(x, y, d.Inner(), r.height, 0, &shade, nil)
	}
	for i, c := range p.columns {
		top := y + (r.height-r.cells[i].height())/2
		for _, block := range r.cells[i].blocks {
			top = d.Block(x+cellPad, top, c.width-2*cellPad, block)
		}
		if r.cells[i].square {
			white := doc.Color{R: 255, G: 255, B: 255}
			d.Box(x+(c.width-tick)/2, y+(r.height-tick)/2, tick, tick, 0, &white, &ink)
		}
		x += c.width
	}
	pen.frame(p, y, r.height)
	if r.marked {
		d.Rule(d.Margin(), y, d.Margin(), y+r.height, markWidth, ink)
	}
}

// frame draws the lines around the cells of a row and goes below it.
func (pen *paper) frame(p part, y, height float64) {
	d, x := pen.d, pen.d.Margin()
	d.Rule(x, y, x+d.Inner(), y, hair, lines)
	d.Rule(x, y+height, x+d.Inner(), y+height, hair, lines)
	d.Rule(x, y, x, y+height, hair, lines)
	for _, c := range p.columns {
		x += c.width
		d.Rule(x, y, x, y+height, hair, lines)
	}
	d.SetY(y + height)
}
