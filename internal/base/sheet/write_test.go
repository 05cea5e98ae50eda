package sheet_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"usher/internal/base/sheet"
)

// tableWriter is what both writers offer.
type tableWriter interface {
	Write(values ...sheet.Value) error
	Rows() int
	Close() error
}

func export(t testing.TB, format string, titles []string, rows [][]sheet.Value) string {
	t.Helper()
	var out bytes.Buffer
	var writer tableWriter
	var err error
	switch format {
	case "xlsx":
		writer, err = sheet.NewXLSXWriter(&out, "Candidats", titles)
	default:
		writer, err = sheet.NewCSVWriter(&out, rune(format[0]), titles)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := writer.Write(row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if writer.Rows() != len(rows) {
		t.Fatalf("wrote %d rows, says %d", len(rows), writer.Rows())
	}
	return out.String()
}

var awkward = []string{
	`=HYPERLINK("http://example.org","x")`, "@Awa", "-Jean", "+33639980012", "+22376543210", "'=1+1", "''=1+1", "'Awa", "l'Hôpital", "N’Guessan",
	`Awa "Nana"`, "Salle B12; bat. 2, 1er étage", "000417", "01000", "9912140633506421", "Kɔ\u0300ɔ\u0300nyɛ\u0301", "", "a_x0041_b", "TRUE", "2008-04-11", "12,50", "|",
	"\t=1+1", "sep=;",
}

func TestWriters_OwnExportIsReadBackUnchanged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{";", ",", "\t", "|", "xlsx"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var rows [][]sheet.Value
			var want [][]string
			for _, text := range awkward {
				rows = append(rows, []sheet.Value{sheet.Text(text), sheet.Text("Né à Abidjan"), sheet.Integer(-10000)})
				want = append(want, []string{text, "Né à Abidjan", "-10000"})
			}
			table := open(t, export(t, format, []string{"=nom", "lieu", "montant"}, rows))
			wantEqual(t, "header", []string{"=nom", "lieu", "montant"}, table.Header)
			wantEqual(t, "cells", want, mustRead(t, table).cells())
		})
	}
}

func TestCSVWriter_BytesAsExcelWantsThem(t *testing.T) {
	t.Parallel()
	got := export(t, ";", []string{"nom", "tél", "montant"}, [][]sheet.Value{
		{sheet.Text("=1+1"), sheet.Text("+22376543210"), sheet.Integer(-500)},
		{sheet.Text("Awa \"Nana\"\x07"), sheet.Text(""), sheet.Integer(9912140633506421)},
	})
	want := "\uFEFFnom;tél;montant\r\n'=1+1;'+22376543210;-500\r\n\"Awa \"\"Nana\"\"\";;9912140633506421\r\n"
	wantEqual(t, "bytes", want, got)
}

func TestXLSXWriter_TextsAreTextsAndNumbersNumbers(t *testing.T) {
	t.Parallel()
	content := export(t, "xlsx", []string{"nom", "nina", "montant"}, [][]sheet.Value{
		{sheet.Text("=1+1"), sheet.Integer(9912140633506421), sheet.Integer(10000)},
	})
	file, err := excelize.OpenReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for cell, want := range map[string]struct {
		text string
		kind excelize.CellType
	}{
		"A2": {"=1+1", excelize.CellTypeInlineString},
		"B2": {"9912140633506421", excelize.CellTypeInlineString},
		"C2": {"10000", excelize.CellTypeUnset},
	} {
		text, err := file.GetCellValue("Candidats", cell)
		wantEqual(t, cell, want.text, text)
		wantEqual(t, "error", nil, err)
		kind, err := file.GetCellType("Candidats", cell)
		wantEqual(t, cell+"'s type", want.kind, kind)
		wantEqual(t, "error", nil, err)
		formula, err := file.GetCellFormula("Candidats", cell)
		wantEqual(t, cell+"'s formula", "", formula)
		wantEqual(t, "error", nil, err)
	}
}

func TestXLSXWriter_SavedAgainByAnotherProgramIsReadUnchanged(t *testing.T) {
	t.Parallel()
	var rows [][]sheet.Value
	var want [][]string
	for _, text := range awkward {
		rows = append(rows, []sheet.Value{sheet.Text("x"), sheet.Text(text)})
		want = append(want, []string{"x", text})
	}
	file, err := excelize.OpenReader(strings.NewReader(export(t, "xlsx", []string{"a", "b"}, rows)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// A change makes the library write the sheet anew.
	if err := file.SetCellValue("Candidats", "D1", "ajout"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := file.Write(&out); err != nil {
		t.Fatal(err)
	}
	for i, row := range mustRead(t, open(t, out.String())).Rows {
		text, err := row.Cell(1)
		wantEqual(t, "text", want[i][1], text)
		wantEqual(t, "error", nil, err)
	}
}

func TestXLSXWriter_TextThatDoesNotFitIsRefusedAndNotCut(t *testing.T) {
	t.Parallel()
	writer, err := sheet.NewXLSXWriter(&bytes.Buffer{}, "Candidats", []string{"nom"})
	if err != nil {
		t.Fatal(err)
	}
	_ = wantRefusal(t, writer.Write(sheet.Text(strings.Repeat("é", 32_768))), sheet.LineNotWritable, 2)
	wantEqual(t, "rows", 0, writer.Rows())
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }

func TestWriters_AFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	csv, err := sheet.NewCSVWriter(fullDisk{}, ';', []string{"nom"})
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.Close(); err == nil {
		t.Error("CSV: no error")
	}
	xlsx, err := sheet.NewXLSXWriter(fullDisk{}, "Candidats", []string{"nom"})
	if err != nil {
		t.Fatal(err)
	}
	if err := xlsx.Close(); err == nil {
		t.Error("XLSX: no error")
	}
	if _, err := sheet.NewCSVWriter(fullDisk{}, 'x', nil); err == nil {
		t.Error("a letter was taken for a delimiter")
	}
}
