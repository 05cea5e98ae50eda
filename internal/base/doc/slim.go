package doc

import (
	"encoding/binary"
	"slices"
)

const glyphHeader = 10 // the number of contours, and the box

// What is said of a part of a composite glyph.
const (
	partInWords = 0x0001
	partScaled  = 0x0008
	moreParts   = 0x0020
	partScaled2 = 0x0040
	partTurned  = 0x0080
	hinted      = 0x0100
)

// slim takes from a file of type what fits letters to the dots of a coarse screen, and its names and licence: more than half of what
// each paper would embed, and no page looks different for it. Whoever opens a letter on a phone pays for each kilobyte.
func (f *face) slim() {
	f.file = slices.Clone(f.file)
	for i := range f.u16(4) {
		entry := 12 + 16*i
		size := f.file[entry+12 : entry+16]
		switch string(f.file[entry : entry+4]) {
		case "cvt ", "fpgm", "prep", "gasp":
			binary.BigEndian.PutUint32(size, 0)
		case "name":
			none := []byte{0, 0, 0, 0, 0, 6}
			copy(f.file[f.u32(entry+8):], none)
			binary.BigEndian.PutUint32(size, uint32(len(none)))
		}
	}
	// Each outline moves up to where the one before it ends now.
	glyf, loca, to := f.tables["glyf"], f.tables["loca"], 0
	glyphs := f.u16(f.tables["maxp"] + 4)
	for glyph := range glyphs {
		at, end := f.location(glyph)
		binary.BigEndian.PutUint32(f.file[loca+4*glyph:], uint32(to))
		if at == end {
			continue
		}
		hints, rest := f.dropHints(glyf + at)
		to += copy(f.file[glyf+to:], f.file[glyf+at:hints])
		if rest > 0 {
			to += copy(f.file[glyf+to:], f.file[rest:glyf+end])
		}
	}
	binary.BigEndian.PutUint32(f.file[loca+4*glyphs:], uint32(to))
}

// location is where the outline of a glyph lies, from the beginning of all outlines. Nothing lies there for one without ink.
func (f *face) location(glyph int) (at, end int) {
	loca := f.tables["loca"]
	return f.u32(loca + 4*glyph), f.u32(loca + 4*glyph + 4)
}

// dropHints says of the outline at a place that it has no instructions, and tells where they begin, and where what follows them
// does; 0: nothing follows.
func (f *face) dropHints(at int) (hints, rest int) {
	if contours := f.i16(at); contours >= 0 {
		count := at + glyphHeader + 2*contours
		rest = count + 2 + f.u16(count)
		binary.BigEndian.PutUint16(f.file[count:], 0)
		return count + 2, rest
	}
	for part, more := at+glyphHeader, true; more; {
		said := f.u16(part)
		binary.BigEndian.PutUint16(f.file[part:], uint16(said&^hinted))
		part += 6
		if said&partInWords != 0 {
			part += 2
		}
		switch {
		case said&partScaled != 0:
			part += 2
		case said&partScaled2 != 0:
			part += 4
		case said&partTurned != 0:
			part += 8
		}
		more, hints = said&moreParts != 0, part
	}
	return hints, 0
}
