package sheet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"usher/internal/base/sheet"
)

var fuzzLimits = sheet.Limits{FileBytes: 1 << 20, UnzippedBytes: 4 << 20, Rows: 500, Columns: 20, CellRunes: 200}

// readAnything holds for every input: no panic, no more than the limits allow, text that is valid, two passes that agree.
func readAnything(t *testing.T, content string) {
	table, err := openWith(content, fuzzLimits)
	if err != nil {
		_ = err.Error()
		return
	}
	p := read(table)
	if len(p.Rows) > fuzzLimits.Rows {
		t.Fatalf("%d rows", len(p.Rows))
	}
	line := table.Found.HeaderLine
	for _, row := range p.Rows {
		if len(row.Cells) > fuzzLimits.Columns {
			t.Fatalf("%d columns", len(row.Cells))
		}
		if table.Found.Format == sheet.CSV && row.Line <= line {
			t.Fatalf("line %d follows line %d", row.Line, line)
		}
		line = row.Line
		for i, cell := range row.Cells {
			if table.Found.Format == sheet.CSV && !utf8.ValidString(cell) || utf8.RuneCountInString(cell) > fuzzLimits.CellRunes {
				t.Fatalf("line %d, cell %d: %q", row.Line, i, cell)
			}
			if text, err := row.Cell(i); err == nil && strings.ContainsRune(text, '\uFFFD') {
				t.Fatalf("line %d gives out a lost letter: %q", row.Line, text)
			}
			if text := sheet.Clean(cell); text != sheet.Clean(text) {
				t.Fatalf("%q is not clean", text)
			}
			_, _, _ = sheet.DayFirst.Instant(cell, time.UTC)
		}
	}
	again := read(table)
	wantEqual(t, "second pass", p.Rows, again.Rows)
	if fmt.Sprint(p.Err) != fmt.Sprint(again.Err) || p.Empty != again.Empty {
		t.Fatalf("the passes end differently: %v, %v", p.Err, again.Err)
	}
	findAnyHeader(t, table)
}

// findAnyHeader holds for every input: the titles are among the first rows, and every row with text stands above or below them.
func findAnyHeader(t *testing.T, table *sheet.Table) {
	delimiter, first := table.Found.Delimiter, table.Found.HeaderLine
	rows := len(read(table).Rows)
	columns, err := table.FindHeader(examFields())
	if err != nil {
		return
	}
	if !columns.Has("family_name") || table.Found.RowsAbove >= sheet.MaxHeaderRows || table.Found.HeaderLine < first {
		t.Fatalf("the titles %q were found as %+v", table.Header, table.Found)
	}
	p := read(table)
	if same := table.Found.Delimiter == delimiter; same && p.Err == nil && len(p.Rows)+table.Found.RowsAbove != rows {
		t.Fatalf("of %d rows %d are above the titles and %d below", rows, table.Found.RowsAbove, len(p.Rows))
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"\uFEFFdossier;nom;né le\r\n000417;\"Diop\nFall\";11/04/2008\r\n",
		"\"sep=,\"\nnom,prénom\n\"Awa \"\"Nana\"\"\",x\n",
		"nom;pr\xE9nom\rKe\xEFta;Awa\r",
		utf16Text("nom\tprénom\nTraoré\tAmi\n", true, false),
		"a|b\n\"c \"d\" e\"|2.23E+10\n",
		"Liste\n\nnom,prénom\nDiop,Awa\n",
		"Liste; 2026\nSession;Nom;Prénom\n1;Diop;Awa\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(readAnything)
}

func FuzzXLSX(f *testing.F) {
	f.Add(workbook(f, func(b *book) { b.row(1, "dossier", "nom"); b.row(2, 417, "Keïta"); b.format(2, 1, "000000") }))
	f.Add(export(f, "xlsx", []string{"nom"}, [][]sheet.Value{{sheet.Text("=1+1"), sheet.Integer(3)}}))
	f.Fuzz(readAnything)
}

// FuzzXLSXSheet changes the sheet inside a sound archive, which FuzzXLSX hardly ever reaches.
func FuzzXLSXSheet(f *testing.F) {
	shell := workbook(f, func(b *book) { b.row(1, "nom"); b.format(1, 1, "dd/mm/yyyy") })
	f.Add(`<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="3"><c r="B3" s="1"><v>39549.5</v></c></row></sheetData></worksheet>`)
	f.Add(`<x:worksheet><x:sheetData><x:row><x:c t="inlineStr"><x:is><x:t>_x000D_a</x:t></x:is></x:c></x:row></x:sheetData></x:worksheet>`)
	f.Add(`<worksheet><sheetData><row r="2"><c r="ZZZ1" t="e"><f/><v>#N/A</v></c><c r="A" t="d"><v>2008-04-11T08:30</v></c></row></sheetData>`)
	f.Fuzz(func(t *testing.T, text string) {
		readAnything(t, rewrite(t, shell, func(name, old string) string {
			if strings.HasPrefix(name, "xl/worksheets/") {
				return text
			}
			return old
		}))
	})
}
