package sheet

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Field is a column that the caller knows, with every title by which people call it. The first is the
// one that a refusal names.
type Field struct {
	Name     string
	Titles   []string
	Required bool
}

// Columns tells where the known columns of a file are.
type Columns struct {
	Unknown []string // titles that no field knows, in the order of the file

	at map[string]int
}

// MatchHeader finds the fields among the titles of a file, in any order. Case, accents, stars, degree signs,
// apostrophes, hyphens, underscores and spaces of every kind do not matter. A field that is there twice or a required one
// that is not there is refused by name.
func MatchHeader(header []string, fields []Field) (Columns, error) {
	known := map[string]string{}
	for _, field := range fields {
		for _, title := range field.Titles {
			known[foldTitle(title)] = field.Name
		}
	}
	columns := Columns{at: map[string]int{}}
	for i, title := range header {
		name, ok := known[foldTitle(title)]
		if !ok {
			columns.Unknown = append(columns.Unknown, titleOrPlace(title, i))
			continue
		}
		if first, twice := columns.at[name]; twice {
			return Columns{}, &Error{Code: RepeatedColumn, Names: []string{header[first], title}}
		}
		columns.at[name] = i
	}
	if titles, names := columns.missing(fields); len(names) > 0 {
		return Columns{}, &Error{Code: MissingColumns, Names: titles, Fields: names, Found: header}
	}
	return columns, nil
}

func titleOrPlace(title string, column int) string {
	if title == "" {
		return fmt.Sprintf("(%s)", ColumnLetters(column))
	}
	return title
}

func (c Columns) missing(fields []Field) (titles, names []string) {
	for _, field := range fields {
		if _, ok := c.at[field.Name]; !ok && field.Required {
			titles, names = append(titles, field.Titles[0]), append(names, field.Name)
		}
	}
	return titles, names
}

// Has reports whether the file has a column for the field.
func (c Columns) Has(field string) bool {
	_, ok := c.at[field]
	return ok
}

// Index returns the column of the field, from 0, or -1.
func (c Columns) Index(field string) int {
	if i, ok := c.at[field]; ok {
		return i
	}
	return -1
}

// Text returns what a row says for a field, cleaned, and empty when the file lacks the column. A cell whose text is not
// to be stored is refused.
func (c Columns) Text(row Row, field string) (string, error) {
	text, err := row.Cell(c.Index(field))
	return Clean(text), err
}

// foldTitle keeps the letters and digits by which a title is known. Ordinal signs go first, since their
// decomposition is a letter: Nº, N° and № are all N.
func foldTitle(title string) string {
	title = strings.NewReplacer("º", "", "ª", "", "№", "n").Replace(title)
	var folded strings.Builder
	for _, r := range norm.NFKD.String(title) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			folded.WriteRune(unicode.ToLower(r))
		}
	}
	return folded.String()
}
