package sheet

import (
	"errors"
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
	columns, repeated := matchTitles(header, fields)
	if repeated != nil {
		return Columns{}, repeated
	}
	if titles, names := columns.missing(fields); len(names) > 0 {
		return Columns{}, &Error{Code: MissingColumns, Names: titles, Fields: names, Found: header, Limit: MaxHeaderRows}
	}
	return columns, nil
}

// matchTitles finds what fields there are, and refuses the first that is there twice.
func matchTitles(header []string, fields []Field) (columns Columns, repeated error) {
	known := map[string]string{}
	for _, field := range fields {
		for _, title := range field.Titles {
			known[foldTitle(title)] = field.Name
		}
	}
	columns = Columns{at: map[string]int{}}
	for i, title := range header {
		name, ok := known[foldTitle(title)]
		if !ok {
			columns.Unknown = append(columns.Unknown, titleOrPlace(title, i))
			continue
		}
		if first, twice := columns.at[name]; !twice {
			columns.at[name] = i
		} else if repeated == nil {
			repeated = &Error{Code: RepeatedColumn, Names: []string{header[first], title}}
		}
	}
	return columns, repeated
}

// FindHeader finds the row of titles and the fields among them. It is the first row with text, unless that lacks a
// required field: people write the title of the list above it, the name of a school, a date. Then it is the first of
// MaxHeaderRows rows that has every required field, at least two fields and more than any row above it. A row of
// people cannot be one: its cells would have to be titles.
//
// A refusal names the line that looked most like the titles.
func (t *Table) FindHeader(fields []Field) (Columns, error) {
	columns, err := MatchHeader(t.Header, fields)
	if err == nil || !isMissing(err) {
		return columns, atLine(err, t.Found.HeaderLine)
	}
	passes := t.passes
	if len(passes) == 0 {
		passes = []csvPass{{pass: t.pass}} // a workbook
	}
	var likely headRow
	for i, by := range passes {
		row, found, err := t.lookBelow(by.pass, fields)
		switch {
		case found:
			// A title of the table hides the delimiter: it has none, or another one.
			t.pass, t.Found.Delimiter = by.pass, by.delimiter
			return MatchHeader(t.Header, fields)
		case i > 0: // what another delimiter makes of the file is no reason to refuse it
		case err != nil:
			return Columns{}, err
		default:
			likely = row
		}
	}
	_, err = MatchHeader(titlesOf(likely.Row), fields)
	return Columns{}, atLine(err, likely.Line)
}

// lookBelow takes the row of titles among the first rows of a pass if it is there, and returns the row that has most fields.
func (t *Table) lookBelow(pass func() (rowReader, error), fields []Field) (likely headRow, found bool, err error) {
	const fewest = 2 // one title may be a word like any other
	rows, err := firstRows(pass, MaxHeaderRows)
	most := -1
	for above, row := range rows {
		titles := titlesOf(row.Row)
		known := knownFields(titles, fields)
		if known <= most {
			continue
		}
		most, likely = known, row
		if _, err := MatchHeader(titles, fields); above > 0 && known >= fewest && !isMissing(err) {
			if err != nil {
				return likely, false, atLine(err, row.Line)
			}
			t.takeHeader(row, above)
			return likely, true, nil
		}
	}
	return likely, false, err
}

func knownFields(titles []string, fields []Field) int {
	columns, _ := matchTitles(titles, fields)
	return len(columns.at)
}

func isMissing(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == MissingColumns
}

// atLine adds to a refusal of titles where they stand.
func atLine(err error, line int) error {
	var refusal *Error
	if errors.As(err, &refusal) {
		refusal.Line = line
	}
	return err
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
