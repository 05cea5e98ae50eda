package sheet

import (
	"regexp"
	"strings"
)

// The months as French, English and Spanish people and their spreadsheets write them, without accents and points.
var monthNames = func() map[string]int {
	names := map[string]int{}
	for i, month := range []string{
		"janvier janv jan january enero ene", "fevrier fevr fev february feb febrero", "mars mar march marzo", "avril avr april apr abril abr",
		"mai may mayo", "juin jun june junio", "juillet juil jul july julio", "aout aug august agosto ago",
		"septembre sept sep september septiembre setiembre set", "octobre oct october octubre", "novembre nov november noviembre",
		"decembre dec december diciembre dic", //nolint:misspell // French, without its accent
	} {
		for _, name := range strings.Fields(month) {
			names[name] = i + 1
		}
	}
	return names
}()

var (
	weekday    = `(?:[a-z]{3,9}\.?,? )?` // whatever it says: the date counts
	dayMonth   = regexp.MustCompile(`^` + weekday + `(\d{1,2})(?:er|st|nd|rd|th|º|ª|\.)?(?: de | of |[- /.])([a-z]{3,10})\.?(?: de | del |, |[- /.])(\d{2}|\d{4})(?:(?: a las | a | at |, | )(.+))?$`)
	monthDay   = regexp.MustCompile(`^` + weekday + `([a-z]{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{2}|\d{4})(?:(?: at |, | )(.+))?$`)
	plainNames = strings.NewReplacer("é", "e", "û", "u", "è", "e", "á", "a", "à", "a", "ó", "o", "í", "i")
)

// readNamed reads a date whose month is named, which says itself which part is which.
func readNamed(text string) (written writtenDate, ok bool) {
	plain := plainNames.Replace(strings.ToLower(text))
	m := dayMonth.FindStringSubmatch(plain)
	if m == nil {
		if m = monthDay.FindStringSubmatch(plain); m == nil {
			return written, false
		}
		m[1], m[2] = m[2], m[1]
	}
	month, known := monthNames[m[2]]
	if !known {
		return written, false
	}
	return writtenDate{text: text, yearFirst: true, year: number(m[3]), first: month, second: number(m[1]), clock: m[4], shortYear: len(m[3]) == 2}, true
}
