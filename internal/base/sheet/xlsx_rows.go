package sheet

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// sheetReader is one pass over the rows of a sheet.
type sheetReader struct {
	book    *workbook
	part    *partReader
	decoder *xml.Decoder
	line    int
	ended   bool
}

func newSheetReader(book *workbook) (*sheetReader, error) {
	part, err := book.openPart(book.sheet)
	if err != nil {
		return nil, err
	}
	reader := &sheetReader{book: book, part: part, decoder: xml.NewDecoder(part)}
	if err := reader.seekData(); err != nil {
		return nil, errors.Join(err, part.Close())
	}
	return reader, nil
}

func (s *sheetReader) close() error { return s.part.Close() }

// token returns the next token; the end of the part is an error, since sheetData has its own end.
func (s *sheetReader) token() (xml.Token, error) {
	token, err := s.decoder.RawToken()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, broken(fmt.Errorf("row %d: %w", s.line, err))
	}
	return token, nil
}

func (s *sheetReader) seekData() error {
	for {
		token, err := s.token()
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "sheetData" {
			return nil
		}
	}
}

func (s *sheetReader) next() (Row, error) {
	for !s.ended {
		token, err := s.token()
		if err != nil {
			return Row{}, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "row" {
				return s.row(token)
			}
		case xml.EndElement:
			if token.Name.Local == "sheetData" {
				s.ended = true
			}
		}
	}
	// The archive's checksum is only known at the end of the part.
	if _, err := io.Copy(io.Discard, s.part); err != nil {
		return Row{}, broken(err)
	}
	return Row{}, io.EOF
}

func (s *sheetReader) row(start xml.StartElement) (Row, error) {
	s.line++
	if number, err := strconv.Atoi(attribute(start, "r")); err == nil && number > 0 {
		s.line = number
	}
	row := Row{Line: s.line}
	column := -1
	for {
		token, err := s.token()
		if err != nil {
			return Row{}, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local != "c" {
				continue
			}
			column++
			if named, ok := columnOf(attribute(token, "r")); ok {
				column = named
			}
			if err := s.cell(token, column, &row); err != nil {
				return Row{}, err
			}
		case xml.EndElement:
			if token.Name.Local == "row" {
				return row, nil
			}
		}
	}
}

func attribute(element xml.StartElement, name string) string {
	for _, attr := range element.Attr {
		if attr.Name.Local == name {
			return attr.Value
		}
	}
	return ""
}

// columnOf reads the letters of a reference such as AB12.
func columnOf(reference string) (column int, ok bool) {
	const maxLetters = 3 // XFD is the last column
	i := 0
	for ; i < len(reference) && i < maxLetters && reference[i] >= 'A' && reference[i] <= 'Z'; i++ {
		column = column*26 + int(reference[i]-'A') + 1
	}
	return column - 1, i > 0
}

// cell reads one cell into its place in the row. Cells that are only formatted leave no trace.
func (s *sheetReader) cell(start xml.StartElement, column int, row *Row) error {
	raw, err := s.rawCell(start)
	if err != nil {
		return err
	}
	text, kind, err := s.book.cellText(raw)
	if err != nil || text == "" && kind == "" {
		return err
	}
	if column >= s.book.limits.Columns {
		if blank(text) {
			return nil
		}
		return &Error{Code: TooManyColumns, Line: row.Line, Limit: int64(s.book.limits.Columns)}
	}
	if utf8.RuneCountInString(text) > s.book.limits.CellRunes {
		return &Error{Code: CellTooLong, Line: row.Line, Column: ColumnLetters(column), Limit: int64(s.book.limits.CellRunes)}
	}
	if kind != "" {
		row.Notes = append(row.Notes, Note{column, kind})
	}
	for len(row.Cells) <= column {
		row.Cells = append(row.Cells, "")
	}
	row.Cells[column], row.Notes = finishCell(text, column, row.Notes)
	return nil
}

// rawCell is a cell as the sheet stores it.
type rawCell struct {
	kind    string // s, str, inlineStr, n, b, e, d
	style   int
	value   string
	inline  string
	formula bool
	result  bool // has a value, be it an empty text
}

func (s *sheetReader) rawCell(start xml.StartElement) (rawCell, error) {
	cell := rawCell{kind: attribute(start, "t")}
	cell.style, _ = strconv.Atoi(attribute(start, "s")) // none: the plain style
	var inline textCollector
	var value []byte
	inValue := false
	for {
		token, err := s.token()
		if err != nil {
			return cell, err
		}
		inline.take(token)
		switch token := token.(type) {
		case xml.StartElement:
			inValue = token.Name.Local == "v"
			cell.result = cell.result || inValue
			cell.formula = cell.formula || token.Name.Local == "f"
		case xml.CharData:
			if inValue {
				value = append(value, token...)
			}
		case xml.EndElement:
			inValue = false
			if token.Name.Local == "c" {
				cell.value, cell.inline = string(value), string(unescapeText(inline.text))
				return cell, nil
			}
		}
	}
}

// cellText says what a cell tells a person, and what is wrong with it.
func (w *workbook) cellText(cell rawCell) (string, NoteKind, error) {
	if cell.value == "" && cell.inline == "" {
		if cell.formula && !cell.result {
			return "", FormulaFailed, nil
		}
		return "", "", nil
	}
	switch cell.kind {
	case "s":
		text, err := w.texts.at(cell.value)
		return text, "", err
	case "inlineStr":
		return cell.inline, "", nil
	case "str":
		return string(unescapeText([]byte(cell.value))), "", nil
	case "b":
		if cell.value == "1" {
			return "TRUE", "", nil
		}
		return "FALSE", "", nil
	case "e":
		return cell.value, FormulaFailed, nil
	case "d":
		return isoText(cell.value), "", nil
	}
	format := numberFormat{}
	if cell.style >= 0 && cell.style < len(w.formats) {
		format = w.formats[cell.style]
	}
	text, kind := format.text(cell.value, w.date)
	return text, kind, nil
}
