package sheet

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// dateSystem is the day from which a workbook counts its dates.
type dateSystem int

const (
	since1900 dateSystem = iota
	since1904            // old Macintosh workbooks
)

// at turns a date's number into its time, rounded to the second.
func (d dateSystem) at(serial float64) time.Time {
	day := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case d == since1904:
		day = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case serial < 60:
		// Spreadsheets count a 29 February 1900 that never was.
		day = day.AddDate(0, 0, 1)
	}
	whole, fraction := math.Modf(serial)
	return day.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(fraction*24*60*60)) * time.Second)
}

// maxSerial is 31 December 9999.
const maxSerial = 2_958_465

// numberFormat is what matters of the number format of a cell.
type numberFormat struct {
	hasDate bool
	hasTime bool
	digits  string // a format that fills with zeros: its signs, literals without their quotes

	shortens bool // to digits and a power of ten, as in 2.23E+10
	group    int  // powers go by so many: 3 for 22.3E+9
	decimals int  // that are displayed
}

// readNumberFormat understands a format by its number, or by its code if the workbook defines one.
func readNumberFormat(id int, code string) numberFormat {
	if code == "" {
		switch {
		case id >= 14 && id <= 17, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 58:
			return numberFormat{hasDate: true}
		case id >= 18 && id <= 21, id >= 32 && id <= 35, id >= 45 && id <= 47:
			return numberFormat{hasTime: true}
		case id == 22:
			return numberFormat{hasDate: true, hasTime: true}
		case id == 11: // 0.00E+00
			return numberFormat{shortens: true, group: 1, decimals: 2}
		case id == 48: // ##0.0E+0
			return numberFormat{shortens: true, group: 3, decimals: 1}
		}
		return numberFormat{}
	}
	if strings.EqualFold(code, "General") {
		return numberFormat{}
	}
	signs := formatSigns(code)
	format := numberFormat{}
	for _, sign := range signs {
		if sign.literal {
			continue
		}
		switch sign.char {
		case 'y', 'Y', 'd', 'D':
			format.hasDate = true
		case 'h', 'H', 's', 'S':
			format.hasTime = true
		}
	}
	if !format.hasTime && !format.hasDate {
		// A lone m is a month; beside hours it is minutes.
		format.hasDate = containsSign(signs, "mM")
	}
	if !format.hasDate && !format.hasTime {
		format.digits = fillingPattern(signs)
		format.readPower(signs)
	}
	return format
}

// readPower understands a format that displays powers of ten, by the places before and behind its decimal point.
func (f *numberFormat) readPower(signs []formatSign) {
	places := [2]int{}
	side := 0
	for _, sign := range signs {
		switch {
		case sign.literal:
		case sign.char == 'E' || sign.char == 'e':
			f.shortens, f.group, f.decimals = true, max(places[0], 1), places[1]
			return
		case sign.char == '.':
			side = 1
		case strings.ContainsRune("0#?", sign.char):
			places[side]++
		}
	}
}

// displaysAll reports whether a whole number holds no more than its shortened display, where that leaves out its
// last digits: what was entered as 2.23E+10 is all that is left of some number. Any other digit behind those that are
// displayed proves that the number is in full.
func (f numberFormat) displaysAll(digits string) bool {
	if !f.shortens {
		return false
	}
	power := len(digits) - 1
	hidden := power - power%f.group - f.decimals // digits at the end
	return hidden > 0 && strings.TrimRight(digits[len(digits)-min(hidden, len(digits)):], "0") == ""
}

type formatSign struct {
	char    rune
	literal bool
}

// formatSigns cuts the first section of a format code (the one for positive numbers) into signs. Colours, languages and
// conditions in brackets go; elapsed hours such as [h] stay.
func formatSigns(code string) []formatSign {
	var signs []formatSign
	quoted, escaped, skipped := false, false, false
	bracket := ""
	inBracket := false
	for _, r := range code {
		switch {
		case escaped:
			signs, escaped = append(signs, formatSign{r, true}), false
		case skipped: // the width of a sign, or a sign to fill with
			skipped = false
		case inBracket:
			if r != ']' {
				bracket += string(r)
				continue
			}
			inBracket = false
			if strings.Trim(strings.ToLower(bracket), "hms") == "" {
				signs = append(signs, formatSign{'h', false})
			}
		case r == '"':
			quoted = !quoted
		case quoted:
			signs = append(signs, formatSign{r, true})
		case r == '\\':
			escaped = true
		case r == '_' || r == '*':
			skipped = true
		case r == '[':
			inBracket, bracket = true, ""
		case r == ';':
			return signs
		default:
			signs = append(signs, formatSign{r, false})
		}
	}
	return signs
}

func containsSign(signs []formatSign, chars string) bool {
	for _, sign := range signs {
		if !sign.literal && strings.ContainsRune(chars, sign.char) {
			return true
		}
	}
	return false
}

// digitPlace stands for 0 in a pattern, and optionalPlace for # and ?, so that literals may be digits too.
const (
	digitPlace    = '\x01'
	optionalPlace = '\x02'
)

// fillingPattern returns the pattern of a format that shows whole numbers with leading zeros, such as 000000 or the
// French phone 0#" "##" "##" "##" "##, and "" for any other: those show less than the cell holds, or only group digits.
func fillingPattern(signs []formatSign) string {
	var pattern strings.Builder
	places, first := 0, rune(0)
	for _, sign := range signs {
		char := sign.char
		if !sign.literal {
			switch {
			case char == '0':
				char = digitPlace
			case char == '#' || char == '?':
				char = optionalPlace
			case !strings.ContainsRune(" -()/+", char):
				return ""
			}
		}
		if char == digitPlace || char == optionalPlace {
			if places++; first == 0 {
				first = char
			}
		}
		pattern.WriteRune(char)
	}
	if places < 2 || first != digitPlace {
		return ""
	}
	return pattern.String()
}

// fill shows a whole number by the pattern, as a spreadsheet does: digits from the right, too many of them at the first place.
func fill(pattern, digits string) string {
	signs := []rune(pattern)
	shown := ""
	places := strings.Count(pattern, string(digitPlace)) + strings.Count(pattern, string(optionalPlace))
	for i := len(signs) - 1; i >= 0; i-- {
		if signs[i] != digitPlace && signs[i] != optionalPlace {
			shown = string(signs[i]) + shown
			continue
		}
		places--
		switch {
		case places == 0 && digits != "":
			shown, digits = digits+shown, ""
		case digits != "":
			shown, digits = digits[len(digits)-1:]+shown, digits[:len(digits)-1]
		case signs[i] == digitPlace:
			shown = "0" + shown
		}
	}
	return shown
}

// text says what a numeric cell holds: a date as ISO, a number that is filled with zeros as it is shown, any other in full.
func (f numberFormat) text(raw string, system dateSystem) (string, NoteKind) {
	value, err := strconv.ParseFloat(strings.TrimSpace(raw), 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		return raw, ""
	}
	if (f.hasDate || f.hasTime) && value >= 0 && value < maxSerial+1 {
		if text, ok := f.dateText(value, system); ok {
			return text, ""
		}
	}
	if value != math.Trunc(value) {
		// The binary number is a little off; its first 15 digits are what was typed.
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', maxExactDigits, 64), 64)
		return strconv.FormatFloat(rounded, 'f', -1, 64), ""
	}
	text := strconv.FormatFloat(value, 'f', 0, 64)
	if digits := strings.TrimPrefix(text, "-"); len(digits) > maxExactDigits || f.displaysAll(digits) {
		return text, DigitsLost
	}
	if f.digits != "" && value >= 0 {
		return fill(f.digits, text), ""
	}
	return text, ""
}

func (f numberFormat) dateText(serial float64, system dateSystem) (string, bool) {
	at := system.at(serial)
	clock := at.Format("15:04")
	if at.Second() != 0 {
		clock = at.Format("15:04:05")
	}
	switch {
	case !f.hasDate && serial < 1:
		return clock, true
	case !f.hasDate:
		return "", false // elapsed time, or a date of which only the hour is shown: the number is left as it is
	case f.hasTime || at.Hour() != 0 || at.Minute() != 0 || at.Second() != 0:
		return at.Format("2006-01-02") + " " + clock, true
	default:
		return at.Format("2006-01-02"), true
	}
}

// isoText brings a cell that stores its date as text (rare) into the form of the others.
func isoText(value string) string {
	for _, layout := range []string{"2006-01-02T15:04:05.999", "2006-01-02T15:04:05Z", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, value); err == nil {
			return isoMinute(at)
		}
	}
	return value
}

func isoMinute(at time.Time) string {
	if at.Second() != 0 {
		return at.Format("2006-01-02 15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}
