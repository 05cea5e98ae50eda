// Package sheet reads tables out of the files that people really have, CSV and XLSX,
// and writes tables that a spreadsheet program opens without running anything in them.
//
// It decides what a file is (by its content, never by its name alone), how its text is
// encoded, what separates its cells, which row is the header, on which line of the file
// a record begins, and what a cell says: a number in full whatever its display, a date as
// ISO text, text as it is. What cannot be known without a guess is refused or noted.
//
// It leaves to others what the columns mean, which of them are needed and what becomes
// of a refused row. Its refusals are *Error: a code with its facts, and an English
// sentence, so that an edge may say the same in another language.
package sheet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The default limits. Each is named in the sentence that a person reads when it is hit.
const (
	MaxFileBytes     = 512 << 20 // of the file as it is on disk
	MaxUnzippedBytes = 2 << 30   // of the sheet of an XLSX file, which is read row by row
	MaxRows          = 1_000_000 // that hold something, without the header; a sheet ends soon after
	MaxColumns       = 100       // that hold something
	MaxCellRunes     = 2_000     // characters in one cell
	MaxHeaderRows    = 10        // with text, among which the titles are looked for
)

// Limits bound what one file may cost. A zero field means its default.
type Limits struct {
	FileBytes     int64
	UnzippedBytes int64
	Rows          int
	Columns       int
	CellRunes     int
}

func (l Limits) orDefault() Limits {
	if l.FileBytes == 0 {
		l.FileBytes = MaxFileBytes
	}
	if l.UnzippedBytes == 0 {
		l.UnzippedBytes = MaxUnzippedBytes
	}
	if l.Rows == 0 {
		l.Rows = MaxRows
	}
	if l.Columns == 0 {
		l.Columns = MaxColumns
	}
	if l.CellRunes == 0 {
		l.CellRunes = MaxCellRunes
	}
	return l
}

// Format is the kind of a file.
type Format string

// The formats that are read and written.
const (
	CSV  Format = "csv"
	XLSX Format = "xlsx"
)

// Found says how a file was understood, to be shown before anything is kept.
type Found struct {
	Format       Format
	Encoding     Encoding // CSV only
	Delimiter    rune     // CSV only; 0 when the file has a single column and nothing named a delimiter
	SepLine      bool     // CSV only: the file opened with a line sep=X
	HeaderLine   int      // the line of the titles, as the person sees it
	RowsAbove    int      // rows with text above the titles, which are not read
	Sheet        string   // XLSX only: the sheet that is read, the first visible one
	OtherSheets  []string // XLSX only: visible sheets that are not read
	HiddenSheets []string // XLSX only: hidden sheets, which are never read
}

// Table is an opened file. It keeps little in memory (of an XLSX file its texts, each
// once); its rows are read from the source at every pass.
type Table struct {
	Found  Found
	Header []string // the titles, cleaned; without the untitled columns at the end

	limits      Limits
	pass        func() (rowReader, error)
	passes      []csvPass // of a CSV file, by the delimiters that it may have; pass is the first
	recordsPast int       // before the first row below the titles, empty ones included
}

// csvPass reads a CSV file by a delimiter.
type csvPass struct {
	delimiter rune
	pass      func() (rowReader, error)
}

// rowReader is one pass over the records of a file, from its beginning, header and empty
// rows included. next ends with io.EOF.
type rowReader interface {
	next() (Row, error)
	close() error
}

// Row is one record. Its cells are as the file has them, apart from line breaks (one
// space) and the apostrophe that protects a formula-looking text.
type Row struct {
	Line  int // in the file as a person sees it; XLSX: the row's number in the sheet
	Cells []string
	Notes []Note
}

// NoteKind is something to know about a cell that the file as such does not forbid.
type NoteKind string

// The kinds of notes. All but LineBreakJoined are faults: the text of the cell is not to be
// stored.
const (
	LineBreakJoined NoteKind = "line_break_joined" // a break inside the cell became one space
	DigitsLost      NoteKind = "digits_lost"       // a spreadsheet shortened or rounded the number
	LettersLost     NoteKind = "letters_lost"      // U+FFFD stands where a letter was
	FormulaFailed   NoteKind = "formula_failed"    // a formula with an error or with no saved result
	MergedCell      NoteKind = "merged_cell"       // inside a merged block, and not its first cell: what it means is not stored
	ExtraCell       NoteKind = "extra_cell"        // text beyond the last title: a shifted row
)

// Note tells what happened in one cell.
type Note struct {
	Column int // from 0
	Kind   NoteKind
}

// Fault reports whether the text of the noted cell is not to be stored.
func (n Note) Fault() bool { return n.Kind != LineBreakJoined }

// Open finds out what a file is and reads as far as its header. The source is read again at every
// pass and must stay open until the last of them has ended; an *os.File, a multipart.File and
// a *bytes.Reader all serve. The name is only used for words.
func Open(name string, source io.ReaderAt, size int64, limits Limits) (*Table, error) {
	limits = limits.orDefault()
	if size > limits.FileBytes {
		return nil, &Error{Code: FileTooLarge, Value: name, Limit: limits.FileBytes}
	}
	head := make([]byte, min(size, sniffBytes))
	if _, err := source.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the beginning of %s: %w", name, err)
	}
	table := &Table{limits: limits}
	var err error
	switch kind := sniff(head); kind {
	case kindZip:
		err = table.openXLSX(source, size)
	case kindOLE:
		err = refuseOLE(io.NewSectionReader(source, 0, size))
	case kindForeign:
		err = &Error{Code: NotATable}
	default:
		err = table.openCSV(source, size)
	}
	if err != nil {
		return nil, err
	}
	return table, table.readHeader()
}

// readHeader takes the first row with text for the titles, until FindHeader is told which titles are wanted.
func (t *Table) readHeader() error {
	first, err := firstRows(t.pass, 1)
	if err != nil {
		return err
	}
	if len(first) == 0 {
		return &Error{Code: EmptyFile}
	}
	t.takeHeader(first[0], 0)
	return nil
}

func (t *Table) takeHeader(row headRow, above int) {
	t.Header, t.recordsPast = titlesOf(row.Row), row.records
	t.Found.HeaderLine, t.Found.RowsAbove = row.Line, above
}

func titlesOf(row Row) []string {
	var titles []string
	for _, title := range row.Cells {
		titles = append(titles, Clean(title))
	}
	for len(titles) > 0 && titles[len(titles)-1] == "" {
		titles = titles[:len(titles)-1]
	}
	return titles
}

// headRow is one of the first rows of a file, and how many records end with it, empty ones included.
type headRow struct {
	Row
	records int
}

// firstRows reads so many rows with text, or all that there are.
func firstRows(pass func() (rowReader, error), most int) (rows []headRow, err error) {
	reader, err := pass()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.close()) }()
	for records := 1; len(rows) < most; records++ {
		row, err := reader.next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		if !row.blank() {
			rows = append(rows, headRow{row, records})
		}
	}
	return rows, nil
}

func (r Row) blank() bool {
	for _, cell := range r.Cells {
		if !blank(cell) {
			return false
		}
	}
	// A formula without a result is not an empty cell.
	return !slices.ContainsFunc(r.Notes, func(note Note) bool { return note.Kind == FormulaFailed })
}

// Cell returns the text of a column (from 0) as the file has it; a short row ends in empty cells.
// A cell whose text is not to be stored is refused.
func (r Row) Cell(column int) (string, error) {
	text := ""
	if column >= 0 && column < len(r.Cells) {
		text = r.Cells[column]
	}
	for _, note := range r.Notes {
		if note.Column == column && note.Fault() {
			return "", &Error{Code: Code(note.Kind), Line: r.Line, Column: ColumnLetters(column), Value: text}
		}
	}
	return text, nil
}

// Extra refuses a row that has text beyond the last title, as a stray delimiter makes it.
func (r Row) Extra() error {
	for _, note := range r.Notes {
		if note.Kind == ExtraCell {
			_, err := r.Cell(note.Column)
			return err
		}
	}
	return nil
}

// Rows starts a pass over the records below the header. Passes are independent of each other.
func (t *Table) Rows() *Rows {
	reader, err := t.pass()
	if err != nil {
		return &Rows{err: err}
	}
	rows := &Rows{reader: reader, limit: t.limits.Rows, width: len(t.Header)}
	for range t.recordsPast {
		row, err := reader.next()
		if err != nil {
			rows.err = err
			return rows
		}
		if row.blank() {
			rows.empty++
		}
	}
	return rows
}

// Rows is one pass over the records of a table:
//
//	rows := table.Rows()
//	defer rows.Close()
//	for rows.Next() {
//		row := rows.Row()
//	}
//	if err := rows.Err(); err != nil {
type Rows struct {
	reader       rowReader
	row          Row
	limit, width int
	count, empty int
	err          error
}

// Next goes to the next record that holds something. It is false at the end and at the first error.
func (r *Rows) Next() bool {
	for r.err == nil {
		row, err := r.reader.next()
		switch {
		case err != nil:
			r.err = err
		case row.blank():
			r.empty++
		case r.count == r.limit:
			r.err = &Error{Code: TooManyRows, Line: row.Line, Limit: int64(r.limit)}
		default:
			r.count++
			r.row = row
			r.noteExtraCells()
			return true
		}
	}
	return false
}

func (r *Rows) noteExtraCells() {
	for column := r.width; column < len(r.row.Cells); column++ {
		if !blank(r.row.Cells[column]) {
			r.row.Notes = append(r.row.Notes, Note{Column: column, Kind: ExtraCell})
		}
	}
}

// Row returns the current record. The caller may keep it.
func (r *Rows) Row() Row { return r.row }

// Count returns how many records were returned so far.
func (r *Rows) Count() int { return r.count }

// EmptyRows returns how many rows without any text were passed over so far.
func (r *Rows) EmptyRows() int { return r.empty }

// Err returns what stopped the pass, nil at the end of the file.
func (r *Rows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// Close ends the pass. It may be called at any time.
func (r *Rows) Close() error {
	if r.reader == nil {
		return nil
	}
	return r.reader.close()
}

// ColumnLetters names a column (from 0) as spreadsheets do: A, B … Z, AA.
func ColumnLetters(column int) string {
	letters := ""
	for column++; column > 0; column = (column - 1) / 26 {
		letters = string(rune('A'+(column-1)%26)) + letters
	}
	return letters
}

// finishCell is what both formats do to a text before it is a cell: it takes off the
// protecting apostrophe, joins lines and notes what is damaged.
func finishCell(text string, column int, notes []Note) (string, []Note) {
	text = unprotect(text)
	if strings.ContainsAny(text, "\r\n") {
		text = joinLines(text)
		notes = append(notes, Note{column, LineBreakJoined})
	}
	if strings.ContainsRune(text, '\uFFFD') {
		notes = append(notes, Note{column, LettersLost})
	}
	if shortenedNumber(text) {
		notes = append(notes, Note{column, DigitsLost})
	}
	return text, notes
}
