package sheet_test

import (
	"archive/zip"
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"usher/internal/base/sheet"
)

func printouts() []sheet.Printout {
	page := sheet.Printout{
		Name: "Par place", Preface: []string{"Salle 1 & 2", "Version 2"}, Titles: []string{"Place", "Nom", "Rang"},
		Widths: []float64{9, 40, 8}, RowHeight: 24, LeftFooter: "A & B",
		Rows: [][]sheet.Value{
			{sheet.Text("007"), sheet.Text(`=HYPERLINK("http://example.org")`), sheet.Integer(1)},
			{sheet.Text("1E5"), sheet.Text("N'Guessan\x00 ɔ̀"), sheet.Integer(2)},
			{sheet.Text(""), sheet.Text("'=x"), sheet.Integer(3)},
		},
	}
	other := page
	other.Name = "D'après le nom"
	return []sheet.Printout{page, other}
}

func TestWritePrintouts_ReadBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sheet.WritePrintouts(&out, printouts()...); err != nil {
		t.Fatal(err)
	}
	file, err := excelize.OpenReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if got := strings.Join(file.GetSheetList(), "|"); got != "Par place|D'après le nom" {
		t.Errorf("sheets %s", got)
	}
	for cell, want := range map[string]string{
		"A1": "Salle 1 & 2", "A3": "Place", "A4": "007", "B4": `=HYPERLINK("http://example.org")`, "A5": "1E5", "B5": "N'Guessan ɔ̀", "B6": "''=x",
	} {
		if got, err := file.GetCellValue("Par place", cell); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", cell, got, want, err)
		}
		if formula, err := file.GetCellFormula("Par place", cell); err != nil || formula != "" {
			t.Errorf("%s runs %q (%v)", cell, formula, err)
		}
	}
	for cell, want := range map[string]excelize.CellType{"A4": excelize.CellTypeInlineString, "A5": excelize.CellTypeInlineString, "C4": excelize.CellTypeUnset} {
		if got, err := file.GetCellType("Par place", cell); err != nil || got != want {
			t.Errorf("%s has the type %v, want %v (%v)", cell, got, want, err)
		}
	}
	if names := file.GetDefinedName(); len(names) != 2 || names[1].RefersTo != "'D''après le nom'!$3:$3" {
		t.Errorf("repeated titles: %+v", names)
	}
	if layout, err := file.GetPageLayout("Par place"); err != nil || *layout.FitToWidth != 1 || *layout.FitToHeight != 0 || *layout.Size != 9 {
		t.Errorf("layout %+v, %v", layout, err)
	}
	if panes, err := file.GetPanes("Par place"); err != nil || !panes.Freeze || panes.YSplit != 3 {
		t.Errorf("panes %+v, %v", panes, err)
	}
	if footer, err := file.GetHeaderFooter("Par place"); err != nil || footer.OddFooter != "&LA && B&R&P / &N" {
		t.Errorf("footer %+v, %v", footer, err)
	}
}

// TestWritePrintouts_SameBytes: often enough that parts in any order would differ once.
func TestWritePrintouts_SameBytes(t *testing.T) {
	t.Parallel()
	var first bytes.Buffer
	for i := range 20 {
		var out bytes.Buffer
		if err := sheet.WritePrintouts(&out, printouts()...); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out
		} else if !bytes.Equal(first.Bytes(), out.Bytes()) {
			t.Fatalf("the same input gives other bytes in try %d", i+1)
		}
	}
}

func TestWritePrintouts_RefusesWhatNoCellHolds(t *testing.T) {
	t.Parallel()
	page := printouts()[0]
	page.Rows = [][]sheet.Value{{sheet.Text(strings.Repeat("x", 32_768))}}
	if err := sheet.WritePrintouts(&bytes.Buffer{}, page); err == nil {
		t.Error("a text that no cell holds was written")
	}
}

// TestWritePrintouts_ColumnsInOrder: a workbook whose columns are out of order is repaired by spreadsheet programs, with a warning.
func TestWritePrintouts_ColumnsInOrder(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sheet.WritePrintouts(&out, printouts()...); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	part, err := archive.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(part)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range regexp.MustCompile(`<col min="(\d+)"`).FindAllSubmatch(content, -1) {
		got = append(got, string(found[1]))
	}
	if strings.Join(got, " ") != "1 2 3" {
		t.Errorf("columns in the order %v", got)
	}
}
