package sheet

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Clean makes two texts that look alike equal: Unicode's composed form (NFC), no invisible
// characters, every run of white space (line breaks and no-break spaces too) as one space, none at the ends.
// Marks that compose with nothing, as in ɔ̀, stay.
func Clean(text string) string {
	if cleanASCII(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = out.Len() > 0
		case invisible(r):
		default:
			if space {
				out.WriteByte(' ')
				space = false
			}
			out.WriteRune(r)
		}
	}
	return norm.NFC.String(out.String())
}

func cleanASCII(text string) bool {
	for i := range len(text) {
		b := text[i]
		if b < ' ' || b >= 0x7f || b == ' ' && (i == 0 || i == len(text)-1 || text[i-1] == ' ') {
			return false
		}
	}
	return true
}

// invisible lists what has no shape and no meaning in a name or an address, but makes two of them differ:
// control characters, soft hyphens, zero-width characters and the marks of writing direction.
func invisible(r rune) bool {
	switch {
	case unicode.IsControl(r), r == 0x00AD, r == 0x061C, r == 0x180E, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	}
	return false
}

// blank reports whether a cell shows nothing.
func blank(text string) bool {
	for _, r := range text {
		if !unicode.IsSpace(r) && !invisible(r) {
			return false
		}
	}
	return true
}

var lineBreaks = regexp.MustCompile(`[\r\n]+`)

func joinLines(text string) string {
	return lineBreaks.ReplaceAllLiteralString(text, " ")
}

// A spreadsheet that finds a column too narrow for a long number saves what it shows, 2.23E+10
// (3,36E+10 where the comma is decimal): the other digits are gone.
var shortened = regexp.MustCompile(`^[+-]?\d([.,]\d+)?[Ee]\+\d{1,3}$`)

func shortenedNumber(text string) bool {
	// The plain search first: nearly all cells lack the sign and never reach the pattern.
	if !strings.Contains(text, "E+") && !strings.Contains(text, "e+") {
		return false
	}
	return shortened.MatchString(Clean(text))
}

// startsFormula reports whether a spreadsheet may take a text for a formula, whatever number of
// apostrophes protect it already.
func startsFormula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0
}

// protect puts an apostrophe before a text that a spreadsheet may run.
func protect(text string) string {
	if startsFormula(text) {
		return "'" + text
	}
	return text
}

// unprotect takes off what protect put on, and nothing else: 'Awa keeps its apostrophe, and a text
// that truly begins with '= comes back as it was because protect gave it a second one.
func unprotect(text string) string {
	if strings.HasPrefix(text, "'") && startsFormula(text) {
		return text[1:]
	}
	return text
}
