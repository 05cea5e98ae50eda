package intake

import (
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/text/unicode/norm"
)

// nameKey compares names as the database's name_key does: without regard to case and spacing.
func nameKey(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(norm.NFKC.String(text)), " "))
}

// fold compares people's names and words: letters and digits only, without case and accents, so
// that N'Guessan, N’GUESSAN and Nguessan are one name. Letters of their own (ɛ, ɔ, ŋ) stay.
func fold(text string) string {
	var folded strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			folded.WriteRune(unicode.ToLower(r))
		}
	}
	return folded.String()
}

// foldWords is fold with the words kept apart.
func foldWords(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '-' || r == '_' })
	for i, word := range words {
		words[i] = fold(word)
	}
	return strings.Join(words, " ")
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
)

// readPhone reads one number by the conventions of a country (ISO code) and returns it as E.164. A
// number that could exist but is in no known range is taken, with a doubt: numbering plans change
// faster than libraries.
func readPhone(text, country string) (e164, reason string, doubtful bool) {
	text = norm.NFKC.String(text)
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Pd, r) {
			return '-'
		}
		return r
	}, text)
	if severalNumbers(text) {
		return "", "phone_several", false
	}
	if !phoneSigns.MatchString(text) {
		return "", "phone_wrong", false
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
	if err != nil || phonenumbers.IsPossibleNumberWithReason(number) != phonenumbers.IS_POSSIBLE {
		return "", "phone_impossible", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), "", !phonenumbers.IsValidNumber(number)
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
		set[foldWords(word)] = true
	}
	return set
}

// readNeeds reads what a candidate needs. An accessible seat is understood; any other wish is kept
// as it is written, and nothing in the program acts on it.
func readNeeds(text string) (kept string, accessible, unknown bool) {
	if noNeedWords[foldWords(text)] {
		return "", false, false
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|/+", r) }) {
		if accessibleWords[foldWords(part)] {
			accessible = true
		} else if fold(part) != "" {
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
			all[fold(word)] = lang
		}
	}
	return all
}()

// readLanguage reads a language by its code or by its name in one of the program's languages.
func readLanguage(text string) (lang string, ok bool) {
	lang, ok = languageWords[fold(text)]
	return lang, ok
}
