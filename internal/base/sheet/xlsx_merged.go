package sheet

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A merged block shows one value over several cells and stores it in the first of them only. Whether the others mean the
// same or nothing, nobody but a person knows: they are noted, so that a column that is read refuses them.

// mostMergedSpans bounds the memory of merged blocks.
const mostMergedSpans = 1 << 20

// span are lines of a sheet, both ends included.
type span struct{ from, to int32 }

// mergedCells are the lines, by column, whose cell belongs to a merged block without being its first one.
type mergedCells [][]span

// readMerged reads the list of merged blocks, which stands behind the rows that it is about. A sheet that cannot be read up
// to there is left to the pass over its rows, which meets the same fault and names the place.
func (w *workbook) readMerged() (err error) {
	part, err := w.openPart(w.sheet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	reader := bufio.NewReaderSize(part, bufferBytes)
	for ended := false; !ended; {
		piece, err := reader.ReadSlice('>')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil //nolint:nilerr // see above
		}
		tag := piece[bytes.LastIndexByte(piece, '<')+1:]
		ended = bytes.HasPrefix(tag, []byte("/")) && bytes.HasSuffix(tag, []byte("sheetData>"))
	}
	decoder := xml.NewDecoder(reader)
	for spans := 0; ; {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			w.merged.sort()
			return nil
		}
		if err != nil {
			return broken(fmt.Errorf("behind the rows: %w", err))
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "mergeCell" {
			if spans += w.merged.add(attribute(start, "ref"), w.limits.Columns); spans > mostMergedSpans {
				return broken(fmt.Errorf("more than %d merged cells", mostMergedSpans))
			}
		}
	}
}

// add notes a block such as B2:C5, without its first cell, and says how many spans that makes.
func (m *mergedCells) add(block string, columns int) (spans int) {
	first, last, _ := strings.Cut(block, ":")
	fromColumn, fromLine, known := cellOf(first)
	toColumn, toLine, ends := cellOf(last)
	if !known || !ends {
		return 0
	}
	for column := fromColumn; column <= min(toColumn, columns-1); column++ {
		from := fromLine
		if column == fromColumn {
			from++
		}
		if from > toLine {
			continue
		}
		for len(*m) <= column {
			*m = append(*m, nil)
		}
		(*m)[column] = append((*m)[column], span{int32(from), int32(toLine)})
		spans++
	}
	return spans
}

func cellOf(reference string) (column, line int, ok bool) {
	column, ok = columnOf(reference)
	line, err := strconv.Atoi(strings.TrimLeft(reference, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	return column, line, ok && err == nil && line > 0 && line <= maxSheetRows
}

// sort puts the spans of each column in order and joins those that overlap, so that one look finds a line.
func (m mergedCells) sort() {
	for column, spans := range m {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		joined := spans[:0]
		for _, s := range spans {
			if last := len(joined) - 1; last >= 0 && s.from <= joined[last].to {
				joined[last].to = max(joined[last].to, s.to)
			} else {
				joined = append(joined, s)
			}
		}
		m[column] = joined
	}
}

// note notes the cells of a row that a merged block covers.
func (m mergedCells) note(row *Row) {
	for column, spans := range m {
		_, covered := slices.BinarySearchFunc(spans, int32(row.Line), func(s span, line int32) int {
			switch {
			case s.to < line:
				return -1
			case s.from > line:
				return 1
			}
			return 0
		})
		if covered {
			row.Notes = append(row.Notes, Note{column, MergedCell})
		}
	}
}
