// Package i18n turns codes and facts into sentences of the reader's language. It decides how
// money, instants and numbers are written in French, English and Spanish; which sentence belongs
// to which rule is decided where the rule is.
package i18n

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bojanz/currency"
	goi18n "github.com/nicksnyder/go-i18n/v2/i18n"
	"github.com/pelletier/go-toml/v2"
	"golang.org/x/text/language"

	"usher/internal/base/problem"
)

//go:embed locales/*.toml
var locales embed.FS

// Languages are those the program speaks; the first is the fallback.
var Languages = []string{"en", "fr", "es"}

// Money is an amount in minor units of its currency: XOF has none, EUR has cents.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Instant is a moment and the zone in which people there read it.
type Instant struct {
	At   time.Time `json:"at"`
	Zone string    `json:"zone"`
}

// Word is a fact that is itself a sentence or a word of the program, by its id.
type Word struct {
	ID string `json:"word"`
}

// Quoted are texts and Words, each to be put between the quotation marks of the language.
type Quoted []any

// bundles are the sentences of each language, read when it is first spoken: a command speaks one.
var bundles = func() map[string]func() *goi18n.Bundle {
	all := map[string]func() *goi18n.Bundle{}
	for _, lang := range Languages {
		all[lang] = sync.OnceValue(func() *goi18n.Bundle { return loadBundle(lang) })
	}
	return all
}()

func loadBundle(lang string) *goi18n.Bundle {
	b := goi18n.NewBundle(language.Make(lang))
	b.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	files, err := fs.Glob(locales, "locales/*."+lang+".toml") // topic.language.toml
	for _, file := range files {
		var content []byte
		if err == nil {
			content, err = locales.ReadFile(file)
		}
		if err == nil {
			_, err = b.ParseMessageFileBytes(spaced(file, content), file)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("embedded sentences: %v", err))
	}
	return b
}

// frenchSpaces keeps the marks that French sets apart from its words on the line of their words.
var frenchSpaces = strings.NewReplacer(" :", "\u00a0:", " ;", "\u00a0;", " ?", "\u00a0?", " !", "\u00a0!", "« ", "«\u00a0", " »", "\u00a0»")

// spaced puts the spaces of French into its sentences here, so that nobody has to type what does not show. In TOML
// none of these pairs stands outside a sentence.
func spaced(file string, content []byte) []byte {
	if !strings.HasSuffix(file, ".fr.toml") {
		return content
	}
	return []byte(frenchSpaces.Replace(string(content)))
}

// Voice speaks one language.
type Voice struct {
	lang      string
	localizer *goi18n.Localizer
}

// Speak chooses the first known language of those wanted ("fr", "fr-ML,fr;q=0.9", "fr_FR.UTF-8").
func Speak(wanted ...string) Voice {
	for _, want := range wanted {
		tags, _, err := language.ParseAcceptLanguage(strings.ReplaceAll(strings.SplitN(want, ".", 2)[0], "_", "-"))
		if err != nil {
			continue
		}
		for _, tag := range tags {
			base, _ := tag.Base()
			for _, lang := range Languages {
				if base.String() == lang {
					return voice(lang)
				}
			}
		}
	}
	return voice(Languages[0])
}

func voice(lang string) Voice {
	return Voice{lang: lang, localizer: goi18n.NewLocalizer(bundles[lang](), lang)}
}

// Lang is the language spoken.
func (v Voice) Lang() string { return v.lang }

// Say makes the sentence with this id. A sentence that does not exist shows its id: the parity
// test makes sure that this never reaches a person.
func (v Voice) Say(id string, facts map[string]any) string {
	return v.say(id, nil, facts)
}

// Count makes the sentence with this id in the plural form of n, which it may call {{.Count}}.
func (v Voice) Count(id string, n int) string {
	return v.say(id, n, map[string]any{"Count": v.Number(int64(n))})
}

func (v Voice) say(id string, count any, facts map[string]any) string {
	written := make(map[string]any, len(facts))
	for name, value := range facts {
		written[name] = v.write(value)
	}
	sentence, err := v.localizer.Localize(&goi18n.LocalizeConfig{MessageID: id, TemplateData: written, PluralCount: count})
	if err != nil {
		return id
	}
	return sentence
}

// Sentence tells a person what an error means to them. What is no problem of theirs is said to
// be in the log.
func (v Voice) Sentence(err error) string {
	if p, ok := problem.Of(err); ok {
		return v.Say("problem_"+p.Code, p.Facts)
	}
	return v.Say("problem_unexpected", nil)
}

// write gives facts their form in this language. Facts that were kept as JSON come back as maps.
func (v Voice) write(value any) any {
	switch fact := value.(type) {
	case Money:
		return v.Money(fact)
	case Instant:
		return v.Instant(fact)
	case Word:
		return v.Say(fact.ID, nil)
	case Quoted:
		return v.quote(fact)
	case int:
		return v.Number(int64(fact))
	case int64:
		return v.Number(fact)
	case float64: // a number that was kept as JSON
		return v.Number(int64(fact))
	case []string:
		return strings.Join(fact, ", ")
	case []any:
		return strings.Join(v.writeEach(fact), ", ")
	case map[string]any:
		return v.writeKept(fact)
	}
	return value
}

func (v Voice) writeEach(facts []any) []string {
	parts := make([]string, len(facts))
	for i, part := range facts {
		parts[i] = fmt.Sprint(v.write(part))
	}
	return parts
}

func (v Voice) quote(texts Quoted) string {
	marks := map[string][2]string{"en": {"“", "”"}, "fr": {"«\u00a0", "\u00a0»"}, "es": {"«", "»"}}[v.lang]
	parts := v.writeEach(texts)
	for i, part := range parts {
		parts[i] = marks[0] + part + marks[1]
	}
	return strings.Join(parts, ", ")
}

func (v Voice) writeKept(fact map[string]any) any {
	if id, ok := fact["word"].(string); ok {
		return v.Say(id, nil)
	}
	if minor, ok := fact["minor"].(float64); ok {
		code, _ := fact["currency"].(string)
		return v.Money(Money{Minor: int64(minor), Currency: code})
	}
	if text, ok := fact["at"].(string); ok {
		zone, _ := fact["zone"].(string)
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return v.Instant(Instant{At: at, Zone: zone})
		}
	}
	return fmt.Sprint(fact)
}

// Money writes an amount as the language does: 10 000 F CFA, XOF 10,000.
func (v Voice) Money(m Money) string {
	amount, err := currency.NewAmountFromInt64(m.Minor, m.Currency)
	if err != nil {
		return strconv.FormatInt(m.Minor, 10) + " " + m.Currency
	}
	formatter := currency.NewFormatter(currency.NewLocale(v.lang))
	formatter.CurrencyDisplay = currency.DisplayCode
	formatter.MinDigits, formatter.MaxDigits = currencyDigits(m.Currency), currencyDigits(m.Currency)
	return formatter.Format(amount)
}

// Digits is how many digits of the amount are behind the point of its currency.
func (m Money) Digits() int { return int(currencyDigits(m.Currency)) }

func currencyDigits(code string) uint8 {
	digits, ok := currency.GetDigits(code)
	if !ok {
		return 0
	}
	return digits
}

// grouping is how a language parts the digits of a number by three, and from how many digits on: as
// money is written (CLDR), so that 1 334 and 10 826 under each other look alike.
var grouping = map[string]struct {
	separator string
	from      int
}{"en": {",", 4}, "fr": {"\u202f", 4}, "es": {"\u202f", 5}}

// Number groups the digits of a count as the language does. What only names something (a run, a
// room, a year) is no count, and is handed over as text.
func (v Voice) Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	if n < 0 || len(digits) < grouping[v.lang].from {
		return digits
	}
	start := len(digits) % 3
	var parts []string
	if start > 0 {
		parts = append(parts, digits[:start])
	}
	for i := start; i < len(digits); i += 3 {
		parts = append(parts, digits[i:i+3])
	}
	return strings.Join(parts, grouping[v.lang].separator)
}

// Decimal writes a measure with that many digits behind the point or comma.
func (v Voice) Decimal(measure float64, digits int) string {
	text := strconv.FormatFloat(measure, 'f', digits, 64)
	if v.lang == "en" {
		return text
	}
	return strings.Replace(text, ".", ",", 1)
}

var weekdays = map[string][7]string{
	"en": {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	"fr": {"dimanche", "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi"},
	"es": {"domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"},
}

// Weekday writes a day of the week.
func (v Voice) Weekday(day time.Weekday) string { return weekdays[v.lang][day] }

var months = map[string][12]string{
	"en": {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	"fr": {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"},
	"es": {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"},
}

// Instant writes day, hour and zone: Monday 7 December 2026, 08:00 (Africa/Bamako).
func (v Voice) Instant(i Instant) string {
	local := In(i)
	return v.Date(local) + v.join() + Clock(local) + " (" + local.Location().String() + ")"
}

func (v Voice) join() string {
	return map[string]string{"en": ", ", "fr": " à ", "es": " a las "}[v.lang]
}

// Date writes the civil day of an instant that is already in its zone.
func (v Voice) Date(local time.Time) string {
	day := strconv.Itoa(local.Day())
	month, weekday := months[v.lang][local.Month()-1], weekdays[v.lang][local.Weekday()]
	year := strconv.Itoa(local.Year())
	switch v.lang {
	case "fr":
		if day == "1" {
			day = "1er"
		}
		return weekday + " " + day + " " + month + " " + year
	case "es":
		return weekday + " " + day + " de " + month + " de " + year
	}
	return weekday + " " + day + " " + month + " " + year
}

// zones keeps the zones that were read: a chunk asks for the same one thousands of times.
var zones sync.Map

// In moves an instant to its zone; a zone that this machine does not know is shown as UTC, which
// the text then names.
func In(i Instant) time.Time {
	if known, ok := zones.Load(i.Zone); ok {
		return i.At.In(known.(*time.Location))
	}
	location, err := time.LoadLocation(i.Zone)
	if err != nil {
		return i.At.UTC()
	}
	zones.Store(i.Zone, location)
	return i.At.In(location)
}
