package sms

import (
	"strings"
	"unicode/utf16"
)

// Encoding is the alphabet that a text needs.
type Encoding string

// The encodings.
const (
	GSM7 Encoding = "gsm7" // every letter is of GSM 03.38; those of its second table count twice
	UCS2 Encoding = "ucs2" // UTF-16
)

// Size is what a text costs: gateways charge each part.
type Size struct {
	Encoding Encoding
	Units    int // septets, or UTF-16 units
	Parts    int
}

// Units that a message holds: alone, and as one of several, where each begins with a header.
const (
	gsm7Alone, gsm7Part = 160, 153
	ucs2Alone, ucs2Part = 70, 67
)

// The tables of GSM 03.38. The second one is reached by an escape, which is a unit of its own.
const (
	gsm7Basic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsm7Second = "\f^{}\\[~]|€"
)

// Count says how a text is encoded and split. Nothing is taken out of it or replaced.
func Count(text string) Size {
	if widths, ok := gsm7Widths(text); ok {
		return size(GSM7, widths, gsm7Alone, gsm7Part)
	}
	var widths []int
	for _, r := range text {
		widths = append(widths, max(1, utf16.RuneLen(r))) // -1: no letter, sent as U+FFFD
	}
	return size(UCS2, widths, ucs2Alone, ucs2Part)
}

func gsm7Widths(text string) ([]int, bool) {
	widths := make([]int, 0, len(text))
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsm7Basic, r):
			widths = append(widths, 1)
		case strings.ContainsRune(gsm7Second, r):
			widths = append(widths, 2)
		default:
			return nil, false
		}
	}
	return widths, true
}

// size splits as a telephone network does: a letter of two units is never torn, so that a part may
// end one unit early.
func size(encoding Encoding, widths []int, alone, part int) Size {
	s := Size{Encoding: encoding}
	for _, width := range widths {
		s.Units += width
	}
	if s.Units <= alone {
		s.Parts = min(1, s.Units)
		return s
	}
	s.Parts = 1
	free := part
	for _, width := range widths {
		if width > free {
			s.Parts++
			free = part
		}
		free -= width
	}
	return s
}
