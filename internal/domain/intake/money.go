package intake

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/bojanz/currency"

	"usher/internal/base/problem"
)

// The names of currencies that stand beside amounts, by currency. An amount in another currency
// than the campaign's is refused.
var currencyNames = map[string][]string{
	"XOF": {"fcfa", "f cfa", "cfa", "francs cfa", "franc cfa", "francs", "franc", "frs", "fr", "f"},
	"XAF": {"fcfa", "f cfa", "cfa", "francs cfa", "franc cfa", "francs", "franc", "frs", "fr", "f"},
	"EUR": {"€", "euros", "euro"},
	"USD": {"$", "us$", "dollars", "dollar"},
	"GBP": {"£"},
}

var amountShape = regexp.MustCompile(`^[0-9]+([ .,'][0-9]+)*$`)

// usualDecimals is how many zeros programs add to an amount, also in a currency without decimals.
const usualDecimals = 2

// readAmount reads an amount in major units, as people write it, into minor units of the currency.
// What could be read in two ways is refused.
func readAmount(text, code string) (minor int64, reason string) {
	digits, _ := currency.GetDigits(code)
	number := withoutCurrency(text, code)
	if strings.HasPrefix(number, "-") || strings.HasPrefix(number, "(") {
		return 0, "amount_negative"
	}
	if !amountShape.MatchString(number) {
		return 0, "amount_wrong"
	}
	whole, fraction, reason := splitAmount(number, int(digits))
	if reason != "" {
		return 0, reason
	}
	written := len(fraction)
	fraction = strings.TrimRight(fraction, "0")
	switch {
	case len(fraction) > int(digits):
		return 0, "amount_decimals"
	case written > max(usualDecimals, int(digits)): // 10.0000: ten, or a hundred thousand
		return 0, "amount_ambiguous"
	}
	whole = strings.TrimLeft(whole+fraction+strings.Repeat("0", int(digits)-len(fraction)), "0")
	if whole == "" {
		return 0, "amount_zero"
	}
	minor, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, "amount_impossible"
	}
	return minor, ""
}

// withoutCurrency takes off the name of the currency, before or behind, and makes every space and
// apostrophe between digits one sign.
func withoutCurrency(text, code string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '’' || r == '\'':
			return '\''
		case r == '−' || r == '–':
			return '-'
		}
		return unicode.ToLower(r)
	}, text)
	text = strings.TrimSpace(text)
	for _, name := range append([]string{strings.ToLower(code)}, currencyNames[code]...) {
		if rest, ok := strings.CutSuffix(text, name); ok {
			return strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutPrefix(text, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return text
}

// splitAmount tells the decimals from the groups of thousands.
func splitAmount(number string, digits int) (whole, fraction, reason string) {
	last := strings.LastIndexAny(number, ".,")
	if last < 0 {
		return joinGroups(number, " '")
	}
	mark := number[last : last+1]
	behind := number[last+1:]
	other := strings.Trim(".,", mark)
	switch {
	case strings.Count(number, mark) > 1: // 1.250.000
		return joinGroups(number, mark)
	case strings.Contains(number[:last], other): // 1.250,50
		whole, _, reason = joinGroups(number[:last], other)
		return whole, behind, reason
	case strings.ContainsAny(behind, " '"):
		return "", "", "amount_wrong"
	case len(behind) == 3 && digits == 0: // 10.000 in a currency without decimals
		return joinGroups(number, mark)
	case len(behind) == 3 && digits != 3: // 10.000: ten thousand, or ten
		return "", "", "amount_ambiguous"
	}
	whole, _, reason = joinGroups(number[:last], " '")
	return whole, behind, reason
}

// joinGroups puts groups of thousands together: of three digits each, the first of one to three. Nobody writes a zero in
// front of groups: 0.100 may be a tenth.
func joinGroups(number, marks string) (whole, fraction, reason string) {
	groups := strings.FieldsFunc(number, func(r rune) bool { return strings.ContainsRune(marks, r) })
	if len(groups) > 1 && groups[0][0] == '0' {
		return "", "", "amount_ambiguous"
	}
	for i, group := range groups {
		if i > 0 && len(group) != 3 || i == 0 && len(groups) > 1 && len(group) > 3 || strings.ContainsAny(group, " '.,") {
			return "", "", "amount_ambiguous"
		}
	}
	return strings.Join(groups, ""), "", ""
}

// Amount reads an amount that a person typed, by the rules of the files, into minor units of the
// currency. Zero is an amount here: whether it may be one is the caller's rule.
func Amount(text, code string) (minor int64, err error) {
	minor, reason := readAmount(strings.TrimSpace(text), code)
	if reason != "" && reason != "amount_zero" {
		return 0, problem.Invalid("amount_unreadable", problem.Facts{"value": text, "currency": code})
	}
	return minor, nil
}
