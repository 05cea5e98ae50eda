package doc

import (
	"math"
	"strings"
	"unicode"
)

// Color is one of a page; the zero value is black.
type Color struct{ R, G, B uint8 }

// Align is where a line stands.
type Align int

// The alignments.
const (
	Left Align = iota
	Centre
	Right
)

// Style is how a text looks.
type Style struct {
	Face    Face
	Size    float64 // points
	Color   Color
	Align   Align
	Leading float64 // height of a line in sizes; 0: 1.25
}

const (
	defaultLeading = 1.25
	capHeight      = 0.729 // of the faces, in sizes
	shrinkStep     = 0.25  // points
)

// LineHeight is that of one line, in millimetres.
func (s Style) LineHeight() float64 {
	leading := s.Leading
	if leading == 0 {
		leading = defaultLeading
	}
	return s.Size * leading * millimetresPerPoint
}

// TextWidth is the width of a text on one line, in millimetres.
func TextWidth(text string, s Style) float64 {
	return float64(units(settle(text), s.Face)) * s.Size * millimetresPerPoint / thousand
}

func units(text string, f Face) int {
	widths, sum := loaded[f]().widths, 0
	for _, r := range text {
		if r <= math.MaxUint16 {
			sum += int(widths[r])
		}
	}
	return sum
}

// Text draws one line with its baseline at y. It begins, is centred or ends at x as the style says. Letters that the typefaces
// lack are a Gap: whoever must not lose any asks Lacking before.
func (d *Document) Text(x, y float64, text string, s Style) {
	if text = settle(Instead(text, Gap)); text == "" {
		return
	}
	if s.Align != Left {
		width := TextWidth(text, s)
		if s.Align == Centre {
			width /= 2
		}
		x -= width
	}
	if now := (inUse{page: d.Page(), family: d.family(s.Face, text), size: s.Size}); now != d.current {
		d.pdf.SetFont(now.family, "", now.size)
		d.current = now
	}
	d.paint(s.Color)
	if !accented(text) {
		d.pdf.Text(x, y, text)
		return
	}
	d.accents(x, y, text, s)
}

// paint makes texts that follow have a colour. The library wraps each text in its colour unless that is the
// colour of areas too: both are set, once for as many texts as there are.
func (d *Document) paint(c Color) {
	if d.painted != nil && *d.painted == c {
		return
	}
	d.pdf.SetTextColor(int(c.R), int(c.G), int(c.B))
	d.pdf.SetFillColor(int(c.R), int(c.G), int(c.B))
	d.painted = &c
}

// Block is a text that was made to fit a width.
type Block struct {
	Lines  []string
	Style  Style
	broken bool // a word had to be broken
}

// Height of the block, in millimetres.
func (b Block) Height() float64 { return float64(len(b.Lines)) * b.Style.LineHeight() }

// Wrap breaks a text into the lines that fit the width; a line end in the text is one on the paper.
func Wrap(text string, width float64, s Style) Block {
	b := Block{Style: s}
	room := int(width / (s.Size * millimetresPerPoint) * thousand)
	for _, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		lines, broken := wrapLine(settle(line), room, s.Face)
		b.Lines, b.broken = append(b.Lines, lines...), b.broken || broken
	}
	return b
}

// Fit makes a text fit the width in this many lines: it shrinks the type down to the smallest size,
// and then takes more lines. Nothing is ever cut.
func Fit(text string, width float64, lines int, smallest float64, s Style) Block {
	for {
		if b := Wrap(text, width, s); len(b.Lines) <= lines && !b.broken || s.Size <= smallest {
			return b
		}
		if lines == 1 { // where one line must do, its size is known at once
			if wanted := s.Size * width / TextWidth(text, s); wanted < s.Size {
				s.Size = max(smallest, math.Floor(wanted/shrinkStep)*shrinkStep)
				continue
			}
		}
		s.Size = max(smallest, s.Size-shrinkStep)
	}
}

// wrapLine breaks one line where it may be broken, and a word that is wider than the room anywhere
// but before a combining accent.
func wrapLine(line string, room int, f Face) (lines []string, broken bool) {
	if units(line, f) <= room {
		return []string{line}, false
	}
	current, width := "", 0
	for _, piece := range pieces(line) {
		w := units(strings.TrimRight(piece, " "), f)
		if current != "" && width+w > room {
			lines = append(lines, strings.TrimRight(current, " "))
			current, width = "", 0
		}
		for w > room {
			head, tail := breakWord(piece, room, f)
			if tail == "" {
				break
			}
			lines, broken = append(lines, head), true
			piece, w = tail, units(strings.TrimRight(tail, " "), f)
		}
		current += piece
		width += units(piece, f)
	}
	return append(lines, strings.TrimRight(current, " ")), broken
}

// pieces cuts a line after the spaces and hyphens at which it may be broken.
func pieces(line string) []string {
	var all []string
	start, letters := 0, []rune(line)
	for i, r := range letters {
		last := i+1 == len(letters)
		if last || (r == ' ' || r == '-' || r == '\u2010' || r == '\u2013') && letters[i+1] != ' ' {
			all = append(all, string(letters[start:i+1]))
			start = i + 1
		}
	}
	return all
}

// breakWord gives as much of a word as fits, at least one letter with its accents, and the rest.
func breakWord(word string, room int, f Face) (head, tail string) {
	width, cut := 0, 0
	for i, r := range word {
		w := units(string(r), f)
		if !unicode.Is(unicode.M, r) {
			if width+w > room && cut > 0 {
				return word[:i], word[i:]
			}
			cut++
		}
		width += w
	}
	return word, ""
}

// Block draws the lines with their top at y, in a column that begins at x, and tells where they end.
func (d *Document) Block(x, y, width float64, b Block) (bottom float64) {
	switch b.Style.Align {
	case Centre:
		x += width / 2
	case Right:
		x += width
	case Left:
	}
	height, size := b.Style.LineHeight(), b.Style.Size*millimetresPerPoint
	for _, line := range b.Lines {
		d.Text(x, y+height/2+capHeight*size/2, line, b.Style)
		y += height
	}
	return y
}

// Paragraph wraps a text into a column and draws it; it tells where it ends.
func (d *Document) Paragraph(x, y, width float64, text string, s Style) (bottom float64) {
	return d.Block(x, y, width, Wrap(text, width, s))
}

// Box draws a rectangle with round corners; a nil fill or line is left out.
func (d *Document) Box(x, y, width, height, radius float64, fill, line *Color) {
	style := ""
	if fill != nil {
		d.pdf.SetFillColor(int(fill.R), int(fill.G), int(fill.B))
		style, d.painted = "F", nil
	}
	if line != nil {
		d.pdf.SetDrawColor(int(line.R), int(line.G), int(line.B))
		d.pdf.SetLineWidth(hairline)
		style += "D"
	}
	switch {
	case style == "":
	case radius == 0:
		d.pdf.Rect(x, y, width, height, style)
	default:
		d.pdf.RoundedRect(x, y, width, height, radius, "1234", style)
	}
}

const hairline = 0.2

// Rule draws a line.
func (d *Document) Rule(x1, y1, x2, y2, thickness float64, c Color) {
	d.pdf.SetDrawColor(int(c.R), int(c.G), int(c.B))
	d.pdf.SetLineWidth(thickness)
	d.pdf.Line(x1, y1, x2, y2)
}
