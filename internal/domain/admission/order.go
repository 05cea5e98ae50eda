package admission

import (
	"fmt"
	"strings"
)

// surnames are the orders of names that the schema brings, by language.
var surnames = map[string]string{"en": "surname_en", "fr": "surname_fr", "es": "surname_es"}

// NameOrder is in which order candidates stand by their names, the same on the screen, on paper and in files
// (docs/decisions/0012-order-of-names.md).
type NameOrder struct {
	Same string // the columns by which names are one to a reader: where they are equal, people are namesakes
	By   string // all of the order; no two candidates are equal in it
}

// OrderOfNames is the order of a language over the candidates of a statement, by the name that they have there.
func OrderOfNames(locale, candidate string) (NameOrder, error) {
	collation, known := surnames[locale]
	if !known {
		return NameOrder{}, fmt.Errorf("sort the names: no order of names for the language %q", locale)
	}
	named := strings.NewReplacer("{c}", candidate, "{surnames}", collation)
	same := named.Replace(`surname_key({c}.family_name) collate {surnames}, surname_key({c}.given_name) collate {surnames}`)
	return NameOrder{Same: same, By: same + named.Replace(`,
           surname_key({c}.family_name) collate "und-x-icu", surname_key({c}.given_name) collate "und-x-icu",
           {c}.family_name collate "C", {c}.given_name collate "C", {c}.reference collate "C", {c}.id`)}, nil
}
