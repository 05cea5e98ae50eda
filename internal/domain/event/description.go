package event

import (
	"strings"
	"unicode/utf8"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// readDescription keeps the lines of a description, and of each what is seen.
func readDescription(text string) (string, error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = sheet.Clean(line)
	}
	text = strings.TrimSpace(strings.Join(lines, "\n"))
	if utf8.RuneCountInString(text) > mostDescribed {
		return text, problem.Invalid("event_description_long", problem.Facts{"most": mostDescribed})
	}
	return text, nil
}
