package sheet

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// Printout is a sheet of a workbook that is made to be printed: A4, as wide as the paper, the titles
// fixed on the screen and repeated on each page.
type Printout struct {
	Name       string   // of the sheet: at most 31 characters, none of : \ / ? * [ ]
	Preface    []string // lines above the titles
	Titles     []string
	Widths     []float64 // of the columns, in characters
	RowHeight  float64   // of the rows under the titles, in points, at least: a text that needs more lines has them
	Rows       [][]Value
	LeftFooter string
}

// Heights, in points. The last is the greatest that the format knows.
const (
	lineHeight    = 15.0
	prefaceHeight = 18.0
	titlesHeight  = 32.0
	mostHeight    = 409.0
)

// WritePrintouts writes a workbook of sheets to be printed. Texts are texts, as XLSXWriter writes them. The same input
// gives the same bytes.
func WritePrintouts(w io.Writer, sheets ...Printout) error {
	file := excelize.NewFile()
	var unsorted bytes.Buffer
	err := addPrintouts(file, sheets)
	if err == nil {
		err = file.Write(&unsorted)
	}
	if err == nil {
		err = sortParts(w, unsorted.Bytes())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write workbook: %w", err)
	}
	return nil
}

// sortParts writes a workbook with its parts in the order of their names: the library writes sheets in any order.
func sortParts(w io.Writer, workbook []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(workbook), int64(len(workbook)))
	if err != nil {
		return err
	}
	slices.SortFunc(archive.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	sorted := zip.NewWriter(w)
	for _, part := range archive.File {
		if err := sorted.Copy(part); err != nil {
			return err
		}
	}
	return sorted.Close()
}

func addPrintouts(file *excelize.File, sheets []Printout) error {
	styles, err := printoutStyles(file)
	if err != nil {
		return err
	}
	for i, sheet := range sheets {
		if i == 0 {
			err = file.SetSheetName("Sheet1", sheet.Name)
		} else {
			_, err = file.NewSheet(sheet.Name)
		}
		if err != nil {
			return err
		}
		if err := addPrintout(file, sheet, styles); err != nil {
			return fmt.Errorf("sheet %s: %w", sheet.Name, err)
		}
	}
	return nil
}

type printoutStyle struct {
	preface, first, titles, text, number int

	amounts amountStyles
	amount  excelize.Style // what they are like
}

func printoutStyles(file *excelize.File) (styles printoutStyle, err error) {
	const textFormat = 49 // "@"
	lines := []excelize.Border{
		{Type: "left", Color: "808080", Style: 1},
		{Type: "right", Color: "808080", Style: 1},
		{Type: "top", Color: "808080", Style: 1},
		{Type: "bottom", Color: "808080", Style: 1},
	}
	wrapped := &excelize.Alignment{Vertical: "center", WrapText: true}
	styles.amounts, styles.amount = amountStyles{}, excelize.Style{Border: lines, Alignment: wrapped}
	for _, made := range []struct {
		id    *int
		style excelize.Style
	}{
		{&styles.first, excelize.Style{NumFmt: textFormat, Font: &excelize.Font{Bold: true, Size: 14}, Alignment: wrapped}},
		{&styles.preface, excelize.Style{NumFmt: textFormat, Font: &excelize.Font{Size: 11}, Alignment: wrapped}},
		{&styles.titles, excelize.Style{
			NumFmt: textFormat, Font: &excelize.Font{Bold: true}, Border: lines, Alignment: wrapped,
			Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"E4E7EC"}},
		}},
		{&styles.text, excelize.Style{NumFmt: textFormat, Border: lines, Alignment: wrapped}},
		{&styles.number, excelize.Style{Border: lines, Alignment: wrapped}},
	} {
		if *made.id, err = file.NewStyle(&made.style); err != nil {
			return styles, err
		}
	}
	return styles, nil
}

func addPrintout(file *excelize.File, sheet Printout, styles printoutStyle) error {
	titlesAt := len(sheet.Preface) + 1
	if err := layPaper(file, sheet, titlesAt); err != nil {
		return err
	}
	stream, err := file.NewStreamWriter(sheet.Name)
	if err != nil {
		return err
	}
	for i := len(sheet.Widths) - 1; i >= 0; i-- { // the library puts each before those that it has
		if err := stream.SetColWidth(i+1, i+1, sheet.Widths[i]); err != nil {
			return err
		}
	}
	panes := &excelize.Panes{Freeze: true, YSplit: titlesAt, TopLeftCell: "A" + strconv.Itoa(titlesAt+1), ActivePane: "bottomLeft"}
	if err := stream.SetPanes(panes); err != nil {
		return err
	}
	if err := writePrintout(file, stream, sheet, styles); err != nil {
		return err
	}
	return stream.Flush()
}

func writePrintout(file *excelize.File, stream *excelize.StreamWriter, sheet Printout, styles printoutStyle) error {
	row := 0
	write := func(height float64, cells ...any) error {
		row++
		if row > maxSheetRows {
			return &Error{Code: LineNotWritable, Limit: maxSheetRows}
		}
		for i, cell := range cells {
			if text, _ := cell.(excelize.Cell).Value.(string); utf8.RuneCountInString(text) > maxSheetRunes {
				return &Error{Code: LineNotWritable, Line: row, Column: ColumnLetters(i), Limit: maxSheetRunes}
			}
		}
		return stream.SetRow("A"+strconv.Itoa(row), cells, excelize.RowOpts{Height: min(height, mostHeight)})
	}
	for i, line := range sheet.Preface {
		style := styles.preface
		if i == 0 {
			style = styles.first
		}
		if err := write(prefaceHeight*linesOf(line, sheet.width()), textCell(line, style)); err != nil {
			return err
		}
		if err := stream.MergeCell("A"+strconv.Itoa(row), ColumnLetters(len(sheet.Titles)-1)+strconv.Itoa(row)); err != nil {
			return err
		}
	}
	titles := make([]any, len(sheet.Titles))
	for i, title := range sheet.Titles {
		titles[i] = textCell(title, styles.titles)
	}
	if err := write(titlesHeight, titles...); err != nil {
		return err
	}
	for _, values := range sheet.Rows {
		height := sheet.RowHeight
		for i, value := range values {
			height = max(height, lineHeight*linesOf(value.text, sheet.Widths[i]))
		}
		cells, err := styles.cells(file, values)
		if err != nil {
			return err
		}
		if err := write(height, cells...); err != nil {
			return err
		}
	}
	return nil
}

func (p Printout) width() (sum float64) {
	for _, width := range p.Widths {
		sum += width
	}
	return sum
}

// linesOf is how many lines a text takes in a column at most, with some room for words that do not fit.
func linesOf(text string, width float64) float64 {
	const wasted = 0.8 // of a line, where words break
	return max(1, math.Ceil(float64(utf8.RuneCountInString(text))/(width*wasted)))
}

func (s printoutStyle) cells(file *excelize.File, values []Value) ([]any, error) {
	cells := make([]any, len(values))
	for i, value := range values {
		switch {
		case value.format != "":
			style, err := s.amounts.of(file, value.format, s.amount)
			if err != nil {
				return nil, err
			}
			cells[i] = excelize.Cell{StyleID: style, Value: value.asNumber()}
		case value.number:
			cells[i] = excelize.Cell{StyleID: s.number, Value: value.asNumber()}
		default:
			cells[i] = textCell(value.text, s.text)
		}
	}
	return cells, nil
}

func textCell(text string, style int) excelize.Cell {
	if text = printable(text); strings.HasPrefix(text, "'") {
		text = protect(text)
	}
	return excelize.Cell{StyleID: style, Value: text}
}

// layPaper says how the sheet is printed: upright on A4, all columns on one page, the titles on each.
func layPaper(file *excelize.File, sheet Printout, titlesAt int) error {
	a4, upright, wide, high, fit := 9, "portrait", 1, 0, true
	if err := file.SetPageLayout(sheet.Name, &excelize.PageLayoutOptions{Size: &a4, Orientation: &upright, FitToWidth: &wide, FitToHeight: &high}); err != nil {
		return err
	}
	if err := file.SetSheetProps(sheet.Name, &excelize.SheetPropsOptions{FitToPage: &fit}); err != nil {
		return err
	}
	footer := &excelize.HeaderFooterOptions{OddFooter: "&L" + strings.ReplaceAll(sheet.LeftFooter, "&", "&&") + "&R&P / &N"}
	if err := file.SetHeaderFooter(sheet.Name, footer); err != nil {
		return err
	}
	row := strconv.Itoa(titlesAt)
	return file.SetDefinedName(&excelize.DefinedName{
		Name: "_xlnm.Print_Titles", Scope: sheet.Name,
		RefersTo: "'" + strings.ReplaceAll(sheet.Name, "'", "''") + "'!$" + row + ":$" + row,
	})
}
