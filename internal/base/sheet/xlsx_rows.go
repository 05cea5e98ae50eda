package sheet

import (
	"cmp"
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
	line    int // of the row that is read
	column  int // of the cell that is read, from 0; -1: none
	rows    int // read, empty ones included
	ended   bool
}

func newSheetReader(book *workbook) (*sheetReader, error) {
	part, err := book.openPart(book.sheet)
	if err != nil {
		return nil, err
	}
	reader := &sheetReader{book: book, part: part, decoder: xml.NewDecoder(part), column: -1}
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
	if errors.Is(err, errTextRun) && s.column >= 0 {
		return nil, &Error{Code: CellTooLong, Line: s.line, Column: ColumnLetters(s.column), Limit: int64(s.book.limits.CellRunes), Cause: err}
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
	found, err := s.nextRow()
	if err != nil || !found {
		return Row{}, cmp.Or(err, io.EOF)
	}
	row := Row{Line: s.line}
	err = s.cells(func(cell rawCell) error { return s.cell(cell, &row) })
	s.book.merged.note(&row)
	return row, err
}

// eachCell gives the cells of the sheet as they are stored.
func (s *sheetReader) eachCell(each func(line, column int, cell rawCell) error) error {
	for {
		found, err := s.nextRow()
		if err != nil || !found {
			return err
		}
		if err := s.cells(func(cell rawCell) error { return each(s.line, s.column, cell) }); err != nil {
			return err
		}
	}
}

// nextRow goes to the beginning of the next row. It bounds the rows by what a sheet can hold, empty ones included: they
// cost time as well.
func (s *sheetReader) nextRow() (found bool, err error) {
	for !s.ended {
		token, err := s.token()
		if err != nil {
			return false, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "row" {
				return true, s.beginRow(token)
			}
		case xml.EndElement:
			s.ended = token.Name.Local == "sheetData"
		}
	}
	// The archive's checksum is only known at the end of the part.
	if _, err := io.Copy(io.Discard, s.part); err != nil {
		return false, broken(err)
	}
	return false, nil
}

func (s *sheetReader) beginRow(start xml.StartElement) error {
	s.line++
	written := attribute(start, "r")
	number, err := strconv.Atoi(written)
	if err == nil && number > 0 {
		s.line = number
	}
	if s.rows++; s.rows > maxSheetRows || s.line > maxSheetRows || errors.Is(err, strconv.ErrRange) {
		return &Error{Code: BeyondSheet, Limit: maxSheetRows}
	}
	return nil
}

// cells reads the row to its end.
func (s *sheetReader) cells(each func(rawCell) error) error {
	s.column = -1
	defer func() { s.column = -1 }()
	for {
		token, err := s.token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local != "c" {
				continue
			}
			if err := s.beginCell(token); err != nil {
				return err
			}
			raw, err := s.rawCell(token)
			if err != nil {
				return err
			}
			if err := each(raw); err != nil {
				return err
			}
		case xml.EndElement:
			if token.Name.Local == "row" {
				return nil
			}
		}
	}
}

func (s *sheetReader) beginCell(start xml.StartElement) error {
	s.column++
	if named, ok := columnOf(attribute(start, "r")); ok {
		s.column = named
	}
	if s.column >= maxSheetColumns {
		return &Error{Code: TooManyColumns, Line: s.line, Limit: int64(s.book.limits.Columns)}
	}
	return nil
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
func (s *sheetReader) cell(raw rawCell, row *Row) error {
	column := s.column
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
