package doc

import (
	"errors"
	"fmt"
	"image"
	"strconv"
	"sync"

	"rsc.io/qr/coding"
)

// A code that is read at a door, from a photocopy and in poor light, needs cells of this size and
// the white border that the standard asks for.
const (
	SmallestCell = 0.5 // millimetres
	quietCells   = 4
	pathBytes    = 8 << 10 // about what a code of ours takes
)

var errCodeTooDense = errors.New("the code would be too dense to be read")

// QR is a code that is ready to be drawn.
type QR struct {
	code *coding.Code
}

// plans are the layouts of the versions, made once: all of them cost more than a page of text.
var plans sync.Map

// EncodeQR makes the smallest code that holds the text with 15 % of it to spare (level M).
func EncodeQR(text string) (QR, error) {
	var encoding coding.Encoding = coding.String(text)
	if alphanumeric := coding.Alpha(text); alphanumeric.Check() == nil {
		encoding = alphanumeric
	}
	for version := coding.Version(coding.MinVersion); version <= coding.MaxVersion; version++ {
		if encoding.Bits(version) > version.DataBytes(coding.M)*8 {
			continue
		}
		plan, err := planOf(version)
		if err != nil {
			return QR{}, err
		}
		code, err := plan.Encode(encoding)
		if err != nil {
			return QR{}, fmt.Errorf("encode a QR code: %w", err)
		}
		return QR{code: code}, nil
	}
	return QR{}, fmt.Errorf("encode %d characters: %w", len(text), errCodeTooDense)
}

func planOf(version coding.Version) (*coding.Plan, error) {
	if plan, known := plans.Load(version); known {
		return plan.(*coding.Plan), nil
	}
	plan, err := coding.NewPlan(version, coding.M, 0)
	if err != nil {
		return nil, fmt.Errorf("lay out a QR code: %w", err)
	}
	plans.Store(version, plan)
	return plan, nil
}

// Cells is the number of cells on a side, with the white border.
func (q QR) Cells() int { return q.code.Size + 2*quietCells }

// Size is the number of cells on a side, without it.
func (q QR) Size() int { return q.code.Size }

// Rectangles cover the black cells of the code, counted from its upper left one: the cells of a row
// that touch, as far down as all of them are black. They may overlap.
func (q QR) Rectangles() []image.Rectangle {
	size := q.code.Size
	covered := make([]bool, size*size)
	all := make([]image.Rectangle, 0, size*size/6)
	for row := range size {
		for from := 0; from < size; from++ {
			to, open := from, false
			for ; q.code.Black(to, row); to++ {
				open = open || !covered[row*size+to]
			}
			if open {
				down := row + 1
				for down < size && q.blackRow(from, to, down) {
					down++
				}
				for y := row; y < down; y++ {
					for x := from; x < to; x++ {
						covered[y*size+x] = true
					}
				}
				all = append(all, image.Rect(from, row, to, down))
			}
			from = to
		}
	}
	return all
}

func (q QR) blackRow(from, to, row int) bool {
	for x := from; x < to; x++ {
		if !q.code.Black(x, row) {
			return false
		}
	}
	return true
}

// QR draws the code with its white border in a square of this side. Cells below SmallestCell are
// refused: a code that no door can read is worse than none.
func (d *Document) QR(x, y, side float64, q QR) error {
	cell := side / float64(q.Cells())
	if cell < SmallestCell {
		return fmt.Errorf("draw a QR code with cells of %.2f mm: %w", cell, errCodeTooDense)
	}
	// Cells are counted from the upper left one, which keeps a page of letters small.
	point := 1 / millimetresPerPoint
	path := fmt.Appendf(make([]byte, 0, pathBytes), "q 0 g %.4f 0 0 -%.4f %.2f %.2f cm\n",
		cell*point, cell*point, (x+quietCells*cell)*point, (d.height-y-quietCells*cell)*point)
	for _, r := range q.Rectangles() {
		for _, number := range [4]int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} {
			path = append(strconv.AppendInt(path, int64(number), 10), ' ')
		}
		path = append(path, "re\n"...)
	}
	d.pdf.RawWriteStr(string(append(path, "f Q"...)))
	return nil
}
