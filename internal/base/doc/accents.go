package doc

import (
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The classes of combining marks, as Unicode numbers them.
const (
	classOverlay = 1
	classBelow   = 220
	classAbove   = 230
)

// accentGap is kept between a letter and its accent, in thousandths of the size.
const accentGap = 50

// accented tells whether a text in composed form still has combining marks: letters that exist
// only as a letter and an accent.
func accented(text string) bool {
	for _, r := range text {
		if r >= 0x300 && unicode.Is(unicode.Mn, r) {
			return true
		}
	}
	return false
}

// accents draws such a text. In the typeface an accent stands where it fits a small letter: here it
// is put over the middle of its letter and above (or below) its ink, so that the line of M̄ does not
// run through the M. Whoever reads the text of the page still finds the accent in its old place,
// right after its letter, where it is not seen; the one that is seen counts as no text.
func (d *Document) accents(x, y float64, text string, s Style) {
	face, unit := loaded[s.Face](), s.Size*millimetresPerPoint/thousand
	var moved []movedAccent
	var run strings.Builder
	var base extent // of the letter whose accents follow, with those that it already has
	at, runAt, origin, inked := 0.0, 0.0, 0.0, false
	flush := func() {
		if run.Len() > 0 {
			d.pdf.Text(x+runAt*unit, y, run.String())
			run.Reset()
		}
		runAt = at
	}
	for _, r := range text {
		if unicode.Is(unicode.Mn, r) && inked {
			if accent, isMoved := move(&base, origin, at, r, face); isMoved {
				flush()
				d.unseen(x+at*unit, y, r)
				moved = append(moved, accent)
				continue
			}
		} else {
			origin = at
			base, inked = face.extent(r)
		}
		run.WriteRune(r)
		at += float64(face.widths[r])
	}
	flush()
	for _, accent := range moved {
		d.pdf.RawWriteStr("/Span <</ActualText <FEFF>>> BDC")
		d.pdf.Text(x+accent.x*unit, y-accent.y*unit, string(accent.letter))
		d.pdf.RawWriteStr("EMC")
	}
}

type movedAccent struct {
	letter rune
	x, y   float64 // thousandths from the beginning of the line
}

// noticeable is by how much an accent must be out of place before it is moved, in thousandths.
const noticeable = 40

func move(base *extent, origin, at float64, mark rune, f *face) (movedAccent, bool) {
	ink, inked := f.extent(mark)
	if !inked {
		return movedAccent{}, false
	}
	dx, dy := place(base, ink, norm.NFC.PropertiesString(string(mark)).CCC())
	to := movedAccent{letter: mark, x: origin + dx, y: dy}
	return to, math.Abs(to.x-at) > noticeable || math.Abs(dy) > noticeable
}

// unseen puts a letter into the text of the page that leaves no ink.
func (d *Document) unseen(x, y float64, letter rune) {
	d.pdf.SetTextRenderingMode(unseenMode)
	d.pdf.Text(x, y, string(letter))
	d.pdf.SetTextRenderingMode(0)
}

const unseenMode = 3

// place tells by how much a mark is moved to sit on its letter, and makes it a part of the letter.
func place(base *extent, mark extent, class uint8) (dx, dy float64) {
	dx = (base.left+base.right)/2 - (mark.left+mark.right)/2
	switch class {
	case classAbove:
		dy = max(0, base.top+accentGap-mark.bottom)
		base.top = mark.top + dy
	case classBelow:
		dy = min(0, base.bottom-accentGap-mark.top)
		base.bottom = mark.bottom + dy
	case classOverlay:
		dy = (base.bottom+base.top)/2 - (mark.bottom+mark.top)/2
	}
	return dx, dy
}
