package sheet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// What one sheet of a workbook holds, by its format.
const (
	maxSheetRows    = 1_048_576
	maxSheetColumns = 16_384
	maxSheetRunes   = 32_767
)

// maxExactDigits is how many digits of a number a spreadsheet keeps.
const maxExactDigits = 15

// Value is what is written into a cell: a text, a whole number or an amount.
type Value struct {
	text   string
	number bool
	format string // of an amount, as spreadsheets write it; empty: it is none
}

// Text is a value that no spreadsheet shall run or count with, such as a name, a reference or a phone.
func Text(text string) Value { return Value{text: text} }

// Integer is a value to count with. One of more than 15 digits is written as text, or a spreadsheet would round it.
func Integer(n int64) Value {
	text := strconv.FormatInt(n, 10)
	return Value{text: text, number: len(strings.TrimPrefix(text, "-")) <= maxExactDigits}
}

// Amount is an amount of money to count with, of so many minor units of which a whole one has ten to the power of digits; spreadsheets show it with
// these digits and the currency. One of more than 15 digits is written as text, or a spreadsheet would round it.
func Amount(minor int64, digits int, currency string) Value {
	value := Integer(minor)
	if digits > 0 {
		unsigned, negative := strings.CutPrefix(value.text, "-")
		unsigned = strings.Repeat("0", max(0, digits+1-len(unsigned))) + unsigned
		if value.text = unsigned[:len(unsigned)-digits] + "." + unsigned[len(unsigned)-digits:]; negative {
			value.text = "-" + value.text
		}
	}
	if value.number {
		value.format = `#,##0`
		if digits > 0 {
			value.format += "." + strings.Repeat("0", digits)
		}
		value.format += ` "` + strings.ReplaceAll(currency, `"`, "") + `"`
	}
	return value
}

// asNumber is what a spreadsheet keeps of a number.
func (v Value) asNumber() any {
	if v.format == "" {
		n, _ := strconv.ParseInt(v.text, 10, 64) // made by FormatInt
		return n
	}
	n, _ := strconv.ParseFloat(v.text, 64) // of at most 15 digits, which it keeps
	return n
}

// amountStyles are the styles of amounts in a workbook, by their format.
type amountStyles map[string]int

func (a amountStyles) of(file *excelize.File, format string, like excelize.Style) (id int, err error) {
	id, made := a[format]
	if !made {
		like.CustomNumFmt = &format
		if id, err = file.NewStyle(&like); err != nil {
			return 0, err
		}
		a[format] = id
	}
	return id, nil
}

func texts(titles []string) []Value {
	values := make([]Value, len(titles))
	for i, title := range titles {
		values[i] = Text(title)
	}
	return values
}

// CSVWriter writes a table as Excel opens it by a double click: UTF-8 with its mark, CRLF, and by choice the
// semicolon.
//
// A text that a spreadsheet may take for a formula (it begins with = + - @, a tab or a line break) gets an
// apostrophe in front; Open takes it off again, so that an export imports unchanged.
type CSVWriter struct {
	out       *bufio.Writer
	delimiter rune
	rows      int
}

// NewCSVWriter writes the titles and returns the writer for the rows. The delimiter is one of ; , | and tab.
func NewCSVWriter(w io.Writer, delimiter rune, titles []string) (*CSVWriter, error) {
	if !strings.ContainsRune(";,|\t", delimiter) {
		return nil, fmt.Errorf("write CSV: %q is not a delimiter", delimiter)
	}
	csv := &CSVWriter{out: bufio.NewWriterSize(w, bufferBytes), delimiter: delimiter}
	if _, err := csv.out.WriteString("\uFEFF"); err != nil {
		return nil, fmt.Errorf("write CSV: %w", err)
	}
	return csv, csv.write(texts(titles))
}

// Write adds a row.
func (c *CSVWriter) Write(values ...Value) error {
	if err := c.write(values); err != nil {
		return err
	}
	c.rows++
	return nil
}

func (c *CSVWriter) write(values []Value) error {
	for i, value := range values {
		if i > 0 {
			_, _ = c.out.WriteRune(c.delimiter)
		}
		text := value.text
		if !value.number {
			text = protect(printable(text))
		}
		if strings.ContainsAny(text, "\"\r\n\t ;,|") {
			text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		}
		_, _ = c.out.WriteString(text)
	}
	// bufio keeps its first error and returns it here.
	if _, err := c.out.WriteString("\r\n"); err != nil {
		return fmt.Errorf("write CSV row %d: %w", c.rows+1, err)
	}
	return nil
}

// Rows returns how many rows were written, without the titles.
func (c *CSVWriter) Rows() int { return c.rows }

// Abandon leaves the table as far as it was written; there is nothing to remove.
func (c *CSVWriter) Abandon() error { return nil }

// Close writes out what is buffered; the destination stays open.
func (c *CSVWriter) Close() error {
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("finish CSV: %w", err)
	}
	return nil
}

// XLSXWriter writes a table as one sheet, titles fixed on top.
//
// Texts are typed as texts and their cells formatted as text, so that = + - @ run nothing, +223… stays a phone and 000417 keeps its zeros
// when somebody edits the cell. No apostrophe is needed, save for a text that begins with one before such a character:
// it gets a second one, as in CSV, because Open takes one off.
type XLSXWriter struct {
	amounts amountStyles
	out     io.Writer
	file    *excelize.File
	stream  *excelize.StreamWriter
	text    int // the style of text cells
	rows    int // written, with the titles
	bytes   int64
	most    int64 // that Open reads of a sheet
}

// cellBytes is what the markup of a cell takes at most, its reference and its share of the row's included.
const cellBytes = 80

// writtenBytes is what a text takes at most once it is escaped.
func writtenBytes(text string) int64 {
	const longestEscape = 5 // &#34;
	bytes := len(text)
	for _, sign := range text {
		if strings.ContainsRune(`&<>"'`, sign) || unicode.IsControl(sign) {
			bytes += longestEscape - 1
		}
	}
	return int64(bytes)
}

// NewXLSXWriter writes the titles and returns the writer for the rows. Nothing reaches w before Close.
func NewXLSXWriter(w io.Writer, sheetName string, titles []string) (*XLSXWriter, error) {
	file := excelize.NewFile()
	x := &XLSXWriter{out: w, file: file, most: MaxUnzippedBytes, amounts: amountStyles{}}
	if err := x.begin(sheetName, titles); err != nil {
		return nil, errors.Join(fmt.Errorf("begin workbook: %w", err), file.Close())
	}
	return x, nil
}

func (x *XLSXWriter) begin(sheetName string, titles []string) (err error) {
	const textFormat = 49 // "@"
	if x.text, err = x.file.NewStyle(&excelize.Style{NumFmt: textFormat}); err != nil {
		return err
	}
	if err := x.file.SetSheetName("Sheet1", sheetName); err != nil {
		return err
	}
	if x.stream, err = x.file.NewStreamWriter(sheetName); err != nil {
		return err
	}
	if err := x.stream.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	return x.write(texts(titles))
}

// Write adds a row. A row or a text that the format cannot hold is refused, never cut.
func (x *XLSXWriter) Write(values ...Value) error { return x.write(values) }

func (x *XLSXWriter) write(values []Value) error {
	if x.rows == maxSheetRows {
		return &Error{Code: LineNotWritable, Limit: maxSheetRows}
	}
	cells := make([]any, len(values))
	var err error
	for i, value := range values {
		x.bytes += cellBytes + writtenBytes(value.text)
		if utf8.RuneCountInString(value.text) > maxSheetRunes {
			return &Error{Code: LineNotWritable, Line: x.rows + 1, Column: ColumnLetters(i), Limit: maxSheetRunes}
		}
		if cells[i], err = x.cell(value); err != nil {
			return fmt.Errorf("write workbook row %d: %w", x.rows+1, err)
		}
	}
	if x.bytes > x.most {
		return &Error{Code: LineNotWritable, Line: x.rows + 1, Limit: int64(x.rows)}
	}
	if err := x.stream.SetRow("A"+strconv.Itoa(x.rows+1), cells); err != nil {
		return errors.Join(fmt.Errorf("write workbook row %d: %w", x.rows+1, err), x.Abandon())
	}
	x.rows++
	return nil
}

func (x *XLSXWriter) cell(value Value) (any, error) {
	if value.format != "" {
		style, err := x.amounts.of(x.file, value.format, excelize.Style{})
		return excelize.Cell{StyleID: style, Value: value.asNumber()}, err
	}
	if value.number {
		return value.asNumber(), nil
	}
	if value.text == "" {
		return nil, nil
	}
	text := printable(value.text)
	if strings.HasPrefix(text, "'") {
		text = protect(text)
	}
	return excelize.Cell{StyleID: x.text, Value: text}, nil
}

// Rows returns how many rows were written, without the titles.
func (x *XLSXWriter) Rows() int { return x.rows - 1 }

// Abandon ends a workbook that is not to be written, and removes what was gathered of it on disk. After Close
// it does nothing.
func (x *XLSXWriter) Abandon() error {
	if err := x.file.Close(); err != nil {
		return fmt.Errorf("abandon workbook: %w", err)
	}
	return nil
}

// Close writes the workbook out; the destination stays open.
func (x *XLSXWriter) Close() error {
	err := x.stream.Flush()
	if err == nil {
		err = x.file.Write(x.out)
	}
	if err = errors.Join(err, x.file.Close()); err != nil {
		return fmt.Errorf("finish workbook: %w", err)
	}
	return nil
}

// printable drops control characters, which XML cannot hold and no reader shows; tab and line break stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' {
			return -1
		}
		return r
	}, text)
}
