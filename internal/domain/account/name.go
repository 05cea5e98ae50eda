package account

import (
	"unicode/utf8"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

const mostName = 200 // characters, as in the files that are imported

// OneLine is the rule for the words that an organisation gives to things and people, typed or from a file: one line
// without signs that nobody sees. They go into the heads of messages, onto paper and into lists, where a line break
// begins something else and a control character does not print.
func OneLine(text string) string { return sheet.Clean(text) }

// ReadName brings a name into the form in which it is kept, which may be empty, and refuses one that no paper holds.
func ReadName(text string) (string, error) {
	name := OneLine(text)
	if utf8.RuneCountInString(name) > mostName {
		return name, problem.Invalid("name_too_long", problem.Facts{"name": string([]rune(name)[:20]) + "…", "most": mostName})
	}
	return name, nil
}
