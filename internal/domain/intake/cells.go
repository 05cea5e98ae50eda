package intake

import (
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"usher/internal/domain/admission"
)

// nameKey compares names as the database's name_key does: without regard to case and spacing, by the
// full rules of Unicode, where the small form of a letter may be two, or depend on where it stands.
func nameKey(text string) string {
	if isPlain(text) { // nearly every reference: a whole campaign's are compared under its lock
		return strings.ToLower(text)
	}
	// A Caser keeps a state: each text has its own.
	return cases.Lower(language.Und).String(strings.Join(strings.Fields(norm.NFKC.String(text)), " "))
}

// isPlain reports whether a text is of ASCII letters, digits and signs only, without a space.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

const mostEmail = 254 // characters of an address, RFC 5321

// Letters of other scripts are refused: in an address they are nearly always a typing mistake, and
// most servers cannot deliver them.
var emailShape = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~.` + "`" + `-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// readEmail reads one address; the domain is lower-cased, the mailbox is left as it is written.
// The reason is empty when it is one.
func readEmail(text string) (email, reason string) {
	if strings.Count(text, "@") > 1 {
		return "", "email_several"
	}
	if len(text) > mostEmail || !emailShape.MatchString(text) {
		return "", "email_wrong"
	}
	if parsed, err := mail.ParseAddress(text); err != nil || parsed.Address != text {
		return "", "email_wrong"
	}
	at := strings.LastIndexByte(text, '@')
	return text[:at] + strings.ToLower(text[at:]), ""
}

var (
	phoneParts  = regexp.MustCompile(`(?i)[;,/|&]|\b(?:ou|et|or|and|o|y)\b`)
	phoneSigns  = regexp.MustCompile(`^[0-9+ ().\-/,;|]+$`)
	phoneDigits = 6 // fewer are part of a number, not another one

	// A program that took a phone for an amount gives it decimals.
	phoneDecimals = regexp.MustCompile(`^[0-9]{6,}[.,]0{1,2}$`)
	bareNumber    = regexp.MustCompile(`^[1-9][0-9]{9,}$`)
)

const displayedDigits = 6 // at most, of a number that a spreadsheet shortens: 2.23E+10, 2.23701E+10

// rounded reports whether bare digits may be what a spreadsheet left of a number that it shortened: saved as it was
// displayed, opened and saved once more, it comes back with zeros for the digits that are gone, and looks like any other.
// Where no such number exists, that is what happened; where one does, it is a number that people like, and nobody can
// tell. Written as a person writes a phone, with + or spaces or zeros in front, the same digits are beyond doubt.
func rounded(text string) bool {
	return bareNumber.MatchString(text) && len(strings.TrimRight(text, "0")) <= displayedDigits
}

// readPhone reads one number by the conventions of a country (ISO code) and returns it as E.164. A
// number that could exist but is in no known range is taken, with a doubt: numbering plans change
// faster than libraries. Of what is rounded the reverse is true.
func readPhone(text, country string) (e164, reason, doubt string) {
	text = norm.NFKC.String(text)
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Pd, r) {
			return '-'
		}
		return r
	}, text)
	if severalNumbers(text) {
		return "", "phone_several", ""
	}
	if !phoneSigns.MatchString(text) || phoneDecimals.MatchString(text) {
		return "", "phone_wrong", ""
	}
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
	if strings.Contains(text, "+") {
		digits = "+" + digits
	}
	number, err := phonenumbers.Parse(digits, country)
	possible := err == nil && phonenumbers.IsPossibleNumberWithReason(number) == phonenumbers.IS_POSSIBLE
	known := possible && phonenumbers.IsValidNumber(number)
	switch {
	case !known && rounded(text):
		return "", "phone_rounded", ""
	case !possible:
		return "", "phone_impossible", ""
	case rounded(text):
		doubt = "phone_perhaps_rounded"
	case !known:
		doubt = "phone_doubtful"
	}
	return phonenumbers.Format(number, phonenumbers.E164), "", doubt
}

func severalNumbers(text string) bool {
	whole := 0
	for _, part := range phoneParts.Split(text, -1) {
		digits := 0
		for _, r := range part {
			if r >= '0' && r <= '9' {
				digits++
			}
		}
		if digits >= phoneDigits {
			whole++
		}
	}
	return whole > 1 || strings.Count(text, "+") > 1
}

// splitCodes cuts a list of codes: | , and ; part them.
func splitCodes(text string) []string {
	var codes []string
	for _, code := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' || r == ';' }) {
		code = strings.TrimSpace(code)
		if code != "" && !slices.ContainsFunc(codes, func(known string) bool { return nameKey(known) == nameKey(code) }) {
			codes = append(codes, code)
		}
	}
	return codes
}

// The words by which people say that somebody needs an accessible seat, folded, and those that say
// that nothing is needed.
var (
	accessibleWords = words("oui|yes|sí|si|o|y|x|1|vrai|true|verdadero|accessible|accessibilité|accès|siège accessible|place accessible|accessible seat|accessibility|" +
		"fauteuil|fauteuil roulant|en fauteuil|en fauteuil roulant|chaise roulante|pmr|mobilité réduite|personne à mobilité réduite|handicap moteur|" +
		"wheelchair|wheelchair user|in a wheelchair|reduced mobility|step-free|step-free access|" +
		"silla de ruedas|en silla de ruedas|movilidad reducida|persona con movilidad reducida|accesible|asiento accesible|accesibilidad")
	noNeedWords = words("non|no|n|0|faux|false|falso|aucun|aucune|néant|rien|none|nil|ninguno|ninguna|nada|-|sans|sans objet|n/a|ras")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Split(list, "|") {
		set[admission.FoldWords(word)] = true
	}
	return set
}

// readNeeds reads what a candidate needs. An accessible seat is understood; any other wish is kept
// as it is written, and nothing in the program acts on it.
func readNeeds(text string) (kept string, accessible, unknown bool) {
	if noNeedWords[admission.FoldWords(text)] {
		return "", false, false
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|/+", r) }) {
		if accessibleWords[admission.FoldWords(part)] {
			accessible = true
		} else if admission.Fold(part) != "" {
			unknown = true
		}
	}
	if unknown {
		return text, accessible, true
	}
	return "", accessible, false
}

var knownLanguages = []string{"fr", "en", "es"}

var languageWords = func() map[string]string {
	all := map[string]string{}
	for lang, list := range map[string]string{
		"fr": "fr|fra|fre|français|française|francais|french|francés|fr-fr|fr-ml|fr-sn|fr-ci",
		"en": "en|eng|anglais|anglaise|english|inglés|en-gb|en-us",
		"es": "es|esp|spa|espagnol|espagnole|spanish|español|española|castellano|es-es|es-mx",
	} {
		for _, word := range strings.Split(list, "|") {
			all[admission.Fold(word)] = lang
		}
	}
	return all
}()

// readLanguage reads a language by its code or by its name in one of the program's languages.
func readLanguage(text string) (lang string, ok bool) {
	lang, ok = languageWords[admission.Fold(text)]
	return lang, ok
}
