package intake

import (
	"fmt"
	"slices"
	"strings"

	"usher/internal/base/problem"
	"usher/internal/base/sheet"
)

// Mapping says which columns of a file are which fields, by their titles, where the program does not know the title or takes it for
// another field. A title that is mapped to nothing is not read. A field that is mapped has that column and no other.
type Mapping map[string]string

// FoundColumn is a column of a file, and the field that it was taken for; an empty field: it is not read.
type FoundColumn struct {
	Title string
	Field string
}

// FieldsOf are the fields of a kind of file, in the order in which they are explained: the words for them are field_<name>.
func FieldsOf(kind string) []string {
	return fieldNames(map[string][]field{"candidates": candidateFields, "sittings": sittingFields, "payments": paymentFields}[kind])
}

// fields are those of a kind of file, as the mapping has them.
func (m Mapping) fields(of []field) ([]sheet.Field, error) {
	all := sheetFields(of)
	var last []sheet.Field // of two fields that know a title, the later one has it
	for nth, title := range m.titles() {
		name := m[title]
		if name == "" {
			last = append(last, sheet.Field{Name: fmt.Sprint("not read ", nth), Titles: []string{title}})
			continue
		}
		at := slices.IndexFunc(all, func(f sheet.Field) bool { return f.Name == name })
		if at < 0 {
			return nil, problem.Invalid("mapping_field_unknown", problem.Facts{"field": shown(name), "column": shown(title), "known": fieldNames(of)})
		}
		if slices.ContainsFunc(last, func(f sheet.Field) bool { return f.Name == name }) {
			return nil, problem.Invalid("mapping_field_twice", problem.Facts{"field": name})
		}
		all[at].Titles = []string{title}
		last = append(last, sheet.Field{Name: name, Titles: []string{title}})
	}
	return append(all, last...), nil
}

// fieldNames are the names of fields as a mapping is written.
func fieldNames(of []field) []string {
	names := make([]string, len(of))
	for i, f := range of {
		names[i] = f.name
	}
	return names
}

// titles come in one order, whatever that of the map.
func (m Mapping) titles() []string {
	titles := make([]string, 0, len(m))
	for title := range m {
		titles = append(titles, title)
	}
	slices.Sort(titles)
	return titles
}

// check wants each title of the mapping in the file.
func (m Mapping) check(header []string) error {
	for _, title := range m.titles() {
		if !slices.ContainsFunc(header, func(one string) bool { return strings.EqualFold(sheet.Clean(one), sheet.Clean(title)) }) {
			return problem.Invalid("mapping_column_unknown", problem.Facts{"column": shown(title), "found": quoted(header)})
		}
	}
	return nil
}

// foundColumns tells of each column of a file for what it was taken.
func foundColumns(header []string, columns sheet.Columns, of []field) []FoundColumn {
	found := make([]FoundColumn, 0, len(header))
	for i, title := range header {
		if title == "" {
			continue
		}
		one := FoundColumn{Title: title}
		for _, f := range of {
			if columns.Index(f.name) == i {
				one.Field = f.name
			}
		}
		found = append(found, one)
	}
	return found
}

// likelyColumns are those of a file that was refused for its titles, so that somebody can say what they are.
func likelyColumns(header []string, mapped []sheet.Field, of []field) []FoundColumn {
	for i := range mapped {
		mapped[i].Required = false
	}
	columns, err := sheet.MatchHeader(header, mapped)
	if err != nil {
		columns = sheet.Columns{} // two columns are one field: nobody knows which is meant
	}
	return foundColumns(header, columns, of)
}
