package doc

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostFileName bounds a title in a file name, in bytes: four of them and a few words are shorter than the 255 that
// systems take.
const mostFileName = 60

// FileName makes of a title a part of a file's name that every system takes: letters, digits and points stay, and what
// stands between them becomes a hyphen.
func FileName(title string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), r == '.':
			return r
		}
		return '-'
	}, title)
	kept = strings.Join(strings.FieldsFunc(kept, func(r rune) bool { return r == '-' }), "-")
	for len(kept) > mostFileName {
		_, last := utf8.DecodeLastRuneInString(kept)
		kept = kept[:len(kept)-last]
	}
	return strings.Trim(kept, "-.")
}
