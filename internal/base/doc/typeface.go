package doc

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"github.com/go-fonts/dejavu/dejavusanscondensed"
	"github.com/go-fonts/dejavu/dejavusanscondensedbold"
	"golang.org/x/text/unicode/norm"
)

// Face is one of the typefaces that are built in.
type Face int

// The faces: DejaVu Sans, which has ŋ, ɔ, ɛ, ɲ and the combining accents.
const (
	Regular Face = iota
	Bold
	Condensed
	CondensedBold
	faces
)

// face is what is known of a typeface, read once a process.
type face struct {
	name   string
	file   []byte   // with all its letters
	narrow []byte   // with the letters of Latin alone: a quarter of the file, and of the time to embed it
	glyphs []uint16 // of each letter; 0: none
	widths []uint16
	tables map[string]int // where they begin in the file
	em     int            // units of the file in one size
}

// thousand is what widths are counted in: thousandths of the size of the type.
const thousand = 1000

var loaded = [faces]func() *face{
	Regular:       sync.OnceValue(func() *face { return loadFace("sans", dejavusans.TTF) }),
	Bold:          sync.OnceValue(func() *face { return loadFace("sansbold", dejavusansbold.TTF) }),
	Condensed:     sync.OnceValue(func() *face { return loadFace("condensed", dejavusanscondensed.TTF) }),
	CondensedBold: sync.OnceValue(func() *face { return loadFace("condensedbold", dejavusanscondensedbold.TTF) }),
}

func loadFace(name string, file []byte) *face {
	f := &face{name: name, file: file, glyphs: make([]uint16, math.MaxUint16+1), widths: make([]uint16, math.MaxUint16+1)}
	f.readLetters()
	f.slim()
	f.narrow = fpdf.UTF8CutFont(f.file, latin())
	return f
}

// latin are the letters that nearly every paper does with.
func latin() string {
	var letters strings.Builder
	for _, block := range [][2]rune{
		{0x20, 0x7E}, {0xA0, 0x24F}, // ASCII, Latin-1, extended A and B
		{0x250, 0x2AF}, {0x2B0, 0x36F}, // phonetic letters (ɔ ɛ ɲ), modifiers, combining accents
		{0x1E00, 0x1EFF},                                                       // extended additional, Vietnamese
		{0x2010, 0x2027}, {0x202F, 0x205E}, {0x20A0, 0x20B5}, {0x2190, 0x2193}, // punctuation, currencies, arrows
	} {
		for r := block[0]; r <= block[1]; r++ {
			letters.WriteRune(r)
		}
	}
	return letters.String()
}

var isLatin = sync.OnceValue(func() []bool {
	set := make([]bool, math.MaxUint16+1)
	for _, r := range latin() {
		set[r] = true
	}
	return set
})

// readLetters reads which letters the file draws, and how wide they are in thousandths of the size.
// It is our own, embedded file: its form is known.
func (f *face) readLetters() {
	f.tables = map[string]int{}
	for i := range f.u16(4) {
		entry := 12 + 16*i
		f.tables[string(f.file[entry:entry+4])] = f.u32(entry + 8)
	}
	f.em = f.u16(f.tables["head"] + 18)
	cmap := f.tables["cmap"]
	for i := range f.u16(cmap + 2) {
		if table := cmap + f.u32(cmap+4+8*i+4); f.u16(table) == 4 {
			f.readCharacterMap(table)
			return
		}
	}
}

func (f *face) u16(at int) int { return int(binary.BigEndian.Uint16(f.file[at:])) }
func (f *face) i16(at int) int { return int(int16(binary.BigEndian.Uint16(f.file[at:]))) }
func (f *face) u32(at int) int { return int(binary.BigEndian.Uint32(f.file[at:])) }

// readCharacterMap walks the segments of a table of format 4.
func (f *face) readCharacterMap(table int) {
	doubled := f.u16(table + 6)
	ends, starts := table+14, table+16+doubled
	deltas, offsets := starts+doubled, starts+2*doubled
	for segment := 0; segment < doubled; segment += 2 {
		offset, first := f.u16(offsets+segment), f.u16(starts+segment)
		for letter := first; letter <= f.u16(ends+segment) && letter < math.MaxUint16; letter++ {
			glyph := letter
			if offset != 0 {
				if glyph = f.u16(offsets + segment + offset + 2*(letter-first)); glyph == 0 {
					continue
				}
			}
			if glyph = (glyph + f.u16(deltas+segment)) & math.MaxUint16; glyph != 0 {
				f.glyphs[letter], f.widths[letter] = uint16(glyph), f.advance(glyph)
			}
		}
	}
}

func (f *face) advance(glyph int) uint16 {
	metrics := f.u16(f.tables["hhea"] + 34)
	units := f.u16(f.tables["hmtx"] + 4*min(glyph, metrics-1))
	return uint16(math.Round(float64(units) * thousand / float64(f.em)))
}

// extent is how far a letter reaches, in thousandths of the size.
type extent struct{ left, bottom, right, top float64 }

// extent is that of one letter; one that leaves no ink has none.
func (f *face) extent(letter rune) (e extent, inked bool) {
	at, end := f.location(int(f.glyphs[letter]))
	if at == end {
		return e, false
	}
	at += f.tables["glyf"]
	scaled := func(at int) float64 { return float64(f.i16(at)) * thousand / float64(f.em) }
	return extent{left: scaled(at + 2), bottom: scaled(at + 4), right: scaled(at + 6), top: scaled(at + 8)}, true
}

// plain are the scripts whose letters stand one after the other, left to right. Others join their
// letters, reorder them or run to the left: drawn letter by letter they would be wrong.
var plain = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Georgian, unicode.Tifinagh, unicode.Common, unicode.Inherited,
}

// Missing are the letters of a text that the typefaces cannot draw as they are written, each once.
func Missing(text string) []rune {
	var missing []rune
	regular, bold := loaded[Regular](), loaded[Bold]()
	seen := map[rune]bool{}
	for _, r := range settle(text) {
		switch {
		case r < 0x250 || seen[r]:
			continue
		case r > math.MaxUint16, regular.glyphs[r] == 0, bold.glyphs[r] == 0, !unicode.In(r, plain...):
			missing, seen[r] = append(missing, r), true
		}
	}
	return missing
}

// Gap stands on paper for letters that the typefaces lack.
const Gap = "[…]"

// Lacking are those of the texts that the typefaces cannot draw whole.
func Lacking(texts ...string) []string {
	var lacking []string
	for _, text := range texts {
		if len(Missing(text)) > 0 {
			lacking = append(lacking, text)
		}
	}
	return lacking
}

// Instead writes a sign in the place of each run of letters that the typefaces lack; the lines of the text stay.
func Instead(text, sign string) string {
	missing := Missing(text)
	if len(missing) == 0 {
		return text
	}
	var out strings.Builder
	run := false
	for _, r := range norm.NFC.String(text) {
		lacking := slices.Contains(missing, r)
		steers := run && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)) // of an emoji that is gone
		if lacking && !run {
			out.WriteString(sign)
		}
		if run = lacking || steers; !run {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// settle gives a text the form in which it is drawn: composed, on one line, without marks that only
// steer a screen.
func settle(text string) string {
	ready := true
	for _, r := range text {
		if r < ' ' || r > 0x24F || r >= 0x7F && r < 0xA0 || r == 0xAD {
			ready = false
			break
		}
	}
	if ready {
		return text
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		}
		return r
	}, text))
}

// fontKey is a font as a document embeds it.
type fontKey struct {
	face  Face
	whole bool
}

// family embeds the font that a text needs, once a document, and gives its name.
func (d *Document) family(f Face, text string) string {
	key := fontKey{face: f, whole: !within(text, isLatin())}
	if name, known := d.fonts[key]; known {
		return name
	}
	from := loaded[f]()
	name, file := from.name, from.narrow
	if key.whole {
		name, file = from.name+"whole", from.file
	}
	d.pdf.AddUTF8FontFromBytes(name, "", file)
	d.fonts[key] = name
	return name
}

func within(text string, set []bool) bool {
	for _, r := range text {
		if r > math.MaxUint16 || !set[r] {
			return false
		}
	}
	return true
}
