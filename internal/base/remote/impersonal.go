package remote

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gap stands where something personal was said.
const gap = "…"

// What is personal whoever it belongs to. The codes with which a reply says what is the matter are kept,
// though they are digits too; of other digits six are a telephone number.
var (
	addresses = regexp.MustCompile(`(?i)"[^"]*"@\S*|\S*(?:@|＠|%40|&#64;|[(\[{]\s?at\s?[)\]}])\s?\S*|\S+ at \S+\.\pL{2,}\S*|\S+=\S+\.\pL{2,}\S*`)
	numbers   = regexp.MustCompile(`^\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3})?\b|\b[245]\d\d[ -][245]\.\d{1,3}\.\d{1,3}\b|[+(]{0,2}\p{Nd}(?:[\s ()./-]{0,3}\p{Nd}){5,}`)
	codes     = regexp.MustCompile(`^(?:\d{3})?(?:[ -]?[245]\.\d{1,3}\.\d{1,3})?$`)
)

// shortestWord is how many letters a word of a name has at least that is taken out: shorter ones are words
// of every language.
const shortestWord = 3

// Impersonal is what another machine said when it was handed something of one person, fit for others'
// eyes: without addresses and telephone numbers in the forms that servers use, and without what belongs
// to that person (their address, their name). What is cut is cut too much rather than too little; the
// whole words stay with the person.
func Impersonal(said string, belongings ...string) string {
	said = Words(said)
	for _, own := range belongings {
		said = without(said, OneLine(own))
	}
	said = addresses.ReplaceAllString(said, gap)
	return Words(numbers.ReplaceAllStringFunc(said, func(digits string) string {
		if codes.MatchString(digits) {
			return digits
		}
		return gap
	}))
}

// without takes a text out, whole and then by its words.
func without(said, own string) string {
	said = replaceWord(said, own)
	if local, _, isAddress := strings.Cut(own, "@"); isAddress { // its domain alone belongs to many
		return replaceWord(said, local)
	}
	for word := range strings.FieldsFuncSeq(own, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
		if utf8.RuneCountInString(word) >= shortestWord {
			said = replaceWord(said, word)
		}
	}
	return said
}

// replaceWord puts a gap in the place of a word, in whichever case, that stands for itself.
func replaceWord(said, word string) string {
	times := 0
	if word != "" {
		times = strings.Count(strings.ToLower(said), strings.ToLower(word))
	}
	if times == 0 { // most often; the expression below is costly to make
		return said
	}
	// Go's \b knows only the letters of ASCII.
	found := regexp.MustCompile(`(?i)(^|[^\pL\p{Nd}])` + regexp.QuoteMeta(word) + `($|[^\pL\p{Nd}])`)
	for range times { // neighbours share what is between them
		said = found.ReplaceAllString(said, "${1}"+gap+"${2}")
	}
	return said
}
