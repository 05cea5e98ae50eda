package sheet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	sampleBytes   = 256 << 10 // of text on which the delimiters are tried
	sampleRecords = 200
)

// delimiters are tried in this order; the first wins where two fit equally well.
var delimiters = []byte{';', '\t', ',', '|'}

// csvLayout is how the records of a CSV file are cut.
type csvLayout struct {
	encoding  Encoding
	delimiter byte
	sepLine   bool
}

func (t *Table) openCSV(source io.ReaderAt, size int64) error {
	encoding, err := detectEncoding(source, size)
	if err != nil {
		return err
	}
	layout := csvLayout{encoding: encoding}
	text := decoded(source, size, encoding)
	sep, found, err := readSepLine(text)
	if err != nil {
		return err
	}
	columns := 2 // a delimiter that the file names is reported whatever it yields
	if layout.sepLine = found; found {
		layout.delimiter = sep
	} else if layout.delimiter, columns, err = tryDelimiters(text, t.limits); err != nil {
		return err
	}
	t.Found = Found{Format: CSV, Encoding: encoding, SepLine: found}
	if columns > 1 {
		t.Found.Delimiter = rune(layout.delimiter)
	}
	add := func(delimiter byte) {
		layout := layout
		layout.delimiter = delimiter
		t.passes = append(t.passes, csvPass{rune(delimiter), func() (rowReader, error) { return newCSVReader(source, size, layout, t.limits) }})
	}
	add(layout.delimiter)
	for _, delimiter := range delimiters {
		if !layout.sepLine && delimiter != layout.delimiter {
			add(delimiter)
		}
	}
	t.pass = t.passes[0].pass
	return nil
}

// sepLine is the first line by which Excel is told the separator, quoted or not, sometimes filled up with
// separators by a program that took it for a row.
var sepLine = regexp.MustCompile(`^(?i:"?sep=([^"]?)"?)([^0-9A-Za-z]*)$`)

// readSepLine takes the sep line off the text if there is one.
func readSepLine(text *bufio.Reader) (delimiter byte, found bool, err error) {
	head, err := text.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, fmt.Errorf("read the first line: %w", err)
	}
	lower := bytes.ToLower(bytes.TrimPrefix(head, []byte(`"`)))
	if !bytes.HasPrefix(lower, []byte("sep=")) {
		return 0, false, nil
	}
	line, err := readLine(text)
	if err != nil {
		return 0, false, err
	}
	match := sepLine.FindStringSubmatch(line)
	if match == nil || match[1] == "" || !usableDelimiter(match[1]) {
		return 0, false, &Error{Code: BadSepLine, Line: 1, Value: firstRunes(line, 40)}
	}
	return match[1][0], true, nil
}

func usableDelimiter(text string) bool {
	return len(text) == 1 && (text == "\t" || text[0] >= ' ' && text[0] < 0x7f) &&
		!strings.ContainsAny(text, " \"'+-.@=0123456789") && strings.ToLower(text) == strings.ToUpper(text)
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// readLine reads up to and over the next line end of any kind.
func readLine(text *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < sampleBytes {
		b, err := text.ReadByte()
		if errors.Is(err, io.EOF) || b == '\n' {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the first line: %w", err)
		}
		if b == '\r' {
			if next, _ := text.Peek(1); len(next) == 1 && next[0] == '\n' {
				_, _ = text.Discard(1)
			}
			break
		}
		line = append(line, b)
	}
	return string(line), nil
}

// tryDelimiters cuts the beginning of the file with each delimiter, quotes respected, and takes the one by which
// the most rows are as wide as the header; then the one that makes more columns.
func tryDelimiters(text io.Reader, limits Limits) (best byte, columns int, err error) {
	sample, err := io.ReadAll(io.LimitReader(text, sampleBytes))
	if err != nil {
		return 0, 0, fmt.Errorf("read the beginning of the file: %w", err)
	}
	cut := len(sample) == sampleBytes
	best, columns = delimiters[0], 1
	bestFit := -1.0
	for _, delimiter := range delimiters {
		width, fit := tryDelimiter(sample, cut, delimiter, limits)
		if width > 1 && (fit > bestFit || fit == bestFit && width > columns) {
			best, columns, bestFit = delimiter, width, fit
		}
	}
	return best, columns, nil
}

func tryDelimiter(sample []byte, cut bool, delimiter byte, limits Limits) (width int, fit float64) {
	reader := &csvReader{text: bufio.NewReader(bytes.NewReader(sample)), delimiter: delimiter, limits: limits, line: 1}
	records, sum := 0, 0.0
	for records < sampleRecords {
		row, err := reader.next()
		if err != nil {
			// A wrong delimiter tears quoted cells apart; the right one may meet one torn row. Only the score tells.
			if !errors.Is(err, io.EOF) && !cut {
				records++
			}
			break
		}
		if atEnd := reader.atEnd(); row.blank() || cut && atEnd {
			continue
		}
		records++
		cells := reader.width
		if width == 0 {
			width = cells
		}
		switch {
		case cells == width:
			sum++
		case cells > 1 && cells < width:
			sum += 0.5 // some programs leave out the empty cells at the end
		}
	}
	return width, sum / float64(max(records, 1))
}

// csvReader cuts a text that is UTF-8 by now into records. Delimiter, quote and line ends are ASCII, so that bytes do.
type csvReader struct {
	text      *bufio.Reader
	delimiter byte
	limits    Limits
	line      int // of the next byte
	done      bool

	record []byte // the cells of the record, one behind the other
	ends   []int
	width  int // of the last record, with its empty cells
}

func newCSVReader(source io.ReaderAt, size int64, layout csvLayout, limits Limits) (*csvReader, error) {
	reader := &csvReader{text: decoded(source, size, layout.encoding), delimiter: layout.delimiter, limits: limits, line: 1}
	if layout.sepLine {
		if _, err := readLine(reader.text); err != nil {
			return nil, err
		}
		reader.line++
	}
	return reader, nil
}

func (c *csvReader) close() error { return nil }

// atEnd reports whether nothing is left to read.
func (c *csvReader) atEnd() bool {
	_, err := c.text.Peek(1)
	return err != nil
}

// cellEnd is what stands behind a cell.
type cellEnd int

const (
	endOfCell cellEnd = iota
	endOfRecord
	endOfFile
)

func (c *csvReader) next() (Row, error) {
	if c.done || c.atEnd() {
		// A read error is kept by the reader and comes out here.
		if _, err := c.text.Peek(1); err != nil && !errors.Is(err, io.EOF) {
			return Row{}, fmt.Errorf("read line %d: %w", c.line, err)
		}
		return Row{}, io.EOF
	}
	c.record, c.ends, c.width = c.record[:0], c.ends[:0], 0
	start := c.line
	for {
		from := len(c.record)
		end, err := c.cell()
		if err != nil {
			return Row{}, err
		}
		if err := c.endCell(from, start); err != nil {
			return Row{}, err
		}
		if end != endOfCell {
			c.done = end == endOfFile
			return c.row(start), nil
		}
	}
}

func (c *csvReader) endCell(from, line int) error {
	c.width++
	cell := c.record[from:]
	if utf8.RuneCount(cell) > c.limits.CellRunes {
		return &Error{Code: CellTooLong, Line: line, Column: ColumnLetters(c.width - 1), Limit: int64(c.limits.CellRunes)}
	}
	if c.width > c.limits.Columns {
		// A spreadsheet may write thousands of empty cells behind the last column; they are no data.
		if !blank(string(cell)) {
			return &Error{Code: TooManyColumns, Line: line, Limit: int64(c.limits.Columns)}
		}
		c.record = c.record[:from]
		return nil
	}
	c.ends = append(c.ends, len(c.record))
	return nil
}

// row copies the record once; its cells share the copy.
func (c *csvReader) row(line int) Row {
	text := string(c.record)
	row := Row{Line: line, Cells: make([]string, len(c.ends))}
	from := 0
	for i, end := range c.ends {
		row.Cells[i], row.Notes = finishCell(text[from:end], i, row.Notes)
		from = end
	}
	return row
}

// read returns the next byte, with every kind of line end as a line feed.
func (c *csvReader) read() (byte, error) {
	b, err := c.text.ReadByte()
	if err != nil {
		return 0, err
	}
	if b == '\r' {
		if next, _ := c.text.Peek(1); len(next) == 1 && next[0] == '\n' {
			_, _ = c.text.Discard(1)
		}
		b = '\n'
	}
	if b == '\n' {
		c.line++
	}
	return b, nil
}

// cell appends one cell to the record and reads over what ends it.
func (c *csvReader) cell() (cellEnd, error) {
	from := len(c.record)
	opened := c.line
	for {
		b, err := c.read()
		if errors.Is(err, io.EOF) {
			return endOfFile, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read line %d: %w", c.line, err)
		}
		switch {
		case b == c.delimiter:
			return endOfCell, nil
		case b == '\n':
			return endOfRecord, nil
		case b == '"' && len(bytes.Trim(c.record[from:], " ")) == 0:
			c.record = c.record[:from]
			return c.quotedCell(from, opened)
		}
		c.record = append(c.record, b)
		if c.tooLong(from) {
			return 0, c.refuseLong(opened)
		}
	}
}

// quotedCell reads on behind an opening quote. A quote inside that is not doubled is kept as a letter if the cell holds neither
// a delimiter nor a line end: then there is only one way to read the row. Else the row is refused.
func (c *csvReader) quotedCell(from, opened int) (cellEnd, error) {
	stray, parted := false, false
	for {
		b, err := c.read()
		if errors.Is(err, io.EOF) {
			return 0, &Error{Code: QuoteNotClosed, Line: opened}
		}
		if err != nil {
			return 0, fmt.Errorf("read line %d: %w", c.line, err)
		}
		if b == '"' {
			if next, _ := c.text.Peek(1); len(next) == 1 && next[0] == '"' {
				_, _ = c.text.Discard(1)
			} else if end, closed := c.closing(); closed {
				return end, nil
			} else {
				stray = true
			}
		}
		parted = parted || b == c.delimiter || b == '\n'
		if stray && parted {
			return 0, &Error{Code: StrayQuote, Line: opened}
		}
		c.record = append(c.record, b)
		if c.tooLong(from) {
			return 0, c.refuseLong(opened)
		}
	}
}

// closing reads over what ends a cell behind its closing quote, spaces allowed, if that is what stands there.
func (c *csvReader) closing() (cellEnd, bool) {
	const maxSpaces = 64
	ahead, _ := c.text.Peek(maxSpaces)
	rest := bytes.TrimLeft(ahead, " ")
	spaces := len(ahead) - len(rest)
	switch {
	case len(rest) == 0 && len(ahead) == maxSpaces:
		return 0, false
	case len(rest) > 0 && rest[0] != c.delimiter && rest[0] != '\n' && rest[0] != '\r':
		return 0, false
	}
	_, _ = c.text.Discard(spaces)
	b, err := c.read()
	switch {
	case err != nil:
		return endOfFile, true
	case b == '\n':
		return endOfRecord, true
	default:
		return endOfCell, true
	}
}

// tooLong stops a cell that never ends long before its characters are counted.
func (c *csvReader) tooLong(from int) bool {
	return len(c.record)-from > c.limits.CellRunes*utf8.UTFMax
}

func (c *csvReader) refuseLong(line int) error {
	return &Error{Code: CellTooLong, Line: line, Column: ColumnLetters(c.width), Limit: int64(c.limits.CellRunes)}
}
